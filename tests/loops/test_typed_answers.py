"""Typed answers of loops: `output=` and `value_retries=`, on every API, in memory and durable.

With the provider's JSON schema output, and with the tool that takes the value.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from loop_toolkit import Runner, asked, call, calls, check_valid, look
from pydantic import BaseModel

from lutumpy import DeclarationError, OutputSchema, Toolset, TranscriptError, tool, tool_fn
from lutumpy.loops import LoopEnded, run_tools_sync
from lutumpy.models import Transcript, read_value
from lutumpy.testing import Call, Reply, ScriptedModel


class Contact(BaseModel):
    name: str
    age: int


class Unknown:
    """Pydantic has no schema for it."""


ADA = {"name": "Ada", "age": 36}
GOOD = Reply(text=json.dumps(ADA))
BAD = Reply(text='{"name": "Ada"}')


def script(*entries: Any, api: Any = "openai_chat") -> ScriptedModel:
    # A model behind Ollama calls no tools while its answer has a format.
    structured: Any = "tool" if api == "ollama_chat" else "native"
    return ScriptedModel(entries, api=api, structured=structured)


def test_the_answer_of_a_loop_is_a_value(run: Runner, api: str) -> None:
    session = asked()
    llm = script(calls(look("cat")), GOOD, api=api)
    done = run(session, llm, output=Contact)
    assert done.value == Contact(name="Ada", age=36)
    assert (done.value_error, done.stopped_by, done.rounds) == (None, "answer", 1)
    assert done.result is not None
    assert done.result.value is done.value
    assert read_value(session.transcript, Contact).value == done.value
    check_valid(session)


def test_without_output_there_is_no_value(run: Runner) -> None:
    done = run(asked(), script(GOOD))
    assert (done.value, done.value_error, done.stopped_by) == (None, None, "answer")


def test_a_value_that_does_not_fit_is_told_and_asked_for_again(run: Runner, api: str) -> None:
    session = asked()
    llm = script(BAD, calls(look("cat")), Reply(text="Ada, 36"), GOOD, api=api)
    done = run(session, llm, output=Contact, value_retries=2)
    assert done.value == Contact(name="Ada", age=36)
    assert (done.stopped_by, done.rounds) == ("answer", 1)
    told = [item.text for item in session.transcript if getattr(item, "role", "") == "user"]
    assert "age: Field required" in told[1]
    assert "is not JSON" in told[2]
    check_valid(session)


def test_after_the_retries_the_loop_ends_without_a_value(run: Runner, api: str) -> None:
    session, ended = asked(), []
    done = run(
        session,
        script(BAD, BAD, api=api),
        output=Contact,
        value_retries=1,
        on_progress=lambda event: ended.append(event) if isinstance(event, LoopEnded) else None,
    )
    assert (done.value, done.stopped_by, done.text) == (None, "no_value", BAD.text)
    assert done.value_error is not None
    assert "age: Field required" in done.value_error
    assert ended[0].result is done
    assert session.answered
    check_valid(session)


@pytest.mark.parametrize(
    ("reply", "stopped_by", "requests"),
    [
        (Reply(refusal="I won't."), "refusal", 1),
        (Reply(text='{"name": "A', finish="length"), "no_value", 3),
        (GOOD, "answer", 1),
    ],
)
def test_what_is_asked_again(run: Runner, reply: Reply, stopped_by: str, requests: int) -> None:
    llm = script(reply, reply, reply)
    done = run(asked(), llm, output=Contact, value_retries=2)
    assert (done.stopped_by, len(llm.requests)) == (stopped_by, requests)
    assert (done.value_error is None) == (stopped_by == "answer")


def test_a_limit_says_why_there_is_no_value(run: Runner) -> None:
    done = run(asked(), script(calls(look("cat"))), output=Contact, max_rounds=1)
    assert (done.value, done.stopped_by) == (None, "round_limit")
    assert "round_limit" in (done.value_error or "")
    # No retry exceeds the budget of tokens.
    spent = run(asked(), script(BAD, GOOD), output=Contact, value_retries=1, token_budget=1)
    assert spent.stopped_by == "no_value"


def test_the_value_may_come_by_a_tool(run: Runner, api: str) -> None:
    session = asked()
    llm = ScriptedModel(
        [
            calls(look("cat")),
            calls(Call("answer", {"name": "Ada"})),
            calls(Call("answer", ADA)),
        ],
        api=api,
        structured="tool",
    )
    done = run(session, llm, output=Contact, value_retries=1)
    assert (done.value, done.stopped_by) == (Contact(name="Ada", age=36), "answer")
    assert session.answered
    assert read_value(session.transcript, Contact).value == done.value
    check_valid(session)


def test_streamed_answers_have_the_same_value(run: Runner, api: str) -> None:
    events: list[Any] = []
    done = run(asked(), script(GOOD, api=api), output=Contact, on_event=events.append)
    assert done.value == Contact(name="Ada", age=36)
    assert events


def test_any_form_that_a_structured_turn_takes(run: Runner) -> None:
    numbers = run(asked(), script(Reply(text='{"value": [1, 2]}')), output=list[int])
    assert numbers.value == [1, 2]
    schema = OutputSchema("pair", {"type": "object", "required": ["a"]})
    assert run(asked(), script(Reply(text='{"a": 1}')), output=schema).value == {"a": 1}


def test_wrong_options_are_told_before_anything_is_sent(run: Runner) -> None:
    llm = script(GOOD)
    with pytest.raises(ValueError, match="value_retries= needs output="):
        run(asked(), llm, value_retries=1)
    for wrong in (-1, True, "2"):
        with pytest.raises(ValueError, match="value_retries="):
            run(asked(), llm, output=Contact, value_retries=wrong)
    with pytest.raises(DeclarationError):
        run(asked(), llm, output=Unknown)
    assert llm.requests == []


def test_an_answer_that_is_not_there_has_no_value() -> None:
    with pytest.raises(TranscriptError, match="no answer"):
        read_value(Transcript(), Contact)


@tool_fn(effect="read")
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


class Plain(Toolset):
    double = tool(double)


def test_tools_that_are_functions_need_no_dispatcher(run: Runner) -> None:
    session = asked()
    llm = script(calls(call("double", number=4)), GOOD)
    done = run(session, llm, tools=Plain, dispatch=None, output=Contact)
    assert done.value == Contact(name="Ada", age=36)
    assert session.transcript[2].results[0].text == "8"
    with pytest.raises(DeclarationError, match="write"):
        run(asked(), script(GOOD), dispatch=None)
    typed = run_tools_sync(asked(), script(GOOD), tools=Plain, output=Contact).value
    assert typed is not None
    assert typed.age == 36
