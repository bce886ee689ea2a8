"""The body of a request: joined from ready JSON, and read back for clients of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.unset import UNSET, without_unset
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode

__all__ = [
    "Fields",
    "add_extra",
    "body_dict",
    "checked_offer",
    "checked_transcript",
    "history_list",
    "join_body",
    "read_body",
]

Fields: TypeAlias = "dict[str, bytes | list[bytes]]"
"""The fields of a request by name: ready JSON, or the ready entries of a JSON array that isn't
empty (the conversation).
"""


def join_body(fields: Fields) -> bytes:
    """One JSON object from its fields."""
    if not fields:
        return b"{}"
    # One join with commas between fields and entries alike, so that the conversation is copied
    # once, however long it is.
    pieces: list[bytes] = []
    for name, value in fields.items():
        key = _NAMES.get(name) or _encode_name(name)
        if isinstance(value, bytes):
            pieces.append(key + value)
        else:
            first = len(pieces)
            pieces += value
            pieces[first] = b"%b[%b" % (key, pieces[first])
            pieces[-1] += b"]"
    pieces[0] = b"{" + pieces[0]
    pieces[-1] += b"}"
    return b",".join(pieces)


def add_extra(fields: Fields, extra: Mapping[str, Any]) -> None:
    """Put provider parameters into a request's fields: they win, but `tools` (the provider's own)
    are beside those offered, and what is `UNSET` isn't sent.
    """
    for name, value in extra.items():
        if value is UNSET:
            fields.pop(name, None)
            continue
        encoded = encode(without_unset(value))
        offered = fields.get(name) if name == "tools" else None
        if isinstance(offered, bytes) and isinstance(value, (list, tuple)):
            if value:
                fields[name] = b"%b,%b" % (offered[:-1], encoded[1:])
        else:
            fields[name] = encoded


def checked_transcript(transcript: Any) -> Transcript:
    """The transcript that a user has given; raises `TypeError` for anything else, a session among
    it.
    """
    if isinstance(transcript, Transcript):
        return transcript
    hint = (
        "; use session.transcript"
        if isinstance(getattr(transcript, "transcript", None), Transcript)
        else ""
    )
    raise TypeError(f"a Transcript is needed, not {type(transcript).__name__}{hint}")


def checked_offer(offer: Any) -> ToolOffering:
    """`offer`, if it is one; raises `TypeError` for anything else, a toolset too."""
    if isinstance(offer, ToolOffering):
        return offer
    name = getattr(offer, "__name__", "AppTools")
    hint = f"; write {name}.offer()" if hasattr(offer, "__view__") else ""
    raise TypeError(
        f"an offer is needed, as {name}.offer() gives it, not {type(offer).__name__}{hint}"
    )


def body_dict(fields: Fields) -> dict[str, Any]:
    """A request's fields as a fresh dict: the very JSON that the client would send, read back."""
    return read_body(join_body(fields))


def read_body(data: bytes) -> dict[str, Any]:
    """A request's body as a fresh dict."""
    body: dict[str, Any] = json_values.decode(data)
    return body


def history_list(data: bytes) -> list[dict[str, Any]]:
    """The entries of an encoded history, as fresh JSON values."""
    entries: list[dict[str, Any]] = json_values.decode(data)
    return entries


def _encode_name(name: str) -> bytes:
    return encode(name) + b":"


_NAMES: dict[str, bytes] = {
    name: _encode_name(name)
    for name in (
        "input",
        "max_tokens",
        "messages",
        "model",
        "stream",
        "system",
        "tool_choice",
        "tools",
    )
}
