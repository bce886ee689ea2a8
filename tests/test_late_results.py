"""Calls whose results come later: promises, open calls, deliveries (LR1 to LR6, LR16, LR17)."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from every_api import ADAPTERS, APIS, messages_of
from pydantic import BaseModel

from lutumpy import (
    CallTicket,
    CommitError,
    DeclarationError,
    ImagePart,
    Later,
    NeedsTools,
    OpenCall,
    Session,
    Skip,
    TextPart,
    ToolInput,
    Toolset,
    TranscriptError,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.doctor import check_messages
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.models import Message, ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel


class Video(BaseModel):
    url: str


@tool_fn(late=True)
async def render(scene: str, *, ticket: Skip[CallTicket]) -> Video:
    """Render a scene."""
    raise Later("about an hour", handle={"job": ticket.key}, until=timedelta(hours=6))


@tool_fn
async def look(what: str) -> str:
    """Look at something."""
    return f"a {what}"


@tool_input(name="ask_ann")
class AskAnn(ToolInput[str]):
    """Ask Ann."""

    question: str


class Studio(Toolset):
    render = tool(render)
    look = tool(look)
    ask_ann = tool(AskAnn)


def scripted(api: Any, *replies: Reply) -> ScriptedModel:
    return ScriptedModel([*replies], api=api)


def begun(*calls: Call, api: Any = "openai_chat") -> tuple[Session, Any]:
    """A session with a user's message, and the round of its answer."""
    session = Session()
    session.push_user("Render the beach.")
    model = scripted(api, Reply(calls=list(calls)))
    outcome = session.text_turn(model, tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


RENDER = Call("render", {"scene": "beach"}, id="call_1")
LOOK = Call("look", {"what": "cat"}, id="call_2")
ASK = Call("ask_ann", {"question": "When?"}, id="call_3")


def promised(api: Any = "openai_chat") -> Session:
    """A session whose first call is open, and whose second has its result."""
    session, round = begun(RENDER, LOOK, api=api)
    first, second = round.calls
    round.commit(session, [first.later("about an hour", handle=7), second.complete("a cat")])
    return session


def refused(api: str, body: Any) -> list[Any]:
    """What the API refuses of a request's history."""
    messages = messages_of(api, body)
    return [p for p in check_messages(api, messages) if p.certainty == "refused"]


def kinds_of(error: pytest.ExceptionInfo[CommitError]) -> list[str]:
    return [problem.kind for problem in error.value.problems]


def test_a_promise_is_committed_as_a_result_and_its_call_is_open() -> None:
    """LR1: no error, and no failure that counts."""
    session = promised()
    (call,) = session.open_calls
    assert isinstance(call, OpenCall)
    assert (call.call_id, call.tool, call.note, call.handle) == (
        "call_1",
        "render",
        "about an hour",
        7,
    )
    assert json.loads(call.arguments) == {"scene": "beach"}
    assert call.since is not None
    assert call.since <= datetime.now(timezone.utc)
    assert call.until is None
    assert session.transcript.failures("render", '{"scene": "beach"}') == 0
    assert session.fork().open_calls == session.open_calls


def test_only_late_tools_and_those_of_the_users_code_may_promise() -> None:
    """LR1: any other is a `wrong_output`, and nothing changes."""
    session, round = begun(RENDER, LOOK, ASK)
    calls = round.calls
    with pytest.raises(CommitError, match="late=True") as caught:
        round.commit(session, [call.later() for call in calls])
    assert kinds_of(caught) == ["wrong_output"]
    assert caught.value.problems[0].call_id == "call_2"
    assert session.open_calls == ()
    round.commit(session, [calls[0].later(), calls[1].complete("a cat"), calls[2].later()])
    assert [call.call_id for call in session.open_calls] == ["call_1", "call_3"]


def test_a_member_may_say_that_it_is_late_and_no_issue_can_be() -> None:
    """LR1."""

    class Patient(Toolset):
        look = tool(look, late=True)
        render = tool(render, late=False)

    session = Session()
    session.push_user("Look.")
    bad = Call("look", {"who": "x"}, id="call_9")
    model = scripted("openai_chat", Reply(calls=[LOOK, RENDER, bad]))
    outcome = session.text_turn(model, tools=Patient).collect_sync()
    assert isinstance(outcome, NeedsTools)
    seen, rendering = outcome.round.calls
    issue = outcome.round.issues[0]
    late = seen.later()
    given = [late, rendering.later(), type(late)(issue.metadata, "later", "promised")]
    with pytest.raises(CommitError) as caught:
        outcome.round.commit(session, given)
    assert [(p.kind, p.call_id) for p in caught.value.problems] == [
        ("wrong_output", "call_1"),
        ("wrong_output", "call_9"),
    ]
    outcome.round.commit(session, [late, rendering.fail("no")])
    with pytest.raises(DeclarationError, match="late"):
        tool_fn(late="yes")(lambda: None)  # type: ignore[call-overload]


def test_what_later_is_given_is_checked() -> None:
    session, round = begun(RENDER)
    (call,) = round.calls
    wrong: Any = 7
    with pytest.raises(TypeError, match="note"):
        call.later(wrong)
    with pytest.raises(TypeError, match="until"):
        call.later(until=wrong)
    with pytest.raises(ValueError, match="zone"):
        call.later(until=datetime(2030, 1, 1))
    with pytest.raises(CommitError) as caught:
        round.commit(session, [call.later(handle={1, 2})])
    assert kinds_of(caught) == ["wrong_output"]
    end = datetime(2030, 1, 1, tzinfo=timezone.utc)
    round.commit(session, [call.later("x" * 2000, until=end)])
    assert session.open_calls[0].until == end
    (results,) = [item for item in session.transcript if isinstance(item, ToolResults)]
    assert len(results.results[0].content) < 1300
    assert hash(session.open_calls[0])


def test_each_open_call_gets_one_late_result_at_the_end() -> None:
    """LR2, LR3: what was committed stays as it is."""
    session = promised()
    before = list(session.transcript)
    head = session.head
    (call,) = session.open_calls
    session.deliver([call.complete(Video(url="https://v/1"))])
    assert list(session.transcript)[:-1] == before
    late = session.transcript[-1]
    assert isinstance(late, Message)
    assert late.late is not None
    assert late.text == '[Late result of call call_1 of render]\n{"url":"https://v/1"}'
    assert session.open_calls == ()
    assert session.head != head
    assert not session.answered
    with pytest.raises(CommitError, match="has its late result") as caught:
        session.deliver([call.complete(Video(url="https://v/2"))])
    assert kinds_of(caught) == ["duplicate_result"]
    assert session.transcript[-1] is late


def test_a_delivery_names_every_problem_and_writes_nothing() -> None:
    """LR2: checked as K3 and K3b."""
    session, round = begun(RENDER, LOOK, ASK)
    first, second, third = round.calls
    round.commit(session, [first.later(), second.complete("a cat"), third.later()])
    render_call, ask = session.open_calls
    dumped = session.dump()
    other = type(first.metadata)("call_3", "ask_ann", '{"question": "Who?"}')
    made: Any = first.complete({"url": "x"})
    given = [
        made,
        ask.complete("at noon"),
        ask.complete("at one"),
        second.complete("a dog"),
        type(made)(other, "x"),
        type(made)(type(other)("call_8", "look", "{}"), "x"),
    ]
    with pytest.raises(CommitError) as caught:
        session.deliver(given)
    assert [(p.kind, p.call_id) for p in caught.value.problems] == [
        ("wrong_output", "call_1"),
        ("duplicate_result", "call_3"),
        ("wrong_arguments", "call_3"),
        ("not_open", "call_2"),
        ("not_open", "call_8"),
    ]
    wrong_tool = type(made)(type(other)("call_1", "look", render_call.arguments), "x")
    again = type(made)(first.metadata, "later", "promised")
    for result, kind in ((wrong_tool, "wrong_tool"), (again, "wrong_output")):
        with pytest.raises(CommitError) as caught:
            session.deliver([result, ask.complete("at noon")])
        assert kinds_of(caught) == [kind]
    nothing: Any = 7
    with pytest.raises(TypeError):
        session.deliver(nothing)
    with pytest.raises(TypeError):
        session.deliver([nothing])
    with pytest.raises(ValueError, match="drift"):
        session.deliver([], drift=nothing)
    assert session.dump() == dumped


def test_late_results_are_written_in_the_order_of_their_calls() -> None:
    """LR2 (K2); one that failed counts as a failure of its call."""
    session, round = begun(RENDER, ASK)
    round.commit(session, [call.later() for call in round.calls])
    first, second = session.open_calls
    session.deliver([second.reject("nobody was there"), first.fail("the farm burned down")])
    texts = [item.text for item in session.transcript if isinstance(item, Message)][1:]
    assert texts == [
        "[Late result of call call_1 of render, which failed]\nthe farm burned down",
        "[Late result of call call_3 of ask_ann]\nTool call rejected: nobody was there",
    ]
    assert session.transcript.failures("render", '{"scene":"beach"}') == 1


@pytest.mark.parametrize("api", APIS)
def test_placeholders_and_late_messages_go_to_every_api(api: str) -> None:
    """LR4, LR5: no error on the wire, and nothing that the API refuses."""
    session = promised()
    adapter = ADAPTERS[api]
    body = adapter.request(session.transcript, Studio.offer())
    assert refused(api, body) == []
    sent = json.dumps(body)
    assert "is running" in sent
    assert "about an hour" in sent
    assert "don't make the call again" in sent
    assert "is_error" not in sent
    assert '"status": "error"' not in sent
    picture = ImagePart(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    (call,) = session.open_calls
    session.deliver([type(call.reject("no"))(call.metadata, (TextPart("Done."), picture))])
    again = adapter.request(session.transcript, Studio.offer())
    assert refused(api, again) == []
    assert "[Late result of call call_1 of render]" in json.dumps(again)
    assert adapter.request(session.transcript, Studio.offer()) == again


@pytest.mark.parametrize("api", APIS)
def test_with_nothing_to_answer_but_open_calls_no_request_is_made(api: str) -> None:
    """LR6: the user may go on meanwhile."""
    session, round = begun(RENDER, ASK)
    round.commit(session, [call.later() for call in round.calls])
    with pytest.raises(TranscriptError, match="open calls"):
        ADAPTERS[api].request(session.transcript, Studio.offer())
    model = scripted("openai_chat", Reply(text="Soon."), Reply(text="Done."))
    with pytest.raises(TranscriptError, match="open calls"):
        session.text_turn(model, tools=Studio).collect_sync()
    assert not session.answered
    session.push_user("How long?")
    session.text_turn(model, tools=Studio).collect_sync()
    assert session.answered
    session.deliver([session.open_calls[1].complete("at noon")])
    session.text_turn(model, tools=Studio).collect_sync()
    assert [call.call_id for call in session.open_calls] == ["call_1"]


def test_dumps_hold_promises_and_late_items() -> None:
    """LR16: in version 4, which earlier releases refuse."""
    session, round = begun(RENDER, ASK)
    end = datetime(2030, 1, 1, tzinfo=timezone.utc)
    first, second = round.calls
    round.commit(session, [first.later(handle={"job": [1]}, until=end), second.later("soon")])
    dumped = json.loads(json.dumps(session.dump()))
    assert dumped["version"] == 4
    loaded = Session.load(dumped)
    assert loaded.open_calls == session.open_calls
    assert loaded.head == session.head
    built = Session.build(
        session.items_since(type(session.head)(0, Session().head.digest)), session.state()
    )
    assert built.open_calls == session.open_calls
    loaded.deliver([loaded.open_calls[0].complete({"url": "x"})])
    again = Session.load(json.dumps(loaded.dump()))
    assert list(again.transcript) == list(loaded.transcript)
    assert [call.call_id for call in again.open_calls] == ["call_3"]
    for old in (1, 2, 3):
        assert Session.load({**Session().dump(), "version": old}).open_calls == ()


def test_a_dump_whose_late_items_answer_no_open_call_is_refused() -> None:
    """LR16: `load` checks that each answers one open call before it."""
    session = promised()
    (call,) = session.open_calls
    session.deliver([call.complete(Video(url="x"))])
    good = session.dump()
    late = good["items"][-1]
    assert late["item"] == "late"

    def refused(items: list[Any], **more: Any) -> None:
        with pytest.raises(TranscriptError, match="nothing was loaded"):
            Session.load({**good, "items": items, **more})

    items = good["items"]
    refused([*items, late])
    refused([items[0], late])
    for name, value in (
        ("reason", "lost"),
        ("header", " "),
        ("header", 7),
        ("result", {**late["result"], "name": "look"}),
        ("result", {**late["result"], "status": "promised"}),
        ("detached", "yes"),
    ):
        refused([*items[:-1], {**late, name: value}])
    results = items[-2]["results"]
    for name, value in (
        ("promise", 7),
        ("promise", {"note": 7}),
        ("promise", {"since": "yesterday"}),
        ("promise", {"since": "2030-01-01T00:00:00"}),
        ("promise", {"tool_digest": 7}),
        ("promise", {"equal_to": 7}),
        ("status", "ok"),
        ("kind", "computer_call"),
    ):
        changed = [{**results[0], name: value}, results[1]]
        refused([*items[:-2], {**items[-2], "results": changed}])
    entry = {"call_id": "x", "name": "n", "arguments": "{}", "kind": "function", "promise": {}}
    for wrong in (7, [7], [{**entry, "kind": "shell"}], [entry, entry], [{**entry, "name": 1}]):
        refused(items, open_calls=wrong)


def test_a_window_may_drop_the_round_of_an_open_call() -> None:
    """LR17: the late result takes the message form, with the arguments."""
    session = promised()
    model = scripted("openai_chat", Reply(text="Soon."), Reply(text="Hello."))
    session.text_turn(model, tools=Studio).collect_sync()
    session.push_user("Hello.")
    session.text_turn(model, tools=Studio).collect_sync()
    window = Session(session.transcript.window(max_rounds=1))
    (call,) = window.open_calls
    assert call.arguments == session.open_calls[0].arguments
    loaded = Session.load(json.loads(json.dumps(window.dump())))
    assert loaded.open_calls == window.open_calls
    built = Session.build(window.dump()["items"], window.state())
    assert built.open_calls == window.open_calls
    loaded.deliver([loaded.open_calls[0].complete({"url": "x"})])
    text = '[Late result of call call_1 of render, made with {"scene":"beach"}]\n{"url":"x"}'
    assert loaded.transcript[-1].text == text  # type: ignore[union-attr]
    assert Session.load(loaded.dump()).open_calls == ()
    with pytest.raises(CommitError) as caught:
        loaded.deliver([call.complete({"url": "x"})])
    assert kinds_of(caught) == ["duplicate_result"]
    # A late item may be kept while its call goes.
    session.deliver([session.open_calls[0].complete(Video(url="x"))])
    kept = session.transcript.window(max_rounds=1)
    assert kept[-1].text == text  # type: ignore[union-attr]
    assert kept.open_calls == ()
    twice = kept.window(max_tokens=10_000)
    assert list(twice) == list(kept)
    # The id of an open call stays used (C6).
    model = scripted("openai_chat", Reply(calls=[RENDER]))
    window.push_user("Again.")
    outcome = window.text_turn(model, tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.calls[0].metadata.id != "call_1"
    outcome.round.discard()


def test_a_window_that_keeps_everything_keeps_open_calls() -> None:
    session = promised()
    assert session.transcript.window(max_rounds=9).open_calls == session.transcript.open_calls
    session.push_user("And?")
    last = session.transcript.rounds(1)
    selected = session.transcript.select(last)
    assert [call.is_detached for call in selected.open_calls] == [True]
    first = session.transcript.select(session.transcript.rounds()[:1])
    assert [call.is_detached for call in first.open_calls] == [False]


def test_with_the_toolset_outputs_are_checked_and_tools_compared() -> None:
    """LR21, LR2: after a load nobody knows the types but the toolset."""
    session = Session.load(promised().dump())
    (call,) = session.open_calls
    with pytest.raises(CommitError) as caught:
        session.deliver([call.complete({"url": "x"})], tools=Studio)
    assert kinds_of(caught) == ["wrong_output"]

    @tool_fn(name="render", late=True)
    def other(scene: str, size: int) -> Video:
        """Render a scene."""
        return Video(url="x")

    class Newer(Toolset):
        render = tool(other)

    class Without(Toolset):
        look = tool(look)

    for tools in (Newer, Without):
        with pytest.raises(CommitError, match="since it was called") as caught:
            session.deliver([call.complete(Video(url="x"))], tools=tools)
        assert kinds_of(caught) == ["wrong_tool"]
    twin = session.fork()
    twin.deliver([call.complete(Video(url="x"))], tools=Newer, drift="reject")
    assert "has changed while the call was running" in twin.transcript[-1].text  # type: ignore[union-attr]
    session.deliver([call.complete(Video(url="x"))], tools=Studio)
    assert '{"url":"x"}' in session.transcript[-1].text  # type: ignore[union-attr]


def test_what_an_open_call_without_its_type_is_completed_with() -> None:
    session = Session.load(promised().dump())
    (call,) = session.open_calls
    assert call.complete("text").content == "text"
    assert call.complete([TextPart("a")]).content == (TextPart("a"),)
    assert call.complete({"a": [1, None]}).content == '{"a":[1,null]}'
    for wrong in (float("nan"), object()):
        with pytest.raises(CommitError) as caught:
            session.deliver([call.complete(wrong)])
        assert kinds_of(caught) == ["wrong_output"]


async def test_the_executor_makes_promises_of_tools_that_raise_later() -> None:
    """LR1: with the ticket as a `Skip` parameter; of any other tool it is an exception."""
    session, round = begun(RENDER, LOOK)
    executor = ToolExecutor()
    dispatch = Dispatcher(Studio)

    @dispatch.on(Studio.ask_ann)
    def ask(input: AskAnn, *, ticket: CallTicket) -> str:
        raise Later(ticket.call_id)

    @dispatch.on(Studio.look)
    def no_look(input: BaseModel) -> str:
        raise Later("no")

    results = await executor.run(round.calls, dispatch, scope="s")
    assert [result.status for result in results] == ["promised", "error"]
    assert results[0].outcome == "promised"
    assert type(results[0]).load(results[0].dump(), round.calls[0]) == results[0]
    round.commit(session, results)
    (call,) = session.open_calls
    assert call.handle is not None
    assert call.until is not None
    again, other = begun(ASK)
    (result,) = await executor.run(other.calls, dispatch)
    assert (result.status, result.outcome) == ("error", "maybe_executed")
    other.discard()
    del again


async def test_a_promise_that_cant_be_kept_as_json_is_a_failure() -> None:
    @tool_fn(name="odd", late=True, effect="read")
    def oddly(what: str) -> str:
        """Odd."""
        if what == "handle":
            raise Later(handle=object())
        raise Later(until=datetime(2030, 1, 1))

    class Odd(Toolset):
        odd = tool(oddly)

    session = Session()
    session.push_user("Go.")
    calls = [Call("odd", {"what": what}) for what in ("handle", "until")]
    model = scripted("openai_chat", Reply(calls=calls))
    outcome = session.text_turn(model, tools=Odd).collect_sync()
    assert isinstance(outcome, NeedsTools)
    results = await ToolExecutor().run(outcome.round.calls, Dispatcher(Odd))
    assert [result.outcome for result in results] == ["failed", "failed"]
    outcome.round.commit(session, results)


def test_later_is_pickled_whole() -> None:
    twin = pickle.loads(pickle.dumps(Later("n", handle=[1], until=timedelta(1))))
    assert (twin.note, twin.handle, twin.until) == ("n", [1], timedelta(1))


def test_a_promise_is_pickled_and_its_call_is_open_in_a_copy() -> None:
    """As calls and results are; the tool isn't, of a function no more than in a dump."""
    session, round = begun(RENDER)
    (call,) = round.calls
    round.commit(session, [pickle.loads(pickle.dumps(call.later("an hour", handle={"job": 7})))])
    pickled = pickle.loads(pickle.dumps(session))
    for twin in (pickled, copy.deepcopy(session), copy.copy(session)):
        (open_call,) = twin.open_calls
        assert (open_call.note, open_call.handle) == ("an hour", {"job": 7})
        pickle.loads(pickle.dumps(open_call))
        twin.deliver([open_call.complete(Video(url="x"))], tools=Studio)
        assert not twin.open_calls
    assert len(session.open_calls) == 1


def test_a_copy_knows_what_fits_an_open_call() -> None:
    session = promised()
    for twin in (copy.deepcopy(session), copy.copy(session)):
        with pytest.raises(CommitError) as error:
            twin.deliver([twin.open_calls[0].complete(3)])
        assert kinds_of(error) == ["wrong_output"]


def test_names_in_brackets_stay_on_one_line() -> None:
    """LR4: an id may hold anything."""
    session = Session()
    session.push_user("Go.")
    strange = Call("render", {"scene": "a]\n[b"}, id="x]\n[y")
    model = scripted("openai_chat", Reply(calls=[strange, LOOK]))
    outcome = session.text_turn(model, tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    first, second = outcome.round.calls
    outcome.round.commit(session, [first.later(), second.complete("a")])
    session.deliver([session.open_calls[0].complete(Video(url="u"))])
    header = session.transcript[-1].text.partition("\n")[0]  # type: ignore[union-attr]
    assert header.count("]") == 1
    assert header.endswith("of render]")
