"""The routes (W9 to W19): a server on the loopback; clients that leave, forge and come again."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from test_ag_ui import AgentClient
from web_toolkit import FULL, PLAIN, ChatClient, Desk, call, chunks_of, make_loop

import lutumpy.web.runs
from lutumpy import Session, ToolError, Toolset, tool, tool_fn
from lutumpy.durable import Claim, MemoryStore, SqliteStore
from lutumpy.execution import Dispatcher
from lutumpy.models import Message
from lutumpy.testing import Reply
from lutumpy.web import Show
from lutumpy.web.incoming import ANSWER_FIRST
from lutumpy.web.starlette import chat_routes


async def who(request: Request, scope: str) -> str:
    name = request.headers.get("authorization", "")
    if not name:
        raise HTTPException(401, "Who are you?")
    if scope.startswith("secret") and name != "ann":
        raise HTTPException(403, "Not yours.")
    return name


class Site:
    """A server, and a client of it."""

    def __init__(self, client: httpx2.AsyncClient, store: MemoryStore, server: Any) -> None:
        self.client = client
        self.store = store
        self.server = server

    async def post(self, path: str, body: Any, *, status: int = 200) -> bytes:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        response = await self.client.post(path, content=data)
        assert response.status_code == status, response.text
        return response.content

    async def get(self, path: str, *, status: int = 200, **headers: str) -> bytes:
        response = await self.client.get(path, headers=headers)
        assert response.status_code == status, response.text
        return response.content

    async def first_lines(self, path: str, count: int, **headers: str) -> list[str]:
        """The first lines of a response; then the client is gone."""
        found: list[str] = []
        async with self.client.stream("GET", path, headers=headers) as response:
            async for line in response.aiter_lines():
                if line:
                    found.append(line)
                if len(found) >= count:
                    break
        return found


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came")


@asynccontextmanager
async def serving(store: Any = None, script: Any = FULL, **options: Any) -> AsyncIterator[Site]:
    store = MemoryStore() if store is None else store
    loop = options.pop("loop", None) or make_loop(store, script)
    routes = chat_routes(loop, store, who=options.pop("who", who), **options)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    headers = {"authorization": "ann"}
    try:
        await until(lambda: server.started)
        async with httpx2.AsyncClient(base_url=address, headers=headers, timeout=30) as client:
            with anyio.fail_after(60):  # heartbeats keep responses open for ever
                yield Site(client, store, server)
    except BaseException:
        server.force_exit = True  # a test that fails may leave responses open
        raise
    finally:
        server.should_exit = True
        await task
        listener.close()


def said(text: str = "Please.", id: str = "m1", scope: str = "c1") -> dict[str, Any]:
    message = {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": scope, "messages": [message], "trigger": "submit-message"}


def answered(client: ChatClient, approved: Any, scope: str = "c1") -> dict[str, Any]:
    message = json.loads(json.dumps(client.message))
    for part in message["parts"]:
        if part.get("state") == "approval-requested":
            part["state"] = "approval-responded"
            part["approval"]["approved"] = approved
    return {"id": scope, "messages": [message], "trigger": "submit-message", "messageId": "a"}


async def test_a_chat_asks_and_goes_on_W8_W11_W16() -> None:
    async with serving() as site:
        client = ChatClient().read(await site.post("/chat", said()))
        assert client.finished == {"type": "finish", "finishReason": "tool-calls"}
        client.read(await site.post("/chat", answered(client, True)))
        assert client.finished == {"type": "finish", "finishReason": "stop"}
        texts = [part["text"] for part in client.message["parts"] if part["type"] == "text"]
        assert texts == ["Let me see.", "It is done."]
        # Each look at the whole conversation is equal.
        user, assistant = json.loads(await site.get("/chat/c1/messages"))
        assert user["id"] == "m1"
        assert assistant == client.message
        replayed = ChatClient().read(await site.get("/chat/c1/stream"))
        assert replayed.message == client.message
        # A second answer changes nothing, and is shown what the first decided.
        (held,) = [part for part in client.message["parts"] if part.get("toolCallId") == "p1"]
        held["state"] = "approval-requested"
        again = client.read(await site.post("/chat", answered(client, False)))
        assert again.finished == {"type": "finish", "finishReason": "stop"}
        (info,) = await site.store.scopes()
        assert info.status == "done"


TWO_PAYMENTS = (
    Reply(text="Both.", calls=(call("pay", "p1", amount=1), call("pay", "p2", amount=2))),
    Reply(text="Done."),
    Reply(text="Hello again."),
)


async def states(site: Site) -> list[tuple[str, Any]]:
    """The calls of the conversation: their states, and what was said of them."""
    shown = json.loads(await site.get("/chat/c1/messages"))
    return [call_state(part) for each in shown for part in each["parts"] if "toolCallId" in part]


def call_state(part: Any) -> tuple[str, Any]:
    return part["state"], part["approval"].get("approved")


async def test_an_approval_that_comes_too_late_is_shown_what_was_decided_W11_W16() -> None:
    async with serving(script=TWO_PAYMENTS) as site:
        first = answered(ChatClient().read(await site.post("/chat", said())), True)

        async def answer() -> Any:
            """A tab that answers what it was asked first; it shows its own answers, until told."""
            late = ChatClient()
            late.message = json.loads(json.dumps(first["messages"][0]))
            late.read(await site.post("/chat", first))
            assert late.finished == {"type": "finish", "finishReason": "stop"}
            return late.message

        # Another tab refuses one of them, and the run waits for the other.
        refusal = json.loads(json.dumps(first))
        parts = [part for part in refusal["messages"][0]["parts"] if "toolCallId" in part]
        parts[0]["approval"]["approved"], parts[1]["state"] = False, "approval-requested"
        await site.post("/chat", refusal)
        late = await answer()
        found = [call_state(part) for part in late["parts"] if "toolCallId" in part]
        assert found == [("output-denied", False), ("output-available", True)]
        assert found == await states(site)
        # A third one comes behind the next message.
        await site.post("/chat", said("Hi again.", id="m2"))
        assert await answer() == late
        # So is a message that was answered before another one.
        again = ChatClient().read(await site.post("/chat", said()))
        assert again.message == late


async def test_a_message_is_taken_once_W15() -> None:
    async with serving(script=PLAIN) as site:
        first = ChatClient().read(await site.post("/chat", said()))
        again = ChatClient().read(await site.post("/chat", said()))
        assert again.message == first.message
        await site.post("/chat", said("Something else."), status=409)
        await site.post("/chat", {**said(), "trigger": "regenerate-message"}, status=409)
        await site.post("/chat", said("And now?", id="m2"))
        items = (await site.store.session("c1")).transcript
        asked = [item.text for item in items if isinstance(item, Message)]
        assert asked == ["Please.", "And now?"]


class SlowStore(MemoryStore):
    """A store whose next look at what is held waits."""

    gate: asyncio.Event | None = None

    async def held(self, **options: Any) -> Any:
        if self.gate is not None:
            gate, self.gate = self.gate, None
            await gate.wait()
        return await super().held(**options)


async def test_a_message_that_is_sent_twice_at_once_is_taken_once_W15() -> None:
    """The run of the one may ask a person something while the other is looked at."""
    store = SlowStore()
    async with serving(store) as site:
        gate = store.gate = asyncio.Event()
        slow = asyncio.create_task(site.post("/chat", said()))
        await until(lambda: store.gate is None)
        first = ChatClient().read(await site.post("/chat", said()))
        gate.set()
        assert ChatClient().read(await slow).message == first.message


async def test_nobody_unknown_reads_writes_or_decides() -> None:
    async with serving() as site:
        paths = ("/chat/c1/stream", "/chat/c1/messages", "/events/c1")
        for path in paths:
            await site.get(path, status=401, authorization="")
        for path in ("/chat/secret/stream", "/chat/secret/messages", "/events/secret"):
            await site.get(path, status=403, authorization="bob")
        site.client.headers["authorization"] = ""
        await site.post("/chat", said(), status=401)
        await site.post("/chat/c1/stop", {}, status=401)
        run = {"threadId": "c1", "runId": "r", "messages": []}
        await site.post("/ag-ui", run, status=401)
        assert await site.store.scopes() == []
        site.client.headers["authorization"] = "ann"
        # `useChat` comes again to every chat, also to one that its page has just made up (W11).
        assert await site.get("/chat/c1/stream", status=204) == b""
        for path in paths[1:]:
            assert b"no such conversation" in await site.get(path, status=404)


async def test_forged_bodies_decide_nothing_W16_W17_W18() -> None:
    async with serving() as site:
        client = ChatClient().read(await site.post("/chat", said()))
        (held,) = await site.store.held()
        for approved in ("true", 1, None):
            await site.post("/chat", answered(client, approved), status=422)
        forged = answered(client, True)
        for part in forged["messages"][0]["parts"]:
            if part.get("toolCallId") == "p1":
                part["approval"]["id"] = f"{held.digest}:l2"
        await site.post("/chat", forged, status=409)
        await site.post("/chat", b"x" * 1_000_001, status=413)
        await site.post("/chat", b"{", status=422)
        assert [plan.held for plan in await site.store.held()] == [("p1",)]


async def test_nobody_decides_a_call_that_is_not_shown_W16_W22() -> None:
    """Who knows its id, as from another page, can't: what isn't shown is another person's."""
    async with serving(show=Show(tools={"pay": "nothing"})) as site:
        client = ChatClient().read(await site.post("/chat", said()))
        assert b"p1" not in json.dumps(client.message).encode()
        (held,) = await site.store.held()
        asked = f"{held.digest}:p1"
        approval = {"id": asked, "approved": True}
        part = {"type": "tool-pay", "toolCallId": "p1", "input": {}, "approval": approval}
        part["state"] = "approval-responded"
        body = {"id": "c1", "messages": [{"id": "a", "role": "assistant", "parts": [part]}]}
        entry = {"interruptId": asked, "status": "resolved", "payload": {"approved": True}}
        run = {"threadId": "c1", "runId": "r", "messages": [], "resume": [entry]}
        for _ in range(2):
            await site.post("/chat", body, status=409)
            await site.post("/ag-ui", run, status=409)
            # Nor is it told what somebody decides who may.
            await make_loop(site.store, FULL).decide(
                *("c1", held.digest, {"p1": {"decision": "run"}}), by="operator"
            )
        log = site.store._find("c1").events
        (waits,) = [stored.seq for stored in log if stored.event["event"] == "RunWaits"]
        *_, shown = await site.first_lines(f"/events/c1?after={waits - 1}", 4)
        assert '"held": []' in shown


