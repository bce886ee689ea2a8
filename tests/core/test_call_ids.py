"""Call ids that are missing, taken, or can't be sent (rule C6): in whole answers, streams and
histories, of every API.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from counting import calls_made
from every_api import ADAPTERS
from every_api import APIS as EVERY_API
from hypothesis import given
from hypothesis import strategies as st
from toolkit import LookTools as Tools

from lutumpy import NeedsTools, Session, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.core.call_ids import TakenIds
from lutumpy.doctor import check_messages
from lutumpy.testing import Call, Reply, render

APIS: dict[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
LONE = ["\ud800a", "\udfffa", "\ufffda"]
"""Three ids that are one when lone surrogates are replaced."""


def reply(api: str, ids: list[str], name: str = "look") -> dict[str, Any]:
    arguments = [json.dumps({"n": n}) for n in range(len(ids))]
    if api == "openai_chat":
        calls = [
            {"id": i, "type": "function", "function": {"name": name, "arguments": a}}
            for i, a in zip(ids, arguments, strict=True)
        ]
        return {
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {"role": "assistant", "tool_calls": calls},
                }
            ]
        }
    if api == "openai_responses":
        items = [
            {"type": "function_call", "call_id": i, "name": name, "arguments": a}
            for i, a in zip(ids, arguments, strict=True)
        ]
        return {"status": "completed", "output": items}
    blocks = [
        {"type": "tool_use", "id": i, "name": name, "input": json.loads(a)}
        for i, a in zip(ids, arguments, strict=True)
    ]
    return {"stop_reason": "tool_use", "content": blocks}


def events(api: str, ids: list[str]) -> list[dict[str, Any]]:
    """The same answer as a stream."""
    whole = reply(api, ids)
    if api == "openai_chat":
        calls = whole["choices"][0]["message"]["tool_calls"]
        deltas = [{"tool_calls": [{"index": k, **call}]} for k, call in enumerate(calls)]
        chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
    if api == "openai_responses":
        found: list[dict[str, Any]] = []
        for k, item in enumerate(whole["output"]):
            found += [
                {
                    "type": "response.output_item.added",
                    "output_index": k,
                    "item": {**item, "arguments": ""},
                },
                {"type": "response.output_item.done", "output_index": k, "item": item},
            ]
        return [*found, {"type": "response.completed", "response": whole}]
    found = [{"type": "message_start", "message": {"id": "m", "content": [], "usage": {}}}]
    for k, block in enumerate(whole["content"]):
        piece = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        found += [
            {"type": "content_block_start", "index": k, "content_block": {**block, "input": {}}},
            {"type": "content_block_delta", "index": k, "delta": piece},
            {"type": "content_block_stop", "index": k},
        ]
    return [
        *found,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]


def history(api: str, ids: list[str]) -> list[dict[str, Any]]:
    """A history with these calls and their results, as another program may have written it."""
    user = {"role": "user", "content": "look"}
    whole = reply(api, ids)
    if api == "openai_chat":
        results = [
            {"role": "tool", "tool_call_id": i, "content": f"seen {k}"} for k, i in enumerate(ids)
        ]
        return [user, whole["choices"][0]["message"], *results]
    if api == "openai_responses":
        outputs = [
            {"type": "function_call_output", "call_id": i, "output": f"seen {k}"}
            for k, i in enumerate(ids)
        ]
        return [user, *whole["output"], *outputs]
    blocks = [
        {"type": "tool_result", "tool_use_id": i, "content": f"seen {k}"} for k, i in enumerate(ids)
    ]
    return [
        user,
        {"role": "assistant", "content": whole["content"]},
        {"role": "user", "content": blocks},
    ]


def asked() -> Session:
    session = Session()
    session.push_user("look")
    return session


def committed(session: Session, outcome: Any) -> list[str]:
    assert isinstance(outcome, NeedsTools)
    round = outcome.round
    round.commit(session, [call.complete(f"seen {call.input.n}") for call in round.calls])
    return [call.metadata.id for call in round.calls]


def assert_pairs_everywhere(session: Session, count: int, read_from: str = "") -> None:
    """Every API takes the session, with `count` calls that have the right results, also after a
    dump.

    The Messages API takes no id but of ASCII. What was read from a history of its own goes back to
    it as it is all the same.
    """
    dump = session.dump()
    for loaded in (Session.load(dump), Session.load(json.dumps(dump)), session):
        for api, adapter in APIS.items():
            body = adapter.request(loaded.transcript)
            entries = body["input" if api == "openai_responses" else "messages"]
            problems = check_messages(api, entries, system=body.get("system"))
            assert {p.rule for p in problems} <= (
                {"anthropic.tool_use_id"} if read_from == api else set()
            )
            blocks = [
                e
                for entry in entries
                for e in (entry["content"] if isinstance(entry.get("content"), list) else [])
            ]
            if api == "openai_chat":
                made = [call["id"] for entry in entries for call in entry.get("tool_calls", ())]
                answers = {e["tool_call_id"]: e["content"] for e in entries if e["role"] == "tool"}
            elif api == "openai_responses":
                made = [e["call_id"] for e in entries if e.get("type") == "function_call"]
                answers = {
                    e["call_id"]: e["output"]
                    for e in entries
                    if e.get("type") == "function_call_output"
                }
            else:
                made = [b["id"] for b in blocks if b["type"] == "tool_use"]
                answers = {
                    b["tool_use_id"]: b["content"] for b in blocks if b["type"] == "tool_result"
                }
            assert [answers[call_id] for call_id in made] == [f"seen {k}" for k in range(count)]


@pytest.mark.parametrize("api", APIS)
def test_lone_surrogates_in_the_ids_of_an_answer_are_replaced_and_no_two_become_one_C6(
    api: str,
) -> None:
    session = asked()
    text = json.dumps(reply(api, LONE))
    turn = APIS[api].response(text)
    assert [call.id for call in turn.calls] == ["\ufffda"] * 3
    assert [call.name for call in APIS[api].response(reply(api, LONE, "n\udc00")).calls] == [
        "n\ufffd"
    ] * 3
    ids = committed(session, Tools.offer().read(turn, session))
    assert ids == ["\ufffda", "call00002", "call00003"]
    assert_pairs_everywhere(session, 3)


@pytest.mark.parametrize("api", APIS)
def test_lone_surrogates_in_the_ids_of_a_stream_are_replaced_as_in_a_whole_answer_C6_S1(
    api: str,
) -> None:
    session = asked()
    reader = Tools.offer().reader(APIS[api].stream_decoder(), session)
    told = [event for chunk in events(api, LONE) for event in reader.feed(chunk)]
    outcome = reader.finish()
    ids = (
        [call.metadata.id for call in outcome.round.calls]
        if isinstance(outcome, NeedsTools)
        else []
    )
    assert ids == ["\ufffda", "call00002", "call00003"]
    assert {getattr(event, "id", ids[0]) for event in told} == set(ids)
    committed(session, outcome)
    assert_pairs_everywhere(session, 3)
    whole = asked()
    committed(whole, Tools.offer().read(APIS[api].response(reply(api, LONE)), whole))
    for adapter in APIS.values():
        assert adapter.request(session.transcript) == adapter.request(whole.transcript)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("ids", [LONE, LONE[::-1], ["\ud800"], ["\ud83d\ude00", "\ud83d"]])
def test_lone_surrogates_in_the_ids_of_a_history_are_replaced_and_no_two_become_one_C6(
    api: Any, ids: list[str]
) -> None:
    transcript = Transcript.from_messages(api, history(api, ids))
    found = [call.id for turn in transcript.turns() for call in turn.calls]
    assert len(set(found)) == len(ids)
    json.dumps(found, ensure_ascii=False).encode()
    assert found[0] == ids[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert_pairs_everywhere(Session(transcript), len(ids), api)


def test_two_halves_of_one_character_are_that_character_C6() -> None:
    assert TakenIds().fresh("a\ud83d\ude00", set().__contains__, 0) == "a\U0001f600"


def test_a_call_of_the_older_form_and_one_for_approval_have_names_that_can_be_sent_C6() -> None:
    message = {"role": "assistant", "function_call": {"name": "n\ud800", "arguments": "{}"}}
    legacy = OpenAIChat.response(
        {"choices": [{"message": message, "finish_reason": "function_call"}]}
    )
    assert [call.name for call in legacy.calls] == ["n\ufffd"]
    item = {
        "type": "mcp_approval_request",
        "id": "mcpr_\ud800",
        "name": "n\ud800",
        "arguments": "{}",
        "server_label": "s",
    }
    turn = OpenAIResponses.response({"status": "completed", "output": [item]})
    assert [(call.id, call.name) for call in turn.calls] == [("mcpr_\ufffd", "n\ufffd")]
    session = asked()
    outcome = Tools.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [r.reject("no") for r in outcome.round.approvals])
    Session.load(session.dump())


# --- cost -----------------------------------------------------------------------------------------


class Counted(frozenset[str]):
    """Used ids that count how often they are asked."""

    asked = 0

    def __contains__(self, value: object) -> bool:
        type(self).asked += 1
        return super().__contains__(value)


@pytest.mark.parametrize("taken_by", ["transcript", "answer"])
def test_fresh_ids_are_linear_in_calls_whatever_ids_are_taken_C6(taken_by: str) -> None:
    def asked_for(count: int) -> int:
        high = [f"call{number:05d}" for number in range(count + 1, 2 * count + 1)]
        used = Counted(high if taken_by == "transcript" else ())
        Counted.asked = 0
        taken = TakenIds(high if taken_by == "answer" else ())
        for _ in range(count):
            made = taken.fresh("", used.__contains__, len(used))
            assert made not in taken
            taken.add(made)
        return Counted.asked

    assert asked_for(2000) <= 2.2 * asked_for(1000) < 10_000


@pytest.mark.pure
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("given", ["taken", "empty", "repeated", "half"])
def test_reading_many_calls_without_usable_ids_is_linear_C6(api: str, given: str) -> None:
    def work(count: int) -> int:
        session = asked()
        ids = [f"call{number:05d}" for number in range(count + 1, 2 * count + 1)]
        if given == "taken":
            committed(session, Tools.offer().read(APIS[api].response(reply(api, ids)), session))
            session.push_user("again")
        elif given == "empty":
            ids = [""] * count
        elif given == "repeated":
            ids = ["call00009"] * count
        else:
            ids = [*ids[: count // 2], *[""] * (count // 2)]
        turn = APIS[api].response(reply(api, ids))
        read = Tools.offer().read
        made = calls_made(lambda: read(turn, session).round.discard())  # type: ignore[union-attr]
        streamed = APIS[api].stream_decoder()
        chunks = events(api, ids)
        reader = Tools.offer().reader(streamed, session)
        return made + calls_made(lambda: [reader.feed(chunk) for chunk in chunks])

    assert work(400) <= 2.2 * work(200)


@given(
    used=st.frozensets(st.integers(1, 9).map(lambda n: f"call{n:05d}")),
    wanted=st.lists(st.just("") | st.integers(1, 9).map(lambda n: f"call{n:05d}"), max_size=12),
)
def test_counting_on_gives_the_ids_that_counting_anew_gives_C6(
    used: frozenset[str], wanted: list[str]
) -> None:
    on, anew = TakenIds(), TakenIds()
    for one in wanted:
        anew.counted = 0
        made = on.fresh(one, used.__contains__, len(used))
        assert made == anew.fresh(one, used.__contains__, len(used))
        assert made not in used | on
        on.add(made)
        anew.add(made)


@pytest.mark.parametrize("api", EVERY_API)
def test_an_id_that_repeats_in_an_answer_is_another_one_on_the_wire_C6(api: Any) -> None:
    """In call and result alike, also after a dump; what stands once goes back as it came."""
    session = Session()
    session.push_user("go")
    reply = render(
        Reply(calls=[Call("look", {"n": n}, id=i) for n, i in enumerate(["a", "b", "a"])]),
        api,
        number=1,
        model="m",
    )
    outcome = Tools.offer().read(ADAPTERS[api].response(reply), session)
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.complete("x") for call in outcome.round.calls])
    fresh = outcome.round.calls[2].metadata.id
    for transcript in (session.transcript, Session.load(session.dump()).transcript):
        sent = json.dumps(ADAPTERS[api].messages(transcript))
        assert [sent.count(f'd": "{one}"') for one in ("a", "b", fresh)] == [2, 2, 2]


@pytest.mark.parametrize("api", EVERY_API)
def test_a_call_without_a_name_goes_back_with_one_K5(api: Any) -> None:
    session = Session()
    session.push_user("go")
    reply = render(Reply(calls=[Call("", {"n": 1}, id="a")]), api, number=1, model="m")
    outcome = Tools.offer().read(ADAPTERS[api].response(reply), session)
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.issues
    assert (issue.reason, issue.metadata.name) == ("unknown_tool", "")
    outcome.round.commit(session, [])
    assert 'ame": ""' not in json.dumps(ADAPTERS[api].messages(session.transcript))
