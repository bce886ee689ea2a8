"""Answers that a client sends by itself, once and not again (W8, W16, W19).

npm's `lastAssistantMessageIsCompleteWithApprovalResponses` is asked behind each response, and sends
the last message as long as its last step has an answer, and no call without an answer or result.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from test_ag_ui import AgentClient
from test_promises import LATE, Studio
from test_starlette import answered, said, serving, until
from web_toolkit import ChatClient, call, make_loop

from lutumpy import Hold, RunNormally, ToolDecision, Toolset, tool, tool_fn
from lutumpy.durable import MemoryStore
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Reply
from lutumpy.web import Show

DONE = ("output-available", "output-error", "output-denied", "approval-responded")


def sends(message: Any) -> bool:
    """Whether npm's helper sends this message."""
    states: list[str] = []
    for part in message["parts"]:
        if part["type"] == "step-start":
            states = []
        elif "toolCallId" in part:
            states.append(part["state"])
    return "approval-responded" in states and all(state in DONE for state in states)


@tool_fn(effect="read")
async def work(number: int) -> str:
    """Work for ever."""
    await asyncio.Event().wait()
    return ""


@tool_fn(effect="read")
async def count(number: int) -> str:
    """Count."""
    return str(number)


class Slow(Toolset):
    work = tool(work)
    count = tool(count)


WORK = (
    Reply(text="Both.", calls=(call("work", "w1", number=1), call("count", "c1", number=2))),
    Reply(text="Done."),
)


def ask_about_work(call: BaseToolCall) -> ToolDecision:
    return Hold("it takes long") if call.metadata.name == "work" else RunNormally()


def working_loop(store: MemoryStore) -> Any:
    return make_loop(store, WORK, tools=Slow, dispatch=Dispatcher(Slow), hooks=ask_about_work)


@pytest.mark.parametrize("sdk", [6, 7])
async def test_a_call_that_was_approved_and_has_promised_is_sent_once_W8(sdk: Any) -> None:
    store = MemoryStore()
    hold = make_loop(
        store, LATE, tools=Studio, dispatch=Dispatcher(Studio), hooks=lambda call: Hold("dear")
    )
    async with serving(store, loop=hold, sdk=sdk) as site:
        client = ChatClient().read(await site.post("/chat", said()))
        answer = answered(client, True)
        assert sends(answer["messages"][0])
        client.message = copy.deepcopy(answer["messages"][0])
        client.read(await site.post("/chat", answer))
        assert not sends(client.message)
        (rendered,) = [part for part in client.message["parts"] if "toolCallId" in part]
        assert rendered["state"] == "input-available"
        for again in (
            json.loads(await site.get("/chat/c1/messages"))[-1],
            ChatClient().read(await site.get("/chat/c1/stream")).message,
        ):
            assert not sends(again)
            assert sdk == 6 or again == client.message
        # Where it is sent all the same, it begins nothing.
        log = [*store._find("c1").events]
        assert client.read(await site.post("/chat", answer)).finished["type"] == "finish"
        await asyncio.sleep(0.1)
        assert store._find("c1").events == log


async def test_a_stop_is_not_undone_by_the_answers_that_were_sent_before_W16_W19() -> None:
    store = MemoryStore()
    async with serving(store, loop=working_loop(store)) as site:
        client = ChatClient().read(await site.post("/chat", said()))
        answer = answered(client, True)
        client.message = copy.deepcopy(answer["messages"][0])
        reading = asyncio.create_task(site.post("/chat", answer))
        # The decision is in the log, and a call has begun behind it.
        await until(lambda: [*store._find("c1").events][-1].event["event"] == "RoundPlanned")
        await asyncio.sleep(0.1)
        await site.post("/chat/c1/stop", {})
        client.read(await reading)
        assert client.finished["type"] == "abort"
        assert not sends(client.message)
        assert json.loads(await site.get("/chat/c1/messages"))[-1] == client.message
        log = [*store._find("c1").events]
        assert client.read(await site.post("/chat", answer)).finished["type"] == "abort"
        (held,) = [
            part["approval"]["id"]
            for part in client.message["parts"]
            if part.get("toolCallId") == "w1"
        ]
        resume = [{"interruptId": held, "status": "resolved", "payload": {"approved": True}}]
        run = {"threadId": "c1", "runId": "r", "messages": [], "resume": resume}
        assert AgentClient().read(await site.post("/ag-ui", run)).ended["outcome"] == {
            "type": "cancelled"
        }
        await asyncio.sleep(0.1)
        assert store._find("c1").events == log


async def test_where_one_call_is_still_held_the_others_are_answered_W8() -> None:
    """Else the client would never send what is decided about that one."""
    store = MemoryStore()
    script = (Reply(calls=(call("work", "w1", number=1), call("work", "w2", number=2))),)
    loop = make_loop(store, script, tools=Slow, dispatch=Dispatcher(Slow), hooks=ask_about_work)
    async with serving(store, loop=loop) as site:
        client = ChatClient().read(await site.post("/chat", said()))
        first = answered(client, False)
        (_, other) = [part for part in first["messages"][0]["parts"] if "toolCallId" in part]
        other["state"] = "approval-requested"
        client.message = copy.deepcopy(first["messages"][0])
        client.read(await site.post("/chat", first))
        assert not sends(client.message)
        assert sends(answered(client, True)["messages"][0])


async def test_calls_beside_a_held_one_that_is_not_shown_send_nothing_W8_W22() -> None:
    store = MemoryStore()
    show = Show(tools={"work": "nothing"})
    async with serving(store, loop=working_loop(store), show=show) as site:
        client = ChatClient().read(await site.post("/chat", said()))
        assert not sends(client.message)
        assert not sends(json.loads(await site.get("/chat/c1/messages"))[-1])
