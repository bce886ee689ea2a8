"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from accept_execution import dispatch
from accept_hooks import (
    AppTools,
    DataTools,
    FileText,
    GetUser,
    Hits,
    OtherTools,
    ReadFile,
    Search,
    User,
)

from lutumpy import ToolMetadata, ToolRound
from lutumpy.execution import Dispatcher, ExecutionReport, Outcome, ToolExecutor, preview


@dispatch.on(AppTools.read_file)  # refused
async def wrong_input(input: Search) -> FileText:
    return FileText(text="")


@dispatch.on(AppTools.read_file)  # refused
async def wrong_output(input: ReadFile) -> Hits:
    return Hits(hits=[])


@dispatch.on(AppTools.read_file)  # refused
def wrong_plain_output(input: ReadFile) -> str:
    return ""


@dispatch.on(AppTools.read_file)  # refused
def no_input() -> FileText:
    return FileText(text="")


@dispatch.on(AppTools.data[DataTools.get_user])  # refused
async def wrong_nested_output(input: GetUser) -> FileText:
    return FileText(text="")


@dispatch.on(AppTools.read_file)  # refused
def hook_order(metadata: ToolMetadata, input: ReadFile) -> FileText:
    return FileText(text="")


async def wrong(round: ToolRound) -> None:
    dispatch.on(OtherTools.read_file)  # refused
    dispatch.on(DataTools.get_user)  # refused
    dispatch.on("read_file")  # refused
    Dispatcher(User)  # refused
    Dispatcher(AppTools, {"index": 3})  # refused
    executor = ToolExecutor(max_concurrency="5")  # refused
    ToolExecutor(5)  # refused
    ToolExecutor(limits={"read_file": 2})  # refused
    await executor.run(round, dispatch)  # refused
    await executor.run(round.issues, dispatch)  # refused
    await executor.run(round.calls, AppTools)  # refused
    await executor.run(round.calls, dispatch, resume=True)  # refused
    results = await executor.run(round.calls, dispatch)
    results[0].attempts = 3  # refused
    outcome: Outcome = "done"  # refused
    print(outcome)
    ExecutionReport().results([results[0]])  # refused
    executor.resolve("call_1")  # refused
    preview(b"text", 3)  # refused
