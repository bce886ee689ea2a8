"""Typed answers of durable loops, over restarts (rules P1, P17)."""

from __future__ import annotations

from typing import Any

import pytest
from durable_toolkit import (
    SCOPE,
    Form,
    Ledger,
    Model,
    call,
    calls,
    make_loop,
    new_store,
    said_by_user,
)
from pydantic import BaseModel

from lutumpy.durable import Answered
from lutumpy.testing import Call, Reply, ScriptedModel


class Contact(BaseModel):
    name: str
    age: int


GOOD = Reply(text='{"name": "Ada", "age": 36}')
BAD = Reply(text='{"name": "Ada"}')
LOOK = calls(call("look", "l1", word="cat"))


class Interrupted(Exception):
    """A run that ends where the process would have been killed."""


def test_a_recorded_answer_is_validated_again_when_it_is_taken_up(form: Form) -> None:
    store, llm, ledger = form.await_(new_store), Model([LOOK, GOOD]), Ledger()
    done = form.run(make_loop(store, llm, ledger, output=Contact))
    assert isinstance(done, Answered)
    assert done.result.value == Contact(name="Ada", age=36)
    again = form.run(make_loop(store, llm, ledger, output=Contact))
    assert (again.result.value, again.result.stopped_by) == (done.result.value, "answer")
    # The type may have changed since.
    other = form.run(make_loop(store, llm, ledger, output=int))
    assert (other.result.value, other.result.stopped_by) == (None, "no_value")
    assert form.run(make_loop(store, llm, ledger)).result.value is None
    assert llm.requests == 2


def test_retries_are_counted_over_all_runs_of_a_task_P17(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    llm = Model([BAD, BAD, LOOK, BAD, BAD])

    def interrupt(event: Any) -> None:
        if type(event).__name__ == "RoundCommitted":
            raise Interrupted

    options: dict[str, Any] = {"output": Contact, "value_retries": 3}
    with pytest.raises(Interrupted):
        form.run(make_loop(store, llm, ledger, on_progress=interrupt, **options))
    assert llm.requests == 3
    done = form.run(make_loop(store, llm, ledger, **options))
    assert (done.result.stopped_by, llm.requests) == ("no_value", 5)
    session = form.await_(store.session, SCOPE)
    assert len(said_by_user(session)) == 1 + 3
    assert form.run(make_loop(store, llm, ledger, **options)).result.stopped_by == "no_value"
    assert llm.requests == 5


def test_a_value_that_came_by_a_tool_ends_the_task(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    llm = ScriptedModel(
        [LOOK, calls(Call("answer", {"name": "Ada", "age": 36}))], structured="tool"
    )
    for _ in range(2):
        done = form.run(make_loop(store, llm, ledger, output=Contact))
        assert done.result.value == Contact(name="Ada", age=36)
    assert len(llm.requests) == 2
