"""Where a call stands (`Origin`): told by content, and by what stands beside it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

from lutumpy import FilePart, ImagePart, Session, TextPart, ToolMetadata
from lutumpy.core.origin import Origin

CALLS = [
    ToolMetadata("1", "a", '{"x": 1}'),
    ToolMetadata("2", "a", '{"x":1.0}'),
    ToolMetadata("3", "b", '{"x": 1}'),
    ToolMetadata("4", "a", '{"x": 2}'),
    ToolMetadata("5", "a", '{"x":  1}'),
]


def origin(*content: Any, ephemeral: str | None = None) -> Origin:
    session = Session()
    session.push_user(list(content))
    if ephemeral is not None:
        session.push_ephemeral_user(ephemeral)
    return Origin(session.transcript, len(session.transcript), CALLS)


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


def test_what_was_never_there_to_stay_makes_no_other_place() -> None:
    assert origin("go", ephemeral="psst").digest() == origin("go").digest()


def test_a_copy_is_the_place_itself_and_a_pickle_is_equal() -> None:
    place = origin("go")
    assert copy.copy(place) is place
    assert copy.deepcopy([place])[0] is place
    loaded = pickle.loads(pickle.dumps(place))
    assert loaded.digest() == place.digest()
    assert [loaded.occurrence(call) for call in CALLS] == [0, 1, 0, 0, 2]
