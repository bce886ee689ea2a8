"""When two calls are the same, and the key that tells a backend so."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from lutumpy.core import json_values
from lutumpy.tools.arguments import Refused, decode_arguments
from lutumpy.tools.calls import BaseToolCall

__all__ = ["IdempotencyKey", "call_arguments", "idempotency_key"]


class IdempotencyKey(str):
    """Names one effect: 64 letters and digits, for backends that carry out one request for each key.

    A tool asks for it with `key: Skip[IdempotencyKey]`, a handler with a parameter annotated `IdempotencyKey`; the executor
    supplies it. It is made of the executor's `scope`, what was committed before the answer, the tool, the arguments, and how
    many equal calls of the answer stand before this one. So it is the same for each retry, and for the same answer after a crash;
    it doesn't depend on the provider's call ids.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"IdempotencyKey({str(self)!r})"


def call_arguments(call: BaseToolCall) -> str:
    """One text for equal arguments: those that the model wrote, as a JSON value, and what hooks made of them.

    `1` equals `1.0`, and `true` equals neither. The input counts where it isn't what the arguments decode to.
    """
    written = json_values.canonical_arguments(call.metadata.arguments)
    decoded = decode_arguments(call.tool, call.metadata.arguments)
    if not isinstance(decoded, Refused) and _as_decoded(call.input, decoded.input):
        return written
    try:
        edited = json.dumps(
            call.input.model_dump(exclude_unset=True, warnings=False), default=_told
        )
    except Exception:
        # A key that JSON has no form for; what the model wrote tells these calls apart, as far as anything does.
        edited = type(call.input).__name__
    return f"{written}\n{json_values.canonical_arguments(edited)}"


def _told(value: Any) -> Any:
    """A value that isn't JSON, as something that is. Secrets count with what they hide."""
    reveal = getattr(value, "get_secret_value", None)
    if callable(reveal):
        return reveal()
    try:
        return to_jsonable_python(value)
    except Exception:
        return type(value).__name__


def _as_decoded(value: BaseModel, decoded: BaseModel) -> bool:
    """Whether an input is what the arguments decode to. What was left out counts as such: a default may differ each time."""
    try:
        return bool(
            value.model_dump(exclude_unset=True, warnings=False)
            == decoded.model_dump(exclude_unset=True, warnings=False)
        )
    except Exception:
        return value.__dict__ == decoded.__dict__


def idempotency_key(call: BaseToolCall, scope: str, arguments: str, before: int) -> IdempotencyKey:
    """The key of one call.

    Args:
        call: The call.
        scope: What tells apart conversations that are equal so far.
        arguments: Its `call_arguments`.
        before: How many equal calls were given to the same run before it; counts where the call has no origin.
    """
    origin = call.origin
    stands = (
        ["", before]
        if origin is None
        else [origin.digest().hex(), origin.occurrence(call.metadata)]
    )
    content = json_values.encode(["idempotency key", scope, call.metadata.name, arguments, *stands])
    return IdempotencyKey(hashlib.sha256(content).hexdigest())
