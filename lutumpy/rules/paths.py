"""From a position, as a provider writes it, to the path of that value in the list of messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lutumpy.plain.pointer import Path
from lutumpy.rules.problem import is_array

# OpenAI writes `messages[2].tool_calls[0].id` and `input[3].output`, Google
# `contents[2].parts[0]`, Anthropic
# `messages.2.content.0.tool_use.id`: with the kind of the block, which isn't a key, after its
# index.
_TOKEN = re.compile(r"[^.\[\]]+")
_NUMBER = re.compile(r"(?<=[.\[])\d+(?=[.\]]|\Z)")
_FIRST = re.compile(r"\w+(?:\[\d+\]|\.\d+)")
_ROOTS = ("messages", "input", "contents")


def path_of(position: str, messages: Any) -> Path:
    """Keys and indices that lead from the list of messages to what a position names.

    The last key may name what is missing. The kind of block that Anthropic's positions hold
    (`content.0.tool_use.id`) is left out. A position outside the messages keeps its first word
    (`system`); one of the whole gives `()`.
    """
    tokens = _TOKEN.findall(position)
    if not tokens:
        return ()
    found: list[str | int] = []
    tagged = "[" not in position  # Anthropic's way
    if tokens[0] not in _ROOTS:
        return tuple([int(token) if token.isdecimal() else token for token in tokens])
    node: Any = messages
    named = False
    for token in tokens[1:]:
        if is_array(node) and token.isdecimal():
            index = int(token)
            found.append(index)
            named = False
            node = node[index] if index < len(node) else None
        elif isinstance(node, Mapping):
            if (
                tagged
                and not named
                and len(found) > 1
                and isinstance(found[-1], int)
                and token == node.get("type")
            ):
                named = True  # the kind of the block that the path has reached
                continue
            found.append(token)
            node = node.get(token)
        else:
            break
    return tuple(found)


def moved_position(position: str, path: Path, new: Path) -> str:
    """A position in a list, for what is at another path now: its numbers, one by one, as far as
    the paths are alike.

    Args:
        position: As the provider writes it, of what was at `path`.
        path: Keys and indices from the list of messages.
        new: The same, now; a shorter one, or one that leads elsewhere, gives a position of the
            message that it is in.
    """
    was = [step for step in path if isinstance(step, int)]
    now = [step for step in new if isinstance(step, int)]
    alike = [step for step in path if isinstance(step, str)] == [
        step for step in new if isinstance(step, str)
    ]
    if not alike:
        first = _FIRST.match(position)
        position = first[0] if first is not None else position
    number = 0

    def renumbered(match: re.Match[str]) -> str:
        nonlocal number
        if number >= min(len(was), len(now)) or int(match[0]) != was[number]:
            return match[0]
        number += 1
        return str(now[number - 1])

    return _NUMBER.sub(renumbered, position)
