"""Windows are new transcripts of whole rounds, which every API takes (rules K5, R5, S4)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from each_case import each
from histories import (
    ADAPTERS,
    HISTORIES,
    ROWS,
    body_of,
    broken_rules,
    name_of,
    read,
    refused,
    written,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, run_state_machine_as_test
from profiles import examples
from test_conversations import Conversations

from lutumpy import (
    AssistantTurn,
    FilePart,
    ImagePart,
    Session,
    TextPart,
    Transcript,
    TranscriptError,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.core.transcript import failure_key
from lutumpy.core.windows import estimated_tokens, head_of, tokens_of
from lutumpy.models import Item, Message, ResultBlock, ToolResults, TranscriptRound

Json = Any


def characters(item: Item) -> int:
    return tokens_of(item, len)


def thinking(number: int, *calls: str) -> AssistantTurn:
    content: list[Json] = [{"type": "thinking", "thinking": "hm", "signature": f"c2ln{number}"}]
    content += [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in calls]
    content += [] if calls else [{"type": "text", "text": f"answer {number}"}]
    return AnthropicMessages.response(
        {"content": content, "stop_reason": "tool_use" if calls else "end_turn"}
    )


def conversation(rounds: int = 3) -> Transcript:
    """Each round: a question, a call with its result, an answer, both with signed reasoning."""
    transcript = Transcript()
    transcript.push_system("Be brief.")
    for number in range(rounds):
        transcript.push_user(f"question {number}")
        call = ResultBlock(
            f"c{number}", "f", "no" if number == 0 else "ok", "error" if number == 0 else "ok"
        )
        failures = [("f", "{}")] if number == 0 else []
        transcript.append_turn(thinking(number, f"c{number}"), ToolResults((call,)), failures)
        transcript.append_turn(thinking(number))
    return transcript


def users(transcript: Transcript) -> list[str]:
    return [item.text for item in transcript if isinstance(item, Message)]


# --- rounds ---------------------------------------------------------------------------------------


def test_a_round_is_what_the_user_says_and_all_that_comes_of_it() -> None:
    transcript = conversation()
    rounds = transcript.rounds()
    assert [found.start for found in rounds] == [1, 5, 9]
    assert [type(item) for item in rounds[0].items] == [
        Message,
        AssistantTurn,
        ToolResults,
        AssistantTurn,
    ]
    assert rounds[1].turns == (transcript[6], transcript[8])
    assert [item for found in rounds for item in found.items] == list(transcript)[1:]
    assert transcript.rounds(2) == rounds[1:]
    assert transcript.rounds(0) == []
    assert transcript.rounds(9) == rounds
    assert Transcript().rounds() == []


def test_what_is_pushed_together_is_one_round_and_what_is_pushed_in_the_middle_belongs_to_it() -> (
    None
):
    transcript = Transcript()
    transcript.push_developer("Be brief.")
    transcript.push_user("Here")
    transcript.push_user("Go")
    transcript.push_assistant("An example.")
    transcript.push_system("Now in French.")
    transcript.push_ephemeral_user("It is Monday.")
    transcript.push_user("Go on")
    assert [
        [item.text for item in found.items if isinstance(item, Message)]
        for found in transcript.rounds()
    ] == [
        ["Here", "Go", "An example.", "Now in French.", "It is Monday."],
        ["Go on"],
    ]


def test_a_text_in_the_message_of_results_stays_with_them() -> None:
    history = [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "1"},
                {"type": "text", "text": "Now?"},
            ],
        },
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "More"},
    ]
    transcript = Transcript.from_messages("anthropic_messages", history)
    assert [len(found.items) for found in transcript.rounds()] == [5, 1]
    assert AnthropicMessages.messages(transcript.window(max_rounds=1)) == history[4:]
    assert AnthropicMessages.messages(transcript.select(transcript.rounds()[:1])) == history[:4]


# --- windows --------------------------------------------------------------------------------------


def test_the_last_rounds_that_fit_are_kept_whole() -> None:
    transcript = conversation()
    head, *rounds = [
        sum(map(characters, items))
        for items in [[transcript[0]], *[r.items for r in transcript.rounds()]]
    ]
    for kept in (1, 2):
        enough = head + sum(rounds[-kept:])
        for budget in (enough, enough + rounds[0] - 1):
            window = transcript.window(budget, count=len)
            assert users(window) == ["Be brief.", *[f"question {k}" for k in range(3 - kept, 3)]]
            assert len(window) == 1 + 4 * kept
    assert len(transcript) == 13, "the transcript itself stays as it is"


def test_what_fits_is_a_fork_that_sends_the_same_bytes() -> None:
    transcript = conversation()
    for window in (
        transcript.window(10_000),
        transcript.window(max_rounds=3),
        transcript.select(transcript.rounds()),
    ):
        assert window is not transcript
        assert list(window) == list(transcript)
        assert AnthropicMessages.messages(window) == AnthropicMessages.messages(transcript)


def test_an_impossible_budget_says_what_the_last_round_needs() -> None:
    transcript = conversation()
    need = sum(map(characters, transcript.rounds()[-1].items))
    before = list(transcript)
    with pytest.raises(
        TranscriptError,
        match=rf"the last round alone takes {need}, and what stays .* 9; the transcript",
    ):
        transcript.window(max_tokens=need + 8, count=len)
    assert list(transcript) == before
    assert users(transcript.window(max_tokens=need + 9, count=len)) == ["Be brief.", "question 2"]
    only = Transcript()
    only.push_system("Be brief.")
    assert users(only.window(max_tokens=9, count=len)) == ["Be brief."]
    with pytest.raises(TranscriptError, match="alone takes 0"):
        only.window(max_tokens=8, count=len)


@pytest.mark.parametrize(
    "limits", [{}, {"max_tokens": 0}, {"max_rounds": 0}, {"max_tokens": -1, "max_rounds": 1}]
)
def test_a_window_needs_a_limit_from_1(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"max_tokens or max_rounds|limits begin at 1"):
        conversation().window(**limits)


@pytest.mark.parametrize("given", [-1, True, 1.5, None])
def test_count_has_to_give_a_number(given: Any) -> None:
    with pytest.raises(TypeError, match="count takes a text and returns its number of tokens"):
        conversation().window(100, count=lambda text: given)


@pytest.mark.parametrize("limits", [{"max_rounds": 1.5}, {"max_tokens": "9"}, {"max_rounds": True}])
def test_a_limit_is_a_whole_number(limits: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"max_\w+ is a whole number, not"):
        conversation().window(**limits)


@pytest.mark.parametrize("summary", [5, b"text", lambda dropped: None])
def test_a_summary_is_a_text_or_gives_one(summary: Any) -> None:
    long = conversation(5)
    for take in (
        lambda: long.window(max_rounds=1, summary=summary),
        lambda: long.select(long.rounds()[1:], summary=summary),
    ):
        with pytest.raises(TypeError, match=r"summary (is|takes|gives).*text.*, not"):
            take()
    assert len(long.rounds()) == 5


def test_both_limits_hold() -> None:
    transcript = conversation(5)
    assert len(transcript.window(10_000, max_rounds=2).rounds()) == 2
    assert len(transcript.window(100, max_rounds=4, count=len).rounds()) == 3


def test_signed_reasoning_leaves_when_anything_before_it_did_R5() -> None:
    transcript = conversation()
    window = transcript.window(max_rounds=1)
    assert [turn.reasoning_dropped for turn in window.turns()] == [True, True]
    assert "thinking" not in json.dumps(AnthropicMessages.messages(window))
    first, _, third = transcript.rounds()
    chosen = transcript.select([third, first])
    assert users(chosen) == ["Be brief.", "question 0", "question 2"]
    assert [turn.reasoning_dropped for turn in chosen.turns()] == [False, False, True, True]
    assert not any(turn.reasoning_dropped for turn in transcript.turns())


def test_reasoning_that_is_not_signed_stays() -> None:
    history = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": "d"},
    ]
    window = Transcript.from_messages("openai_responses", history).window(max_rounds=1)
    assert OpenAIResponses.messages(window) == history[2:]


def test_failures_are_those_of_the_same_arguments_C3() -> None:
    transcript = Transcript()
    transcript.push_user("Go")
    function = {"name": "f", "arguments": '{"x": 1}'}
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    turn = OpenAIChat.response({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    transcript.append_turn(
        turn, ToolResults((ResultBlock("c1", "f", "no", "error"),)), [failure_key("f", '{"x":1}')]
    )
    transcript.append_turn(
        OpenAIChat.response({"choices": [{"message": {"role": "assistant", "content": "x"}}]})
    )
    transcript.push_user("Go on")
    first = transcript.select(transcript.rounds()[:1])
    assert [first.failures("f", arguments) for arguments in ('{"x":1.0}', "{}")] == [1, 0]


def test_ids_and_failures_are_those_of_its_rounds_C3_C6() -> None:
    transcript = conversation()
    window = transcript.window(max_rounds=1)
    assert transcript.failures("f", "{}") == 1
    assert window.failures("f", "{}") == 0
    assert transcript.select(transcript.rounds()[:1]).failures("f", "{}") == 1
    window.append_turn(thinking(9, "c0"), ToolResults((ResultBlock("c0", "f", "ok"),)))
    with pytest.raises(TranscriptError, match="used before"):
        window.append_turn(thinking(9, "c2"), ToolResults((ResultBlock("c2", "f", "ok"),)))
    loaded = Session.load(json.dumps(Session(window).dump())).transcript
    assert written("anthropic_messages", loaded) == written("anthropic_messages", window)


def test_system_messages_of_dropped_rounds_stand_with_the_leading_ones() -> None:
    transcript = conversation(1)
    transcript.push_system("Now in French.")
    transcript.push_user("Go")
    window = transcript.window(max_rounds=1)
    assert users(window) == ["Be brief.", "Now in French.", "Go"]
    assert AnthropicMessages.system(window) == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Now in French."},
    ]
    assert AnthropicMessages.messages(window) == [{"role": "user", "content": "Go"}]


def test_a_system_message_that_moves_up_takes_the_signatures_after_it_along_R5() -> None:
    transcript = conversation(1)
    transcript.push_user("Go")
    transcript.append_turn(thinking(7))
    transcript.push_system("Now in French.")
    transcript.push_user("More")
    first, _, last = transcript.rounds()
    assert [turn.reasoning_dropped for turn in transcript.select([first, last]).turns()] == [
        True,
        True,
    ]


def test_a_summary_stands_in_place_of_what_was_dropped() -> None:
    transcript = conversation()
    window = transcript.window(max_rounds=1, summary="They asked twice.")
    assert users(window) == ["Be brief.", "They asked twice.", "question 2"]
    assert transcript.window(max_rounds=3, summary="Never seen.").rounds() == transcript.rounds()
    first, _, third = transcript.rounds()
    chosen = transcript.select([first, third], summary=lambda dropped: f"{len(dropped)} items")
    assert users(chosen) == ["Be brief.", "question 0", "4 items", "question 2"]
    assert AnthropicMessages.messages(window)[:2] == [
        {"role": "user", "content": "They asked twice."},
        {"role": "user", "content": "question 2"},
    ]


def test_a_summary_counts_and_is_made_anew_when_it_leaves_too_little_room() -> None:
    transcript = conversation(4)
    asked: list[int] = []

    def summary(dropped: Sequence[Item]) -> str:
        asked.append(len(dropped))
        return "x" * 20

    costs = [sum(map(characters, found.items)) for found in transcript.rounds()]
    window = transcript.window(9 + sum(costs[1:]), count=len, summary=summary)
    assert asked == [4, 8]
    assert users(window) == ["Be brief.", "x" * 20, "question 2", "question 3"]
    with pytest.raises(TranscriptError, match="without a summary"):
        transcript.window(9 + costs[-1] + 19, count=len, summary="x" * 20)


def test_pending_ephemerals_are_kept_and_sent_ones_leave_S4() -> None:
    transcript = conversation(2)
    transcript.push_ephemeral_user("It is Monday.")
    transcript.push_user("Go")
    window = transcript.window(max_rounds=1)
    assert users(window) == ["Be brief.", "It is Monday.", "Go"]
    held = transcript.fork()
    turn = thinking(8, "c8")
    held.request_succeeded(turn, len(held))
    held.append_turn(turn, ToolResults((ResultBlock("c8", "f", "ok"),)))
    assert "It is Monday." in users(held), "reasoning was signed over it, and its tool loop goes on"
    held.push_ephemeral_user("Later.")
    window = held.window(max_rounds=1)
    assert users(window) == ["Be brief.", "Go", "Later."]
    assert [turn.reasoning_dropped for turn in window.turns()] == [True]
    reply = OpenAIChat.response({"choices": [{"message": {"role": "assistant", "content": "x"}}]})
    window.request_succeeded(reply, len(window))
    assert users(window) == ["Be brief.", "Go"]


def test_a_round_of_another_transcript_is_refused() -> None:
    transcript = conversation()
    for other in (
        conversation(4).rounds()[3],
        TranscriptRound(1, (transcript[1],)),
        TranscriptRound(99, ()),
    ):
        with pytest.raises(
            TranscriptError, match=f"the round at {other.start} is none of this transcript"
        ):
            transcript.select([other])
    assert users(transcript.select([])) == ["Be brief."]


# --- tokens ---------------------------------------------------------------------------------------


def test_text_is_estimated_at_four_bytes_a_token() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "abcd", "abcde", "日本", "\ud800")] == [
        0,
        1,
        1,
        2,
        2,
        1,
    ]


def test_everything_that_is_sent_counts() -> None:
    png = ImagePart(b"x", "image/png")
    files = (
        FilePart(b"x" * 50_001, "application/pdf"),
        FilePart(b"12345678", "text/plain"),
        FilePart(url="https://x.org"),
    )
    assert (
        tokens_of(Message("user", (TextPart("12345678"), png, *files)), estimated_tokens)
        == 2 + 1600 + 3200 + 2 + 1600
    )
    turn = AnthropicMessages.response(
        {"content": [{"type": "thinking", "thinking": "1234"}, {"type": "text", "text": "1234"},
                     {"type": "tool_use", "id": "t", "name": "abcd", "input": {}}], "stop_reason": "tool_use"}
    )  # fmt: skip
    assert tokens_of(turn, len) == 4 + 4 + 4 + 2
    assert (
        tokens_of(ToolResults((ResultBlock("t", "f", "1234"), ResultBlock("u", "f", (png,)))), len)
        == 1604
    )
    search = {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": [{"encrypted_content": "x" * 100}],
    }
    assert (
        tokens_of(AnthropicMessages.response({"content": [search], "stop_reason": "end_turn"}), len)
        > 100
    )
    read_only = Transcript.from_messages("openai_responses", [{"type": "compaction_trigger"}])
    assert tokens_of(read_only[0], len) == len('{"type":"compaction_trigger"}')


# --- whatever the conversation --------------------------------------------------------------------


def check_windows(transcript: Transcript, number: int, own: str | None) -> None:
    rounds = transcript.rounds()
    items = list(transcript)
    assert [item for found in rounds for item in found.items] == items[head_of(items) :]
    total = sum(map(characters, items))
    kept = 1 + number % max(1, len(rounds))
    windows = [transcript.window(max_rounds=kept, summary="Before." if number % 2 else None)]
    try:
        chosen = [found for k, found in enumerate(rounds) if (number >> k) & 1]
        windows.append(transcript.select(chosen, summary=lambda dropped: f"{len(dropped)} items"))
    except TranscriptError as error:  # a turn that still runs is followed by another round
        assert "takes no text" in str(error)  # noqa: PT017
    budget = max(1, total * (number % 7 + 1) // 8)
    try:
        fitted = transcript.window(budget, count=len)
    except TranscriptError as error:
        assert "too small" in str(error)  # noqa: PT017
    else:
        assert sum(map(characters, fitted)) <= budget
        windows.append(fitted)
    assert list(transcript) == items
    whole = body_of(own, transcript) if own is not None else None
    for window in windows:
        for api in ADAPTERS:
            body = body_of(api, window)
            if body is None:
                continue
            if api != own:
                assert broken_rules(api, body) == set()
            elif whole is not None:
                # What was read goes back as it was, also what this API never took: a window brings
                # nothing new.
                assert broken_rules(own, body) <= broken_rules(own, whole)
        loaded = Session.load(json.dumps(Session(window).dump())).transcript
        for api in ADAPTERS:
            assert written(api, loaded) == written(api, window)
    leading = [item for item in windows[0] if isinstance(item, Message)][:1]
    # What is for the next request alone stays where it stands, whoever says it.
    begins_anew = not (leading and leading[0].ephemeral and leading[0].role == "assistant")
    if len(rounds) > kept and starts_with_user(rounds[-kept]) and own is None and begins_anew:
        assert AnthropicMessages.messages(windows[0])[0]["role"] == "user"


def starts_with_user(found: TranscriptRound) -> bool:
    first = found.items[0]
    return (
        isinstance(first, Message)
        and first.role == "user"
        and any(p != TextPart("") for p in first.parts)
    )


@pytest.mark.pure
@pytest.mark.slow
@each("row", [row for row in ROWS if row["status"] == 200], name_of)
def test_windows_of_recorded_histories_are_taken_by_the_other_apis(row: dict[str, Json]) -> None:
    transcript = read(row)
    for window in (
        transcript.window(max_rounds=1, summary="Before."),
        *[transcript.select([r]) for r in transcript.rounds()],
    ):
        for api in ADAPTERS.keys() - {row["api"]}:
            body = body_of(api, window)
            if body is not None:
                assert refused(api, body) == []


@pytest.mark.parametrize("api", list(HISTORIES))
def test_windows_of_random_histories_are_taken_by_every_other_api(api: str) -> None:
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
    @given(HISTORIES[api], st.integers(0, 255))
    def taken(given_history: tuple[Json, Json], number: int) -> None:
        system, history = given_history
        transcript = Transcript.from_messages(api, history, system=system)  # type: ignore[arg-type]
        rounds = transcript.rounds()
        window = transcript.window(
            max_rounds=1 + number % max(1, len(rounds)), summary="Before." if number % 2 else None
        )
        for other in ADAPTERS.keys() - {api}:
            body = body_of(other, window)
            if body is not None:
                assert refused(other, body) == []

    taken()


class Windows(Conversations):
    """The conversations of `test_conversations`, some begun by a history that was read; what is
    sent is their windows.
    """

    seed = 0
    own: str | None = None

    @initialize(
        begun=st.none() | st.sampled_from(sorted(HISTORIES)),
        number=st.integers(0, 255),
        data=st.data(),
    )
    def begin(self, begun: str | None, number: int, data: st.DataObject) -> None:  # type: ignore[override]
        self.seed = number
        self.own = begun
        if begun is not None:
            system, history = data.draw(HISTORIES[begun])
            self.session = Session(Transcript.from_messages(begun, history, system=system))  # type: ignore[arg-type]
        self.session.push_user("Hello")

    @invariant()
    def every_api_takes_the_transcript(self) -> None:
        if self.round is None and len(self.session.transcript):
            check_windows(self.session.transcript, self.seed, self.own)


@pytest.mark.pure
@pytest.mark.slow
def test_windows_of_any_conversation_are_taken_by_every_api_K5() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = settings(
            max_examples=examples(40),
            stateful_step_count=10,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(Windows, settings=run)
