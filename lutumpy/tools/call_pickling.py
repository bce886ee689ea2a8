"""How a call is pickled: by its tool and its input as JSON.

The input of a function under `tool_fn` is of a class that no module holds, so it can't be pickled
as it is. What has no way back from JSON (a secret) is pickled itself, if its class can be.
"""

# An input that was loaded doesn't know which fields the model had left out, and so it would look
# edited. The text of equal calls is fixed for that reason: the key of a call is the same afterwards
# (rule P9).

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutumpy.core.items import ToolMetadata
from lutumpy.tools.call_identity import call_arguments
from lutumpy.tools.calls import BaseToolCall, HandledTool
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.portable_input import NotPortable, dump_value, load_input
from lutumpy.tools.selectors import Selector

__all__ = ["reduce_call", "reduce_handled"]

_Packed = tuple[bool, Any]
"""Whether it is JSON, and the input."""


def reduce_call(call: BaseToolCall) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What `pickle` makes a call of."""
    identity = call.key, call_arguments(call)
    place = call.repairs, call.origin
    packed = _pack(call.tool, call.input)
    return _restore_call, (type(call), call.metadata, call.selector, packed, *place, *identity)


def reduce_handled(handled: HandledTool[Any, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What `pickle` makes a handled call of."""
    selector, packed = handled.selector, (False, handled.input)
    if selector is not None:
        packed = _pack(selector.tool, handled.input)
    return _restore_handled, (handled.metadata, packed, handled.output, selector)


def _pack(tool: CompiledTool, value: Any) -> _Packed:
    try:
        return True, dump_value(tool, value)
    except NotPortable:
        return False, value


def _unpack(tool: CompiledTool, packed: _Packed) -> Any:
    is_json, value = packed
    return load_input(tool, value) if is_json else value


def _restore_call(
    kind: type[BaseToolCall],
    metadata: ToolMetadata,
    selector: Selector[Any, Any, Any],
    packed: _Packed,
    repairs: Any,
    origin: Any,
    key: str | None,
    equal_to: str,
) -> BaseToolCall:
    call = kind(metadata, _unpack(selector.tool, packed), selector, repairs, origin)
    call.key = key
    call.equal_to = equal_to
    return call


def _restore_handled(
    metadata: ToolMetadata,
    packed: _Packed,
    output: Any,
    selector: Selector[Any, Any, Any] | None,
) -> HandledTool[Any, Any]:
    value = packed[1] if selector is None else _unpack(selector.tool, packed)
    return HandledTool(metadata, value, output, selector)
