"""Questions of MCP servers in the middle of a call, held in a store (rules LR22 to LR30)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from durable_toolkit import Model, before_it_waits, count_claims
from mcp import MCPError
from mcp.server import Server
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from lutumpy import (
    CallTicket,
    Later,
    PlanError,
    Session,
    Skip,
    Toolset,
    dynamic,
    tool,
    tool_fn,
)
from lutumpy.durable import Answered, AskedCall, DurableLoop, MemoryStore, Waiting, log
from lutumpy.errors import StoreError
from lutumpy.execution import ToolExecutor, run_ticket
from lutumpy.loops import run_tools
from lutumpy.mcp import McpTools
from lutumpy.models import ResultBlock, ToolResults
from lutumpy.testing import Call, Reply
from lutumpy.tools import Asked

SCOPE = "s"
NAME = {"type": "string", "minLength": 2}
FORM: dict[str, Any] = {"type": "object", "properties": {"name": NAME}, "required": ["name"]}
ADA = {"action": "accept", "content": {"name": "Ada"}}
DECLINE = {"action": "decline"}
BOOK = Call("book", {"seat": 1}, id="c1")
LOOK = Call("look", {}, id="c2")
ANSWER = Reply(text="There.")


def form(message: str = "Who?") -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=FORM))


def address(url: str) -> ElicitRequest:
    params = ElicitRequestURLParams(message="Pay.", url=url, elicitation_id="e1")
    return ElicitRequest(params=params)


def asks(state: str | None = "state 1", **requests: Any) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests or None, request_state=state)


def text(content: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=content)])


class Asking:
    """A server whose tools answer as they are told, and that keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Any] = []
        self.server: Server[Any] = Server(
            "asking", on_list_tools=self._list, on_call_tool=self._call
        )

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        schema = {"type": "object"}
        read = ToolAnnotations(read_only_hint=True)
        listed = [
            Tool(name="book", input_schema=schema),
            Tool(name="look", input_schema=schema, annotations=read),
        ]
        return ListToolsResult(tools=listed)

    async def _call(self, context: Any, params: Any) -> Any:
        self.sent.append(params)
        answer = self.answers.pop(0) if self.answers else text("booked")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def tools(self, ask: Any = "hold", **options: Any) -> McpTools:
        return McpTools(self.server, ask=ask, trust_hints=True, **options)


def loop_of(store: Any, source: McpTools, *calls: Call, **options: Any) -> DurableLoop[Any, Any]:
    script = [Reply(calls=[*(calls or (BOOK,))]), ANSWER]
    return DurableLoop(store, Model(script), tools=source.toolset, events=True, **options)


async def new_store(make: Callable[[], Any] = MemoryStore) -> Any:
    store = make()
    session = Session()
    session.push_user("Book it.")
    await store.create(SCOPE, session)
    return store


async def run_once(store: Any, server: Asking, *calls: Call, **options: Any) -> Any:
    """One run, as a process of its own would do it: nothing of another one is known."""
    async with server.tools() as source:
        return await loop_of(store, source, *calls, **options).run(SCOPE)


async def answer(store: Any, server: Asking, answers: Any, by: str = "ann", **options: Any) -> bool:
    async with server.tools() as source:
        loop = loop_of(store, source)
        return await loop.answer(SCOPE, options.get("call_id", "c1"), answers, by=by)


def results(session: Session) -> list[ResultBlock]:
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return [result for item in items for result in item.results]


async def told(store: Any) -> list[Any]:
    return [event.load() async for event in store.events(SCOPE, until="end")]


async def status_of(store: Any) -> str:
    (info,) = await store.scopes()
    status: str = info.status
    return status


