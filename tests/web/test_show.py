"""What is shown (W21, W22), the log as events of our own (W12), and a log without a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ag_ui import sent as sent_ag_ui
from test_ai_sdk import message_of, sent
from web_toolkit import FULL, PLAIN, SCOPE, Answering, ChatClient, Desk, run_log

from lutumpy import RunNormally, Session
from lutumpy.durable import StoredEvent, UnknownEvent
from lutumpy.durable.log import RunFailed
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools
from lutumpy.plain.json_values import clean
from lutumpy.testing import Call, Reply
from lutumpy.web import AGUIStream, AISDKStream, EventHub, EventSource, LiveLog, Show
from lutumpy.web.frames import encode_data


def all_bytes(log: Sequence[StoredEvent], show: Show) -> bytes:
    source = EventSource(SCOPE, show=show)
    own = b"".join(frame.data for stored in log for frame in source.feed(stored))
    chat, run = AISDKStream(SCOPE, show=show), AGUIStream(SCOPE, "r", show=show)
    return own + sent(chat, log) + sent_ag_ui(run, log)


def test_what_is_not_shown_is_in_no_byte_W22() -> None:
    log = run_log(FULL, {"decision": "run"})
    log.append(StoredEvent(99, 1, 2, 2, log[0].at, {"event": "FromTomorrow", "secret": "canary"}))
    everything = all_bytes(log, Show(reasoning=True))
    for text in (b"A hidden thought", b"cat means tac", b'"cat"', b"900900900", b"no dogs"):
        assert text in everything
    assert b"canary" not in everything
    assert b"hidden thought" not in all_bytes(log, Show())
    hidden = all_bytes(log, Show(inputs=False, outputs=False))
    for text in (b"cat means tac", b"cat", b"900900900", b"no dogs", b"dog", b"broken"):
        assert text not in hidden
    status = all_bytes(log, Show(tools={"look": "status", "pay": "nothing"}))
    for text in (b"cat", b"900900900", b"pay", b"p1:", b"no dogs"):
        assert text not in status
    assert b"look" in status
    assert b"l1" in status


def test_a_reason_of_a_person_is_hidden_with_the_outputs_W22() -> None:
    log = run_log(FULL, {"decision": "reject", "reason": "a canary of a reason"})
    assert b"canary" in all_bytes(log, Show())
    for show in (
        Show(outputs=False),
        Show(tools={"pay": "status"}),
        Show(tools={"pay": "nothing"}),
    ):
        assert b"canary" not in all_bytes(log, show)


def test_what_waits_names_no_call_that_is_not_shown_W22() -> None:
    log = run_log(FULL)
    shows = Show(tools={"pay": "nothing"}), Show(tools={"audit": "nothing"}), Show()
    for show, held in zip(shows, ([], ["p1"], ["p1"]), strict=True):
        for after in range(len(log)):
            source = EventSource(SCOPE, show=show, after=after)
            frames = [frame for stored in log for frame in source.feed(stored)]
            data = frames[-1].data
            assert b"event: RunWaits" in data
            assert json.loads(data.split(b"data: ")[1])["held"] == held
    assert b"p1" not in all_bytes(log, shows[0])


def test_redact_comes_last_W22() -> None:
    seen: list[Any] = []

    def redact(event: Any) -> Any:
        seen.append(event)
        return None if type(event).__name__ in ("Delta", "Completed") else event

    data = sent(AISDKStream(SCOPE, show=Show(redact=redact)), run_log(PLAIN))
    assert b"Second" not in data
    assert b"finish" in data
    assert seen


def test_a_word_that_is_not_one_is_refused() -> None:
    with pytest.raises(ValueError, match="tools\\['look'\\] is 'all', 'status' or 'nothing'"):
        Show(tools={"look": "none"})  # type: ignore[dict-item]
    assert Show().apply(UnknownEvent("x", {})) is None


def test_own_events_have_their_number_and_name_W12() -> None:
    log = run_log(PLAIN)
    source = EventSource(SCOPE, after=log[0].seq)
    frames = [frame for stored in log for frame in source.feed(stored)]
    assert source.ended
    # What a delta says of a whole call, the steps say of it later.
    shown = [each.seq for each in log[1:] if "ready" not in str(each.event["event"]).lower()]
    assert [frame.seq for frame in frames] == shown
    lines = frames[0].data.decode().splitlines()
    assert lines[:2] == [f"id: {log[1].seq}", "event: RequestStarted"]
    assert json.loads(lines[2].removeprefix("data: "))["round"] == 1
    names = [frame.data.decode().splitlines()[1] for frame in frames]
    assert "event: TextDelta" in names
    assert names[-1] == "event: LoopEnded"


def run_live(log: LiveLog, *, streamed: bool, script: Any = PLAIN) -> Session:
    async def main() -> Session:
        session = Session()
        session.push_user("Please do it.")
        log.ask("Please do it.", id="m0")
        options: Any = {"on_event": log.add} if streamed else {}
        await run_tools(
            session, Answering(script), tools=Desk, dispatch=Dispatcher(Desk),
            hooks=lambda call: RunNormally(), on_progress=log.add, **options,
        )  # fmt: skip
        return session

    return anyio.run(main)


def test_a_loop_without_a_store_is_shown_as_one_with_it() -> None:
    expected = message_of(run_log(PLAIN), Show())["parts"]
    for streamed in (True, False):
        log = LiveLog(SCOPE)
        run_live(log, streamed=streamed)

        async def read(log: LiveLog = log) -> list[StoredEvent]:
            assert await log.last_event() > 0
            return [stored async for stored in log.events(until="end")]

        stored = anyio.run(read)
        assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
        client = ChatClient().read(sent(AISDKStream(SCOPE), stored))
        assert client.message["parts"] == expected
        assert any(each.event.get("delta") for each in stored) is streamed
        run_live(log, streamed=streamed)

        async def last(log: LiveLog = log) -> StoredEvent:
            hub: Any = EventHub(log)  # type: ignore[arg-type]
            async for each in hub.follow(SCOPE, after=await log.last_event() - 1):
                return each  # type: ignore[no-any-return]
            raise AssertionError

        assert anyio.run(last).task == 2
        assert repr(log).startswith("<LiveLog 'chat 1' ")


def test_a_loop_is_shown_alike_whether_it_is_streamed_or_not_W6() -> None:
    """Without `on_event=`, calls that can't run were shown behind all others, text before them, and
    what the model thought or refused not at all.
    """
    script = [
        Reply(
            text="Hm.",
            reasoning="First this.",
            calls=[
                Call("look", {"word": "a"}, id="c1"),
                Call("nope", {}, id="c2"),
                Call("look", {"word": "b"}, id="c3"),
            ],
        ),
        Reply(text="", refusal="No."),
    ]
    blocks: list[Any] = []
    for streamed in (True, False):
        log = LiveLog(SCOPE)
        run_live(log, streamed=streamed, script=script)
        blocks.append([e.event["blocks"] for e in log._events if e.event["event"] == "Completed"])
        assert all("turn" not in each.event for each in log._events)
    assert blocks[0] == blocks[1]
    called = [block["call_id"] for block in blocks[1][0] if block["block"] == "call"]
    assert called == ["c1", "c2", "c3"]


class Broken(Answering):
    def open_stream(self, *args: Any) -> Any:
        raise OSError("a canary")


def broken_hook(call: Any) -> Any:
    raise OSError("a canary")


@pytest.mark.parametrize("says", ["RunFailed", "the next message", "nothing"])
@pytest.mark.parametrize("model", [Broken, Answering])
def test_what_is_asked_behind_a_loop_that_raised_has_its_answer_W5(model: Any, says: str) -> None:
    """Before its answer, or behind it; whether or not the program says so."""
    log = LiveLog(SCOPE)

    async def main() -> None:
        session = Session()
        session.push_user("Please.")
        log.ask("Please.", id="m0")
        options: Any = {"tools": Desk, "on_event": log.add, "on_progress": log.add}
        with pytest.raises(Exception):  # noqa: B017
            await run_tools(session, model(PLAIN), hooks=broken_hook, **options)
        if says == "RunFailed":
            log.add(RunFailed("OSError"))
        if says != "nothing":
            session.push_user("Again.")
            log.ask("Again.", id="m1")
        await run_tools(session, Answering(PLAIN), dispatch=Dispatcher(Desk), **options)

    anyio.run(main)
    streams = {number: AISDKStream(SCOPE) for number in (1, 2)}
    clients = {number: ChatClient() for number in streams}
    for stored in log._events:
        for frame in streams[stored.task].feed(stored):
            clients[stored.task].read(frame.data)
    kind = "OSError" if says == "RunFailed" else "Unknown"
    error = {"type": "error", "errorText": f"The run failed. ({kind})"}
    assert [clients[1].finished, streams[1].ended, streams[2].ended] == [error, True, True]
    texts = [part["text"] for part in clients[2].message["parts"] if part["type"] == "text"]
    assert texts == ["First.", "Second.", "Third."]


TEXTS = st.text() | st.sampled_from(["\ud800", 'a"\\b\n', "\x00\x7f\u2028", "\U0001f600"])


@given(st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS | st.none())))
def test_frames_are_json_whatever_is_in_them(value: Any) -> None:
    data = encode_data(value)
    assert data.count(b"\n") == 2
    text = data.removeprefix(b"data: ").removesuffix(b"\n\n")
    assert json.loads(text) == json.loads(json.dumps(clean(value)))
