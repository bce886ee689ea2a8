"""What is a call in a text and what is none (rules T1, T2, T3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from text_toolkit import parsed

from lutumpy.text_tools import CallSyntax, ParsedText, TagToolParser

O, C = "[TOOL_CALL]", "[/TOOL_CALL]"
A = '{"name": "a", "args": {"x": 1}}'
CALL_A = ("a", '{"x": 1}', None)


@pytest.mark.parametrize("key", ["args", "arguments", "parameters"])
def test_t1_one_call_between_tags_under_each_of_three_keys(key: str) -> None:
    assert parsed(f'Hi {O}{{"name": "a", "{key}": {{"x": 1}}}}{C} there') == ("Hi  there", [CALL_A])


def test_t1_no_arguments_mean_an_empty_object() -> None:
    assert parsed(f'{O}{{"name": "a"}}{C}') == ("", [("a", "{}", None)])


def test_t1_null_stays_what_the_model_wrote() -> None:
    assert parsed(f'{O}{{"name": "a", "args": null}}{C}') == ("", [("a", "null", None)])


def test_t1_an_array_holds_several_calls_in_their_order() -> None:
    assert parsed(f'{O}[{A}, {{"arguments": {{}}, "name": "b"}},\n{{"name":"c"}}]{C}') == (
        "",
        [CALL_A, ("b", "{}", None), ("c", "{}", None)],
    )


def test_t1_an_empty_array_is_no_call() -> None:
    assert parsed(f"none {O}[]{C}") == ("none ", [])


@pytest.mark.parametrize(
    "text", [C, f"{C} {O}{A}", '\\"' + C + '\\"', f"{O}{A}{C}".replace('"', '\\"')]
)
def test_t1_an_end_tag_inside_of_a_string_does_not_count(text: str) -> None:
    if "\\" not in text:
        text = text.replace('"', '\\"')
    arguments = f'{{"t": "{text}"}}'
    assert parsed(f'{O}{{"name": "w", "args": {arguments}}}{C}.') == (".", [("w", arguments, None)])


@pytest.mark.parametrize("end", ["", " ", "\n", "[/TOOL", "\n```"])
def test_t1_without_an_end_tag_the_call_reaches_to_the_end(end: str) -> None:
    fence = "```json\n" if "`" in end else ""
    assert parsed(f"so {O}{fence}{A}{end}") == ("so ", [CALL_A])


def test_t1_a_start_tag_behind_a_whole_call_begins_the_next_one() -> None:
    assert parsed(f'{O}{A}\n{O}{{"name": "b"}}') == ("", [CALL_A, ("b", "{}", None)])


@pytest.mark.parametrize(
    "fence",
    ["```json\n{}\n```", "```\n{}```", "~~~ json \n{}\n~~~\n", "\n```{}\n```", "````\n{}\n````"],
)
def test_t1_a_fence_may_stand_between_the_tags(fence: str) -> None:
    assert parsed(f"{O}{fence.replace('{}', A)}{C}!") == ("!", [CALL_A])


@pytest.mark.parametrize(
    "fence",
    [
        "```json\n{}\n```\nafter",
        "x ```{}``` y",
        "```\n\n  {}\n\n```",
        "~~~\n{}\n~~~",
        "```json {}\n```",
        "```\n{}",
        "x: ```\n{}\n``` y",
    ],
)
def test_t1_a_fence_may_stand_around_the_call_and_loses_nothing_but_that(fence: str) -> None:
    assert parsed(fence.replace("{}", f"{O}{A}{C}")) == (fence.replace("{}", ""), [CALL_A])


def test_t1_a_fence_around_several_calls_and_nothing_else() -> None:
    assert parsed(f"```\n{O}{A}{C}\n{O}{A}{C}\n```") == ("```\n\n\n```", [CALL_A, CALL_A])


@pytest.mark.parametrize(
    "text",
    [
        f"```\n# how to\n{O}{A}{C}\n```",
        f"```\n{O}{A}{C}\n# so\n```",
        f"```\n{O}{A}{C} and more```\n",
        f"~~~\nsee\n```\n{O}{A}{C}\n```\n~~~\n",
        f"````markdown\n```\n{O}{A}{C}\n```\n````",
        f"```markdown\ntext\n```json\n{O}{A}{C}\n```\n",
        f"Use it so: ```\nwrite {O}{A}{C}\n```",
        f"```\n{O}\nthe JSON of the call\n{C}\n```",
        f"```two words {O}{A}{C}\n```",
    ],
)
def test_t3_calls_in_a_code_block_with_more_are_text(text: str) -> None:
    assert TagToolParser().parse(text) == ParsedText(text)


@pytest.mark.parametrize(
    ("text", "shown", "reasoning"),
    [
        (f"<think>{O}{A}{C}</think>", "", f"{O}{A}{C}"),
        (f"a<think>\n{O}{A}{C}", "a", f"{O}{A}{C}"),
        (f"<think>```</think>```\nlike {O}{A}{C}\n```", f"```\nlike {O}{A}{C}\n```", "```"),
    ],
)
def test_t3_calls_in_thinking_are_thinking(text: str, shown: str, reasoning: str) -> None:
    assert TagToolParser().parse(text) == ParsedText(shown, reasoning=reasoning)


def test_t3_behind_thinking_and_code_calls_count_again() -> None:
    code = "\n```py\nx = 1\n```\n"
    assert parsed(f"<think>{O}{A}{C}</think>{code}{O}{A}{C}") == (code, [CALL_A])


@pytest.mark.parametrize(
    "text", [f"Write `{O}{A}{C}` to call.", f"So: ``{O}{A}{C}``", f"a `b` and `{O}{A}{C}`"]
)
def test_t3_a_call_in_a_code_span_is_quoted(text: str) -> None:
    assert TagToolParser().parse(text) == ParsedText(text)


@pytest.mark.parametrize("before", ["Run `ls` first.", "`ls`", "It's a ` here.\n`\n", "a ` b "])
def test_t3_behind_a_code_span_calls_count(before: str) -> None:
    assert parsed(f"{before}{O}{A}{C}") == (before, [CALL_A])


def test_t3_marks_in_a_sentence_open_no_code_block() -> None:
    assert parsed(f"Use ``` for code, ~~~ too.\nNow {O}{A}{C} so") == (
        "Use ``` for code, ~~~ too.\nNow  so",
        [CALL_A],
    )


def test_t3_a_code_block_that_begins_behind_text_ends_with_the_same_marks_anywhere() -> None:
    text = f"Like so: ```py\nx = ````1\n``` and now {O}{A}{C}"
    assert parsed(text) == (text[: -len(O + A + C)], [CALL_A])


def test_t3_thinking_that_the_template_has_opened() -> None:
    parser = TagToolParser(starts_thinking=True)
    assert parsed(f"I could {O}{A}{C}</think>{O}{A}{C}", parser) == ("", [CALL_A])
    assert parser.parse(f"I could {O}{A}{C}") == ParsedText("", reasoning=f"I could {O}{A}{C}")


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        (O, "", ""),
        (f"{O} \n```json\n", "", ""),
        (f'{O}{{"na', "", ""),
        (f'{O}{{"name": "we', "", ""),
        (f'{O}{{"name": "w"', "w", ""),
        (f'{O}{{"name": "w", "args": {{"t": "ab', "w", '{"t": "ab'),
        (f'{O}{{"args": {{"t": 1}}, "na', "", '{"t": 1}'),
        (f"{O}[", "", ""),
    ],
)
def test_t2_a_call_that_the_text_ends_in_is_truncated(text: str, name: str, arguments: str) -> None:
    assert parsed(f"so {text}") == ("so ", [(name, arguments, "truncated")])


@pytest.mark.parametrize(
    ("rest", "more"),
    [("", []), (",", [("", "", "truncated")]), (', {"name": "b"', [("b", "", "truncated")])],
)
def test_t2_whole_calls_before_the_cut_are_kept(
    rest: str, more: list[tuple[str, str, str]]
) -> None:
    assert parsed(f"{O}[{A}, {A}{rest}") == ("", [CALL_A, CALL_A, *more])


def test_t2_an_end_tag_in_an_open_string_says_that_the_string_was_not_closed() -> None:
    (call,) = TagToolParser().parse(f'{O}{{"name": "w", "args": {{"t": "ab}}}}{C}').calls
    assert (call.name, call.problem) == ("w", "malformed")
    assert "not closed before [/TOOL_CALL]" in str(call.detail)


@pytest.mark.parametrize(
    ("body", "name", "detail"),
    [
        ('{"name": "w", "args": {"x": oops}}', "w", "expected a JSON value, found 'oops'"),
        ("{'name': 'w'}", "", 'expected a name in double quotes or "}", found "\'"'),
        ('{"name": "w" "args": {}}', "w", 'expected "," or "}"'),
        ('{"name": "w", "args": [1}}', "w", 'expected "," or "]"'),
        ('{"name" = "w"}', "", 'expected ":"'),
        ('{"name": "w", "args": {"x": 01}}', "w", "found '01'"),
        ('{"nam": "w"}', "", 'has no "name"'),
        ('{"name": ""}', "", 'has no "name"'),
        ('{"name": 5}', "", 'has no "name"'),
        ('["w"]', "", "is a JSON object"),
        ('{"name": "w", "args": {}, "parameters": {}}', "w", "more than one arguments"),
        ('{"name": "w", "name": "v"}', "v", "more than one name"),
        ("get_weather(Oslo)", "", "is no JSON"),
    ],
)
def test_t2_what_is_no_call_as_it_stands_says_what_to_correct(
    body: str, name: str, detail: str
) -> None:
    found = TagToolParser().parse(f"so {O}{body}{C} on")
    (call,) = found.calls
    assert (found.text, call.name, call.problem) == ("so  on", name, "malformed")
    assert call.arguments in body
    assert detail in str(call.detail)
    assert f'{O}{{"name": "tool_name", "args": {{...}}}}{C}' in str(call.detail)
    assert found.format_errors == (call.detail,)


def test_t2_one_bad_call_of_an_array_leaves_its_siblings() -> None:
    body = f'[{A}, {{"nme": "b"}}, {A}, {{"name": "c", "args": oops}}, {A}]'
    _, found = parsed(f"{O}{body}{C}")
    assert [(name, problem) for name, _, problem in found] == [
        ("a", None),
        ("", "malformed"),
        ("a", None),
        ("c", "malformed"),
    ]


def test_t2_after_broken_json_nothing_that_looks_like_another_call_is_run() -> None:
    """A string whose quotes are broken may hold anything, also a call that is only quoted."""
    quoted = f'{O}{{"name": "delete"}}{C}'
    _, found = parsed(f'{O}{{"name": "w", "args": {{"text": "see "{quoted} "}}}}{C}')
    assert [one for one in found if one[2] is None] == []


def test_characters_that_json_has_no_place_for_are_left_to_the_decoder() -> None:
    """The string still ends, so the next call isn't harmed; decoding says what is wrong."""
    arguments = '{"t": "two\nlines \\_ [/TOOL_CALL]"}'
    assert parsed(f'{O}{{"name": "w", "args": {arguments}}}{C}{O}{A}{C}') == (
        "",
        [("w", arguments, None), CALL_A],
    )


