"""The loop through the real SDK clients, against a server that refuses as the real APIs do."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest
from every_client import model_at, sync_model_at
from loop_toolkit import Desk, Journal, asked, call, calls, dispatcher, look, results

from lutumpy import AdapterError
from lutumpy.execution import ToolExecutor
from lutumpy.loops import LoopResult, run_tools, run_tools_sync
from lutumpy.testing import Failure, Reply, serve

SCRIPT = [
    calls(
        look("cat"),
        call("count", text=1),
        call("count", text="four"),
        call("nope"),
        reasoning="Four will do.",
    ),
    calls(look("unknown"), call("write", text="done"), text="Nearly."),
    Reply(text="Here you are.", usage=(30, 3)),
]


def skip_without_loop(api: str, backend: str) -> None:
    """google-genai asks asyncio for its loop, so its async client doesn't run under trio."""
    if (api, backend) == ("gemini_generate_content", "trio"):
        pytest.skip("google-genai needs asyncio")


def check(done: LoopResult, session: Any) -> None:
    assert (done.text, done.rounds, done.stopped_by) == ("Here you are.", 2, "answer")
    assert [status for status, _ in results(session)] == [
        "ok",
        "rejected",
        "ok",
        "rejected",
        "error",
        "ok",
    ]


# Streams of the SDKs leave async generators of their own unfinished, which trio warns of.
@pytest.mark.sweep
@pytest.mark.parametrize(
    ("backend", "streamed"), [("asyncio", False), ("asyncio", True), ("trio", False)]
)
def test_the_async_loop_through_the_sdk(api: str, streamed: bool, backend: str) -> None:
    skip_without_loop(api, backend)
    session, seen = asked(), []

    async def main() -> LoopResult:
        with serve(SCRIPT) as server:
            async with model_at(api, server.url) as llm:
                done = await run_tools(
                    session,
                    llm,
                    tools=Desk,
                    dispatch=dispatcher(),
                    on_event=seen.append if streamed else None,
                )
            assert [request.status for request in server.requests] == [200, 200, 200]
        return done

    check(anyio.run(main, backend=backend), session)
    assert bool(seen) is streamed


@pytest.mark.sweep
@pytest.mark.parametrize("streamed", [False, True])
def test_the_sync_loop_through_the_sdk(api: str, streamed: bool) -> None:
    session, seen = asked(), []
    with serve(SCRIPT) as server, sync_model_at(api, server.url) as llm:
        on_event = seen.append if streamed else None
        done = run_tools_sync(session, llm, tools=Desk, dispatch=dispatcher(), on_event=on_event)
        assert [request.status for request in server.requests] == [200, 200, 200]
    check(done, session)
    assert bool(seen) is streamed


def test_a_loop_that_was_cancelled_goes_on_with_the_real_api_E4(api: str, backend: str) -> None:
    skip_without_loop(api, backend)
    session, journal = asked(), Journal()
    stuck = calls(look("cat"), call("wait_for_ever"), reasoning="This will take a while.")

    async def main() -> LoopResult:
        with serve([stuck, Failure(500, "down"), Reply(text="Never mind.")]) as server:
            async with model_at(api, server.url) as llm:
                loop = partial(
                    run_tools,
                    session,
                    llm,
                    tools=Desk,
                    dispatch=dispatcher(journal),
                    executor=ToolExecutor(max_concurrency=1),
                )
                async with anyio.create_task_group() as group:
                    journal.during["wait_for_ever"] = group.cancel_scope.cancel
                    await loop()
                with pytest.raises(AdapterError):
                    await loop()
                done = await loop()
            assert [request.status for request in server.requests] == [200, 500, 200]
        return done

    done = anyio.run(main, backend=backend)
    assert (done.text, done.rounds) == ("Never mind.", 0)
    assert [status for status, _ in results(session)] == ["ok", "error"]