async def test_a_message_is_another_one_with_another_file_W15() -> None:
    def with_file(data: bytes, **fields: Any) -> dict[str, Any]:
        body = said()
        url = "data:image/png;base64," + base64.b64encode(data).decode()
        file = {"type": "file", "mediaType": "image/png", "url": url}
        body["messages"][0] |= {"parts": [*body["messages"][0]["parts"], file], **fields}
        return body

    async with serving(script=PLAIN, media_types=["image/png"]) as site:
        first = await site.post("/chat", with_file(b"one"))
        assert await site.post("/chat", with_file(b"one")) == first
        await site.post("/chat", with_file(b"two"), status=409)
        await site.post("/chat", said(), status=409)
        # Nobody has taken this one yet.
        await site.store.push("c1", "Later.", idempotency_key="m2")
        await site.post("/chat", with_file(b"one", id="m2"), status=409)


async def test_a_message_while_a_person_is_asked_leaves_nobody_waiting() -> None:
    # npm's client sends no answer while a response is open, and none from a message that isn't the
    # last: a page that sent a message then could never answer.
    async with serving() as site:
        client = ChatClient().read(await site.post("/chat", said()))
        refused = await site.post("/chat", said("And?", id="m2"), status=409)
        assert json.loads(refused)["error"] == ANSWER_FIRST
        run = {
            "threadId": "c1",
            "runId": "r",
            "messages": [{"id": "m3", "role": "user", "content": "?"}],
        }
        assert json.loads(await site.post("/ag-ui", run, status=409))["error"] == ANSWER_FIRST
        assert await site.post("/chat", said())  # one that was taken is shown again
        client.read(await site.post("/chat", answered(client, True)))
        assert client.finished == {"type": "finish", "finishReason": "stop"}
        await site.post("/chat", said("And?", id="m2"))