@pytest.mark.parametrize(
    "text",
    ["[TOOL_CALL", f"The tag {O} begins a call.", C, f"{O}say no more", "[TOOL_CALLS]", "<thin"],
)
def test_t4_what_turns_out_not_to_be_a_call_is_shown(text: str) -> None:
    assert parsed(text) == (text, [])


def test_hermes_and_qwen() -> None:
    first = '<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>'
    second = '<tool_call>\n{"name": "b", "arguments": {}}\n</tool_call>'
    text = f"Ok.\n{first}\n{second}"
    assert parsed(text, TagToolParser.hermes()) == ("Ok.\n\n", [CALL_A, ("b", "{}", None)])


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS][{"name": "a", "arguments": {"x": 1}}]',
        '[TOOL_CALLS] [{"name": "a", "arguments": {"x": 1}, "id": "D681PevKs"}]</s>',
        '[TOOL_CALLS]a[ARGS]{"x": 1}',
        '[TOOL_CALLS]a[CALL_ID]D681PevKs[ARGS]{"x": 1}</s>',
        '[TOOL_CALLS]a{"x": 1}',
        '[TOOL_CALLS] a [ARGS] {"x": 1}',
    ],
)
def test_mistral(text: str) -> None:
    parser = TagToolParser.mistral()
    assert parsed(f"Ok. {text}", parser) == ("Ok. ", [CALL_A])
    shown, found = parsed(f"{text}{text}", parser)
    assert (shown, found) == ("", [CALL_A, CALL_A])


