"""A text model's thinking is the reasoning of its answer, not part of its text (S1, T3, T4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from pydantic import BaseModel
from text_toolkit import Tools, answers, asked, call, every_api

from lutumpy import Finished, NeedsTools, ReasoningDelta, Session, TextDelta
from lutumpy.models import Api
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import CallSyntax, ParsedText, TagToolParser, TextTools
from lutumpy.text_tools.thinking import LeadingThinking

OSLO = call("weather", {"city": "Oslo"})


class Value(BaseModel):
    a: int


class Custom:
    """A parser of one's own, which knows nothing of thinking."""

    tags = ("<<", ">>")

    def format_instruction(self, definitions: Any) -> str:
        return "Call."

    def parse(self, text: str) -> ParsedText:
        assert "<think>" not in text
        return ParsedText(text)

    def stream_formatter(self) -> Any:
        class Plain:
            def feed(self, chunk: str) -> str:
                return chunk

            def flush(self) -> str:
                return ""

        return Plain()


def deltas(events: list[Any]) -> tuple[str, str]:
    text = "".join([event.text for event in events if isinstance(event, TextDelta)])
    return text, "".join([event.text for event in events if isinstance(event, ReasoningDelta)])


@every_api
@pytest.mark.parametrize(
    "text",
    [
        '<think>\nOne, I guess.\n</think>\n\n{"a": 1}',
        '<think></think><think>One, I guess.</think>```json\n{"a": 1}\n```',
    ],
)
@pytest.mark.parametrize(
    "parser", [None, TagToolParser.hermes(), Custom()], ids=["default", "hermes", "custom"]
)
async def test_a_structured_turn_reads_the_value_behind_thinking(
    api: Api, text: str, parser: Any
) -> None:
    llm = TextTools(ScriptedModel([Reply(text=text)] * 4, api=api), parser)
    result = await asked().structured_turn(llm, Value).collect()
    assert (result.value, result.reasoning) == (Value(a=1), "One, I guess.")
    assert "think" not in result.text
    assert asked().structured_turn(llm, Value).collect_sync().value == Value(a=1)
    async with asked().structured_turn(llm, Value).stream() as stream:
        events = [event async for event in stream]
    assert stream.outcome.value == Value(a=1)
    assert deltas(events) == (result.text, "One, I guess.")
    with_tools = await asked().structured_turn(llm, Value, tools=Tools).collect()
    assert isinstance(with_tools, Finished)
    assert (with_tools.result.value, with_tools.result.reasoning) == (Value(a=1), "One, I guess.")


def test_a_tag_inside_of_a_structured_value_is_part_of_it() -> None:
    class Note(BaseModel):
        text: str

    llm = TextTools(ScriptedModel([Reply(text='{"text": "<think>no</think>"}')]))
    result = asked().structured_turn(llm, Note).collect_sync()
    assert (result.value, result.reasoning) == (Note(text="<think>no</think>"), None)


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("parser", [None, Custom()], ids=["default", "custom"])
@pytest.mark.parametrize("tools", [False, True])
def test_a_text_turn_shows_no_thinking(guided: bool, parser: Any, tools: bool) -> None:
    reply = Reply(text='<think>It asks for "hi".</think>Hi.')
    llm = TextTools(ScriptedModel([reply, reply]), parser, guided=guided)
    turn: Any = asked().text_turn(llm, tools=Tools) if tools else asked().text_turn(llm)
    found: Any = turn.collect_sync()
    result = found.result if tools else found
    assert (result.text, result.reasoning) == ("Hi.", 'It asks for "hi".')
    turn = asked().text_turn(llm, tools=Tools) if tools else asked().text_turn(llm)
    with turn.stream_sync() as stream:
        events = list(stream)
    assert deltas(events) == ("Hi.", 'It asks for "hi".')


def test_a_guided_answer_may_begin_with_thinking() -> None:
    answer = '{"answer": [{"name": "weather", "args": {"city": "<think>"}}]}'
    text = f"<think>The weather tool, then.</think>\n{answer}"
    llm = TextTools(ScriptedModel([Reply(text=text)] * 2), guided=True)
    outcome = asked().text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.turn.reasoning == "The weather tool, then."
    assert outcome.round.calls[0].arguments["city"] == "<think>"
    outcome.round.discard()


def test_the_calls_of_a_tool_turn_stand_beside_its_reasoning_and_go_on_to_other_models() -> None:
    inner = ScriptedModel(
        [Reply(text=f"<think>I need {OSLO}.</think>Let me look. {OSLO}"), Reply(text="Sunny.")]
    )
    llm, session = TextTools(inner), asked()
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    round = outcome.round
    assert (round.text, round.turn.reasoning, len(round.calls)) == (
        "Let me look. ",
        f"I need {OSLO}.",
        1,
    )
    round.commit(session, answers(round))
    again = Session.load(session.dump())
    assert [turn.blocks for turn in again.turns()] == [turn.blocks for turn in session.turns()]
    session.text_turn(llm, tools=Tools).collect_sync()
    assert (
        "<think>" in inner.requests[1]["messages"][2]["content"]
    )  # the model's own words, as it wrote them (R1)
    for api in ("openai_chat", "openai_responses", "anthropic_messages"):
        other = ScriptedModel([Reply(text="Ok.")], api=api)
        again.fork().text_turn(other, tools=Tools).collect_sync()
        assert "think" not in str(other.requests)


