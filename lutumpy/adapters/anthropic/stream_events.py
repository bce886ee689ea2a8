"""Events of a streamed message as mappings, whoever made them: dicts, or objects of the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.sdk_stream import event_object

__all__ = ["read_event"]

_EVENTS = frozenset(
    {
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "error",
        "message_delta",
        "message_start",
        "message_stop",
    }
)

# The deltas that a stream mostly consists of, with the field that holds their text.
_TEXT_FIELDS = {
    "input_json_delta": "partial_json",
    "text_delta": "text",
    "thinking_delta": "thinking",
}


def read_event(chunk: Any) -> Mapping[str, Any]:
    """An event as a mapping; an empty one for anything that is not an event of this API.

    An object of the SDK is dumped only when that is needed: a dump of each delta would cost more
    than all the rest of reading the stream.
    """
    if isinstance(chunk, Mapping):
        return chunk
    # What the SDK's helper streams give beside the events themselves holds all that came so far,
    # again and again.
    kind = getattr(chunk, "type", None)
    if kind == "content_block_delta":
        delta: Any = getattr(chunk, "delta", None)
        what = str(getattr(delta, "type", ""))
        field = _TEXT_FIELDS.get(what)
        if field is not None and not getattr(delta, "model_extra", None):
            text, index = getattr(delta, field, None), getattr(chunk, "index", None)
            if isinstance(text, str) and isinstance(index, int):
                return {"type": kind, "index": index, "delta": {"type": what, field: text}}
    elif kind == "content_block_stop" and isinstance(index := getattr(chunk, "index", None), int):
        return {"type": kind, "index": index}
    elif kind == "message_stop":
        return {"type": kind}
    return event_object(chunk) if isinstance(kind, str) and kind in _EVENTS else {}
