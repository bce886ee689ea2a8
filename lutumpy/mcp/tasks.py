"""Tasks of MCP servers: calls whose results are polled (rules LR31 to LR34).

Wire: the extension `io.modelcontextprotocol/tasks` of the protocol 2026-07-28. The SDK has the
frame for extensions, and not this one.
"""

# What is hard here
# -----------------
# A server that answers a call with a task has begun its work, and the id in that answer is all that
# leads to it. So the id is in the handle of the promise, which is recorded before anything is
# polled; and whoever has the handle can poll, from any connection to the same address.
#
#   status of the task  what a poll gives
#   ------------------  ------------------------------------------------------------------------
#   working             `running`, with the interval that the server wants now
#   input_required      `asked`, where a person is waited for; else a handler's answers are sent
#   completed           `done`: the output, or the error, as of any other call (rule MCP4)
#   failed, cancelled   `done`, with an error
#   not known           `lost`: of a `once` call nobody knows what it did

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from mcp import MCPError
from mcp.types import (
    CallToolResult,
    InputRequiredResult,
    Request,
    RequestParams,
    Result,
)
from pydantic import Field, TypeAdapter, ValidationError

from lutumpy import Later, OpenCall, ToolError, ToolResult
from lutumpy.mcp.limits import Limits
from lutumpy.mcp.questions import Questions, dump_answers
from lutumpy.mcp.results import AnswerHandler, cut, hand_on, read_result
from lutumpy.plain import json_values
from lutumpy.tools import Asked, Polled

if TYPE_CHECKING:
    from mcp import Client

    from lutumpy import ToolMetadata

__all__ = ["EXTENSION", "TaskResult", "Tasks"]

EXTENSION = "io.modelcontextprotocol/tasks"

_log = logging.getLogger("lutumpy.mcp")

_SECONDS = 5.0  # between two polls, where the server names no interval
# Seconds; what a stranger's server asks for is held within these.
_SHORTEST, _LONGEST = 0.1, 3600.0
_NOT_FOUND = -32602
_LOST = (
    "The server knows nothing of the task any more. It may have taken effect. Do not simply repeat "
    "this call; find out first whether it did, or ask the user."
)

Send: TypeAlias = "Callable[[Callable[[Client], Any]], Awaitable[Any]]"


class TaskResult(Result):
    """What a server answers in place of a call's result: a task. Fields as on the wire."""

    result_type: Literal["task"]
    task_id: str = Field(min_length=1)
    status: str
    ttl_ms: int | float | None = None
    poll_interval_ms: int | float | None = None


class _TaskState(Result):
    """How a task stands: the answer to `tasks/get`."""

    task_id: str
    status: str
    status_message: str | None = None
    poll_interval_ms: int | float | None = None
    input_requests: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class _TaskParams(RequestParams):
    task_id: str


class _UpdateParams(_TaskParams):
    input_responses: dict[str, Any]


class _GetTask(Request[_TaskParams, Literal["tasks/get"]]):
    name_param: ClassVar[str | None] = "taskId"  # over HTTP, `Mcp-Name` leads to the right server
    method: Literal["tasks/get"] = "tasks/get"
    params: _TaskParams


