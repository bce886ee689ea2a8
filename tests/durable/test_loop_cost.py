"""What a round of a durable loop costs its store (rule P22)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from counting import functions_entered
from durable_toolkit import SCOPE

from lutumpy import Session, Toolset, tool, tool_fn
from lutumpy.durable import (
    Answered,
    DurableLoop,
    MemoryStore,
    PostgresStore,
    SqliteStore,
    postgres_transaction,
)
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools
from lutumpy.testing import Call, Reply, ScriptedModel

ROUNDS = 200


@tool_fn(effect="read")
async def look(word: str) -> str:
    """Look a word up."""
    return word


@tool_fn(effect="once")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class Desk(Toolset):
    look = tool(look)
    pay = tool(pay)


DISPATCH = Dispatcher(Desk)


class CountingStore(SqliteStore):
    """Writes down what each operation is called, and the size of what it says to the database."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.operations: list[tuple[str, int, int]] = []

    async def _run(self, operation: Any) -> Any:
        said: list[int] = []
        name = operation.__name__
        result = await super()._run(_listen(operation, said))
        self.operations.append((name, len(said), sum(said)))
        return result

    def rounds(self) -> list[list[tuple[str, int, int]]]:
        """The operations of each round, which ends with a commit."""
        found: list[list[tuple[str, int, int]]] = [[]]
        for operation in self.operations:
            found[-1].append(operation)
            if operation[0] == "commit":
                found.append([])
        return found


def _listen(operation: Any, said: list[int]) -> Any:
    try:
        query = next(operation)
        while True:
            values = query.parameters if query.many else [query.parameters]
            said.append(sum(len(str(value)) for row in values for value in row))
            query = operation.send((yield query))
    except StopIteration as done:
        return done.value


async def rounds_of(path: Path, replies: list[Reply]) -> list[list[tuple[str, int, int]]]:
    session = Session()
    session.push_user("go")
    async with CountingStore(path) as store:
        await store.create(SCOPE, session)
        llm = ScriptedModel([*replies, Reply(text="done")])
        loop = DurableLoop(store, llm, tools=Desk, dispatch=Dispatcher(Desk), max_rounds=1000)
        assert isinstance(await loop.run(SCOPE), Answered)
        return store.rounds()


@pytest.mark.pure
@pytest.mark.slow
async def test_a_round_that_reads_takes_three_transactions_of_few_statements_P22(
    tmp_path: Path,
) -> None:
    # Ids and arguments of one length, so that the sizes can be compared.
    replies = [
        Reply(calls=[Call("look", {"word": f"w{n:04}"}, id=f"call_{n:04}")]) for n in range(ROUNDS)
    ]
    rounds = await rounds_of(tmp_path / "a.db", replies)
    second, last = rounds[1], rounds[ROUNDS - 1]
    assert [name for name, _, _ in second] == ["record", "record", "commit"]
    assert [(name, count) for name, count, _ in last] == [
        (name, count) for name, count, _ in second
    ]
    assert sum(count for _, count, _ in second) <= 12
    sizes = [sum(size for _, _, size in operations) for operations in (second, last)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)


async def test_calls_that_run_once_have_a_marker_and_a_result_each_P5_P22(tmp_path: Path) -> None:
    calls = [Call("pay", {"amount": n}, id=f"call_{n}") for n in range(3)]
    rounds = await rounds_of(tmp_path / "a.db", [Reply(calls=calls)])
    first = [each for each in rounds[0] if each[0] not in ("create", "claim")]
    names = [name for name, _, _ in first]
    assert sorted(names) == ["begin"] * 3 + ["commit"] + ["record"] * 4
    assert sum(count for _, count, _ in first) <= 26


@pytest.mark.parametrize(
    ("calls", "most"),
    # A message carries what gives no rows with the next statement that does, or with COMMIT. Before
    # a record looked at its claim in the statement that writes it, they took 9 and 24.
    [
        ([Call("look", {"word": "w"})], 8),
        ([Call("pay", {"amount": number}, id=f"c{number}") for number in range(3)], 18),
    ],
    ids=["reads", "payments"],
)
async def test_a_round_sends_few_messages_to_postgres(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, calls: list[Call], most: int
) -> None:
    sent: list[int] = [0]
    committed: list[int] = []
    kind = postgres_transaction.Transaction
    send, commit = kind._send, PostgresStore.commit  # where all messages leave

    def count(self: Any) -> Any:
        sent[0] += 1
        return send(self)

    async def mark(self: Any, *args: Any, **options: Any) -> Any:
        done = await commit(self, *args, **options)
        committed.append(sent[0])
        return done

    monkeypatch.setattr(kind, "_send", count)
    monkeypatch.setattr(PostgresStore, "commit", mark)
    session = Session()
    session.push_user("go")
    async with PostgresStore(postgres_url, schema=f"cost{len(calls)}") as store:
        await store.create(SCOPE, session)
        replies = [Reply(calls=calls)] * 3
        llm = ScriptedModel([*replies, Reply(text="done")], check=False)
        await DurableLoop(store, llm, tools=Desk, dispatch=Dispatcher(Desk)).run(SCOPE)
    assert committed[2] - committed[1] <= most


def entered_in_a_round(calls: list[Call], *, kept: bool) -> float:
    """Functions of this package that a round enters: in a durable loop, or with `run_tools`."""

    async def conversation(rounds: int) -> None:
        session = Session()
        session.push_user("go")
        llm = ScriptedModel([*[Reply(calls=calls)] * rounds, Reply(text="done")], check=False)
        settings: dict[str, Any] = {"tools": Desk, "dispatch": DISPATCH, "max_rounds": 100}
        if kept:
            store = MemoryStore()
            await store.create(SCOPE, session)
            await DurableLoop(store, llm, **settings).run(SCOPE)
        else:
            await run_tools(session, llm, **settings)

    def total(rounds: int) -> int:
        found = functions_entered(lambda: asyncio.run(conversation(rounds)), but=("testing",))
        return sum(found.values())

    total(1)  # what is loaded at first use
    return (total(14) - total(4)) / 10


@pytest.mark.parametrize(
    ("calls", "most"),
    [
        ([Call("look", {"word": "w"})], 3.2),
        ([Call("pay", {"amount": number}) for number in range(3)], 4.1),
    ],
    ids=["reads", "payments"],
)
def test_a_round_enters_a_few_times_the_functions_of_run_tools(
    calls: list[Call], most: float
) -> None:
    """The store keeps everything in memory here, so a database's own work isn't in it."""
    ratio = entered_in_a_round(calls, kept=True) / entered_in_a_round(calls, kept=False)
    assert ratio <= most
