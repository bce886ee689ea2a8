"""What tools gave, left out of requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lutumpy.core.parts import MOVED_HEADING
from lutumpy.core.promises import LATE_HEADER

__all__ = ["LEFT_OUT", "without_outputs"]

LEFT_OUT = "[left out]"
"""What is in place of an output."""

_LATE = re.compile(LATE_HEADER)
_MOVED = re.compile(MOVED_HEADING)

# How APIs write the result of a call: how such an object is recognised, where the output is in it,
# and what every API takes in its place.
#
#     {"role": "tool", "content": ...}
#     {"type": "tool_result", "content": ...}
#     {"type": "function_call_output", "output": ...}, and outputs of other kinds
#     {"toolResult": {"content": [...]}}
#     {"functionResponse": {"response": {...}}}
#
# Some of what tools gave stands in messages of the user, behind a heading that says so:
#
#     what                                 its text begins with    left out are
#     late results                         `LATE_HEADER`           what is behind it in the text, or
#                                                                  else in the blocks behind it
#     what a result shows beside its text  `MOVED_HEADING`         the heading and what it shows
#     results in text (`TextTools`)        a `ResultForm`'s start  the text and what is behind it
#
# A user's own words behind such a block, in the same message, are left out as well: nothing tells
# where the tool's output ends there.


def without_outputs(value: Any) -> Any:
    """A request body without what tools gave. What was said of calls that weren't run, and of those
    that failed, is left out as well; all else is as it was.
    """
    if isinstance(value, list):
        return [without_outputs(entry) for entry in value if not _only_shows(entry)]
    if not isinstance(value, Mapping):
        return value
    if value.get("role") == "user":
        value = _without_outputs_of_user(value)
    kind = value.get("type")
    if value.get("role") == "tool" or kind == "tool_result":
        return {**value, "content": LEFT_OUT} if "content" in value else dict(value)
    if isinstance(kind, str) and kind.endswith("_output") and "output" in value:
        output = value["output"]
        return {**value, "output": _blank(output) if isinstance(output, Mapping) else LEFT_OUT}
    found: dict[str, Any] = {}
    for key, entry in value.items():
        if key == "toolResult" and isinstance(entry, Mapping):
            found[key] = {**entry, "content": [{"text": LEFT_OUT}]}
        elif key == "functionResponse" and isinstance(entry, Mapping):
            kept = {name: inner for name, inner in entry.items() if name != "parts"}
            found[key] = {**kept, "response": {"output": LEFT_OUT}}
        else:
            found[key] = without_outputs(entry)
    return found


def _blank(output: Mapping[str, Any]) -> dict[str, Any]:
    """An output that has to be an object, as a picture has."""
    return {key: entry if key == "type" else LEFT_OUT for key, entry in output.items()}


# --- messages of the user -------------------------------------------------------------------------


def _without_outputs_of_user(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if isinstance(content, str):
        text = _kept_of(content)
        if text is None:
            return message
        # What is shown may stand beside the text.
        kept = {key: message[key] for key in ("role", "type", "name") if key in message}
        return {**kept, "content": text}
    for key in ("content", "parts"):
        blocks = message.get(key)
        if isinstance(blocks, list):
            message = {**message, key: _kept_blocks(_without_shown(blocks))}
    return message


def _kept_blocks(blocks: Sequence[Any]) -> list[Any]:
    """The blocks of a message, those with what tools gave left out."""
    kept: list[Any] = []
    drops = False
    for block in blocks:
        text = _text_of(block)
        left = None if text is None else _kept_of(text)
        if left is not None:
            kept.append({**block, "text": left})
            drops = _LATE.fullmatch(text or "") is not None or left == LEFT_OUT
        elif not drops:
            kept.append(block)
    return kept


def _kept_of(text: str) -> str | None:
    """A text without what a tool gave; `None` if it isn't one with that."""
    late = _LATE.match(text)
    if late is not None:
        return f"{late.group()}\n{LEFT_OUT}"
    return LEFT_OUT if any(form.begins(text) for form in _result_forms()) else None


@cache
def _result_forms() -> Sequence[Any]:
    from lutumpy.text_tools import text_formats
    from lutumpy.text_tools.result_form import OWN_RESULTS

    forms = [one.results for one in text_formats() if one.results is not None]
    return tuple(dict.fromkeys([OWN_RESULTS, *forms]))


def _without_shown(blocks: Sequence[Any]) -> list[Any]:
    """The blocks of a message without headings and what is shown behind them."""
    kept: list[Any] = []
    drops = False
    for block in blocks:
        text = _text_of(block)
        if text is not None:
            drops = _MOVED.match(text) is not None
        if not drops:
            kept.append(block)
    return kept


def _only_shows(message: Any) -> bool:
    """Whether a message of the user is only there for what results show."""
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return False
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return _MOVED.match(content) is not None
    return isinstance(content, list) and bool(content) and not _without_shown(content)


def _text_of(block: Any) -> str | None:
    text = block.get("text") if isinstance(block, Mapping) else None
    return text if isinstance(text, str) else None
