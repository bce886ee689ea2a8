"""Tomorrow's words: every tag of every recorded answer is changed to one that nobody knows (C8).

Whatever an API calls its blocks, items, events and reasons some day, nothing raises, no call is
lost or run with other arguments, and what came goes back.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from every_api import ADAPTERS
from profiles import examples

from lutumpy import AssistantTurn, NeedsTools, Session, Toolset, tool, tool_fn

FIXTURES = Path(__file__).parent / "fixtures"
WORD = "word_of_tomorrow"
# What an API says with a word of its own. Which of several things an object is, these two APIs say
# by its key.
TAGS = frozenset(
    "type role status object finish_reason stop_reason finishReason stopReason reason "
    "done_reason".split()
)
KEYED = {"gemini_generate_content": {"parts"}, "bedrock_converse": {"content", "start", "delta"}}
# What stands there is the model's or the program's, or repeats the request.
FOREIGN = frozenset(
    "arguments input args tools tool_choice text response metadata usage code container".split()
)


def rows(*names: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for name in names
        for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
        if line
    ]


def sse(text: str) -> list[Any]:
    """The data of the events of a recorded stream."""
    lines = [line.removeprefix("data:").strip() for line in text.split("\n") if line[:5] == "data:"]
    return [json.loads(line) for line in lines if line != "[DONE]"]


# Words that are changed, at least. An answer of Ollama's has two: its role, and why it ended.
LEAST = {"ollama_chat": 18}
BEDROCK = rows("bedrock_converse")
WHOLE: dict[str, list[Any]] = {
    "openai_chat": [r["response"] for r in rows("openai_chat", "compat_openai_chat")],
    "openai_responses": [
        r["response"]
        for r in rows("openai_responses", "compat_openai_responses")
        if r["response"].get("status") in ("completed", "incomplete")
    ],
    "anthropic_messages": [r["response"] for r in rows("anthropic_messages")],
    "gemini_generate_content": [r["response"] for r in rows("gemini_generate_content")],
    "bedrock_converse": [r["response"] for r in BEDROCK if not r["stream"]],
    "ollama_chat": [r["response"] for r in rows("ollama_chat") if r["status"] == 200],
}
STREAMED: dict[str, list[list[Any]]] = {
    "openai_chat": [
        sse(r["response"])
        for r in rows("openai_chat_sse", "compat_openai_chat_sse")
        if '{"error":' not in r["response"]
    ],
    "openai_responses": [
        sse(r["response"]) for r in rows("openai_responses_sse", "compat_openai_responses_sse")
    ],
    "anthropic_messages": [sse(r["response"]) for r in rows("anthropic_messages_sse")],
    "gemini_generate_content": [
        sse(r["response"]) for r in rows("gemini_generate_content_sse") if r["framing"] == "sse"
    ],
    "bedrock_converse": [
        [{event["event"]: event["payload"]} for event in r["response"]]
        for r in BEDROCK
        if r["stream"]
    ],
    "ollama_chat": [
        [json.loads(line) for line in r["response"].splitlines()]
        for r in rows("ollama_chat_ndjson")
    ],
}


def tags(value: Any, api: str, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all tags: of a word by its path, of a key by the path and `None`."""
    if isinstance(value, dict):
        holder = next((key for key in reversed(path) if isinstance(key, str)), "")
        for key, inner in value.items():
            if holder in KEYED.get(api, ()) and inner is not None:
                yield (*path, key, None)
            if key in TAGS and isinstance(inner, str):
                yield (*path, key)
            elif key not in FOREIGN or (key == "input" and path[-2:-1] == ("delta",)):
                yield from tags(inner, api, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from tags(inner, api, (*path, index))


def changed(value: Any, path: tuple[Any, ...]) -> Any:
    """The same with a word of tomorrow at one place."""
    copy = deepcopy(value)
    holder = copy
    if path[-1] is None:
        *outer, key, _ = path
        for step in outer:
            holder = holder[step]
        items = [(WORD if name == key else name, inner) for name, inner in holder.items()]
        holder.clear()
        holder.update(items)
    else:
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = WORD
    return copy


@tool_fn
def unrelated() -> str:
    """Is never called."""
    return ""


class Tools(Toolset):
    unrelated = tool(unrelated)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            # An item's own id stays behind where the API would refuse it.
            if key not in TAGS and key != "id":
                yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, str) and len(value) > 3:
        yield value


