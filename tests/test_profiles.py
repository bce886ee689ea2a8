"""Every property tries as many examples as the profile of the run says."""

from __future__ import annotations

import re
from pathlib import Path

import profiles
import pytest
from hypothesis import settings

TESTS = Path(__file__).parent


def test_every_number_of_examples_goes_through_the_profile() -> None:
    files = [file for file in TESTS.rglob("*.py") if file.name != "test_profiles.py"]
    assert [str(file) for file in files if re.search(r"max_examples=\d", file.read_text())] == []


@pytest.mark.parametrize(
    ("profile", "count", "expected"),
    [
        ("default", 60, 60),
        ("default", 1, 1),
        ("small", 60, 20),
        ("small", 4, 3),
        ("small", 1, 1),
        ("thorough", 60, 1800),
    ],
)
def test_a_profile_scales_a_number_of_examples(
    profile: str, count: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "PROFILE", profile)
    assert profiles.examples(count) == expected


def test_the_same_examples_are_tried_each_time_but_for_the_thorough_profile() -> None:
    assert settings.default is not None
    assert settings.default.derandomize == (profiles.PROFILE != "thorough")
    assert settings.default.deadline is None
