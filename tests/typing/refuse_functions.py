"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from decimal import Decimal
from typing import Any

from accept_functions import Bank, BankCall, Close, Closed, Ledger, hooks, pay, search, shorter
from pydantic import BaseModel
from typing_extensions import assert_never

from lutumpy import (
    Complete,
    FunctionSelector,
    RunNormally,
    Selector,
    ToolCall,
    ToolDecision,
    ToolMetadata,
)
from lutumpy.hooks import BaseToolCall


@hooks.on(Bank.pay)  # refused
async def one_is_missing(metadata: ToolMetadata, amount: Decimal) -> ToolDecision:
    return RunNormally()


@hooks.on(Bank.pay)  # refused
async def another_type(metadata: ToolMetadata, amount: str, to: str) -> ToolDecision:
    return RunNormally()


@hooks.on(Bank.pay)  # refused
async def another_name(metadata: ToolMetadata, amuont: Decimal, to: str) -> ToolDecision:
    return RunNormally()


@hooks.on(Bank.pay)  # refused
async def one_too_many(metadata: ToolMetadata, amount: Decimal, to: str, why: str) -> ToolDecision:
    return RunNormally()


@hooks.on(Bank.pay)  # refused
async def without_metadata(amount: Decimal, to: str) -> ToolDecision:
    return RunNormally()


@hooks.on(Bank.pay)  # refused
def another_output(metadata: ToolMetadata, amount: Decimal, to: str) -> ToolDecision[Any, int]:
    return Complete(1)


@hooks.on(Bank.pay)  # refused
def no_decision(metadata: ToolMetadata, amount: Decimal, to: str) -> bool:
    return True


@hooks.on(Bank.search)  # refused
def without_the_default(metadata: ToolMetadata, query: str, limit: int, **_: Any) -> ToolDecision:
    return RunNormally()


@hooks.on(Bank.search)  # refused
def without_what_is_skipped(metadata: ToolMetadata, query: str, limit: int = 3) -> ToolDecision:
    return RunNormally()


@hooks.on(Bank.pay)  # refused
def input_of_a_class(metadata: ToolMetadata, input: Close) -> ToolDecision[Close, str]:
    return RunNormally(input)


@hooks.on(Bank.close)  # refused
def parameters_of_a_class(metadata: ToolMetadata, why: str) -> ToolDecision[Any, bool]:
    return RunNormally()


async def calls(call: BaseToolCall) -> None:
    Bank.pay.apply(call, search)  # refused
    Bank.search.apply(call, pay)  # refused
    Bank.pay.apply(call, lambda amount: amount)  # refused
    Bank.pay.apply(call, lambda amount, to: amount.upper())  # refused
    Bank.pay.apply(call, shorter)  # refused
    Bank.pay.replace(call, "1", to="Bob")  # refused
    Bank.pay.replace(call, Decimal(1))  # refused
    Bank.pay.replace(call, Decimal(1), "Bob", "why")  # refused
    Bank.search.replace(call, "x")  # refused
    Bank.search.replace(call, limt=3, query="x", ledger=Ledger())  # refused
    Bank.close.replace(call, why="x")  # refused
    if Bank.pay.matches(call):
        call.complete(3)  # refused
        call.input.amount  # refused


def selectors() -> None:
    wrong_output: Selector[Bank, BaseModel, int] = Bank.pay  # refused
    no_function: FunctionSelector[Bank, ..., Any] = Bank.close  # refused
    print(wrong_output, no_function)


def forgotten(call: BankCall) -> None:
    if Closed.upper.matches(call):
        call.complete(3)  # refused
    elif Closed.close.matches(call):
        call.complete(True)
    else:
        assert_never(call)  # refused


def decisions() -> ToolDecision[Close, bool]:
    RunNormally(1, 2)  # refused
    RunNormally.edited(1)  # refused
    if Bank.close:
        return RunNormally(pay)  # refused
    return RunNormally()


def of_a_union(call: ToolCall[Close, bool]) -> None:
    call.edited("why")  # refused
