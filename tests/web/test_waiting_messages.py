"""Messages that nobody has taken yet: behind a promise, a question, or a run that goes on (W5, W9a,
W11)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from test_ag_ui import AgentClient
from test_promises import LATE, TICKETS, Studio
from test_starlette import Site, answered, gated_loop, left, said, serving, until
from web_toolkit import FULL, PLAIN, ChatClient, chunks_of, make_loop

from lutumpy import Session
from lutumpy.durable import DurableEvent, DurableLoop, MemoryStore
from lutumpy.durable.log import MessagesTaken, ShownMessage
from lutumpy.execution import Dispatcher
from lutumpy.web import Show

PROMISE = {"toolCallId": "r1", "tool": "render", "note": "about an hour", "until": ""}


def studio_loop(store: MemoryStore) -> DurableLoop[Any, Any]:
    """A loop that waits for late results, as loops do by default."""
    return make_loop(store, LATE, tools=Studio, dispatch=Dispatcher(Studio), hooks=None)


def run_input(*messages: Any) -> dict[str, Any]:
    return {"threadId": "c1", "runId": "r1", "messages": [*messages]}


def asking(text: str, id: str) -> dict[str, Any]:
    return {"id": id, "role": "user", "content": text}


async def shown(site: Site) -> list[tuple[str, str]]:
    """The messages of the conversation: their ids, the texts in them."""
    messages = json.loads(await site.get("/chat/c1/messages"))
    return [
        (each["id"], " ".join(part["text"] for part in each["parts"] if part["type"] == "text"))
        for each in messages
    ]


async def test_a_message_behind_a_promise_is_told_what_it_waits_for_W9a() -> None:
    """The response ends as that of the call did: the result may take hours."""
    store = MemoryStore()
    loop = studio_loop(store)
    async with serving(store, loop=loop) as site:
        first = ChatClient().read(await site.post("/chat", said()))
        assert first.finished == {"type": "finish", "finishReason": "tool-calls"}
        promise = {"type": "data-promise", "id": "r1", "data": {**PROMISE, "state": "open"}}
        # A part that is told and not kept: there is no answer yet whose part it could be.
        told = [{**promise, "transient": True}, first.finished, "[DONE]"]
        assert chunks_of(await site.post("/chat", said("When?", id="m2"))) == told
        assert chunks_of(await site.get("/chat/c1/stream")) == told  # after a reload
        run = run_input(asking("And?", "m3"))
        events = chunks_of(await site.post("/ag-ui", run))
        custom = [each for each in events if each["type"] == "CUSTOM"]
        assert custom == [{"type": "CUSTOM", "name": "promise", "value": promise["data"]}]
        assert events[-1]["outcome"] == {"type": "success"}
        assert json.loads(await site.post("/chat/c1/stop", {})) == {"stopped": False}
        restored = AgentClient().read(await site.post("/ag-ui", run_input())).messages
        assert [each["content"] for each in restored if each["role"] == "user"] == [
            *("Please.", "When?", "And?")
        ]
        # Nothing of it is lost.
        waiting = [("m1", "Please."), ("c1.1", "Begun."), ("m2", "When?"), ("m3", "And?")]
        assert await shown(site) == waiting
        await loop.deliver(TICKETS[-1], "a film")
        await loop.run("c1")
        (answer_id, text) = (await shown(site))[-1]
        assert (await shown(site))[:-1] == waiting
        assert text == "It is coming."
        late = ChatClient().read(await site.get("/chat/c1/stream"))
        assert late.message["id"] == answer_id


async def test_an_ag_ui_client_that_comes_again_is_told_of_promises_W9a_W11() -> None:
    store = MemoryStore()
    async with serving(store, loop=studio_loop(store)) as site:
        for messages in ([asking("Please.", "m1")], [], [asking("Please.", "m1")]):
            events = chunks_of(await site.post("/ag-ui", run_input(*messages)))
            told = [each["value"] for each in events if each["type"] == "CUSTOM"]
            assert told == [{**PROMISE, "state": "open"}]
            assert AgentClient().read(encoded(events)).ended["type"] == "RUN_FINISHED"


def encoded(events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events)


async def test_what_is_not_shown_of_a_promise_is_not_told_to_who_waits_W22() -> None:
    for show in (Show(tools={"render": "nothing"}), Show(tools={"render": "status"})):
        store = MemoryStore()
        async with serving(store, loop=studio_loop(store), show=show) as site:
            await site.post("/chat", said())
            hidden = show.hides("render")
            for path, body in (
                ("/chat", said("When?", id="m2")),
                ("/ag-ui", run_input(asking("And?", "m3"))),
            ):
                data = await site.post(path, body)
                assert (b"render" in data) is not hidden
                assert b"an hour" not in data


async def test_a_message_that_waits_is_shown_as_the_log_will_show_it_W22() -> None:
    def redact(event: DurableEvent) -> DurableEvent | None:
        if not isinstance(event, MessagesTaken):
            return event
        kept = [each for each in event.messages if "secret" not in each.text]
        return MessagesTaken(tuple([ShownMessage(each.id, "redacted") for each in kept]))

    store = MemoryStore()
    async with serving(store, loop=studio_loop(store), show=Show(redact=redact)) as site:
        await site.post("/chat", said())
        for number, text in enumerate(["a secret", "When?"], 2):
            await site.post("/chat", said(text, id=f"m{number}"))
        assert [each for each, _ in await shown(site)] == ["m1", "c1.1", "m3"]
        assert b"secret" not in await site.get("/chat/c1/messages")
    for dropped in (None, MessagesTaken(())):
        async with serving(store, show=Show(redact=lambda _, given=dropped: given)) as site:  # type: ignore[misc]
            assert await shown(site) == []


async def test_a_message_that_comes_while_an_answer_is_written_is_shown_above_it_W11() -> None:
    """The client goes on with its last message: that which the stream replays."""
    store, goes = MemoryStore(), asyncio.Event()
    async with serving(store, loop=gated_loop(store, goes)) as site:
        first = asyncio.create_task(site.post("/chat", said()))
        await until(lambda: "c1" in store._conversations and len(store._find("c1").events) >= 5)
        second = asyncio.create_task(site.post("/chat", said("And?", id="m2")))
        await left(store, "m2")
        assert await shown(site) == [("m1", "Please."), ("m2", "And?"), ("c1.1", "First.")]
        again = asyncio.create_task(site.get("/chat/c1/stream"))
        await asyncio.sleep(0.1)
        goes.set()
        message = ChatClient().read(await first).message
        assert ChatClient().read(await again).message == message
        later = ChatClient().read(await second).message["id"]
        assert [each for each, _ in await shown(site)] == ["m1", message["id"], "m2", later]


async def test_a_message_that_a_question_has_overtaken_is_shown_above_it_W8() -> None:
    """npm's client sends answers of its last message alone."""
    store = MemoryStore()
    async with serving(store, script=FULL) as site:
        client = ChatClient().read(await site.post("/chat", said()))
        await store.push("c1", "And?", idempotency_key="m2")
        assert [each for each, _ in await shown(site)] == ["m1", "m2", client.message["id"]]
        replayed = ChatClient().read(await site.get("/chat/c1/stream"))
        assert replayed.message == client.message
        client.read(await site.post("/chat", answered(client, True)))


