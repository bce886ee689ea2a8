"""What adapters write: the very values that the core writes, for every JSON value, and something for everything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy.adapters import json_bytes
from lutumpy.core import json_values

TEXT = st.text(st.characters(codec=None), max_size=20)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_both_encoders_write_the_same_value(value: Any) -> None:
    assert json.loads(json_bytes.encode(value)) == json.loads(json_values.encode(value))
    assert json_bytes.encode_text(value).encode() == json_bytes.encode(value)


@pytest.mark.parametrize("before", [0, 1, 4298, 4299, 4300, 4301, 9000])
@pytest.mark.parametrize("digits", [4299, 4300, 4301, 6000])
def test_a_number_that_python_could_not_read_again_is_not_written(before: int, digits: int) -> None:
    value = {"a": "x" * before, "n": 10 ** (digits - 1)}
    written = json.loads(json_bytes.encode(value))
    assert written == json.loads(json_values.encode(value))
    assert isinstance(written["n"], int) == (digits <= 4300)


def test_a_text_of_digits_stays_what_it_is() -> None:
    assert json.loads(json_bytes.encode(["1" * 10_000])) == ["1" * 10_000]


def test_what_is_nested_deeper_than_the_fast_encoder_goes_is_written_all_the_same() -> None:
    value: Any = []
    for _ in range(400):
        value = [value]
    assert json.loads(json_bytes.encode(value)) == value


@pytest.mark.parametrize(
    ("number", "text"), [("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")]
)
def test_numbers_that_json_lacks_are_texts_in_both(number: str, text: str) -> None:
    for value in (
        float(number),
        [float(number), "\ud800"],
    ):  # the second is one that the fast encoder refuses
        assert json_bytes.encode(value) == json_values.encode(value)
        assert text in json_bytes.encode_text(value)


def test_a_type_of_the_users_is_written_somehow() -> None:
    assert json.loads(json_bytes.encode({"a": object()}))["a"].startswith("<object")
