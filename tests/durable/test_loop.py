"""A conversation in a store, from its question to its answer, in one process and in several."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SAVE,
    SCOPE,
    Crash,
    CrashingStore,
    Desk,
    Form,
    Ledger,
    Model,
    asked,
    call,
    calls,
    dispatcher,
    end_lease,
    make_loop,
    new_store,
    results,
)

from lutumpy import RunNormally, Session, ToolDecision
from lutumpy.durable import Answered
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import run_tools

SCRIPT = [calls(LOOK, CHARGE), calls(SAVE, call("nope", "n1")), ANSWER]


async def pass_slowly(call: BaseToolCall) -> ToolDecision:
    await anyio.lowlevel.checkpoint()
    return RunNormally()


def test_a_conversation_comes_to_its_answer_as_by_run_tools(form: Form, api: str) -> None:
    ledger, plain = Ledger(), asked()
    store = form.await_(new_store)
    done = form.run(make_loop(store, Model(SCRIPT, api), ledger))
    assert isinstance(done, Answered)
    assert (done.result.text, done.result.rounds) == ("It is done.", 2)
    assert done.result.stopped_by == "answer"
    assert sorted(ledger.done) == ["charge 5", "look cat", "save note"]

    form.await_(run_tools, plain, Model(SCRIPT, api), tools=Desk, dispatch=dispatcher(Ledger()))
    stored: Session = form.await_(store.session, SCOPE)
    assert stored.dump() == plain.dump()


def test_a_finished_conversation_is_asked_nothing_and_has_its_answer(form: Form) -> None:
    store = form.await_(new_store)
    first = form.run(make_loop(store, Model(SCRIPT), Ledger()))
    llm = Model(SCRIPT)
    again = form.run(make_loop(store, llm, Ledger()))
    assert llm.requests == 0
    assert again.result.text == first.result.text
    assert (again.result.rounds, again.result.stopped_by) == (2, "answer")
    assert [info.status for info in form.await_(store.scopes)] == ["done"]


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("hooks", [None, pass_slowly])
@pytest.mark.parametrize("after", [False, True])
def test_a_process_that_dies_at_any_write_is_gone_on_with_P1_P3_P5_P10(
    hooks: Any, after: bool, backend: str
) -> None:
    undisturbed: list[Any] = []

    async def main(at: int) -> bool:
        ledger, store, llm = Ledger(), await new_store(), Model(SCRIPT)
        crashing = CrashingStore(store, at, after=after)
        with suppress(Crash):
            await make_loop(crashing, llm, ledger, hooks=hooks).run(SCOPE)
        end_lease(store)
        done = await make_loop(store, llm, ledger, hooks=hooks).run(SCOPE)
        assert isinstance(done, Answered)
        assert done.result.stopped_by == "answer"
        stored = await store.session(SCOPE)
        if not undisturbed:
            undisturbed.append(stored.dump()["items"])
        if stored.dump()["items"] != undisturbed[0]:
            # Nobody knows whether the tool ran.
            assert (
                (await store.unresolved(SCOPE))[0].metadata.name and "maybe_executed",
                len(await store.unresolved(SCOPE)),
            ) == ("maybe_executed", 1)
            assert any("outcome is unknown" in text for _, text in results(stored))
        else:
            assert await store.unresolved(SCOPE) == []
        assert ledger.count("charge 5") <= 1
        assert len(set(ledger.keys)) == 1
        return crashing.dead

    async def all_points() -> int:
        await main(0)
        at = 1
        while await main(at):
            at += 1
        return at

    assert anyio.run(all_points, backend=backend) > 10
