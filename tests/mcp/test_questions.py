"""What a server asks in the middle of a call is answered by a handler (rules LR22 to LR30)."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import pytest
from mcp import MCPError
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    JSONRPCResponse,
    ListRootsRequest,
    ListRootsResult,
    ListToolsResult,
)
from mcp_toolkit import make_tool, run_call, text_result
from pydantic import BaseModel

from lutumpy import Skip, Toolset, tool, tool_fn
from lutumpy.mcp import McpQuestion, McpTools, McpUnknownResult, ServedCall, mcp_server

NAME = {"type": "string", "minLength": 2}
FORM: dict[str, Any] = {"type": "object", "properties": {"name": NAME}, "required": ["name"]}
ADA = {"action": "accept", "content": {"name": "Ada"}}

Answer = Callable[[Any], Any]


def asks(**requests: Any) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state="state 1")


def form(message: str = "Who?") -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=FORM))


class Asking:
    """A server whose one tool answers as it is told, and that keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Any] = []
        self.server: Server[Any] = Server(
            "asking", on_list_tools=self._list, on_call_tool=self._call
        )

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        listed = [make_tool("book"), make_tool("look", read_only=True)]
        return ListToolsResult(tools=listed)

    async def _call(self, context: Any, params: Any) -> CallToolResult | InputRequiredResult:
        self.sent.append(params)
        answer = self.answers.pop(0) if self.answers else text_result("booked")
        if isinstance(answer, Exception):
            raise answer
        result: CallToolResult | InputRequiredResult = answer
        return result

    async def run(self, ask: Any = None, *, name: str = "book", **options: Any) -> Any:
        async with McpTools(self.server, ask=ask, trust_hints=True, **options) as source:
            return await run_call(source, name)


async def test_a_question_is_answered_and_the_call_goes_on_LR23_LR25(backend: str) -> None:
    heard: list[McpQuestion] = []

    async def ask(question: McpQuestion) -> Any:
        heard.append(question)
        return ADA

    server = Asking(asks(who=form()))
    ran = await server.run(ask)
    assert (ran.status, ran.content) == ("ok", "booked")
    (question,) = heard
    assert (question.server, question.tool, question.key) == ("McpTools", "book", "who")
    assert (question.message, question.form, question.url) == ("Who?", FORM, None)
    assert question.call is not None
    assert (question.call.id, question.problem) == ("c1", None)
    first, second = server.sent
    assert (second.name, second.arguments) == (first.name, first.arguments)
    assert (first.input_responses, first.request_state) == (None, None)
    assert second.request_state == "state 1"
    assert second.input_responses["who"].content == {"name": "Ada"}


async def test_without_a_state_none_is_sent_and_each_leg_has_its_own_questions_LR25() -> None:
    later = InputRequiredResult(input_requests={"b": form("And who else?")})
    server = Asking(asks(a=form()), later)
    ran = await server.run(lambda question: ADA)
    assert ran.content == "booked"
    assert [params.request_state for params in server.sent] == [None, "state 1", None]
    assert [list(params.input_responses or ()) for params in server.sent] == [[], ["a"], ["b"]]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"action": "accept", "content": {"name": "A"}}, "name: "),
        ({"action": "accept", "content": {}}, "name: Field required"),
        ({"action": "accept", "content": ["Ada"]}, "the form isn't filled in"),
        (
            {"action": "accept", "content": {"name": "Ada", "ages": [7]}},
            "ages: a field holds a text",
        ),
        (
            {"action": "accept", "content": {"name": "Ada", "at": {"x": 1}}},
            "at: a field holds a text",
        ),
        ({"action": "accept"}, "the form isn't filled in"),
        ({"action": "maybe"}, "an answer is a mapping whose action is one of accept, "),
        ({"action": "accept", "contents": {}}, "an answer has an action and a content"),
        ("Ada", "an answer is a mapping"),
    ],
)
async def test_an_answer_is_checked_before_it_is_taken_LR24(wrong: Any, problem: str) -> None:
    problems: list[str | None] = []

    def ask(question: McpQuestion) -> Any:
        problems.append(question.problem)
        return wrong if len(problems) == 1 else ADA

    server = Asking(asks(who=form()))
    assert (await server.run(ask)).content == "booked"
    first, second = problems
    assert first is None
    assert second is not None
    assert second.startswith(problem)
    # Who never gives a fitting one has cancelled.
    server = Asking(asks(who=form()))
    assert (await server.run(lambda question: wrong)).content == "booked"
    assert server.sent[1].input_responses["who"].action == "cancel"


