"""What MCP servers ask in the middle of a call, in a browser (rules W9a, W11, W16, LR24)."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server import Server
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)
from test_ag_ui import AgentClient
from test_starlette import Site, answered, said, serving
from web_toolkit import ChatClient

from lutumpy import Hold
from lutumpy.durable import DurableLoop, MemoryStore
from lutumpy.mcp import McpTools
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.web import Show, WebError, read_ag_ui, read_answers
from lutumpy.web.inbound import question_id

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}},
    "required": ["name"],
}
ADA = {"action": "accept", "content": {"name": "Ada"}}
SCRIPT = (Reply(text="A moment.", calls=(Call("book", {"seat": 7}, id="b1"),)), Reply(text="Done."))


def asks(**requests: ElicitRequest) -> InputRequiredResult:
    return InputRequiredResult(input_requests={**requests}, request_state="secret state")


def form(message: str = "Who?") -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=FORM))


def address() -> ElicitRequest:
    params = ElicitRequestURLParams(
        message="Pay.", url="https://pay.example/1", elicitation_id="e1"
    )
    return ElicitRequest(params=params)


class Hotel:
    """A server that asks, and keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Any] = []
        self.server: Server[Any] = Server(
            "hotel", on_list_tools=self._list, on_call_tool=self._call
        )

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="book", input_schema={"type": "object"})])

    async def _call(self, context: Any, params: Any) -> Any:
        self.sent.append(params)
        booked = CallToolResult(content=[TextContent(text="booked")])
        return self.answers.pop(0) if self.answers else booked


@asynccontextmanager
async def asking(*answers: Any, **options: Any) -> AsyncIterator[tuple[Site, Hotel]]:
    hotel, store = Hotel(*answers), MemoryStore()
    async with McpTools(hotel.server, ask="hold") as source:
        loop: Any = DurableLoop(store, ScriptedModel(SCRIPT), tools=source.toolset, events=True)
        async with serving(store, loop=loop, **options) as site:
            yield site, hotel


def questions_of(message: Any) -> list[Any]:
    return [part["data"] for part in message["parts"] if part["type"] == "data-question"]


async def test_a_question_is_a_part_that_is_answered_by_a_route_W9a_LR24() -> None:
    async with asking(asks(who=form(), pay=address()), asks(more=form("More?"))) as (site, hotel):
        client = ChatClient().read(await site.post("/chat", said()))
        assert client.finished == {"type": "finish", "finishReason": "tool-calls"}
        (data,) = questions_of(client.message)
        assert (data["toolCallId"], data["tool"], data["state"]) == ("b1", "book", "open")
        assert data["questions"] == [
            {"key": "who", "message": "Who?", "form": FORM},
            {"key": "pay", "message": "Pay.", "url": "https://pay.example/1"},
        ]
        wrong = {"callId": "b1", "answers": {"who": {"action": "accept", "content": {"name": "A"}}}}
        refused = json.loads(await site.post("/chat/c1/answers", wrong, status=422))
        assert "name: " in refused["error"]
        for forged in (
            {"callId": "b1", "answers": {"whom": ADA}},
            {"callId": "b2", "answers": {"who": ADA}},
        ):
            await site.post("/chat/c1/answers", forged, status=409)
        assert len(hotel.sent) == 1
        both = {"callId": "b1", "answers": {"who": ADA, "pay": {"action": "accept"}}}
        assert json.loads(await site.post("/chat/c1/answers", both)) == {"taken": True}
        client = ChatClient().read(await site.get("/chat/c1/stream"))
        states = [data["state"] for data in questions_of(client.message)]
        assert states == ["answered", "open"]
        more = {"callId": "b1", "answers": {"more": {"action": "decline"}}}
        await site.post("/chat/c1/answers", more)
        data = await site.get("/chat/c1/stream")
        client = ChatClient().read(data)
        assert client.finished == {"type": "finish", "finishReason": "stop"}
        assert [each["state"] for each in questions_of(client.message)] == ["answered"] * 2
        assert client.message["parts"][-1]["text"] == "Done."
        history = json.loads(await site.get("/chat/c1/messages"))
        assert history[-1] == client.message
        assert b"secret state" not in data
        (entry,) = {params.request_state for params in hotel.sent[1:]}
        assert entry == "secret state"
        await site.post("/chat/c1/answers", both, status=409)


async def test_a_question_is_an_interrupt_with_its_form_W9a() -> None:
    async with asking(asks(who=form(), pay=address())) as (site, hotel):
        message = {"id": "m1", "role": "user", "content": "Please."}
        run = {"threadId": "c1", "runId": "r1", "messages": [message]}
        client = AgentClient().read(await site.post("/ag-ui", run))
        outcome = client.ended["outcome"]
        assert outcome["type"] == "interrupt"
        who, pay = outcome["interrupts"]
        assert (who["reason"], who["message"], who["toolCallId"]) == ("question", "Who?", "b1")
        assert who["responseSchema"] == FORM
        assert pay["message"] == "Pay.\nhttps://pay.example/1"
        forged = {"interruptId": question_id("b1", 1, "x"), "status": "resolved", "payload": {}}
        await site.post("/ag-ui", {**run, "runId": "r2", "resume": [forged]}, status=409)
        bad = {"interruptId": who["id"], "status": "resolved", "payload": {"name": "A"}}
        await site.post("/ag-ui", {**run, "runId": "r3", "resume": [bad]}, status=422)
        resume = [
            {"interruptId": who["id"], "status": "resolved", "payload": {"name": "Ada"}},
            {"interruptId": pay["id"], "status": "resolved", "payload": {}},
        ]
        data = await site.post("/ag-ui", {**run, "runId": "r4", "resume": resume})
        client = AgentClient(client.messages).read(data)
        assert client.ended["outcome"] == {"type": "success"}
        assert b"Done." in data
        sent = hotel.sent[1].input_responses
        assert (sent["who"].content, sent["pay"].content) == ({"name": "Ada"}, None)


