"""What a transcript says of its items, whether they are there to stay or not."""

from __future__ import annotations

import pytest

from lutumpy import Session


def texts(session: Session) -> list[str]:
    return [getattr(item, "text", "") for item in session.transcript]


@pytest.mark.parametrize("ephemeral", [False, True])
def test_items_are_found_by_index_from_both_ends_and_in_slices(ephemeral: bool) -> None:
    session = Session()
    for text in ("one", "two", "three"):
        session.push_user(text)
    if ephemeral:
        session.push_ephemeral_user("four")
        session.push_user("five")
    transcript, items = session.transcript, list(session.transcript)
    for index in range(-len(items), len(items)):
        assert transcript[index] is items[index]
    assert transcript[1:] == items[1:]
    for index in (len(items), -len(items) - 1):
        with pytest.raises(IndexError, match=f"a transcript of {len(items)} items"):
            transcript[index]


def test_an_iteration_sees_what_was_there_when_it_began() -> None:
    session = Session()
    session.push_user("one")
    found = iter(session.transcript)
    session.push_user("two")
    assert [getattr(item, "text", "") for item in found] == ["one"]
    assert texts(session) == ["one", "two"]
