"""Open calls on Responses, which knows them, and in conversations that move (LR4, LR7, LR18)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from every_api import ADAPTERS, APIS, messages_of
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import (
    CommitError,
    InvalidToolConstraints,
    NeedsTools,
    Session,
    Toolset,
    Transcript,
    TranscriptError,
    text_tool,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.doctor import apply_repairs, check_messages, open_calls, propose_repairs
from lutumpy.models import ToolOffering
from lutumpy.testing import Call, Reply, ScriptedModel

ASTRA = "gpt-6-astra"
API: Any = "openai_responses"


@tool_fn(late=True)
def render(scene: str) -> str:
    """Render a scene."""
    raise NotImplementedError


@text_tool(late=True)
def compose(text: str) -> str:
    """Compose a song."""
    raise NotImplementedError


@tool_fn
def look(what: str) -> str:
    """Look at something."""
    return f"a {what}"


class Studio(Toolset):
    render = tool(render)
    compose = tool(compose)
    look = tool(look)


RENDER = Call("render", {"scene": "beach"}, id="call_1")
LOOK = Call("look", {"what": "cat"}, id="call_2")
SONG = Call("compose", "la", id="call_3", is_text=True)


def astra(*replies: Reply, model: str = ASTRA) -> ScriptedModel:
    return ScriptedModel([*replies], api=API, model=model)


def begun(llm: ScriptedModel) -> tuple[Session, Any]:
    session = Session()
    session.push_user("Render the beach.")
    outcome = session.text_turn(llm, tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def model_of(api: str) -> str | None:
    return ASTRA if api == API else None


def refused(api: str, transcript: Transcript, model: str | None = None) -> list[Any]:
    body = ADAPTERS[api].request(transcript, Studio.offer(), model=model)
    found = check_messages(api, messages_of(api, body))
    return [problem for problem in found if problem.certainty == "refused"]


def items_of(session: Session, model: str | None = ASTRA) -> list[Any]:
    body = OpenAIResponses.request(session.transcript, Studio.offer(), model=model)
    items: list[Any] = body["input"]
    return items


def outputs(items: list[Any]) -> list[tuple[str, str, str]]:
    return [(i["type"], i["call_id"], i["output"]) for i in items if "output" in i]


def test_an_async_call_stays_open_and_its_output_comes_later() -> None:
    """LR4: nothing is sent for it, then the output with the original id, and the same each time."""
    llm = astra(Reply(calls=[RENDER, LOOK, SONG]), Reply(text="Soon."), Reply(text="Done."))
    session, round = begun(llm)
    declared = {t["name"]: t.get("async") for t in llm.requests[0]["tools"]}
    assert declared == {"render": True, "compose": True, "look": None}
    first, second, third = round.calls
    round.commit(session, [first.later("soon"), second.complete("a cat"), third.later()])
    assert outputs(items_of(session)) == [("function_call_output", "call_2", "a cat")]
    assert refused(API, session.transcript, model=ASTRA) == []
    session.text_turn(llm, tools=Studio).collect_sync()
    session.deliver([call.complete(f"{call.tool} done") for call in session.open_calls])
    items = items_of(session)
    assert outputs(items)[1:] == [
        ("function_call_output", "call_1", "render done"),
        ("custom_tool_call_output", "call_3", "compose done"),
    ]
    assert items[-2:] == items_of(session)[-2:]
    assert refused(API, session.transcript, model=ASTRA) == []
    session.text_turn(llm, tools=Studio).collect_sync()
    assert session.answered
    again = Session.load(json.loads(json.dumps(session.dump())))
    for each in (session, again):
        each.push_user("Thanks.")
    assert items_of(again) == items_of(session)


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gpt-6-astra", True),
        ("gpt-6.2-astra", True),
        ("gpt-6.1", True),
        ("gpt-6", False),
        ("gpt-5.6", False),
        ("qwen3", False),
        (None, False),
    ],
)
def test_a_model_that_isnt_known_to_take_async_isnt_sent_the_flag(
    model: str | None, takes: bool
) -> None:
    """LR7; what it then made is sent a placeholder (LR4: the call item decides)."""
    session = Session()
    session.push_user("Go.")
    body = OpenAIResponses.request(session.transcript, Studio.offer(), model=model)
    assert [bool(t.get("async")) for t in body["tools"]] == [takes, takes, False]
    waiting = OpenAIResponses.request(session.transcript, Studio.offer().waiting(), model=model)
    assert not any(t.get("async") for t in waiting["tools"])


def test_another_model_or_host_is_sent_a_placeholder_for_the_same_call() -> None:
    """LR4: in *this* request; so models may change while calls are open."""
    session, round = begun(astra(Reply(calls=[RENDER, LOOK])))
    first, second = round.calls
    round.commit(session, [first.later("soon"), second.complete("a cat")])
    older = items_of(session, "gpt-5.6")
    assert [call_id for _, call_id, _ in outputs(older)] == ["call_1", "call_2"]
    assert not any("async" in item for item in older)
    session.deliver([session.open_calls[0].complete("done")])
    assert outputs(items_of(session))[-1] == ("function_call_output", "call_1", "done")
    told = items_of(session, "gpt-5.6")[-1]
    assert told["role"] == "user"
    assert told["content"].startswith("[Late result of call call_1 of render]")
    for api in APIS:
        assert refused(api, session.transcript) == []


def test_late_beside_programs_and_several_agents_is_refused_before_sending() -> None:
    """LR7 (C9)."""
    session = Session()
    session.push_user("Go.")
    offer = Studio.offer(provider={Studio.render: {API: {"allowed_callers": ["programmatic"]}}})
    with pytest.raises(InvalidToolConstraints, match="programs"):
        OpenAIResponses.request(session.transcript, offer, model=ASTRA)
    extra = {"multi_agent": {"enabled": True}}
    with pytest.raises(InvalidToolConstraints, match="agents"):
        OpenAIResponses.request(session.transcript, Studio.offer(), model=ASTRA, extra=extra)
    alone = Studio.offer(parallel=False)
    assert OpenAIResponses.request(session.transcript, alone, model=ASTRA, extra=extra)


def test_an_offer_for_who_waits_is_made_once() -> None:
    offer = Studio.offer(prefix_stable=True)
    assert offer.waiting() is offer.waiting()
    assert offer.waiting().waiting() is offer.waiting()
    assert not offer.specs[0].equals(offer.waiting().specs[0])
    plain = ToolOffering()
    assert plain.waiting() is plain


CALL = {
    "type": "function_call",
    "call_id": "c1",
    "name": "render",
    "arguments": "{}",
    "async": True,
}
OUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}
USER = {"role": "user", "content": "And?"}


def test_a_history_with_open_calls_is_read_and_goes_back_as_it_was() -> None:
    """LR18: from_messages; the doctor finds nothing to mend."""
    begin = [{"role": "user", "content": "Go."}, CALL]
    assert check_messages(API, begin) == []
    assert propose_repairs(API, begin) == []
    transcript = Transcript.from_messages(API, [*begin, USER])
    assert [call.call_id for call in transcript.open_calls] == ["c1"]
    assert OpenAIResponses.messages(transcript) == [*begin, USER]
    session = Session(transcript)
    session.deliver([session.open_calls[0].complete("done")])
    assert OpenAIResponses.messages(session.transcript) == [*begin, USER, OUT]
    read = Transcript.from_messages(API, [*begin, USER, OUT])
    assert read.open_calls == ()
    assert OpenAIResponses.messages(read) == [*begin, USER, OUT]
    for api in APIS:
        assert refused(api, read) == []
        assert refused(api, transcript) == []
    loaded = Session.load(Session(read).dump()).transcript
    assert OpenAIResponses.messages(loaded) == [*begin, USER, OUT]
    # An output that comes at once is an ordinary one.
    at_once = Transcript.from_messages(API, [*begin, OUT, USER])
    assert not any(getattr(item, "late", None) for item in at_once)
    # Parallel calls, one of which has to be answered.
    other = {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"}
    found = {"type": "function_call_output", "call_id": "c2", "output": "a cat"}
    both = [begin[0], CALL, other, found, USER, OUT]
    mixed = Transcript.from_messages(API, both)
    assert OpenAIResponses.messages(mixed) == both
    assert mixed.open_calls == ()
    with pytest.raises(TranscriptError, match="no output"):
        Transcript.from_messages(API, [begin[0], CALL, other, USER])


def test_open_calls_are_counted_and_closed_when_that_is_asked_for() -> None:
    """LR18."""
    song: dict[str, Any] = {"type": "custom_tool_call", "call_id": "c2", "name": "compose"}
    song |= {"input": "la", "async": True}
    history = [{"role": "user", "content": "Go."}, CALL, song, USER]
    assert [p.call_ids for p in open_calls(API, history)] == [("c1",), ("c2",)]
    assert open_calls(API, [*history, OUT])[0].call_ids == ("c2",)
    assert open_calls("openai_chat", []) == []
    assert open_calls(API, "Go.") == []
    repairs = propose_repairs(API, history, close_open=True)
    assert [repair.kind for repair in repairs] == ["close_call", "close_call"]
    closed = apply_repairs(history, repairs)
    assert open_calls(API, closed) == []
    assert check_messages(API, closed) == []
    assert [i.get("call_id") for i in closed if "output" in i] == ["c1", "c2"]


def test_an_ordinary_call_without_an_output_is_still_refused() -> None:
    """LR18: only `async: true` on the item opens a call; a second output is told."""
    plain = {name: value for name, value in CALL.items() if name != "async"}
    (problem,) = check_messages(API, [plain])
    assert problem.message == "No tool output found for function call c1."
    rules = [p.rule for p in check_messages(API, [CALL, OUT, USER, OUT])]
    assert rules == ["responses.duplicate_output"]


STEPS = ("call", "deliver", "push", "answer", "fork", "dump", "window", "build")


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=14), st.lists(st.sampled_from(APIS), min_size=1))
def test_any_order_of_steps_leaves_what_every_api_takes(steps: list[str], apis: list[Any]) -> None:
    """LR2, LR4, LR16, LR17: after each step every API takes the transcript; and each late value is
    in it once, with the arguments where the call went with a window.
    """
    session = Session()
    session.push_user("Begin.")
    delivered: list[str] = []
    number = 0
    for step in steps:
        number += 1
        api = apis[number % len(apis)]
        if step == "call" and not session.transcript.waits and not session.answered:
            call = Call("render", {"scene": f"s{number}"}, id=f"call_{number}")
            llm = ScriptedModel([Reply(calls=[call, LOOK])], api=api, model=model_of(api) or "m")
            outcome = session.text_turn(llm, tools=Studio).collect_sync()
            assert isinstance(outcome, NeedsTools)
            first, second = outcome.round.calls
            outcome.round.commit(session, [first.later(), second.complete("a cat")])
        elif step == "deliver" and session.open_calls:
            session.deliver([session.open_calls[-1].complete(f"value-{number}.")])
            delivered.append(f"value-{number}.")
        elif step == "push":
            session.push_user(f"More {number}.")
        elif step == "answer" and not session.transcript.waits and not session.answered:
            llm = ScriptedModel([Reply(text="So.")], api=api, model=model_of(api) or "m")
            session.text_turn(llm, tools=Studio).collect_sync()
        elif step == "fork":
            session = session.fork()
        elif step == "dump":
            session = Session.load(json.dumps(session.dump()))
        elif step == "build":
            session = Session.build(session.items_since(Session().head), session.state())
        elif step == "window":
            before = session.open_calls
            session = Session(session.transcript.window(max_rounds=2))
            assert [c.call_id for c in session.open_calls] == [c.call_id for c in before]
        if session.answered or session.transcript.waits:
            continue
        for each in APIS:
            assert refused(each, session.transcript, model_of(each)) == []
    if session.answered or session.transcript.waits:
        session.push_user("End.")
    kept = session.transcript
    texts = json.dumps(session.dump()["items"])
    for each in APIS:
        body = ADAPTERS[each].request(kept, Studio.offer(), model=model_of(each))
        sent = json.dumps(body)
        for value in delivered:
            assert sent.count(value) == texts.count(value) <= 1
    for call_ in session.open_calls:
        session.deliver([call_.complete("x")])
        with pytest.raises(CommitError):
            session.deliver([call_.complete("x")])