async def test_a_form_that_cannot_be_used_can_be_declined_LR24() -> None:
    broken = {"type": "object", "properties": {"name": {"type": "nonsense"}}}
    request = ElicitRequest(params=ElicitRequestFormParams(message="Who?", requested_schema=broken))
    problems: list[str | None] = []

    def ask(question: McpQuestion) -> Any:
        problems.append(question.problem)
        return {"action": "decline"} if question.problem else ADA

    server = Asking(asks(who=request))
    assert (await server.run(ask)).content == "booked"
    assert str(problems[1]).startswith("the server's form can't be used")
    assert server.sent[1].input_responses["who"] == ElicitResult(action="decline")


async def test_an_address_is_shown_and_has_nothing_to_fill_in_LR24() -> None:
    url = ElicitRequestURLParams(message="Pay here", url="https://pay.example/1")
    heard: list[McpQuestion] = []

    def ask(question: McpQuestion) -> Any:
        heard.append(question)
        return ADA if len(heard) == 1 else {"action": "accept"}

    server = Asking(asks(pay=ElicitRequest(params=url)))
    assert (await server.run(ask)).content == "booked"
    assert (heard[0].url, heard[0].form) == ("https://pay.example/1", None)
    assert heard[1].problem == "there is nothing to fill in"
    assert server.sent[1].input_responses["pay"] == ElicitResult(action="accept")


class Guest(BaseModel):
    name: str


def who() -> Elicit[Guest]:
    return Elicit("Who?", Guest)


async def test_the_sdks_own_server_asks_once_and_runs_the_body_once(backend: str) -> None:
    """Its state is sealed, and comes back byte for byte."""
    bodies: list[str] = []
    server = MCPServer("hotel")

    @server.tool()
    async def reserve(room: int, guest: Annotated[Guest, Resolve(who)]) -> str:
        """Reserve a room."""
        bodies.append(guest.name)
        return f"room {room} for {guest.name}"

    async with McpTools(server, ask=lambda question: ADA) as source:
        ran = await run_call(source, "reserve", '{"room": 7}')
    assert (ran.status, ran.content) == ("ok", "room 7 for Ada")
    assert bodies == ["Ada"]


@tool_fn
async def greet(call: Skip[ServedCall]) -> str:
    """Greet somebody."""
    guest = await call.ask("Who?", Guest)
    return "nobody" if guest is None else f"Hello, {guest.name}!"


class Greetings(Toolset):
    greet_ = tool(greet)


GREETINGS = mcp_server(Greetings, context=lambda request: {"call": ServedCall(request)})


async def test_servers_of_the_older_protocol_ask_while_the_call_runs_LR30(backend: str) -> None:
    heard: list[McpQuestion] = []

    def ask(question: McpQuestion) -> Any:
        heard.append(question)
        if len(heard) == 2:
            raise KeyError("secret")
        return ADA if len(heard) == 1 else {"action": "decline"}

    async with McpTools(GREETINGS, ask=ask, client_options={"mode": "legacy"}) as source:
        contents = [(await run_call(source, "greet")).content for _ in range(3)]
    # A handler that fails ends its call, and no other.
    hello, failed, declined = contents
    assert (hello, declined) == ("Hello, Ada!", "nobody")
    assert "can't ask anybody" in str(failed)
    assert "secret" not in str(failed)
    assert (heard[0].message, heard[0].tool, heard[0].call) == ("Who?", None, None)


async def test_half_a_character_in_an_answer_is_replaced() -> None:
    """Over stdio the SDK would find it when it writes, and end the connection."""
    half = {"action": "accept", "content": {"name": "Ad\ud800"}}
    asking = Asking(asks(who=form()))
    await asking.run(lambda question: half)
    asking.sent[1].model_dump_json()
    assert asking.sent[1].input_responses["who"].content == {"name": "Ad\ufffd"}


async def test_whom_nobody_asks_is_refused_without_saying_that_nothing_ran_LR22_LR27() -> None:
    ran = await Asking(asks(who=form())).run(name="look")
    assert ran.status == "error"
    assert "can't give" in str(ran.content)
    assert "not run" not in str(ran.content)
    ran = await Asking(asks(who=form())).run()
    assert ran.outcome == "maybe_executed"


async def test_callbacks_of_the_sdks_client_are_asked_where_there_is_no_handler_LR22() -> None:
    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[])

    server = Asking(asks(roots=ListRootsRequest()))
    ran = await server.run(client_options={"list_roots_callback": roots})
    assert ran.content == "booked"
    assert server.sent[1].input_responses == {"roots": ListRootsResult(roots=[])}
    # A handler for questions is no handler for other requests.
    ran = await Asking(asks(roots=ListRootsRequest())).run(lambda question: ADA, name="look")
    assert "can't give" in str(ran.content)