async def test_half_a_character_in_a_message_hurts_nobody_W15() -> None:
    half = "half \ud83d"
    async with serving(script=PLAIN, media_types=["text/plain"]) as site:
        data = {"mediaType": "text/plain", "url": "data:text/plain;base64,aGk="}
        bodies = {
            "c1": said(half, scope="c1"),
            "c2": said(id=half, scope="c2"),
            "c3": said(scope="c3"),
            "c4": said(half, scope="c4"),
        }
        for scope in ("c3", "c4"):
            file = {"type": "file", **data, "filename": half}
            bodies[scope]["messages"][0]["parts"].append(file)
        for scope, body in bodies.items():
            first, again = [ChatClient().read(await site.post("/chat", body)) for _ in range(2)]
            assert again.message == first.message
            user, answer = json.loads(await site.get(f"/chat/{scope}/messages"))
            assert "\ufffd" in json.dumps(user, ensure_ascii=False)
            assert answer == first.message


class GatedStore(MemoryStore):
    """A store in which a request begins when it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.came, self.allowed = asyncio.Event(), asyncio.Event()

    async def add_events(self, claim: Any, events: Any, **options: Any) -> None:
        if any(event["event"] == "RequestStarted" for event in events):
            self.came.set()
            await self.allowed.wait()
        await super().add_events(claim, events, **options)


async def test_a_message_that_a_question_overtakes_is_told_so_and_answered_behind_it() -> None:
    store = GatedStore()
    async with serving(store) as site:
        first = asyncio.create_task(site.post("/chat", said()))
        await store.came.wait()
        second = asyncio.create_task(site.post("/chat", said("And?", id="m2")))
        await left(store, "m2")
        store.allowed.set()
        client = ChatClient().read(await first)
        assert client.finished == {"type": "finish", "finishReason": "tool-calls"}
        assert chunks_of(await second) == [{"type": "error", "errorText": ANSWER_FIRST}]
        client.read(await site.post("/chat", answered(client, True)))
        await until(lambda: "And?" in str([each.event for each in store._find("c1").events]))


class LateStore(MemoryStore):
    """A store in which a run writes that it waits when it is allowed to, and the first one does."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed, self.waiting = asyncio.Event(), 0
        self.allowed.set()

    async def add_events(self, claim: Any, events: Any, **options: Any) -> None:
        if any(event["event"] == "RunWaits" for event in events):
            self.waiting += 1
            await self.allowed.wait()
        await super().add_events(claim, events, **options)


