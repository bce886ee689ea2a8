"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from accept_loops import (
    Closed,
    Open,
    Other,
    any_policy,
    ask,
    closed_dispatch,
    open_dispatch,
    waiting_policy,
)

from lutumpy import Session, ToolAvailability, ToolFinder, ToolRequirement
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import LoopEvent, run_tools, run_tools_sync


def no_policy(call: BaseToolCall) -> bool:
    return True


def no_progress(event: str) -> None: ...


async def late(event: LoopEvent) -> None: ...


others: ToolAvailability[Other] = ToolAvailability.only(Other.read)
one: ToolRequirement[Closed] = ToolRequirement.specific(Closed.read)


async def wrong(session: Session, llm: OpenAIChat) -> None:
    await run_tools(session, llm, dispatch=open_dispatch)  # refused
    await run_tools(session, llm, tools=Open, dispatch=closed_dispatch)  # refused
    await run_tools(session, llm, tools=Open, dispatch={})  # refused
    await run_tools(
        session,
        llm,
        tools=Open,
        dispatch=open_dispatch,
        hooks=Other.hooks(),  # refused
    )
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, hooks=no_policy)  # refused
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, available=others)  # refused
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, require=one)  # refused
    found = ToolFinder(Other).available
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, available=found)  # refused
    words = {Other.read: ""}
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, describe=words)  # refused
    told = {Other.read: {"openai_chat": {"x": 1}}}
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, provider=told)  # refused
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, max_rounds="3")  # refused
    await run_tools(session, llm, tools=Open, dispatch=open_dispatch, max_rounds=None)  # refused
    await run_tools(
        session,
        llm,
        tools=Open,
        dispatch=open_dispatch,
        on_progress=no_progress,  # refused
    )
    await run_tools(
        session,
        llm,
        tools=Open,
        dispatch=open_dispatch,
        on_event=no_progress,  # refused
    )
    await run_tools(session, "gpt", tools=Open, dispatch=open_dispatch)  # refused
    done = await run_tools(session, llm, tools=Open, dispatch=open_dispatch, hooks=any_policy)
    done.rounds = 3  # refused
    done.result.text  # refused


def wrong_sync(session: Session, llm: OpenAIChat) -> None:
    run_tools_sync(
        session,
        llm,
        tools=Open,
        dispatch=open_dispatch,
        hooks=waiting_policy,  # refused
    )
    run_tools_sync(session, llm, tools=Open, dispatch=open_dispatch, on_progress=late)  # refused
    run_tools_sync(session, llm, tools=Open, dispatch=closed_dispatch)  # refused


def unasked(session: Session, llm: OpenAIChat) -> None:
    run_tools_sync(session, llm, tools=Open, dispatch=open_dispatch, approve=ask)  # refused
    run_tools_sync(session, llm, tools=Open, dispatch=open_dispatch, approve=True)  # refused
