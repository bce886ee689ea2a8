"""Values nested deeper than JSON readers follow. No other rule looks into them."""

# What is hard here
# -----------------
# A hostile value may be nested deeper than Python's stack, or hold itself, so nothing recurses:
# every walk has a stack of its own. The quick test for nearly all messages counts the brackets of
# the JSON text: with fewer of them than levels nothing can be too deep.
#
# The other rules do recurse. They get the messages with the JSON text of each value that is too
# deep in its place, so that they stay simple and report what else is wrong.

from __future__ import annotations

import json
from collections.abc import Iterator
from json import encoder as json_encoder
from typing import Any

from lutumpy.plain.pointer import Path
from lutumpy.rules.problem import Problem, is_array

MAX_NESTING = 300
"""Levels of one message. JSON readers stop at some hundreds: those of Rust at 128 or 200, Python's
below 1,000.
"""

# What is in the text where a value would begin anew inside itself.
_CIRCLE = "nested in itself"
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_quote = json_encoder.encode_basestring


def check_nesting(api: str, messages: Any, root: str) -> tuple[list[Problem], Any]:
    """Values that begin below the deepest level, and the messages with their JSON text instead of
    them.

    Args:
        api: How the ids of the API's rules begin, as `chat`.
        messages: The list of messages or items, or of blocks.
        root: How positions of this list begin, with `{}` for the index.

    Returns:
        The problems, and `messages` itself if there are none, else a list that shares what is not
        nested too deeply.
    """
    if not is_array(messages):
        return [], messages
    found: list[Problem] = []
    shallow: list[Any] | None = None
    for index, message in enumerate(messages):
        if not isinstance(message, (dict, list, tuple)) or not may_be_deep(message):
            continue
        places = list(_find_too_deep(message))
        if places and shallow is None:
            shallow = list(messages)
        for path in places:
            where = root.format(index)
            text = (
                f"{where} is nested more than {MAX_NESTING} levels deep, which JSON readers refuse "
                "to follow."
            )
            found.append(Problem(f"{api}.nesting", where, text, "some", path=(index, *path)))
            if shallow is not None:
                _replace_by_text(shallow, (index, *path))
    return found, messages if shallow is None else shallow


def may_be_deep(message: Any) -> bool:
    """Fewer opening brackets than levels: the quick answer for nearly all messages."""
    try:
        text = _encode(message)
    except (RecursionError, TypeError, ValueError):
        return True
    return text.count("[") + text.count("{") > MAX_NESTING


def _find_too_deep(message: Any) -> Iterator[Path]:
    """Paths of the containers at the first level that is too deep."""
    path: list[str | int] = []
    stack: list[tuple[int, str | int, Any]] = [(0, "", message)]
    while stack:
        level, key, node = stack.pop()
        if level:
            path[level - 1 :] = [key]
        if level >= MAX_NESTING:
            yield tuple(path)
            continue
        entries = node.items() if isinstance(node, dict) else enumerate(node)
        stack += [(level + 1, k, v) for k, v in entries if isinstance(v, (dict, list, tuple))]


def _replace_by_text(root: list[Any], path: Path) -> None:
    """Put the text of a value in its place, in copies of what holds it."""
    node: Any = root
    for step in path[:-1]:
        node[step] = dict(node[step]) if isinstance(node[step], dict) else list(node[step])
        node = node[step]
    node[path[-1]] = json_text(node[path[-1]])


def json_text(value: Any) -> str:
    """A value as JSON text, however deep; a value that holds itself is cut there."""
    pieces: list[str] = []
    above: set[int] = set()
    stack: list[tuple[str, Any]] = [("value", value)]
    while stack:
        what, node = stack.pop()
        if what == "text":
            pieces.append(node)
        elif what == "end":
            above.discard(node)
        elif not isinstance(node, (dict, list, tuple)):
            pieces.append(_encode_scalar(node))
        elif id(node) in above:
            pieces.append(_quote(_CIRCLE))
        else:
            above.add(id(node))
            stack += _split_container(node)
    return "".join(pieces)


def _split_container(node: Any) -> list[tuple[str, Any]]:
    """What is written of a container, last first."""
    is_object = isinstance(node, dict)
    found: list[tuple[str, Any]] = [("end", id(node)), ("text", "}" if is_object else "]")]
    entries = list(node.items()) if is_object else [("", inner) for inner in node]
    for number in range(len(entries) - 1, -1, -1):
        key, inner = entries[number]
        found.append(("value", inner))
        found.append(
            ("text", ("," if number else "") + (f"{_quote(str(key))}:" if is_object else ""))
        )
    found.append(("text", "{" if is_object else "["))
    return found


def _encode_scalar(value: Any) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return _quote(type(value).__name__)
