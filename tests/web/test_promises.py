"""Calls whose results come later, in every front end (LR1, W9a)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import anyio
from test_ag_ui import AgentClient
from test_ag_ui import sent as sent_ag_ui
from test_ai_sdk import sent
from web_toolkit import SCOPE, ChatClient, RecordingStore, call, make_loop

from lutumpy import CallTicket, Later, Session, Skip, Toolset, tool, tool_fn
from lutumpy.durable import StoredEvent
from lutumpy.execution import Dispatcher
from lutumpy.testing import Reply
from lutumpy.web import (
    AGUIStream,
    AISDKStream,
    EventSource,
    Show,
    View,
    ag_ui_messages,
    ui_messages,
)

TICKETS: list[CallTicket] = []


@tool_fn(late=True, effect="once")
async def render(scene: str, *, ticket: Skip[CallTicket]) -> str:
    """Render a scene, later."""
    TICKETS.append(ticket)
    raise Later("about an hour")


class Studio(Toolset):
    render = tool(render)


LATE = (
    Reply(text="Begun.", calls=(call("render", "r1", scene="sea"),)),
    Reply(text="It is coming."),
    Reply(text="There it is."),
)


def late_log(late: Any, end: str, *, message: bool) -> tuple[list[StoredEvent], int]:
    """The log of a call whose result comes later, and how many events there were before that.

    Args:
        late: What becomes of its round.
        end: How it ends.
        message: Whether the user says something else before that.
    """
    store = RecordingStore()

    async def main() -> int:
        await store.create(SCOPE, Session())
        dispatch = Dispatcher(Studio)
        loop = make_loop(store, LATE, tools=Studio, dispatch=dispatch, hooks=None, late=late)
        await store.push(SCOPE, "Please.", idempotency_key="m0")
        await loop.run(SCOPE)
        if message:
            await store.push(SCOPE, "When?", idempotency_key="m1")
            await loop.run(SCOPE)
        before = len(store.log)
        if end == "rejected":
            await loop.withdraw(SCOPE, "r1", reason="too dear", by="ann")
        else:
            await loop.deliver(TICKETS[-1], "a film" if end == "ok" else ValueError("no light"))
        await loop.run(SCOPE)
        return before

    before = anyio.run(main)
    return store.log, before


def test_a_promised_call_stays_open_until_its_result_comes_LR1_W9a() -> None:
    states = {"ok": "output-available", "error": "output-error", "rejected": "output-denied"}
    for late, end, message in [
        (late, end, message)
        for late in ("go_on", "wait")
        for end in states
        for message in (False, True)
        if late == "go_on" or not message  # else it would wait for the result
    ]:
        log, before = late_log(late, end, message=message)
        for events, state in ((log[:before], "input-available"), (log, states[end])):
            case = (late, end, message, state)
            view = View(SCOPE, Show())
            for stored in events:
                for _ in view.apply(stored):
                    pass
            shown: Any = ui_messages(view.tasks)
            parts = [part for each in shown for part in each["parts"]]
            (rendered,) = [part for part in parts if part["type"] == "tool-render"]
            assert rendered["state"] == state, case
            is_open = state == "input-available"
            promised = {part["data"]["state"] for part in parts if part["type"] == "data-promise"}
            assert promised == {"open" if is_open else end}, case
            if state == "output-available":
                assert rendered["output"] == "a film", case
            assert "Its result comes by itself" not in str(parts)
            # No step is empty.
            types = [part["type"] for part in parts]
            assert ("step-start", "step-start") not in pairwise(types), case
            data = sent(AISDKStream(SCOPE), [each for each in events if each.task == 1])
            if not message:
                assert ChatClient().read(data).message == shown[-1], case
            # AG-UI has the result in a message, of whichever task.
            run = sent_ag_ui(AGUIStream(SCOPE, "r"), events)
            client = AgentClient().read(run)
            messages = {each["id"]: each for each in ag_ui_messages(view.tasks)}
            # Where pieces of an answer were written, it may have the user's messages as well.
            found = {each["id"]: each for each in client.messages if each["role"] != "user"}
            assert found == {
                key: each for key, each in messages.items() if each["role"] != "user"
            }, case
            assert any(each["role"] == "tool" for each in client.messages) is not is_open, case
            hidden = Show(outputs=False)
            assert b"a film" not in sent(AISDKStream(SCOPE, show=hidden), events)


def test_a_note_is_hidden_with_the_outputs_W22() -> None:
    """It is the call's result, until another one comes."""
    log, _ = late_log("go_on", "ok", message=True)
    for show in (Show(), Show(outputs=False), Show(tools={"render": "status"})):
        streams = (
            sent(AISDKStream(SCOPE, show=show), log),
            sent_ag_ui(AGUIStream(SCOPE, "r", show=show), log),
            b"".join(
                frame.data for each in log for frame in EventSource(SCOPE, show=show).feed(each)
            ),
        )
        for data in streams:
            assert b"render" in data
            assert (b"about an hour" in data) == (show == Show())
