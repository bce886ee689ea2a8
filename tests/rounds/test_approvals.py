"""Calls that the provider makes itself, if somebody approves them (C8): they are members of the
round beside its calls, and each is approved or rejected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toolkit import WeatherTools

from lutumpy import (
    AdapterError,
    ApprovalRequest,
    ApprovalRequested,
    CommitError,
    Complete,
    HandledTool,
    HookError,
    NeedsTools,
    NoTools,
    Reject,
    RejectedToolCall,
    RunNormally,
    Session,
    ToolMetadata,
    ToolResult,
    ToolRound,
    Toolset,
    Transcript,
    TranscriptError,
    hook_impl,
    nested,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.doctor import apply_repairs, propose_repairs
from lutumpy.hooks import BaseToolCall
from lutumpy.models import ToolResults
from lutumpy.page import render as render_page
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.testing import Call, Reply, ScriptedModel, render, render_stream

API = "openai_responses"
WIKI = Call("ask", {"q": "tools"}, id="mcpr_1", server_label="wiki")
# A tool of the server with the name of a tool of the toolset.
SAME_NAME = Call("weather", {"city": "Oslo"}, id="mcpr_2", server_label="wiki")
OWN = Call("weather", {"city": "Rome"}, id="call_1")


def read(*calls: Call, tools: Any = WeatherTools, **more: Any) -> tuple[Session, ToolRound[Any]]:
    session = Session()
    session.push_user("Look it up.")
    reply = render(Reply(calls=calls, **more), API, number=1, model="m")
    outcome = tools.offer().read(OpenAIResponses.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def sent(session: Session) -> list[Any]:
    body = OpenAIResponses.request(session.transcript)
    assert responses.check_request({"model": "m", **body}) == []
    entries: list[Any] = body["input"]
    return entries


def answers(session: Session) -> list[Any]:
    return [
        (item["approval_request_id"], item["approve"], item.get("reason"))
        for item in sent(session)
        if item.get("type") == "mcp_approval_response"
    ]


def rejected_by_the_library(session: Session) -> str:
    (answer,) = answers(session)
    assert answer[:2] == ("mcpr_1", False)
    reason: str = answer[2]
    return reason


# --- in the round --------------------------------------------------------------------------------


def test_a_request_is_in_approvals_with_all_that_is_known_and_not_among_the_calls() -> None:
    _, round = read(WIKI, OWN)
    (request,) = round.approvals
    assert [call.metadata.id for call in round.calls] == ["call_1"]
    assert (round.issues, round.continue_suggestion) == ((), None)
    assert request.metadata == ToolMetadata("mcpr_1", "ask", '{"q":"tools"}')
    assert (request.server_label, request.arguments) == ("wiki", {"q": "tools"})
    assert round.expect_one().metadata.id == "call_1"
    assert repr(request) == "<ApprovalRequest wiki ask mcpr_1>"
    round.discard()


def test_no_tool_of_the_toolset_matches_a_request_whatever_its_name() -> None:
    _, round = read(SAME_NAME)
    (request,) = round.approvals
    assert isinstance(request, BaseToolCall)
    assert not WeatherTools.weather.matches(request)
    assert not any(selector.matches(request) for selector in WeatherTools.selectors())
    round.discard()


def test_approving_and_rejecting_are_sent_in_the_order_of_the_calls_K2() -> None:
    session, round = read(WIKI, OWN, SAME_NAME)
    wiki, same = round.approvals
    (call,) = round.calls
    round.commit(session, [same.reject("not now"), call.complete("sun"), wiki.approve()])
    assert [item.get("type") for item in sent(session)[1:]] == [
        "mcp_approval_request",
        "function_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "function_call_output",
        "mcp_approval_response",
    ]
    assert answers(session) == [
        ("mcpr_1", True, None),
        ("mcpr_2", False, "Tool call rejected: not now"),
    ]


def test_what_was_asked_is_replayed_byte_for_byte_and_survives_a_dump_R1_R4() -> None:
    session, round = read(WIKI, SAME_NAME)
    wiki, same = round.approvals
    round.commit(session, [wiki.approve(), same.complete(False)])
    asked = render(Reply(calls=[WIKI, SAME_NAME]), API, number=1, model="m")["output"]
    assert sent(session)[1:3] == asked
    assert answers(session)[1][1:] == (False, "Tool call rejected: Nobody approved this call.")
    loaded = Session.load(session.dump())
    assert sent(loaded) == sent(session)


def test_other_apis_are_sent_a_call_and_what_was_decided_K7_R2() -> None:
    session, round = read(WIKI, SAME_NAME)
    wiki, same = round.approvals
    round.commit(session, [wiki.approve(), same.reject("no")])
    session.push_user("And?")
    body = OpenAIChat.request(session.transcript)
    assert chat.check_request({"model": "m", **body}) == []
    assert [m["content"] for m in body["messages"] if m["role"] == "tool"] == [
        "Approved: the provider makes this call itself.",
        "Tool call rejected: no",
    ]
    body = AnthropicMessages.request(session.transcript, max_output_tokens=9)
    assert anthropic.check_request({"model": "m", **body}) == []


def test_a_toolset_without_tools_gives_a_round_of_requests_alone() -> None:
    session, round = read(WIKI, tools=NoTools)
    assert (round.calls, len(round.approvals)) == ((), 1)
    round.commit(session, [round.approvals[0].approve()])
    assert answers(session) == [("mcpr_1", True, None)]


# --- what can't be approved ----------------------------------------------------------------------


def test_a_turn_without_tools_has_nobody_to_ask_and_rejects() -> None:
    session = Session()
    session.push_user("Look it up.")
    llm = ScriptedModel([Reply(calls=[WIKI])], api=API)
    session.text_turn(llm).collect_sync()
    assert "Nobody can approve calls in this turn" in rejected_by_the_library(session)


@pytest.mark.parametrize("arguments", ['{"q": "to', "[1]", '{"q": NaN}', "7"])
def test_arguments_that_nobody_can_judge_are_an_issue_and_rejected_C2(arguments: str) -> None:
    session, round = read(Call("ask", arguments, id="mcpr_1", server_label="wiki"))
    assert [issue.reason for issue in round.issues] == ["malformed_arguments"]
    round.commit(session, [])
    assert "not a JSON object" in rejected_by_the_library(session)


@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}"])
def test_no_arguments_are_an_empty_object_C4(arguments: str) -> None:
    _, round = read(Call("ask", arguments, id="mcpr_1", server_label="wiki"))
    assert round.approvals[0].arguments == {}
    round.discard()


@pytest.mark.parametrize("arguments", ["", '{"q": "to'])
def test_a_request_that_was_cut_off_is_never_approved_C2a(arguments: str) -> None:
    asked = Call("ask", arguments, id="mcpr_1", server_label="wiki")
    session, round = read(asked, finish="length")
    assert [issue.reason for issue in round.issues] == ["truncated"]
    round.commit(session, [])
    assert answers(session)[0][1] is False


def test_a_result_of_ones_own_for_such_an_issue_approves_nothing() -> None:
    session, round = read(Call("ask", "[1]", id="mcpr_1", server_label="wiki"))
    (issue,) = round.issues
    round.commit(session, [ToolResult(issue.metadata, "Please ask the user.")])
    assert answers(session) == [("mcpr_1", False, "Please ask the user.")]


def test_a_request_without_an_id_can_not_be_answered_and_leaves_the_turn() -> None:
    session, round = read(Call("ask", {}, id="mcpr_1", server_label="wiki"))
    round.discard()
    item = {"type": "mcp_approval_request", "name": "ask", "server_label": "w", "arguments": "{}"}
    turn = OpenAIResponses.response({"status": "completed", "output": [item]})
    outcome = WeatherTools.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.approvals == ()
    outcome.round.commit(session, [])
    assert len(sent(session)) == 1


# --- commit --------------------------------------------------------------------------------------


def kinds(round: ToolRound[Any], session: Session, results: list[Any]) -> list[tuple[str, str]]:
    with pytest.raises(CommitError) as refused:
        round.commit(session, results)
    return [(problem.kind, problem.call_id) for problem in refused.value.problems]


def test_each_request_needs_exactly_one_answer_K3() -> None:
    session, round = read(WIKI, OWN)
    (request,), (call,) = round.approvals, round.calls
    done = call.complete("sun")
    assert kinds(round, session, [done]) == [("missing_result", "mcpr_1")]
    both = [done, request.approve(), request.reject("no")]
    assert kinds(round, session, both) == [("duplicate_result", "mcpr_1")]
    with pytest.raises(CommitError, match=r"request\.approve\(\) or \.reject\(reason\)"):
        round.commit(session, [done])
    round.commit(session, [request.approve(), done])


@pytest.mark.parametrize(
    "make",
    [
        lambda request: ToolResult(request.metadata, "sure"),
        lambda request: ToolResult(request.metadata, ""),
        lambda request: request.complete("yes"),
        lambda request: request.complete(1),
        lambda request: request.handled("yes"),
        lambda request: request.handled(None),
    ],
)
def test_what_only_looks_like_an_approval_is_a_wrong_output_K3(
    make: Callable[[ApprovalRequest], Any],
) -> None:
    session, round = read(WIKI)
    (request,) = round.approvals
    assert kinds(round, session, [make(request)]) == [("wrong_output", "mcpr_1")]
    round.commit(session, [request.approve()])


@pytest.mark.parametrize("approved", [True, False])
def test_handled_and_rejected_forms_are_taken_as_they_are(approved: bool) -> None:
    session, round = read(WIKI)
    (request,) = round.approvals
    results: list[Any] = [request.handled(True)]
    if not approved:
        results = [RejectedToolCall(request.metadata, request, "no")]
    round.commit(session, results)
    assert answers(session)[0][1] is approved


def test_a_failure_is_a_rejection() -> None:
    session, round = read(WIKI)
    round.commit(session, [round.approvals[0].fail("the desk is closed")])
    assert answers(session) == [("mcpr_1", False, "the desk is closed")]


def test_the_arguments_of_a_request_can_not_be_edited() -> None:
    _, round = read(WIKI)
    (request,) = round.approvals
    with pytest.raises(TypeError, match="as the model wrote it"):
        request.edited(q="other")
    with pytest.raises(TypeError, match="as the model wrote it"):
        request.with_input(request.input)
    round.discard()


# --- hooks ---------------------------------------------------------------------------------------


class Asked:
    """Decides requests for approval, and notes all that it was asked."""

    def __init__(self, decision: Any = None) -> None:
        self.seen: list[str] = []
        self._decision = decision

    @hook_impl
    def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> Any:
        self.seen.append(metadata.id)
        if isinstance(call, ApprovalRequest) and self._decision is not None:
            return self._decision
        return RunNormally()


class Own:
    """Notes what the tool's own hook is asked."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @hook_impl
    def weather_hook(self, metadata: ToolMetadata, input: Any) -> Any:
        self.seen.append(metadata.id)
        return RunNormally()


