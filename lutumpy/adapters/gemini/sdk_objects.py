"""Objects of google-genai as the JSON that they were made from.

The SDK reads bytes, such as signatures, from base64 and writes them in the alphabet for URLs,
while the API answers in the standard one. Both are accepted, but a part is sent back as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.replies import reply_object
from lutumpy.adapters.sdk_stream import event_object

__all__ = ["chunk_object", "response_object"]

_STANDARD = str.maketrans("-_", "+/")


def chunk_object(chunk: Any) -> dict[str, Any]:
    """A chunk of a stream as a dict; an empty one for anything that isn't a chunk (rule C8)."""
    if isinstance(chunk, Mapping):
        return event_object(chunk)
    return _with_standard_bytes(event_object(chunk))


def response_object(reply: Any, provider: str) -> dict[str, Any]:
    """An answer as a dict of JSON values.

    Raises:
        AdapterError: it is not a JSON object.
    """
    raw = getattr(getattr(reply, "sdk_http_response", None), "body", None)
    if isinstance(raw, (str, bytes)) and raw:
        return reply_object(raw, provider)
    read = reply_object(reply, provider)
    return _with_standard_bytes(read) if hasattr(reply, "model_dump") else read


def _with_standard_bytes(value: dict[str, Any]) -> dict[str, Any]:
    """A dump, with the bytes of its parts in the alphabet of the wire. The dump is changed."""
    for candidate in _objects(value.get("candidates")):
        content = candidate.get("content")
        for part in _objects(content.get("parts")) if isinstance(content, dict) else ():
            for holder, name in ((part, "thoughtSignature"), (part.get("inlineData"), "data")):
                if isinstance(holder, dict) and isinstance(holder.get(name), str):
                    holder[name] = holder[name].translate(_STANDARD)
    return value


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
