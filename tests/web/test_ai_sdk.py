"""The AI SDK's stream (W4 to W10): whatever a watcher has seen, it ends with the same message."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from profiles import examples
from web_toolkit import FULL, PLAIN, SCOPE, ChatClient, chunks_of, run_log, without

from lutumpy.durable import StoredEvent
from lutumpy.durable.log import RunStopped
from lutumpy.web import AGUIStream, AISDKStream, Show, View, ui_messages

DECISIONS: Sequence[Mapping[str, Any] | None] = (
    None,
    {"decision": "run"},
    {"decision": "run", "input": {"amount": 90}},
    {"decision": "reject", "reason": "too much"},
    {"decision": "complete", "output": "paid by cheque"},
)
# The chunks of `uiMessageChunkSchema` of npm `ai` 6.0.0, the oldest of that version, which refuses
# any other field; of those that we send.
VERSION_6: Mapping[str, str] = {
    "start": "messageId",
    "finish": "finishReason",
    "abort": "",
    "error": "errorText",
    "start-step": "",
    "finish-step": "",
    "text-start": "id",
    "text-delta": "id delta",
    "text-end": "id",
    "reasoning-start": "id",
    "reasoning-delta": "id delta",
    "reasoning-end": "id",
    "tool-input-start": "toolCallId toolName",
    "tool-input-delta": "toolCallId inputTextDelta",
    "tool-input-available": "toolCallId toolName input",
    "tool-input-error": "toolCallId toolName input errorText",
    "tool-approval-request": "approvalId toolCallId",
    "tool-output-available": "toolCallId output",
    "tool-output-error": "toolCallId errorText",
    "tool-output-denied": "toolCallId",
    "data-promise": "id data",
    "data-question": "id data",
    "data-value": "id data",
}
SHOWS = (Show(), Show(reasoning=True), Show(inputs=False, outputs=False))


def sent(stream: AISDKStream, log: Sequence[StoredEvent]) -> bytes:
    """The bytes of a response over a log that has ended."""
    frames = [
        frame.data
        for index, stored in enumerate(log)
        for frame in stream.feed(stored, superseded=index < len(log) - 1)
    ]
    return b"".join(frames)


def some_pieces(log: Sequence[StoredEvent], source: random.Random) -> list[StoredEvent]:
    """The log as somebody sees it who misses some pieces of answers: few, most or all."""
    share = source.random()
    return without(log, lambda _: source.random() < share)


def message_of(log: Sequence[StoredEvent], show: Show) -> Any:
    """The last message as `/messages` gives it."""
    view = View(SCOPE, show)
    for stored in log:
        for _ in view.apply(stored):
            pass
    return ui_messages(view.tasks)[-1]


def tools_of(client: ChatClient) -> dict[str, dict[str, Any]]:
    return {part["toolCallId"]: part for part in client.message["parts"] if "toolCallId" in part}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_client_has_what_the_log_says_whatever_pieces_it_saw_W4_W6(decision: Any) -> None:
    log = run_log(FULL, decision)
    for show in SHOWS:
        expected = message_of(log, show)
        source = random.Random(1)
        for _ in range(examples(30)):
            seen = some_pieces(log, source)
            client = ChatClient().read(sent(AISDKStream(SCOPE, show=show), seen))
            assert client.message == expected


def test_the_states_of_calls_are_those_of_the_decision_W3_W8() -> None:
    ended = ["output-available", "output-available", "output-denied", "output-error"]
    expected = (
        ["approval-responded", "approval-requested", "output-denied", "output-error"],
        ended,
        ended,
        ["output-available", "output-denied", "output-denied", "output-error"],
        ended,
    )
    for decision, states in zip(DECISIONS, expected, strict=True):
        client = ChatClient().read(sent(AISDKStream(SCOPE), run_log(FULL, decision)))
        tools = tools_of(client)
        assert [tools[name]["state"] for name in ("l1", "p1", "l2", "n1")] == states
        amount = 90 if decision and decision.get("input") else 900900900
        assert tools["p1"]["input"]["amount"] == amount
        answered = {"isAutomatic": True, "approved": False, "reason": "no dogs"}
        assert tools["l2"]["approval"] == {"id": "auto:l2", **answered}
        assert tools["p1"]["approval"]["requestReason"] == "money"


def test_a_waiting_client_has_an_answer_for_every_other_call_W8() -> None:
    # `lastAssistantMessageIsCompleteWithApprovalResponses` of npm `ai` wants this of a step, once
    # the user has answered.
    client = ChatClient().read(sent(AISDKStream(SCOPE), run_log(FULL)))
    states = {name: part["state"] for name, part in tools_of(client).items()}
    assert states.pop("p1") == "approval-requested"
    complete = {"approval-responded", "output-available", "output-error", "output-denied"}
    assert {*states.values()} <= complete
    assert client.finished == {"type": "finish", "finishReason": "tool-calls"}


@pytest.mark.parametrize("decision", DECISIONS[1:])
def test_after_a_decision_a_client_goes_on_behind_the_question_W11(decision: Any) -> None:
    log = run_log(FULL, decision)
    (waits,) = [stored.seq for stored in log if stored.event["event"] == "RunWaits"]
    begun = [each for each in log if each.seq <= waits]
    client = ChatClient().read(sent(AISDKStream(SCOPE), begun))
    client.read(sent(AISDKStream(SCOPE, after=waits), log))
    assert client.message == message_of(log, Show())
    assert client.finished == {"type": "finish", "finishReason": "stop"}


def test_a_response_that_breaks_off_anywhere_is_replayed_to_the_same_end_W11() -> None:
    for script in (PLAIN, FULL):
        log = run_log(script, {"decision": "run"})
        expected = message_of(log, Show())
        data = sent(AISDKStream(SCOPE), log)
        step = max(1, len(data) // examples(200))
        for cut in range(0, len(data), step):
            end = data.rfind(b"\n\n", 0, cut)
            client = ChatClient().read(data[: end + 2] if end >= 0 else b"")
            client.read(data, replay=True)
            assert client.message == expected


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_round_that_another_process_took_up_is_told_less_of_W4(decision: Any) -> None:
    """Its process was killed between the record of the answer and what the log says of it."""
    log = [each for each in run_log(FULL, decision) if each.event["event"] != "RoundDecoded"]
    for show in SHOWS:
        client = ChatClient().read(sent(AISDKStream(SCOPE, show=show), log))
        assert client.message == message_of(log, show)


def test_a_client_that_doesn_t_come_again_lacks_something_W11() -> None:
    """Without this, the test before it might hold whatever a replay does."""
    log = run_log(PLAIN)
    expected = message_of(log, Show())
    data = sent(AISDKStream(SCOPE), log)
    ends = [at + 2 for at in range(len(data)) if data.startswith(b"\n\n", at)]
    equal = [ChatClient().read(data[:end]).message == expected for end in ends]
    # The last chunks, which say that it has ended, change nothing in the message.
    assert equal.index(True) > len(ends) - 6
    assert not any(equal[: equal.index(True)])


def broken_logs() -> list[list[StoredEvent]]:
    """Logs in which the beginning of an answer was lost, and another one came in its place."""
    log = run_log(PLAIN)
    at = log[0].at
    lost = [delta("Something ", at), delta("else", at)]
    again = StoredEvent(0, 1, 1, 2, at, {"event": "Restarted", "round": 1, "attempt": 2})
    return [
        [*log[:2], *lost, *more, *log[2:]]
        for more in ((), (again,), (again, *lost[:1]), (delta("First", at),))
    ]


def test_resets_are_what_makes_looks_equal_W4_W6_W7() -> None:
    """Looks at random moments end equal; without resets, many of them don't."""
    source = random.Random(4)
    different = 0
    for log in broken_logs():
        expected = message_of(log, Show())
        for _ in range(examples(30)):
            data = sent(AISDKStream(SCOPE, after=-1), some_pieces(log, source))
            assert ChatClient().read(data).message == expected
            kept = [each for each in data.split(b"\n\n") if b'"reset-step"' not in each]
            different += ChatClient().read(b"\n\n".join(kept)).message != expected
    assert different > examples(30)