async def test_what_another_front_end_has_answered_is_no_reason_to_refuse_the_rest_LR24() -> None:
    """An AG-UI client has to answer every interrupt; of two answers the first stands."""
    async with asking(asks(who=form(), pay=address())) as (site, hotel):
        message = {"id": "m1", "role": "user", "content": "Please."}
        run = {"threadId": "c1", "runId": "r1", "messages": [message]}
        client = AgentClient().read(await site.post("/ag-ui", run))
        who, pay = client.ended["outcome"]["interrupts"]
        await site.post("/chat/c1/answers", {"callId": "b1", "answers": {"who": ADA}})
        bob = {"interruptId": who["id"], "status": "resolved", "payload": {"name": "Bob"}}
        data = await site.post("/ag-ui", {**run, "runId": "r2", "resume": [bob]})
        assert AgentClient(client.messages).read(data).ended["outcome"]["type"] == "interrupt"
        accepted = {"interruptId": pay["id"], "status": "resolved", "payload": {}}
        for run_id in ("r3", "r4"):  # the second time, since the response was lost
            resume = {**run, "runId": run_id, "resume": [bob, accepted]}
            read = AgentClient(client.messages).read(await site.post("/ag-ui", resume))
            assert read.ended["outcome"] == {"type": "success"}
            assert read.messages[-1]["content"] == "Done."
        assert len(hotel.sent) == 2
        assert hotel.sent[1].input_responses["who"].content == {"name": "Ada"}


async def test_a_call_that_was_approved_and_asks_something_is_sent_once_W8() -> None:
    hotel, store = Hotel(asks(who=form())), MemoryStore()
    async with McpTools(hotel.server, ask="hold") as source:
        model = ScriptedModel(SCRIPT)
        loop: Any = DurableLoop(
            store, model, tools=source.toolset, hooks=lambda call: Hold("dear"), events=True
        )
        async with serving(store, loop=loop) as site:
            client = ChatClient().read(await site.post("/chat", said()))
            answer = answered(client, True)
            client.message = copy.deepcopy(answer["messages"][0])
            client.read(await site.post("/chat", answer))
            assert [data["state"] for data in questions_of(client.message)] == ["open"]
            states = [each["state"] for each in client.message["parts"] if "toolCallId" in each]
            assert states == ["input-available"]  # else npm's helper would send it for ever
            assert json.loads(await site.get("/chat/c1/messages"))[-1] == client.message


async def test_what_is_left_unanswered_is_a_cancel_W9a() -> None:
    async with asking(asks(who=form())) as (site, hotel):
        message = {"id": "m1", "role": "user", "content": "Please."}
        run = {"threadId": "c1", "runId": "r1", "messages": [message]}
        client = AgentClient().read(await site.post("/ag-ui", run))
        (who,) = client.ended["outcome"]["interrupts"]
        resume = [{"interruptId": who["id"], "status": "cancelled"}]
        await site.post("/ag-ui", {**run, "runId": "r2", "resume": resume})
        assert hotel.sent[1].input_responses["who"].action == "cancel"


async def test_a_question_of_a_tool_that_is_not_shown_is_in_no_byte_W22() -> None:
    show = Show(tools={"book": "nothing"})
    async with asking(asks(who=form("Canary?")), show=show) as (site, _):
        assert b"Canary" not in await site.post("/chat", said())
        assert b"Canary" not in await site.get("/chat/c1/messages")


async def test_answers_are_authorized_and_need_a_conversation() -> None:
    async with asking() as (site, _):
        body = {"callId": "b1", "answers": {"who": ADA}}
        await site.post("/chat/nobody/answers", body, status=404)
        await site.post("/chat/c1/answers", b"no JSON", status=422)
        site.client.headers["authorization"] = "bob"
        await site.post("/chat/secret 1/answers", body, status=403)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        {"callId": 7, "answers": {"who": ADA}},
        {"callId": "", "answers": {"who": ADA}},
        {"callId": "b1", "answers": {}},
        {"callId": "b1", "answers": [ADA]},
    ],
)
def test_a_body_without_answers_is_refused_W14(body: Any) -> None:
    with pytest.raises(WebError) as caught:
        read_answers(body)
    assert caught.value.status == 422


@pytest.mark.parametrize(
    "entry",
    [
        {"status": "resolved"},
        {"status": "resolved", "payload": "Ada"},
        {"status": "maybe", "payload": {}},
    ],
)
def test_a_reply_without_a_payload_is_refused_W9a(entry: Any) -> None:
    named = {"interruptId": question_id("b1", 1, "who"), **entry}
    with pytest.raises(WebError) as caught:
        read_ag_ui({"threadId": "c1", "runId": "r1", "resume": [named]})
    assert caught.value.status == 422
