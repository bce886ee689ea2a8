"""The tests of the SQLite agent, as an application has them: a scripted model, a real file, no
network.

Run:    python -m pytest examples/sqlite_agent
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lutumpy import AdapterError, HookError
from lutumpy.testing import Call, Failure, Reply, ScriptedModel

from .agent import Agent, NoAnswerError
from .database import Database, StatementError
from .sample import make_sample
from .tools import Change

PAID = "UPDATE orders SET paid = 1 WHERE id = 2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_sample(tmp_path / "shop.db")


@pytest.fixture
def readable(path: Path) -> Iterator[Database]:
    with Database(path) as database:
        yield database


@pytest.fixture
def writable(path: Path) -> Iterator[Database]:
    with Database(path, writable=True) as database:
        yield database


def unpaid(path: Path) -> list[int]:
    """What another program finds in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return [
            number
            for (number,) in connection.execute("SELECT id FROM orders WHERE NOT paid ORDER BY id")
        ]


def yes(change: Change, rows: int) -> bool:
    return True


def calls(*written: Call) -> ScriptedModel:
    return ScriptedModel([Reply(calls=written), Reply(text="Done.")])


def told(llm: ScriptedModel) -> list[str]:
    """What the model was told about its calls in the last request."""
    return [
        message["content"] for message in llm.requests[-1]["messages"] if message["role"] == "tool"
    ]


def offered(llm: ScriptedModel) -> list[str]:
    return [tool["function"]["name"] for tool in llm.requests[-1]["tools"]]


# --- reading --------------------------------------------------------------------------------------


def test_a_question_is_answered_from_the_file(readable: Database) -> None:
    llm = calls(
        Call("schema"),
        Call("query", {"sql": "SELECT name FROM customers ORDER BY name", "at_most": 2}),
    )
    assert Agent(llm, readable).ask("Who are our customers?") == "Done."
    schema, rows = told(llm)
    assert "CREATE TABLE customers" in schema
    assert rows == '{"columns":["name"],"rows":[["Ada"],["Edsger"]],"more":true}'


def test_a_statement_that_sqlite_refuses_is_told_to_the_model(readable: Database) -> None:
    llm = calls(
        Call("query", {"sql": "SELECT colour FROM customers"}),
        Call("query", {"sql": "SELECT 1", "at_most": 0}),
    )
    Agent(llm, readable).ask("?")
    assert told(llm) == [
        "Tool call rejected: SQLite: no such column: colour",
        "Tool call rejected: at_most: Input should be greater than or equal to 1 (got 0)",
    ]


def test_a_private_column_is_not_read_however_the_query_is_written(readable: Database) -> None:
    queries = [
        "SELECT phone FROM customers",
        "SELECT * FROM customers",
        "SELECT PHONE AS name FROM CUSTOMERS",
        "SELECT name FROM customers WHERE phone LIKE '555%'",
        "WITH c AS (SELECT * FROM customers) SELECT count(*) FROM c GROUP BY phone",
    ]
    llm = calls(*[Call("query", {"sql": sql}) for sql in queries])
    Agent(llm, readable, private=["customers.phone"]).ask("Give me the phone numbers.")
    assert told(llm) == ["Tool call rejected: private: customers.phone"] * len(queries)


# --- read-only ------------------------------------------------------------------------------------


def test_a_read_only_agent_does_not_offer_changes_and_answers_those_that_come(
    path: Path, readable: Database
) -> None:
    llm = calls(Call("change", {"sql": PAID, "why": "?"}))
    Agent(llm, readable, consent=yes).ask("Ada has paid.")
    assert offered(llm) == ["schema", "query"]
    assert told(llm) == [
        "Tool call rejected: The tool change is not available in this turn. Available tools: "
        "schema, query."
    ]
    assert unpaid(path) == [2, 3]


@pytest.mark.parametrize(
    "sql",
    [
        PAID,
        "DROP TABLE orders",
        "ATTACH DATABASE 'other.db' AS other",
        "PRAGMA query_only = 0",
        "SELECT * FROM pragma_table_info('orders')",
        "BEGIN",
        "SELECT 1; DELETE FROM orders",
        "SELECT load_extension('evil')",
        "SELECT\0 1",
    ],
)
def test_a_query_can_do_nothing_but_read(path: Path, writable: Database, sql: str) -> None:
    before = path.read_bytes()
    with pytest.raises(StatementError):
        writable.query(sql, 10)
    assert path.read_bytes() == before
    assert not path.with_name("other.db").exists()


