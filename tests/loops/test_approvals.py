"""Calls that the provider makes itself, in a loop: nobody approves one by mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from loop_toolkit import Desk, Journal, Runner, asked, dispatcher, look
from openai import AsyncOpenAI, OpenAI

from lutumpy import (
    ApprovalRequest,
    Complete,
    HookError,
    Reject,
    RunNormally,
    Session,
)
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.execution import ToolExecutor
from lutumpy.loops import LoopResult, RoundDecoded, RoundPlanned, run_tools, run_tools_sync
from lutumpy.testing import Call, Reply, ScriptedModel, serve

API = "openai_responses"
WIKI = Call("ask", {"q": "tools"}, id="mcpr_1", server_label="wiki")
SCRIPT = [Reply(calls=[WIKI, look("cat")]), Reply("Done.")]


def model() -> ScriptedModel:
    return ScriptedModel(SCRIPT, api=API)


def approvals(session: Session) -> list[tuple[bool, str | None]]:
    asked_again = session.fork()
    asked_again.push_user("And?")
    entries: list[Any] = OpenAIResponses.request(asked_again.transcript)["input"]
    return [
        (item["approve"], item.get("reason"))
        for item in entries
        if item.get("type") == "mcp_approval_response"
    ]


def test_without_anybody_to_ask_a_request_is_rejected(run: Runner) -> None:
    session, journal = asked(), Journal()
    done = run(session, model(), tools=Desk, dispatch=dispatcher(journal))
    assert (done.text, done.stopped_by, len(journal.ran)) == ("Done.", "answer", 1)
    assert approvals(session) == [(False, "Tool call rejected: Nobody approved this call.")]


@pytest.mark.parametrize("answer", [True, False])
def test_approve_is_asked_about_each_request_that_no_hook_has_decided(
    run: Runner, answer: bool
) -> None:
    session, seen = asked(), []

    def approve(request: ApprovalRequest) -> bool:
        seen.append((request.server_label, request.arguments))
        return answer

    run(session, model(), tools=Desk, dispatch=dispatcher(Journal()), approve=approve)
    assert seen == [("wiki", {"q": "tools"})]
    assert [approved for approved, _ in approvals(session)] == [answer]


@pytest.mark.parametrize("decision", [Complete(True), Reject("no")])
def test_what_hooks_decide_is_not_asked_again(run: Runner, decision: Any) -> None:
    def policy(call: Any) -> Any:
        return decision if isinstance(call, ApprovalRequest) else RunNormally()

    def approve(request: ApprovalRequest) -> bool:
        raise AssertionError

    session = asked()
    options = {"hooks": policy, "approve": approve}
    run(session, model(), tools=Desk, dispatch=dispatcher(Journal()), **options)
    assert [approved for approved, _ in approvals(session)] == [decision == Complete(True)]


@pytest.mark.parametrize("answer", ["yes", 1, None])
def test_what_only_counts_as_true_is_an_error_before_anything_runs(
    run: Runner, answer: Any
) -> None:
    session, journal = asked(), Journal()
    with pytest.raises(TypeError, match="approve= gives True or False"):
        run(
            session,
            model(),
            tools=Desk,
            dispatch=dispatcher(journal),
            approve=lambda request: answer,
        )
    assert (journal.ran, approvals(session)) == ([], [])
    session.push_user("Nothing is open.")
    OpenAIResponses.request(session.transcript)


def test_an_error_of_approve_discards_the_round_and_nothing_has_run(run: Runner) -> None:
    def approve(request: ApprovalRequest) -> bool:
        raise LookupError("nobody there")

    session, journal = asked(), Journal()
    with pytest.raises(LookupError, match="nobody there"):
        run(session, model(), tools=Desk, dispatch=dispatcher(journal), approve=approve)
    assert (journal.ran, len(session.transcript)) == ([], 1)
    OpenAIResponses.request(session.transcript)


def test_the_progress_shows_requests(run: Runner) -> None:
    seen: list[Any] = []
    run(asked(), model(), tools=Desk, dispatch=dispatcher(Journal()), on_progress=seen.append)
    shown = [e.approvals for e in seen if isinstance(e, (RoundDecoded, RoundPlanned))]
    assert [[request.metadata.id for request in each] for each in shown] == [["mcpr_1"]] * 2


def test_the_same_request_rejected_again_and_again_stops_the_loop(run: Runner) -> None:
    llm = ScriptedModel(
        [
            Reply(calls=[Call("ask", {"q": 1}, id=f"mcpr_{n}", server_label="wiki")])
            for n in range(5)
        ],
        api=API,
    )
    done = run(asked(), llm, tools=Desk, dispatch=dispatcher(Journal()))
    assert (done.stopped_by, done.rounds) == ("repeat", 3)


def test_the_sync_loop_takes_no_async_approve() -> None:
    async def approve(request: ApprovalRequest) -> bool:
        return True

    options: dict[str, Any] = {"tools": Desk, "dispatch": dispatcher(Journal())}
    with pytest.raises(TypeError, match="approve= is async"):
        run_tools_sync(asked(), model(), approve=approve, **options)
    with pytest.raises(TypeError, match="approve= takes a callable"):
        run_tools_sync(asked(), model(), approve="yes", **options)


@pytest.mark.parametrize("form", ["approve", "hooks"])
def test_the_async_loop_waits_for_a_person(form: str) -> None:
    async def approve(request: ApprovalRequest) -> bool:
        await anyio.lowlevel.checkpoint()
        return True

    async def policy(call: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return Complete(True) if isinstance(call, ApprovalRequest) else RunNormally()

    session = asked()
    more: dict[str, Any] = {"approve": approve} if form == "approve" else {"hooks": policy}

    async def main() -> LoopResult:
        return await run_tools(session, model(), tools=Desk, dispatch=dispatcher(Journal()), **more)

    assert anyio.run(main).stopped_by == "answer"
    assert approvals(session) == [(True, None)]


def test_the_executor_runs_no_request_and_rejects_it() -> None:
    session, journal = asked(), Journal()
    outcome: Any = session.text_turn(model(), tools=Desk).collect_sync()
    round = outcome.round
    executor = ToolExecutor(deduplicate=True)
    done = executor.run_sync([*round.approvals, *round.calls], dispatcher(journal))
    assert [(result.status, result.attempts) for result in done] == [("rejected", 0), ("ok", 1)]
    assert executor.report["mcpr_1"].outcome == "rejected"
    round.commit(session, done)
    assert approvals(session) == [(False, "Tool call rejected: Nobody approved this call.")]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_through_the_sdk_against_a_server_that_wants_every_request_answered(
    kind: str, streamed: bool
) -> None:
    session = asked()
    on_event: Any = (lambda event: None) if streamed else None
    options: dict[str, Any] = {
        "tools": Desk,
        "dispatch": dispatcher(Journal()),
        "approve": lambda request: request.server_label == "wiki",
        "on_event": on_event,
    }
    with serve(SCRIPT) as server:
        client: dict[str, Any] = {
            "base_url": server.openai_base_url,
            "api_key": "any",
            "max_retries": 0,
        }
        if kind == "sync":
            with OpenAI(**client) as plain:
                done = run_tools_sync(session, OpenAIResponses("m", plain), **options)
        else:

            async def main() -> LoopResult:
                async with AsyncOpenAI(**client) as waiting:
                    return await run_tools(session, OpenAIResponses("m", waiting), **options)

            done = anyio.run(main)
        statuses = [request.status for request in server.requests]
    assert (done.text, statuses) == ("Done.", [200, 200])
    assert approvals(session) == [(True, None)]


def test_the_server_refuses_what_was_not_answered_also_where_it_holds_the_request() -> None:
    with (
        serve(SCRIPT) as server,
        OpenAI(base_url=server.openai_base_url, api_key="any", max_retries=0) as client,
    ):
        first = client.responses.create(model="m", input="Go.")
        refused: Callable[..., Any] = client.responses.create
        answered = [
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
            {"type": "function_call_output", "call_id": first.output[1].call_id, "output": "x"},
        ]
        with pytest.raises(Exception, match="do not have an approval: mcpr_1"):
            refused(model="m", previous_response_id=first.id, input=answered[1:])
        second = refused(model="m", previous_response_id=first.id, input=answered)
        assert second.output_text == "Done."


def test_a_policy_that_knows_no_requests_approves_none(run: Runner) -> None:
    session, journal = asked(), Journal()

    def policy(call: Any) -> Any:
        if Desk.look_up.matches(call):
            return RunNormally()
        raise ValueError(f"what is {call.metadata.name}?")

    with pytest.raises(HookError, match="what is ask"):
        run(session, model(), tools=Desk, dispatch=dispatcher(journal), hooks=policy)
    assert (journal.ran, len(session.transcript)) == ([], 1)
