"""Calls whose results come later, in a loop in memory (LR13)."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import pytest

from lutumpy import Later, NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.loops import run_tools, run_tools_sync
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel

APIS = ["openai_chat", "anthropic_messages", "openai_responses"]
BEGUN: list[str] = []


@tool_fn(late=True, effect="once")
async def render(scene: str, times: int = 1) -> str:
    """Render a scene."""
    BEGUN.append(scene)
    raise Later("an hour")


@tool_fn(late=True, effect="read")
async def watch(scene: str) -> str:
    """Watch a scene."""
    BEGUN.append(f"watch {scene}")
    raise Later("an hour")


class Studio(Toolset):
    renders = tool(render)
    watches = tool(watch)


@pytest.fixture(autouse=True)
def nothing_begun() -> None:
    BEGUN.clear()


def asked() -> Session:
    session = Session()
    session.push_user("Render the beach.")
    return session


def calls(*each: Call) -> Reply:
    return Reply(calls=each)


def told(session: Session) -> list[tuple[str, str]]:
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return [(result.status, result.text) for item in items for result in item.results]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("loaded", [False, True])
async def test_an_equal_call_of_an_open_once_call_is_rejected_LR13(
    api: Any, sync: bool, loaded: bool
) -> None:
    session = asked()

    async def run(*script: Reply) -> Any:
        llm = ScriptedModel([*script], api=api)
        if not sync:
            return await run_tools(session, llm, tools=Studio)
        return await anyio.to_thread.run_sync(lambda: run_tools_sync(session, llm, tools=Studio))

    first = Call("render", {"scene": "beach"}, id="c1")
    again = Call("render", '{ "scene" : "beach" }', id="c2")
    other = Call("render", {"scene": "wood"}, id="c3")
    seen = [Call("watch", {"scene": "beach"}, id=f"w{number}") for number in range(2)]
    # Nothing but an open call is left to answer, so the loop stops until the user says something.
    assert (await run(calls(first))).stopped_by == "open"
    if loaded:
        session = Session.load(session.dump())
    session.push_user("And the wood, and watch the beach twice.")
    done = await run(calls(again, other, *seen), Reply(text="They come."))
    assert done.stopped_by == "open"
    assert BEGUN == ["beach", "wood", "watch beach", "watch beach"]
    statuses = [status for status, _ in told(session)]
    assert statuses == ["promised", "rejected", "promised", "promised", "promised"]
    assert "An equal call (c1) is still running" in told(session)[1][1]
    assert [call.call_id for call in session.open_calls] == ["c1", "c3", "w0", "w1"]

    # What came isn't open any more: an equal call is a new one.
    session.deliver([call.complete("film") for call in session.open_calls])
    await run(calls(Call("render", {"scene": "beach"}, id="c4")), Reply(text="Again."))
    assert BEGUN[4:] == ["beach"]


async def test_a_loop_of_ones_own_gives_the_executor_the_open_calls_LR13() -> None:
    session, executor = asked(), ToolExecutor()
    outcomes: list[list[str]] = []
    for number in range(2):
        llm = ScriptedModel([calls(Call("render", {"scene": "beach"}, id=f"c{number}"))])
        outcome = await session.text_turn(llm, tools=Studio).collect()
        assert isinstance(outcome, NeedsTools)
        results = await executor.run(
            outcome.round.calls, Dispatcher(Studio), open_calls=session.open_calls
        )
        outcomes.append([result.outcome for result in results])
        outcome.round.commit(session, results)
        session.push_user("Once more.")
    assert outcomes == [["promised"], ["rejected"]]
    assert BEGUN == ["beach"]
