"""Cases that run in one test: none is left out, and those that fail are named."""

from __future__ import annotations

import pytest
from each_case import each

seen: list[tuple[int, str]] = []


@each("number, word", [(number, word) for number in range(3) for word in "ab"])
def test_every_case_runs_with_fixtures(number: int, word: str, tmp_path: object) -> None:
    assert tmp_path
    seen.append((number, word))


def test_they_all_ran() -> None:
    if seen:  # by the same worker
        assert len(seen) == 6


def test_a_failure_names_every_case_that_failed_and_hides_none() -> None:
    @each("number", range(30), lambda number: f"case {number}")
    def check(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            number / (0 if number < 2 else 1)
        assert number % 2

    with pytest.raises(AssertionError, match="29 of 30 cases failed") as caught:
        check()
    text = str(caught.value)
    assert "[case 0] AssertionError" in text
    assert "[case 2] Failed: DID NOT RAISE" in text
    assert [f"[case {number}]" in text for number in range(30)] == [True, False] + [True] * 28
    assert isinstance(caught.value.__cause__, AssertionError)


def test_what_ends_a_run_is_no_failure_of_a_case() -> None:
    @each("number", range(2))
    def check(number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check()


def test_no_cases_are_refused() -> None:
    with pytest.raises(AssertionError, match="there is no case"):
        each("number", [])