def test_a_question_is_held_and_the_call_goes_on_in_another_process_LR23_LR25(make: Any) -> None:
    async def scenario() -> None:
        store, server = await new_store(make), Asking(asks(who=form()))
        waiting = await run_once(store, server)
        assert isinstance(waiting, Waiting)
        assert (waiting.held, waiting.open, waiting.poll_after) == ((), (), None)
        (question,) = waiting.questions
        assert (question.call_id, question.tool, question.server) == ("c1", "book", "McpTools")
        assert (question.key, question.message, question.leg) == ("who", "Who?", 1)
        assert (question.form, question.url) == (FORM, None)
        assert question.since is not None
        assert pickle.loads(pickle.dumps(question)) == question
        assert await status_of(store) == "waiting"
        assert await store.asked(SCOPE) == (AskedCall("c1", "book", 1, (question,)),)
        # Nothing is sent while nobody has answered, however often it is run.
        again = await run_once(store, server)
        assert again.questions == waiting.questions
        assert len(server.sent) == 1
        assert await answer(store, server, {"who": ADA})
        assert await status_of(store) == "open"
        assert await store.asked(SCOPE) == ()
        answered = await run_once(store, server)
        assert isinstance(answered, Answered)
        assert answered.result.text == "There."
        first, second = server.sent
        assert (second.name, second.arguments) == (first.name, first.arguments)
        assert (first.request_state, second.request_state) == (None, "state 1")
        assert second.input_responses["who"].content == {"name": "Ada"}
        (result,) = results(await store.session(SCOPE))
        assert (result.status, result.content) == ("ok", "booked")
        assert await store.unresolved(SCOPE) == []
        events = await told(store)
        (asked,) = [event for event in events if isinstance(event, log.CallAsked)]
        assert (asked.call.tool, asked.call.input) == ("book", {"seat": 1})
        assert asked.questions == (question,)
        waits = [event for event in events if isinstance(event, log.RunWaits)]
        assert [(each.held, each.promised, each.asked) for each in waits] == [((), (), ("c1",))] * 2

    anyio.run(scenario)


def test_a_run_does_not_wait_for_an_answer_that_came_in_its_last_moment_LR23_W1(make: Any) -> None:
    async def scenario() -> None:
        store, server = await new_store(make), Asking(asks(who=form()))

        async def give_answer() -> None:
            assert await answer(store, server, {"who": ADA})

        before_it_waits(store, give_answer)
        assert isinstance(await run_once(store, server), Answered)
        events = await told(store)
        assert not [event for event in events if isinstance(event, log.RunWaits)]
        assert len([event for event in events if isinstance(event, log.LoopEnded)]) == 1

    anyio.run(scenario)


@pytest.mark.parametrize("late", ["wait", "go_on"])
def test_a_round_waits_for_answers_whatever_becomes_of_promises_LR23(late: str) -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking(asks(who=form()), text("seen"))
        waiting = await run_once(store, server, BOOK, LOOK, late=late)
        assert [question.call_id for question in waiting.questions] == ["c1"]
        assert results(await store.session(SCOPE)) == []
        await answer(store, server, {"who": ADA})
        assert isinstance(await run_once(store, server, BOOK, LOOK, late=late), Answered)
        # Its sibling was not run again.
        assert [params.name for params in server.sent] == ["book", "look", "book"]
        assert [r.content for r in results(await store.session(SCOPE))] == ["booked", "seen"]

    anyio.run(scenario)


def test_a_late_result_that_waits_for_its_round_wakes_no_run_LR9_LR23(make: Any) -> None:
    """With `go_on` it is told behind the round, which waits for an answer."""

    async def scenario() -> None:
        tickets: list[CallTicket] = []

        @tool_fn(name="draw", late=True)
        async def drawn(scene: str, *, ticket: Skip[CallTicket]) -> str:
            """Draw a scene."""
            tickets.append(ticket)
            raise Later("soon")

        class Desk(Toolset):
            draw = tool(drawn)
            more = dynamic()

        store, server = await new_store(make), Asking(asks(who=form()))
        calls = [BOOK, Call("draw", {"scene": "beach"}, id="c2")]
        async with server.tools() as source:
            desk = Desk.with_dynamic_tools({Desk.more: source.tools})
            script = [Reply(calls=calls), ANSWER, ANSWER]
            loop = DurableLoop(store, Model(script), tools=desk, late="go_on")
            waiting = await loop.run(SCOPE)
            assert await loop.deliver(tickets[0], "video")
            claims = count_claims(store, most=3)
            assert await loop.run(SCOPE) == waiting
            assert claims == [1]
            assert await loop.answer(SCOPE, "c1", {"who": ADA}, by="ann")
            assert isinstance(await loop.run(SCOPE), Answered)
        session = await store.session(SCOPE)
        assert [r.status for r in results(session)] == ["ok", "promised"]
        assert session.open_calls == ()

    anyio.run(scenario)