def test_mistral_text_behind_the_json_is_text() -> None:
    parser = TagToolParser.mistral()
    assert parsed('[TOOL_CALLS]a[ARGS]{"x": 1} now <s', parser) == (" now <s", [CALL_A])
    assert parsed("Write [TOOL_CALLS] and a name.", parser) == (
        "Write [TOOL_CALLS] and a name.",
        [],
    )
    assert parsed("[THINK][TOOL_CALLS]a[ARGS]{}[/THINK]", parser)[1] == []
    assert parsed('[TOOL_CALLS]a[ARGS]{"x', parser) == ("", [("a", '{"x', "truncated")])
    assert parsed("[TOOL_CALLS]a[ARGS]", parser) == ("", [("a", "", "truncated")])
    assert parsed("[TOOL_CALLS]a[ARGS]1", parser) == ("", [("a", "a[ARGS]1", "malformed")])


def test_llama() -> None:
    parser = TagToolParser.llama()
    assert parsed('<function=a>{"x": 1}</function>', parser) == ("", [CALL_A])
    python_tag = '<|python_tag|>{"name": "a", "parameters": {"x": 1}}'
    assert parsed(f"{python_tag}<|eom_id|>", parser) == ("", [CALL_A])
    assert parsed(f'{python_tag}; {{"name": "b", "parameters": {{}}}}<|eot_id|>', parser) == (
        "",
        [CALL_A, ("b", "{}", None)],
    )
    assert parsed(f"{python_tag}; done", parser) == ("; done", [CALL_A])
    shown, [(_, written, problem)] = parsed(
        '<|python_tag|>search.call(query="x")<|eom_id|>', parser
    )
    assert (shown, written, problem) == ("", 'search.call(query="x")', "malformed")
    assert parsed("<function=a>oops</function>.", parser) == (".", [("a", "a>oops", "malformed")])