def delta(text: str, at: Any, round: int = 1) -> StoredEvent:
    return StoredEvent(0, 1, round, 1, at, {"event": "TextDelta", "text": text, "delta": True})


def test_what_was_streamed_and_lost_is_taken_back_W6_W7() -> None:
    """An answer that died with its process, and another one in its place."""
    log = run_log(PLAIN)
    begin = next(index for index, each in enumerate(log) if each.event.get("delta"))
    at = log[0].at
    lost = [delta("Something ", at), delta("else entirely", at)]
    again = {"event": "Restarted", "round": 1, "attempt": 2}
    restarted = StoredEvent(0, 1, 1, 2, at, again)
    expected = message_of(log, Show())
    broken = [*log[:begin], *lost, restarted, *log[begin:]]
    assert ChatClient().read(sent(AISDKStream(SCOPE, after=-1), broken)).message == expected
    # Without the news that it began again, the whole answer corrects it.
    silent = [*log[:begin], *lost, *log[begin:]]
    assert ChatClient().read(sent(AISDKStream(SCOPE, after=-1), silent)).message == expected
    # Behind a complete answer nothing is taken back.
    done = next(i for i, each in enumerate(log) if each.event["event"] == "Completed")
    late = [*log[: done + 1], restarted, *log[done + 1 :]]
    assert b"reset-step" not in sent(AISDKStream(SCOPE, after=-1), late)