def test_each_leg_may_ask_and_questions_are_answered_one_by_one_LR24(make: Any) -> None:
    async def scenario() -> None:
        second = asks("state 2", pay=address("https://pay.example/1"))
        server = Asking(asks(who=form(), where=form("Where?")), second)
        store = await new_store(make)
        waiting = await run_once(store, server)
        assert [question.key for question in waiting.questions] == ["who", "where"]
        assert await answer(store, server, {"who": ADA})
        # One is open still, and what was answered can't be answered again.
        waiting = await run_once(store, server)
        assert [question.key for question in waiting.questions] == ["where"]
        assert len(server.sent) == 1
        with pytest.raises(StoreError, match="doesn't ask 'who', or was answered") as caught:
            await answer(store, server, {"who": DECLINE})
        assert caught.value.kind == "answer"
        assert await answer(store, server, {"where": DECLINE})
        waiting = await run_once(store, server)
        (question,) = waiting.questions
        assert (question.leg, question.url, question.form) == (2, "https://pay.example/1", None)
        with pytest.raises(StoreError, match="there is nothing to fill in"):
            await answer(store, server, {"pay": ADA})
        assert await answer(store, server, {"pay": {"action": "accept"}})
        assert isinstance(await run_once(store, server), Answered)
        _, two, three = server.sent
        assert two.request_state == "state 1"
        assert {key: each.action for key, each in two.input_responses.items()} == {
            "who": "accept",
            "where": "decline",
        }
        assert (three.request_state, [*three.input_responses]) == ("state 2", ["pay"])

    anyio.run(scenario)


def test_the_first_answer_stands_and_who_gave_it_is_kept_LR24(make: Any) -> None:
    async def scenario() -> None:
        store, server = await new_store(make), Asking(asks(who=form()))
        await run_once(store, server)
        # Both have seen the question; the second comes too late.
        assert await store.answer(SCOPE, "c1", 1, {"who": ADA}, by="ann")
        assert not await store.answer(SCOPE, "c1", 1, {"who": DECLINE}, by="bob")
        (entry,) = [entry for entry in await store.inbox(SCOPE) if entry.kind == "answer"]
        assert (entry.value["by"], entry.value["answer"]) == ("ann", ADA)
        await run_once(store, server)
        assert server.sent[1].input_responses["who"].action == "accept"
        assert await store.inbox(SCOPE) == ()

    anyio.run(scenario)


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"who": {"action": "accept", "content": {"name": "A"}}}, "'who' doesn't fit: name: "),
        ({"who": {"action": "accept"}}, "the form isn't filled in"),
        (
            {"who": {"action": "accept", "content": {"name": "Ada", "at": {}}}},
            "at: a field holds a",
        ),
        ({"who": "Ada"}, "an answer is a mapping whose action is one of accept, decline, cancel"),
        ({"whom": ADA}, "doesn't ask 'whom', or was answered; open are 'who'"),
    ],
)
def test_an_answer_is_checked_before_it_is_taken_LR24(answers: Any, problem: str) -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking(asks(who=form()))
        await run_once(store, server)
        with pytest.raises(StoreError, match=problem) as caught:
            await answer(store, server, answers)
        assert caught.value.kind == "answer"
        assert "nothing was taken" in str(caught.value)
        assert await store.inbox(SCOPE) == ()
        with pytest.raises(StoreError, match="asks nothing, or was answered"):
            await answer(store, server, {"who": ADA}, call_id="c9")

    anyio.run(scenario)


