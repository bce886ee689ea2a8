"""What stands in or in place of a call that was asked for (rules T1, T2, C1, S1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from text_toolkit import Tools, asked, call

from lutumpy import Finished, NeedsTools, Session, ToolRequirement
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import TagToolParser, TextTools, text_formats

A = '{"name": "a", "args": {"x": 1}}'
B = '{"name": "b", "args": {"y": [2]}}'
O, C = "[TOOL_CALL]", "[/TOOL_CALL]"


def outcomes(
    text: str, require: Any = None, *, guided: bool = False, finish: str | None = None
) -> list[Any]:
    """The outcome of an answer, whole and streamed."""
    reply = Reply(text=text) if finish is None else Reply(text=text, finish=finish)
    llm = TextTools(ScriptedModel([reply, reply]), guided=guided)
    whole = asked().text_turn(llm, tools=Tools, require=require).collect_sync()
    with asked().text_turn(llm, tools=Tools, require=require).stream_sync() as stream:
        list(stream)
    return [whole, stream.outcome]


def the_issue(outcome: Any) -> Any:
    assert isinstance(outcome, NeedsTools), outcome
    assert outcome.round.calls == ()
    (issue,) = outcome.round.issues
    outcome.round.discard()
    return issue


@pytest.mark.parametrize(
    ("text", "guided"), [(f"{O}[]{C}", False), (f"{O}\n[ ]\n{C}", False), ('{"answer": []}', True)]
)
def test_an_empty_call_where_one_was_required_is_an_issue(text: str, guided: bool) -> None:
    for require in (ToolRequirement.at_least_one(), ToolRequirement.specific(Tools.weather)):
        for outcome in outcomes(text, require, guided=guided):
            issue = the_issue(outcome)
            assert issue.reason == "malformed_arguments"
            assert "holds none" in issue.detail
    for outcome in outcomes(text, guided=guided):
        assert "Your tool call holds none." in the_issue(outcome).detail
    if not guided:
        for outcome in outcomes(f"It is sunny. {text}"):
            assert isinstance(outcome, Finished)  # nobody asked for a call, and there is an answer


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (f"{A} and so on", "a"),
        (f"{A}\n[end]", "a"),
        (f"{A}</function>", "a"),
        (f"{A}{B}", "ab"),
        (f"{A}\n{B}\n{A}", "aba"),
        (f"{A},\n{B}", "ab"),
        (f"{A}; {B} that is all", "ab"),
        (f"[{A}]{B}", "ab"),
        (f"{A}[{B},{A}]", "aba"),
        (f"```json\n{A}\n{B}\n```", "ab"),
        (f"```json\n{A}\n```\nThis looks it up.", "a"),
    ],
)
def test_t1_a_sentence_behind_a_complete_object_is_dropped_and_further_objects_are_calls(
    body: str, names: str
) -> None:
    text = f"So {O}{body}{C} on"
    parsed = TagToolParser().parse(text)
    assert [c.name for c in parsed.calls] == list(names)
    assert all(c.problem is None for c in parsed.calls)
    assert parsed.text == "So  on"
    for size in (1, 2, 5):
        formatter = TagToolParser().stream_formatter()
        shown = "".join(
            [formatter.feed(text[pos : pos + size]) for pos in range(0, len(text), size)]
        )
        assert (shown + formatter.flush(), list(formatter.calls)) == ("So  on", list(parsed.calls))


def test_t1_a_new_start_tag_ends_what_is_dropped() -> None:
    parsed = TagToolParser().parse(f"{O}{A} and then {O}{B}{C} so")
    assert ([c.name for c in parsed.calls], parsed.text) == (["a", "b"], " so")
    parsed = TagToolParser().parse(f"{O}{A} and then nothing more")
    assert ([c.name for c in parsed.calls], parsed.text) == (["a"], "")


def test_t2_of_two_objects_the_second_may_be_cut_or_broken() -> None:
    one, two = TagToolParser().parse(f'{O}{A}\n{{"name": "b", "args": {{"y": ').calls
    assert (one.problem, two.name, two.problem) == (None, "b", "truncated")
    one, two = TagToolParser().parse(f'{O}{A}\n{{"name": "b" "args"}}{C}').calls
    assert (one.problem, two.name, two.problem) == (None, "b", "malformed")
    one, two = TagToolParser().parse(f'{O}{A} {{"thought": "so"}}{C}').calls
    assert (one.problem, two.problem) == (None, "malformed")


def test_t3_a_quoted_call_with_more_behind_it_is_not_run() -> None:
    for text in (f"```\n{O}{A} and more{C}\n```", f"```\n{O}{A}\n```\nis how it goes."):
        assert [c for c in TagToolParser().parse(text).calls if c.problem is None] == []


def test_a_second_object_of_arguments_is_told_where_the_name_stands_before_it() -> None:
    (found,) = TagToolParser.llama().parse('<function=a>{"x": 1}{"x": 2}</function>').calls
    assert (found.name, found.problem) == ("a", "malformed")
    (found,) = TagToolParser.llama().parse('<function=a>{"x": 1} so</function>').calls
    assert (found.name, found.arguments, found.problem) == ("a", '{"x": 1}', None)


OSLO = json.dumps({"name": "weather", "arguments": {"city": "Oslo"}})
FOREIGN = [
    OSLO,
    f"```json\n{OSLO}\n```",
    f"<tool_call>{OSLO}</tool_call>",
    f"<TOOL_CALL>{OSLO}</TOOL_CALL>",
    f"[tool_call]{OSLO}[/tool_call]",
    f"[ TOOL_CALL ]{OSLO}",
    f"[TOOL_CALLS][{OSLO}]",
    '[TOOL_CALLS]weather[ARGS]{"city": "Oslo"}',
    '<function=weather>{"city": "Oslo"}</function>',
    '<|python_tag|>weather.call(city="Oslo")',
    "get it: weather(city='Oslo')",
    '{"type": "function", "function": "weather", "parameters": {"city": "Oslo"}}',
    '{"action": "weather", "action_input": {"city": "Oslo"}}',
    'Action: weather\nAction Input: {"city": "Oslo"}',
    "<weather><city>Oslo</city></weather>",
    '<invoke name="weather"><parameter name="city">Oslo</parameter></invoke>',
    "<\uff5ctool\u2581calls\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>weather",
    f"```\nI would write {call('weather', {'city': 'Oslo'})}\n```",
]


# What may be what was asked for, where no call was.
MAY_BE_MEANT = [FOREIGN[index] for index in (1, 10, 14, 17)]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_required_call_in_another_shape_is_an_issue_that_says_how_to_write_it(text: str) -> None:
    for outcome in outcomes(f"Sure. {text}", ToolRequirement.at_least_one()):
        issue = the_issue(outcome)
        assert issue.reason == "malformed_arguments"
        assert "[TOOL_CALL]{" in issue.detail
        assert "not run" in issue.detail
        assert text[-5:] in issue.metadata.arguments
    for outcome in outcomes(text):
        if text in MAY_BE_MEANT:
            assert isinstance(outcome, Finished)
        else:
            issue = the_issue(outcome)
            assert "If it was none, answer without it." in issue.detail
            assert issue.metadata.name == "weather"


def test_where_no_call_was_required_a_lapse_is_told_once_for_a_message_C7() -> None:
    texts = [OSLO, f"<tool_call>{OSLO}</tool_call>", "Sunny.", OSLO]
    inner = ScriptedModel([Reply(text=text) for text in texts])
    llm, session = TextTools(inner), asked()
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [])
    twin = Session.load(session.dump())  # what was told is known from the dump as well
    second = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(second, Finished)
    session.push_user("And in Rome?")
    assert isinstance(session.text_turn(llm, tools=Tools).collect_sync(), Finished)
    session.push_user("And in Rome?")
    again = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(again, NeedsTools)
    again.round.discard()
    llm = TextTools(ScriptedModel([Reply(text=OSLO)]))
    assert isinstance(twin.text_turn(llm, tools=Tools).collect_sync(), Finished)


def test_a_sibling_with_a_damaged_tag_is_told_beside_the_call_that_was_read_C1() -> None:
    whole = call("weather", {"city": "Oslo"})
    for text in (
        f"{whole[1:]}\n{whole}",
        f"{whole}\n{whole[1:]}",
        f"{whole} {whole[:10]}{whole[11:]}",
    ):
        for outcome in outcomes(text):
            assert isinstance(outcome, NeedsTools)
            (one,) = outcome.round.calls
            (issue,) = outcome.round.issues
            assert (one.metadata.name, issue.metadata.name) == ("weather", "weather")
            assert issue.reason == "malformed_arguments"
            outcome.round.discard()


@pytest.mark.parametrize(
    "text",
    [
        "Write `<tool_call>` before the call of weather.",
        f"It is called so:\n```\n<tool_call>{OSLO}</tool_call>\n```\nThat asks for the weather.",
        "The tool weather takes a city: weather(city) is how I call it.",
        "The function of tools such as the weather's is to help.",
        '{"weather": "sunny", "city": "Oslo"}',
        f"Here is the JSON: {OSLO}",
        "<weather>sunny</weather>",
        "a <b>weather</b> report",
    ],
)
def test_an_answer_about_calls_stays_an_answer_T3(text: str) -> None:
    for outcome in outcomes(text):
        assert isinstance(outcome, Finished)


def test_the_hint_names_the_tool_and_comes_back_in_words() -> None:
    inner = ScriptedModel([Reply(text=OSLO), Reply(text=call("weather", {"city": "Oslo"}))])
    llm, session = TextTools(inner), asked()
    turn = session.text_turn(llm, tools=Tools, require=ToolRequirement.specific(Tools.weather))
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.issues[0].metadata.name == "weather"
    outcome.round.commit(session, [])
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    assert (
        '[TOOL_CALL]{"name": "weather", "args": {...}}[/TOOL_CALL]'
        in inner.requests[1]["messages"][-1]["content"]
    )


@pytest.mark.parametrize(
    "text", ["I can't know that.", "The weather is fine (today).", "", "Which action: rain or sun?"]
)
def test_an_answer_in_prose_stays_an_answer(text: str) -> None:
    for outcome in outcomes(text, ToolRequirement.at_least_one()):
        assert isinstance(outcome, Finished)


def test_a_cut_answer_is_told_as_cut() -> None:
    for outcome in outcomes(OSLO, ToolRequirement.at_least_one(), finish="length"):
        assert isinstance(outcome, Finished)
        assert outcome.result.finish_reason == "length"


def test_a_guided_answer_that_is_none_is_told_in_its_own_form() -> None:
    for outcome in outcomes(
        f"<tool_call>{OSLO}</tool_call>", ToolRequirement.at_least_one(), guided=True
    ):
        assert '{"answer": [{"name": "weather"' in the_issue(outcome).detail


@pytest.mark.pure
@pytest.mark.slow
def test_a_required_call_in_another_format_than_the_named_one_is_told_or_right_C7() -> None:
    """For every format: a lapse into another one is never another call, and never silent."""
    silent = []
    for one in text_formats():
        parser = TagToolParser.named(one.name)
        for text in FOREIGN:
            llm = TextTools(ScriptedModel([Reply(text=text)]), parser=parser)
            turn = asked().text_turn(llm, tools=Tools, require=ToolRequirement.at_least_one())
            outcome = turn.collect_sync()
            if not isinstance(outcome, NeedsTools):
                silent.append((one.name, text))
                continue
            for found in outcome.round.calls:
                assert found.metadata.name == "weather"
                assert json.loads(found.metadata.arguments) == {"city": "Oslo"}
            assert outcome.round.calls or outcome.round.issues
            outcome.round.discard()
    assert silent == []