def test_version_6_breaks_off_where_it_can_t_go_back_W10() -> None:
    log = run_log(PLAIN)
    stream = AISDKStream(SCOPE, sdk=6, after=-1)
    data = sent(stream, [*log[:2], delta("No.", log[0].at), *log[2:]])
    assert stream.broken
    assert stream.ended
    assert b"reset-step" not in data
    assert b"[DONE]" not in data
    assert b'"finish"' not in data
    again = ChatClient().read(data).read(sent(AISDKStream(SCOPE, sdk=6), log), replay=True)
    assert again.message == message_of(log, Show())


@pytest.mark.parametrize("decision", DECISIONS)
def test_version_6_is_sent_what_it_knows_W10_W23(decision: Any) -> None:
    """It has no answers to questions: what was decided shows in what became of the call."""
    log = run_log(FULL, decision)
    for show in SHOWS:
        for end in (
            None,
            {"event": "RunStopped", "by": "ann"},
            {"event": "RunFailed", "kind": "x"},
        ):
            ended = [] if end is None else [StoredEvent(99, 1, 2, 1, log[0].at, end)]
            data = sent(AISDKStream(SCOPE, sdk=6, show=show), [*log, *ended])
            for chunk in chunks_of(data):
                if chunk != "[DONE]":
                    assert {*chunk} == {"type", *VERSION_6[chunk["type"]].split()}
            parts = zip(
                ChatClient().read(data).message["parts"],
                message_of(log, show)["parts"],
                strict=True,
            )
            for part, whole in parts:
                # Calls that run are no other ones than those that were never asked for.
                waits = whole.get("state") == "approval-responded"
                assert part.get("state") == ("input-available" if waits else whole.get("state"))
                assert {**part, "state": "", "approval": ""} == {
                    **whole, "state": "", "approval": ""
                }  # fmt: skip
                denied = part.get("state") == "output-denied"
                assert not denied or part["approval"]["id"] == whole["approval"]["id"]


@pytest.mark.parametrize("decision", DECISIONS)
def test_messages_of_version_6_have_what_it_knows_W10(decision: Any) -> None:
    """They are what its stream makes, with the answer that a client of it has given itself."""
    log = run_log(FULL, decision)
    view = View(SCOPE, Show())
    for stored in log:
        for _ in view.apply(stored):
            pass
    message: Any = ui_messages(view.tasks, sdk=6)[-1]
    streamed = ChatClient().read(sent(AISDKStream(SCOPE, sdk=6), log)).message
    for part, other in zip(message["parts"], streamed["parts"], strict=True):
        assert part.get("state") == other.get("state")
        approval = part.get("approval", {})
        assert {*approval} <= {"id", "approved", "reason"}
        # Its schema has none for a call that runs, and an answer in every other.
        runs = part.get("state") == "input-available"
        assert approval.get("id") == (None if runs else other.get("approval", {}).get("id"))
        assert not approval or ("approved" in approval) is (part["state"] != "approval-requested")


def test_version_6_is_told_that_a_waiting_message_s_run_was_stopped_W10() -> None:
    assert chunks_of(AISDKStream(SCOPE, sdk=6).end(RunStopped("ann")))[0] == {"type": "abort"}