def test_general_hooks_are_asked_in_call_order_and_a_tools_own_only_about_its_calls_H1() -> None:
    session, round = read(SAME_NAME, OWN, WIKI)
    general, own = Asked(), Own()
    plan = round.apply_hooks_sync(WeatherTools.hooks().with_hooks(general, own))
    assert general.seen == ["mcpr_2", "call_1", "mcpr_1"]
    assert own.seen == ["call_1"]
    assert [request.metadata.id for request in plan.approvals] == ["mcpr_2", "mcpr_1"]
    assert [call.metadata.id for call in plan.pending] == ["call_1"]
    done = [plan.pending[0].complete("sun"), *[r.approve() for r in plan.approvals]]
    plan.commit(session, done)
    assert [approved for _, approved, _ in answers(session)] == [True, True]


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        (Complete(True), (True, None)),
        (Complete(False), (False, "Tool call rejected: Nobody approved this call.")),
        (Reject("not that server"), (False, "Tool call rejected: not that server")),
        (Reject(""), (False, "Tool call rejected: not allowed")),
    ],
)
@pytest.mark.parametrize("form", ["registry", "async registry", "policy", "async policy", "apply"])
def test_hooks_and_policies_approve_and_reject_H3(decision: Any, answer: Any, form: str) -> None:
    async def wait(call: Any) -> Any:
        return decision

    session, round = read(WIKI)
    registry = WeatherTools.hooks().with_hooks(Asked(decision))
    if form == "registry":
        plan = round.apply_hooks_sync(registry)
    elif form == "async registry":
        plan = asyncio.run(round.apply_hooks(registry))
    elif form == "policy":
        plan = round.apply_hooks_sync(lambda call: decision)
    elif form == "async policy":
        plan = asyncio.run(round.apply_hooks(wait))
    else:
        (request,) = round.approvals
        decided: Any = registry.apply_sync(request)
        assert type(decided) is (HandledTool if answer[0] else RejectedToolCall)
        assert asyncio.run(registry.apply(request)) == decided or not answer[0]
        (reviewed,) = registry.review_sync([decided])
        round.commit(session, [reviewed])
        assert answers(session) == [("mcpr_1", *answer)]
        return
    assert (plan.approvals, plan.pending) == ((), ())
    assert (len(plan.handled), len(plan.rejected)) == ((1, 0) if answer[0] else (0, 1))
    plan.commit(session, [])
    assert answers(session) == [("mcpr_1", *answer)]


