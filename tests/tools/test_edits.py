"""Another input for a call, another function for its arguments, and the tool of a decided call."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import (
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    RootModel,
    ValidationError,
    model_validator,
)

from lutumpy import (
    FunctionSelector,
    HandledTool,
    InvalidArgumentsError,
    RejectedToolCall,
    Selector,
    Skip,
    ToolCall,
    ToolInput,
    ToolMetadata,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)


@tool_fn
async def pay(
    amount: Annotated[Decimal, Field(gt=0)], to: str = "Ann", *, ledger: Skip[list[str]]
) -> str:
    """Pay."""
    ledger.append(f"{amount} to {to}")
    return ledger[-1]


@tool_fn
def place(x: int, y: int = 0, /, *, z: int = 0) -> str:
    """Place."""
    return f"{x} {y} {z}"


@tool_fn
def send(data: Base64Bytes, more: Json[list[int]], copy: int = 1) -> str:
    """Send."""
    return ""


@tool_input(name="book")
class Book(ToolInput[str]):
    """Book."""

    model_config = ConfigDict(frozen=True)

    first: int
    last: int
    note: str = Field("", alias="remark")

    @model_validator(mode="after")
    def in_order(self) -> Book:
        if self.first > self.last:
            raise ValueError("first comes after last")
        return self


class Left(BaseModel):
    steps: int


class Right(BaseModel):
    degrees: int


@tool_input(name="turn", output=str)
class Turn(RootModel[Left | Right]):
    """Turn."""


@tool_input(name="pick", output=str)
class Pick(RootModel[dict[str, int]]):
    """Pick."""


@tool_input(name="open", output=str)
class Open(BaseModel):
    """Open."""

    model_config = ConfigDict(extra="allow")

    path: str


class Tools(Toolset):
    pay = tool(pay)
    place = tool(place)
    send = tool(send)
    book = tool(Book)
    turn = tool(Turn, output=str)
    pick = tool(Pick, output=str)
    open = tool(Open, output=str)


class Outer(Toolset):
    tools = nested(Tools)


def call(name: str, arguments: str) -> Any:
    return Tools.parse(ToolMetadata("call_1", name, arguments))


PAY = '{"amount": "5", "to": "Bob"}'
SEND = '{"data": "aGk=", "more": "[1]"}'


# --- selectors of functions


def test_a_functions_selector_is_a_selector_that_knows_it() -> None:
    assert isinstance(Tools.pay, FunctionSelector)
    assert isinstance(Tools.pay, Selector)
    assert not isinstance(Tools.book, FunctionSelector)
    assert isinstance(Outer.tools[Tools.pay], FunctionSelector)
    assert isinstance(Outer.tools.pay, FunctionSelector)
    assert Tools.selector("pay") is Tools.pay
    assert pickle.loads(pickle.dumps(Tools.pay)) is Tools.pay is copy.deepcopy(Tools.pay)
    assert (str(Tools.pay), repr(Tools.pay), {Tools.pay: 1}[Tools.pay]) == (
        "pay",
        "<Selector Tools:pay>",
        1,
    )


async def test_apply_runs_any_function_of_the_same_parameters() -> None:
    asked = call("pay", PAY)
    ledger: list[str] = []
    assert await Tools.pay.apply(asked, pay, ledger=ledger) == "5 to Bob"
    assert ledger == ["5 to Bob"]
    assert Tools.pay.apply(asked, lambda amount, to, **_: (amount, to)) == (Decimal(5), "Bob")
    assert Tools.place.apply(call("place", '{"x": 1, "z": 3}'), place) == "1 0 3"
    assert Tools.place.apply(call("place", '{"x": 1}'), lambda a, b, /, *, z: (a, b, z)) == (
        1,
        0,
        0,
    )
    assert Tools.pay.apply(asked, dict) == {
        "amount": Decimal(5),
        "to": "Bob",
    }  # C code that doesn't say what it takes


def test_apply_refuses_a_function_that_does_not_take_the_arguments_and_does_not_run_it() -> None:
    asked = call("pay", PAY)
    ran: list[int] = []
    wrong: list[tuple[Callable[..., Any], str]] = [
        (lambda amount: ran.append(1), "got an unexpected keyword argument 'to'"),
        (lambda amount, to, why: ran.append(1), "missing a required .*argument: 'why'"),
        (pay, "missing a required .*argument: 'ledger'"),
    ]
    for function, message in wrong:
        with pytest.raises(
            TypeError,
            match=rf"the arguments of tool 'pay' \(amount, to\): {message}; it was not called",
        ):
            Tools.pay.apply(asked, function)
    with pytest.raises(TypeError, match="no Skip parameter index"):
        Tools.pay.apply(asked, pay, index=3)
    assert ran == []


def test_replace_is_the_call_with_other_arguments_validated() -> None:
    asked = call("pay", PAY)
    new = Tools.pay.replace(asked, Decimal(7), "Eve", ledger=[])
    assert (new.arguments, new.metadata) == ({"amount": Decimal(7), "to": "Eve"}, asked.metadata)
    assert asked.arguments == {"amount": Decimal(5), "to": "Bob"}
    assert Tools.pay.replace(asked, amount=Decimal(7), ledger=[]).arguments == {
        "amount": Decimal(7),
        "to": "Ann",
    }
    assert Tools.pay.matches(new)
    for args, kwargs, message in [
        ((), {"to": "Eve"}, "amount of tool 'pay' is missing; give all arguments, or use edited"),
        ((1, "Eve", 3), {}, "not the arguments of tool 'pay': too many positional"),
        (
            (1,),
            {"why": 3},
            "not the arguments of tool 'pay': got an unexpected keyword argument 'why'",
        ),
    ]:
        with pytest.raises(TypeError, match=message):
            Tools.pay.replace(asked, *args, **kwargs)
    with pytest.raises(
        InvalidArgumentsError, match=r"'call_1' of tool 'pay': amount: .*greater than 0"
    ):
        Tools.pay.replace(asked, Decimal(0), ledger=[])
    text: Any = "[2]"  # JSON text, which the parameter takes at run time
    renamed = Tools.send.replace(call("send", SEND), b"aGk=", text, copy=3)
    assert renamed.arguments == {"data": b"hi", "more": [2], "copy": 3}


def test_a_call_of_another_tool_is_refused_where_a_checker_cannot_see_it() -> None:
    other = call("book", '{"first": 1, "last": 2}')
    for act in (
        lambda: Tools.pay.apply(other, pay),
        lambda: Tools.pay.replace(other, Decimal(1), ledger=[]),
    ):
        with pytest.raises(
            TypeError, match=r"'call_1' is a call of 'book', not of 'pay'; ask Tools\.pay\.matches"
        ):
            act()


# --- edits of a call


def test_edited_is_the_call_with_some_arguments_changed_and_validated() -> None:
    asked = call("pay", PAY)
    new = asked.edited(amount="7")
    assert new.arguments == {"amount": Decimal(7), "to": "Bob"}
    assert (type(new), new.metadata, new.selector) == (ToolCall, asked.metadata, asked.selector)
    assert asked.arguments == {"amount": Decimal(5), "to": "Bob"}
    assert asked.edited().input is asked.input


def test_edited_leaves_the_other_values_alone_for_functions() -> None:
    """Validated twice, `Base64Bytes` would decode twice, and `Json` would refuse what it made."""
    new = call("send", SEND).edited(copy="2")
    assert new.arguments == {"data": b"hi", "more": [1], "copy": 2}
    assert new.edited(data=b"eW8=").arguments == {"data": b"yo", "more": [1], "copy": 2}


def test_an_input_class_is_validated_whole() -> None:
    asked = call("book", '{"first": 1, "last": 2, "remark": "x"}')
    assert asked.edited(first=5, last=7).input == Book(first=5, last=7, remark="x")
    assert asked.edited(note="y").input.note == "y"
    with pytest.raises(InvalidArgumentsError, match="first comes after last"):
        asked.edited(first=5)
    assert asked.input == Book(first=1, last=2, remark="x")


def test_a_union_and_other_roots_are_edited_by_the_names_of_their_arguments() -> None:
    assert call("turn", '{"input": {"degrees": 3}}').edited(degrees="4").input == Turn(
        Right(degrees=4)
    )
    assert call("pick", '{"a": 1}').edited(root={"b": "2"}).input == Pick({"b": 2})
    with pytest.raises(TypeError, match="tool 'turn' has no argument steps; it has degrees"):
        call("turn", '{"input": {"degrees": 3}}').edited(steps=1)


def test_a_name_that_is_no_argument_is_refused() -> None:
    with pytest.raises(TypeError, match=r"tool 'pay' has no argument amuont; it has amount, to$"):
        call("pay", PAY).edited(amuont=3)
    with pytest.raises(
        TypeError, match=r"no argument ledger \(ledger: a Skip parameter is not part of a call\)"
    ):
        call("pay", PAY).edited(ledger=[])
    with pytest.raises(TypeError, match="has no argument first_; it has first, last, note"):
        call("book", '{"first": 1, "last": 2}').edited(first_=3)
    assert call("open", '{"path": "a", "mode": "r"}').edited(mode="w").arguments == {
        "path": "a",
        "mode": "w",
    }


def test_a_value_that_does_not_fit_is_refused_by_the_names_of_the_function() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        call("send", SEND).edited(copy="many")
    assert caught.value.detail.startswith("copy: Input should be a valid integer")
    assert isinstance(caught.value.__cause__, ValidationError)


def test_apply_of_a_call_gives_a_function_the_arguments_that_it_names() -> None:
    asked = call("pay", PAY)
    assert asked.apply(lambda to: to) == "Bob"
    assert asked.apply(lambda **rest: rest) == {"amount": Decimal(5), "to": "Bob"}
    assert asked.apply(lambda to, why="none": (to, why)) == ("Bob", "none")
    assert asked.apply(lambda to, why: (to, why), why="given") == ("Bob", "given")
    assert asked.apply(lambda to, /, amount, *rest: (to, amount, rest)) == ("Bob", Decimal(5), ())
    assert asked.apply(lambda why=3, to="x", /: (why, to)) == (3, "Bob")
    assert call("book", '{"first": 1, "last": 2}').apply(lambda first, last: last - first) == 1
    ran: list[int] = []
    for function, more, message in [
        (lambda to, why: ran.append(1), {}, "missing an argument: 'why'"),
        (lambda to: ran.append(1), {"why": 3}, "it has no parameter why"),
    ]:
        with pytest.raises(TypeError, match=message):
            asked.apply(function, **more)
    assert ran == []


# --- which tool a decided call was of


def test_matches_takes_what_became_of_a_call() -> None:
    asked = call("pay", PAY)
    handled, rejected = asked.handled("done"), RejectedToolCall(asked.metadata, asked, "no")
    for decided in (handled, rejected, asked):
        assert decided.selector is Tools.pay
        assert Tools.pay.matches(decided)
        assert Outer.tools[Tools.pay].matches(decided)  # a tool is the same one from outside
        assert not Tools.book.matches(decided)
    assert handled == HandledTool(asked.metadata, asked.input, "done")
    assert "selector" not in repr(handled)


def test_what_was_made_by_hand_goes_by_the_name_of_the_tool() -> None:
    handled = HandledTool(ToolMetadata("call_1", "pay", "{}"), None, "done")
    assert handled.selector is None
    assert Tools.pay.matches(handled)
    assert not Tools.book.matches(handled)
