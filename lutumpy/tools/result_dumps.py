"""The result of a call as JSON and back, for plans, journals and workers (rule P18).

Content is kept as it would be committed. Exceptions don't travel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from lutumpy.core.dump_checks import WRONG
from lutumpy.core.dump_parts import dump_part, load_part
from lutumpy.core.items import ResultStatus
from lutumpy.plain.safe_text import explain_misfit
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.results import HasMetadata, ToolResult

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.core.promises import Promise

__all__ = ["RESULT_READERS", "dump_result", "load_result"]

RESULT_READERS: dict[str, Callable[[ToolResult, Mapping[str, Any]], ToolResult]] = {}
"""What makes the results of opt-in parts, by the key of a dump that tells them: it is given the
plain result, and the dump."""

_STATUSES: tuple[str, ...] = get_args(ResultStatus)


def dump_result(result: ToolResult) -> dict[str, JsonValue]:
    """See `ToolResult.dump`."""
    content = result.content
    data: dict[str, Any] = {
        "status": result.status,
        "content": content if isinstance(content, str) else [dump_part(part) for part in content],
    }
    if result.rejection_reason is not None:
        data["rejection_reason"] = result.rejection_reason
    if result.output_error is not None:
        data["output_error"] = result.output_error
    if result.promise is not None:
        from lutumpy.core.dump_promises import dump_promise

        data["promise"] = dump_promise(result.promise)
    return data


def load_result(data: Mapping[str, Any], call: HasMetadata) -> ToolResult:
    """See `ToolResult.load`."""
    try:
        status, content = data["status"], data["content"]
        if status not in _STATUSES:
            raise ValueError(f"its status is {status!r}, not one of {', '.join(_STATUSES)}")
        if not isinstance(content, str):
            content = tuple([load_part(part) for part in _as_list(content)])
        reason, misfit = [
            _text_or_none(data, name) for name in ("rejection_reason", "output_error")
        ]
        output: Any = None
        tool = getattr(call, "tool", None)  # a ticket has the name alone, an issue none
        if status == "ok" and isinstance(tool, CompiledTool):
            output = _read_output(tool, content)
        promise: Promise | None = None
        if status == "promised":
            from lutumpy.core.dump_promises import load_promise

            promise = replace(load_promise(data), tool=tool)
        result = ToolResult(call.metadata, content, status, reason, output, misfit, promise)
        for key, read in RESULT_READERS.items():
            if key in data:
                result = read(result, data)
    except (*WRONG, RecursionError) as error:
        what = explain_misfit(error)
        raise ValueError(
            f"the dump of a result of call {call.metadata.id!r} is invalid: {what}; "
            "nothing was loaded"
        ) from error
    return result


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"its content is {type(value).__name__}, not text or parts")
    return value


def _text_or_none(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"its {name} is {type(value).__name__}, not text")
    return value


def _read_output(tool: CompiledTool, content: Any) -> Any:
    """The output that this content was written from, where the tool's type allows; else `None`."""
    if not isinstance(content, str):
        for candidate in (content[0] if len(content) == 1 else content, content, list(content)):
            if tool.check_type(candidate) is None:
                return candidate
        return None
    if tool.output_type is str:
        return content
    for read in (_from_json, _from_text):
        try:
            value = read(tool, content)
            if tool.encode_output(value) == content:
                return value
        except Exception:  # not of this type, or a validator of the user's refuses
            continue
    return None


def _from_json(tool: CompiledTool, content: str) -> Any:
    if tool.is_dynamic:
        from lutumpy.plain import json_values

        return json_values.decode(content)
    return tool.adapter.validate_json(content, by_alias=True, by_name=True)


def _from_text(tool: CompiledTool, content: str) -> Any:
    if tool.is_dynamic:
        return content
    return tool.adapter.validate_python(content, by_alias=True, by_name=True)
