"""One call of a server's tool, with as many legs as its questions need (rules MCP5, LR25 to LR29,
LR35).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mcp import Client, MCPError
from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult, InputRequiredResult
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from lutumpy import ToolError
from lutumpy.mcp.connection import Connection
from lutumpy.mcp.errors import McpConnectionError, McpConnectionLost, McpUnknownResult
from lutumpy.mcp.limits import Limits
from lutumpy.mcp.listing import Effect
from lutumpy.mcp.questions import Questions, is_old_question
from lutumpy.mcp.results import cut, find_unknown
from lutumpy.mcp.tasks import TaskResult, Tasks
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten

if TYPE_CHECKING:
    from lutumpy import CallTicket, ToolMetadata

__all__ = ["CallSender", "ProgressHandler"]

ProgressHandler = Callable[["ToolMetadata | None", float, "float | None", "str | None"], Any]
"""Called with the call, how far it is, how far it goes and a word about it; sync or async."""

_log = logging.getLogger("lutumpy.mcp")
_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
_RESULT_OR_TASK: TypeAdapter[CallToolResult | InputRequiredResult | TaskResult] = TypeAdapter(
    CallToolResult | InputRequiredResult | TaskResult
)
_KNOWN = ("complete", "input_required", None)
_NOT_CALLED = "Connection closed: the server is gone, and this tool was not called."
# Errors by which a server, or the SDK before it, says that nothing was run.
_NOT_RUN = frozenset({-32601, -32602, -32020, -32021, -32022, -32042})


class CallSender:
    """Sends calls to a server, and says of each that failed what is known of it.

    Args:
        server: The name of the server's toolset.
        limits: How much of an error's text is passed on.
        on_progress: Called with what the server reports of a running call.
        questions: Answers what the server asks.
        tasks: Makes promises of tasks; `None` where tasks aren't spoken.
    """

    def __init__(
        self,
        server: str,
        limits: Limits,
        on_progress: ProgressHandler | None,
        questions: Questions,
        tasks: Tasks | None = None,
    ) -> None:
        self._server = server
        self._limits = limits
        self._on_progress = on_progress
        self._questions = questions
        self._tasks = tasks

    async def call(
        self,
        connection: Connection,
        name: str,
        effect: Effect,
        arguments: dict[str, Any],
        call: ToolMetadata | None,
        ticket: CallTicket | None = None,
    ) -> CallToolResult:
        """The server's answer, once it has asked all that it wants to know.

        Raises:
            Asked: A person has to answer, and a store keeps the call.
            Later: The server has made a task of the call.
            ToolError: It failed, or can't be answered, and calling again does no harm.
            McpConnectionError: Of a call that has an effect once, what it did is unknown.
            McpUnknownResult: Likewise.
            MCPError: Likewise.
        """
        holds = self._questions.holds and ticket is not None and ticket.leg > 0
        beside = self._questions.resume(ticket)
        result = await self._send_leg(connection, name, effect, arguments, call, beside)
        legs = 1
        while isinstance(result, InputRequiredResult):
            # Its handler has run until it asked, and may have taken effect by then (rule LR27).
            answers = await self._questions.answer(
                result, connection.send, name, call, legs, holds=holds
            )
            if answers is None:
                raise self._refuse_question(name, effect, result)
            beside = {"input_responses": answers or None, "request_state": result.request_state}
            # The same name and arguments, and the state as it came (rule LR25).
            result = await self._send_leg(connection, name, effect, arguments, call, beside)
            legs += 1
        return result

    async def _send_leg(
        self,
        connection: Connection,
        name: str,
        effect: Effect,
        arguments: dict[str, Any],
        call: ToolMetadata | None,
        beside: Mapping[str, Any] | None = None,
    ) -> CallToolResult | InputRequiredResult:
        """Send a call, or send it again with the answers to what its server wanted to know."""
        try:
            to_json(arguments)
        except ValueError:
            # Half a character, which a hook wrote there: the SDK would find it when it writes, and
            # end the connection.
            arguments = json_values.clean(arguments)
        params = CallToolRequestParams(name=name, arguments=arguments, **(beside or {}))
        request = CallToolRequest(params=params)
        report = None if self._on_progress is None else _report_to(self._on_progress, call)

        async def send(client: Client) -> CallToolResult | InputRequiredResult:
            # Not `call_tool`: it holds results against the server's output schema with a validator
            # that a stranger's pattern can keep busy for hours.
            return await client.session.send_request(request, shapes, progress_callback=report)

        shapes: TypeAdapter[Any] = _RESULT if self._tasks is None else _RESULT_OR_TASK
        try:
            answer: CallToolResult | InputRequiredResult | TaskResult
            answer = await connection.send(send)
        except MCPError as error:
            has_run = beside is not None or error.code not in _NOT_RUN
            old = "the question is too old: " if is_old_question(error.data) else ""
            if effect == "once" and has_run:
                if old:  # a person reads it, in the log and in the result's `error`
                    raise McpConnectionError(old + error.message) from error
                raise
            raise ToolError(cut(old + error.message, self._limits.max_chars)) from error
        except McpConnectionError as error:
            # Without a connection nothing was run, unless the call had legs before (rule LR27).
            if beside is None and not isinstance(error, McpConnectionLost):
                raise ToolError(_NOT_CALLED) from error
            if effect == "once":
                raise
            raise ToolError("Connection closed: the server went away during the call.") from error
        except ValidationError as error:
            # Its text has the beginning of the answer, and tracebacks are logged.
            raise self._refuse_shape(name, effect, find_unknown(error)) from None
        if isinstance(answer, TaskResult):
            assert self._tasks is not None
            raise self._tasks.promise(answer)
        if answer.result_type not in _KNOWN:
            raise self._refuse_shape(name, effect, answer.model_dump(mode="json", by_alias=True))
        return answer

    def _refuse_shape(self, name: str, effect: Effect, result: dict[str, Any]) -> Exception:
        """What a call ends with whose answer nobody can read: its JSON is kept (rule LR35)."""
        _log.warning(
            "%s answered a call of %r with an unknown result; ids in it: %s",
            *(self._server, name, _ids_in(result)),
        )
        _log.debug("the unknown result: %.2000r", result)
        if effect == "once":
            return McpUnknownResult(self._server, name, result)
        text = f"The server's answer can't be read: {json_values.encode_text(result)}"
        return ToolError(cut(text, self._limits.max_chars))

    def _refuse_question(self, name: str, effect: Effect, result: InputRequiredResult) -> Exception:
        """What a call that can't be answered ends with."""
        if effect == "once":
            return McpConnectionError(
                f"{self._server} asked for further input in the middle of a call of {name}, which "
                f"this program can't give: {sorted(result.input_requests or ())}"
            )
        return ToolError(
            "The server asked for further input in the middle of this call, which this program "
            "can't give. The tool may have run in part; calling it again does no harm."
        )


def _report_to(handler: ProgressHandler, call: ToolMetadata | None) -> Any:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        done = handler(call, progress, total, message)
        if hasattr(done, "__await__"):
            await done

    return report


def _ids_in(result: Mapping[str, Any]) -> list[str]:
    """The ids of what a server may have begun, in its answer or one level below; no other text."""
    inner = [value for value in result.values() if isinstance(value, Mapping)]
    return [
        shorten(value, 100)
        for fields in (result, *inner)
        for key, value in fields.items()
        if key in ("id", "taskId") and isinstance(value, str)
    ]
