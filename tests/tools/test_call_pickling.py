"""Calls can be pickled, whatever class their input is of; their keys stay."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from lutumpy import (
    ApprovalRequest,
    HandledTool,
    NeedsTools,
    RejectedToolCall,
    Session,
    ToolCallIssue,
    ToolInput,
    ToolMetadata,
    Toolset,
    text_tool,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, render
from lutumpy.tools import call_arguments, idempotency_key


class Line(BaseModel):
    text: str
    count: int = 1


@tool_fn
def pay(amount: int, lines: list[Line], memo: str = "none") -> str:
    """Pay."""
    return "paid"


@text_tool
def run_sql(sql: str) -> str:
    """Run SQL."""
    return sql


@tool_input(name="login")
class Login(ToolInput[None]):
    """Log in."""

    password: SecretStr


class Bank(Toolset):
    pay = tool(pay)
    run_sql = tool(run_sql)
    login = tool(Login)


PAY = '{"amount": 3, "lines": [{"text": "a"}]}'


def parse(name: str, arguments: str) -> Any:
    return Bank.parse(ToolMetadata("a", name, arguments))


def in_a_round() -> Any:
    session = Session()
    session.push_user("go")
    asked = (Call("pay", PAY, id="a"), Call("pay", PAY, id="b"))
    reply = render(Reply(calls=asked), "openai_chat", number=1, model="m")
    outcome = Bank.offer().read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    return outcome.round.calls[1]


def key_of(call: Any) -> str:
    return str(idempotency_key(call, "scope", call_arguments(call), 0))


@pytest.mark.parametrize(
    "call",
    [
        in_a_round(),
        in_a_round().edited(amount=4),
        parse("pay", PAY),
        parse("login", '{"password": "x"}'),
        Bank.parse(ToolMetadata.of_text("a", "run_sql", "select 1")),
    ],
    ids=lambda call: call.metadata.name,
)
@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
def test_p9_a_call_that_was_pickled_is_the_same_call_with_the_same_key(call: Any, way: str) -> None:
    ways: dict[str, Any] = {
        "pickle": lambda call: pickle.loads(pickle.dumps(call)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }
    twin = ways[way](call)
    assert type(twin) is type(call)
    assert (twin.metadata, twin.input, twin.repairs) == (call.metadata, call.input, call.repairs)
    assert twin.selector is call.selector
    assert key_of(twin) == key_of(call)
    assert twin.key is None


def test_p9_a_key_that_was_fixed_stays() -> None:
    call = parse("pay", PAY)
    call.key, call.equal_to = "k", "e"
    twin = pickle.loads(pickle.dumps(call))
    assert (twin.key, twin.equal_to) == ("k", "e")


def test_what_became_of_a_call_can_be_pickled_too() -> None:
    call = parse("pay", PAY)
    handled = call.handled("done")
    twin = pickle.loads(pickle.dumps(handled))
    assert twin == handled
    assert twin.selector is Bank.pay
    by_hand: HandledTool[Any, Any] = HandledTool(call.metadata, 3, 4)
    assert pickle.loads(pickle.dumps(by_hand)) == by_hand
    rejected = pickle.loads(pickle.dumps(RejectedToolCall(call.metadata, call, "no")))
    assert (rejected.reason, rejected.call.input) == ("no", call.input)
    issue = ToolCallIssue(call.metadata, "invalid_arguments", "amount: missing", 1)
    assert pickle.loads(pickle.dumps(issue)) == issue


def test_a_request_for_approval_can_be_pickled() -> None:
    request = ApprovalRequest(ToolMetadata("a", "search", '{"q": 1}'), "docs")
    twin = pickle.loads(pickle.dumps(request))
    assert (twin.metadata, twin.server_label, twin.input) == (
        request.metadata,
        "docs",
        request.input,
    )
