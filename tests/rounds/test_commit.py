"""Commit: all or nothing (rules K1 to K7)."""

from __future__ import annotations

import gc
import sys
import warnings
from typing import Any

import pytest
from every_api import ADAPTERS, APIS, messages_of
from pydantic import BaseModel

from lutumpy import (
    CommitError,
    FilePart,
    HandledTool,
    ImagePart,
    NeedsTools,
    RejectedToolCall,
    RoundClosedError,
    Session,
    StaleRoundError,
    TextPart,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundArityError,
    Toolset,
    tool,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.doctor import check_messages
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Reply, render


class Report(BaseModel):
    text: str


@tool_input(name="a")
class A(ToolInput[Report]):
    """A."""

    x: int = 0


@tool_input(name="b", output=Any)
class B(BaseModel):
    """B."""


@tool_input(name="nothing")
class Nothing(ToolInput[None]):
    """Returns nothing."""


class Tools(Toolset):
    a = tool(A)
    b = tool(B, output=Any)
    nothing = tool(Nothing)


def start(*calls: Call) -> tuple[Session, ToolRound[Any]]:
    session = Session()
    session.push_user("go")
    reply = render(
        Reply(calls=calls or (Call("a", id="c1"), Call("b", id="c2"))),
        "openai_chat",
        number=1,
        model="m",
    )
    outcome = Tools.offer().read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def kinds(caught: pytest.ExceptionInfo[CommitError]) -> list[tuple[str, str]]:
    return [(p.kind, p.call_id) for p in caught.value.problems]


def written(session: Session) -> list[tuple[str, str, str]]:
    last = session.transcript[-1]
    assert isinstance(last, ToolResults)
    return [(r.call_id, r.text, r.status) for r in last.results]


def test_results_are_written_in_call_order_K2() -> None:
    session, round = start()
    a, b = round.calls
    round.commit(session, [b.complete(1), a.complete(Report(text="x"))])
    assert written(session) == [("c1", '{"text":"x"}', "ok"), ("c2", "1", "ok")]


def test_all_problems_together_in_call_order_and_nothing_changes_K3() -> None:
    session, round = start(
        Call("a", {"x": 1}, id="c1"), Call("b", id="c2"), Call("a", id="c3"), Call("a", id="c4")
    )
    before = list(session.transcript)
    results = [
        ToolResult(ToolMetadata("zz", "a", "{}"), "x"),
        ToolResult(ToolMetadata("c1", "b", '{"x":2}'), "x"),
        round.calls[2].complete({"text": "a dict is no model"}),
        round.calls[3].complete(Report(text="x")),
        round.calls[3].complete(Report(text="x")),
    ]
    with pytest.raises(CommitError) as caught:
        round.commit(session, results)
    assert kinds(caught) == [
        ("wrong_tool", "c1"),
        ("wrong_arguments", "c1"),
        ("missing_result", "c2"),
        ("wrong_output", "c3"),
        ("duplicate_result", "c4"),
        ("extra_result", "zz"),
    ]
    assert [p.message for p in caught.value.problems[:3]] == [
        "call 'c1' of 'a' has a result of the tool 'b'",
        "call 'c1' of 'a' has a result for other arguments",
        "call 'c2' of 'b' has no result",
    ]
    assert caught.value.problems[3].message.startswith(
        "call 'c3' of 'a' has a result that doesn't fit: "
    )
    assert [p.message for p in caught.value.problems[4:]] == [
        "call 'c4' of 'a' has 2 results",
        "result for 'zz' (a): 'zz' is not a call of this round",
    ]
    assert [p.tool for p in caught.value.problems] == ["a", "a", "b", "a", "a", "a"]
    assert list(session.transcript) == before
    round.commit(session, [c.fail("no") for c in round.calls])  # still open


def test_what_is_wrong_with_several_results_for_a_call_is_said_once_K3() -> None:
    session, round = start(Call("a", {"x": 1}, id="c1"))
    other = ToolMetadata("c1", "b", '{"x":2}')
    unfit = ToolResult(other, "", output_error="no")
    with pytest.raises(CommitError) as caught:
        round.commit(session, [unfit, unfit, unfit])
    assert kinds(caught) == [
        ("duplicate_result", "c1"),
        ("wrong_tool", "c1"),
        ("wrong_arguments", "c1"),
        ("wrong_output", "c1"),
    ]
    round.discard()


def test_arguments_are_compared_as_json_values_K3() -> None:
    session, round = start(Call("a", '{"x": 1}', id="c1"))
    round.commit(session, [ToolResult(ToolMetadata("c1", "a", '{"x":1.0}'), "fine")])
    assert written(session) == [("c1", "fine", "ok")]


@pytest.mark.parametrize("output", [None, 3, "text", {"text": "x"}, [Report(text="x")]])
def test_complete_never_raises_K3(output: Any) -> None:
    session, round = start(Call("a", id="c1"))
    result = round.calls[0].complete(output)
    assert result.output is output
    with pytest.raises(CommitError) as caught:
        round.commit(session, [result])
    assert kinds(caught) == [("wrong_output", "c1")]
    round.discard()


def test_outputs_as_the_model_reads_them_K7() -> None:
    session, round = start(Call("b", id="c1"), Call("b", id="c2"), Call("nothing", id="c3"))
    one, two, three = round.calls
    round.commit(
        session, [one.complete("as it is"), two.complete({"a": [1, None]}), three.complete(None)]
    )
    assert [t for _, t, _ in written(session)] == ["as it is", '{"a":[1,null]}', "null"]


def test_failures_and_rejections_are_never_empty_K6() -> None:
    session, round = start(
        Call("a", id="c1"),
        Call("a", id="c2"),
        Call("a", id="c3"),
        Call("a", id="c4"),
        Call("a", id="c5"),
    )
    a, b, c, d, e = round.calls
    results = [
        a.fail(""),
        b.fail(ValueError("secret \ud800")),
        c.reject(""),
        ToolResult(d.metadata, "why", "rejected"),
        e.fail(KeyError()),
    ]
    round.commit(session, results)
    texts = [t for _, t, _ in written(session)]
    assert texts[0].strip()
    assert texts[1] == "The tool failed with ValueError."
    assert texts[4] == "The tool failed with KeyError."
    assert texts[2].startswith("Tool call rejected: ")
    assert texts[2] != "Tool call rejected: "
    assert texts[3] == "Tool call rejected: why"
    assert [s for _, _, s in written(session)] == [
        "error",
        "error",
        "rejected",
        "rejected",
        "error",
    ]
    results = [
        b
        for b in AnthropicMessages.request(session.transcript)["messages"][-1]["content"]
        if b["type"] == "tool_result"
    ]
    assert all(r["is_error"] is True for r in results)


def test_handled_and_rejected_are_taken_as_they_are_K1() -> None:
    session, round = start()
    a, b = round.calls
    round.commit(
        session, [a.handled(Report(text="cached")), RejectedToolCall(b.metadata, b, "no", "policy")]
    )
    assert written(session) == [
        ("c1", '{"text":"cached"}', "ok"),
        ("c2", "Tool call rejected: no", "rejected"),
    ]
    session, round = start(Call("a", id="c1"))
    with pytest.raises(CommitError) as caught:
        round.commit(session, [HandledTool(round.calls[0].metadata, round.calls[0].input, "wrong")])
    assert kinds(caught) == [("wrong_output", "c1")]
    with pytest.raises(TypeError, match="complete"):
        round.commit(session, ["a plain string"])  # type: ignore[list-item]
    round.discard()


def test_an_explicit_result_takes_the_place_of_an_issues_answer_K1() -> None:
    session, round = start(Call("nope", id="c1"), Call("nope", id="c2"))
    assert round.continue_suggestion is not None
    assert "nope" in round.continue_suggestion
    round.commit(session, [round.issues[0].fail("own words")])
    (first, second) = written(session)
    assert first == ("c1", "own words", "error")
    assert second[1].startswith("Tool call rejected: ")
    assert second[2] == "rejected"


def test_only_a_call_that_failed_counts_as_a_failure_of_its_arguments_C3() -> None:
    session, round = start(
        Call("a", {"x": 1}, id="c1"), Call("a", {"x": 2}, id="c2"), Call("b", id="c3")
    )
    one, two, three = round.calls
    round.commit(session, [one.complete(Report(text="x")), two.fail("no"), three.reject("no")])
    counted = [
        session.transcript.failures(call.metadata.name, call.metadata.arguments)
        for call in round.calls
    ]
    assert counted == [0, 1, 1]


def test_arity() -> None:
    _, round = start()
    with pytest.raises(
        ToolRoundArityError, match=r"^expected exactly one call, the round has 2 \(a, b\)"
    ):
        round.expect_one()
    with pytest.raises(
        ToolRoundArityError, match=r"^expected at most one call, the round has 2 \(a, b\)"
    ):
        round.expect_at_most_one()
    round.discard()
    _, one = start(Call("a", id="c1"))
    assert one.expect_one() is one.expect_at_most_one()
    one.discard()
    _, beside = start(Call("nope"), Call("a", id="c1"))
    assert beside.expect_one().metadata.id == "c1"  # the issue is answered by the library
    beside.discard()
    _, none = start(Call("nope"))
    assert none.expect_at_most_one() is None
    with pytest.raises(ToolRoundArityError, match="issue"):
        none.expect_one()
    none.discard()


def test_a_round_says_what_it_holds_and_how_it_ended() -> None:
    session, round = start(Call("a", id="c1"), Call("b", id="c2"), Call("nope"))
    assert repr(round) == "<ToolRound open: calls [a, b], 1 issues>"
    round.commit(session, [call.fail("x") for call in round.calls])
    assert repr(round) == "<ToolRound committed: calls [a, b], 1 issues>"


def test_a_result_for_what_can_not_be_run_is_told_K3() -> None:
    session, round = start(Call("a", id="c1"), Call("nope", id="c2"))
    issue = round.issues[0]
    with pytest.raises(CommitError) as caught:
        round.commit(
            session, [round.calls[0].fail("x"), HandledTool(issue.metadata, None, "made up")]
        )
    (problem,) = caught.value.problems
    assert (problem.call_id, problem.tool) == ("c2", "nope")
    round.discard()


def test_a_closed_round_stays_closed_K4() -> None:
    session, round = start(Call("a", id="c1"))
    result = round.calls[0].fail("x")
    round.commit(session, [result])
    for use in (lambda: round.commit(session, [result]), round.discard):
        with pytest.raises(RoundClosedError, match="committed"):
            use()


def test_staleness_and_rebase_K4() -> None:
    session, round = start(Call("a", id="c1"))
    results = [round.calls[0].complete(Report(text="paid for"))]
    with pytest.raises(StaleRoundError, match="another transcript"):
        round.commit(session.fork(), results)
    session.push_user("never mind")
    with pytest.raises(StaleRoundError, match="rebase"):
        round.commit(session, results)
    other = Session()
    other.push_user("something else")
    with pytest.raises(StaleRoundError, match="unchanged"):
        round.commit(other, results, rebase=True)
    assert len(other.transcript) == 1
    round.commit(session, results, rebase=True)
    assert written(session) == [("c1", '{"text":"paid for"}', "ok")]
    before, unused = start(Call("a", id="c8"))
    unused.discard()
    loaded = Session.load(before.dump())
    _, late = start(Call("a", id="c9"))
    late.commit(
        loaded, [late.calls[0].fail("x")], rebase=True
    )  # an equal prefix, though another object
    assert len(loaded.transcript) == 3


@pytest.mark.parametrize("api", APIS)
def test_a_rebase_gives_fresh_ids_where_the_host_counts_them_K4_C6(api: Any) -> None:
    """Two answers in flight, both with the host's first id: neither tool's result is lost."""
    adapter = ADAPTERS[api]
    session = Session()
    session.push_user("go")
    rounds: list[ToolRound[Any]] = []
    for _ in range(2):
        calls = [Call("b", id="call_0"), Call("b", id="call_1")]
        reply = render(Reply(calls=calls), api, number=1, model="m")
        outcome = Tools.offer().read(adapter.response(reply), session)
        assert isinstance(outcome, NeedsTools)
        rounds.append(outcome.round)
    for name, round in zip(("first", "second"), rounds, strict=True):
        results = [call.complete(f"{name} {number}") for number, call in enumerate(round.calls)]
        round.commit(session, results, rebase=True)
    found = [item for item in session.transcript if isinstance(item, ToolResults)]
    contents = [[result.content for result in results.results] for results in found]
    assert contents == [["first 0", "first 1"], ["second 0", "second 1"]]
    ids = [result.call_id for results in found for result in results.results]
    assert ids[:2] == ["call_0", "call_1"]
    assert len(set(ids)) == 4
    body = adapter.request(session.transcript)
    assert check_messages(api, messages_of(api, body)) == []


def test_advice_about_a_stale_target_works_there_K4() -> None:
    session, round = start(Call("a", id="c1"))
    results = [round.calls[0].complete(Report(text="x"))]
    other = Session()
    other.push_user("something else")
    with pytest.raises(
        StaleRoundError, match=r"another transcript.*commit it into its own, or discard it"
    ) as caught:
        round.commit(other, results)
    assert "rebase" not in str(caught.value)
    twin = session.fork()
    with pytest.raises(StaleRoundError, match=r"another transcript.*rebase=True"):
        round.commit(twin, results)
    round.commit(twin, results, rebase=True)


def test_a_target_that_ends_before_the_round_began_takes_no_rebase_K4() -> None:
    session, round = start(Call("a", id="c1"))
    results = [round.calls[0].complete(Report(text="paid for"))]
    empty = Session()
    with pytest.raises(StaleRoundError, match="unchanged"):
        round.commit(empty, results, rebase=True)
    assert len(empty.transcript) == 0
    round.commit(session, results)


def test_a_rebased_turn_leaves_out_reasoning_that_no_longer_verifies_K4() -> None:
    def thinking() -> tuple[Session, ToolRound[Any]]:
        session = Session()
        session.push_user("go")
        reply = render(
            Reply(reasoning="hm", calls=[Call("a", id="c1")]),
            "anthropic_messages",
            number=1,
            model="m",
        )
        outcome = Tools.offer().read(AnthropicMessages.response(reply), session)
        assert isinstance(outcome, NeedsTools)
        return session, outcome.round

    session, round = thinking()
    session.push_user("wait")
    round.commit(session, [round.calls[0].fail("x")], rebase=True)
    assert "thinking" not in str(AnthropicMessages.request(session.transcript))
    session, round = thinking()
    target = session.fork()
    round.commit(
        target, [round.calls[0].fail("x")], rebase=True
    )  # nothing came in between: it still verifies
    assert "thinking" in str(AnthropicMessages.request(target.transcript))


PNG = ImagePart(data=b"\x89PNG", media_type="image/png")
PDF = FilePart(data=b"%PDF", media_type="application/pdf", filename="a.pdf")


def test_content_parts_go_where_the_wire_takes_them_K7() -> None:
    session, round = start(Call("b", id="c1"), Call("b", id="c2"))
    one, two = round.calls
    round.commit(session, [one.complete([TextPart("look"), PNG]), two.complete(PDF)])
    messages = AnthropicMessages.request(session.transcript)["messages"][-1]["content"]
    assert [[p["type"] for p in b["content"]] for b in messages] == [
        ["text", "image"],
        ["document"],
    ]
    outputs = [
        i
        for i in OpenAIResponses.request(session.transcript)["input"]
        if i.get("type") == "function_call_output"
    ]
    assert [[p["type"] for p in o["output"]] for o in outputs] == [
        ["input_text", "input_image"],
        ["input_file"],
    ]
    chat = OpenAIChat.request(session.transcript)["messages"]
    assert [m["role"] for m in chat] == ["user", "assistant", "tool", "tool", "user"]
    assert "look" in str(chat[2]["content"])
    assert "image_url" in str(chat[4]["content"])


def test_parts_of_a_failure_are_text_where_the_flag_wants_text_K6() -> None:
    session, round = start(Call("b", id="c1"))
    round.commit(session, [ToolResult(round.calls[0].metadata, (TextPart("broken"), PNG), "error")])
    (block,) = AnthropicMessages.request(session.transcript)["messages"][-1]["content"]
    assert block["is_error"] is True
    assert "image" not in str(
        [p.get("type") for p in block["content"]] if isinstance(block["content"], list) else ""
    )


def test_a_round_that_could_not_be_made_is_not_reported_as_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    with pytest.raises(AttributeError):
        ToolRound(None)  # type: ignore[arg-type]
    gc.collect()
    assert seen == []


def test_a_forgotten_round_is_noticed() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        start()
        gc.collect()
        _session, round = start()
        round.discard()
        del round
        gc.collect()
    assert [w.category for w in seen] == [ResourceWarning]
    assert "round" in str(seen[0].message)
    assert isinstance(seen[0].source, ToolRound)


def test_one_result_in_place_of_a_list_is_told_and_the_round_stays_open() -> None:
    session, round = start(Call("a", id="c1"))
    one: Any = round.calls[0].fail("no")
    with pytest.raises(
        TypeError,
        match="commit takes a list of results, not ToolResult; "
        "nothing was written, the round is still open",
    ):
        round.commit(session, one)
    round.commit(session, [one])
