"""What a session was made from, and what it has given out, may be changed by who holds it.

Nothing of that changes what is sent or dumped (R1, R4, R5).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from every_api import ADAPTERS
from pydantic import BaseModel

from lutumpy import LutumpyError, NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.models import Api, dump_turn
from lutumpy.testing import Call, Reply, ScriptedModel, render_stream

FIXTURES = Path(__file__).parent / "fixtures"
every_api = pytest.mark.parametrize("api", ADAPTERS)
Events = list[dict[str, Any]]


@tool_fn(late=True)
def render(scene: str, sizes: dict[str, list[int]] | None = None) -> str:
    """Render a scene."""
    raise NotImplementedError


@tool_fn(provider={"anthropic_messages": {"cache_control": {"type": "ephemeral"}}})
def look_up(key: str) -> dict[str, list[int]]:
    """Look something up."""
    raise NotImplementedError


class Booking(BaseModel):
    day: str


class Tools(Toolset):
    render = tool(render)
    look_up = tool(look_up)


def spoil(value: Any) -> None:
    """Change every object and list within a JSON value in place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            spoil(inner)
            if not isinstance(inner, (dict, list)):
                value[key] = "spoiled"
        value["spoiled"] = "spoiled"
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            spoil(inner)
            if not isinstance(inner, (dict, list)):
                value[index] = "spoiled"
        value.append("spoiled")


# --- dumps ----------------------------------------------------------------------------------------


def conversation(api: Api) -> Session:
    """With a promise, tools and the form of an answer in its records, and an ephemeral."""
    replies = [
        Reply(calls=[Call("render", {"scene": "sea"}), Call("look_up", {"key": "k"})]),
        Reply('{"day": "Monday"}'),
    ]
    llm = ScriptedModel(replies, api=api, check=False)
    session = Session()
    session.push_user("go")
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    late, other = outcome.round.calls
    outcome.round.commit(session, [late.later("soon", handle={"jobs": [1]}), other.complete({})])
    session.push_user("and now?")
    session.structured_turn(llm, Booking).collect_sync()
    session.push_user("next")
    session.push_ephemeral_user("It is noon.")
    return session


def sent_by(session: Session) -> dict[str, str]:
    bodies = {name: a.request(session.transcript, Tools.offer()) for name, a in ADAPTERS.items()}
    return {name: json.dumps(value) for name, value in {**bodies, "dump": session.dump()}.items()}


def loaded(data: dict[str, Any]) -> tuple[Session, Any]:
    return Session.load(data), data


def built(data: dict[str, Any]) -> tuple[Session, Any]:
    whole = Session.load(data)
    parts = json.loads(json.dumps([whole.items_since(Session().head), whole.state()]))
    return Session.build(*parts), parts


def dumped(data: dict[str, Any]) -> tuple[Session, Any]:
    session = Session.load(data)
    return session, [session.dump(), session.items_since(Session().head), session.state()]


def asked(data: dict[str, Any]) -> tuple[Session, Any]:
    session = Session.load(data)
    return session, [a.request(session.transcript, Tools.offer()) for a in ADAPTERS.values()]


@every_api
@pytest.mark.parametrize("share", [loaded, built, dumped, asked], ids=lambda share: share.__name__)
def test_who_changes_a_dump_or_a_request_changes_no_session_R4(
    api: Api, share: Callable[[dict[str, Any]], tuple[Session, Any]]
) -> None:
    data = conversation(api).dump()
    expected = sent_by(Session.load(copy.deepcopy(data)))
    session, held = share(copy.deepcopy(data))
    spoil(held)
    assert sent_by(session) == expected


# --- streams --------------------------------------------------------------------------------------


def recorded_streams(api: Api) -> Iterator[Events]:
    """Those of the API itself and of hosts that speak it; and two that were made here."""
    for path in sorted(FIXTURES.glob(f"*{api}_sse.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            lines = json.loads(line)["response"].splitlines()
            data = [each[5:].strip() for each in lines if each.startswith("data:")]
            yield [json.loads(each) for each in data if each and each != "[DONE]"]
    for path in FIXTURES.glob(f"{api}_ndjson.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            lines = json.loads(line)["response"].splitlines()
            yield [json.loads(each) for each in lines if each.strip()]
    for reply in (
        Reply("Well.", calls=[Call("look_up", {"key": "k"}), Call("look_up", {"key": "l"})]),
        Reply("Well.", reasoning="hm"),
    ):
        yield json.loads(json.dumps(list(render_stream(reply, api, number=1, model="m"))))


ODD_STREAMS: dict[str, list[Events]] = {
    "openai_chat": [
        [
            {"id": "1", "model": "m", "choices": [{"delta": delta}]}
            for delta in (
                {"content": [{"type": "image", "url": {"at": "u"}}]},
                {"content": [{"type": "thinking", "thinking": [{"type": "seen", "in": ["x"]}]}]},
                {"reasoning_details": ["odd", {"type": "sealed", "data": {"of": ["x"]}}]},
                {"thinking_blocks": [{"type": "redacted_thinking", "data": {"of": "x"}}]},
                {"executed_tools": [{"index": 0, "output": {"of": "x"}}, {"type": "odd"}]},
                {"annotations": [{"type": "url", "url": {"at": "u"}}]},
                {"tool_calls": [["odd"], {"index": 0, "id": "c", "function": {"name": "f"}}]},
            )
        ]
        + [{"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}]
    ],
    "anthropic_messages": [
        [
            {"type": "message_start", "message": {"id": "1", "model": "m", "usage": {}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "citations_delta", "citation": {"type": "c", "at": {"p": 1}}},
            },
            {"type": "content_block_start", "index": 1, "content_block": {"type": "new"}},
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "new_delta", "fields": {"of": ["x"]}},
            },
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": {"id": 1}}},
            {"type": "message_stop"},
        ]
    ],
    "bedrock_converse": [
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hi"}}},
            {
                "contentBlockDelta": {
                    "contentBlockIndex": 0,
                    "delta": {"citation": {"title": "t", "location": {"web": {"url": "u"}}}},
                }
            },
            {
                "contentBlockStart": {
                    "contentBlockIndex": 1,
                    "start": {"toolResult": {"toolUseId": "s", "type": "server_tool_use"}},
                }
            },
            {
                "contentBlockDelta": {
                    "contentBlockIndex": 1,
                    "delta": {"toolResult": [{"json": {"of": ["x"]}}]},
                }
            },
            {"messageStop": {"stopReason": "end_turn", "additional": {"of": ["x"]}}},
            {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}},
        ]
    ],
    "ollama_chat": [
        [
            {"model": "m", "message": {"role": "assistant", "images": [{"of": "x"}]}},
            {"message": {"content": "hi", "images": [{"of": "y"}], "more": {"of": ["x"]}}},
            {"done": True, "done_reason": "stop", "timings": {"of": ["x"]}},
        ]
    ],
}


def turn_of(api: Api, events: Events, after_each: Callable[[Any], object]) -> object:
    decoder = ADAPTERS[api].stream_decoder()
    try:
        for event in events:
            decoder.feed(event)
            after_each(event)
        return dump_turn(decoder.finish())
    except LutumpyError as error:
        partial = getattr(error, "partial", None)
        return None if partial is None else dump_turn(partial)


@every_api
def test_who_changes_an_event_that_was_fed_changes_no_answer_S1(api: Api) -> None:
    for events in [*recorded_streams(api), *ODD_STREAMS.get(api, [])]:
        as_it_came = turn_of(api, copy.deepcopy(events), lambda event: None)
        assert turn_of(api, events, spoil) == as_it_came
