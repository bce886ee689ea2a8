"""Execution: everything here is accepted by mypy --strict and pyright. Nothing of it is run."""

import random
from collections.abc import Mapping
from typing import Any

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
from pydantic import BaseModel
from typing_extensions import assert_type

from lutumpy import RejectedToolCall, Session, Skip, ToolMetadata, ToolResult, ToolRound, tool_fn
from lutumpy.execution import (
    CallReport,
    Dispatcher,
    ExecutionReport,
    ExecutionResult,
    IdempotencyKey,
    Outcome,
    ToolExecutor,
    UnresolvedCall,
    preview,
)


class Database:
    def find(self, key: str) -> str:
        return key


class Context:
    database: Database


@tool_fn(effect="idempotent")
async def pay(amount: int, *, database: Skip[Database], key: Skip[IdempotencyKey]) -> str:
    return database.find(key)


dispatch = Dispatcher(AppTools, context={"database": Database()})
assert_type(dispatch, Dispatcher[AppTools])
Dispatcher(AppTools, context=Context())
Dispatcher(AppTools)


@dispatch.on(AppTools.read_file)
async def read(input: ReadFile) -> FileText:
    return FileText(text=input.path)


@dispatch.on(AppTools.search)
def search(input: Search, *, database: Database, key: IdempotencyKey, which: ToolMetadata) -> Hits:
    return Hits(hits=[database.find(input.query)])


@dispatch.on(AppTools.shout)
def shout(input: BaseModel) -> str:
    return "HEY"


@dispatch.on(AppTools.data[DataTools.get_user])
async def get_user(input: GetUser) -> User:
    return User(name=input.user_id)


@dispatch.on(AppTools.data.get_user)
def get_user_loosely(input: Any) -> Any:
    return User(name="")


dispatch.on(AppTools.read_file)(lambda input: FileText(text=input.path))


async def one_read() -> None:
    # The function is given back as it was.
    assert_type(await read(ReadFile(path="a")), FileText)
    assert_type(
        search(
            Search(query="a"),
            database=Database(),
            key=IdempotencyKey("k"),
            which=ToolMetadata("", "", ""),
        ),
        Hits,
    )


async def run(session: Session, round: ToolRound, context: Mapping[str, object]) -> None:
    executor = ToolExecutor(
        max_concurrency=5,
        deduplicate=True,
        limits={AppTools.read_file: 2, OtherTools.read_file: 1},
        scope="a",
        backoff=0.1,
        max_backoff=3,
        random=random.Random(1),
    )
    report = ExecutionReport()
    plan = await round.apply_hooks(AppTools.hooks())
    results = await executor.run(
        plan.pending, dispatch, scope="b", resume=executor.report, report=report
    )
    assert_type(results, list[ExecutionResult])
    assert_type(results[0].outcome, Outcome)
    assert_type(results[0].attempts, int)
    assert_type(results[0].latency, float)
    assert_type(results[0].error, BaseException | None)
    as_results: list[ToolResult] = [*results]
    plan.commit(session, results)
    plan.commit(session, as_results)
    plan.commit(session, executor.report.results(plan.pending))
    assert_type(report.calls, tuple[CallReport, ...])
    assert_type(report["a"].thread_running, bool)
    assert_type(report["a"].started, float | None)
    assert_type(executor.unresolved, tuple[UnresolvedCall, ...])
    executor.resolve(round.calls[0])
    executor.resolve(results[0].metadata)
    executor.resolve(executor.unresolved[0])
    assert_type(dispatch.with_context(context), Dispatcher[AppTools])
    assert_type(preview("a", 3), str)
    key: str = IdempotencyKey("k")
    print(key, RejectedToolCall)


def run_sync(round: ToolRound) -> list[ExecutionResult]:
    return ToolExecutor().run_sync(round.calls, dispatch)
