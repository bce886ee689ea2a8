"""What a provider says it changed of a request is kept with the turn, and never sent."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage
from every_api import ADAPTERS, CHECKS
from openai.types.responses import Response

from lutumpy import AssistantTurn, Session
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.errors import TranscriptError

MESSAGES, RESPONSES = "anthropic_messages", "openai_responses"
DROPPED = {
    "type": "thinking_dropped",
    "path": "messages.1.content.0",
    "reason": "prefix_binding_mismatch",
}
REMOVED = {"type": "reasoning", "id": "rs_1", "action": "removed", "reason": "prefix_mismatch"}
ENTRIES: dict[str, dict[str, Any]] = {MESSAGES: DROPPED, RESPONSES: REMOVED}

MESSAGE: dict[str, Any] = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [{"type": "text", "text": "Yes."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "status": "completed",
    "model": "gpt-6.2",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
        }
    ],
}
WHOLE = {MESSAGES: MESSAGE, RESPONSES: RESPONSE}


def whole(api: str, entries: Any) -> dict[str, Any]:
    return {**WHOLE[api], "input_transformations": entries}


def stream(api: str, begin: Any, end: Any) -> list[dict[str, Any]]:
    """The same answer streamed: what the first event says of the field, and what the last does."""
    first = {} if begin is None else {"input_transformations": begin}
    last = {"input_transformations": end}
    if api == RESPONSES:
        begun = {"id": "resp_1", "status": "in_progress", "output": [], **first}
        return [
            {"type": "response.created", "response": begun},
            {"type": "response.completed", "response": {**RESPONSE, **last}},
        ]
    block = {"type": "content_block_start", "index": 0, "content_block": MESSAGE["content"][0]}
    return [
        {"type": "message_start", "message": {**MESSAGE, "content": [], **first}},
        block,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **last},
        {"type": "message_stop"},
    ]


def streamed(api: str, events: Sequence[Any]) -> AssistantTurn:
    decoder = ADAPTERS[api].stream_decoder()
    for event in events:
        decoder.feed(event)
    turn: AssistantTurn = decoder.finish()
    return turn


@pytest.mark.parametrize("api", WHOLE)
def test_they_are_kept_of_whole_answers_and_of_streams_PB11(api: str) -> None:
    entry = ENTRIES[api]
    expected = (entry, {"type": "tomorrow", "what": [1, None]})
    given = list(expected)
    assert ADAPTERS[api].response(whole(api, given)).input_transformations == expected
    assert streamed(api, stream(api, given, None)).input_transformations == expected
    assert streamed(api, stream(api, None, given)).input_transformations == expected
    # After a change of models in the middle of a stream, the last event has the list that counts.
    assert streamed(api, stream(api, given, [entry])).input_transformations == (entry,)
    assert streamed(api, stream(api, given, [])).input_transformations == ()


@pytest.mark.parametrize("api", WHOLE)
def test_a_stream_that_broke_off_has_them_in_what_arrived(api: str) -> None:
    decoder = ADAPTERS[api].stream_decoder()
    decoder.feed(stream(api, [ENTRIES[api]], None)[0])
    assert decoder.partial().input_transformations == (ENTRIES[api],)


def test_objects_of_the_sdks_have_them_too() -> None:
    message = BetaMessage.model_validate(whole(MESSAGES, [DROPPED]))
    assert AnthropicMessages.response(message).input_transformations == (DROPPED,)
    body = {"object": "response", "created_at": 1, "tools": [], "tool_choice": "auto"}
    response = Response.model_construct(**{**whole(RESPONSES, [REMOVED]), **body})
    assert OpenAIResponses.response(response).input_transformations == (REMOVED,)


@pytest.mark.parametrize("api", WHOLE)
def test_they_survive_a_dump_and_are_never_sent_R1(api: str) -> None:
    session = Session()
    session.push_user("Yes?")
    session.transcript.append_turn(ADAPTERS[api].response(whole(api, [ENTRIES[api]])))
    session.push_user("And?")
    loaded = Session.load(json.loads(json.dumps(session.dump())))
    assert loaded.turns()[-1].input_transformations == (ENTRIES[api],)
    assert loaded.turns() == session.turns()
    for name, adapter in ADAPTERS.items():
        for each in (session, loaded):
            body = adapter.request(each.transcript, model="m")
            assert "transformations" not in json.dumps(body)
            if name == api:
                body = {**body, "model": "m"}
                assert not [p for p in CHECKS[api](body) if p.certainty == "refused"]


def test_a_turn_keeps_a_copy_and_still_has_a_hash() -> None:
    entry: dict[str, Any] = {**DROPPED, "more": {"a": 1}}
    turn = AnthropicMessages.response(whole(MESSAGES, [entry]))
    entry["more"]["a"] = 2
    assert turn.input_transformations[0]["more"] == {"a": 1}
    session = Session()
    session.push_user("Yes?")
    session.transcript.append_turn(turn)
    dumped = session.dump()
    dumped["items"][1]["input_transformations"][0]["more"]["a"] = 3
    assert turn.input_transformations[0]["more"] == {"a": 1}
    assert len({turn, AnthropicMessages.response(whole(MESSAGES, [DROPPED]))}) == 2


@pytest.mark.parametrize("wrong", [{}, "x", [1], [None], 5])
def test_a_dump_with_something_else_in_their_place_is_refused(wrong: Any) -> None:
    session = Session()
    session.push_user("Yes?")
    session.transcript.append_turn(AnthropicMessages.response(whole(MESSAGES, [DROPPED])))
    dumped = session.dump()
    dumped["items"][1]["input_transformations"] = wrong
    with pytest.raises(TranscriptError):
        Session.load(dumped)


def _any_json(random_: random.Random, depth: int = 0) -> Any:
    kind = random_.randrange(8 if depth < 3 else 6)
    if kind < 6:
        return random_.choice([None, True, 0, -1.5, "x", "é\ud800", float("nan"), "type"])
    size = random_.randrange(4)
    if kind == 6:
        return [_any_json(random_, depth + 1) for _ in range(size)]
    return {
        random_.choice(["type", "path", "id", "x"]): _any_json(random_, depth + 1)
        for _ in range(size)
    }


@pytest.mark.parametrize("api", WHOLE)
def test_nothing_in_their_place_makes_an_answer_unreadable(api: str) -> None:
    """What a provider writes there is kept if it is a list of objects, streamed or not, and its
    dump can be loaded.
    """
    random_ = random.Random(api)
    kept = 0
    for _ in range(1500):
        entries = random_.choice([_any_json(random_), [_any_json(random_) for _ in range(3)]])
        turn = ADAPTERS[api].response(whole(api, entries))
        assert streamed(api, stream(api, entries, None)) == turn
        listed = entries if isinstance(entries, list) else []
        assert len(turn.input_transformations) == sum(isinstance(each, dict) for each in listed)
        if turn.input_transformations:
            session = Session()
            session.push_user("Yes?")
            session.transcript.append_turn(turn)
            loaded = Session.load(json.loads(json.dumps(session.dump())))
            assert loaded.turns() == [turn]
            kept += 1
    assert kept > 50
