"""AG-UI's stream (W4 to W9): each run is a legal sequence, and clients end with equal messages."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from profiles import examples
from test_ai_sdk import DECISIONS, SHOWS, delta, some_pieces
from web_toolkit import FULL, PLAIN, SCOPE, chunks_of, run_log

from lutumpy.durable import StoredEvent
from lutumpy.testing import Reply
from lutumpy.web import AGUIStream, NewMessage, Show, View, ag_ui_messages


class AgentClient:
    """What `HttpAgent` makes of a run: `verify` and `apply/default` of npm `@ag-ui/client` 1.0."""

    def __init__(self, messages: Sequence[Mapping[str, Any]] = ()) -> None:
        self.messages: list[dict[str, Any]] = [dict(message) for message in messages]
        self.ended: Any = None
        self.custom: list[Any] = []

    def read(self, data: bytes) -> AgentClient:
        opened: set[str] = set()
        events = chunks_of(data)
        assert not events or events[0]["type"] == "RUN_STARTED"
        self.ended = None
        for event in events:
            kind = event["type"]
            assert self.ended is None, f"{kind} behind the end"
            name = event.get("messageId") or event.get("toolCallId") or event.get("stepName")
            if kind.endswith(("_START", "STEP_STARTED")):
                assert name not in opened, event
                opened.add(name)
            elif kind.endswith(("_CONTENT", "_ARGS")):
                assert name in opened
                assert event["delta"], event
            elif kind.endswith("_END") or kind == "STEP_FINISHED":
                opened.remove(name)
            elif kind in ("RUN_FINISHED", "RUN_ERROR"):
                assert kind == "RUN_ERROR" or not opened, opened
                self.ended = event
            self._apply(kind, event)
        return self

    def _apply(self, kind: str, event: Any) -> None:
        if kind in ("TEXT_MESSAGE_START", "REASONING_MESSAGE_START"):
            self._find(event["messageId"], event["role"]).setdefault("content", "")
        elif kind in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"):
            self._find(event["messageId"], "")["content"] += event["delta"]
        elif kind == "TOOL_CALL_START":
            called = [call["id"] for each in self.messages for call in each.get("toolCalls", [])]
            if event["toolCallId"] not in called:
                function = {"name": event["toolCallName"], "arguments": ""}
                entry = {"id": event["toolCallId"], "type": "function", "function": function}
                message = self._find(event["parentMessageId"], "assistant")
                message.setdefault("toolCalls", []).append(entry)
        elif kind == "TOOL_CALL_ARGS":
            (call,) = [
                call
                for each in self.messages
                for call in each.get("toolCalls", [])
                if call["id"] == event["toolCallId"]
            ]
            call["function"]["arguments"] += event["delta"]
        elif kind == "TOOL_CALL_RESULT":
            self._put_result(event)
        elif kind == "MESSAGES_SNAPSHOT":
            new = [dict(message) for message in event["messages"]]
            known = {message["id"] for message in new}
            if not any(message["role"] == "reasoning" for message in new):
                new += [
                    each
                    for each in self.messages
                    if each["role"] == "reasoning" and each["id"] not in known
                ]
            self.messages = new
        elif kind == "CUSTOM":
            self.custom.append((event["name"], event["value"]))

    def _find(self, message_id: str, role: str) -> dict[str, Any]:
        for message in self.messages:
            if message["id"] == message_id:
                return message
        assert role, f"no message {message_id}"
        self.messages.append({"id": message_id, "role": role})
        return self.messages[-1]

    def _put_result(self, event: Any) -> None:
        message = {
            "id": event["messageId"],
            "role": "tool",
            "toolCallId": event["toolCallId"],
            "content": event["content"],
        }
        (owner,) = [
            index
            for index, each in enumerate(self.messages)
            if any(call["id"] == event["toolCallId"] for call in each.get("toolCalls", []))
        ]
        at = owner + 1
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        self.messages.insert(at, message)


def sent(stream: AGUIStream, log: Sequence[StoredEvent]) -> bytes:
    return b"".join(
        frame.data
        for index, stored in enumerate(log)
        for frame in stream.feed(stored, superseded=index < len(log) - 1)
    )


def messages_of(log: Sequence[StoredEvent], show: Show) -> Any:
    view = View(SCOPE, show)
    for stored in log:
        for _ in view.apply(stored):
            pass
    return ag_ui_messages(view.tasks)


def by_id(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {message["id"]: message for message in messages}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_client_has_what_the_log_says_whatever_pieces_it_saw_W4_W6(decision: Any) -> None:
    log = run_log(FULL, decision)
    for show in SHOWS:
        expected = by_id(messages_of(log, show))
        source = random.Random(1)
        for _ in range(examples(30)):
            seen = some_pieces(log, source)
            client = AgentClient([{"id": "m0", "role": "user", "content": "Please do it."}])
            client.read(sent(AGUIStream(SCOPE, "r1", show=show), seen))
            assert by_id(client.messages) == expected


def test_a_held_call_is_an_interrupt_and_the_next_run_goes_on_W9() -> None:
    log = run_log(FULL, {"decision": "run", "input": {"amount": 90}})
    (waits,) = [stored.seq for stored in log if stored.event["event"] == "RunWaits"]
    begun = [each for each in log if each.seq <= waits]
    client = AgentClient([{"id": "m0", "role": "user", "content": "Please do it."}])
    client.read(sent(AGUIStream(SCOPE, "r1"), begun))
    outcome = client.ended["outcome"]
    (interrupt,) = outcome["interrupts"]
    assert outcome["type"] == "interrupt"
    assert interrupt["toolCallId"] == "p1"
    assert (interrupt["reason"], interrupt["message"]) == ("approval", "money")
    schema = interrupt["responseSchema"]
    assert schema["required"] == ["approved"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["input"]["properties"].keys() == {"amount", "memo"}
    client.read(sent(AGUIStream(SCOPE, "r2", after=waits), log))
    assert client.ended["outcome"] == {"type": "success"}
    assert client.ended["runId"] == "r2"
    assert by_id(client.messages) == by_id(messages_of(log, Show()))
    calls = [call for each in client.messages for call in each.get("toolCalls", [])]
    assert '"amount": 90' in calls[1]["function"]["arguments"]  # what ran (W3)
    assert ("approval", {"toolCallId": "p1", "approved": True}) in client.custom


def test_a_client_that_comes_again_at_any_moment_is_given_all_messages_W11() -> None:
    log = run_log(PLAIN)
    expected = messages_of(log, Show())
    for index, stored in enumerate(log[:-1]):
        stream = AGUIStream(SCOPE, "again", after=stored.seq, snapshot=True)
        # What is gone of an answer when it is complete, this client hasn't seen either.
        past = [
            each
            for each in log[: index + 1]
            if not each.event.get("delta") or each.round == stored.round
        ]
        data = sent(stream, [*past, *log[index + 1 :]])
        assert chunks_of(data)[1]["type"] == "MESSAGES_SNAPSHOT"
        assert AgentClient().read(data).messages == expected


def test_a_message_that_waited_is_told_with_its_answer_W5_W11() -> None:
    """It is of somebody else, or was sent before its sender came again."""
    log = run_log([Reply(text="Yes.")], messages=("First?", "Second?"))
    for number in (1, 2):
        seen = [stored.seq for stored in log if stored.task < number]
        fed = [stored for stored in log if stored.task <= number]
        stream = AGUIStream(SCOPE, "r", after=max(seen, default=0), snapshot=True)
        assert AgentClient().read(sent(stream, fed)).messages == messages_of(fed, Show())


@pytest.mark.parametrize("others", [0, 1])
def test_a_message_of_somebody_else_that_is_taken_with_one_s_own_is_told_W5(others: int) -> None:
    own = {"id": "own", "text": "And?", "files": []}
    taken = [{"id": "other", "text": "Before.", "files": []}] * others + [own]
    first, *rest = run_log([Reply(text="Yes.")])
    log = [replace(first, event={**first.event, "messages": taken}), *rest]
    data = sent(AGUIStream(SCOPE, "r", pending=NewMessage("own", "And?")), log)
    client = AgentClient([{"id": "own", "role": "user", "content": "And?"}]).read(data)
    assert client.messages == messages_of(log, Show())
    assert [each["type"] for each in chunks_of(data)].count("MESSAGES_SNAPSHOT") == others


def test_what_was_streamed_and_lost_is_taken_back_W7() -> None:
    log = run_log(PLAIN)
    begin = next(index for index, each in enumerate(log) if each.event.get("delta"))
    at = log[0].at
    lost = [delta("Something ", at), delta("else", at)]
    restarted = StoredEvent(0, 1, 1, 2, at, {"event": "Restarted", "round": 1, "attempt": 2})
    for more in ([restarted], []):
        broken = [*log[:begin], *lost, *more, *log[begin:]]
        client = AgentClient().read(sent(AGUIStream(SCOPE, "r", after=-1), broken))
        assert by_id(client.messages) == by_id(messages_of(log, Show()))


@pytest.mark.parametrize(
    ("event", "ended"),
    [
        ({"event": "RunFailed", "kind": "TimeoutError"},
         {"type": "RUN_ERROR", "message": "The run failed.", "code": "TimeoutError"}),
        ({"event": "RunStopped", "by": "ann"},
         {"type": "RUN_FINISHED", "threadId": SCOPE, "runId": "r",
          "outcome": {"type": "cancelled"}}),
    ],
)  # fmt: skip
def test_a_run_that_ends_otherwise_says_so(event: Any, ended: Any) -> None:
    log = run_log(PLAIN)
    stored = StoredEvent(4, 1, 1, 1, log[0].at, event)
    stream = AGUIStream(SCOPE, "r")
    client = AgentClient().read(sent(stream, [*log[:3], stored]))
    assert client.ended == ended
    assert stream.ended
    assert not stream.feed(log[4])


def test_the_run_behind_one_that_ended_anywhere_is_a_legal_sequence_W23() -> None:
    """Where the task goes on, where the next one begins, and for clients that come again."""
    log = run_log(PLAIN, messages=("Please do it.", "And now?"))
    first = [each for each in log if each.task == 1]
    behind = [each for each in log if each.task == 2]
    for event in ({"event": "RunFailed", "kind": "OSError"}, {"event": "RunStopped", "by": "ann"}):
        for cut, stored in enumerate(first[:-1]):
            place = (stored.task, stored.round, stored.attempt, stored.at)
            broken = [*first[: cut + 1], StoredEvent(0, *place, event)]
            again = {"event": "Restarted", "round": stored.round, "attempt": 2}
            is_lost = bool(stored.event.get("delta"))
            restarted = [StoredEvent(0, *place, again)] if is_lost else []
            for rest in ([*restarted, *first[cut + 1 :]], behind):
                whole = [
                    replace(each, seq=seq) for seq, each in enumerate([*broken, *rest], start=1)
                ]
                for snapshot in (False, True):
                    stream = AGUIStream(SCOPE, "r2", after=len(broken), snapshot=snapshot)
                    # A client without all messages has those of the response before.
                    seen = AGUIStream(SCOPE, "r1")
                    client = AgentClient()
                    if not snapshot:
                        client.read(sent(seen, whole[: len(broken)]))
                    client.read(sent(stream, whole))
                    assert client.ended["outcome"] == {"type": "success"}
                    assert client.messages[-1]["content"] == "Third."


def test_a_value_is_told_and_a_provider_s_own_call_has_no_text_before_it() -> None:
    log = run_log((FULL[1],))
    result: Any = log[-1].event["result"]
    event = {**log[-1].event, "result": {**result, "value": {"name": "Ada"}}}
    log[-1] = StoredEvent(log[-1].seq, 1, 1, 1, log[-1].at, event)
    asked = {"call_id": "a1", "tool": "search", "arguments": "{}", "input": {}}
    decoded = {"event": "RoundDecoded", "round": 1, "approvals": [asked]}
    log.insert(-1, StoredEvent(log[-2].seq, 1, 1, 1, log[-1].at, decoded))
    client = AgentClient().read(sent(AGUIStream(SCOPE, "r"), log))
    assert client.custom == [("value", {"name": "Ada"})]
    assert client.messages[-1]["toolCalls"][0]["id"] == "a1"