@pytest.mark.parametrize(
    "decision",
    [
        True,
        None,
        Complete(1),
        Complete("yes"),
        RunNormally("other"),
        RunNormally.edited(q="other"),
        Reject(7),  # type: ignore[arg-type]
    ],
)
def test_any_other_decision_is_an_error_and_nothing_is_approved_H4(decision: Any) -> None:
    session, round = read(WIKI)
    with pytest.raises(HookError, match=r"mcpr_1.*nothing was decided"):
        round.apply_hooks_sync(lambda call: decision)
    assert kinds(round, session, []) == [("missing_result", "mcpr_1")]
    round.discard()


@pytest.mark.parametrize("form", ["approves", "passes on"])
def test_nothing_is_approved_with_arguments_that_a_hook_has_changed_inside_H4(form: str) -> None:
    def clean(call: Any) -> Any:
        call.input.filter["owner"] = "me"
        return Complete(True) if form == "approves" else RunNormally(call.input)

    asked = Call("ask", {"filter": {"owner": "*"}}, id="mcpr_1", server_label="wiki")
    session, round = read(asked)
    with pytest.raises(HookError, match=r"mcpr_1.*other arguments.*nothing was decided"):
        round.apply_hooks_sync(clean)
    assert kinds(round, session, []) == [("missing_result", "mcpr_1")]
    round.discard()


