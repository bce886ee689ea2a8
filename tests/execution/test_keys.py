"""Duplicates (rule E5), and the idempotency key."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace
from typing import Any

import anyio
import pytest
from execution_toolkit import App, asked, call, calls, dispatcher, outcomes, start, text
from pydantic import BaseModel, Field, SecretStr

from lutumpy import (
    NeedsTools,
    RunNormally,
    Session,
    Skip,
    ToolCallReady,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ExecutionReport, IdempotencyKey, ToolExecutor
from lutumpy.models import ReasoningBlock
from lutumpy.testing import Call, Reply, ScriptedModel, render, render_stream

# --- duplicates --------------------------------------------------------------------------


def parsed(arguments: str, id: str, name: str = "look") -> Any:
    return App.parse(ToolMetadata(id, name, arguments))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('{"n": 1, "more": [1, {"a": null}]}', '{ "more":[1,{"a":null}],"n":1 }', True),
        ('{"n": 1}', '{"n": 1.0}', True),
        ('{"more": 1}', '{"more": 1.0}', True),
        ('{"more": 1}', '{"more": true}', False),
        ('{"more": 0}', '{"more": false}', False),
        ('{"more": 1}', '{"more": "1"}', False),
        ('{"more": [1, 2]}', '{"more": [2, 1]}', False),
        ('{"more": null}', "{}", False),
        ("", "{}", True),
        ('{"n": 1}', '{"n": 2}', False),
    ],
)
async def test_the_second_of_two_equal_calls_is_skipped(
    first: str, second: str, same: bool
) -> None:
    """E5"""
    ran: list[int] = []

    async def look(input: Any) -> int:
        ran.append(input.n)
        return 0

    asked = [
        parsed(first, "a"),
        parsed(second, "b"),
        parsed(first, "c", "save" if "more" not in first else "look"),
    ]
    results = await ToolExecutor(deduplicate=True).run(asked, dispatcher(look=look, save=look))
    assert results[0].status == "ok"
    if same:
        assert text(results[1]) == "Tool call rejected: Duplicate tool call skipped."
        assert (results[1].status, results[1].rejection_reason) == (
            "rejected",
            "Duplicate tool call skipped.",
        )
        assert (results[1].outcome, results[1].attempts) == ("rejected", 0)
    else:
        assert results[1].status == "ok"
    assert len(ran) == outcomes(results).count("ok")


async def test_each_run_starts_fresh_and_without_deduplicate_everything_runs() -> None:
    """E5"""
    ran: list[int] = []

    async def look(input: Any) -> int:
        ran.append(input.n)
        return 0

    asked = [call("look", 1, id="a"), call("look", 1, id="b")]
    executor = ToolExecutor(deduplicate=True)
    for _ in range(2):
        assert outcomes(await executor.run(asked, dispatcher(look=look))) == ["ok", "rejected"]
    assert ran == [1, 1]
    assert outcomes(await ToolExecutor().run(asked, dispatcher(look=look))) == ["ok", "ok"]


async def test_what_was_run_before_a_resume_counts_as_run() -> None:
    executor = ToolExecutor(deduplicate=True, max_concurrency=1)
    asked = [call("look", 1, id="a"), call("wait", 1, id="b"), call("look", 1, id="c")]

    async def wait(input: Any) -> int:
        await anyio.sleep_forever()
        return 0

    with anyio.move_on_after(1.0):
        await executor.run(asked, dispatcher(wait=wait))
    results = await executor.run(asked, dispatcher(), resume=executor.report)
    assert outcomes(results) == ["ok", "ok", "rejected"]


async def test_calls_that_hooks_have_made_different_are_no_duplicates_and_equal_edits_are() -> None:
    """E5: equal is what would be executed."""

    def edit(call: Any) -> Any:
        n = {"a": 7, "b": 8, "c": 7}.get(call.metadata.id)
        if n is None:
            return RunNormally(call.input)
        if n == 8:
            call.input.n = 8  # in place, as a careless hook does
            return RunNormally(call.input)
        return RunNormally(type(call.input)(n=n))

    session, round = start(*[asked("look", {"n": 1}, id) for id in "abcd"])
    plan = await round.apply_hooks(edit)
    executor = ToolExecutor(deduplicate=True)
    results = await executor.run(plan.pending, dispatcher())
    assert outcomes(results) == ["ok", "ok", "rejected", "ok"]
    assert [result.output for result in results] == [7, 8, None, 1]
    plan.commit(session, results)


COUNT = iter(range(1000))


class Odd:
    """A value that pydantic can't write."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


