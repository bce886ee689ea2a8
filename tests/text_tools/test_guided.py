"""Guided answers: the schema that is sent, and how what comes back is read."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples
from pydantic import BaseModel, Field
from text_toolkit import Tools, answers, asked, call, contents, every_api

from lutumpy import (
    Finished,
    InvalidToolConstraints,
    NeedsTools,
    Session,
    TextDelta,
    ToolCallReady,
    ToolInput,
    ToolRequirement,
    Toolset,
    tool,
    tool_input,
)
from lutumpy.models import Api, OutputSpec, ToolOffering, ToolSpec
from lutumpy.rules.strict import OPENAI_STRICT, strict_schema
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import ParsedText, TextTools
from lutumpy.text_tools.guided_answer import GuidedAnswers
from lutumpy.text_tools.guided_schema import MOST_CALLS, guided_output

OSLO = '{"name": "weather", "args": {"city": "Oslo"}}'
ROME = '{"name": "weather", "args": {"city": "Rome"}}'


class Leaf(BaseModel):
    size: int = Field(ge=0)


class Tree(BaseModel):
    leaf: Leaf
    branches: list[Tree] = []


@tool_input(name="plant")
class Plant(ToolInput[None]):
    """Plant a tree."""

    tree: Tree
    label: str = Field(pattern="^[a-z]+", max_length=5000)
    notes: dict[str, str] = {}


class Garden(Toolset):
    plant = tool(Plant)


def accepts(output: OutputSpec, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(dict(output.schema)).is_valid(value))


WEATHER = {"name": "weather", "args": {"city": "Oslo"}}
WRITE = {"name": "write", "args": {"text": "x"}}


@pytest.mark.parametrize(
    ("options", "taken", "refused"),
    [
        (
            {},
            [[WEATHER], [WEATHER, WRITE], "text"],
            [[], [{"name": "nope", "args": {}}], 1, {"x": 1}],
        ),
        ({"require": ToolRequirement.at_least_one()}, [[WRITE], [WEATHER, WRITE]], ["text", []]),
        (
            {"require": ToolRequirement.specific(Tools.weather)},
            [[WEATHER], [WEATHER, WEATHER]],
            ["text", [WRITE], []],
        ),
        ({"parallel": False}, [[WEATHER], "text"], [[WEATHER, WRITE]]),
        (
            {},
            [[WEATHER] * MOST_CALLS],
            [[WEATHER] * (MOST_CALLS + 1)],
        ),  # a list that never ends would end as a cut answer
    ],
)
def test_the_schema_takes_what_the_turn_may_be_answered_with(
    options: Any, taken: list[Any], refused: list[Any]
) -> None:
    output = guided_output(Tools.offer(**options))
    assert [answer for answer in taken if not accepts(output, {"answer": answer})] == []
    assert [answer for answer in refused if accepts(output, {"answer": answer})] == []
    call_schema = json.dumps(output.schema)
    assert call_schema.index('"name"') < call_schema.index('"args"')


def test_the_schema_holds_definitions_once_and_under_plain_names() -> None:
    output = guided_output(Garden.offer())
    schema = json.dumps(output.schema)
    assert set(output.schema["$defs"]) == {"of-plant-Leaf", "of-plant-Tree"}
    assert "pattern" not in schema
    assert "5000" not in schema
    tree = {"leaf": {"size": 1}, "branches": [{"leaf": {"size": 2}, "branches": []}]}
    assert accepts(output, {"answer": [{"name": "plant", "args": {"tree": tree, "label": "a"}}]})
    assert not accepts(
        output,
        {"answer": [{"name": "plant", "args": {"tree": {"leaf": {"size": -1}}, "label": "a"}}]},
    )


def test_schemas_that_refer_to_themselves_and_names_that_collide() -> None:
    itself = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": [],
    }
    specs = [
        ToolSpec("a_b", "", {**itself, "$defs": {"c": {"type": "string"}}}),
        ToolSpec(
            "a-b",
            "",
            {
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/c"}},
                "$defs": {"c": {"type": "null"}},
            },
        ),
    ]
    output = guided_output(ToolOffering(tuple(specs)))
    assert accepts(output, {"answer": [{"name": "a_b", "args": {"next": {"next": None}}}]})
    assert not accepts(output, {"answer": [{"name": "a_b", "args": {"next": 1}}]})
    assert accepts(output, {"answer": [{"name": "a-b", "args": {"x": None}}]})
    assert not accepts(output, {"answer": [{"name": "a-b", "args": {"x": "s"}}]})


def test_properties_named_like_keywords_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "$ref": {"type": "integer"}},
        "default": {"pattern": 1},
    }
    written = guided_output(ToolOffering((ToolSpec("a", "", schema),))).schema
    assert json.dumps(schema["properties"]) in json.dumps(written)


def test_the_schema_has_a_strict_form_where_the_tools_have_one() -> None:
    strict_schema(guided_output(Tools.offer()).schema, OPENAI_STRICT)


@every_api
async def test_a_guided_round_on_every_api(api: Api) -> None:
    inner = ScriptedModel(
        [Reply(text=f'{{"answer": [{OSLO}, {ROME}]}}'), Reply(text='{"answer": "Sunny in both."}')],
        api=api,
    )
    llm = TextTools(inner, guided=True)
    session = asked()
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    assert [c.metadata.arguments for c in outcome.round.calls] == [
        '{"city": "Oslo"}',
        '{"city": "Rome"}',
    ]
    assert outcome.round.text == ""
    outcome.round.commit(session, answers(outcome.round))
    finished = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(finished, Finished)
    assert finished.result.text == "Sunny in both."
    field = {
        "openai_chat": "response_format",
        "openai_responses": "text",
        "anthropic_messages": "output_config",
        "gemini_generate_content": "generationConfig",
        "bedrock_converse": "outputConfig",
        "ollama_chat": "format",
    }[api]
    sent = json.dumps(inner.requests[0][field])
    assert '"weather"' in sent.replace("\\", "")  # Converse takes the schema as a text
    assert contents(inner.requests[1])[2] == ("assistant", f'{{"answer": [{OSLO}, {ROME}]}}')
    assert '{"answer": [{"name": "tool_name", "args": {...}}]}' in contents(inner.requests[0])[0][1]
    twin = Session.load(json.dumps(session.dump()))
    inner.play(Reply(text="ok"))
    twin.push_user("Thanks")
    await twin.text_turn(llm).collect()
    assert field not in inner.requests[-1]


async def test_an_offer_without_a_strict_form_is_sent_as_it_is_or_refused_before_sending() -> None:
    script = [Reply(text='{"answer": "ok"}')]
    inner = ScriptedModel(script)
    await asked().text_turn(TextTools(inner, guided=True), tools=Garden).collect()
    assert inner.requests[0]["response_format"]["json_schema"]["strict"] is False
    claude = ScriptedModel(script, api="anthropic_messages")
    with pytest.raises(InvalidToolConstraints, match="strict form"):
        await asked().text_turn(TextTools(claude, guided=True), tools=Garden).collect()
    assert claude.requests == []


async def test_without_tools_there_is_no_schema_and_a_habit_is_still_read() -> None:
    inner = ScriptedModel(
        [
            Reply(text='{"answer": "a"}'),
            Reply(text=f'{{"answer": [{OSLO}]}}'),
            Reply(text='{"answer": "b"}'),
        ]
    )
    llm = TextTools(inner, guided=True)
    session = asked()
    first = await session.text_turn(llm).collect()
    assert first.text == '{"answer": "a"}'  # nobody has asked for guided answers yet
    session.push_user("Weather?")
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, answers(outcome.round))
    last = await session.text_turn(llm).collect()
    assert last.text == "b"
    assert ["response_format" in body for body in inner.requests] == [False, True, False]


async def test_a_typed_answer_takes_the_place_of_the_text() -> None:
    class Report(BaseModel):
        text: str

    inner = ScriptedModel(
        [Reply(text=f'{{"answer": [{OSLO}]}}'), Reply(text='{"answer": {"text": "sunny"}}')]
    )
    llm = TextTools(inner, guided=True)
    session = asked()
    outcome = await session.structured_turn(llm, Report, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, answers(outcome.round))
    finished = await session.structured_turn(llm, Report, tools=Tools).collect()
    assert isinstance(finished, Finished)
    assert finished.result.value == Report(text="sunny")
    spec = OutputSpec("Report", Report.model_json_schema())
    output = guided_output(Tools.offer(), value=spec)
    assert accepts(output, {"answer": {"text": "x"}})
    assert not accepts(output, {"answer": "x"})


async def test_a_call_of_another_adapter_is_told_as_a_guided_answer() -> None:
    from lutumpy.testing import Call

    session = asked()
    native = ScriptedModel([Reply(calls=[Call("weather", {"city": "Rome"})])])
    outcome = await session.text_turn(native, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, answers(outcome.round))
    inner = ScriptedModel([Reply(text='{"answer": "ok"}')])
    await session.text_turn(TextTools(inner, guided=True), tools=Tools).collect()
    assert contents(inner.requests[0])[2] == (
        "assistant",
        '{"answer": [{"name": "weather", "args": {"city":"Rome"}}]}',
    )


def test_the_text_is_shown_as_it_arrives_decoded() -> None:
    text = '{"answer": "Hi \\u00e9\\ud83d\\ude00 \\"you\\"\\n\\/ \\q \\ud800!"}'
    formatter = GuidedAnswers().stream_formatter()
    shown = [formatter.feed(char) for char in text] + [formatter.flush()]
    assert "".join(shown) == 'Hi é😀 "you"\n/ \\q \ufffd!'
    assert "".join(shown[: text.index("Hi") + 2]) == "Hi"


@pytest.mark.parametrize(
    "text",
    [
        "", "Hello", "  ", "{", "{}", '{"x": 1}', '{"answers": []}', '"answer"', '```py\nx\n```',
        '{"answer" = 1}', "```", "[TOOL_CALL]",
    ],
)  # fmt: skip
def test_what_is_no_guided_answer_is_text(text: str) -> None:
    shown = GuidedAnswers().parse(text)
    # Of a guided answer that was cut before its value, nothing is worth showing.
    assert shown == ParsedText("" if text == "{" else text)


@pytest.mark.parametrize(
    ("text", "shown", "found"),
    [
        (f'{{"answer":[{OSLO}]}}', "", [("weather", None)]),
        (f'```json\n{{"answer": [{OSLO}]}}\n```', "", [("weather", None)]),
        (f'{{"calls": [{OSLO}], "text": "Wait."}}', "Wait.", [("weather", None)]),
        (f'{{"answer": [{OSLO}]}} Done.', " Done.", [("weather", None)]),
        (f'{{"answer": [{OSLO}, {ROME[:20]}', "", [("weather", None), ("weather", "truncated")]),
        (f'{{"answer": [{OSLO}, oops]}}', "", [("weather", None), ("", "malformed")]),
        ('{"answer": [{"name": "weather", "args"', "", [("weather", "truncated")]),
        ('{"calls": ', "", [("", "truncated")]),
        ('{"answer": "Hel', "Hel", []),
        ('{"answer": "Hel\\u00', "Hel", []),
        ('{"answer": {"a": [1]}}', '{"a": [1]}', []),
        ('{"answer": null}', "null", []),
        ('{"answer": []}', "", []),
        ('{"ans', "", []),
    ],
)
def test_t2_guided_answers_and_cut_ones(
    text: str, shown: str, found: list[tuple[str, str | None]]
) -> None:
    parsed = GuidedAnswers().parse(text)
    assert (parsed.text, [(c.name, c.problem) for c in parsed.calls]) == (shown, found)


FRAGMENTS = [
    '{"answer": ', '{"calls":', '{"text": "', '"', "[", "]", "{", "}", ",", ":", OSLO,
    '{"name": "a"}', "\\u00e9", "\\ud83d", "\\ude00", "\\", "\\n", "\\q", "text", " ", "\n",
    "```json\n", "```", "`", "null", "12", '"answer": ', "\ud83d", "é",
]  # fmt: skip
texts = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)
)


@given(text=texts, sizes=st.lists(st.integers(0, 5), max_size=40))
@settings(max_examples=examples(400))
@example(text="```js`x\n{", sizes=[5])
def test_guided_answers_are_read_alike_however_they_are_cut(text: str, sizes: list[int]) -> None:
    guided = GuidedAnswers()
    whole = guided.parse(text)
    for cut in (sizes, [1] * len(text)):
        formatter = guided.stream_formatter()
        shown, pos = "", 0
        for size in cut:
            shown += formatter.feed(text[pos : pos + size])
            pos += size
        shown += formatter.feed(text[pos:]) + formatter.flush()
        assert (shown, list(formatter.calls)) == (whole.text, list(whole.calls))
    for one in whole.calls:
        assert one.name in text
        assert one.arguments in text or one.arguments == "{}"


@given(text=st.text())
def test_every_text_of_a_guided_answer_arrives(text: str) -> None:
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for ascii_only in (True, False):
        written = json.dumps({"answer": clean}, ensure_ascii=ascii_only)
        assert GuidedAnswers().parse(written) == ParsedText(clean)


def test_a_guided_stream_shows_no_json_and_tells_calls() -> None:
    inner = ScriptedModel(
        [
            Reply(text=f'{{"answer": [{OSLO}, {ROME}]}}'),
            Reply(text='{"answer": "All is well today."}'),
        ]
    )
    llm = TextTools(inner, guided=True)
    session = asked()
    with session.text_turn(llm, tools=Tools).stream_sync() as stream:
        events = list(stream)
    assert [e for e in events if isinstance(e, TextDelta)] == []
    assert [e.call.input.city for e in events if isinstance(e, ToolCallReady)] == ["Oslo", "Rome"]
    assert isinstance(stream.outcome, NeedsTools)
    stream.outcome.round.commit(session, answers(stream.outcome.round))
    with session.text_turn(llm, tools=Tools).stream_sync() as stream:
        pieces = [e.text for e in stream if isinstance(e, TextDelta)]
    assert "".join(pieces) == "All is well today."
    assert len(pieces) > 1


def test_tags_in_a_guided_answer_are_text() -> None:
    parsed = GuidedAnswers().parse(json.dumps({"answer": call("weather", {"city": "Oslo"})}))
    assert parsed == ParsedText(call("weather", {"city": "Oslo"}))
