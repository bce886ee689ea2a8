"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from accept_hooks import (
    AppHooks,
    AppTools,
    DataTools,
    FileText,
    GetUser,
    Hits,
    OtherTools,
    ReadFile,
    Search,
    User,
    app_hooks,
    hooks,
)

from lutumpy import (
    Complete,
    HandledTool,
    Reject,
    RunNormally,
    ToolDecision,
    ToolDef,
    ToolMetadata,
    ToolRound,
    hook_impl,
)
from lutumpy.hooks import BaseToolCall


@hooks.on(AppTools.read_file)  # refused
async def wrong_input(metadata: ToolMetadata, input: Search) -> ToolDecision[Search, FileText]:
    return RunNormally(input)


@hooks.on(AppTools.read_file)  # refused
async def wrong_output(metadata: ToolMetadata, input: ReadFile) -> ToolDecision[ReadFile, Hits]:
    return Complete(Hits(hits=[]))


@hooks.on(AppTools.read_file)  # refused
def wrong_edit(metadata: ToolMetadata, input: ReadFile) -> RunNormally[Search]:
    return RunNormally(Search(query=""))


@hooks.on(AppTools.read_file)  # refused
def no_decision(metadata: ToolMetadata, input: ReadFile) -> bool:
    return True


@hooks.on(AppTools.read_file)  # refused
def wrong_names(meta: ToolMetadata, arguments: ReadFile) -> ToolDecision[ReadFile, FileText]:
    return RunNormally(arguments)


@hooks.on(AppTools.data[DataTools.get_user])  # refused
def wrong_nested_output(metadata: ToolMetadata, input: GetUser) -> Complete[FileText]:
    return Complete(FileText(text=""))


@hooks.describe(AppTools.read_file)  # refused
def wrong_description(definition: ToolDef) -> int:
    return 3


@hooks.describe(AppTools.read_file)  # refused
def description_of_a_call(metadata: ToolMetadata, input: ReadFile) -> str:
    return ""


@hook_impl
def returns_what_it_is_not(
    metadata: ToolMetadata, input: ReadFile
) -> ToolDecision[ReadFile, FileText]:
    return RunNormally(Search(query=""))  # refused


def no_policy(call: BaseToolCall) -> bool:
    return True


async def wrong(round: ToolRound) -> None:
    hooks.on(OtherTools.read_file)  # refused
    hooks.on(DataTools.get_user)  # refused
    hooks.describe(OtherTools.read_file)  # refused
    hooks.nested(DataTools).on(AppTools.read_file)  # refused
    hooks.nested(User)  # refused
    hooks.extend(OtherTools.hooks())  # refused
    hooks.with_extended(OtherTools.hooks())  # refused
    OtherTools.offer(describe=await hooks.description_overrides())  # refused
    await round.apply_hooks(no_policy)  # refused
    round.apply_hooks_sync(AppTools)  # refused
    await round.apply_hooks(None)  # refused
    plan = await round.apply_hooks(hooks)
    plan.rejected[0].reason = "other"  # refused
    await hooks.review(["text"])  # refused
    Reject(3)  # refused
    HandledTool()  # refused


@app_hooks.on(AppHooks.rank)  # refused
def of_another_type(items: list[str]) -> str:
    return ""


@app_hooks.on(AppHooks.rank)  # refused
async def async_on_a_plain_slot(items: list[str]) -> list[str]:
    return items


@app_hooks.on(AppHooks.validate)  # refused
async def of_another_type_too(prompt: str) -> int:
    return 3


async def slots() -> None:
    app_hooks.on("validate")  # refused
    app_hooks.on(app_hooks.validate)  # refused
    app_hooks.title(3)  # refused
    app_hooks.title()  # refused
    app_hooks.rank(["a"], most=3)  # refused
    await app_hooks.validate(None)  # refused
    await app_hooks.title("a")  # refused
    app_hooks.unknown("a")  # refused