@pytest.mark.slow
async def test_a_state_alone_is_sent_back_ten_times_LR29() -> None:
    waits = [InputRequiredResult(request_state=f"state {n}") for n in range(10)]
    server = Asking(*waits)
    ran = await server.run()
    assert ran.content == "booked"
    assert [params.request_state for params in server.sent][1:] == [w.request_state for w in waits]
    server = Asking(*waits, InputRequiredResult(request_state="for ever"))
    ran = await server.run(name="look")
    assert "can't give" in str(ran.content)
    assert len(server.sent) == 11


async def test_a_refused_state_is_a_question_that_is_too_old_LR28() -> None:
    def too_old() -> MCPError:
        data = {"reason": "invalid_request_state"}
        return MCPError(-32602, "Invalid or expired requestState", data)

    ran = await Asking(asks(who=form()), too_old()).run(lambda question: ADA, name="look")
    assert ran.content == "the question is too old: Invalid or expired requestState"
    # From the first question on, an error doesn't say that nothing was run.
    ran = await Asking(asks(who=form()), too_old()).run(lambda question: ADA)
    assert ran.outcome == "maybe_executed"
    assert str(ran.error).startswith("the question is too old: ")
    ran = await Asking(MCPError(-32602, "no such room")).run(lambda question: ADA)
    assert (ran.status, ran.content) == ("error", "no such room")


async def test_a_handler_that_fails_leaves_a_call_of_unknown_outcome_LR26() -> None:
    def ask(question: McpQuestion) -> Any:
        raise KeyError("secret")

    server = Asking(asks(who=form()))
    ran = await server.run(ask)
    assert ran.outcome == "maybe_executed"
    assert "secret" not in str(ran.content)
    assert len(server.sent) == 1


def test_who_is_asked_is_said_once() -> None:
    with pytest.raises(TypeError, match="ask is a function"):
        McpTools(GREETINGS, ask="wait")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="who is asked"):
        McpTools(
            GREETINGS, ask=lambda question: ADA, client_options={"elicitation_callback": print}
        )


@asynccontextmanager
async def raw_server(result: Json) -> AsyncIterator[Any]:
    """A transport whose server answers each call with this result, of whatever form."""
    to_client, from_server = anyio.create_memory_object_stream[Any](10)
    to_server, from_client = anyio.create_memory_object_stream[Any](10)
    listed = [make_tool(name).model_dump(by_alias=True, exclude_none=True) for name in TOOLS]
    answers: dict[str, Json] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        },
        "tools/list": {
            "tools": [{**tool, **hints} for tool, hints in zip(listed, HINTS, strict=True)]
        },
        "tools/call": result,
    }

    async def serve() -> None:
        async for sent in from_client:
            message = sent.message
            if hasattr(message, "id") and message.method in answers:
                answer = JSONRPCResponse(
                    jsonrpc="2.0", id=message.id, result=answers[message.method]
                )
                await to_client.send(SessionMessage(answer))

    async with to_client, from_server, to_server, from_client, anyio.create_task_group() as group:
        group.start_soon(serve)
        yield from_server, to_server
        group.cancel_scope.cancel()


Json = dict[str, Any]
TOOLS = ("book", "look")
HINTS: tuple[Json, ...] = ({}, {"annotations": {"readOnlyHint": True}})


async def test_a_result_of_an_unknown_form_is_kept_and_of_unknown_outcome_LR35(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = {"task": {"taskId": "t-1", "status": "working"}}
    source = McpTools(
        lambda: raw_server(result), trust_hints=True, client_options={"mode": "legacy"}
    )
    async with source:
        booked, looked = [await run_call(source, name) for name in TOOLS]
    assert booked.outcome == "maybe_executed"
    assert isinstance(booked.error, McpUnknownResult)
    assert booked.error.result == result
    assert "ids in it: ['t-1']" in caplog.text
    assert "working" not in caplog.text
    again = pickle.loads(pickle.dumps(booked.error))
    assert (again.server, again.tool, again.result) == ("McpTools", "book", result)
    assert (looked.status, looked.outcome) == ("error", "failed")
    assert str(looked.content).startswith("The server's answer can't be read: {")
    assert "t-1" in str(looked.content)


async def test_a_word_for_a_result_that_nobody_knows_is_no_success_LR35(backend: str) -> None:
    odd = CallToolResult(content=[], result_type="odd")
    ran = await Asking(odd).run()
    assert ran.outcome == "maybe_executed"
    assert isinstance(ran.error, McpUnknownResult)
    assert ran.error.result["resultType"] == "odd"
