"""Decoding an answer against an offer (rules C1 to C10).

One toolset, and answers written by hand for each API.
"""

from __future__ import annotations

from typing import Any

import pytest
from every_api import ADAPTERS
from pydantic import BaseModel, field_validator

from lutumpy import (
    AssistantTurn,
    Finished,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolInput,
    ToolRound,
    Toolset,
    Transcript,
    nested,
    tool,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.models import CallBlock
from lutumpy.testing import Call, Reply, render

every_api = pytest.mark.parametrize("api", ADAPTERS)
text_apis = pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])


@tool_input(name="weather")
class Weather(ToolInput[str]):
    """Get the weather."""

    city: str
    days: list[int] = []
    note: str = "none"


@tool_input(name="picky")
class Picky(ToolInput[str]):
    """Refuses."""

    value: str

    @field_validator("value")
    @classmethod
    def refuse(cls, value: str) -> str:
        if value == "crash":
            raise KeyError("secret text")
        raise ValueError("secret text")


@tool_input(name="lookup")
class Lookup(ToolInput[None]):
    """Look up."""

    key: str = "all"


class Inner(Toolset):
    lookup = tool(Lookup)


class Tools(Toolset):
    weather = tool(Weather)
    picky = tool(Picky)
    inner = nested(Inner, off=True)


def read(
    api: str, *calls: Call, offer: Any = None, session: Session | None = None, **reply: Any
) -> ToolRound[Any]:
    session = session or Session()
    if not len(session.transcript):
        session.push_user("go")
    number = len(session.turns()) + 1
    turn = ADAPTERS[api].response(
        render(Reply(calls=calls, **reply), api, number=number, model="m")
    )  # type: ignore[arg-type]
    outcome = (offer or Tools.offer()).read(turn, session)
    assert isinstance(outcome, NeedsTools)
    return outcome.round


@every_api
def test_every_call_is_a_call_or_an_issue_in_order_C1(api: str) -> None:
    round = read(
        api,
        Call("nope"),
        Call("weather", {"city": "Oslo"}),
        Call("weather", {"town": "x"}),
        Call("weather", {"city": "Rome"}),
    )
    assert [c.input.city for c in round.calls] == ["Oslo", "Rome"]
    assert [i.reason for i in round.issues] == ["unknown_tool", "invalid_arguments"]
    session = Session()
    session.push_user("go")
    round.discard()


@every_api
def test_the_reasons_of_nested_tools_C2(api: str) -> None:
    off = read(api, Call("lookup", {"key": 1}))
    assert [i.reason for i in off.issues] == ["not_available"]  # before its arguments are looked at
    off.discard()
    on = read(
        api,
        Call("lookup", {"key": {}}),
        Call("lookup"),
        offer=Tools.offer(available=ToolAvailability.all()),
    )
    assert [i.reason for i in on.issues] == ["invalid_arguments"]
    assert on.calls[0].selector == Tools.inner.lookup
    on.discard()


@every_api
def test_an_unknown_tool_is_told_the_nearest_offered_names_C2(api: str) -> None:
    round = read(api, Call("wether"), Call("lookpu"))
    assert "weather" in round.issues[0].detail.split("Available")[0]
    assert "lookup" not in round.issues[1].detail  # exists, but isn't offered
    round.discard()


def many(count: int) -> Any:
    tools = {
        f"t{n:02}": tool(
            tool_input(name=f"t{n:02}", output=str)(
                type(f"T{n}", (BaseModel,), {"__doc__": "A tool."})
            )
        )
        for n in range(count)
    }
    return type("Many", (Toolset,), tools)


def detail_of(call: Call, toolset: Any, **offer: Any) -> str:
    round = read("openai_chat", call, offer=toolset.offer(**offer))
    detail: str = round.issues[0].detail
    round.discard()
    return detail


