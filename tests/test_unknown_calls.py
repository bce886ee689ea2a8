"""Calls of kinds that nobody knows: each is an issue that is answered (C8, S1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from every_api import ADAPTERS

from lutumpy import (
    AssistantTurn,
    Finished,
    ImagePart,
    NeedsTools,
    Session,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutumpy.dumps import dump_transcript, load_transcript
from lutumpy.streaming import CallDelta, CallDone

ARGUMENTS = {"path": "x"}
TEXT = json.dumps(ARGUMENTS)


@tool_fn
def look(path: str) -> str:
    """Look at a file."""
    return path


class Tools(Toolset):
    look = tool(look)


def responses(*items: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A reply, and the events of the same one streamed."""
    reply = {"id": "resp_1", "status": "completed", "output": list(items)}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(items):
        begun = {key: value for key, value in item.items() if key in ("type", "id", "call_id")}
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": begun},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    return reply, [*events, {"type": "response.completed", "response": reply}]


def messages(
    *blocks: dict[str, Any], stop: str = "tool_use"
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    reply = {"id": "msg_1", "content": list(blocks), "stop_reason": stop}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, block in enumerate(blocks):
        begun = {**block, **({"input": {}} if "input" in block else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        if "input" in block:
            piece = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events.append({"type": "content_block_delta", "index": index, "delta": piece})
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": stop}}, {"type": "message_stop"}]
    return reply, events


def converse(*blocks: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    message = {"role": "assistant", "content": list(blocks)}
    reply = {"output": {"message": message}, "stopReason": "tool_use"}
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(blocks):
        ((key, inner),) = block.items()
        where = {"contentBlockIndex": index}
        begun = {name: value for name, value in inner.items() if name != "input"}
        events.append({"contentBlockStart": {**where, "start": {key: begun}}})
        if "input" in inner:
            delta = {key: {"input": json.dumps(inner["input"])}}
            events.append({"contentBlockDelta": {**where, "delta": delta}})
        events.append({"contentBlockStop": where})
    return reply, [*events, {"messageStop": {"stopReason": "tool_use"}}]


def gemini(*parts: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    def response(parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": parts}, **more}]}

    events = [response([part]) for part in parts]
    return response(list(parts), finishReason="STOP"), [*events, response([], finishReason="STOP")]


def chat(
    *calls: dict[str, Any], stop: str = "tool_calls", **fields: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    message = {"role": "assistant", "content": None, **fields}
    if calls:
        message["tool_calls"] = list(calls)
    reply = {"choices": [{"message": message, "finish_reason": stop}]}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    deltas += [{key: value} for key, value in fields.items()]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(calls)]
    events: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": one}]} for one in deltas]
    return reply, [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}]


def ollama(*calls: Any, **fields: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    message = {"role": "assistant", "content": "", **fields}
    if calls:
        message["tool_calls"] = list(calls)
    events = [
        {"message": {"role": "assistant", "content": "", key: value}, "done": False}
        for key, value in message.items()
        if key not in ("role", "content")
    ]
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    return {**end, "message": message}, [*events, end]


def item(kind: str, call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"{kind}_{call_id}", "call_id": call_id, **more}


def use(kind: str, call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": call_id, "name": "look", "input": ARGUMENTS, **more}


def tool_use(key: str, call_id: str, **more: Any) -> dict[str, Any]:
    return {key: {"toolUseId": call_id, "name": "look", **more, "input": ARGUMENTS}}


def part(key: str, call_id: str, **more: Any) -> dict[str, Any]:
    return {key: {"id": call_id, "name": "look", "args": ARGUMENTS, **more}}


def chat_call(call_id: str, kind: str = "function", **more: Any) -> dict[str, Any]:
    body = {"name": "look", "arguments": TEXT}
    return {"id": call_id, "type": kind, **(more or {kind: body})}


PLAIN = {"id": "b", "function": {"name": "look", "arguments": ARGUMENTS}}
FUNCTION = item("function_call", "b", name="look", arguments=TEXT)
# An answer with a call of no known kind before one that can be run.
MIXED: list[tuple[str, Any]] = [
    ("openai_responses", responses(item("foo_call", "a", name="look", arguments=TEXT), FUNCTION)),
    ("openai_responses", responses(item("foo_call", "a", action=ARGUMENTS), FUNCTION)),
    ("openai_responses", responses(item("order", "a", input=TEXT), FUNCTION)),
    ("openai_responses", responses(item("computer_call", "a", action={}), FUNCTION)),
    ("anthropic_messages", messages(use("foo_use", "a"), use("tool_use", "b"))),
    ("anthropic_messages", messages(use("foo_use", "a"), use("tool_use", "b"), stop="new_reason")),
    ("bedrock_converse", converse(tool_use("fooUse", "a"), tool_use("toolUse", "b"))),
    ("gemini_generate_content", gemini(part("fooCall", "a"), part("functionCall", "b"))),
    ("openai_chat", chat(chat_call("a", "foo"), chat_call("b"))),
    ("ollama_chat", ollama({"id": "a", "foo": {"name": "look", "arguments": {}}}, PLAIN)),
    # With nothing but an id and a word that says what it is.
    ("openai_responses", responses(item("foo_call", "a", status="completed"), FUNCTION)),
    ("openai_responses", responses({"type": "foo_request", "call_id": "a"}, FUNCTION)),
    ("anthropic_messages", messages({"type": "foo_use", "id": "a"}, use("tool_use", "b"))),
    (
        "bedrock_converse",
        converse({"fooUse": {"toolUseId": "a"}}, tool_use("toolUse", "b")),
    ),
    ("gemini_generate_content", gemini({"fooCall": {"id": "a"}}, part("functionCall", "b"))),
    ("openai_chat", chat({"id": "a", "type": "foo"}, chat_call("b"))),
    ("ollama_chat", ollama({"id": "a", "type": "foo"}, PLAIN)),
]
# Under a key, or as a part, that nobody knows; such a call follows those that are known.
ELSEWHERE: list[tuple[str, Any]] = [
    ("openai_chat", chat(chat_call("b"), foo_calls=[{"id": "a", "name": "look", "input": {}}])),
    ("openai_chat", chat(chat_call("b"), foo_call={"id": "a", "name": "x y", "args": ARGUMENTS})),
    ("openai_chat", chat(chat_call("b"), content=[use("tool_use", "a")])),
    ("ollama_chat", ollama(PLAIN, foo_calls=[{"id": "a", "name": "look", "arguments": {}}])),
]
# The same where the provider has run the unknown call itself, or goes on with it.
RUN: list[tuple[str, Any]] = [
    ("openai_responses", responses(item("foo_call", "a", name="look", arguments=TEXT, output="x"))),
    (
        "openai_responses",
        responses(item("foo_call", "a", action={}), item("foo_call_output", "a", output="x")),
    ),
    (
        "openai_responses",
        responses(item("foo_call", "a", action={}), item("foo_answer", "a", result="x")),
    ),
    ("openai_responses", responses({"type": "foo_call", "id": "i", "status": "completed"})),
    (
        "anthropic_messages",
        messages(
            use("foo_use", "a"),
            {"type": "foo_result", "tool_use_id": "a", "content": "x"},
            {"type": "text", "text": "Done."},
            stop="end_turn",
        ),
    ),
    ("anthropic_messages", messages(use("foo_use", "a"), stop="pause_turn")),
    (
        "bedrock_converse",
        converse(tool_use("fooUse", "a"), {"fooResult": {"toolUseId": "a", "content": []}}),
    ),
    (
        "bedrock_converse",
        converse(
            tool_use("toolUse", "a", type="foo"),
            {"fooResult": {"toolUseId": "a", "content": []}},
        ),
    ),
    (
        "gemini_generate_content",
        gemini(part("fooCall", "a"), {"fooResponse": {"id": "a", "response": {"x": 1}}}),
    ),
    (
        "openai_chat",
        chat(foo_calls=[{"id": "a", "name": "look", "input": {}, "output": "x"}], stop="stop"),
    ),
    ("openai_chat", chat(files=[{"id": "a", "name": "x.pdf"}], stop="stop")),
    ("ollama_chat", ollama(foo_calls=[{"name": "look", "arguments": {}, "result": 1}])),
]


def streamed(api: str, events: list[dict[str, Any]]) -> tuple[AssistantTurn, list[Any]]:
    decoder: Any = ADAPTERS[api].stream_decoder()
    deltas = [delta for event in events for delta in decoder.feed(event)]
    return decoder.finish(), deltas


@pytest.mark.parametrize(("api", "answer"), [*MIXED, *ELSEWHERE])
def test_an_unknown_call_is_an_issue_and_is_answered_and_its_sibling_runs_C8_C1(
    api: str, answer: Any
) -> None:
    session = Session()
    session.push_user("go")
    outcome = Tools.offer().read(ADAPTERS[api].response(answer[0]), session)
    assert isinstance(outcome, NeedsTools)
    (issue,), (call,) = outcome.round.issues, outcome.round.calls
    assert (issue.reason, call.arguments) == ("unknown_tool", ARGUMENTS)
    assert "can't be run here" in issue.detail
    outcome.round.commit(session, [call.complete("found")])
    body = ADAPTERS[api].request(session.transcript, Tools.offer())
    sent = json.dumps(body)
    assert "Tool call rejected" in sent or "computer_call_output" in sent
    assert sent.count('"a"') >= 2  # the call and its answer
    # And so in every other API, after a dump, and for whoever reads the request.
    loaded = load_transcript(json.loads(json.dumps(dump_transcript(session.transcript))))
    assert ADAPTERS[api].request(loaded, Tools.offer()) == body
    for other in ADAPTERS.values():
        assert other.request(loaded, Tools.offer())
    history = body.get("input") or body.get("messages") or body.get("contents")
    again = Transcript.from_messages(api, history)
    assert len([c for turn in again.turns() for c in turn.calls]) == 2
    assert ADAPTERS[api].request(again, Tools.offer()) == body


@pytest.mark.parametrize(("api", "answer"), [*MIXED, *ELSEWHERE, *RUN])
def test_a_stream_with_an_unknown_call_ends_in_what_the_whole_answer_gives_S1_C8(
    api: str, answer: Any
) -> None:
    whole = ADAPTERS[api].response(answer[0])
    turn, deltas = streamed(api, answer[1])
    assert turn == whole
    texts: dict[int, str] = {}
    for delta in deltas:
        if isinstance(delta, CallDelta):
            assert delta.id == turn.calls[delta.index].id
            texts[delta.index] = texts.get(delta.index, "") + delta.arguments
    assert [json.loads(texts[k] or "{}") for k in range(len(turn.calls))] == [
        json.loads(call.arguments or "{}") for call in turn.calls
    ]
    done = [delta for delta in deltas if isinstance(delta, CallDone)]
    assert [(delta.index, delta.call) for delta in done] == list(enumerate(turn.calls))


@pytest.mark.parametrize(("api", "answer"), RUN)
def test_what_the_provider_has_run_itself_is_not_a_call_whatever_its_kind_C8(
    api: str, answer: Any
) -> None:
    session = Session()
    session.push_user("go")
    outcome = Tools.offer().read(ADAPTERS[api].response(answer[0]), session)
    assert isinstance(outcome, Finished)
    if outcome.result.finish_reason != "paused":
        session.push_user("And now?")
    sent = json.dumps(ADAPTERS[api].request(session.transcript, Tools.offer()))
    for entry in answer[0].get("content") or answer[0].get("output") or ():
        if isinstance(entry, dict):
            assert json.dumps(entry) in sent


def test_the_pieces_of_an_unknown_block_of_converse_are_put_together_C8() -> None:
    start = {"contentBlockIndex": 0, "start": {"fooUse": {"toolUseId": "a", "name": "look"}}}
    deltas: list[dict[str, Any]] = [
        {"fooUse": {"input": '{"path"', "step": 1}},
        {"fooUse": {"input": ': "x"}', "step": 2, "none": None}},
        {"newKey": {"note": "so "}, "other": None},
        {"newKey": {"note": "far"}},
        {"newKey": "text"},
    ]
    events = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": start},
        *[{"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}} for delta in deltas],
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]
    turn, _ = streamed("bedrock_converse", events)
    whole = {"toolUseId": "a", "name": "look", "step": 2, "input": ARGUMENTS, "note": "so far"}
    assert json.loads(turn.native) == [{"fooUse": whole}]
    assert [json.loads(call.arguments) for call in turn.calls] == [ARGUMENTS]


def test_arguments_of_converse_under_an_unknown_key_are_arguments_C8() -> None:
    _, events = converse(tool_use("toolUse", "a"))
    for piece in ({"newKey": None}, {"newKey": {"input": TEXT}}):
        events.insert(3, {"contentBlockDelta": {"contentBlockIndex": 0, "delta": piece}})
    del events[2]  # the piece under the known key
    turn, _ = streamed("bedrock_converse", events)
    assert [(call.kind, json.loads(call.arguments)) for call in turn.calls] == [
        ("function", ARGUMENTS)
    ]


def test_what_says_nothing_of_what_is_wanted_is_a_call_by_id_and_name_C8() -> None:
    turn = ADAPTERS["bedrock_converse"].response(
        converse({"fooUse": {"toolUseId": "a", "name": "look"}})[0]
    )
    assert [(call.name, call.arguments) for call in turn.calls] == [("look", "")]


def test_a_call_whose_id_comes_with_its_end_counts_when_that_is_known_S1() -> None:
    """Hosts leave fields out of the beginning of an item."""
    shell = item("shell_call", "a", action={"commands": ["ls"]})
    for more in ([], [item("shell_call_output", "a", output=[])]):
        reply, events = responses(shell, *more, FUNCTION)
        for event in events:
            if event["type"] == "response.output_item.added":
                event["item"].pop("call_id")
        turn, deltas = streamed("openai_responses", events)
        assert turn == ADAPTERS["openai_responses"].response(reply)
        done = [delta for delta in deltas if isinstance(delta, CallDone)]
        assert [(delta.index, delta.call) for delta in done] == list(enumerate(turn.calls))


def spoilt_deltas(api: str) -> list[list[dict[str, Any]]]:
    """Streams in which a piece of a call's arguments comes in a form that nobody knows."""
    if api == "anthropic_messages":
        _, events = messages(use("tool_use", "a"))
        found = []
        for delta in ({"type": "new_delta", "data": "y"}, {"type": "new_delta", "partial_json": 1}):
            event = {"type": "content_block_delta", "index": 0, "delta": delta}
            found += [[*events[:2], event, *events[3:]], [*events[:3], event, *events[3:]]]
        return found
    _, events = converse(tool_use("toolUse", "a"))
    found = []
    for inner in ({"data": "y"}, "y", 1):
        delta = {"contentBlockIndex": 0, "delta": {"newKind": inner}}
        event = {"contentBlockDelta": delta}
        found += [[*events[:2], event, *events[3:]], [*events[:3], event, *events[3:]]]
    return found


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
def test_a_call_with_a_piece_that_nobody_understands_is_never_run_C2_C8(api: str) -> None:
    for events in spoilt_deltas(api):
        turn, _ = streamed(api, events)
        outcome = Tools.offer().read(turn, Session())
        assert isinstance(outcome, NeedsTools)
        assert [issue.reason for issue in outcome.round.issues] == ["malformed_arguments"]
        outcome.round.discard()


def test_a_computer_call_is_answered_by_a_picture_where_there_is_one_C8() -> None:
    reply, _ = responses(item("computer_call", "a", action={"type": "screenshot"}))
    session = Session()
    session.push_user("go")
    outcome = Tools.offer().read(ADAPTERS["openai_responses"].response(reply), session)
    assert isinstance(outcome, NeedsTools)
    picture = ImagePart(b"\x89PNG", "image/png")
    (issue,) = outcome.round.issues
    outcome.round.commit(session, [issue.fail("not allowed", content=[picture])])
    *_, answer = ADAPTERS["openai_responses"].request(session.transcript)["input"]
    assert answer["type"] == "computer_call_output"
    assert answer["output"]["image_url"].startswith("data:image/png;base64,")
    assert answer["status"] == "incomplete"