@tool_input(name="login", output=None)
class Login(BaseModel):
    """Log in."""

    password: SecretStr
    attempt: int = Field(default_factory=lambda: next(COUNT))
    odd: Odd | None = None


class LoginTools(Toolset):
    login = tool(Login, output=None)


async def test_secrets_random_defaults_and_values_without_json_form_compare_equal() -> None:
    texts = [
        '{"password": "a"}',
        '{"password": "b"}',
        '{"password": "a"}',
        '{"password": "a", "odd": "x"}',
    ]
    texts += ['{"password": "a", "odd": "x"}', '{"password": "a", "odd": "y"}']
    asked: list[Any] = [
        LoginTools.parse(ToolMetadata(str(k), "login", text)) for k, text in enumerate(texts)
    ]
    dispatch = Dispatcher(LoginTools)

    @dispatch.on(LoginTools.login)
    async def login(input: Login) -> None:
        return None

    results = await ToolExecutor(deduplicate=True).run(asked, dispatch)
    assert outcomes(results)[:4] == ["ok", "ok", "rejected", "ok"]
    assert outcomes(results)[5] == "ok"
    edited: list[Any] = [
        asked[0].with_input(Login(password=SecretStr("x"), attempt=1)),
        asked[2].with_input(Login(password=SecretStr("a"), attempt=1)),
    ]
    edited.append(asked[3].with_input(LoginTools.parse(ToolMetadata("z", "login", texts[5])).input))
    edited.append(asked[1].with_input(edited[0].input))
    edited.append(edited[0].with_input(Login(password=SecretStr("x"), attempt=1)))
    edited[-1].metadata = edited[-1].metadata._replace(id="last")
    assert outcomes(await ToolExecutor(deduplicate=True).run(edited, dispatch)) == ["ok"] * 4 + [
        "rejected"
    ]


# --- idempotency keys --------------------------------------------------------------------

KEYS: list[str] = []


@tool_fn(timeout=10.0, idempotent=True)
async def pay(amount: int, *, fail: Skip[bool] = False, key: Skip[IdempotencyKey]) -> str:
    """Pay."""
    KEYS.append(key)
    if fail and len(KEYS) < 3:
        await anyio.sleep_forever()
    return key


@tool_fn(timeout=math.inf)
def pay_plain(amount: int, *, key: Skip[IdempotencyKey | None] = None) -> str:
    """Pay, too."""
    return key or "no key"


class Shop(Toolset):
    pay = tool(pay)
    pay_plain = tool(pay_plain)


class Outer(Toolset):
    pay = tool(pay)


def conversation(*messages: str) -> Session:
    session = Session()
    for message in messages:
        session.push_user(message)
    return session


def round_of(session: Session, *amounts: Any, ids: str = "abcdefgh", name: str = "pay") -> Any:
    reply = Reply(
        calls=[Call(name, {"amount": a}, id=i) for a, i in zip(amounts, ids, strict=False)]
    )
    outcome = Shop.offer().read(
        OpenAIChat.response(render(reply, "openai_chat", number=1, model="m")), session
    )
    assert isinstance(outcome, NeedsTools)
    return outcome.round


async def keys(calls: Any, scope: str = "", **context: Any) -> list[str]:
    results = await ToolExecutor(scope=scope).run(calls, Dispatcher(Shop, context=context))
    assert outcomes(results) == ["ok"] * len(results)
    return [result.output for result in results]


async def test_a_key_is_the_same_for_retries() -> None:
    KEYS.clear()
    round = round_of(conversation("go"), 5)
    (key,) = await keys(round.calls, fail=True)
    assert len(KEYS) == 3
    assert set(KEYS) == {key}
    assert isinstance(KEYS[0], IdempotencyKey)
    assert len(key) == 64
    assert key.isalnum()
    assert repr(KEYS[0]) == f"IdempotencyKey('{key}')"
    round.discard()


