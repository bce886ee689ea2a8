"""Sessions: turns through a model, ephemerals, dumps, forks (rules K4, R4, R5, R6, S4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from every_api import ADAPTERS
from pydantic import BaseModel
from toolkit import OneTool as Tools

from lutumpy import (
    AdapterError,
    AssistantTurn,
    FilePart,
    Finished,
    ImagePart,
    NeedsTools,
    RoundClosedError,
    Session,
    StaleRoundError,
    TextPart,
    Transcript,
    TranscriptError,
    Usage,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, facts_of
from lutumpy.models import CallBlock, Message, ResultBlock, ToolResults, TurnOptions
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, render


def asked(text: str = "go") -> Session:
    session = Session()
    session.push_user(text)
    return session


async def test_a_turn_with_tools_and_one_without() -> None:
    session = asked()
    llm = ScriptedModel(
        [Reply(calls=[Call("a", id="c1")], usage=(5, 7)), Reply(text="Done.", usage=(10, 2))]
    )
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    assert session.turns() == []
    outcome.round.commit(session, [outcome.round.calls[0].complete("x")])
    result = await session.text_turn(llm).collect()
    assert result.text == "Done."
    assert result.finish_reason == "stop"
    assert len(session.turns()) == 2
    assert (
        session.usage.input_tokens,
        session.usage.output_tokens,
        session.usage.total_tokens,
    ) == (15, 9, 24)


def test_the_sync_twins() -> None:
    session = asked()
    llm = ScriptedModel([Reply(calls=[Call("a")]), Reply(text="one"), Reply(text="two")])
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    staged = session.text_turn(llm, tools=Tools).collect_staged_sync()
    assert isinstance(staged, Finished)
    assert session.turns() == []
    staged.commit(session)
    assert session.turns()[-1].text == "one"
    with pytest.raises(RoundClosedError):
        staged.commit(session)
    session.push_user("more")
    plain = session.text_turn(llm).collect_staged_sync()
    plain.discard()
    assert len(session.turns()) == 1


async def test_a_model_that_calls_without_being_offered_a_tool_is_told_so() -> None:
    session = asked()
    result = await session.text_turn(
        ScriptedModel([Reply(text="hm", calls=[Call("a", id="c1")])])
    ).collect()
    assert result.text == "hm"
    last = session.transcript[-1]
    assert isinstance(last, ToolResults)
    assert "No tools are available" in last.results[0].text


def test_calls_of_a_turn_without_tools_are_answered_when_the_staged_answer_is_committed_K4() -> (
    None
):
    session = asked()
    staged = session.text_turn(
        ScriptedModel([Reply(text="hm", calls=[Call("a", id="c1")])])
    ).collect_staged_sync()
    assert len(session.transcript) == 1
    staged.commit(session)
    assert [type(item).__name__ for item in session.transcript] == [
        "Message",
        "AssistantTurn",
        "ToolResults",
    ]


class Meddling:
    """A model during whose request the application goes on talking."""

    def __init__(self, session: Session, reply: Reply) -> None:
        self.session = session
        self.inner = ScriptedModel([reply])

    async def respond(
        self, transcript: Transcript, offering: Any, options: TurnOptions
    ) -> AssistantTurn:
        turn = await self.inner.respond(transcript, offering, options)
        self.session.push_user("meanwhile")
        return turn

    def respond_sync(
        self, transcript: Transcript, offering: Any, options: TurnOptions
    ) -> AssistantTurn:
        raise NotImplementedError


async def test_a_finished_answer_of_a_session_that_moved_on_is_in_the_error_K4() -> None:
    session = asked()
    with pytest.raises(StaleRoundError) as caught:
        await session.text_turn(Meddling(session, Reply(text="late")), tools=Tools).collect()
    assert caught.value.result.text == "late"
    assert [type(i).__name__ for i in session.transcript] == ["Message", "Message"]
    outcome = await session.text_turn(
        Meddling(session, Reply(calls=[Call("a")])), tools=Tools
    ).collect()
    assert isinstance(outcome, NeedsTools)
    with pytest.raises(StaleRoundError):
        outcome.round.commit(session, [outcome.round.calls[0].complete("x")])
    outcome.round.commit(session, [outcome.round.calls[0].complete("x")], rebase=True)


async def test_ephemerals_are_in_the_next_request_only_S4() -> None:
    session = asked()
    session.push_ephemeral_user("today is Monday")
    llm = ScriptedModel([Failure(503, "busy"), Reply(text="one"), Reply(text="two")])
    with pytest.raises(AdapterError):
        await session.text_turn(llm).collect()
    assert len(session.transcript) == 2  # kept when the request fails
    await session.text_turn(llm).collect()
    assert "Monday" in str(llm.requests[-1])
    assert "Monday" not in str(session.dump())
    session.push_user("next")
    await session.text_turn(llm).collect()
    assert "Monday" not in str(llm.requests[-1])


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_every_role_has_messages_that_stay_and_ephemeral_ones_S4(role: str) -> None:
    transcript = Transcript()
    getattr(transcript, f"push_{role}")("stays")
    getattr(transcript, f"push_ephemeral_{role}")("leaves")
    assert list(transcript) == [
        Message(role, (TextPart("stays"),)),  # type: ignore[arg-type]
        Message(role, (TextPart("leaves"),), True),  # type: ignore[arg-type]
    ]


def test_ephemerals_that_reasoning_was_signed_over_leave_with_it_S4() -> None:
    session = asked()
    session.push_ephemeral_user("secret plan")
    offer = Tools.offer()

    def answer(number: int, **reply: Any) -> Any:
        return offer.read(
            AnthropicMessages.response(
                render(Reply(**reply), "anthropic_messages", number=number, model="m")
            ),
            session,
        )

    first = answer(1, reasoning="hm", calls=[Call("a")])
    first.round.commit(session, [first.round.calls[0].complete("x")])
    assert "secret plan" in str(AnthropicMessages.request(session.transcript))
    assert "thinking" in str(AnthropicMessages.request(session.transcript))
    answer(2, text="done")
    session.push_user("next")
    body = str(AnthropicMessages.request(session.transcript))
    assert "secret plan" not in body
    assert "thinking" not in body
    assert "done" in body


def test_a_discarded_signed_answer_lets_the_ephemerals_go_S4() -> None:
    session = asked()
    session.push_ephemeral_user("secret plan")
    reply = render(
        Reply(reasoning="hm", calls=[Call("a")]), "anthropic_messages", number=1, model="m"
    )
    outcome = Tools.offer().read(AnthropicMessages.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    assert [str(i) for i in session.transcript if "secret" in str(i)] == []


def test_an_ephemeral_that_came_after_the_request_stays_for_the_next_S4() -> None:
    session = asked()
    session.push_ephemeral_user("sent")
    outcome = session.text_turn(
        ScriptedModel([Reply(calls=[Call("a")])]), tools=Tools
    ).collect_sync()
    assert isinstance(outcome, NeedsTools)
    session.push_ephemeral_user("not sent")
    outcome.round.commit(session, [outcome.round.calls[0].complete("x")], rebase=True)
    assert [
        item.text for item in session.transcript if isinstance(item, Message) and item.ephemeral
    ] == ["not sent"]
    llm = ScriptedModel([Reply(text="done"), Reply(text="again")])
    session.text_turn(llm).collect_sync()
    assert "not sent" in str(llm.requests[0])
    assert [
        item for item in session.transcript if isinstance(item, Message) and item.ephemeral
    ] == []
    session.push_user("next")
    session.text_turn(llm).collect_sync()
    assert "not sent" not in str(llm.requests[1])


def test_an_ephemeral_that_came_after_the_request_stays_when_the_answer_is_discarded_S4() -> None:
    session = asked()
    session.push_ephemeral_user("sent")
    outcome = session.text_turn(
        ScriptedModel([Reply(calls=[Call("a")])]), tools=Tools
    ).collect_sync()
    assert isinstance(outcome, NeedsTools)
    session.push_ephemeral_user("not sent")
    outcome.round.discard()
    assert [item.text for item in session.transcript if isinstance(item, Message)] == [
        "go",
        "not sent",
    ]


def test_ephemerals_after_those_that_reasoning_held_leave_with_the_next_answer_S4() -> None:
    session = asked()
    session.push_ephemeral_user("held")
    replies = [
        Reply(reasoning="hm", calls=[Call("a")]),
        Reply(text="done"),
        Reply(calls=[Call("a")]),
    ]
    llm = ScriptedModel(replies, api="anthropic_messages")
    first = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(first, NeedsTools)
    first.round.commit(session, [first.round.calls[0].complete("x")])
    session.text_turn(llm).collect_sync()
    session.push_ephemeral_user("later")
    unsigned = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(unsigned, NeedsTools)
    assert [item.text for item in session.transcript if isinstance(item, Message)] == ["go"]
    unsigned.round.discard()


def test_only_what_was_sent_leaves_with_a_discarded_signed_answer_S4() -> None:
    def ephemerals() -> list[str]:
        return [
            item.text for item in session.transcript if isinstance(item, Message) and item.ephemeral
        ]

    session = asked()
    session.push_ephemeral_user("first")
    session.push_ephemeral_user("second")
    replies = [Reply(reasoning="hm", calls=[Call("a")]), Reply(text="one"), Reply(text="two")]
    llm = ScriptedModel(replies, api="anthropic_messages")
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    session.push_user("meanwhile")
    session.push_ephemeral_user("not sent")
    session.push_ephemeral_user("nor this")
    assert ephemerals() == ["first", "second", "not sent", "nor this"]
    outcome.round.discard()
    assert ephemerals() == ["not sent", "nor this"]
    session.text_turn(llm).collect_sync()
    assert ephemerals() == []
    assert ["meanwhile" in str(llm.requests[1]), "not sent" in str(llm.requests[1])] == [True, True]
    assert "first" not in str(llm.requests[1])
    session.push_user("next")
    session.text_turn(llm).collect_sync()
    said = str(llm.requests[2])
    assert ["meanwhile" in said, "one" in said, "not sent" in said, "nor this" in said] == [
        True,
        True,
        False,
        False,
    ]


def test_what_was_said_before_an_unsent_ephemeral_is_sent_once_when_the_sent_ones_leave_S4() -> (
    None
):
    session = asked()
    session.push_ephemeral_user("sent")
    reply = render(
        Reply(reasoning="hm", calls=[Call("a")]), "anthropic_messages", number=1, model="m"
    )
    outcome = Tools.offer().read(AnthropicMessages.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    for text in ("one", "two", "three"):
        session.push_user(text)
    session.push_ephemeral_user("not sent")
    outcome.round.discard()
    body = AnthropicMessages.request(session.transcript)
    plain = asked()
    for text in ("one", "two", "three", "not sent"):
        plain.push_user(text)
    assert body == AnthropicMessages.request(plain.transcript)


def test_ephemerals_that_stay_for_signed_reasoning_stay_in_a_loaded_session_as_well_S4_R4() -> None:
    session = asked()
    session.push_ephemeral_user("secret plan")

    def answer(target: Session, number: int, **reply: Any) -> None:
        turn = AnthropicMessages.response(
            render(Reply(**reply), "anthropic_messages", number=number, model="m")
        )
        outcome = Tools.offer().read(turn, target)
        if isinstance(outcome, NeedsTools):
            outcome.round.commit(target, [call.complete("x") for call in outcome.round.calls])

    answer(session, 1, reasoning="hm", calls=[Call("a", id="c1")])
    loaded = Session.load(session.dump())
    for target in (session, loaded):
        # What was sent belongs to the round that was signed over it: no later window has it.
        target.push_user("and?")
        window = target.transcript.window(max_rounds=1)
        assert [item.text for item in window if isinstance(item, Message)] == ["and?"]
        answer(target, 2, calls=[Call("a", id="c2")])
        assert "secret plan" in str(AnthropicMessages.request(target.transcript))
        assert "thinking" in str(AnthropicMessages.request(target.transcript))
        answer(target, 3, text="done")
        assert "secret plan" not in str(target.dump())
    assert loaded.dump() == session.dump()


@pytest.mark.parametrize("also_user", [False, True])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("anthropic_messages", "claude-sonnet-4-6"), ("anthropic_messages", "claude-opus-4-8")),
        (("anthropic_messages", "claude-sonnet-4-6"), ("openai_responses", "gpt-6.2")),
        (("bedrock_converse", "claude-sonnet-4-6"), ("anthropic_messages", "claude-opus-4-8")),
    ],
)
def test_held_ephemerals_that_the_next_model_takes_as_reminders_are_held_no_more_S4_PB14(
    before: tuple[str, str], after: tuple[str, str], also_user: bool
) -> None:
    hosts = {
        "anthropic_messages": facts_of("api.anthropic.com"),
        "openai_responses": facts_of("api.openai.com"),
        "bedrock_converse": facts_of("bedrock-runtime.us-east-1.amazonaws.com"),
    }
    session, offer = asked(), Tools.offer()

    def step(chosen: tuple[str, str], **reply: Any) -> str:
        api, model = chosen
        adapter = ADAPTERS[api]
        body = adapter.request(session.transcript, offer, model=model, host=hosts[api])
        number = len(session.turns()) + 1
        answer = render(Reply(**reply), api, number=number, model=model)
        outcome = offer.read(adapter.response(answer), session)
        if isinstance(outcome, NeedsTools):
            outcome.round.commit(session, [call.complete("x") for call in outcome.round.calls])
        return str(body)

    session.push_ephemeral_system("It is 14:05.")
    step(before, reasoning="hm", calls=[Call("a")])
    assert session.dump()["held"]
    if also_user:
        session.push_ephemeral_user("By the way.")  # no reasoning is signed over this one
    assert "14:05" in step(after, text="Done.")
    assert "14:05" not in str([*session.transcript])
    state = session.dump()
    assert (state["ephemerals_sent"], state["held"]) == (0, False)
    assert Session.load(state).dump() == state
    # An earlier release left it at that, so its dumps say it.
    assert Session.load({**state, "held": True}).dump() == state
    session.push_ephemeral_user("only once")
    assert "only once" in step(after, calls=[Call("a")])
    assert "only once" not in step(after, text="Done.")


def test_a_transcript_says_how_much_it_holds() -> None:
    session = asked()
    session.text_turn(ScriptedModel([Reply(text="Done.", usage=(5, 7))])).collect_sync()
    assert repr(session.transcript) == "<Transcript of 2 items, 1 turns>"
    assert session.transcript.revision == 2
    assert repr(session) == "<Session of 2 items, 12 tokens>"


def full_session() -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_user(
        [
            "look \ud800",
            ImagePart(data=b"\x00\xff", media_type="image/png"),
            FilePart(url="https://x/a.pdf"),
        ]
    )
    offer = Tools.offer()
    for number, api in enumerate(ADAPTERS, 1):
        replies = [
            Reply(
                reasoning="hm", calls=[Call("a", id=f"c{number}"), Call("b", "{", id=f"d{number}")]
            ),
            Reply(text="so"),
        ]
        for reply in replies:
            outcome = offer.read(
                ADAPTERS[api].response(render(reply, api, number=number, model="m")), session
            )  # type: ignore[arg-type]
            if isinstance(outcome, NeedsTools):
                done = [c.complete("ok") for c in outcome.round.calls]
                outcome.round.commit(session, done)
        session.push_user(f"and {number}?")
    session.push_ephemeral_user("hint")
    return session


def test_a_dump_is_json_and_loads_to_the_same_bytes_R4() -> None:
    session = full_session()
    data = session.dump()
    copy = Session.load(json.loads(json.dumps(data)))
    assert copy.dump() == data
    assert copy.usage == session.usage
    assert Session.load(json.dumps(data)).dump() == data
    for adapter in ADAPTERS.values():
        assert adapter.request(copy.transcript, Tools.offer()) == adapter.request(
            session.transcript, Tools.offer()
        )
    issue = Tools.offer().read(
        OpenAIChat.response(
            render(Reply(calls=[Call("b", "{")]), "openai_chat", number=9, model="m")
        ),
        copy,
    )
    assert isinstance(issue, NeedsTools)
    assert issue.round.issues[0].repeat == 2
    assert (
        len(copy.transcript) == len(session.transcript) - 1
    )  # and so is that the hint is ephemeral
    issue.round.discard()


def broken_dumps() -> list[tuple[str, Any]]:
    good = full_session().dump()

    def changed(**fields: Any) -> dict[str, Any]:
        return {**json.loads(json.dumps(good)), **fields}

    items = good["items"]
    results = next(k for k, i in enumerate(items) if i["item"] == "results")
    renamed = json.loads(json.dumps(items))
    renamed[results]["results"][0]["call_id"] = "other"
    foreign = json.loads(json.dumps(items))
    foreign[results - 1]["native"]["tool_calls"][0]["id"] = "other"
    twice = [*items, items[results - 1], items[results]]
    return [
        ("version", changed(version=99)),
        ("version", {k: v for k, v in good.items() if k != "version"}),
        ("results", changed(items=[i for k, i in enumerate(items) if k != results])),
        ("results", changed(items=[i for k, i in enumerate(items) if k != results - 1])),
        ("results", changed(items=items[:results])),
        ("match", changed(items=renamed)),
        ("native", changed(items=foreign)),
        ("used before", changed(items=twice)),
        ("items", changed(items=None)),
        ("items", changed(items=[3])),
        ("items", changed(items=[{"item": "message", "role": "robot", "parts": []}])),
        ("usage", changed(usage={"input_tokens": "many"})),
        ("usage", changed(usage=None)),
        ("usage", changed(usage={"input_tokens": 1, "thoughts": 2})),
        ("dump", changed(failures=[["a", "{}"]])),
        ("dump", changed(failures=[["a", "{}", "many"]])),
        ("dump", changed(failures=[3])),
        ("failures", changed(failures={})),
        ("unknown item 'memo'", changed(items=[{"item": "memo"}])),
        ("JSON", "{"),
        ("object", "[]"),
        ("object", 3),
    ]


@pytest.mark.parametrize(("about", "data"), broken_dumps())
def test_load_refuses_what_is_no_valid_dump_R4(about: str, data: Any) -> None:
    with pytest.raises(TranscriptError, match=about):
        Session.load(data)


def test_forks_are_independent_R5() -> None:
    session = full_session()
    fork = session.fork()
    assert fork.dump() == session.dump()
    fork.push_user("only here")
    assert len(fork.transcript) == len(session.transcript) + 1
    before = OpenAIChat.request(session.transcript)
    assert "only here" in str(OpenAIChat.request(fork.transcript))
    assert OpenAIChat.request(session.transcript) == before


def clear(value: Any) -> None:
    """Take everything out of a JSON value, at every depth."""
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        clear(inner)
    if isinstance(value, (dict, list)):
        value.clear()


def test_a_requests_dict_is_the_callers_own_R1() -> None:
    session = full_session()
    for adapter in ADAPTERS.values():
        before = adapter.request(session.transcript, Tools.offer())
        body = adapter.request(session.transcript, Tools.offer())
        clear(body)
        assert adapter.request(session.transcript, Tools.offer()) == before


def test_nothing_to_answer_is_said_before_sending_K5() -> None:
    for adapter in ADAPTERS.values():
        empty, only_system = Session(), Session()
        only_system.push_system("Be brief.")
        answered = asked()
        turn = adapter.response(render(Reply(text="x"), adapter.api, number=1, model="m"))  # type: ignore[arg-type]
        Tools.offer().read(turn, answered)
        for session in (empty, only_system, answered):
            with pytest.raises(TranscriptError, match="answer"):
                adapter.request(session.transcript)


def test_no_text_where_the_provider_takes_results_only_R6() -> None:
    session = asked()
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "toolu_1", "name": "a", "input": {}},
    ]
    reply = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {},
    }
    outcome = Tools.offer().read(AnthropicMessages.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [outcome.round.calls[0].complete("x")])
    before = list(session.transcript)
    for push in (session.push_user, session.push_system, session.push_ephemeral_user):
        with pytest.raises(TranscriptError, match="takes no text"):
            push("hello")
    assert list(session.transcript) == before


@pytest.mark.parametrize(
    ("role", "content", "why"),
    [
        ("user", "", "a user message needs content"),
        ("user", "  \n", "a user message needs content"),
        ("user", [], "a user message needs content"),
        ("user", [TextPart("")], "a user message needs content"),
        ("system", [ImagePart(url="https://x/y.png")], "a system message takes text only"),
        ("user", [3], "int is not a content part"),
    ],
)
def test_messages_that_no_provider_takes_are_refused(role: str, content: Any, why: str) -> None:
    session = asked()
    with pytest.raises(TranscriptError, match=f"^{why}.*unchanged$"):
        getattr(session, f"push_{role}")(content)
    assert len(session.transcript) == 1


def test_a_transcript_refuses_edits_that_would_break_it_K5() -> None:
    transcript = Transcript()
    transcript.push_user("go")
    turn = OpenAIChat.response(
        render(
            Reply(calls=[Call("a", id="c1"), Call("a", id="c2")]),
            "openai_chat",
            number=1,
            model="m",
        )
    )
    one, two = ResultBlock("c1", "a", "x"), ResultBlock("c2", "a", "x")
    for results in (
        None,
        ToolResults((one,)),
        ToolResults((two, one)),
        ToolResults((one, one, two)),
    ):
        with pytest.raises(TranscriptError):
            transcript.append_turn(turn, results)
    for ids in (["c1", "c1"], ["c1", ""]):
        blocks = tuple([ResultBlock(call_id, "a", "x") for call_id in ids])
        with pytest.raises(TranscriptError, match="empty, repeated"):
            transcript.append_turn(turn.with_ids(dict(enumerate(ids))), ToolResults(blocks))
    with pytest.raises(TranscriptError, match=r"^AssistantTurn is not a message"):
        transcript.append(turn)  # type: ignore[arg-type]
    assert len(transcript) == 1
    transcript.append_turn(turn, ToolResults((one, two)))
    with pytest.raises(TranscriptError, match="used before"):
        transcript.append_turn(turn, ToolResults((one, two)))
    assert isinstance(transcript[0], Message)
    assert isinstance(transcript.turns()[0].calls[0], CallBlock)


class Contact(BaseModel):
    name: str
    age: int | None = None


async def test_a_structured_turn_has_a_typed_value_or_says_why_not() -> None:
    replies = [
        Reply(text='{"name": "Ada", "age": null}'),
        Reply(text="Sure! Ada."),
        Reply(text='{"name": "A', finish="length"),
        Reply(refusal="I can't."),
        Reply(text='{"value": ["a", "b"]}'),
        Reply(calls=[Call("a")]),
    ]
    llm = ScriptedModel(replies)
    session = asked()
    good = await session.structured_turn(llm, Contact).collect()
    assert good.value == Contact(name="Ada")
    assert good.value_error is None
    assert llm.requests[0]["response_format"]["json_schema"]["name"] == "Contact"
    reasons = []
    for _ in range(3):
        session.push_user("again")
        result = await session.structured_turn(llm, Contact).collect()
        assert result.value is None
        assert result.value_error
        reasons.append(result.value_error)
    assert "cut" in reasons[1]
    assert "refused" in reasons[2]
    session.push_user("again")
    assert (await session.structured_turn(llm, list[str]).collect()).value == ["a", "b"]
    session.push_user("again")
    outcome = await session.structured_turn(llm, Contact, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4, 5, 6) + Usage(1, 1, 1, 1, 1, 1) == Usage(2, 3, 4, 5, 6, 7)


@pytest.mark.parametrize("llm", ["gpt-4.1-mini", None, object()])
def test_what_is_no_model_is_told_before_anything_is_sent(llm: Any) -> None:
    with pytest.raises(TypeError, match="a model is needed"):
        Session().text_turn(llm)


@pytest.mark.parametrize(
    "tools", [[Tools], Tools.__lutumpy_table__, "Tools"], ids=["list", "table", "name"]
)
def test_what_is_no_toolset_is_told_before_anything_is_sent(tools: Any) -> None:
    session = Session()
    with pytest.raises(TypeError, match=r"tools= takes a Toolset class, not .*; nothing was sent"):
        session.text_turn(ScriptedModel([]), tools=tools)


@pytest.mark.parametrize(
    "content", [{"type": "text", "text": "x"}, 3, None], ids=["dict", "number", "none"]
)
def test_content_that_is_no_text_and_no_list_is_refused_and_nothing_is_added(content: Any) -> None:
    session = Session()
    with pytest.raises(
        TranscriptError,
        match=r"a user message takes a text or a list of parts, not .*; "
        "the transcript is unchanged",
    ):
        session.push_user(content)
    assert len(session.transcript) == 0


def test_usage_is_the_sum_whenever_somebody_asks_and_however_much_was_counted() -> None:
    session = Session()
    for number in range(1, 201):
        session.add_usage(Usage(1, 2, 3))
        if number in (1, 64, 65, 66, 200):
            assert session.usage == Usage(number, 2 * number, 3 * number)
    twin = session.fork()
    twin.add_usage(Usage(1))
    assert (session.usage.input_tokens, twin.usage.input_tokens) == (200, 201)
    twin.usage = Usage(5)
    assert twin.usage == Usage(5)