THINKING: list[tuple[str, str, str]] = [
    ("<think>a", "", "a"),
    ("<think>a</th", "", "a</th"),
    ("text <think>a", "text ", "a"),
    ("<think> \n </think>x", "x", ""),
    ("<think>\na b \n</think>\n\nx", "\n\nx", "a b"),
    ("<think>a</think>x<think>b</think>y", "xy", "a\n\nb"),
    ("<thin>a</think>x", "<thin>a</think>x", ""),
    ("Write `<think>` first.", "Write `<think>` first.", ""),
    ("```\n<think>a</think>\n```", "```\n<think>a</think>\n```", ""),
    (f"<think>{OSLO}</think>{OSLO}", "", OSLO),
    (call("write", {"text": "<think>x</think>"}), "", ""),
]


@pytest.mark.parametrize(("text", "shown", "reasoning"), THINKING)
def test_thinking_is_split_off_however_the_text_is_cut(
    text: str, shown: str, reasoning: str
) -> None:  # T3 T4
    parser = TagToolParser()
    parsed = parser.parse(text)
    assert (parsed.text, parsed.reasoning) == (shown, reasoning)
    for size in (1, 2, 3, 5, 100):
        formatter: Any = parser.stream_formatter()
        got, thought = "", ""
        for pos in range(0, len(text), size):
            got += formatter.feed(text[pos : pos + size])
            thought += formatter.take_reasoning()
        got += formatter.flush()
        assert (got, thought + formatter.take_reasoning()) == (shown, reasoning)


STARTED: list[tuple[str, str, str]] = [
    ("a</think>x", "x", "a"),
    ("<think>a</think>x", "x", "a"),
    (" \n<think>a</think>x", "x", "a"),
    ("<thi", "", "<thi"),
    ("a", "", "a"),
    ("", "", ""),
    ("a</think>x<think>b</think>", "x", "a\n\nb"),
]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(("text", "shown", "reasoning"), STARTED)
def test_thinking_that_the_prompt_has_opened(
    text: str, shown: str, reasoning: str, size: int
) -> None:
    parser = TagToolParser.hermes(starts_thinking=True)
    for make in (
        parser.stream_formatter,
        LeadingThinking(starts_thinking=True).formatter(parser.stream_formatter),
    ):
        formatter: Any = make()
        got = (
            "".join([formatter.feed(text[pos : pos + size]) for pos in range(0, len(text), size)])
            + formatter.flush()
        )
        if make == parser.stream_formatter:
            assert (got, formatter.take_reasoning()) == (shown, reasoning)


def test_a_value_of_a_model_whose_thinking_is_opened_by_the_prompt() -> None:
    """Where the endpoint holds it to a schema, there may be no thinking at all."""
    parser = TagToolParser.hermes(starts_thinking=True)
    for text, reasoning in (
        ('Hm.\n</think>\n{"a": 1}', "Hm."),
        ('{"a": 1}', None),
        ('<think>Hm.</think>{"a": 1}', "Hm."),
    ):
        llm = TextTools(ScriptedModel([Reply(text=text)]), parser)
        result = asked().structured_turn(llm, Value).collect_sync()
        assert (result.value, result.reasoning) == (Value(a=1), reasoning)
    llm = TextTools(ScriptedModel([Reply(text="Hm, and no end")]), parser)
    result = asked().structured_turn(llm, Value).collect_sync()
    assert (result.value, result.reasoning, result.value_error) == (
        None,
        "Hm, and no end",
        "the answer is empty",
    )


pieces = st.lists(
    st.sampled_from(["<think>", "</think>", "<", "think>", " ", "\n", "a", "{", '"']), max_size=14
)


@given(pieces=pieces, starts=st.booleans(), sizes=st.lists(st.integers(1, 5), max_size=30))
@settings(max_examples=examples(200))
def test_s1_leading_thinking_does_not_depend_on_where_the_text_is_cut(
    pieces: list[str], starts: bool, sizes: list[int]
) -> None:
    text, leading = "".join(pieces), LeadingThinking(starts_thinking=starts)
    whole = leading.parser(ParsedText)(text)
    formatter: Any = leading.formatter(None)()
    shown, thought, pos = "", "", 0
    for size in [*sizes, len(text) + 1]:
        shown += formatter.feed(text[pos : pos + size])
        thought += formatter.take_reasoning()
        pos += size
    shown += formatter.flush()
    assert (shown, thought + formatter.take_reasoning()) == (whole.text, whole.reasoning)


def test_presets_take_thinking_and_further_ways_to_write_calls() -> None:
    also = [CallSyntax("<call>", ("</call>",))]
    thinking = (("<reflect>", "</reflect>"),)
    text = '<reflect>hm</reflect><call>{"name": "a"}</call><think>x</think>'
    for preset in (TagToolParser.hermes, TagToolParser.mistral, TagToolParser.llama):
        parser = preset(also=also, thinking=thinking)
        parsed = parser.parse(text)
        assert ([c.name for c in parsed.calls], parsed.reasoning, parsed.text) == (
            ["a"],
            "hm",
            "<think>x</think>",
        )
        assert parser.thinking == thinking
        opened = preset(also=also, thinking=thinking, starts_thinking=True).parse("hm</reflect>x")
        assert (opened.text, opened.reasoning) == ("x", "hm")
    assert [
        c.name for c in TagToolParser.llama(also=also).parse('<|python_tag|>{"name": "b"}').calls
    ] == ["b"]
    assert TagToolParser.mistral().parse("[THINK]hm[/THINK]x").reasoning == "hm"


def test_a_cut_stream_has_the_thinking_that_arrived() -> None:
    llm = TextTools(ScriptedModel([Reply(text="<think>I think that", finish="length")] * 2))
    whole = asked().text_turn(llm).collect_sync()
    assert (whole.text, whole.reasoning, whole.finish_reason) == ("", "I think that", "length")
    with asked().text_turn(llm).stream_sync() as stream:
        events = list(stream)
    assert deltas(events) == ("", "I think that")
    assert stream.outcome.reasoning == "I think that"
