"""Everything here is accepted by mypy --strict and pyright. Nothing of it is run."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from typing_extensions import assert_type

from lutumpy import (
    Complete,
    HandledTool,
    HookSet,
    Reject,
    RejectedToolCall,
    RunNormally,
    Selector,
    Session,
    ToolAvailability,
    ToolCall,
    ToolDecision,
    ToolDef,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    Toolset,
    hook_impl,
    hook_slot,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.hooks import BaseToolCall, ToolHooks


class FileText(BaseModel):
    text: str


class Hits(BaseModel):
    hits: list[str]


class User(BaseModel):
    name: str


@tool_input(name="read_file")
class ReadFile(ToolInput[FileText]):
    path: str


@tool_input(name="search", output=Hits)
class Search(BaseModel):
    query: str


@tool_input(name="get_user")
class GetUser(ToolInput[User]):
    user_id: str


@tool_fn
async def shout(text: str) -> str:
    return text.upper()


class DataTools(Toolset):
    get_user = tool(GetUser)


class AppTools(Toolset):
    read_file = tool(ReadFile)
    search = tool(Search, output=Hits)
    shout = tool(shout)
    data = nested(DataTools)


class OtherTools(Toolset):
    read_file = tool(ReadFile)


ReadFileCall = ToolCall[ReadFile, FileText]


class OneTool(Toolset[ReadFileCall]):
    read_file = tool(ReadFile)


class Policy:
    @hook_impl
    async def read_file_hook(
        self, metadata: ToolMetadata, input: ReadFile
    ) -> ToolDecision[ReadFile, FileText]:
        return RunNormally(ReadFile(path=input.path.strip()))

    @hook_impl(tryfirst=True)
    def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> ToolDecision:
        return RunNormally(call.input)

    @hook_impl(trylast=True)
    def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult | None:
        return None


hooks = AppTools.hooks()
assert_type(hooks, ToolHooks[AppTools])
assert_type(hooks.with_hooks(Policy(), Policy()), ToolHooks[AppTools])
assert_type(hooks.with_extended(AppTools.hooks()), ToolHooks[AppTools])
assert_type(hooks.nested(DataTools), ToolHooks[DataTools])
assert_type(
    Policy().any_tool_hook(
        ToolMetadata("1", "search", "{}"), AppTools.parse(ToolMetadata("1", "search", "{}"))
    ),
    ToolDecision,
)


@hooks.on(AppTools.read_file)
async def decide(metadata: ToolMetadata, input: ReadFile) -> ToolDecision[ReadFile, FileText]:
    if input.path == "cached":
        return Complete(FileText(text="cached"))
    return RunNormally(input)


@hooks.on(AppTools.read_file)
def refuse(metadata: ToolMetadata, input: ReadFile) -> Reject:
    return Reject("not today")


def ask_a_person(call: BaseToolCall) -> ToolDecision:
    return Reject("no") if call.metadata.name == "search" else RunNormally()


def decide_what_is_held(plan: ToolRoundPlan[Any]) -> ToolRoundPlan[Any]:
    one: ToolDecision = ask_a_person(plan.held[0])
    exact: ToolDecision[ReadFile, FileText] = Complete(FileText(text="cached"))
    plan = plan.decide({"call_1": one, "call_2": exact, "call_3": RunNormally()}, by="ann")
    by_id: dict[str, ToolDecision] = {call.metadata.id: ask_a_person(call) for call in plan.held}
    some: dict[str, Reject] = {"call_4": Reject("no")}
    plan = plan.decide(by_id, by="ann")
    return plan.decide(some, by="ann")


@hooks.on(AppTools.search)
def rewrite(metadata: ToolMetadata, input: Search) -> RunNormally[Search]:
    return RunNormally(Search(query=input.query.lower()))


@hooks.on(AppTools.shout)
def loud(metadata: ToolMetadata, input: BaseModel) -> ToolDecision[BaseModel, str]:
    return Complete("HEY")


@hooks.on(AppTools.data[DataTools.get_user])
async def nested_through_the_outer_one(
    metadata: ToolMetadata, input: GetUser
) -> ToolDecision[GetUser, User]:
    return Complete(User(name=input.user_id))


@hooks.nested(DataTools).on(DataTools.get_user)
async def nested_itself(metadata: ToolMetadata, input: GetUser) -> ToolDecision[GetUser, User]:
    return RunNormally(input)


@hooks.describe(AppTools.read_file)
def describe(definition: ToolDef) -> str | None:
    return definition.description or None


@hooks.describe(AppTools.data[DataTools.get_user])
async def describe_later(definition: ToolDef) -> str:
    return "Look a user up."


def read_only(call: BaseToolCall) -> ToolDecision:
    return (
        RunNormally(call.input)
        if call.selector.definition.options.effect == "read"
        else Reject("read-only")
    )


async def ask(call: BaseToolCall) -> RunNormally[Any] | Reject:
    return Reject("nobody is there")


async def rounds(session: Session, round: ToolRound, typed: ToolRound[ReadFileCall]) -> None:
    plan = await round.apply_hooks(hooks)
    assert_type(plan, ToolRoundPlan)
    plan = await plan.apply_hooks(ask)
    plan = plan.apply_hooks_sync(read_only)
    assert_type(plan.handled, tuple[HandledTool[Any, Any], ...])
    assert_type(plan.rejected, tuple[RejectedToolCall, ...])
    results: list[ToolResult] = []
    for call in plan.pending:
        if AppTools.read_file.matches(call):
            assert_type(call.input, ReadFile)
            results.append(call.complete(FileText(text="")))
    reviewed = await hooks.review(results)
    assert_type(reviewed, list[ToolResult])
    assert_type(hooks.review_sync([*results, *plan.handled]), list[ToolResult])
    plan.commit(session, reviewed)
    assert_type(plan.decisions(), list[dict[str, Any]])

    typed_plan = await typed.apply_hooks(OneTool.hooks())
    for one in typed_plan.pending:
        assert_type(one, ReadFileCall)

    assert_type(await hooks.description_overrides(), dict[Selector[AppTools, Any, Any], str])
    AppTools.offer(
        available=ToolAvailability.only(AppTools.search),
        describe=hooks.description_overrides_sync(),
    )


async def one_call(call: BaseToolCall) -> None:
    match await hooks.apply(call):
        case HandledTool() as handled:
            handled.output
        case RejectedToolCall() as rejected:
            assert_type(rejected.reason, str)
        case pending:
            assert_type(pending, BaseToolCall)


class AppHooks(HookSet):
    @hook_slot("always")
    async def validate(self, prompt: str) -> str | None:
        return None if prompt.strip() else "empty"

    @hook_slot("fallback")
    def rank(self, items: Sequence[str], *, limit: int = 10) -> list[str]:
        return list(items)[:limit]

    @hook_slot("singleton")
    def title(self, text: str) -> str:
        return text.title()


app_hooks = AppHooks()


@app_hooks.on(AppHooks.validate)
@hook_impl(tryfirst=True)
async def careful(prompt: str, last: str | None) -> str | None:
    return last or None


@app_hooks.on(AppHooks.validate)
def plain(prompt: str) -> str | None:
    return None


@app_hooks.on(AppHooks.rank)
def shortest(items: Sequence[str]) -> list[str]:
    return sorted(items, key=len)


async def slots() -> None:
    assert_type(await careful("hello", None), str | None)
    assert_type(await app_hooks.validate("hello"), str | None)
    assert_type(app_hooks.rank(["a"], limit=1), list[str])
    assert_type(app_hooks.title(text="a"), str)
    assert_type(app_hooks.with_hooks(Policy()), AppHooks)
    assert_type(app_hooks.with_extended(AppHooks()), AppHooks)