def test_nothing_can_be_answered_where_no_round_is_open_LR24(make: Any) -> None:
    async def scenario() -> None:
        store, server = await new_store(make), Asking()
        with pytest.raises(StoreError, match="no round of 's' is open"):
            await store.answer(SCOPE, "c1", 1, {"who": ADA}, by="ann")
        with pytest.raises(StoreError, match="asks nothing"):
            await answer(store, server, {"who": ADA})
        with pytest.raises(StoreError):
            await store.asked("another")

    anyio.run(scenario)


def test_a_store_that_keeps_no_questions_says_so() -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking()
        async with server.tools() as source:
            loop = loop_of(store, source)
            loop._store = object()  # type: ignore[assignment]
            with pytest.raises(TypeError, match="object keeps no questions"):
                await loop.answer(SCOPE, "c1", {"who": ADA}, by="ann")

    anyio.run(scenario)


class Killed(BaseException):
    """The process ends at this point."""


class KilledAt(MemoryStore):
    """A store whose process dies when it writes a record or a marker of a name."""

    name = ""
    before = True

    async def record(self, claim: Any, name: str, value: Any) -> Any:
        if name == self.name and self.before:
            raise Killed
        recorded = await super().record(claim, name, value)
        if name == self.name:
            raise Killed
        return recorded


async def killed_run(store: Any, server: Asking, *calls: Call) -> None:
    with suppress(BaseException):
        await run_once(store, server, *calls)
    await store.break_lease(SCOPE, by="test")


@pytest.mark.parametrize("before", [True, False])
def test_killed_where_the_question_was_recorded_LR23_LR26(before: bool) -> None:
    async def scenario() -> None:
        store, server = await new_store(KilledAt), Asking(asks(who=form()))
        store.name, store.before = "call:c1", before
        await killed_run(store, server)
        store.name = ""
        outcome = await run_once(store, server)
        assert len(server.sent) == 1
        if before:
            # Nobody knows what its server did, and it is not begun anew.
            assert isinstance(outcome, Answered)
            (call,) = await store.unresolved(SCOPE)
            assert call.metadata.id == "c1"
        else:
            assert [question.key for question in outcome.questions] == ["who"]

    anyio.run(scenario)


@pytest.mark.parametrize(("name", "sent"), [("book", 2), ("look", 3)])
def test_killed_after_the_retry_was_sent_LR26(name: str, sent: int) -> None:
    async def scenario() -> None:
        called = Call(name, {}, id="c1")
        store, server = await new_store(KilledAt), Asking(asks(who=form()))
        await run_once(store, server, called)
        await answer(store, server, {"who": ADA})
        store.name = "leg:2:c1"
        await killed_run(store, server, called)
        store.name = ""
        assert isinstance(await run_once(store, server, called), Answered)
        # A tool that runs once isn't sent again, others are, with the same state and answers.
        assert len(server.sent) == sent
        (result,) = results(await store.session(SCOPE))
        unresolved = [call.metadata.id for call in await store.unresolved(SCOPE)]
        if name == "book":
            assert unresolved == ["c1"]
            assert "may have taken effect" in str(result.content)
        else:
            assert unresolved == []
            assert server.sent[2].request_state == "state 1"
            assert result.content == "booked"

    anyio.run(scenario)


def test_an_answer_in_the_last_moment_of_a_run_is_used_LR24() -> None:
    class Slow(MemoryStore):
        async def release(self, claim: Any, *, status: Any = None) -> None:
            if status == "waiting" and not self.answered:
                self.answered = True
                await self.answer(SCOPE, "c1", 1, {"who": ADA}, by="ann")
            await super().release(claim, status=status)

        answered = False

    async def scenario() -> None:
        store, server = await new_store(Slow), Asking(asks(who=form()))
        assert isinstance(await run_once(store, server), Answered)
        assert len(server.sent) == 2

    anyio.run(scenario)


