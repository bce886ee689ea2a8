"""The toolset that the tests of execution share: one tool for each effect, chosen handlers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lutumpy import (
    NeedsTools,
    Session,
    ToolCall,
    ToolInput,
    ToolMetadata,
    ToolRound,
    Toolset,
    nested,
    tool,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ExecutionResult
from lutumpy.testing import Call, Reply, render


@tool_input(name="look", effect="read", timeout=10.0, max_retries=3)
class Look(ToolInput[int]):
    """Look something up."""

    n: int = 0
    more: Any = None


@tool_input(name="save", idempotent=True, timeout=10.0, max_retries=2)
class Save(ToolInput[int]):
    """Save something."""

    n: int = 0


@tool_input(name="send", timeout=10.0, max_retries=5)
class Send(ToolInput[int]):
    """Send something."""

    n: int = 0


@tool_input(name="wait", effect="read", timeout=math.inf)
class Wait(ToolInput[int]):
    """Takes as long as it takes."""

    n: int = 0


@tool_input(name="send_slowly", timeout=math.inf)
class SendSlowly(ToolInput[int]):
    """Sends, and takes as long as it takes."""

    n: int = 0


class SlowTools(Toolset):
    wait = tool(Wait)
    send_slowly = tool(SendSlowly)


class App(Toolset):
    look = tool(Look)
    save = tool(Save)
    send = tool(Send)
    slow = nested(SlowTools)


class Other(Toolset):
    look = tool(Look)


def answer(input: Any) -> Any:
    return input.n


def dispatcher(context: Any = None, **handlers: Callable[..., Any]) -> Dispatcher[App]:
    """A dispatcher with these handlers by tool name; other tools answer `n`."""
    dispatch = Dispatcher(App, context=context)
    for selector in App.selectors():
        dispatch.on(selector)(handlers.pop(selector.name, _answer))
    assert not handlers
    return dispatch


async def _answer(input: Any) -> Any:
    return input.n


def call(name: str, n: Any = 0, *, id: str = "call_1", **more: Any) -> ToolCall[Any, Any]:
    """One call, without a round."""
    parsed: Any = App.parse(ToolMetadata(id, name, json.dumps({"n": n, **more})))
    return parsed  # type: ignore[no-any-return]


def calls(*names: str) -> list[ToolCall[Any, Any]]:
    """Calls of these tools, numbered from 0."""
    return [call(name, k, id=f"call_{k}") for k, name in enumerate(names)]


def start(*asked: Call, session: Session | None = None) -> tuple[Session, ToolRound]:
    """A session with one answer that makes these calls, and its round."""
    if session is None:
        session = Session()
        session.push_user("go")
    turn = OpenAIChat.response(render(Reply(calls=asked), "openai_chat", number=1, model="m"))
    outcome = App.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def asked(name: str, arguments: Mapping[str, Any] | str, id: str = "call_1") -> Call:
    return Call(name, arguments if isinstance(arguments, str) else dict(arguments), id=id)


def outcomes(results: Sequence[ExecutionResult]) -> list[str]:
    return [result.outcome for result in results]


def text(result: ExecutionResult) -> str:
    assert isinstance(result.content, str)
    return result.content
