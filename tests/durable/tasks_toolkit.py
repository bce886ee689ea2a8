"""An MCP server of the SDK that makes tasks of calls, as the extension of 2026-07-28 says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, Literal

from mcp import MCPError
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp.types import RequestParams, Result

from lutumpy.mcp import McpTools

EXTENSION = "io.modelcontextprotocol/tasks"


class TaskParams(RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class Made(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None


class State(Result):
    result_type: Literal["complete"] = "complete"
    task_id: str
    status: str
    created_at: str
    last_updated_at: str
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None
    status_message: str | None = None
    input_requests: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Acknowledged(Result):
    result_type: Literal["complete"] = "complete"


def form(message: str = "Who?") -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}},
        "required": ["name"],
    }
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def completed(text: str, *, is_error: bool = False) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return {"status": "completed", "result": result}


class TaskExtension(Extension):
    """Makes a task of every call; what a poll finds is the next of `states`, the last one stays."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = [completed("rendered")]
        self.ttl_ms: int | None = None
        self.interval_ms: int | None = 10
        self.known: set[str] = set()
        self.sent: list[tuple[str, Any]] = []
        self.before_answer: Any = None

    def methods(self) -> Sequence[MethodBinding]:
        return [
            MethodBinding("tasks/get", TaskParams, self._get),
            MethodBinding("tasks/update", UpdateParams, self._update),
            MethodBinding("tasks/cancel", TaskParams, self._cancel),
        ]

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
        self.sent.append(("tools/call", params.arguments))
        task_id = f"task {len(self.known) + 1}"
        self.known.add(task_id)
        if self.before_answer is not None:
            await self.before_answer()
        now = datetime.now(timezone.utc).isoformat()
        return Made(
            task_id=task_id,
            status="working",
            created_at=now,
            last_updated_at=now,
            ttl_ms=self.ttl_ms,
            poll_interval_ms=self.interval_ms,
        )

    def _check(self, task_id: str) -> None:
        if task_id not in self.known:
            raise MCPError(-32602, "Failed to retrieve task: Task not found")

    async def _get(self, ctx: Any, params: TaskParams) -> State:
        self.sent.append(("tasks/get", params.task_id))
        self._check(params.task_id)
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        now = datetime.now(timezone.utc).isoformat()
        return State(
            task_id=params.task_id,
            created_at=now,
            last_updated_at=now,
            ttl_ms=self.ttl_ms,
            poll_interval_ms=self.interval_ms,
            **{"status": "working", **_snake(state)},
        )

    async def _update(self, ctx: Any, params: UpdateParams) -> Acknowledged:
        self.sent.append(("tasks/update", params.input_responses))
        self._check(params.task_id)
        return Acknowledged()

    async def _cancel(self, ctx: Any, params: TaskParams) -> Acknowledged:
        self.sent.append(("tasks/cancel", params.task_id))
        self._check(params.task_id)
        return Acknowledged()

    def count(self, method: str) -> int:
        return len([name for name, _ in self.sent if name == method])


def _snake(state: dict[str, Any]) -> dict[str, Any]:
    names = {"inputRequests": "input_requests", "statusMessage": "status_message"}
    return {names.get(key, key): value for key, value in state.items()}


class Farm:
    """A server with one tool, whose calls become tasks."""

    def __init__(self, *states: dict[str, Any], **options: Any) -> None:
        self.tasks = TaskExtension()
        if states:
            self.tasks.states = list(states)
        for name, value in options.items():
            setattr(self.tasks, name, value)
        self.server = MCPServer("farm", extensions=[self.tasks])

        @self.server.tool()
        async def render(scene: str) -> str:
            """Render a scene."""
            return scene

    def tools(self, **options: Any) -> McpTools:
        return McpTools(self.server, **{"tasks": True, **options})
