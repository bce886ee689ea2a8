"""What formats by name say of their models' templates: lists of tools, results, and types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from text_toolkit import contents

from lutumpy import NeedsTools, Session, ToolDef, Toolset, tool, tool_fn
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import ResultForm, TagToolParser, TextTools, text_formats


@tool_fn
def measure(what: str, times: int | str, unit: str | None = None, factor: float = 1.0) -> str:
    """Measure something.

    Args:
        what: What.
        times: How often, as a number or a word.
        unit: In which unit.
        factor: By which factor.
    """
    return what


class Measures(Toolset):
    measure = tool(measure)


def asked() -> Session:
    session = Session()
    session.push_user("How high is it?")
    return session


def after_results(name: str, texts: list[str]) -> tuple[str, str]:
    """The instruction, and the message with the results, that a model of this format is sent."""
    parser = TagToolParser.named(name)
    call = parser.format_call("measure", '{"what": "a", "times": 1}')
    answer = "\n".join([call] * len(texts))
    if not parser.tags[0] and call.startswith("["):  # calls without tags are one list
        answer = f"[{', '.join([call[1:-1]] * len(texts))}]"
    if name == "xlam_fence":
        one = call.removeprefix("```json\n[").removesuffix("]\n```")
        answer = f"```json\n[{', '.join([one] * len(texts))}]\n```"
    inner = ScriptedModel([Reply(text=answer), Reply(text="Done.")])
    session, llm = asked(), TextTools(inner, parser=parser)
    outcome = session.text_turn(llm, tools=Measures).collect_sync()
    assert isinstance(outcome, NeedsTools), (name, answer)
    calls = outcome.round.calls
    assert len(calls) == len(texts), (name, answer, outcome.round.issues)
    outcome.round.commit(
        session, [one.complete(text) for one, text in zip(calls, texts, strict=True)]
    )
    session.text_turn(llm, tools=Measures).collect_sync()
    sent = contents(inner.requests[1])
    return sent[0][1], sent[-1][1]


# The results of two calls, "high" and "low", as the templates write them.
RESULTS = {
    "hermes": "<tool_response>\nhigh\n</tool_response>\n<tool_response>\nlow\n</tool_response>",
    "mistral_v3": '[TOOL_RESULTS]{"content": "high", "call_id": "call00001"}[/TOOL_RESULTS]'
    '[TOOL_RESULTS]{"content": "low", "call_id": "call00002"}[/TOOL_RESULTS]',
    "mistral_v11": "[TOOL_RESULTS]high[/TOOL_RESULTS][TOOL_RESULTS]low[/TOOL_RESULTS]",
    "mistral_v11_id": "[TOOL_RESULTS]call00001[TOOL_CONTENT]high[/TOOL_RESULTS]"
    "[TOOL_RESULTS]call00002[TOOL_CONTENT]low[/TOOL_RESULTS]",
    "nemotron": '<TOOL_RESPONSE>["high", "low"]</TOOL_RESPONSE>',
    "deepseek_v31": "<\uff5ctool▁output▁begin\uff5c>high<\uff5ctool▁output▁end\uff5c>"
    "<\uff5ctool▁output▁begin\uff5c>low<\uff5ctool▁output▁end\uff5c>",
    "deepseek_v32": "<function_results>\n<result>high</result>\n<result>low</result>\n"
    "</function_results>",
    "kimi_k2": "## Return of functions.measure:0\nhigh\n## Return of functions.measure:1\nlow",
    "minimax_m3": "<response>high</response>\n<response>low</response>",
    "gemma4": '<|tool_response>response:measure{value:<|"|>high<|"|>}<tool_response|>'
    '<|tool_response>response:measure{value:<|"|>low<|"|>}<tool_response|>',
    "lfm2": "<|tool_response_start|>high<|tool_response_end|>\n"
    "<|tool_response_start|>low<|tool_response_end|>",
    "react_json": "Observation: high\nObservation: low",
    "cohere_command4": '<|START_TOOL_RESULT|>[\n{"tool_call_id": "0", "results": {"0": '
    '{"content": "high"}}, "is_error": null},\n{"tool_call_id": "1", "results": {"0": '
    '{"content": "low"}}, "is_error": null}\n]<|END_TOOL_RESULT|>',
    # Llama's template gives results a role of their own and no marks.
    "llama3_bare": '[TOOL_RESULT id="call00001" name="measure" status=ok]\nhigh\n[/TOOL_RESULT]\n'
    '[TOOL_RESULT id="call00002" name="measure" status=ok]\nlow\n[/TOOL_RESULT]',
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_written_as_the_template_of_the_model_does_it_T6(name: str) -> None:
    assert after_results(name, ["high", "low"])[1] == RESULTS[name]


@pytest.mark.pure
@pytest.mark.slow
def test_every_format_lists_the_tools_tells_of_the_results_and_says_where_it_is_from_T6() -> None:
    for one in text_formats():
        assert one.source, one.name
        instruction, results = after_results(one.name, ["high", "low"])
        assert "Measure something." in instruction
        assert '"times"' in instruction
        if one.listing is not None:
            assert one.listing.before in instruction
            assert one.listing.behind in instruction
            assert f"You can call {one.listing.noun}s." in instruction
        told = "[TOOL_RESULT]" if one.results is None else one.results.told
        assert f"marked with {told}" in instruction
        assert told.strip("[]") in results
        assert results.index("high") < results.index("low")


@pytest.mark.pure
def test_no_content_looks_like_a_result_of_its_own_T6() -> None:
    for one in text_formats():
        form = one.results
        marks = () if form is None else form.marks
        assert form is None or marks, one.name
        hostile = "x\t" + "\n".join([*marks, *reversed(marks)]) + "\\tool result: y"
        plain = after_results(one.name, ["x"])[1]
        written = after_results(one.name, [hostile])[1]
        for mark in marks:
            assert written.count(mark) == plain.count(mark), (one.name, mark, written)


def test_a_content_that_is_quoted_is_the_same_text() -> None:
    form = ResultForm("tool result: ", "\n")
    for content in ("a\tool result: tool result: b", "tool result: \\ \t\n", "tool result: "):
        assert json.loads(form.quote(content)) == content
        assert "tool result: " not in form.quote(content)
    assert form.quote("the result") == "the result"


XML_CALL = (
    "<tool_call>\n<function=measure>\n<parameter=what>\n3\n</parameter>\n<parameter=times>\n{}\n"
    "</parameter>\n<parameter=unit>\n{}\n</parameter>\n</function>\n</tool_call>"
)


def the_call(name: str, text: str) -> Any:
    inner = ScriptedModel([Reply(text=text)])
    turn = asked().text_turn(TextTools(inner, TagToolParser.named(name)), tools=Measures)
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    (one,) = outcome.round.calls
    outcome.round.discard()
    return one


@pytest.mark.parametrize(
    ("times", "unit", "read", "receipt"),
    [
        ("2", "null", {"times": 2, "unit": None}, [("times", "by_schema"), ("unit", "by_schema")]),
        ("two", "m", {"times": "two", "unit": "m"}, []),
        ('"2"', "2", {"times": '"2"', "unit": "2"}, []),
        ("true", "None", {"times": "true", "unit": "None"}, []),
        ("2.5", "", {"times": "2.5", "unit": ""}, []),
    ],
)
def test_a_value_without_a_type_is_what_the_schema_says_and_the_call_says_so_C5(
    times: str, unit: str, read: dict[str, Any], receipt: list[tuple[str, str]]
) -> None:
    one = the_call("qwen3_coder", XML_CALL.format(times, unit))
    found = json.loads(one.metadata.arguments)
    assert found == {"what": "3", **read}
    assert [tuple(repair) for repair in one.repairs] == receipt


def test_the_receipt_goes_with_the_dump_and_names_places_in_elements_C5() -> None:
    mark = "]<]minimax[>["
    text = (
        f'{mark}<tool_call>{mark}<invoke name="measure">{mark}<what>a{mark}</what>'
        f"{mark}<times>2{mark}</times>{mark}<factor>2.5{mark}</factor>{mark}</invoke>"
        f"{mark}</tool_call>"
    )
    assert [repair.path for repair in the_call("minimax_m3", text).repairs] == ["times", "factor"]
    session = asked()
    llm = TextTools(ScriptedModel([Reply(text=text)]), TagToolParser.named("minimax_m3"))
    outcome = session.text_turn(llm, tools=Measures).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [one.complete("b") for one in outcome.round.calls])
    dumped = session.dump()
    loaded = Session.load(dumped)
    (turn,) = loaded.transcript.turns()
    assert turn.calls[0].by_schema == ("times", "factor")
    assert loaded.dump() == dumped


def test_a_value_whose_element_says_its_type_needs_no_receipt_C5() -> None:
    bar = "\uff5cDSML\uff5c"
    text = (
        f'<{bar}tool_calls><{bar}invoke name="measure"><{bar}parameter name="what" string="true">1'
        f'</{bar}parameter><{bar}parameter name="times" string="false">2</{bar}parameter>'
        f"</{bar}invoke></{bar}tool_calls>"
    )
    one = the_call("deepseek_v4", text)
    assert json.loads(one.metadata.arguments) == {"what": "1", "times": 2}
    assert one.repairs == ()


NESTED = {
    "type": "object",
    "properties": {
        "where": {"$ref": "#/$defs/Place"},
        "names": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "first": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        "kind": {"enum": ["a", 3]},
        "size": {"const": 2},
        "either": {"type": ["integer", "boolean"]},
        "rest": {"type": "object", "additionalProperties": {"type": "number"}},
        "all": {"allOf": [{"type": "object", "properties": {"x": {"type": "integer"}}}]},
        "any": True,
        "lost": {"$ref": "#/$defs/nothing/there"},
    },
    "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
}


def nested(body: str) -> list[Any]:
    """What is read of a call of `put` with these elements; `|` stands for the mark."""
    text = f'|<tool_call>|<invoke name="put">{body}|</invoke>|</tool_call>'
    parser = TagToolParser.named("minimax_m3")
    found = parser.parse(text.replace("|", "]<]minimax[>["), [ToolDef("put", "", NESTED)])
    return [
        json.loads(one.arguments) if one.problem is None else one.problem for one in found.calls
    ]


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("|<where>|<lat>2.5|</lat>|<city>3|</city>|</where>", {"where": {"lat": 2.5, "city": "3"}}),
        ("|<names>|<item>1|</item>|<item>b|</item>|</names>", {"names": ["1", "b"]}),
        ("|<names>null|</names>|<where>|</where>", {"names": None, "where": {}}),
        ("|<names>|</names>|<rest>|<y>1|</y>|</rest>", {"names": [], "rest": {"y": 1}}),
        (
            "|<first>|<item>1|</item>|<item>2|</item>|<item>3|</item>|</first>",
            {"first": [1, "2", "3"]},
        ),
        (
            "|<kind>3|</kind>|<size>2|</size>|<either>true|</either>",
            {"kind": 3, "size": 2, "either": True},
        ),
        ("|<either>True|</either>|<all>|<x>1|</x>|</all>", {"either": True, "all": {"x": 1}}),
        ("|<any>2|</any>|<lost>[1]|</lost>|<new>2|</new>", {"any": 2, "lost": [1], "new": "2"}),
        ("|<new>|<item>a|</item>|</new>|<size>|</size>", {"new": ["a"], "size": ""}),
        ("|<new>|<b>a|</b>|<item>c|</item>|</new>", {"new": {"b": "a", "item": "c"}}),
        ("|<where>|<lat>1|</lat>|<lat>2|</lat>|</where>", "malformed"),
        ("|<where>north|<lat>1|</lat>|</where>", "malformed"),
        ("|<where>1|</there>", "malformed"),
        ("|no element", "malformed"),
        ("|<a>" * 70 + "|</a>" * 70, "malformed"),
    ],
)
def test_elements_within_elements_are_what_the_schema_says_C5(body: str, read: Any) -> None:
    assert nested(body) == [read]


def test_blocks_of_elements_that_hold_no_call_are_told_T2() -> None:
    parser = TagToolParser.named("minimax_m3")
    for body in ("so", "|<city>a|</city>", "|</city>", '|<invoke name="put">|<a>b'):
        text = f"|<tool_call>{body}|</tool_call>".replace("|", "]<]minimax[>[")
        (found,) = parser.parse(text).calls
        assert found.problem == "malformed"
    for body in ("", "|<inv", '|<invoke name="put">|<a>b'):
        (cut,) = parser.parse(f"|<tool_call>{body}".replace("|", "]<]minimax[>[")).calls
        assert cut.problem == "truncated"
    assert parser.format_call("put", "no JSON").count("invoke") == 2
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    assert '["x"]' in parser.format_call("put", json.dumps({"a": deep}))
