"""JSON as the library writes, compares and reads it: what comes out can always be sent."""

from __future__ import annotations

import json
from collections import UserString
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy.plain import json_values

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

TEXT = st.text(st.characters(codec=None), max_size=20)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


@given(JSON)
def test_what_is_written_is_read_as_the_same_value(value: Any) -> None:
    data = json_values.encode(value)
    assert (
        json_values.decode(data)
        == json.loads(data)
        == json.loads(json.dumps(value).encode("utf-8", "replace"))
    )


@given(ANYTHING)
def test_equal_values_give_equal_bytes_on_the_fast_and_the_slow_way(value: Any) -> None:
    # A lone surrogate beside it makes the whole list go the slow way.
    assert json_values.encode([value, "\ud800"]) == b'[%b,"\xef\xbf\xbd"]' % json_values.encode(
        value
    )
    assert json_values.encode_text(value).encode() == json_values.encode(value)


def test_json_is_compact_and_keeps_the_order_of_keys() -> None:
    value = {"b": [1, 2.5, None, True, 'é\n"\\'], "a": {}, "": []}
    assert json_values.encode_text(value) == '{"b":[1,2.5,null,true,"é\\n\\"\\\\"],"a":{},"":[]}'


@pytest.mark.parametrize("number", [1e-7, 1e16, 5e-324, -0.0, 0.1 + 0.2, 1.0, 10**30])
def test_a_number_has_one_spelling_whatever_stands_beside_it(number: float) -> None:
    alone = json_values.encode_text(number)
    assert json_values.encode_text([number, "\ud800"]) == f'[{alone},"\ufffd"]'
    assert json_values.encode_text({"x": nested(300), "n": number}).endswith(f'"n":{alone}}}')
    assert json_values.as_written(number) == alone


@pytest.mark.parametrize("before", [0, 1, 4298, 4299, 4300, 4301, 9000])
@pytest.mark.parametrize("digits", [4299, 4300, 4301, 6000])
def test_a_number_that_python_could_not_read_again_is_not_written(before: int, digits: int) -> None:
    number = 10 ** (digits - 1)
    written = json.loads(json_values.encode({"a": "x" * before, "n": number}))
    assert written["n"] == (number if digits <= 4300 else "integer too large to write")


def test_a_text_of_digits_stays_what_it_is() -> None:
    assert json.loads(json_values.encode(["1" * 10_000])) == ["1" * 10_000]


def test_what_is_nested_deeper_than_the_fast_encoder_goes_is_written_all_the_same() -> None:
    value: Any = nested(400)
    assert json.loads(json_values.encode(value)) == value
    mixed: Any = {"a": (1.5, {"b": []}), "deep": value}
    assert json.loads(json_values.encode(mixed)) == {"a": [1.5, {"b": []}], "deep": value}


@pytest.mark.parametrize(
    ("number", "text"), [("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")]
)
def test_numbers_that_json_lacks_are_texts_or_shown_as_bare_words(number: str, text: str) -> None:
    # The second list is one that the fast encoder refuses.
    for beside, shown in (("x", "x"), ("\ud800", "\ufffd")):
        assert json_values.encode_text([float(number), beside]) == f'["{text}","{shown}"]'
        assert json_values.as_written([float(number), beside]) == f'[{text},"{shown}"]'


def test_a_type_of_the_users_is_written_somehow() -> None:
    assert json.loads(json_values.encode({"a": object()}))["a"].startswith("<object")
    assert json.loads(json_values.encode({UserString("k"): object()}))["k"].startswith("<object")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"\xef\xbb\xbf{}", {}),
        ("\ufeff[1]", [1]),
        ('"\\ud800"', "\ud800"),
        ('"\ud800"', "\ud800"),
        ("[" * 300 + "]" * 300, None),
        (bytearray(b'{"a":1,"a":2}'), {"a": 2}),
    ],
)
def test_what_models_and_providers_write_is_read_leniently(text: Any, value: Any) -> None:
    found = json_values.decode(text)
    if value is not None:
        assert found == value
    else:
        assert json_values.encode_text(found) == text


@pytest.mark.parametrize("text", ["", "{", "[1,]", b"\xff", "nul"])
def test_what_is_not_json_is_a_value_error(text: Any) -> None:
    with pytest.raises(ValueError):
        json_values.decode(text)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a\ud800b", '"a\ufffdb"'),
        ("\ud83d\ude00", '"😀"'),  # two halves of one character
        ({"\udc00": 1}, '{"\ufffd":1}'),
        ([float("nan"), float("inf"), -float("inf"), 1.5], '["NaN","Infinity","-Infinity",1.5]'),
        ((1, (2, float("nan"))), '[1,[2,"NaN"]]'),
        ({1: float("nan")}, '{"1":"NaN"}'),
        ([UserString("x"), None, True, False], '["x",null,true,false]'),
    ],
)
def test_what_no_provider_takes_is_replaced(value: Any, written: str) -> None:
    assert json_values.encode_text(value) == written


def test_an_integer_that_python_does_not_write_is_told_in_words() -> None:
    assert json_values.clean([10**9_999, 10**1_000]) == ["integer too large to write", 10**1_000]