def test_tags_of_ones_own() -> None:
    parser = TagToolParser(("<<", ">>"))
    assert parser.tags == ("<<", ">>")
    assert parsed(f"so <<{A}>>.", parser) == ("so .", [CALL_A])
    assert parser.parse(f"so {parser.format_call('a', '{}')}").calls[0].name == "a"


def test_several_ways_at_once() -> None:
    parser = TagToolParser(also=[CallSyntax("<tool_call>", ("</tool_call>",))])
    assert parsed(f"{O}{A}{C}<tool_call>{A}</tool_call>", parser) == ("", [CALL_A, CALL_A])


@pytest.mark.parametrize(
    "tags",
    [
        ("", "x"),
        ("[a]", ""),
        (" [a]", "[b]"),
        ('"a', "b"),
        ("{a}", "b"),
        ("[a\\", "b"),
        ("[a]", "[a]"),
        ("[a]", "[a]b"),
        ("```", "x"),
        ("-a", "b"),
    ],
)
def test_tags_that_cannot_be_told_apart_are_refused(tags: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"tag"):
        TagToolParser(tags)


@pytest.mark.parametrize("tags", [("a",), ("<a>", "<b>", "<c>"), "ab", 5, (1, 2)])
def test_what_is_no_pair_of_tags_is_refused(tags: Any) -> None:
    with pytest.raises(TypeError, match="takes a start and an end tag"):
        TagToolParser(tags)


@pytest.mark.parametrize("tag", ["[TOOL_CALL]", "<think>"])
def test_a_tag_that_begins_two_things_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="begins more than one thing"):
        TagToolParser(also=[CallSyntax(tag, ("[x]",))])


def test_starting_in_thinking_needs_to_know_where_it_ends() -> None:
    with pytest.raises(ValueError, match="starts_thinking"):
        TagToolParser(thinking=(), starts_thinking=True)


def test_nesting_and_numbers_without_end_are_no_danger() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    digits = "9" * 100_000
    arguments = f'{{"d": {deep}, "n": {digits}}}'
    (call,) = TagToolParser().parse(f'{O}{{"name": "a", "args": {arguments}}}{C}').calls
    assert call.arguments == arguments
    (cut,) = TagToolParser().parse(f'{O}{{"name": "a", "args": {deep[:50_000]}').calls
    assert cut.problem == "truncated"


def test_the_instruction_holds_the_form_and_every_tool() -> None:
    from text_toolkit import Tools

    instruction = TagToolParser.hermes().format_instruction(Tools.definitions())
    assert (
        '<tool_call>\n{"name": "tool_name", "arguments": {"parameter": "value"}}\n</tool_call>'
        in instruction
    )
    for definition in Tools.definitions():
        assert f"- {definition.name}: " in instruction
        assert json.dumps(definition.input_schema, separators=(",", ":")) in instruction