class Told:
    """What a program is told of an answer, and what it sends next."""

    def __init__(self, api: str, turn: AssistantTurn) -> None:
        session = Session()
        session.push_user("go")
        outcome = Tools.offer().read(turn, session)
        self.entries = 0
        if isinstance(outcome, NeedsTools):
            self.entries = len(outcome.round.calls) + len(outcome.round.issues)
            answers = [request.reject("no") for request in outcome.round.approvals]
            self.entries += len(answers)
            outcome.round.commit(session, answers)
        session.push_user("And now?")
        sent = ADAPTERS[api].request(session.transcript)
        self.sent = json.dumps(sent, ensure_ascii=False)
        # What the library answers names the kind of the call.
        kept = [text for text in texts_in(sent) if not text.startswith("Tool call rejected: ")]
        self.texts = {json.dumps(text, ensure_ascii=False)[1:-1] for text in kept}
        # What would run, if its tool were offered.
        self.runnable = {
            (call.name, canonical(call.arguments))
            for call in turn.calls
            if call.kind == "function" and call.problem is None
        }
        self.unanswered = [call.name for call in turn.calls if not call.answerable]


def canonical(arguments: str) -> str | None:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return None


def compare(api: str, turn: AssistantTurn, told: Told, place: Any) -> None:
    """Hold what is promised of an answer with an unknown word against the one without."""
    now = Told(api, turn)
    assert now.entries >= told.entries, (place, "a call was lost")
    assert not now.unanswered, (place, "a call has no answer")
    strange = {call for call in now.runnable - told.runnable if call[1] is not None}
    assert not strange, (place, "a call with other arguments", strange)
    lost = [text for text in told.texts if text not in now.sent]
    assert not lost, (place, "not sent back", lost)


@pytest.mark.parametrize("api", WHOLE)
def test_an_unknown_word_in_an_answer_loses_nothing_and_raises_nothing_C8(api: str) -> None:
    adapter, count = ADAPTERS[api], 0
    for number, reply in enumerate(WHOLE[api]):
        told = Told(api, adapter.response(reply))
        for path in tags(reply, api):
            turn = adapter.response(changed(reply, path))
            compare(api, turn, told, (number, path))
            count += 1
    assert count >= LEAST.get(api, 41)


@pytest.mark.parametrize("api", WHOLE)
def test_several_unknown_words_in_an_answer_lose_nothing_and_raise_nothing_C8(api: str) -> None:
    adapter, chance = ADAPTERS[api], random.Random(f"tomorrow in {api}")
    answers = [(reply, Told(api, adapter.response(reply))) for reply in WHOLE[api]]
    for number in range(examples(600)):
        reply, told = chance.choice(answers)
        places = list(tags(reply, api))
        # Words before keys, whose places have others' paths behind them.
        words = [path for path in places if path[-1] is not None]
        chosen = chance.sample(words, min(len(words), chance.randint(1, 4)))
        keys = [path for path in places if path[-1] is None]
        if keys:
            chosen.append(chance.choice(keys))
        mutated = reply
        for path in chosen:
            mutated = changed(mutated, path)
        compare(api, adapter.response(mutated), told, (number, chosen))


@pytest.mark.parametrize("api", STREAMED)
def test_an_unknown_word_in_a_stream_loses_no_call_and_raises_nothing_C8(api: str) -> None:
    stream_decoder, count = ADAPTERS[api].stream_decoder, 0
    for number, events in enumerate(STREAMED[api]):
        told = Told(api, read(stream_decoder, events))
        for index, path in places_in(events, api):
            mutated = [*events[:index], changed(events[index], path), *events[index + 1 :]]
            turn = read(stream_decoder, mutated)
            now = Told(api, turn)
            place = (number, index, path)
            assert now.entries >= told.entries, (place, "a call was lost")
            strange = {call for call in now.runnable - told.runnable if call[1] is not None}
            assert not strange, (place, "a call with other arguments", strange)
            count += 1
    assert count >= LEAST.get(api, 41)


def read(stream_decoder: Callable[[], Any], events: list[Any]) -> AssistantTurn:
    decoder = stream_decoder()
    for event in events:
        decoder.feed(event)
    turn: AssistantTurn = decoder.finish()
    return turn


def places_in(events: list[Any], api: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The tags in the events of a stream; of those that repeat, the first and the last ones."""
    by_word: dict[Any, list[tuple[int, tuple[Any, ...]]]] = {}
    for index, event in enumerate(events):
        keyed = [(key, None) for key in event] if api == "bedrock_converse" else []
        for path in [*keyed, *tags(event, api)]:
            value: Any = event
            for step in path:
                value = value if step is None else value[step]
            names = tuple(step for step in path if not isinstance(step, int))
            word = value if isinstance(value, str) and path[-1] is not None else None
            by_word.setdefault((names, word, event.get("type")), []).append((index, path))
    for places in by_word.values():
        yield from {places[0], places[-1]}