def test_what_is_nested_deeper_than_any_reader_follows_ends_in_words() -> None:
    circle: list[Any] = []
    circle.append(circle)
    text = json_values.encode_text(circle)
    assert text == "[" * 201 + '"nested too deeply"' + "]" * 201
    assert json_values.encode_text(nested(150)) == "[" * 150 + '"end"' + "]" * 150


def test_a_text_without_half_characters_is_the_same_object() -> None:
    text = "plain é 😀"
    assert json_values.clean_text(text) is text


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        (None, None, True),
        ("1", 1, False),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ({}, [], False),
        ([], {}, False),
        ([], "", False),
        ("", [], False),
        ({}, None, False),
        ([1, 2], [1, 2, 3], False),
        ([1, 2], [2, 1], False),
        ([[1, {"x": True}]], [[1, {"x": True}]], True),
        ([[1, {"x": True}]], [[1, {"x": 1}]], False),
        ([{"x": 2}, 1], [{"x": 1}, 1], False),
        ([1, {"x": 2}], [2, {"x": 2}], False),
        ([[1], [2]], [[3], [2]], False),
        ([{"a": 1}, {"b": 2}], [{"a": 9}, {"b": 2}], False),
        ({"a": 1, "b": {"c": 2}}, {"a": 9, "b": {"c": 2}}, False),
        ([5, {}], [6, {}], False),
    ],
)
def test_values_are_compared_as_json_has_them(left: Any, right: Any, same: bool) -> None:
    assert json_values.equal(left, right) is same
    assert json_values.equal(right, left) is same


@pytest.mark.slow
def test_depth_is_no_limit_to_comparing_and_copying() -> None:
    assert json_values.equal(nested(50_000), nested(50_000))
    assert not json_values.equal(nested(50_000), nested(49_999))
    assert json_values.equal(json_values.copied(nested(50_000)), nested(50_000))


def test_a_copy_shares_nothing_or_what_lies_below_the_levels() -> None:
    value = {"a": [{"b": ({"c": []},)}]}
    copy = json_values.copied(value)
    assert copy == {"a": [{"b": [{"c": []}]}]}
    copy["a"][0]["b"][0]["c"].append(1)
    assert value == {"a": [{"b": ({"c": []},)}]}
    top = json_values.copied(value, levels=1)
    assert top is not value
    assert top["a"] is value["a"]
    second = json_values.copied(value, levels=2)
    assert second["a"] is not value["a"]
    assert second["a"][0] is value["a"][0]
    assert json_values.copied(5) == 5


@given(JSON, st.integers(0, 5))
def test_a_copy_is_equal_whatever_is_shared(value: Any, levels: int) -> None:
    assert json_values.copied(value) == value
    assert json_values.copied(value, levels) == value


def test_a_copy_goes_down_every_branch_as_far_as_the_levels() -> None:
    value = [[[1], [2]], {"a": [[3]], "b": [[4]]}, [[5], [6]]]
    whole = json_values.copied(value)
    for path in ((0, 0), (0, 1), (1, "a", 0), (1, "b", 0), (2, 0), (2, 1)):
        old: Any = value
        new: Any = whole
        for step in path:
            old, new = old[step], new[step]
        assert new == old
        assert new is not old
    two = json_values.copied(value, levels=2)
    assert [inner is other for inner, other in zip(two, value, strict=True)] == [False] * 3
    assert [two[0][0] is value[0][0], two[1]["b"] is value[1]["b"], two[2][1] is value[2][1]] == [
        True
    ] * 3  # type: ignore[call-overload,index]


@pytest.mark.parametrize("text", ["", " \n", "null", "{}"])
def test_nothing_as_arguments_is_an_empty_object_C4(text: str) -> None:
    assert json_values.parse_arguments(text) == {}


def test_arguments_that_are_no_json_are_told() -> None:
    with pytest.raises(ValueError):
        json_values.parse_arguments("{")
    with pytest.raises(ValueError, match="nested too deeply"):
        json_values.parse_arguments("[" * 200_000)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("{", "{", True),
        ("{", "}", False),
        ("{", "{}", False),
        ('{"a": 1}', '{"a":1.0}', True),
        ('{"a": 1}', '{"a":true}', False),
        ("", "{}", True),
        ("null", " ", True),
        ("[" * 200_000, "{}", False),
    ],
)
def test_arguments_are_the_same_for_the_same_value(left: str, right: str, same: bool) -> None:
    assert json_values.equal_arguments(left, right) is same


def test_one_text_stands_for_all_spellings_of_arguments() -> None:
    spellings = ['{"b": [1.0, {"c": 2}], "a": "é"}', '{"a":"\\u00e9","b":[1,{"c":2.0}]}']
    assert {json_values.canonical_arguments(text) for text in spellings} == {
        '{"a":"\\u00e9","b":[1,{"c":2}]}'
    }
    assert json_values.canonical_arguments("") == json_values.canonical_arguments("null") == "{}"
    assert json_values.canonical_arguments('{"a": 1.5}') == '{"a":1.5}'
    for text in ("{oops", "[" * 200_000):
        assert json_values.canonical_arguments(text) == text
