"""Loops: everything here is accepted by mypy --strict and pyright. Nothing of it is run."""

from typing import Any, Literal

from pydantic import BaseModel
from typing_extensions import assert_never, assert_type

from lutumpy import (
    ApprovalRequest,
    Reject,
    RunNormally,
    Session,
    TextDelta,
    ToolAvailability,
    ToolCall,
    ToolCallReady,
    ToolDecision,
    ToolFinder,
    ToolInput,
    ToolRequirement,
    ToolResult,
    Toolset,
    TurnResult,
    Usage,
    tool,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import (
    LoopEnded,
    LoopEvent,
    LoopResult,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
    UncommittedRoundError,
    run_tools,
    run_tools_sync,
)
from lutumpy.streaming import StreamEvent


class Text(BaseModel):
    text: str


@tool_input(name="read")
class Read(ToolInput[Text]):
    path: str


@tool_input(name="find")
class Find(ToolInput[list[str]]):
    words: str


class Open(Toolset):
    read = tool(Read)
    find = tool(Find)


class Closed(Toolset[ToolCall[Read, Text] | ToolCall[Find, list[str]]]):
    read = tool(Read)
    find = tool(Find)


class Other(Toolset):
    read = tool(Read)


ClosedCall = ToolCall[Read, Text] | ToolCall[Find, list[str]]

open_dispatch = Dispatcher(Open)
closed_dispatch = Dispatcher(Closed)


def any_policy(call: BaseToolCall) -> ToolDecision:
    return RunNormally(call.input)


def typed_policy(call: ClosedCall) -> ToolDecision:
    if Closed.read.matches(call):
        return RunNormally(call.input) if call.input.path else Reject("no path")
    if Closed.find.matches(call):
        return RunNormally(call.input)
    assert_never(call)


async def waiting_policy(call: BaseToolCall) -> ToolDecision:
    return RunNormally(call.input)


def progress(event: LoopEvent) -> None:
    match event:
        case RequestStarted(round=number, usage=usage):
            assert_type((number, usage), tuple[int, Usage])
        case RoundDecoded(calls=calls):
            assert_type(calls, tuple[BaseToolCall, ...])
        case RoundPlanned(pending=pending):
            assert_type(pending, tuple[BaseToolCall, ...])
        case RoundExecuted(results=results):
            assert_type(results, tuple[ToolResult, ...])
        case RoundCommitted():
            pass
        case LoopEnded(result=result):
            assert_type(result, LoopResult[Any])
        case _:
            assert_never(event)


async def typed_progress(event: LoopEvent[ClosedCall]) -> None:
    if isinstance(event, RoundDecoded):
        for call in event.calls:
            assert_type(call, ToolCall[Read, Text] | ToolCall[Find, list[str]])


def typed_events(event: StreamEvent[ClosedCall]) -> None:
    if isinstance(event, TextDelta):
        assert_type(event.text, str)
    if isinstance(event, ToolCallReady) and Closed.read.matches(event.call):
        assert_type(event.call.input, Read)


async def loops(session: Session, llm: OpenAIChat) -> None:
    done = await run_tools(session, llm, tools=Open, dispatch=open_dispatch)
    assert_type(done, LoopResult)
    assert_type(done.text, str)
    assert_type(done.rounds, int)
    assert_type(done.usage, Usage)
    assert_type(done.result, TurnResult | None)
    match done.stopped_by:
        case (
            "answer"
            | "no_value"
            | "round_limit"
            | "refusal"
            | "length"
            | "repeat"
            | "budget"
            | "paused"
            | "open"
            | "unknown"
        ):
            pass
        case _:
            assert_never(done.stopped_by)
    typed = await run_tools(session, llm, tools=Open, output=Text, value_retries=1)
    assert_type(typed, LoopResult[Text])
    assert_type(typed.value, Text | None)
    assert_type(typed.value_error, str | None)
    assert_type(run_tools_sync(session, llm, tools=Open, output=list[int]).value, list[int] | None)
    # A special form is no class; of its values a checker knows nothing.
    one_of: Any = Literal["a", "b"]
    assert_type(run_tools_sync(session, llm, tools=Open, output=one_of).value, Any | None)
    await run_tools(
        session,
        llm,
        tools=Open,
        dispatch=open_dispatch,
        hooks=Open.hooks(),
        executor=ToolExecutor(max_concurrency=2),
        max_rounds=3,
        max_repeats=None,
        token_budget=10_000,
        available=ToolAvailability.only(Open.read),
        require=ToolRequirement.specific(Open.read),
        describe={Open.read: "Read."},
        provider={Open.read: {"openai_responses": {"defer_loading": True}}},
        parallel=False,
        temperature=0.0,
        max_output_tokens=100,
        extra={"seed": 1},
        on_progress=progress,
        on_event=print,
    )
    await run_tools(
        session, llm, tools=Open, dispatch=open_dispatch, hooks=any_policy, on_progress=print
    )
    finder = ToolFinder(Open, always=[Open.read])
    assert_type(finder, ToolFinder[Open])
    assert_type(finder.available(session), ToolAvailability[Open])
    await run_tools(
        session,
        llm,
        tools=finder.toolset,
        dispatch=Dispatcher(finder.toolset),
        available=finder.available,
    )
    await run_tools(session, llm, tools=Closed, dispatch=closed_dispatch, hooks=waiting_policy)
    await run_tools(
        session,
        llm,
        tools=Closed,
        dispatch=closed_dispatch,
        hooks=typed_policy,
        on_progress=typed_progress,
        on_event=typed_events,
    )


def loops_sync(session: Session, llm: OpenAIChat) -> None:
    try:
        done = run_tools_sync(
            session,
            llm,
            tools=Closed,
            dispatch=closed_dispatch,
            hooks=typed_policy,
            on_event=typed_events,
        )
    except UncommittedRoundError as error:
        assert_type(error.results, tuple[ToolResult, ...])
    else:
        assert_type(done, LoopResult)
    seen: list[Any] = []
    run_tools_sync(
        session,
        llm,
        tools=Open,
        dispatch=open_dispatch,
        hooks=Open.hooks(),
        on_progress=seen.append,
    )


# --- Who approves calls that the provider makes itself.


def trusted(request: ApprovalRequest) -> bool:
    return request.server_label == "wiki"


async def ask(request: ApprovalRequest) -> bool:
    return False


async def approved(session: Session, llm: OpenAIChat) -> None:
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, approve=trusted)
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, approve=ask)
    run_tools_sync(session, llm, tools=Open, dispatch=open_dispatch, approve=trusted)
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, prefix_stable=True)