def test_a_hook_that_raises_approves_nothing_and_async_ones_are_refused_before_any_runs_H4() -> (
    None
):
    def fails(call: Any) -> Any:
        raise RuntimeError("down")

    async def waits(call: Any) -> Any:
        raise AssertionError

    _, round = read(WIKI)
    with pytest.raises(HookError, match="down"):
        round.apply_hooks_sync(fails)
    with pytest.raises(HookError, match="is async"):
        round.apply_hooks_sync(waits)
    round.discard()


def test_a_decision_is_final_and_later_hooks_see_what_is_left_H5() -> None:
    session, round = read(WIKI, SAME_NAME)
    plan = round.apply_hooks_sync(
        lambda call: Complete(True) if call.metadata.name == "ask" else RunNormally()
    )
    late = Asked(Reject("closed"))
    plan = plan.apply_hooks_sync(WeatherTools.hooks().with_hooks(late))
    assert late.seen == ["mcpr_2"]
    plan.commit(session, [])
    assert [approved for _, approved, _ in answers(session)] == [True, False]


@pytest.mark.parametrize("decision", [Complete(True), Reject("no")])
def test_what_was_decided_is_shown_as_it_was_asked_and_logged_H2_H6(
    decision: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def policy(call: Any) -> Any:
        call.server_label = "other"
        return decision

    _, round = read(WIKI)
    with caplog.at_level("INFO", logger="lutumpy.tool_hook"):
        plan = round.apply_hooks_sync(policy)
    (record,) = caplog.records
    word = "complete" if decision == Complete(True) else "reject"
    assert (record.__dict__["call_id"], record.__dict__["decision"]) == ("mcpr_1", word)
    for refused in plan.rejected:
        assert isinstance(refused.call, ApprovalRequest)
        assert refused.call.server_label == "wiki"
    for handled in plan.handled:
        assert (handled.output, handled.metadata.name) == (True, "ask")
    plan.discard()


def test_what_a_hook_does_to_a_request_no_other_sees_H2() -> None:
    def spoil(metadata: ToolMetadata, call: Any) -> Any:
        call.server_label = "trusted"
        call.arguments["q"] = "harmless"
        call.input.__pydantic_extra__["q"] = "harmless"
        return RunNormally(call.input)

    session, round = read(WIKI)
    seen: list[Any] = []
    plan = round.apply_hooks_sync(lambda call: spoil(call.metadata, call) and RunNormally())
    plan = plan.apply_hooks_sync(
        lambda call: seen.append((call.server_label, call.arguments)) or Complete(True)
    )
    assert seen == [("wiki", {"q": "tools"})]
    plan.commit(session, [])


def test_hooks_of_a_nested_toolset_are_not_asked() -> None:
    class Outer(Toolset):
        weather = nested(WeatherTools)

    outer, inner = Asked(Complete(True)), Asked(Reject("no"))
    session, round = read(SAME_NAME, tools=Outer)
    hooks = Outer.hooks()
    hooks.nested(WeatherTools).register(inner)
    plan = round.apply_hooks_sync(hooks)
    assert (inner.seen, len(plan.approvals)) == ([], 1)
    hooks.register(outer)
    plan = plan.apply_hooks_sync(hooks)
    assert (inner.seen, outer.seen, len(plan.handled)) == ([], ["mcpr_2"], 1)
    plan.commit(session, [])


def test_the_record_has_a_row_for_each_request() -> None:
    def first(call: Any) -> Any:
        return RunNormally()

    def second(call: Any) -> Any:
        return Complete(True) if call.metadata.name == "ask" else Reject("no")

    _, round = read(WIKI, SAME_NAME)
    pending = round.apply_hooks_sync(first)
    row = {
        "call_id": "mcpr_1",
        "tool": "ask",
        "arguments": '{"q":"tools"}',
        "server_label": "wiki",
    }
    assert pending.decisions()[0] == {
        **row,
        "decision": "pending",
        "source": "policy",
        "by": pending.decisions()[0]["by"],
    }
    plan = pending.apply_hooks_sync(second)
    approved, rejected = plan.decisions()
    assert approved | row == approved
    assert (approved["decision"], approved["source"]) == ("approved", "policy")
    assert [hook["did"] for hook in approved["hooks"]] == ["passed", "approved"]
    assert (rejected["decision"], rejected["reason"]) == ("rejected", "no")
    plan.discard()


def test_the_record_names_the_hook_that_decided_and_none_after_it() -> None:
    _, round = read(WIKI)
    registry = WeatherTools.hooks().with_hooks(Asked(), Asked(Complete(True)), Asked(Reject("no")))
    plan = round.apply_hooks_sync(registry)
    (row,) = plan.decisions()
    assert [hook["did"] for hook in row["hooks"]] == ["passed", "approved"]
    plan.discard()


# --- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [[WIKI], [WIKI, OWN], [OWN, SAME_NAME, WIKI]])
def test_a_stream_ends_in_the_same_round_and_says_so_once_S1(calls: list[Call]) -> None:
    session, whole = read(*calls)
    events = render_stream(Reply(calls=calls), API, number=1, model="m")
    reader = WeatherTools.offer().reader(OpenAIResponses.stream_decoder(), session)
    found = [event for chunk in events for event in reader.feed(chunk)]
    outcome = reader.finish()
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.turn == whole.turn
    asked = [event.request for event in found if isinstance(event, ApprovalRequested)]
    assert [id(request) for request in asked] == [id(r) for r in outcome.round.approvals]
    assert [r.metadata for r in asked] == [r.metadata for r in whole.approvals]
    assert {type(e).__name__ for e in found} & {"InvalidToolCallDelta", "ToolCallIssueFound"} == (
        set()
    )
    for each in (whole, outcome.round):
        each.discard()


# --- whatever comes ------------------------------------------------------------------------------

texts = st.text(max_size=6) | st.sampled_from(['{"q":1}', "{}", "", "null", "[1]", '{"a":NaN}'])


@given(
    st.lists(st.tuples(texts, texts, st.none() | st.just("wiki")), min_size=1, max_size=4),
    st.booleans(),
)
def test_nothing_raises_and_only_what_was_approved_is_approved(
    written: list[tuple[str, str, str | None]], approve: bool
) -> None:
    calls = [
        Call(name, arguments, id=f"mcpr_{n}", server_label=label)
        for n, (name, arguments, label) in enumerate(written)
    ]
    session, round = read(*calls)
    members = [*round.calls, *round.approvals, *round.issues]
    assert len(members) == len(calls)
    done: list[Any] = [call.complete("sun") for call in round.calls]
    done += [request.complete(approve) for request in round.approvals]
    asked = {request.metadata.id for request in round.approvals}
    round.commit(session, done)
    body = OpenAIResponses.request(session.transcript)["input"]
    approved = {
        item["approval_request_id"]
        for item in body
        if item.get("type") == "mcp_approval_response" and item["approve"]
    }
    assert approved == (asked if approve else set())
    assert OpenAIResponses.request(Session.load(session.dump()).transcript)["input"] == body


def test_a_request_that_nobody_answered_is_refused_by_the_api() -> None:
    body = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "w"}
    asked: list[Any] = [{**body, "name": "ask", "arguments": "{}"}]
    session = Session()
    session.push_user("Go.")
    llm = ScriptedModel([Reply(text="Hello.")], api=API)
    with pytest.raises(AdapterError, match="do not have an approval: mcpr_1"):
        session.text_turn(
            llm, extra={"input": [{"role": "user", "content": "a"}, *asked]}
        ).collect_sync()


