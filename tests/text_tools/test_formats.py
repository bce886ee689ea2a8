"""Every format that is known by name reads what its models write (rules T1 to T4, S1)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from text_toolkit import Tools, asked, spell

from lutumpy import NeedsTools, ToolDef, Toolset, tool, tool_fn
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import (
    ParsedText,
    TagToolParser,
    TextFormat,
    TextTools,
    XmlSyntax,
    recognize_format,
    text_formats,
)

TRICKY = 'say "hi" to {Åse} \\ it\'s </tool_call> [/x] {"a": 1} and </parameter> 晴'
DEFINITIONS = [
    ToolDef(
        "get_weather",
        "The weather.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["city"],
        },
    ),
    ToolDef(
        "look_up",
        "Looks something up.",
        {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    ),
]
NAMES = [one.name for one in text_formats()]
# One text for a call, so that nothing but a line break can stand between two of them.
ARGUMENTS: list[dict[str, Any]] = [
    {"city": "Oslo"},
    {"city": "Åsgårdstrand", "days": 3, "tags": ["a", "b"]},
    {"city": TRICKY, "unit": None},
]


@tool_fn
def find(text: str) -> str:
    """Find something.

    Args:
        text: What to find.
    """
    return text


def outcome(found: ParsedText) -> list[tuple[str, Any]]:
    return [
        (call.name, json.loads(call.arguments) if call.problem is None else call.problem)
        for call in found.calls
    ]


def streamed(parser: TagToolParser, pieces: Sequence[str]) -> ParsedText:
    formatter: Any = parser.stream_formatter(DEFINITIONS)
    shown = "".join([formatter.feed(piece) for piece in pieces]) + formatter.flush()
    return ParsedText(shown, tuple(formatter.calls), (), formatter.take_reasoning())


# Answers as models write them: the format, the answer, what is shown of it, and its calls.
OSLO = ("get_weather", {"city": "Oslo"})
THREE = ("get_weather", {"city": "3", "days": 3, "unit": None, "tags": ["x"]})
BAR = "\uff5c"
ANSWERS: list[tuple[str, str, str, list[tuple[str, Any]]]] = [
    (
        "qwen3_xml",
        "Sure.\n<tool_call>\n<function=get_weather>\n<parameter=city>\n3\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n<parameter=unit>\nnull\n</parameter>\n"
        '<parameter=tags>\n["x"]\n</parameter>\n</function>\n</tool_call>',
        "Sure.\n",
        [THREE],
    ),
    (
        "qwen3_coder",
        "<function=look_up>\n<parameter=text>\na\n</parameter> b\n</function>x\n</parameter>\n"
        "</function>",
        "",
        [("look_up", {"text": "a\n</parameter> b\n</function>x"})],
    ),
    (
        "glm47",
        "<think>hm</think><tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value>"
        "</tool_call><tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n"
        "</tool_call>",
        "",
        [OSLO, OSLO],
    ),
    (
        "seed_oss",
        "<seed:think>a</seed:think><seed:tool_call>\n<function=get_weather>\n"
        "<parameter=city>Oslo</parameter>\n</function>\n</seed:tool_call>",
        "",
        [OSLO],
    ),
    (
        "minimax-m2",
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>'
        '\n</invoke>\n<invoke name="look_up">\n<parameter name="text"> a\n</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        "",
        [OSLO, ("look_up", {"text": " a\n"})],
    ),
    (
        "deepseekv32",
        f'<{BAR}DSML{BAR}function_calls>\n<{BAR}DSML{BAR}invoke name="get_weather">\n'
        f'<{BAR}DSML{BAR}parameter name="city" string="true">3</{BAR}DSML{BAR}parameter>\n'
        f'<{BAR}DSML{BAR}parameter name="days" string="false">2</{BAR}DSML{BAR}parameter>\n'
        f"</{BAR}DSML{BAR}invoke>\n</{BAR}DSML{BAR}function_calls>",
        "",
        [("get_weather", {"city": "3", "days": 2})],
    ),
    (
        "step3",
        f"<{BAR}tool_calls_begin{BAR}>\n<{BAR}tool_call_begin{BAR}>function<{BAR}tool_sep{BAR}>"
        '<steptml:invoke name="get_weather"><steptml:parameter name="city">Oslo'
        f"</steptml:parameter></steptml:invoke><{BAR}tool_call_end{BAR}>\n"
        f"<{BAR}tool_calls_end{BAR}>",
        "\n\n",
        [OSLO],
    ),
    (
        "cline_xml",
        "I look.\n<get_weather>\n<city>Oslo</city>\n<days>2</days>\n</get_weather>\nDone <b>it</b>",
        "I look.\n\nDone <b>it</b>",
        [("get_weather", {"city": "Oslo", "days": 2})],
    ),
    (
        "deepseek_v3",
        f"Ok.<{BAR}tool▁calls▁begin{BAR}><{BAR}tool▁call▁begin{BAR}>function<{BAR}tool▁sep{BAR}>"
        f'get_weather\n```json\n{{"city": "Oslo"}}\n```<{BAR}tool▁call▁end{BAR}>'
        f"<{BAR}tool▁calls▁end{BAR}>",
        "Ok.",
        [OSLO],
    ),
    (
        "kimi_k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_call_begin|>'
        'get_weather:1<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|>'
        "<|tool_calls_section_end|>",
        "",
        [OSLO, OSLO],
    ),
    (
        "openai",
        "<|channel|>analysis<|message|>I think of <|call|>.<|end|><|start|>assistant<|channel|>"
        'commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>',
        "",
        [OSLO],
    ),
    (
        "gpt-oss",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>"
        '{"city": "Oslo"}<|call|><|start|>assistant<|channel|>final<|message|>It rains.<|return|>',
        "It rains.",
        [OSLO],
    ),
    (
        "cohere_command3",
        "<|START_THINKING|>I will.<|END_THINKING|><|START_ACTION|>[\n    "
        '{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}\n]'
        "<|END_ACTION|>",
        "",
        [OSLO],
    ),
    (
        "apertus",
        '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>',
        "",
        [OSLO],
    ),
    ("pythonic", "[get_weather(city='Oslo'), get_weather(city=\"Oslo\")]", "", [OSLO, OSLO]),
    (
        "pythonic",
        "[get_weather](https://a.b) is a link",
        "[get_weather](https://a.b) is a link",
        [],
    ),
    ("pythonic", "[other(city='Oslo')]", "[other(city='Oslo')]", []),
    ("pythonic", "[get_weather(city=open('x'))]", "[get_weather(city=open('x'))]", []),
    (
        "llama4_pythonic",
        "<|python_start|>[get_weather(city='\\d', days=-1, tags=['a'], unit=None)]<|python_end|>",
        "",
        [("get_weather", {"city": "\\d", "days": -1, "tags": ["a"], "unit": None})],
    ),
    (
        "olmo3",
        "<function_calls>get_weather(city='Oslo')\nlook_up(text=\"it's\")</function_calls>",
        "",
        [OSLO, ("look_up", {"text": "it's"})],
    ),
    ("gemma_tool_code", "Ok\n```tool_code\nget_weather(city='Oslo')\n```\nB", "Ok\n\nB", [OSLO]),
    ("gemma_tool_code", "```python\nx = 1\n```", "```python\nx = 1\n```", []),
    (
        "functiongemma",
        '<start_function_call>call:get_weather{city:<escape>a {b:1} "c"<escape>,days:2,'
        "tags:[<escape>x<escape>]}<end_function_call>",
        "",
        [("get_weather", {"city": 'a {b:1} "c"', "days": 2, "tags": ["x"]})],
    ),
    # Its template ends the prompt with the start tag.
    ("functionary_v32", 'all\nHi>>>get_weather\n{"city": "Oslo"}', "\nHi", [OSLO]),
    ("functionary_v32", 'get_weather\n{"city": "Oslo"}', "", [OSLO]),
    (
        "functionary_v32",
        'get_weather\n{"city": "Oslo"}>>>get_weather\n{"city": "Oslo"}',
        "",
        [OSLO, OSLO],
    ),
    ("functionary_v32", 'get_weather\n{"city": ', "", [("get_weather", "truncated")]),
    ("functionary_v32", "get_weather\nis a tool", "get_weather\nis a tool", []),
    ("functionary_v32", 'nothing\n{"city": "Oslo"}', 'nothing\n{"city": "Oslo"}', []),
    ("functionary_v32", "get_weather", "get_weather", []),
    ("functionary_v32", "all is well", "all is well", []),
    ("functionary_v32", ">>>all\nHi", "\nHi", []),
    (
        "react_text",
        "Thought: I need it.\nAction: look_up\nAction Input: the tides\nObservation:",
        "Thought: I need it.\n",
        [("look_up", {"text": "the tides"})],
    ),
    ("react_text", "Action: get_weather\nAction Input: Oslo", "", [("get_weather", "malformed")]),
    (
        "llama3_json",
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}<|eot_id|>',
        "",
        [OSLO],
    ),
    (
        "llama3_json",
        '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}',
        "",
        [OSLO],
    ),
    ("llama3_json", '{"name": "Ada", "parameters": {}}', '{"name": "Ada", "parameters": {}}', []),
    ("llama3_json", '{"name": "get_weather"} is a call', '{"name": "get_weather"} is a call', []),
    ("llama3_json", '{"city": "Oslo"}', '{"city": "Oslo"}', []),
    (
        "xlam",
        '```json\n[{"name": "get_weather", "arguments": {"city": "Oslo"}}]\n```',
        "",
        [OSLO],
    ),
    (
        "generic_json",
        '{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}',
        "",
        [OSLO],
    ),
    (
        "cohere_command4",
        "<|START_THINKING|>I will.<|END_THINKING|><|START_TEXT|>One moment.<|END_TEXT|>"
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": '
        '{"city": "Oslo"}},\n    {"tool_call_id": "1", "tool_name": "get_weather", '
        '"parameters": {"city": "Oslo"}}\n]<|END_ACTION|>',
        "One moment.",
        [OSLO, OSLO],
    ),
    (
        "inkling",
        "<|content_thinking|>Hm.<|end_message|><|message_model|><|content_text|>Sure.<|end_message|>"
        '<|message_model|>get_weather<|content_invoke_tool_json|>{"name":"get_weather","args":'
        '{"city":"Oslo"}}<|end_message|><|message_model|><|content_invoke_tool_json|>'
        '{"name":"get_weather","args":{"city":"Oslo"}}<|content_model_end_sampling|>',
        "Sure.",
        [OSLO, OSLO],
    ),
    (
        "inkling",
        'get_weather<|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"Oslo"}}'
        "<|end_message|>",
        "",
        [OSLO],
    ),
    (
        "kimi_k3",
        "<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Sure."
        '<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"'
        '<|sep|><|open|>argument key="city" type="string"<|sep|>3<|close|>argument<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>'
        '<|open|>argument key="unit" type="null"<|sep|>null<|close|>argument<|sep|>'
        '<|open|>argument key="tags" type="array"<|sep|>["x"]<|close|>argument<|sep|>'
        '<|close|>call<|sep|><|open|>call tool="get_weather" index="2"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
        "Sure.",
        [THREE, OSLO],
    ),
    (
        "minicpm5",
        '<think>H</think><function name="get_weather"><param name="city">Oslo</param></function>\n'
        '<function name="look_up"><param name="text"><![CDATA[a < b & </param>\nc]]></param>'
        "</function>",
        "\n",
        [OSLO, ("look_up", {"text": "a < b & </param>\nc"})],
    ),
    (
        "minimax-m3",
        "<mm:think>Hm.</mm:think>Sure.]<]minimax[>[<tool_call>\n"
        ']<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>3]<]minimax[>[</city>'
        "]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[<unit>null]<]minimax[>[</unit>"
        "]<]minimax[>[<tags>]<]minimax[>[<item>x]<]minimax[>[</item>]<]minimax[>[</tags>"
        ']<]minimax[>[</invoke>\n]<]minimax[>[<invoke name="get_weather">'
        "]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[</invoke>\n"
        "]<]minimax[>[</tool_call>",
        "Sure.",
        [THREE, OSLO],
    ),
    (
        "minimax_m3",
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo'
        "]<]minimax[>[</town>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
        "",
        [("get_weather", "malformed")],
    ),
    (
        "poolside_v1",
        "<think>Hm.</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo"
        "</arg_value>\n</tool_call>\n<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo"
        "</arg_value></tool_call>",
        "\n\n",
        [OSLO, OSLO],
    ),
    (
        "hy_v3",
        "<think:opensource></think:opensource><tool_calls:opensource>\n<tool_call:opensource>"
        "get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
        "<arg_value:opensource>Oslo</arg_value:opensource>\n</tool_call:opensource>\n"
        "</tool_calls:opensource>",
        "\n\n",
        [OSLO],
    ),
    (
        "deepseekv41",
        f'<{BAR}DSML{BAR} calls>\n<{BAR}DSML{BAR} invoke name="get_weather">\n'
        f'<{BAR}DSML{BAR} parameter name="city" string="true">Oslo</{BAR}DSML{BAR} parameter>\n'
        f"</{BAR}DSML{BAR} invoke>\n</{BAR}DSML{BAR} calls>",
        "",
        [OSLO],
    ),
    (
        "minimax",
        '<tool_calls>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_calls>',
        "",
        [OSLO, OSLO],
    ),
]


@pytest.mark.parametrize(("name", "answer", "shown", "calls"), ANSWERS)
def test_answers_as_models_write_them_T1(
    name: str, answer: str, shown: str, calls: list[tuple[str, Any]]
) -> None:
    parser = TagToolParser.named(name)
    found = parser.parse(answer, DEFINITIONS)
    assert (found.text, outcome(found)) == (shown, calls)
    for size in (1, 2, 5, 17):
        again = streamed(parser, [answer[at : at + size] for at in range(0, len(answer), size)])
        assert (again.text, again.calls) == (found.text, found.calls), size
        assert again.reasoning == found.reasoning


@pytest.mark.parametrize("name", NAMES)
def test_a_format_reads_one_call_two_calls_and_a_tricky_one_T1(name: str) -> None:
    (one,) = [found for found in text_formats() if found.name == name]
    parser = TagToolParser.named(name)
    for arguments in ([ARGUMENTS[0]], ARGUMENTS[:2], [ARGUMENTS[2]]):
        calls = [("get_weather", one) for one in arguments]
        text = spell(one, calls)
        found = parser.parse(text, DEFINITIONS)
        assert outcome(found) == calls, text
        # Nothing of the format is shown (T4).
        assert not found.text.strip(), text
        # Any cut gives the same (S1).
        for size in (1, 2, 3, 7, 50):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            again = streamed(parser, pieces)
            assert (again.text, again.calls) == (found.text, found.calls), (text, size)


def element_formats() -> list[TextFormat]:
    """The formats with elements for arguments whose end tags are all alike."""
    return [
        one
        for one in text_formats()
        if isinstance(one.syntaxes[0], XmlSyntax) and "{key}" not in one.syntaxes[0].value_end
    ]


@pytest.mark.parametrize("one", element_formats(), ids=lambda one: one.name)
def test_a_value_without_its_end_tag_takes_in_no_other_argument_C5(one: TextFormat) -> None:
    parser = TagToolParser.named(one.name)
    syntax = one.syntaxes[0]
    assert isinstance(syntax, XmlSyntax)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_weather", {"city": "Oslo", "days": 3}),
        ("look_up", {"text": "tides"}),
    ]
    for written in (calls, [("get_weather", {"city": "Oslo"}), calls[1]]):
        text = spell(one, written)
        for size in (len(text), 3):
            damaged = text.replace(syntax.value_end, "", 1)
            found = streamed(
                parser, [damaged[at : at + size] for at in range(0, len(damaged), size)]
            )
            assert found.calls[0].problem == "malformed", damaged
            assert found.calls[0].detail
            # A call of its own that is whole is read (C1).
            assert outcome(found)[1:] in ([], [calls[1]]), damaged
    # Two calls in one value, which is as well a call that is quoted.
    quote = spell(one, [("get_weather", {"city": "Oslo"})])
    found = parser.parse(spell(one, [("look_up", {"text": f"So:\n{quote}\nIt is."})]), DEFINITIONS)
    assert found.calls[0].problem == "malformed"


@pytest.mark.parametrize("one", element_formats(), ids=lambda one: one.name)
def test_a_text_about_arguments_is_read_as_it_is(one: TextFormat) -> None:
    syntax = one.syntaxes[0]
    assert isinstance(syntax, XmlSyntax)
    quote = spell(one, [("f", {"unit": "m"})])
    element = quote[quote.index(syntax.key[0]) : quote.rindex(syntax.value_end)]
    for text in (
        f"An argument is written as\n{element}{syntax.value_end}\nwith a line for each.",
        f"It begins with {syntax.key[0]} and so on",
        f"A name of no argument here:\n{element.replace('unit', 'width')}",
        f"One that the call has:\n{element.replace('unit', 'city')}",
    ):
        calls = [("get_weather", {"city": text, "days": 3})]
        assert outcome(TagToolParser.named(one.name).parse(spell(one, calls), DEFINITIONS)) == calls


@pytest.mark.parametrize("name", NAMES)
def test_a_call_in_thinking_is_none_in_any_format_T3(name: str) -> None:
    """Also of models that have tags of their own for it."""
    (one,) = [found for found in text_formats() if found.name == name]
    drafted, meant = (spell(one, [("get_weather", {"city": city})]) for city in ("Bergen", "Oslo"))
    text = f"<think>{drafted}</think>\n{meant}"
    for size in (len(text), 1, 5):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        found = streamed(TagToolParser.named(name), pieces)
        assert outcome(found) == [("get_weather", {"city": "Oslo"})]
        assert not found.text.strip()
        assert found.reasoning == drafted.strip()


# How models think whose tags are their own.
THINKING = [
    ("seed_oss", "<seed:think>", "</seed:think>"),
    ("hy_v3", "<think:opensource>", "</think:opensource>"),
    ("minimax_m3", "<mm:think>", "</mm:think>"),
    ("apertus", "<|inner_prefix|>", "<|inner_suffix|>"),
    ("plamo3", "<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    ("gemma4", "<|channel>thought\n", "<channel|>"),
    ("longcat", "<longcat_think>\n", "</longcat_think>"),
    ("solar_open2", "<|think:start|>\n", "<|think:end|>"),
]


@pytest.mark.parametrize(("name", "start", "end"), THINKING)
def test_a_call_in_a_models_own_thinking_is_none_T3(name: str, start: str, end: str) -> None:
    (one,) = [found for found in text_formats() if found.name == name]
    draft = f"I could {spell(one, [OSLO])} but won't."
    for begins in (True, False):  # where the prompt begins the thinking, the answer doesn't
        parser = TagToolParser.named(name, starts_thinking=not begins)
        answer = (start if begins else "") + draft + end + "It is late."
        found = parser.parse(answer, DEFINITIONS)
        assert (found.text, found.reasoning, found.calls) == ("It is late.", draft, ())
        for size in (1, 5, 17):
            pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
            assert streamed(parser, pieces) == found


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_is_cut_anywhere_is_never_another_call_T2(name: str) -> None:
    (one,) = [found for found in text_formats() if found.name == name]
    parser = TagToolParser.named(name)
    calls = [("get_weather", arguments) for arguments in ARGUMENTS[1:]]
    text = spell(one, calls)
    for stop in range(len(text)):
        for found in parser.parse(text[:stop], DEFINITIONS).calls:
            if found.problem is None and not found.open_ended:
                assert (found.name, json.loads(found.arguments)) in calls, text[:stop]


@settings(max_examples=examples(40))
@given(data=st.data())
def test_damaged_answers_of_every_format_never_raise_and_end_alike_S1(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(text_formats()))
    parser = TagToolParser.named(one.name)
    calls = [("get_weather", arguments) for arguments in ARGUMENTS[:2]]
    text = spell(one, calls)
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 12))
    inserted = data.draw(
        st.sampled_from(["", "`", "\n", "```\n", "<", "{", "]", "'", "é", "<think>"])
    )
    damaged = text[:at] + inserted + text[at + length :]
    found = parser.parse(damaged, DEFINITIONS)
    size = data.draw(st.integers(1, 30))
    again = streamed(parser, [damaged[x : x + size] for x in range(0, len(damaged), size)])
    assert (again.text, again.calls) == (found.text, found.calls)


def test_a_header_that_never_ends_is_text_however_it_is_cut_S1() -> None:
    text = "<|channel|>" + "9" * 390 + "<|channel|>analysis<|message|>a<|end|>b"
    parser = TagToolParser.named("gpt_oss")
    for long in (text, "<|channel|>" + "9" * 3_000 + text):
        found = parser.parse(long, DEFINITIONS)
        for size in (1, 7, 395, 401, 450):
            again = streamed(parser, [long[at : at + size] for at in range(0, len(long), size)])
            assert (again.text, again.reasoning) == (found.text, found.reasoning), size


def test_servers_names_are_aliases() -> None:
    for one in text_formats():
        for alias in one.aliases:
            TagToolParser.named(alias)
    with pytest.raises(ValueError, match="no format of tool calls is called 'nothing'"):
        TagToolParser.named("nothing")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder"),
        ("qwen2.5-7b-instruct", "hermes"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("zai-org/GLM-4.6", "glm45"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v31"),
        ("deepseek-ai/DeepSeek-R1", "deepseek_v3"),
        ("openai/gpt-oss-20b", "gpt_oss"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
        ("meta-llama/Llama-4-Scout", "llama4_pythonic"),
        ("Mistral-Small-3.2", "mistral_v3"),
        ("nobody-knows", None),
    ],
)
def test_the_name_of_a_model_tells_its_format(model: str, name: str | None) -> None:
    found = recognize_format(model)
    assert (None if found is None else found.name) == name


def test_a_template_tells_more_than_a_name() -> None:
    template = "{{ '<tool_call>\\n<function=' + call.name }}<function=example>"
    found = recognize_format("my-hermes", template)
    assert found is not None
    assert found.name == "qwen3_coder"


def test_auto_picks_by_the_name_logs_it_and_reads_by_the_offer_C5(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = (
        "<tool_call>\n<function=weather>\n<parameter=city>\n3\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    for streamed_one in (False, True):
        inner = ScriptedModel([Reply(text=text)], model="Qwen3-Coder-30B")
        with caplog.at_level("INFO", logger="lutumpy.text_tools"):
            llm = TextTools(inner, parser="auto")
        assert "Qwen3-Coder-30B are read as qwen3_coder" in caplog.text
        turn = asked().text_turn(llm, tools=Tools)
        if streamed_one:
            with turn.stream_sync() as stream:
                list(stream)
            outcome = stream.outcome
        else:
            outcome = turn.collect_sync()
        assert isinstance(outcome, NeedsTools)
        (one,) = outcome.round.calls
        assert json.loads(one.metadata.arguments) == {"city": "3", "days": 3}
        outcome.round.discard()
    with pytest.raises(ValueError, match='parser="auto" knows no format'):
        TextTools(ScriptedModel([], model="nobody-knows"), parser="auto")


def test_a_bare_text_in_an_answer_that_was_cut_is_not_run_C2a() -> None:
    class Lookup(Toolset):
        find = tool(find)

    for reason, calls in (("stop", 1), ("length", 0)):
        inner = ScriptedModel([Reply(text="Action: find\nAction Input: the tid", finish=reason)])
        llm = TextTools(inner, parser=TagToolParser.named("react_text"))
        outcome = asked().text_turn(llm, tools=Lookup).collect_sync()
        assert isinstance(outcome, NeedsTools)
        assert len(outcome.round.calls) == calls
        assert [issue.reason for issue in outcome.round.issues] == ["truncated"] * (1 - calls)
        outcome.round.discard()
