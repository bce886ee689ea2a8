"""The body of a request: joined from ready JSON, and read back for clients of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from lutumpy.core import json_values

__all__ = ["add_extra", "body_dict", "history_list", "join_body", "read_body"]


def join_body(fields: Mapping[str, bytes]) -> bytes:
    """One JSON object from ready JSON values by name."""
    # One join: the conversation's bytes are copied once here, however long they are.
    pieces: list[bytes] = []
    before = b"{"
    for name, value in fields.items():
        pieces += (before, _NAMES.get(name) or _name(name), value)
        before = b","
    pieces.append(b"}")
    return b"".join(pieces) if fields else b"{}"


def add_extra(fields: dict[str, bytes], extra: Mapping[str, Any]) -> None:
    """Put provider parameters into a request's fields: they win, but `tools` (the provider's own) stand beside those offered."""
    for name, value in extra.items():
        encoded = json_values.encode(value)
        if name == "tools" and name in fields and isinstance(value, (list, tuple)):
            if value:
                fields[name] = b"%b,%b" % (fields[name][:-1], encoded[1:])
        else:
            fields[name] = encoded


def body_dict(fields: Mapping[str, bytes]) -> dict[str, Any]:
    """A request's fields as a fresh dict: the very JSON that the client would send, read back."""
    return read_body(join_body(fields))


def read_body(data: bytes) -> dict[str, Any]:
    """A request's body as a fresh dict."""
    body: dict[str, Any]
    try:
        body = from_json(data)
    except ValueError:  # nested deeper than the fast parser goes
        body = json_values.decode(data)
    return body


def history_list(data: bytes) -> list[dict[str, Any]]:
    """The entries of an encoded history, as fresh JSON values."""
    entries: list[dict[str, Any]] = json_values.decode(data)
    return entries


def _name(name: str) -> bytes:
    return json_values.encode(name) + b":"


_NAMES: dict[str, bytes] = {
    name: _name(name)
    for name in ("input", "max_tokens", "messages", "model", "stream", "system", "tool_choice", "tools")
}