def test_what_can_be_called_instead_is_listed_C2() -> None:
    assert (
        detail_of(Call("nope"), many(2))
        == "There is no tool named 'nope'. Available tools: t00, t01."
    )
    assert detail_of(Call("t1"), many(2)).startswith(
        "There is no tool named 't1'. Did you mean t01? Available"
    )
    listed = [detail_of(Call("nope"), many(count)) for count in (20, 30, 60)]
    shown = [text.partition("tools: ")[2].removesuffix(".").partition(" and ") for text in listed]
    for (names, _, more), count in zip(shown, (20, 30, 60), strict=True):
        rest = int(more.removesuffix(" more") or 0)
        assert [*names.split(", ")] == [f"t{n:02}" for n in range(count - rest)]
    assert " more" not in listed[0]
    assert listed[2].endswith("t19 and 40 more.")
    assert "Did you mean t01 or t00?" in detail_of(Call("t012"), many(2))
    none = detail_of(Call("t00"), many(2), available=ToolAvailability.only())
    assert none == "The tool t00 is not available in this turn. No tools are available."


def test_a_call_of_another_kind_is_told_that_it_can_not_be_run_C8() -> None:
    answer = render(
        Reply(calls=[Call("weather", {"city": "Oslo"}, id="c1")]),
        "openai_chat",
        number=1,
        model="m",
    )
    custom = {"id": "c2", "type": "custom", "custom": {"name": "weather", "input": "Oslo"}}
    answer["choices"][0]["message"]["tool_calls"].append(custom)
    session = Session()
    session.push_user("go")
    outcome = Tools.offer().read(OpenAIChat.response(answer), session)
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.issues
    assert (issue.metadata.id, issue.reason) == ("c2", "unknown_tool")
    assert (
        issue.detail
        == "Calls of the kind 'custom' can't be run here. Available tools: weather, picky."
    )
    outcome.round.discard()


@pytest.mark.parametrize(
    ("incomplete", "unreadable"), [(False, "malformed_arguments"), (True, "truncated")]
)
def test_a_call_that_could_not_be_read_is_told_why_C2(incomplete: bool, unreadable: str) -> None:
    def block(call_id: str, name: str, problem: str | None) -> CallBlock:
        return CallBlock(call_id, name, "{}", incomplete=incomplete, position=0, problem=problem)

    calls = (
        block("c1", "weather", "Two at once."),
        block("c2", "nope", "Two at once."),
        block("c3", "", "No name."),
    )
    outcome = Tools.offer().read(
        AssistantTurn("openai_chat", (), b"{}", calls=(*calls, block("c4", "", None))), Session()
    )
    assert isinstance(outcome, NeedsTools)
    issues = outcome.round.issues
    assert [i.reason for i in issues] == [unreadable, "unknown_tool", unreadable, "unknown_tool"]
    assert (issues[0].detail, issues[2].detail) == ("Two at once.", "No name.")
    outcome.round.discard()


def test_a_long_name_is_shown_by_its_beginning_C2() -> None:
    assert detail_of(Call("n" * 100), many(1)).startswith(f"There is no tool named {'n' * 100!r}.")
    assert detail_of(Call("n" * 101), many(1)).startswith(
        f"There is no tool named {'n' * 100 + '…'!r}."
    )


def test_whatever_a_call_is_named_its_issue_is_short_C2_C3() -> None:
    long = "x" * 1_000_000

    def block(name: str, **more: Any) -> CallBlock:
        call_id = f"c{next(numbers)}"
        return CallBlock(call_id, name, more.pop("arguments", "{}"), position=0, **more)

    numbers = iter(range(9))
    calls = (
        block(long),
        block(long, kind=long),
        block("weather", problem=long),
        block("weather", arguments=f'{{"{long}": 1, "days": "{long}"}}'),
        block("weather", arguments=long),
        block(long, server_label="wiki", arguments="[]"),
        block(long, server_label=long, arguments="", incomplete=True),
    )
    outcome = Tools.offer().read(AssistantTurn("openai_chat", (), b"{}", calls=calls), Session())
    assert isinstance(outcome, NeedsTools)
    issues = outcome.round.issues
    assert len(issues) >= 6
    assert all(0 < len(issue.detail) < 6000 for issue in issues)
    outcome.round.discard()