class _UpdateTask(Request[_UpdateParams, Literal["tasks/update"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/update"] = "tasks/update"
    params: _UpdateParams


class _CancelTask(Request[_TaskParams, Literal["tasks/cancel"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: _TaskParams


_STATE: TypeAdapter[_TaskState] = TypeAdapter(_TaskState)
_ANY_RESULT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_RESULT: TypeAdapter[CallToolResult] = TypeAdapter(CallToolResult)
_QUESTIONS: TypeAdapter[InputRequiredResult] = TypeAdapter(InputRequiredResult)


class Tasks:
    """Polls the tasks of one server: the `Poller` of its tools.

    Args:
        server: The name of the server's toolset.
        address: The server's address, where it has one: tasks are polled there alone.
        limits: How much of a result is passed on.
        questions: Answers what tasks ask.
        send: Runs a function with the SDK's client.
        on_answer: Called with each call and its whole result, before that is made an output.
    """

    def __init__(
        self,
        server: str,
        address: str | None,
        limits: Limits,
        questions: Questions,
        send: Send,
        on_answer: AnswerHandler | None = None,
    ) -> None:
        self._server = server
        self._address = address
        self._limits = limits
        self._questions = questions
        self._send = send
        self._on_answer = on_answer
        # The questions that a handler has answered, each with its task: each is answered once.
        self._answered: set[tuple[str, str]] = set()

    def promise(self, task: TaskResult) -> Later:
        """The promise of a call that became a task; given up when the server may forget it."""
        handle = {
            "address": self._address,
            "task": task.task_id,
            "ttlMs": task.ttl_ms,
            "pollIntervalMs": task.poll_interval_ms,
        }
        until: datetime | None = None
        if task.ttl_ms is not None and 0 <= task.ttl_ms < 1e14:
            until = datetime.now(timezone.utc) + timedelta(milliseconds=task.ttl_ms)
        return Later(handle=handle, until=until)

    def interval(self, handle: Any) -> float:
        """See `Poller.interval`."""
        return _seconds(handle.get("pollIntervalMs"))

    async def poll(
        self, handle: Any, answers: Mapping[str, Any] | None = None, *, holds: bool = False
    ) -> Polled:
        """See `Poller.poll`; raises as `poll_call`."""
        return await self.poll_call(None, handle, answers, holds=holds)

    async def poll_call(
        self,
        call: ToolMetadata | None,
        handle: Any,
        answers: Mapping[str, Any] | None = None,
        *,
        holds: bool = False,
    ) -> Polled:
        """As `poll`, for a call that is known.

        Raises:
            ToolError: The task is one of another address.
            McpConnectionError: The server can't be reached.
        """
        if handle["address"] != self._address:
            raise ToolError(f"the task is one of another address than {self._server} has now")
        task_id: str = handle["task"]
        if answers:
            await self._update(task_id, answers)
        try:
            state: _TaskState = await self._request(_GetTask(params=_params(task_id)), _STATE)
        except MCPError as error:
            if error.code != _NOT_FOUND:
                raise
            _log.warning("%s doesn't know the task %.100r any more", self._server, task_id)
            return Polled("lost")
        if state.status == "completed":
            return await self._read_result(state, call)
        return await self._read(state, handle, holds=holds)

    async def result_of(self, call: OpenCall) -> ToolResult | None:
        """See `McpTools.poll`."""
        handle = call.handle
        if (
            not isinstance(handle, dict)
            or "task" not in handle
            or "address" not in handle
            or handle["address"] != self._address
        ):
            raise ValueError(f"the call {call.call_id!r:.100} is no task of {self._server}")
        polled = await self.poll_call(call.promised.metadata, handle)
        if polled.state == "lost":
            return call.fail(ToolError(_LOST))
        if polled.state != "done":
            return None
        return call.complete(polled.output) if polled.error is None else call.fail(polled.error)

    async def cancel(self, handle: Any) -> None:
        """See `Poller.cancel`; the server decides whether it stops."""
        try:
            request = _CancelTask(params=_params(handle["task"]))
            await self._request(request, _ANY_RESULT)
        except Exception as error:
            _log.warning("%s wasn't told to cancel a task: %s", self._server, error)

    async def _request(self, request: Any, result: TypeAdapter[Any]) -> Any:
        async def send(client: Client) -> Any:
            return await client.session.send_request(request, result)

        return await self._send(send)

    async def _update(self, task_id: str, answers: Mapping[str, Any]) -> None:
        given = json_values.clean(answers)  # half a character would end the connection
        params = _UpdateParams.model_validate({"taskId": task_id, "inputResponses": given})
        try:
            await self._request(_UpdateTask(params=params), _ANY_RESULT)
        except MCPError as error:
            # Whether it is the task that isn't known, or an answer that isn't taken, a poll tells.
            if error.code != _NOT_FOUND:
                raise
            _log.warning("%s doesn't take answers to a task: %s", self._server, error.message)

    async def _read(self, state: _TaskState, handle: Any, *, holds: bool) -> Polled:
        wait = _seconds(state.poll_interval_ms or handle.get("pollIntervalMs"))
        if state.status in ("failed", "cancelled"):
            return Polled("done", error=self._failure(state))
        if state.status == "input_required":
            return await self._answer(state, handle, wait, holds=holds)
        return Polled("running", wait)

    async def _read_result(self, state: _TaskState, call: ToolMetadata | None) -> Polled:
        try:
            result = _RESULT.validate_python(state.result)
        except ValidationError:
            text = "The task was completed, but the server's result can't be read."
            return Polled("done", error=ToolError(text))
        try:
            if self._on_answer is not None:
                await hand_on(self._on_answer, call, result)
            return Polled("done", output=read_result(result, self._limits))
        except Exception as error:  # the handler's too, as in a call that isn't a task
            return Polled("done", error=error)

    def _failure(self, state: _TaskState) -> ToolError:
        message = (state.error or {}).get("message") or state.status_message
        text = "The task was cancelled." if state.status == "cancelled" else "The task failed."
        if isinstance(message, str) and message.strip():
            text = f"{text} {message}"
        return ToolError(cut(text, self._limits.max_chars))

    async def _answer(self, state: _TaskState, handle: Any, wait: float, *, holds: bool) -> Polled:
        """What a task asks: for a person, or answered in this process."""
        requests = {
            key: request
            for key, request in (state.input_requests or {}).items()
            if (state.task_id, key) not in self._answered
        }
        if not requests:
            return Polled("running", wait)
        try:
            asked = _QUESTIONS.validate_python(
                {"resultType": "input_required", "inputRequests": requests}
            )
        except ValidationError:
            _log.warning("%s asks something that can't be read", self._server)
            return Polled("running", wait)
        waits = holds and self._questions.holds
        collected = await self._questions.collect(
            asked.input_requests or {}, self._send, holds=waits
        )
        if collected is None:
            # Nobody here can answer it, so it would wait for ever.
            await self.cancel(handle)
            return Polled("lost")
        answers, held = collected
        if answers:
            await self._update(state.task_id, dump_answers(answers))
            self._answered.update([(state.task_id, key) for key in answers])
        if not held:
            return Polled("running", wait)
        return Polled("asked", wait, asked=Asked(self._server, held, {}))


def _params(task_id: str) -> _TaskParams:
    return _TaskParams.model_validate({"taskId": task_id})


def _seconds(milliseconds: Any) -> float:
    """Seconds between two polls."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return _SECONDS
    if not math.isfinite(milliseconds):
        return _SECONDS
    return min(max(milliseconds / 1000, _SHORTEST), _LONGEST)