# --- histories and the page ----------------------------------------------------------------------

REQUEST: dict[str, Any] = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "wiki",
    "name": "ask",
    "arguments": '{"q":1}',
}
USER: dict[str, Any] = {"role": "user", "content": "Go."}


def response(approve: bool, **more: Any) -> dict[str, Any]:
    kind = "mcp_approval_response"
    return {"type": kind, "approval_request_id": "mcpr_1", "approve": approve, **more}


@pytest.mark.parametrize("answer", [response(True), response(False), response(False, reason="no")])
def test_a_history_is_read_with_what_was_decided_and_sent_as_it_came_R1(answer: Any) -> None:
    history = [USER, REQUEST, answer, USER]
    transcript = Transcript.from_messages(API, history)
    assert OpenAIResponses.request(transcript)["input"] == history
    status = "ok" if answer["approve"] else "error"
    (results,) = [item for item in transcript if isinstance(item, ToolResults)]
    assert [result.status for result in results.results] == [status]
    messages = OpenAIChat.request(transcript)["messages"]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"q":1}'


@pytest.mark.parametrize(
    ("history", "mended"),
    [
        ([USER, REQUEST, USER], 4),
        ([USER, REQUEST], 3),
        ([USER, response(True), USER], 2),
    ],
)
def test_a_history_that_the_api_refuses_is_refused_and_can_be_mended(
    history: list[Any], mended: int
) -> None:
    with pytest.raises(TranscriptError, match="mcpr_1"):
        Transcript.from_messages(API, history)
    fixed = apply_repairs(history, propose_repairs(API, history))
    assert len(fixed) == mended
    assert [item["approve"] for item in fixed if "approve" in item] in ([], [False])
    Transcript.from_messages(API, fixed)


def test_a_response_to_what_the_server_holds_is_left_to_the_server() -> None:
    transcript = Transcript.from_messages(API, [response(True)], server_held_prefix=True)
    assert OpenAIResponses.request(transcript)["input"] == [response(True)]


def test_the_page_shows_the_call_the_server_and_what_was_decided() -> None:
    refused = {**REQUEST, "id": "mcpr_2", "name": "erase"}
    answer = {**response(False, reason="not today"), "approval_request_id": "mcpr_2"}
    shown = render_page([USER, REQUEST, refused, response(True), answer], api=API)
    assert "wiki.ask" in shown
    assert "wiki.erase" in shown
    assert "not today" in shown
    session, round = read(WIKI)
    plan = round.apply_hooks_sync(lambda call: Complete(True))
    rows = plan.decisions()
    plan.commit(session, [])
    assert "approved" in render_page(session.transcript, decisions=rows)