def test_a_cut_call_is_told_what_to_do_C2a() -> None:
    reply = Reply(calls=[Call("weather", '{"city": "Os')], finish="length")
    session = Session()
    session.push_user("go")
    outcome = Tools.offer().read(
        OpenAIChat.response(render(reply, "openai_chat", number=1, model="m")), session
    )
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.issues[0].detail == (
        "The arguments of weather were cut off before they were complete, so it was not run. "
        "Call it again with complete, shorter arguments."
    )
    outcome.round.discard()


@text_apis
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"city": "Os', "truncated"),
        ("", "truncated"),
        (" ", "truncated"),
        ('{"city": 1}', "invalid_arguments"),
    ],
)
def test_the_last_call_of_a_cut_answer_C2a(api: str, arguments: str, reason: str) -> None:
    round = read(api, Call("weather", '{"city": "Os'), Call("weather", arguments), finish="length")
    assert [i.reason for i in round.issues] == ["malformed_arguments", reason]
    round.discard()
    whole = read(api, Call("weather", '{"city": "Oslo"}'), finish="length")
    assert whole.calls[0].input.city == "Oslo"  # its text is whole, so it is what the model meant
    whole.discard()


def test_a_cut_object_may_look_whole_C2a() -> None:
    round = read(
        "anthropic_messages",
        Call("weather", {"city": "A"}),
        Call("weather", {"city": "B"}),
        finish="length",
    )
    assert [c.input.city for c in round.calls] == ["A"]
    assert [i.reason for i in round.issues] == ["truncated"]
    round.discard()


@text_apis
@pytest.mark.parametrize("arguments", ["[1]", '"x"', "12", "true", "{", "{} {}", "<city>", "null,"])
def test_what_is_no_json_object_is_malformed_C2(api: str, arguments: str) -> None:
    round = read(api, Call("weather", arguments))
    assert [i.reason for i in round.issues] == ["malformed_arguments"]
    round.discard()


@every_api
def test_the_detail_names_fields_and_never_an_exception_C3(api: str) -> None:
    round = read(
        api,
        Call("weather", {"days": ["x" * 500] * 30}),
        Call("picky", {"value": "a"}),
        Call("picky", {"value": "crash"}),
    )
    fields, refused, crashed = [issue.detail for issue in round.issues]
    assert "city" in fields
    assert "days[0]" in fields
    assert "x" * 101 not in fields
    assert "http" not in fields
    assert fields.count("days[") <= 10
    assert "value" in refused
    assert "secret" not in refused + crashed
    round.discard()


@every_api
def test_repeats_of_the_same_failing_call_are_counted_C3(api: str) -> None:
    session = Session()
    for expected in range(3):
        round = read(api, Call("weather", {"town": "x", "b": 1}), session=session)
        assert round.issues[0].repeat == expected
        round.commit(session, [])
    other = read(api, Call("weather", '{"b": 1.0, "town": "x"}'), session=session)
    assert other.issues[0].repeat == 3  # the same JSON value, spelled differently
    other.commit(session, [])
    new = read(api, Call("weather", {"town": "y"}), session=session)
    assert new.issues[0].repeat == 0
    new.discard()


@text_apis
@pytest.mark.parametrize("arguments", ["", " \n", "null", "{}"])
def test_nothing_as_arguments_is_an_empty_object_C4(api: str, arguments: str) -> None:
    round = read(
        api, Call("lookup", arguments), offer=Tools.offer(available=ToolAvailability.all())
    )
    assert round.calls[0].input == Lookup()
    round.discard()


@every_api
def test_a_field_that_arrived_as_a_json_string_is_decoded_and_said_C5(api: str) -> None:
    round = read(api, Call("weather", {"city": '["Oslo"]', "days": "[1, 2]"}))
    call = round.calls[0]
    assert call.input.days == [1, 2]
    assert call.input.city == '["Oslo"]'
    assert [(r.path, r.rule) for r in call.repairs] == [("days", "json_string")]
    assert '"[1, 2]"' in call.metadata.arguments  # what the model asked stays
    round.discard()


