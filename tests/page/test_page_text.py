"""Text made harmless, and JSON set out."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy.page.text import data_value, plain, prose, shown, text_value

ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def read(markup: str) -> str:
    """The text that a browser would show."""
    return html.unescape(re.sub(r"</?(?:span|b)(?: class=\"[a-z-]+\")?>", "", markup))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("\x00", "U+0000"),
        ("\x1b", "U+001B"),
        ("\r", "U+000D"),
        ("\x9b", "U+009B"),
        ("\u202e", "U+202E"),
        ("\u2066", "U+2066"),
        ("\u200b", "U+200B"),
        ("\u200f", "U+200F"),
        ("\ufeff", "U+FEFF"),
        ("\u2028", "U+2028"),
        ("\ud83d", "U+D83D"),
        ("\ufffe", "U+FFFE"),
        ("\U000e0041", "U+E0041"),
        ("\U0001ffff", "U+1FFFF"),
    ],
)
def test_what_cannot_be_seen_is_shown_by_its_code(text: str, code: str) -> None:
    assert plain(text) == f"⟦{code}⟧"
    assert shown(text) == f'<b class="hidden-character">{code}</b>'


@pytest.mark.parametrize("text", ["Zürich", "日本語", "مرحبا", "👩‍🚀", "❤️", "a\tb\nc", "नमस्ते क्‍ष"])
def test_ordinary_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert plain(text) == text
    assert shown(text) == text


def test_two_halves_of_a_character_are_one_and_line_ends_are_one() -> None:
    assert plain("\ud83d\ude00 a\r\nb") == "😀 a\nb"


@given(ANY_TEXT)
def test_shown_text_is_markup_of_nothing_but_the_text(text: str) -> None:
    rest = shown(text).replace('<b class="hidden-character">', "").replace("</b>", "")
    assert not set("<>\"'") & set(rest)
    rest.encode()
    if not {"⟦", "⟧"} & set(text):
        assert read(shown(text)) == plain(text).replace("⟦", "").replace("⟧", "")


@given(JSON.filter(lambda value: isinstance(value, (dict, list))))
def test_set_out_json_is_the_same_json(value: object) -> None:
    compact = json.dumps(value)
    view = text_value(compact)
    assert view.kind == "json"
    assert view.raw in (None, compact)
    pretty = read(view.body)
    # Hidden characters are shown by their codes there, and nowhere else does anything change.
    if "U+" not in pretty:
        assert json.loads(pretty) == value


def test_set_out_json_keeps_repeated_keys_and_the_spelling_of_numbers() -> None:
    view = text_value('{"a":1.50,"a":1e3,"n":-0}')
    assert read(view.body) == '{"a": 1.50, "a": 1e3, "n": -0}'
    assert view.raw == '{"a":1.50,"a":1e3,"n":-0}'


def test_set_out_json_has_a_line_for_each_field_of_what_is_long() -> None:
    view = text_value(
        json.dumps({"name": "x" * 40, "other": "y" * 40, "empty": {}, "short": [1, 2, 3]})
    )
    assert read(view.body).split("\n") == [
        "{",
        f'  "name": "{"x" * 40}",',
        f'  "other": "{"y" * 40}",',
        '  "empty": {},',
        '  "short": [1, 2, 3]',
        "}",
    ]


def test_escaped_letters_are_readable_and_the_raw_text_has_the_escapes() -> None:
    view = text_value('{"city": "Z\\u00fcrich"}')
    assert read(view.body) == '{"city": "Zürich"}'
    assert view.raw == '{"city": "Z\\u00fcrich"}'


@pytest.mark.parametrize(
    "text", ['{"city": "Os', "{'a': 1}", "[" * 5_000, "1" * 5_000 + "x", '{"a": NaNa}']
)
def test_arguments_that_are_no_json_are_shown_as_they_came_with_a_remark(text: str) -> None:
    view = text_value(text, json_expected=True)
    assert view.kind == "text"
    assert read(view.body) == text
    assert view.remark.startswith("no valid JSON")


def test_deep_json_is_laid_out_without_recursion_and_without_growing_squarely() -> None:
    text = "[" * 900 + '"x' + "y" * 80 + '"' + "]" * 900
    view = text_value(text)
    assert len(view.body) < 200_000


def test_a_long_value_is_whole_up_to_the_limit_and_says_what_is_left_out() -> None:
    whole = text_value("line\n" * 50_000)
    assert len(read(whole.body)) == 250_000
    assert (whole.left_out, whole.short) == (0, False)
    cut = text_value("x" * 1_500, limit=1_000)
    assert (len(cut.body), cut.left_out, cut.characters) == (1_000, 500, 1_500)


def test_huge_json_is_shown_as_it_came() -> None:
    text = json.dumps([{"k": k} for k in range(40_000)])
    view = text_value(text)
    assert read(view.body) == text
    assert "too long" in view.remark


@given(st.text(st.sampled_from("ab \n"), max_size=9_000), st.integers(1, 10_000))
def test_prose_is_cut_without_loss(text: str, limit: int) -> None:
    view = prose(text, limit)
    assert view.head + view.rest == text[:limit]
    assert view.left_out == max(0, len(text) - limit)


def test_a_brief_is_one_line() -> None:
    assert text_value('{\n  "a": 1\n}').brief == '{ "a": 1 }'
    assert len(data_value({"a": "x" * 5_000}).brief) <= 161


@given(st.dictionaries(st.text(), st.binary() | st.sets(st.integers())))
def test_what_is_no_json_at_all_is_still_shown(value: object) -> None:
    assert data_value(value).characters > 0