async def test_the_response_to_an_answer_does_not_end_where_another_process_still_waited_W11() -> (
    None
):
    """That process looked at the decisions before there was one, and says so behind it."""
    store = LateStore()
    async with serving(store) as site, serving(store) as other:
        client = ChatClient().read(await site.post("/chat", said()))
        await until(lambda: store._find("c1").lease_until is None)
        store.allowed.clear()
        other_run = asyncio.create_task(make_loop(store, FULL).run("c1"))
        await until(lambda: store.waiting == 2)
        answering = asyncio.create_task(site.post("/chat", answered(client, True)))
        await until(lambda: "CallDecided" in str([each.event for each in store._find("c1").events]))
        store.allowed.set()
        client.read(await answering)
        await other_run
        assert client.finished == {"type": "finish", "finishReason": "stop"}
        replayed = ChatClient().read(await other.get("/chat/c1/stream"))
        assert replayed.message == client.message


@pytest.mark.parametrize("length", [2, 200])
async def test_an_ag_ui_client_that_comes_again_to_an_answer_is_not_left_waiting_W11(
    length: int, tmp_path: Path
) -> None:
    async with (
        SqliteStore(tmp_path / "chats.db") as stored,
        serving(script=PLAIN) as site,
        serving(stored, script=PLAIN) as other,
    ):
        asked = {"id": "m1", "role": "user", "content": "Please."}
        run: dict[str, Any] = {"threadId": "c" * length, "runId": "r1", "messages": [asked]}
        for each in (site, other):
            client = AgentClient([asked]).read(await each.post("/ag-ui", run))
            for messages in ([], [asked]):
                again = {**run, "runId": "r2", "messages": messages}
                restored = AgentClient().read(await each.post("/ag-ui", again))
                assert restored.messages == client.messages
                assert restored.ended["type"] == "RUN_FINISHED"


async def test_ag_ui_runs_are_interrupted_resumed_and_restored_W9_W11() -> None:
    async with serving() as site:
        asked = {"id": "m1", "role": "user", "content": "Please."}
        run: dict[str, Any] = {"threadId": "c1", "runId": "r1", "messages": [asked]}
        client = AgentClient([asked]).read(await site.post("/ag-ui", run))
        (interrupt,) = client.ended["outcome"]["interrupts"]
        restored = AgentClient().read(await site.post("/ag-ui", {**run, "runId": "r2"}))
        assert restored.messages == client.messages
        assert restored.ended["outcome"] == client.ended["outcome"]
        payload = {"approved": True, "input": {"amount": "much"}}
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
        resumed = {**run, "runId": "r3", "resume": [entry]}
        await site.post("/ag-ui", resumed, status=422)
        payload["input"] = {"amount": 90}
        client.read(await site.post("/ag-ui", resumed))
        assert client.ended["outcome"] == {"type": "success"}
        results = [each["content"] for each in client.messages if each["role"] == "tool"]
        assert "paid 90" in results


async def test_own_events_go_on_behind_the_last_one_W12() -> None:
    async with serving(script=PLAIN) as site:
        await site.post("/chat", said())
        lines = await site.first_lines("/events/c1", 40)
        ids = [int(line[4:]) for line in lines if line.startswith("id: ")]
        assert ids == sorted(ids)
        later = await site.first_lines("/events/c1", 4, **{"last-event-id": str(ids[3])})
        assert later[0].startswith(":")
        assert later[1] == f"id: {ids[4]}"
        await site.get("/events/c1?after=10000", status=409)
        await site.get("/events/c1?after=x", status=422)


@tool_fn(effect="read")
async def look(word: str) -> str:
    """Look a word up, slowly."""
    if word == "secret":
        raise ToolError("a canary of an error")
    await asyncio.sleep(30)
    return word


class SlowDesk(Toolset):
    look = tool(look)


def slow_loop(store: MemoryStore) -> Any:
    return make_loop(store, PLAIN, tools=SlowDesk, dispatch=Dispatcher(SlowDesk))


async def test_a_message_that_comes_while_a_run_goes_on_has_its_answer_W5() -> None:
    """Its task is told before the commit of the round that it came in, which ends the other one."""
    waits, goes = asyncio.Event(), asyncio.Event()

    @tool_fn(effect="read")
    async def look(word: str) -> str:
        """Look a word up, when it may."""
        waits.set()
        await goes.wait()
        return word

    class Gated(Toolset, tools=[look]):
        """A tool that waits."""

    store = MemoryStore()
    loop = make_loop(store, PLAIN, tools=Gated, dispatch=Dispatcher(Gated))
    async with serving(store, loop=loop) as site:
        first = asyncio.create_task(site.post("/chat", said()))
        await waits.wait()
        second = asyncio.create_task(site.post("/chat", said("And?", id="m2")))
        await left(store, "m2")
        asked = {"id": "m3", "role": "user", "content": "And more?"}
        run = {"threadId": "c1", "runId": "r1", "messages": [asked]}
        third = asyncio.create_task(site.post("/ag-ui", run))
        await asyncio.sleep(0.2)
        goes.set()
        answers = [ChatClient().read(await each) for each in (first, second)]
        shown = json.loads(await site.get("/chat/c1/messages"))
        messages = [each for each in shown if each["role"] == "assistant"]
        assert [each.message for each in answers] == messages
        texts = [part["text"] for part in messages[1]["parts"] if part["type"] == "text"]
        assert texts == ["Second.", "Third."]
        read = AgentClient().read(await third)
        assert read.messages[-1]["content"] == "Third."
        restored = AgentClient().read(await site.post("/ag-ui", {**run, "messages": []}))
        contents = [each.get("content") for each in restored.messages]
        assert contents[0] == "Please."
        assert contents[-1] == "Third."