def test_one_task_is_one_message_and_the_next_has_its_own_W5() -> None:
    log = run_log(PLAIN[2:], messages=("One.", "Two."))
    first = AISDKStream(SCOPE)
    client = ChatClient().read(sent(first, log))
    assert first.ended
    assert client.finished["type"] == "finish"
    taken = [stored.seq for stored in log if stored.event["event"] == "MessagesTaken"]
    assert client.message["id"] == f"{SCOPE}.{taken[0]}"
    assert [part["type"] for part in client.message["parts"]] == ["step-start", "text"]
    last = [stored for stored in log if stored.task == 2]
    assert ChatClient().read(sent(AISDKStream(SCOPE), last)).message["id"] == f"{SCOPE}.{taken[1]}"


@pytest.mark.parametrize(
    ("event", "chunk"),
    [
        ({"event": "RunFailed", "kind": "TimeoutError"},
         {"type": "error", "errorText": "The run failed. (TimeoutError)"}),
        ({"event": "RunStopped", "by": "ann"}, {"type": "abort", "reason": "stopped by ann"}),
    ],
)  # fmt: skip
def test_a_run_that_ends_otherwise_says_so_and_may_be_gone_on_with(event: Any, chunk: Any) -> None:
    log = run_log(PLAIN)
    ended = StoredEvent(3, 1, 1, 1, log[0].at, event)
    stream = AISDKStream(SCOPE)
    client = ChatClient().read(sent(stream, [*log[:2], ended]))
    assert client.finished == chunk
    assert stream.ended
    assert not stream.feed(log[3])
    # A later run has gone on: the replay doesn't end there.
    replayed = [*log[:2], ended, *log[2:]]
    assert ChatClient().read(sent(AISDKStream(SCOPE), replayed)).message == message_of(log, Show())


def test_a_value_is_a_part_and_frames_are_server_sent_events() -> None:
    log = run_log(PLAIN)
    result: Any = log[-1].event["result"]
    event = {**log[-1].event, "result": {**result, "value": {"name": "Ada"}}}
    valued = [*log[:-1], StoredEvent(log[-1].seq, 1, 3, 1, log[-1].at, event)]
    stream = AISDKStream(SCOPE)
    data = sent(stream, valued)
    assert ChatClient().read(data).message["parts"][-1]["data"] == {"name": "Ada"}
    assert message_of(valued, Show())["parts"][-1]["data"] == {"name": "Ada"}
    assert data.endswith(b"data: [DONE]\n\n")
    assert chunks_of(data)[0]["type"] == "start"
    assert stream.headers["x-vercel-ai-ui-message-stream"] == "v1"


def test_promises_are_parts_that_change_when_they_are_kept_W9a() -> None:
    log = run_log(PLAIN)
    planned = next(i for i, each in enumerate(log) if each.event["event"] == "RoundExecuted")
    at = log[0].at
    call = {"call_id": "l1", "tool": "look", "arguments": "{}", "input": {}}
    promised = {"event": "CallPromised", "call": call, "note": "an hour", "until": ""}
    kept = {"event": "CallDelivered", "call_id": "l1", "tool": "look", "outcome": "ok"}
    added = [StoredEvent(0, 1, 1, 1, at, promised), StoredEvent(0, 1, 1, 1, at, kept)]
    later = StoredEvent(0, 1, 3, 1, at, kept)
    for more in (added[:1], added):
        changed = [*log[: planned + 1], *more, *log[planned + 1 : -1], later, log[-1]]
        client = ChatClient().read(sent(AISDKStream(SCOPE, after=-1), changed))
        assert client.message == message_of(changed, Show())
        parts = [part for part in client.message["parts"] if part["type"] == "data-promise"]
        assert parts[0]["data"]["state"] in ("ok", "open")
        run = b"".join(
            frame.data for each in changed for frame in AGUIStream(SCOPE, "r", after=-1).feed(each)
        )
        assert b'"promise"' in run
    nothing = Show(tools={"look": "nothing"})
    assert b"promise" not in sent(AISDKStream(SCOPE, show=nothing, after=-1), changed)


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="sdk= is 6 or 7, not 5"):
        AISDKStream(SCOPE, sdk=5)  # type: ignore[arg-type]
