"""Other names for what a wire refuses (rule R2)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lutumpy.core.encoding import Renamer

WORD = re.compile(r"[a-z0-9_]+")


def renamer() -> Renamer:
    return Renamer(WORD, 12, "id_")


def test_what_fits_stays_and_what_does_not_is_the_same_each_time_R2() -> None:
    give = renamer()
    assert give("fits") == "fits"
    other = give("does not")
    assert give("does not") == other
    assert renamer()("does not") == other
    assert give.fits(other)
    assert not give.fits("does not")
    assert not give.fits("x" * 13)
    assert give.fits("x" * 12)


def test_half_a_character_is_no_obstacle_R2() -> None:
    give = renamer()
    assert give.fits(give("\ud800"))
    assert give("\ud800") != give("\udc00")


def test_a_name_that_was_given_is_taken_R2() -> None:
    given = renamer()("does not")
    give = renamer()
    assert give(given) == given  # it fits, and was there first
    assert give("does not") != given
    give = renamer()
    assert give("does not") == given
    assert give(given) != given


def test_a_copy_goes_its_own_way_R5() -> None:
    give = renamer()
    first = give("a b")
    twin = give.copy()
    assert twin("a b") == first
    assert twin("fits") == "fits"
    taken = renamer()("c d")
    twin(taken)
    assert give("c d") == taken
    assert twin("c d") != taken


@given(st.lists(st.text(max_size=15), max_size=20))
def test_no_two_texts_get_the_same_name_R2(texts: list[str]) -> None:
    give = renamer()
    names = {text: give(text) for text in texts}
    assert len(set(names.values())) == len(names)
    assert all(give.fits(name) for name in names.values())