async def test_stop_ends_the_run_and_says_who_stopped_it_W19() -> None:
    store = MemoryStore()
    async with serving(store, loop=slow_loop(store), heartbeat=0.1) as site:
        reading = asyncio.create_task(site.post("/chat", said()))
        await until(lambda: "c1" in store._conversations and len(store._find("c1").events) >= 5)
        await asyncio.sleep(0.3)
        assert json.loads(await site.post("/chat/c1/stop", {})) == {"stopped": True}
        data = await reading
        assert data.count(b": lutumpy") > 1  # heartbeats (W13)
        assert ChatClient().read(data).finished == {"type": "abort", "reason": "stopped by ann"}
        assert json.loads(await site.post("/chat/c1/stop", {})) == {"stopped": False}


async def test_who_comes_again_begins_nothing_that_was_stopped_W11_W19() -> None:
    store = MemoryStore()
    async with serving(store, loop=slow_loop(store)) as site:
        reading = asyncio.create_task(site.post("/chat", said()))
        await until(lambda: "c1" in store._conversations and len(store._find("c1").events) >= 5)
        await site.post("/chat/c1/stop", {})
        stopped = ChatClient().read(await reading)
        log = [*store._find("c1").events]
        asked = {"id": "m1", "role": "user", "content": "Please."}
        for messages in ([], [asked]):
            run = {"threadId": "c1", "runId": "r", "messages": messages}
            client = AgentClient().read(await site.post("/ag-ui", run))
            assert client.ended["outcome"] == {"type": "cancelled"}
            assert client.messages[0] == asked
        again = ChatClient().read(await site.post("/chat", said()))
        assert (again.message, again.finished) == (stopped.message, stopped.finished)
        await asyncio.sleep(0.1)
        assert store._find("c1").events == log


async def left(store: MemoryStore, message_id: str) -> None:
    """Wait until a message is in the inbox."""
    while not any(each.id == f"message:{message_id}" for each in await store.inbox("c1")):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_message_that_waits_behind_a_run_that_is_stopped_is_told_so_W1_W19() -> None:
    store = MemoryStore()
    async with serving(store, loop=slow_loop(store)) as site:
        reading = asyncio.create_task(site.post("/chat", said()))
        await until(lambda: "c1" in store._conversations and len(store._find("c1").events) >= 5)
        second = asyncio.create_task(site.post("/chat", said("And?", id="m2")))
        await left(store, "m2")
        assert json.loads(await site.post("/chat/c1/stop", {})) == {"stopped": True}
        stopped = {"type": "abort", "reason": "stopped by ann"}
        assert ChatClient().read(await reading).finished == stopped
        assert chunks_of(await second) == [stopped, "[DONE]"]
        # It waits for whoever goes on.
        assert [each.id for each in await store.inbox("c1")] == ["message:m2"]


class NoRunner:
    """A runner that can't be reached."""

    async def run(self, tickets: Any, journal: Any) -> Any:
        raise OSError("a canary of an address")


@pytest.mark.parametrize("path", ["/chat", "/ag-ui"])
async def test_a_message_behind_a_run_that_fails_again_or_is_stuck_is_told_so_W1(path: str) -> None:
    """The log says only once that a conversation is stuck, and nothing of a store that is away."""

    async def ended(message_id: str) -> Any:
        asked = {"id": message_id, "role": "user", "content": "And?"}
        run = {"threadId": "c1", "runId": "r", "messages": [asked]}
        body = said("And?", id=message_id) if path == "/chat" else run
        found = [each for each in chunks_of(await site.post(path, body)) if each != "[DONE]"]
        return found[-1].get("errorText") or found[-1]["code"]

    store = MemoryStore()
    loop = make_loop(store, PLAIN, hooks=None, runner=NoRunner(), max_attempts=2)
    async with serving(store, loop=loop) as site:
        found = [await ended(f"m{number}") for number in range(5)]
        assert [kind for text in found for kind in ("OSError", "Stuck") if kind in text] == [
            *("OSError", "OSError", "Stuck", "Stuck", "Stuck")
        ]
        if path == "/ag-ui":  # it comes again, with nothing new
            run = {"threadId": "c1", "runId": "r", "messages": []}
            assert chunks_of(await site.post(path, run))[-1]["code"] == "Stuck"
        await store.retry("c1", by="ann")

        async def claim(*args: Any, **options: Any) -> Any:
            raise OSError("a canary of an address")

        store.claim = claim  # type: ignore[method-assign]
        assert "OSError" in await ended("m9")


