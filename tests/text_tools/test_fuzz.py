"""Whatever a model writes: no exception, no invented call, the same however it is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy.text_tools import ParsedCall, ParsedText, TagToolParser

PARSERS = {
    "default": TagToolParser(),
    "hermes": TagToolParser.hermes(),
    "mistral": TagToolParser.mistral(),
    "llama": TagToolParser.llama(),
    "thinking": TagToolParser(starts_thinking=True),
    "own": TagToolParser(("<<call", "call>>")),
}

FRAGMENTS = [
    "[TOOL_CALL]", "[/TOOL_CALL]", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]",
    "[CALL_ID]", "</s>",
    "<function=", "</function>", "<|python_tag|>", "<|eom_id|>", "<|eot_id|>", "<<call", "call>>",
    "[TOOL_", "CALL]", "<tool", "[/TOOL_C", "<think>", "</think>", "<thi", "[THINK]", "[/THINK]",
    "```", "````", "``", "`", "~~~", "~", "```json\n", "\n", " ", "\t", "\r\n", " ", "> ",
    '{"name": "a", "args": {"x": 1}}', '{"name":"b","arguments":{}}', '{"name":"c"}', '"name"',
    '"args":', '{"parameters":', "{", "}", "[", "]", ",", ":", ";", '"', "\\", "\\\"", "\\u00e9",
    "1", "-2.5e3", "true", "null", "NaN", "name", "a.b", "é", "\ud83d", '[{"name":"a"},{"name":"b"}]',
    '{"name":"a","args":{"t":"[/TOOL_CALL] \\" <think>"}}', '{"name":"a","args":{"x":', "text ",
    ">",
]  # fmt: skip

woven = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
texts = st.one_of(
    st.text(max_size=60),
    woven,
    st.lists(st.one_of(st.text(max_size=5), woven), max_size=5).map("".join),
)


def pieces_of(text: str, sizes: list[int]) -> list[str]:
    pieces: list[str] = []
    pos = 0
    for size in sizes:
        pieces.append(text[pos : pos + size])
        pos += size
    return [*pieces, text[pos:]]


def streamed(parser: TagToolParser, pieces: list[str]) -> tuple[str, list[ParsedCall]]:
    formatter = parser.stream_formatter()
    shown = "".join([formatter.feed(piece) for piece in pieces])
    return shown + formatter.flush(), list(formatter.calls)


@pytest.mark.parametrize("name", PARSERS)
@given(text=texts, sizes=st.lists(st.integers(0, 7), max_size=60))
@settings(max_examples=examples(150))
@example(text="x ```json a<think>\n[TOOL_CALL]{}", sizes=[8, 1, 1])
@example(text='```\n[TOOL_CALL]{"name":"a"}[/TOOL_CALL]\n``` ', sizes=[])
def test_t4_what_is_shown_and_called_does_not_depend_on_where_the_text_is_cut(
    name: str, text: str, sizes: list[int]
) -> None:
    parser = PARSERS[name]
    whole = parser.parse(text)
    assert streamed(parser, pieces_of(text, sizes)) == (whole.text, list(whole.calls))
    assert streamed(parser, list(text)) == (whole.text, list(whole.calls))


@pytest.mark.parametrize("name", PARSERS)
@given(text=texts)
@settings(max_examples=examples(150))
def test_no_call_is_invented(name: str, text: str) -> None:
    """Every name and every argument text stands in the text, and what can be run is JSON."""
    parsed: ParsedText = PARSERS[name].parse(text)
    for call in parsed.calls:
        assert call.name in text
        assert call.arguments in text or call.arguments == "{}"
        assert (call.problem is None) == (call.detail is None)
        if call.problem is None:
            assert call.name
            assert is_json_but_for_characters(call.arguments)


@pytest.mark.parametrize("name", PARSERS)
@given(text=texts)
@settings(max_examples=examples(150))
def test_t4_what_is_shown_are_pieces_of_the_text_in_their_order(name: str, text: str) -> None:
    shown = iter(PARSERS[name].parse(text).text)
    rest = iter(text)
    assert all(any(char == other for other in rest) for char in shown)


@given(text=st.text(alphabet=st.characters(exclude_characters="[<`~"), max_size=200))
def test_t4_a_text_without_tags_is_shown_as_it_is(text: str) -> None:
    assert TagToolParser().parse(text) == ParsedText(text)


def is_json_but_for_characters(text: str) -> bool:
    """Whether it is JSON, but for control characters and unknown escapes in strings."""
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        return "escape" in str(error)
    except RecursionError:
        return True
    return True


values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=6), values, max_size=3)
calls = st.lists(
    st.tuples(st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True), arguments),
    min_size=1,
    max_size=4,
)
plain = st.text(
    alphabet=st.characters(exclude_characters="[<`~]>", exclude_categories=["Cs"]), max_size=20
)


@pytest.mark.parametrize("name", ["default", "hermes", "mistral", "llama", "own"])
@given(
    calls=calls, between=st.lists(plain, min_size=5, max_size=5), indent=st.sampled_from([None, 2])
)
def test_t1_every_call_that_was_written_is_read(
    name: str, calls: list[tuple[str, dict[str, Any]]], between: list[str], indent: int | None
) -> None:
    parser = PARSERS[name]
    written = [
        parser.format_call(tool, json.dumps(args, indent=indent, ensure_ascii=False))
        for tool, args in calls
    ]
    separator = "" if name != "mistral" else "."
    text = "".join([between[k] + separator + call + separator for k, call in enumerate(written)])
    parsed = parser.parse(text)
    assert [(c.name, json.loads(c.arguments)) for c in parsed.calls] == calls
    assert parsed.format_errors == ()
    assert parsed.text == "".join([between[k] + separator + separator for k in range(len(calls))])


@given(calls=calls, array=st.booleans(), data=st.data())
def test_t2_a_text_that_is_cut_keeps_what_was_complete_and_runs_nothing_else(
    calls: list[tuple[str, dict[str, Any]]], array: bool, data: st.DataObject
) -> None:
    parser = TagToolParser()
    if array:
        body = json.dumps([{"name": tool, "args": args} for tool, args in calls])
        text = f"[TOOL_CALL]{body}[/TOOL_CALL]"
    else:
        text = "".join([parser.format_call(tool, json.dumps(args)) for tool, args in calls])
    cut = data.draw(st.integers(0, len(text)))
    parsed = parser.parse(text[:cut])
    whole = [(c.name, json.loads(c.arguments)) for c in parsed.calls if c.problem is None]
    assert whole == calls[: len(whole)]
    broken = [c for c in parsed.calls if c.problem is not None]
    assert broken in ([], [*parsed.calls[-1:]])
    assert "{" not in parsed.text