def test_a_call_with_a_question_can_be_withdrawn_LR15(make: Any) -> None:
    async def scenario() -> None:
        store, server = await new_store(make), Asking(asks(who=form()))
        await run_once(store, server)
        async with server.tools() as source:
            loop = loop_of(store, source)
            assert await loop.withdraw(SCOPE, "c1", reason="nobody knows", by="ann")
            assert await store.asked(SCOPE) == ()
            assert isinstance(await loop.run(SCOPE), Answered)
        (result,) = results(await store.session(SCOPE))
        assert (result.status, len(server.sent)) == ("rejected", 1)
        assert "nobody knows" in str(result.content)

    anyio.run(scenario)


@pytest.mark.slow
def test_a_state_alone_is_polled_in_the_end_LR29() -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking(*[asks("busy") for _ in range(11)])
        waiting = await run_once(store, server)
        assert isinstance(waiting, Waiting)
        assert (waiting.questions, waiting.poll_after) == ((), 5.0)
        assert len(server.sent) == 11
        assert isinstance(await run_once(store, server), Answered)
        assert server.sent[-1].request_state == "busy"
        assert server.sent[-1].input_responses is None

    anyio.run(scenario)


def test_a_refused_state_is_of_unknown_outcome_and_not_begun_anew_LR28() -> None:
    async def scenario() -> None:
        refused = MCPError(-32602, "Invalid", {"reason": "invalid_request_state"})
        store, server = await new_store(), Asking(asks(who=form()), refused)
        await run_once(store, server)
        await answer(store, server, {"who": ADA})
        assert isinstance(await run_once(store, server), Answered)
        (call,) = await store.unresolved(SCOPE)
        assert (call.metadata.id, len(server.sent)) == ("c1", 2)

    anyio.run(scenario)


@pytest.mark.parametrize(("call", "is_open"), [(BOOK, True), (LOOK, False)])
def test_a_server_that_is_gone_when_the_answer_comes_has_run_until_it_asked_LR27(
    call: Call, is_open: bool
) -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking(asks(who=form()))
        async with server.tools() as source:
            loop = loop_of(store, source, call)
            await loop.run(SCOPE)
            await loop.answer(SCOPE, call.id, {"who": ADA}, by="ann")
        assert isinstance(await loop.run(SCOPE), Answered)
        assert len(server.sent) == 1
        assert bool(await store.unresolved(SCOPE)) is is_open
        (result,) = results(await store.session(SCOPE))
        assert "not called" not in str(result.content)

    anyio.run(scenario)


def test_what_the_clients_own_callbacks_answer_is_sent_with_the_rest_LR22() -> None:
    async def roots(context: Any) -> Any:
        return ListRootsResult(roots=[])

    async def scenario() -> None:
        server = Asking(asks(who=form(), roots=ListRootsRequest()))
        store, options = await new_store(), {"client_options": {"list_roots_callback": roots}}
        async with server.tools(**options) as source:
            waiting = await loop_of(store, source).run(SCOPE)
            assert isinstance(waiting, Waiting)
            assert [question.key for question in waiting.questions] == ["who"]
            await loop_of(store, source).answer(SCOPE, "c1", {"who": ADA}, by="ann")
            assert isinstance(await loop_of(store, source).run(SCOPE), Answered)
        assert {*server.sent[1].input_responses} == {"who", "roots"}

    anyio.run(scenario)


def test_without_a_store_the_question_is_declined_LR30() -> None:
    async def scenario() -> None:
        server = Asking(asks(who=form()))
        session = Session()
        session.push_user("Book it.")
        async with server.tools() as source:
            model = Model([Reply(calls=[BOOK]), ANSWER])
            ended = await run_tools(session, model, tools=source.toolset)
        assert ended.text == "There."
        assert server.sent[1].input_responses["who"].action == "decline"

    anyio.run(scenario)