async def test_stop_reaches_a_run_of_another_process_W19() -> None:
    store = MemoryStore()
    async with serving(store) as site:
        await store.create("c1", __import__("lutumpy").Session())
        await store.claim("c1", lease=60)
        assert json.loads(await site.post("/chat/c1/stop", {})) == {"stopped": True}
        assert b"RunStopped" in b"".join(
            line.encode() for line in await site.first_lines("/events/c1", 4)
        )


def gated_loop(store: MemoryStore, goes: asyncio.Event, **options: Any) -> Any:
    """A loop whose tool waits until it may go on."""

    @tool_fn(effect="read")
    async def look(word: str) -> str:
        """Look a word up, when it may."""
        await goes.wait()
        return word

    class Gated(Toolset, tools=[look]):
        """A tool that waits."""

    return make_loop(store, PLAIN, tools=Gated, dispatch=Dispatcher(Gated), **options)


@pytest.mark.parametrize("waits_in", ["the process that runs", "a third process"])
async def test_a_stop_in_another_process_begins_nothing_where_a_message_waits_W19(
    waits_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message waits for whoever comes later, as it does where the run is stopped."""
    monkeypatch.setattr(lutumpy.web.runs, "_MOST_SECONDS_BETWEEN_TRIES", 0.1)
    monkeypatch.setattr(lutumpy.web.runs, "_SECONDS_BETWEEN_TRIES", 0.1)
    store = MemoryStore()
    goes = asyncio.Event()
    loop = gated_loop(store, goes, lease=0.6)
    async with serving(store, loop=loop) as runs, serving(store, loop=loop) as stops:
        reading = asyncio.create_task(runs.post("/chat", said()))
        await until(lambda: "c1" in store._conversations and len(store._find("c1").events) >= 5)
        async with serving(store, loop=loop) as third:
            site = runs if waits_in == "the process that runs" else third
            second = asyncio.create_task(site.post("/chat", said("And?", id="m2")))
            await left(store, "m2")
            await asyncio.sleep(0.1)
            assert json.loads(await stops.post("/chat/c1/stop", {})) == {"stopped": True}
            stopped = {"type": "abort", "reason": "stopped by ann"}
            assert ChatClient().read(await reading).finished == stopped
            assert chunks_of(await second) == [stopped, "[DONE]"]
            await asyncio.sleep(0.4)
            assert store._find("c1").events[-1].event["event"] == "RunStopped"
            assert [each.id for each in await store.inbox("c1")] == ["message:m2"]
            # What is said behind the stop lets it go on, in whichever process.
            goes.set()
            await site.post("/chat", said("And more?", id="m3"))
            assert await store.inbox("c1") == ()


async def test_what_is_said_behind_a_stop_goes_on_before_its_process_has_noticed_W19() -> None:
    store = MemoryStore()
    goes = asyncio.Event()
    loop = gated_loop(store, goes, lease=1.5)
    async with serving(store, loop=loop) as runs, serving(store, loop=loop) as stops:
        reading = asyncio.create_task(runs.post("/chat", said()))
        await until(lambda: "c1" in store._conversations and len(store._find("c1").events) >= 5)
        assert json.loads(await stops.post("/chat/c1/stop", {})) == {"stopped": True}
        goes.set()
        await runs.post("/chat", said("And?", id="m2"))
        await reading
        assert await store.inbox("c1") == ()


async def test_no_worker_goes_on_with_what_was_stopped_before_something_is_said_W19() -> None:
    store = MemoryStore()
    loop = gated_loop(store, asyncio.Event(), lease=0.6)
    async with serving(store, loop=loop) as runs, serving(store, loop=loop) as stops:
        for number, site in enumerate([runs, stops]):
            reading = asyncio.create_task(runs.post("/chat", said(id=f"m{number}")))
            await until(lambda: bool(store._conversations) and has_claim(store))
            await store.push("c1", "And?", idempotency_key=f"w{number}")
            assert json.loads(await site.post("/chat/c1/stop", {})) == {"stopped": True}
            await reading
            assert await store.next() is None
            assert await store.inbox("c1")
        await store.push("c1", "Go on.", idempotency_key="w")
        assert await store.next() == "c1"


def has_claim(store: MemoryStore) -> bool:
    """Whether a run of the conversation is inside a call."""
    found = store._find("c1")
    return found.lease_until is not None and found.events[-1].event["event"] == "RoundPlanned"


async def begun_elsewhere(store: MemoryStore, lease: float) -> None:
    """A conversation whose run another process has begun."""
    session = Session()
    session.push_user("Please.")
    await store.create("c1", session)
    claim = await store.claim("c1", lease=lease)
    taken = {"event": "MessagesTaken", "messages": [{"id": "m1", "text": "Please.", "files": []}]}
    assert isinstance(claim, Claim)
    await store.add_events(claim, [taken])


@pytest.mark.slow
async def test_a_run_whose_process_is_gone_goes_on_where_it_is_watched_W11() -> None:
    store = MemoryStore()
    async with serving(store, script=PLAIN) as site:
        await begun_elsewhere(store, lease=0.7)
        client = ChatClient().read(await site.get("/chat/c1/stream"))
        assert client.finished == {"type": "finish", "finishReason": "stop"}
        assert client.message["parts"][-1]["text"] == "Third."


@pytest.mark.slow
async def test_nobody_goes_on_with_a_run_that_is_stopped_or_watched_no_more_W19() -> None:
    store = MemoryStore()
    async with serving(store, script=PLAIN) as site:
        await begun_elsewhere(store, lease=1.0)
        await site.first_lines("/events/c1", 4)
        await asyncio.sleep(2.0)  # longer than the lease, and nobody watches
        names = [each.event["event"] for each in store._find("c1").events]
        assert names == ["MessagesTaken"]
        watching = asyncio.create_task(site.get("/chat/c1/stream"))
        await begun_again(store)
        await asyncio.sleep(0.3)
        assert json.loads(await site.post("/chat/c1/stop", {})) == {"stopped": True}
        client = ChatClient().read(await watching)
        assert client.finished == {"type": "abort", "reason": "stopped by ann"}
        await asyncio.sleep(1.0)
        assert store._find("c1").events[-1].event["event"] == "RunStopped"


@pytest.mark.parametrize("path", ["/events/c1", "/chat/c1/stream"])
async def test_head_is_what_get_says_and_begins_and_watches_nothing_W12(path: str) -> None:
    """It was answered with the endless stream, so its connection was never free again."""
    store = MemoryStore()
    async with serving(store, PLAIN) as site:
        await begun_elsewhere(store, lease=0.05)
        await asyncio.sleep(0.1)  # whoever watches goes on with it
        last = await store.last_event("c1")
        response = await site.client.head(path)
        assert (response.status_code, response.content) == (200, b"")
        assert response.headers["content-type"].startswith("text/event-stream")
        await asyncio.sleep(0.1)
        assert await store.last_event("c1") == last
        assert (await site.client.head("/events/nobody")).status_code == 404


async def begun_again(store: MemoryStore) -> None:
    """The other process is back, with a lease of its own."""
    assert isinstance(await store.claim("c1", lease=60), Claim)


@pytest.mark.slow
@pytest.mark.parametrize("on_leave", ["go_on", "stop"])
async def test_a_browser_that_leaves_stops_nothing_unless_that_is_wanted_W19(
    on_leave: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lutumpy.web.runs, "SECONDS_ALONE", 0.1)
    store = MemoryStore()
    async with serving(store, loop=slow_loop(store), on_leave=on_leave) as site:
        async with site.client.stream("POST", "/chat", content=json.dumps(said())) as response:
            async for _ in response.aiter_lines():
                if len(store._find("c1").events) >= 5:
                    break
        events = store._find("c1").events
        if on_leave == "stop":
            await until(lambda: events[-1].event["event"] == "RunStopped")
            assert events[-1].event["by"] == "nobody watched"
        else:
            await asyncio.sleep(0.4)
            assert events[-1].event["event"] != "RunStopped"
            await site.post("/chat/c1/stop", {})


async def begun_here(store: MemoryStore, *, stop_when_left: bool = False) -> Any:
    """The runs of a process, one of which is inside a call."""
    await store.create("c1", Session())
    await store.push("c1", "Please.", idempotency_key="m1")
    runs = lutumpy.web.runs.Runs(slow_loop(store), store, stop_when_left=stop_when_left)
    runs.begin("c1")
    await until(lambda: len(store._find("c1").events) >= 5)
    return runs


@pytest.mark.parametrize("moment", ["goes on", "is left alone"])
def test_a_server_that_ends_begins_nothing_more_W19(moment: str) -> None:
    """Its event loop cancels what runs, and would leave behind what is begun only then."""
    store = MemoryStore()

    async def watch(runs: Any) -> None:
        runs.watch("c1")
        try:
            await asyncio.sleep(60)
        finally:
            runs.leave("c1")

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        runs = await begun_here(store, stop_when_left=moment == "is left alone")
        watching.append(asyncio.create_task(watch(runs)))
        await asyncio.sleep(0)  # it watches now
        if moment == "goes on":
            runs.begin("c1")  # somebody asks for it once more

    loops: list[asyncio.AbstractEventLoop] = []
    watching: list[asyncio.Task[None]] = []
    asyncio.run(serve())
    assert asyncio.all_tasks(loops[0]) == set()


async def test_a_run_that_is_wanted_while_it_is_stopped_begins_behind_it_W19() -> None:
    store = MemoryStore()
    runs = await begun_here(store)
    stopping = asyncio.create_task(runs.stop("c1", "ann"))
    await asyncio.sleep(0)
    runs.begin("c1")
    assert await stopping
    kinds = [stored.event["event"] for stored in store._find("c1").events]
    assert kinds.count("RunStopped") == 1
    await until(lambda: store._find("c1").events[-1].event["event"] != "RunStopped")
    assert await runs.stop("c1", "bob")


async def test_a_run_that_fails_says_its_kind_and_nothing_else_W21() -> None:
    store = MemoryStore()

    class Failing(type(make_loop(store, PLAIN)._llm)):  # type: ignore[misc]
        def open_stream(self, *args: Any) -> Any:
            raise RuntimeError("a canary with /a/path and a key")

    loop = make_loop(store, PLAIN)
    loop._llm = Failing(PLAIN)
    async with serving(store, loop=loop) as site:
        data = await site.post("/chat", said())
        assert b"canary" not in data
        error = {"type": "error", "errorText": "The run failed. (RuntimeError)"}
        assert ChatClient().read(data).finished == error
        run = {"threadId": "c1", "runId": "r", "messages": []}
        assert b"canary" not in await site.post("/ag-ui", run)


async def test_files_of_allowed_kinds_are_messages_and_what_is_shown_is_chosen() -> None:
    body = said()
    data = "data:image/png;base64,aGk="
    body["messages"][0]["parts"] += [
        {"type": "file", "mediaType": "image/png", "url": data},
        {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk="},
    ]
    kinds = ("image/png", "text/plain")
    async with serving(script=PLAIN, media_types=kinds, show=Show(outputs=False)) as site:
        data_sent = await site.post("/chat", body)
        assert b"cat means tac" not in data_sent
        user, _ = json.loads(await site.get("/chat/c1/messages"))
        assert [part["type"] for part in user["parts"]] == ["text", "data-file", "data-file"]
        await site.post("/chat", said("Other.", id="m1"), status=409)


@pytest.mark.parametrize(
    "kept_out",
    [None, False, "", {}, Response(status_code=401)],
    ids=["none", "false", "empty", "object", "response"],
)
async def test_only_a_name_lets_somebody_in(kept_out: Any) -> None:
    async def nobody(request: Request, scope: str) -> Any:
        return kept_out

    store = MemoryStore()
    async with serving(store, who=nobody) as site:
        await site.post("/chat", said(), status=500)
        await site.post("/chat/c1/stop", {}, status=500)
        await site.post("/chat/c1/answers", {"interactions": []}, status=500)
        await site.post("/ag-ui", {"threadId": "c1", "runId": "r", "messages": []}, status=500)
        for path in ("/chat/c1/stream", "/chat/c1/messages", "/events/c1"):
            await site.get(path, status=500)
    assert await store.scopes() == []


@tool_fn(name="pay", effect="once")
def pay_in_euros(amount: int, currency: str) -> str:
    """Pay somebody."""
    return f"paid {amount} {currency}"


class NewDesk(Toolset):
    pay = tool(pay_in_euros)


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize(("drift", "status"), [("refuse", 409), ("reject", 200)])
async def test_an_approval_of_a_tool_that_has_changed_since_is_no_fault_of_the_server(
    approved: bool, drift: str, status: int
) -> None:
    store, script = MemoryStore(), [Reply(calls=[call("pay", "p1", amount=1)]), *PLAIN]
    async with serving(store, script) as site:
        client = ChatClient().read(await site.post("/chat", said()))
    loop = make_loop(store, script, tools=NewDesk, dispatch=Dispatcher(NewDesk), drift=drift)
    async with serving(store, loop=loop) as site:
        await site.post("/chat", answered(client, approved), status=status)


@pytest.mark.parametrize("path", ["/chat", "/ag-ui", "/chat/c1/answers"])
async def test_a_client_that_is_lost_in_the_middle_of_a_body_is_in_no_log(
    path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(script=PLAIN) as site:
        port = site.client.base_url.port
        assert port is not None
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: ann\r\n"
        writer.write(head.encode() + b'content-length: 100\r\n\r\n{"id": ')
        await writer.drain()
        await until(lambda: bool(site.server.server_state.tasks))
        writer.close()
        await until(lambda: not site.server.server_state.tasks)
    assert "Error" not in capfd.readouterr().err


def test_what_the_routes_need_is_said_at_once() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="events=True"):
        chat_routes(make_loop(store, PLAIN, events=False), store, who=who)
    for wrong in ({"front_ends": ["ai"]}, {"on_leave": "x"}, {"heartbeat": 0}):
        with pytest.raises(ValueError, match="front_ends="):
            chat_routes(make_loop(store, PLAIN), store, who=who, **wrong)  # type: ignore[arg-type]
    assert len(chat_routes(make_loop(store, PLAIN), store, who=who, front_ends=["sse"])) == 1
    assert Desk.__name__ == "Desk"


@pytest.mark.slow
def test_the_encoders_need_no_package_and_the_library_not_them() -> None:
    code = (
        "import sys, lutumpy; assert 'lutumpy.web' not in sys.modules; import lutumpy.web; "
        "assert 'starlette' not in sys.modules; sys.modules['starlette.requests'] = None\n"
        "try:\n    import lutumpy.web.starlette\nexcept ImportError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'install it with: python -m pip install ".[web]"' in ran.stdout
