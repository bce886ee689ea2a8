"""What came back from a provider: the bytes of a reply, and the JSON object in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lutumpy.adapters.provider_errors import shorten_text
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_repr

# What `post` gives depends on the client: a response of the HTTP stack (asked for with `cast_to`),
# the SDK's raw response (for requests that make a span), or whatever a replaced `post` in a user's
# tests returns. All of them are read here.
__all__ = [
    "SdkReply",
    "clean_field",
    "input_transformations",
    "read_reply",
    "reply_object",
    "without_nulls",
]


class SdkReply(NamedTuple):
    """The answer to one request: the bytes of its body, and the provider's id of the request where
    it gave one.
    """

    content: bytes
    request_id: str | None


def read_reply(reply: Any) -> SdkReply:
    """The bytes of whatever `post` gave: a response, the SDK's raw one, or the ready value of a
    replaced `post`.
    """
    reply = getattr(reply, "http_response", reply)
    content = getattr(reply, "content", None)
    if isinstance(content, bytes):
        headers: Mapping[str, str] = getattr(reply, "headers", None) or {}
        return SdkReply(content, headers.get("x-request-id") or headers.get("request-id"))
    if isinstance(reply, (bytes, bytearray)):
        return SdkReply(bytes(reply), None)
    if isinstance(reply, str):
        return SdkReply(json_values.clean_text(reply).encode(), None)
    if isinstance(reply, Mapping):
        return SdkReply(json_values.encode(reply if isinstance(reply, dict) else dict(reply)), None)
    dump = getattr(reply, "model_dump_json", None)
    if dump is None:
        raise TypeError(
            f"the client's post() gave a {type(reply).__name__}, "
            "which is not an answer of a provider"
        )
    text: str = dump(by_alias=True, exclude_unset=True, warnings=False)
    return SdkReply(text.encode(), getattr(reply, "_request_id", None))


def reply_object(reply: Any, provider: str) -> dict[str, Any]:
    """A provider's answer as a dict of JSON values: from bytes or text, a mapping, or an object of
    an SDK.

    A mapping is given back as it is, so the caller must not change it.

    Raises:
        AdapterError: it is not a JSON object, or it is an error body (some hosts send those with
            status 200).
    """
    if isinstance(reply, dict):
        value: Any = reply
    elif isinstance(reply, (bytes, bytearray, str)):
        value = _parse_reply(reply, provider)
    elif isinstance(reply, Mapping):
        value = dict(reply)
    elif hasattr(reply, "model_dump"):
        value = reply.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    elif isinstance(getattr(reply, "content", None), bytes):
        value = _parse_reply(reply.content, provider)
    else:
        value = reply
    if not isinstance(value, dict):
        raise AdapterError(
            f"{provider}: the answer is not a JSON object: {shorten_text(safe_repr(value))}",
            provider=provider,
        )
    return value


def clean_field(value: Any) -> str:
    """`value` as it can be sent, if it is a text; an empty one where a reply has anything else."""
    return json_values.clean_text(value) if isinstance(value, str) else ""


def without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    """`value` without the fields that are `null`."""
    return {name: inner for name, inner in value.items() if inner is not None}


def input_transformations(reply: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """What a provider says it changed of a request, as a turn keeps it: copies of the entries."""
    entries = reply.get("input_transformations")
    if not entries or not isinstance(entries, list):
        return ()
    return tuple([json_values.clean(entry) for entry in entries if isinstance(entry, dict)])


def _parse_reply(data: bytes | bytearray | str, provider: str) -> Any:
    try:
        return json_values.decode(data)
    except (ValueError, RecursionError):
        text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
        shown = shorten_text(text.strip()) or "it is empty"
        raise AdapterError(
            f"{provider}: the answer is not JSON: {shown}", provider=provider
        ) from None
