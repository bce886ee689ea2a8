"""Mistakes of whole programs that both checkers find; those that no checker can find are in
`tests/test_wrong_programs.py`.
"""

from typing import Any

from pydantic import BaseModel
from typing_extensions import assert_never

from lutumpy import (
    Complete,
    Model,
    NeedsTools,
    RunNormally,
    Session,
    Skip,
    ToolAvailability,
    ToolCall,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import run_tools


class User(BaseModel):
    name: str


class Shop:
    stock: int = 1


@tool_input(name="get_user")
class GetUser(ToolInput[User]):
    """Look a user up."""

    name: str


@tool_input(name="delete_user", output=None)
class DeleteUser(BaseModel):
    """Delete a user."""

    name: str


@tool_fn(effect="read")
async def count(title: str, at_most: int = 3, *, shop: Skip[Shop]) -> int:
    """Count."""
    return 1


class Users(Toolset[ToolCall[GetUser, User] | ToolCall[DeleteUser, None]]):
    get_user = tool(GetUser)
    delete_user = tool(DeleteUser, output=None)


class Open(Toolset):
    get_user = tool(GetUser)
    delete_user = tool(DeleteUser, output=None)
    count = tool(count)


class Other(Toolset):
    get_user = tool(GetUser)


hooks = Open.hooks()
dispatch = Dispatcher(Open)


def wrong_output(call: BaseToolCall) -> None:
    if Open.get_user.matches(call):
        call.complete("Ada")  # refused


def forgotten_tool(call: ToolCall[GetUser, User] | ToolCall[DeleteUser, None]) -> None:
    if Users.get_user.matches(call):
        pass
    else:
        assert_never(call)  # refused


async def forgotten_tool_of_a_round(session: Session, llm: Model) -> None:
    outcome = await session.text_turn(llm, tools=Users).collect()
    if isinstance(outcome, NeedsTools):
        for call in outcome.round.calls:
            if Users.get_user.matches(call):
                pass
            else:
                assert_never(call)  # refused


@hooks.on(Open.get_user)  # refused
def on_the_wrong_input(metadata: ToolMetadata, input: DeleteUser) -> ToolDecision[DeleteUser, None]:
    return RunNormally()


@hooks.on(Open.count)  # refused
def on_a_wrong_parameter(
    metadata: ToolMetadata, title: int, at_most: int = 3, **_: Any
) -> ToolDecision:
    return RunNormally()


@hooks.on(Open.get_user)
def completes_wrongly(metadata: ToolMetadata, input: GetUser) -> ToolDecision[GetUser, User]:
    return Complete("Ada")  # refused


async def missing_skip() -> None:
    await count("x")  # refused


unknown_tool = Open.get_usr  # refused


async def selector_of_another_toolset(session: Session, llm: Model) -> None:
    only = ToolAvailability.only(Other.get_user)
    session.text_turn(llm, tools=Open, available=only)  # refused


async def dispatcher_of_another_toolset(session: Session, llm: Model) -> None:
    await run_tools(session, llm, tools=Open, dispatch=Dispatcher(Other))  # refused


@dispatch.on(Open.get_user)  # refused
async def handler_with_the_wrong_output(input: GetUser) -> str:
    return input.name


async def commit_of_raw_values(session: Session, llm: Model) -> None:
    outcome = await session.text_turn(llm, tools=Users).collect()
    if isinstance(outcome, NeedsTools):
        outcome.round.commit(session, ["Oslo"])  # refused


def misspelled_field(call: BaseToolCall) -> None:
    if Open.count.matches(call):
        print(call.input.titel)  # refused


async def result_before_a_match(session: Session, llm: Model) -> None:
    outcome = await session.text_turn(llm, tools=Open).collect()
    print(outcome.result.text)  # refused


async def value_of_the_wrong_type(session: Session, llm: Model) -> int:
    result = await session.structured_turn(llm, User).collect()
    return result.value  # refused


async def forgotten_await(session: Session, llm: Model) -> None:
    outcome = await session.text_turn(llm, tools=Open).collect()
    if isinstance(outcome, NeedsTools):
        plan = outcome.round.apply_hooks(Open.hooks())
        plan.commit(session, [])  # refused


@hooks.on(Open.count)  # refused
def declares_the_wrong_output(
    metadata: ToolMetadata, title: str, at_most: int = 3, **_: Any
) -> ToolDecision[Any, str]:
    return Complete("many")


async def hooks_of_another_toolset(session: Session, llm: Model) -> None:
    await run_tools(session, llm, tools=Open, hooks=Other.hooks())  # refused


def says_yes(call: BaseToolCall) -> bool:
    return True


async def policy_that_decides_nothing(session: Session, llm: Model) -> None:
    await run_tools(session, llm, tools=Open, hooks=says_yes)  # refused


async def value_that_may_be_missing(session: Session, llm: Model) -> int:
    result = await session.structured_turn(llm, User).collect()
    return len(result.value.name)  # refused


async def value_of_the_loop(session: Session, llm: Model) -> str:
    done = await run_tools(session, llm, tools=Open, output=User)
    return done.value  # refused