async def test_a_reload_before_the_first_event_waits_for_the_answer_W11() -> None:
    for begins in ("the conversation", "another answer"):
        store = MemoryStore()
        async with serving(store, script=PLAIN) as site:
            if begins == "another answer":
                await site.post("/chat", said(id="m0"))
            else:
                await store.create("c1", Session())
            await store.push("c1", "Please.", idempotency_key="m1")
            assert (await shown(site))[-1] == ("m1", "Please.")
            client = ChatClient().read(await site.get("/chat/c1/stream"))
            assert client.finished == {"type": "finish", "finishReason": "stop"}
            assert (await shown(site))[-1][0] == client.message["id"]


@pytest.mark.parametrize("ending", ["stopped", "failed"])
async def test_a_reload_begins_nothing_for_a_message_behind_a_run_that_ended_so_W11_W19(
    ending: str,
) -> None:
    """It is told how that run ended, as the response to the message was."""
    store = MemoryStore()
    loop = gated_loop(store, asyncio.Event())
    async with serving(store, loop=loop) as site:
        reading = asyncio.create_task(site.post("/chat", said()))
        await until(lambda: "c1" in store._conversations and len(store._find("c1").events) >= 5)
        await store.push("c1", "And?", idempotency_key="m2")
        if ending == "stopped":
            await site.post("/chat/c1/stop", {})
        else:
            await store.break_lease("c1", by="ann")
            claim: Any = await store.claim("c1", lease=60)
            await store.add_events(claim, [{"event": "RunFailed", "kind": "OSError"}])
            await store.release(claim, status="open")
        await reading
    async with serving(store, loop=loop) as other:
        log = [*store._find("c1").events]
        assert await shown(other) == [("m1", "Please."), ("c1.1", "First."), ("m2", "And?")]
        ended = chunks_of(await other.get("/chat/c1/stream"))
        says = {"type": "abort", "reason": "stopped by ann"}
        if ending == "failed":
            says = {"type": "error", "errorText": "The run failed. (OSError)"}
        assert ended == [says, "[DONE]"]
        await asyncio.sleep(0.1)
        assert store._find("c1").events == log