@every_api
def test_null_for_an_optional_field_is_its_default_D5(api: str) -> None:
    round = read(api, Call("weather", {"city": "Oslo", "note": None}))
    assert round.calls[0].input.note == "none"
    assert round.calls[0].repairs == ()
    round.discard()


@every_api
def test_ids_are_made_unique_within_the_answer_and_the_transcript_C6(api: str) -> None:
    session = Session()
    seen: list[str] = []
    for _ in range(2):
        round = read(
            api, *[Call("weather", {"city": "x"}, id=i) for i in ("a", "a", "")], session=session
        )
        ids = [c.metadata.id for c in round.calls]
        assert len({*ids, *seen}) == 3 + len(seen)
        assert all(i.isalnum() and len(i) <= 40 for i in ids)
        seen += ids
        round.commit(session, [c.complete("x") for c in round.calls])
    copy = Session.load(session.dump())
    assert [c.id for turn in copy.turns() for c in turn.calls] == seen


@every_api
def test_an_id_that_was_not_used_before_is_kept_C6(api: str) -> None:
    calls = [Call("weather", {"city": "x"}, id=i) for i in ("a", "b", "a", "d")]
    round = read(api, *calls)
    first, second, third, fourth = [c.metadata.id for c in round.calls]
    assert (first, second, fourth) == ("a", "b", "d")
    assert third not in ("a", "b", "d")
    round.discard()


@every_api
def test_calls_count_whatever_the_finish_reason_says_C7(api: str) -> None:
    turn = render(Reply(calls=[Call("weather", {"city": "x"})]), api, number=1, model="m")  # type: ignore[arg-type]
    if api == "openai_chat":
        turn["choices"][0]["finish_reason"] = "stop"
    elif api == "anthropic_messages":
        turn["stop_reason"] = "end_turn"
    outcome = Tools.offer().read(ADAPTERS[api].response(turn), session := Session())
    assert isinstance(outcome, NeedsTools)
    assert not len(session.transcript)
    outcome.round.discard()


@every_api
def test_a_cut_text_is_kept_C7(api: str) -> None:
    transcript = Transcript()
    transcript.push_user("go")
    turn = ADAPTERS[api].response(
        render(Reply(text="Once", finish="length"), api, number=1, model="m")
    )  # type: ignore[arg-type]
    outcome = Tools.offer().read(turn, transcript)
    assert isinstance(outcome, Finished)
    assert outcome.result.text == "Once"
    assert outcome.result.finish_reason == "length"
    assert transcript.turns() == [turn]


def test_a_paused_turn_is_finished_and_goes_on_C10() -> None:
    session = Session()
    session.push_user("go")
    content = [
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "q"},
        }
    ]
    paused = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "pause_turn",
        "usage": {},
    }
    outcome = Tools.offer().read(AnthropicMessages.response(paused), session)
    assert isinstance(outcome, Finished)
    assert outcome.result.finish_reason == "paused"
    body = AnthropicMessages.request(session.transcript, Tools.offer())
    assert body["messages"][-1] == {"role": "assistant", "content": content}


class Unrelated(BaseModel):
    x: int


def test_reading_needs_a_session_or_a_transcript() -> None:
    turn = OpenAIChat.response(render(Reply(text="x"), "openai_chat", number=1, model="m"))
    with pytest.raises(TypeError, match="Transcript"):
        Tools.offer().read(turn, Unrelated(x=1))  # type: ignore[arg-type]


def test_a_reply_that_is_not_decoded_is_told() -> None:
    reply: Any = {"role": "assistant", "content": "hi"}
    with pytest.raises(TypeError, match=r"as adapter\.response\(reply\) gives it, not dict"):
        Tools.offer().read(reply, Session())
