"""Where a call stands (`CallPlace`): told by content, and by what stands beside it."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from typing import Any

from lutumpy import FilePart, ImagePart, Session, TextPart, ToolMetadata, ToolResult
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.core.call_place import CallPlace
from lutumpy.models import FoundTool, RawPart, ResultBlock, ToolResults

CALLS = [
    ToolMetadata("1", "a", '{"x": 1}'),
    ToolMetadata("2", "a", '{"x":1.0}'),
    ToolMetadata("3", "b", '{"x": 1}'),
    ToolMetadata("4", "a", '{"x": 2}'),
    ToolMetadata("5", "a", '{"x":  1}'),
]


def origin(*content: Any, ephemeral: str | None = None) -> CallPlace:
    session = Session()
    session.push_user(list(content))
    if ephemeral is not None:
        session.push_ephemeral_user(ephemeral)
    return CallPlace(session.transcript, len(session.transcript), CALLS)


def test_equal_calls_are_told_apart_by_how_many_stand_before_them() -> None:
    assert [origin("go").occurrence(call) for call in CALLS] == [0, 1, 0, 0, 2]
    # A call that is none of the answer's stands behind them all.
    assert origin("go").occurrence(ToolMetadata("9", "a", '{"x": 1}')) == 3
    assert origin("go").occurrence(ToolMetadata("9", "c", '{"x": 1}')) == 0


def test_a_place_is_told_by_every_part_of_what_was_said() -> None:
    image = ImagePart(data=b"1", media_type="image/png")
    contents: list[list[Any]] = [
        ["go"],
        ["go!"],
        [TextPart("g"), TextPart("o")],
        [image],
        [replace(image, data=b"2")],
        [replace(image, media_type="image/jpeg")],
        [ImagePart(url="https://x/1")],
        [FilePart(url="https://x/1")],
        [FilePart(data=b"1", media_type="image/png")],
    ]
    digests = [origin(*content).digest() for content in contents]
    assert len(set(digests)) == len(contents)
    assert digests == [origin(*content).digest() for content in contents]


ANSWER = {
    "id": "c",
    "choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    ]}, "finish_reason": "tool_calls"}],
}  # fmt: skip


def answered(result: ToolResult, **answer: Any) -> bytes:
    """The place behind a round."""
    session = Session()
    session.push_user("go")
    turn = OpenAIChat.response({**ANSWER, **answer})
    block = ResultBlock("c1", "a", result.content, result.status)
    session.transcript.append_turn(turn, ToolResults((block,)))
    return CallPlace(session.transcript, len(session.transcript), CALLS).digest()


def test_a_place_is_told_by_the_answers_and_results_before_it() -> None:
    call = ToolMetadata("c1", "a", "{}")
    other = json.loads(json.dumps(ANSWER["choices"]).replace('"{}"', '"{\\"x\\":1}"'))
    image = ImagePart(data=b"1", media_type="image/png")
    digests = [
        answered(ToolResult(call, "rain")),
        answered(ToolResult(call, "sun")),
        answered(ToolResult(call, "rain", "failed")),
        answered(ToolResult(call, "rain"), choices=other),
        answered(ToolResult(call, (TextPart("rain"),))),
        answered(ToolResult(call, (TextPart("rain"), image))),
        answered(ToolResult(call, (FoundTool("find", "Find.", {}),))),
        answered(ToolResult(call, (RawPart("anthropic_messages", {}),))),
        origin("go").digest(),
    ]
    assert len(set(digests)) == len(digests)
    assert answered(ToolResult(call, "rain"), id="another id of the provider's") == digests[0]


def test_a_key_that_was_kept_is_still_the_places_own() -> None:
    """Keys of calls are made of it, and outlive the process; another digest would run a tool twice
    after an update.
    """
    image = ImagePart(data=b"1", media_type="image/png")
    kept = "746354659e671bb7f2bab2a6b268a1e05353a4848dcc1713c9c2cc8562b5826c"
    assert origin("go", image).digest().hex() == kept
    behind = answered(ToolResult(ToolMetadata("c1", "a", "{}"), (TextPart("look"), image)))
    assert behind.hex() == "7c0ef2143a892724130383d078b6bff5a38cd7a440170aeed1c3db0ea934af4c"


def test_what_was_never_there_to_stay_makes_no_other_place() -> None:
    assert origin("go", ephemeral="psst").digest() == origin("go").digest()


def test_a_copy_is_the_place_itself_and_a_pickle_is_equal() -> None:
    place = origin("go")
    assert copy.copy(place) is place
    assert copy.deepcopy([place])[0] is place
    loaded = pickle.loads(pickle.dumps(place))
    assert loaded.digest() == place.digest()
    assert [loaded.occurrence(call) for call in CALLS] == [0, 1, 0, 0, 2]
