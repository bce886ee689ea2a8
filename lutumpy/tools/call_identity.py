"""When two calls are equal, and the idempotency key that tells a backend so."""

# Three things are compared, from cheap to expensive:
#
# - what the model wrote, as a JSON value: `{"n": 1}` and `{ "n": 1.0 }` are equal
# - the input, where hooks have edited it: it is no longer what the arguments decode to
# - the place: equal calls of one answer are told apart by how many come before each of them
#
# The key is a hash of these and of what was committed before the answer. The provider's call ids
# are left out on purpose: after a crash, the same answer may come again with other ids.

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from lutumpy.core.items import ToolMetadata
from lutumpy.plain import json_values
from lutumpy.tools.arguments import Decoded, decode_call_again
from lutumpy.tools.calls import BaseToolCall

__all__ = [
    "IdempotencyKey",
    "call_arguments",
    "final_arguments",
    "idempotency_key",
    "written_arguments",
    "written_text",
]


class IdempotencyKey(str):
    """Names one effect: 64 letters and digits, for backends that carry out a key only once.

    A tool asks for it with `key: Skip[IdempotencyKey]`, a handler with a parameter annotated
    `IdempotencyKey`; the executor supplies it. It is made of the executor's `scope`, what was
    committed before the answer, the tool, the arguments, and how many equal calls of the answer
    come before this one. So it is the same for each retry, and for the same answer after a crash;
    it doesn't depend on the provider's call ids.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"IdempotencyKey({str(self)!r})"


def call_arguments(call: BaseToolCall) -> str:
    """A text that is the same for equal arguments.

    It holds what the model wrote, as a JSON value, and the input where it isn't what that decodes
    to, because hooks have edited it. `1` equals `1.0`, and `true` equals neither. A call that was
    loaded from a plan or a ticket keeps the text that it had when that was written.
    """
    if call.equal_to is not None:
        return call.equal_to
    written = written_arguments(call)
    if isinstance(call.input, str):
        return _add_edited_text(call, written)
    decoded = _decode_again(call)
    if decoded is not None and _is_unedited(call.input, decoded):
        return written
    try:
        values = call.input.model_dump(exclude_unset=True, warnings=False)
        edited = json.dumps(values, default=_to_json_value)
    except Exception:
        edited = _dump_as_json(call.input)
    return f"{written}\n{json_values.canonical_arguments(edited)}"


def _dump_as_json(value: BaseModel) -> str:
    """An edited input as its model writes it, where a set holds models or a key is not a text."""
    from lutumpy.tools.set_order import sort_sets

    try:
        data = value.model_dump(mode="json", exclude_unset=True, warnings=False)
        return json.dumps(sort_sets(value, data))
    except Exception:
        # What the model wrote still tells such calls apart.
        return type(value).__name__


def final_arguments(metadata: ToolMetadata, equal_to: str) -> str:
    """The arguments that run, as one text: those of hooks and people where they edited the call.

    Args:
        metadata: The call as the model wrote it.
        equal_to: Its `call_arguments`.
    """
    written = written_text(metadata)
    return equal_to[len(written) + 1 :] if equal_to.startswith(f"{written}\n") else equal_to


def written_arguments(call: BaseToolCall) -> str:
    """A text that is the same where the model wrote equal arguments, as JSON values.

    The two forms of a text tool's calls are equal.
    """
    return written_text(call.metadata)


def written_text(metadata: ToolMetadata) -> str:
    """As `written_arguments`, where only the metadata of a call is there."""
    written = metadata.arguments
    if metadata.is_text:
        written = json_values.encode_text({"input": written})
    return json_values.canonical_arguments(written)


def _add_edited_text(call: BaseToolCall, written: str) -> str:
    """What the model wrote, with the text that is run where that is another one."""
    if _decode_again(call) == call.input:
        return written
    return f"{written}\n{json_values.encode_text(call.input)}"


def _decode_again(call: BaseToolCall) -> Any:
    """The input that the model's arguments decode to; `None` if they don't fit the tool."""
    decoded = decode_call_again(call.tool, call.metadata)
    return decoded.input if isinstance(decoded, Decoded) else None


def _to_json_value(value: Any) -> Any:
    """A JSON value in place of one that isn't; secrets count with what they hide."""
    reveal = getattr(value, "get_secret_value", None)
    if callable(reveal):
        return reveal()
    if isinstance(value, (set, frozenset)):
        from lutumpy.tools.set_order import sort_elements

        return sort_elements(value, _to_json_value)
    try:
        return to_jsonable_python(value)
    except Exception:
        return value.hex() if isinstance(value, bytes) else type(value).__name__


def _is_unedited(value: BaseModel, decoded: BaseModel) -> bool:
    """Whether an input is what the arguments decode to.

    Fields that were left out are not compared: their defaults may differ each time.
    """
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
        before: How many equal calls come before it in the same run; used where the call has no
            origin, because it was made by hand.

    Returns:
        The key that was fixed when the plan of the call was made, if there was one (rule P9).
    """
    if call.key is not None:
        return IdempotencyKey(call.key)
    origin = call.origin
    if origin is None:
        place = ["", before]
    else:
        place = [origin.digest().hex(), origin.occurrence(call.metadata)]
    content = json_values.encode(["idempotency key", scope, call.metadata.name, arguments, *place])
    return IdempotencyKey(hashlib.sha256(content).hexdigest())