def test_a_query_that_does_not_end_is_ended(path: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    with Database(path, max_steps=100_000) as database:
        with pytest.raises(StatementError, match="interrupted"):
            database.query(endless, 10)
        assert database.query("SELECT 1", 10).rows == [
            [1]
        ]  # the next one has all of the limit again


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for writable in (False, True):
        with pytest.raises(sqlite3.OperationalError):
            Database(tmp_path / "typo.db", writable=writable)
    assert list(tmp_path.iterdir()) == []


# --- writing --------------------------------------------------------------------------------------


def test_a_change_with_consent_is_in_the_file(path: Path, writable: Database) -> None:
    asked: list[tuple[str, int]] = []

    def consent(change: Change, rows: int) -> bool:
        asked.append((change.why, rows))
        assert unpaid(path) == [2, 3]  # it is asked before
        return True

    llm = calls(Call("change", {"sql": PAID, "why": "Ada has paid."}))
    assert Agent(llm, writable, consent=consent).ask("Ada has paid.") == "Done."
    assert offered(llm) == ["schema", "query", "change"]
    assert asked == [("Ada has paid.", 1)]
    assert told(llm) == ['{"rows":1}']
    assert unpaid(path) == [3]


def test_without_consent_nothing_changes(path: Path, writable: Database) -> None:
    llm = calls(Call("change", {"sql": PAID, "why": "Ada has paid."}))
    Agent(llm, writable).ask("Ada has paid.")
    assert told(llm) == ["Tool call rejected: the user does not want this change"]
    assert unpaid(path) == [2, 3]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "DELETE FROM orders",
            "it would change 4 rows, and 2 are allowed; was a condition forgotten?",
        ),
        (
            "UPDATE orders SET paid = 1; DROP TABLE orders",
            "SQLite: You can only execute one statement at a time.",
        ),
        ("DROP TABLE orders", "SQLite: not authorized"),
        ("SELECT 1", "this is neither INSERT, UPDATE nor DELETE"),
        ("COMMIT", "SQLite: not authorized"),
        (
            "UPDATE orders SET customer = NULL",
            "SQLite: NOT NULL constraint failed: orders.customer",
        ),
    ],
)
def test_a_change_that_does_not_hold_never_comes_before_the_user(
    path: Path, writable: Database, sql: str, reason: str
) -> None:
    def consent(change: Change, rows: int) -> bool:
        raise AssertionError("the user was asked")

    llm = calls(Call("change", {"sql": sql, "why": "?"}))
    before = path.read_bytes()
    Agent(llm, writable, consent=consent, most_rows=2).ask("?")
    assert told(llm) == [f"Tool call rejected: {reason}"]
    assert path.read_bytes() == before


def test_what_was_tried_as_a_change_is_still_no_query(path: Path, writable: Database) -> None:
    assert writable.change(PAID, dry_run=True) == 1
    with pytest.raises(StatementError):
        writable.query(PAID, 10)
    assert unpaid(path) == [2, 3]


# --- when something goes wrong --------------------------------------------------------------------


def test_a_user_who_walks_away_leaves_no_trace(path: Path, writable: Database) -> None:
    def consent(change: Change, rows: int) -> bool:
        raise KeyboardInterrupt

    agent = Agent(calls(Call("change", {"sql": PAID, "why": "?"})), writable, consent=consent)
    with pytest.raises(KeyboardInterrupt):
        agent.ask("Ada has paid.")
    assert unpaid(path) == [2, 3]
    assert agent.session.turns() == []


def test_a_check_that_breaks_lets_nothing_pass(path: Path, writable: Database) -> None:
    def consent(change: Change, rows: int) -> bool:
        raise ConnectionError("the window is gone")

    agent = Agent(calls(Call("change", {"sql": PAID, "why": "?"})), writable, consent=consent)
    with pytest.raises(HookError, match="the window is gone"):
        agent.ask("Ada has paid.")
    assert unpaid(path) == [2, 3]


def test_an_interrupt_between_two_changes_does_not_lose_the_first(
    path: Path, writable: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, done = writable.change, 0

    def change(sql: str, *, dry_run: bool = False) -> int:
        nonlocal done
        done += not dry_run
        if done == 2:
            raise KeyboardInterrupt
        return real(sql, dry_run=dry_run)

    monkeypatch.setattr(writable, "change", change)
    third = "UPDATE orders SET paid = 1 WHERE id = 3"
    llm = calls(
        Call("change", {"sql": PAID, "why": "?"}), Call("change", {"sql": third, "why": "?"})
    )
    agent = Agent(llm, writable, consent=yes)
    with pytest.raises(KeyboardInterrupt):
        agent.ask("Both have paid.")
    assert unpaid(path) == [3]
    assert agent.ask("Go on.") == "Done."
    assert told(llm) == ['{"rows":1}', "it was interrupted, and changed nothing"]


def test_a_provider_that_fails_leaves_the_conversation_as_it_was(readable: Database) -> None:
    llm = ScriptedModel([Failure(503, "Overloaded."), Reply(text="Three.")])
    agent = Agent(llm, readable)
    with pytest.raises(AdapterError) as failed:
        agent.ask("How many customers are there?")
    assert failed.value.retryable
    assert agent.ask("I asked you something.") == "Three."


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(refusal="I won't."), "the model stopped \\(refusal\\): I won't."),
        (Reply(text="There are", finish="length"), "the model stopped \\(length\\): There are"),
        (Reply(calls=[Call("schema")]), "no answer after 2 rounds"),
    ],
)
def test_what_is_no_answer_is_said(readable: Database, reply: Reply, reason: str) -> None:
    script: list[Any] = [reply] * 2
    with pytest.raises(NoAnswerError, match=reason):
        Agent(ScriptedModel(script), readable, max_rounds=2).ask("How many customers are there?")


def test_what_is_told_of_the_calls_comes_in_their_order(readable: Database) -> None:
    lines: list[str] = []
    llm = calls(
        Call("query", {"sql": "SELECT 1 AS one"}),
        Call("drop_everything"),
        Call("query", {"sql": "?"}),
    )
    Agent(llm, readable, tell=lines.append).ask("?")
    assert [line.split(":")[0] for line in lines] == [
        "query ok",
        "drop_everything rejected",
        "query rejected",
    ]
