"""What tools gave, left out of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["LEFT_OUT", "without_outputs"]

LEFT_OUT = "[left out]"
"""What is in place of an output."""

# How APIs write the result of a call: what tells that an object is one or holds one, and where the
# output is in it, with what every API takes in its place.
#
#     {"role": "tool", "content": ...}
#     {"type": "tool_result", "content": ...}
#     {"type": "function_call_output", "output": ...}, and outputs of other kinds
#     {"toolResult": {"content": [...]}}
#     {"functionResponse": {"response": {...}}}


def without_outputs(value: Any) -> Any:
    """A request body without what tools gave. What was said of calls that weren't run, and of those
    that failed, is left out as well; all else is as it was.
    """
    if isinstance(value, list):
        return [without_outputs(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
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