async def test_a_key_is_the_same_after_a_crash_and_for_other_ids_of_the_provider() -> None:
    session = conversation("go")
    first = round_of(session, 5, 6)
    wanted = await keys(first.calls)
    saved = json.dumps(session.dump())  # the program ends here, and nothing was committed
    first.discard()
    restored = Session.load(saved)
    again = round_of(restored, 5, 6, ids="xyz")
    assert await keys(again.calls) == wanted
    # Neither what else is asked, nor spelling, nor a part of the round alone makes a difference.
    assert await keys(again.calls[1:]) == wanted[1:]
    again.discard()
    spelt = Reply(calls=[Call("pay", '{ "amount" : 6.0 }', id="q")])
    outcome: Any = Shop.offer().read(
        OpenAIChat.response(render(spelt, "openai_chat", number=7, model="n")), restored
    )
    assert await keys(outcome.round.calls) == wanted[1:]
    outcome.round.discard()


async def test_a_key_is_the_same_after_later_rounds_were_committed_and_loaded() -> None:
    def played() -> tuple[Session, Any]:
        session = conversation("go")
        first = round_of(session, 5)
        first.commit(session, [first.calls[0].complete("paid")])
        return session, round_of(session, 5, ids="z")

    session, round = played()
    wanted = await keys(round.calls)
    other, again = played()
    assert await keys(again.calls) == wanted
    again.discard()
    restored = Session.load(json.dumps(session.dump()))
    third = round_of(restored, 5, ids="y")
    assert await keys(third.calls) == wanted
    third.discard()
    round.discard()
    assert len(other.transcript) == 3


async def test_keys_differ_by_round_occurrence_tool_arguments_scope_and_conversation() -> None:
    found: list[str] = []
    for session in (
        conversation("go"),
        conversation("go!"),
        conversation("go", "on"),
        conversation("goon"),
    ):
        round = round_of(session, 5, 5, 6, 5)
        found += await keys(round.calls)
        found += await keys(round.calls, scope="other")
        round.commit(session, [c.complete("paid") for c in round.calls])
        # The same question again: another place in the conversation.
        session.push_user("go")
        round = round_of(session, 5, ids="wxyz")
        found += await keys(round.calls)
        round.discard()
    round = round_of(conversation("go"), 5, name="pay_plain")
    found += await keys(round.calls)
    round.discard()
    assert len(set(found)) == len(found) == 4 * 9 + 1


async def test_what_a_result_said_tells_rounds_apart() -> None:
    found = []
    for answer in ("paid", "refused"):
        session = conversation("go")
        round = round_of(session, 5)
        round.commit(session, [round.calls[0].complete(answer)])
        round = round_of(session, 5, ids="z")
        found += await keys(round.calls)
        round.discard()
    assert len(set(found)) == 2


async def test_the_occurrence_is_counted_in_the_round_and_not_in_what_is_run() -> None:
    session = conversation("go")
    round = round_of(session, 5, 5)
    together = await keys(round.calls)
    assert await keys(round.calls[:1]) + await keys(round.calls[1:]) == together
    assert len(set(together)) == 2
    round.discard()


async def test_an_edit_by_a_hook_makes_another_key_and_the_same_edit_the_same() -> None:
    session = conversation("go")
    round = round_of(session, 5)
    (plain,) = await keys(round.calls)
    edited = [c.with_input(type(c.input)(amount=3)) for c in round.calls]
    (key,) = await keys(edited)
    assert key != plain
    assert await keys([c.with_input(type(c.input)(amount=3)) for c in round.calls]) == [key]
    assert await keys([c.with_input(type(c.input)(amount=5)) for c in round.calls]) == [plain]
    round.discard()


@pytest.mark.parametrize("signed", [False, True])
async def test_ephemerals_do_not_change_a_key(signed: bool) -> None:
    session = conversation("go")
    round = round_of(session, 5)
    wanted = await keys(round.calls)
    round.discard()
    session.push_ephemeral_user("be quick")
    turn = OpenAIChat.response(
        render(
            Reply(calls=[Call("pay", {"amount": 5}, id="q")]), "openai_chat", number=1, model="m"
        )
    )
    if signed:  # then the ephemeral stays until the tool loop is over
        turn = replace(turn, blocks=(ReasoningBlock("", signed=True), *turn.blocks))
    outcome: Any = Shop.offer().read(turn, session)
    assert len(session.transcript) == (2 if signed else 1)
    assert await keys(outcome.round.calls) == wanted
    outcome.round.discard()
    assert len(session.transcript) == 1
    assert await keys(outcome.round.calls) == wanted