def test_servers_of_the_older_protocol_are_declined_LR30() -> None:
    heard: list[Any] = []

    async def call(context: Any, params: Any) -> Any:
        heard.append(await context.session.elicit_form("Who?", FORM))
        return text("booked for nobody")

    async def scenario() -> None:
        server = Asking()
        server.server = Server("older", on_list_tools=server._list, on_call_tool=call)
        store = await new_store()
        async with server.tools(client_options={"mode": "legacy"}) as source:
            assert isinstance(await loop_of(store, source).run(SCOPE), Answered)
        assert heard[0].action == "decline"
        (result,) = results(await store.session(SCOPE))
        assert result.content == "booked for nobody"

    anyio.run(scenario)


def test_an_answer_goes_to_the_address_of_the_question_only_LR25() -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking(asks(who=form()))
        async with server.tools() as source:
            source._sender._questions._address = "https://first.example"
            await loop_of(store, source).run(SCOPE)
        await answer(store, server, {"who": ADA})
        assert isinstance(await run_once(store, server), Answered)
        assert len(server.sent) == 1
        (result,) = results(await store.session(SCOPE))
        assert "at another address" in str(result.content)

    anyio.run(scenario)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_tool_that_changed_while_its_question_was_open_LR21(is_answered: bool) -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking(asks(who=form()))
        await run_once(store, server)
        if is_answered:
            await answer(store, server, {"who": ADA})

        async def listed(context: Any, params: Any) -> ListToolsResult:
            changed = Tool(name="book", description="Another.", input_schema={"type": "object"})
            return ListToolsResult(tools=[changed])

        server.server = Server("asking", on_list_tools=listed, on_call_tool=server._call)
        with pytest.raises(PlanError):
            await run_once(store, server)
        assert isinstance(await run_once(store, server, drift="reject"), Answered)
        assert len(server.sent) == 1
        (result,) = results(await store.session(SCOPE))
        assert "changed while this call was open" in str(result.content)
        (call,) = await store.unresolved(SCOPE)
        assert call.metadata.id == "c1"

    anyio.run(scenario)


def test_a_worker_asks_by_its_ticket_and_a_ticket_without_a_leg_cannot() -> None:
    async def scenario() -> None:
        store, server = await new_store(), Asking(asks(who=form()), asks(who=form()))
        async with server.tools() as source:
            loop = loop_of(store, source, runner=Sends(source))
            waiting = await loop.run(SCOPE)
            assert isinstance(waiting, Waiting)
            await loop.answer(SCOPE, "c1", {"who": ADA}, by="ann")
            # The second leg has another question, and the worker got the answer in its ticket.
            waiting = await loop.run(SCOPE)
            assert isinstance(waiting, Waiting)
            (question,) = waiting.questions
            assert question.leg == 2
            assert server.sent[1].input_responses["who"].content == {"name": "Ada"}

    anyio.run(scenario)


class Sends:
    """Runs calls as a worker elsewhere does: by the dumps of their tickets."""

    def __init__(self, source: McpTools) -> None:
        self._source = source

    async def run(self, tickets: Any, journal: Any) -> Any:
        from lutumpy.execution import Dispatcher, ExecutionResult

        ran: list[ExecutionResult] = []
        for ticket in tickets:
            loaded = CallTicket.load(ticket.dump())
            assert loaded == ticket
            toolset = self._source.toolset
            known = await journal.begin(ticket)
            if isinstance(known, ExecutionResult):
                ran.append(known)
                continue
            outcome = await run_ticket(
                loaded, toolset, Dispatcher(toolset), executor=ToolExecutor()
            )
            result = ExecutionResult.load(outcome, ticket)
            await journal.end(ticket, result)
            ran.append(result)
        return ran


def test_what_a_tool_raises_survives_pickling() -> None:
    asked = Asked("desk", {"who": {"message": "Who?"}}, {"state": "x"})
    copied = pickle.loads(pickle.dumps(asked))
    assert (copied.server, copied.questions, copied.resume) == (
        "desk",
        asked.questions,
        {"state": "x"},
    )
    assert str(copied) == "desk asks 1 questions before the call goes on"
