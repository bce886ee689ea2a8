"""What checkers know of a tool that is a function: its parameters.

mypy --strict and pyright accept it; nothing is run.
"""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, Field
from typing_extensions import assert_never, assert_type

from lutumpy import (
    Complete,
    FunctionSelector,
    Model,
    Reject,
    RunNormally,
    Selector,
    Session,
    Skip,
    ToolCall,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    Toolset,
    hook_impl,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.hooks import BaseToolCall


class Ledger:
    entries: list[str]


@tool_fn
async def pay(amount: Annotated[Decimal, Field(gt=0)], to: str) -> str:
    return f"{amount} to {to}"


@tool_fn
def search(query: str, limit: int = 3, *, ledger: Skip[Ledger]) -> list[str]:
    return ledger.entries[:limit]


@tool_fn
def balance() -> Decimal:
    return Decimal(0)


@tool_fn
def say(input: str) -> str:
    return input


@tool_input(name="close")
class Close(ToolInput[bool]):
    why: str


class Bank(Toolset):
    pay = tool(pay)
    search = tool(search, off=True)
    balance = tool(balance)
    say = tool(say)
    close = tool(Close)


class App(Toolset):
    bank = nested(Bank)


# --- selectors


as_selector: Selector[Bank, BaseModel, str] = Bank.pay
outer: Selector[App, BaseModel, str] = App.bank[Bank.pay]
assert_type(Bank.close, Selector[Bank, Close, bool])
assert_type(App.bank[Bank.close], Selector[App, Close, bool])
selectors: list[Selector[Bank, Any, Any]] = [Bank.pay, Bank.search, Bank.close]
any_function: list[FunctionSelector[Bank, ..., Any]] = [Bank.pay, Bank.search]


def described(session: Session, llm: Model) -> None:
    texts = {Bank.pay: "Pay."}
    Bank.offer(describe=texts)
    session.text_turn(llm, tools=Bank, describe=texts)
    session.text_turn(
        llm, tools=Bank, describe={Bank.pay: "Pay.", Bank.search: "Search.", Bank.close: "Close."}
    )


async def calls(call: BaseToolCall) -> None:
    # The same parameters as the tool's, defaults repeated; the result is what the function gives.
    assert_type(await Bank.pay.apply(call, pay), str)
    assert_type(Bank.pay.apply(call, lambda amount, to: (amount, to)), tuple[Decimal, str])
    assert_type(Bank.search.apply(call, search, ledger=Ledger()), list[str])
    assert_type(Bank.search.apply(call, shorter), int)
    assert_type(await App.bank[Bank.pay].apply(call, pay), str)
    assert_type(Bank.pay.replace(call, Decimal(1), to="Bob"), ToolCall[BaseModel, str])
    assert_type(Bank.balance.replace(call), ToolCall[BaseModel, Decimal])
    Bank.search.replace(
        call, "x", ledger=Ledger()
    )  # `Skip` parameters are part of `P`, and dropped

    # Some of the parameters: checked at run time.
    assert_type(call.edited(amount=1), BaseToolCall)
    assert_type(await call.apply(pay), str)
    if Bank.pay.matches(call):
        assert_type(call, ToolCall[BaseModel, str])
        assert_type(call.edited(amount=1), ToolCall[BaseModel, str])
        assert_type(await call.call(), str)
        call.complete("done")


def shorter(query: str, limit: int = 3, **_: Any) -> int:
    return len(query) + limit


# --- hooks, written with the parameters

hooks = Bank.hooks()


@hooks.on(Bank.pay)
async def approve(metadata: ToolMetadata, amount: Decimal, to: str) -> ToolDecision:
    if amount > 100:
        return Reject("too much")
    return RunNormally.edited(amount=round(amount, 2), to=to.strip())


@hooks.on(Bank.pay)
def known(metadata: ToolMetadata, amount: Decimal, to: str) -> ToolDecision[Any, str]:
    return Complete("known") if to == "Ann" else RunNormally()


@hooks.on(Bank.pay)
def never(metadata: ToolMetadata, amount: Decimal, to: str) -> Reject:
    return Reject(f"no {amount} to {to}")


@hooks.on(Bank.search)
def lower(metadata: ToolMetadata, query: str, limit: int = 3, **_: Any) -> ToolDecision:
    return RunNormally.edited(query=query.lower())


@hooks.on(Bank.balance)
def nothing(metadata: ToolMetadata) -> Complete[Decimal]:
    return Complete(Decimal(0))


@App.hooks().on(App.bank[Bank.pay])
async def from_outside(metadata: ToolMetadata, amount: Decimal, to: str) -> ToolDecision:
    return RunNormally()


# The form with the input is there for every tool. For a function with a parameter called `input`
# the annotation says which of the two forms is meant.


@hooks.on(Bank.pay)
def old(metadata: ToolMetadata, input: BaseModel) -> ToolDecision[BaseModel, str]:
    return RunNormally(input)


@hooks.on(Bank.pay)
async def loose(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, str]:
    return RunNormally(input)


@hooks.on(Bank.say)
def of_the_parameter(metadata: ToolMetadata, input: str) -> ToolDecision[Any, str]:
    return Complete(input.upper())


@hooks.on(Bank.say)
def of_the_model(metadata: ToolMetadata, input: BaseModel) -> ToolDecision[BaseModel, str]:
    return RunNormally(input)


@hooks.on(Bank.close)
def of_a_class(metadata: ToolMetadata, input: Close) -> ToolDecision[Close, bool]:
    return RunNormally() if input.why else RunNormally.edited(why="unknown")


class Policy:
    @hook_impl
    async def pay_hook(self, metadata: ToolMetadata, amount: Decimal, to: str) -> ToolDecision:
        return RunNormally()


# --- every tool handled


class Done(BaseModel):
    text: str


@tool_fn
def upper(text: str) -> str:
    return text.upper()


@tool_fn
def count(text: str) -> int:
    return len(text)


BankCall = ToolCall[BaseModel, str] | ToolCall[BaseModel, int] | ToolCall[Close, bool]


class Closed(Toolset[BankCall]):
    """Functions with different outputs are different branches, and each input class is one."""

    upper = tool(upper)
    count = tool(count)
    close = tool(Close)


def run(call: BankCall) -> None:
    if Closed.upper.matches(call):
        call.complete(Closed.upper.apply(call, upper))
    elif Closed.count.matches(call):
        call.complete(Closed.count.apply(call, count))
    elif Closed.close.matches(call):
        call.complete(bool(call.input.why))
    else:
        assert_never(call)


# What no checker sees: two functions with the same output are one type. Here `loud` is forgotten,
# and neither reports it. So the class statement raises `DeclarationError` when it runs: see
# tests/tools/test_branches.py.


@tool_fn
def loud(text: str) -> str:
    return text + "!"


class Shared(Toolset[ToolCall[BaseModel, str]]):
    upper = tool(upper)
    loud = tool(loud)


def forgets(call: ToolCall[BaseModel, str]) -> None:
    if Shared.upper.matches(call):
        call.complete("")
    else:
        assert_never(call)