async def test_a_streamed_call_has_the_key_of_a_whole_one() -> None:
    reply = Reply(calls=[Call("pay", {"amount": 5}, id="a"), Call("pay", {"amount": 5}, id="b")])
    session = conversation("go")
    round = round_of(session, 5, 5)
    wanted = await keys(round.calls)
    round.discard()
    reader = Shop.offer().reader(OpenAIChat.stream_decoder(), session)
    early: list[Any] = []
    for chunk in render_stream(reply, "openai_chat", number=1, model="m"):
        early += [event.call for event in reader.feed(chunk) if isinstance(event, ToolCallReady)]
    assert [(await keys([call]))[0] for call in early] == wanted
    outcome: Any = reader.finish()
    assert await keys(outcome.round.calls) == wanted
    outcome.round.discard()


async def test_a_call_of_a_structured_turn_has_the_key_of_a_plain_one() -> None:
    session = conversation("go")
    round = round_of(session, 5)
    wanted = await keys(round.calls)
    round.discard()
    llm = ScriptedModel([Reply(calls=[Call("pay", {"amount": 5}, id="a")])], structured="tool")
    outcome: Any = session.structured_turn(llm, int, tools=Shop).collect_sync()
    assert await keys(outcome.round.calls) == wanted
    outcome.round.discard()


async def test_a_call_can_be_copied_and_pickled_with_its_place() -> None:
    dispatch = dispatcher(look=_key_of)
    session, round = start(asked("look", {"n": 5}, "a"), asked("look", {"n": 5}, "b"))

    async def found(calls: Any) -> list[Any]:
        await ToolExecutor(max_concurrency=1).run(calls, dispatch)
        return [SEEN.pop(0) for _ in calls]

    wanted = await found(round.calls)
    pickled: Any = pickle.loads(pickle.dumps(round.calls[1:]))
    assert await found(pickled) == wanted[1:]
    assert await found(pickle.loads(pickle.dumps(pickled))) == wanted[1:]
    assert await found([copy.copy(round.calls[1])]) == wanted[1:]
    assert await found([copy.deepcopy(round.calls[1])]) == wanted[1:]
    # The conversation doesn't travel with the call.
    assert len(pickle.dumps(round.calls[1])) < 2000
    round.discard()
    assert len(session.transcript) == 1


SEEN: list[str] = []


async def _key_of(input: Any, key: IdempotencyKey) -> int:
    SEEN.append(key)
    return 1


async def test_a_call_without_a_round_has_a_key_from_scope_arguments_and_place() -> None:
    asked: list[Any] = [
        Shop.parse(ToolMetadata(i, "pay", f'{{"amount": {n}}}'))
        for i, n in (("a", 1), ("b", 2), ("c", 1))
    ]
    assert asked[0].origin is None
    found = await keys(asked)
    assert len(set(found)) == 3
    assert await keys(asked[:1]) == found[:1]
    assert await keys(asked, scope="x") != found


async def test_a_handler_may_ask_for_the_key_and_the_metadata() -> None:
    dispatch = Dispatcher(App, context={"unit": "EUR"})
    seen: list[Any] = []

    @dispatch.on(App.send)
    async def send(input: Any, *, key: IdempotencyKey, metadata: ToolMetadata, unit: str) -> int:
        seen.append((key, metadata.id, unit))
        return 1

    @dispatch.on(App.look)
    def look(input: Any) -> int:
        return 1

    for selector in (App.save, App.slow.wait, App.slow.send_slowly):
        dispatch.on(selector)(lambda input: 1)
    report = ExecutionReport()
    await ToolExecutor().run(calls("send"), dispatch, report=report)
    ((key, id, unit),) = seen
    assert (type(key), id, unit) == (IdempotencyKey, "call_0", "EUR")


async def test_nothing_is_hashed_when_no_tool_asks_for_a_key() -> None:
    session, round = start(asked("look", {"n": 1}))
    await ToolExecutor().run(round.calls, dispatcher())
    assert "digest" not in session.transcript._encoders
    round.discard()
