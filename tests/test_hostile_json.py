"""Whatever stands in the JSON of a stranger, reading it raises the documented error, or none.

NaN, infinities, numbers of hundreds and thousands of digits, halves of surrogate pairs and deep
nesting, each in every place of a plan, a ticket, a session's dump and a lock file (P13, R4).
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from lutumpy import (
    CallTicket,
    Complete,
    DeclarationError,
    Hold,
    NeedsTools,
    PlanError,
    Reject,
    RunNormally,
    Session,
    Signer,
    ToolRoundPlan,
    Toolset,
    TranscriptError,
    tool,
    tool_fn,
)
from lutumpy.errors import LutumpyError
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.tool_doctor import Lock
from lutumpy.tools.signing import seal

MARK = "@@MARK@@"
TEXTS = [
    "NaN", "-Infinity", "1e999", "9" * 400, "-" + "9" * 400, "9" * 5000, '"\\ud800"', "-1", "true",
    "null", "[]", "{}", "1.5", '""', '{"a": NaN}', "[" * 900 + "]" * 900, "[" * 9000 + "]" * 9000,
]  # fmt: skip
VALUES = [math.nan, math.inf, 10**400, 10**5000, -1, [10**5000], {"a": math.nan}]


class Place(BaseModel):
    x: int
    y: float = 1.0


@tool_fn
def pay(amount: int, at: Place, to: str = "x", tip: float = 2.5) -> float:
    """Pay."""
    return 1.0


@tool_fn(effect="read")
def look(n: int) -> str:
    """Look."""
    return ""


class Tools(Toolset):
    pay = tool(pay)
    look = tool(look)


CALLS = [
    Call("pay", {"amount": 1, "at": {"x": 1}}),
    Call("look", {"n": 1}),
    Call("look", {"n": 2}),
    Call("look", {"n": "x"}),
    Call("pay", {"amount": 2, "at": {"x": 2}}),
]


def decide(call: Any) -> Any:
    if call.metadata.name == "look":
        return Complete("seen") if call.input.n == 1 else Reject("no")
    return Hold("is it right?") if call.input.amount == 1 else RunNormally()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    holder = changed
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    return changed


def spoilt(document: Any) -> Iterator[Any]:
    """The document with each place spoilt in each way, as text and as values."""
    for path in places(document):
        text = json.dumps(with_value(document, path, MARK))
        for written in TEXTS:
            yield text.replace(f'"{MARK}"', written)
        for value in VALUES:
            yield with_value(document, path, value)


def sealed(document: Any) -> Any:
    """The plan with the digest of what it says now; `None` where it isn't JSON."""
    try:
        plan = json.loads(document) if isinstance(document, str) else dict(document)
        del plan["digest"]
        seal(plan, None)
    except Exception:
        return None
    return plan


def refused_count(documents: Iterator[Any], load: Callable[[Any], Any], error: Any) -> int:
    refused = 0
    for document in documents:
        if document is None:
            continue
        try:
            load(document)
        except error:
            refused += 1
    return refused


@pytest.fixture
def session() -> Session:
    found = Session()
    found.push_user("Pay.")
    return found


@pytest.fixture
def plan(session: Session) -> Iterator[Any]:
    outcome = session.text_turn(ScriptedModel([Reply(calls=CALLS)]), tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)

    made: Any = outcome.round.apply_hooks_sync(decide)
    yield made
    made.discard()


@pytest.mark.pure
@pytest.mark.slow
def test_a_plan_is_taken_up_or_a_plan_error_P13(session: Session, plan: Any) -> None:
    dump = json.loads(json.dumps(plan.dump(scope="s")))

    def load(data: Any) -> None:
        twin = ToolRoundPlan.resume(data, session, tools=Tools, scope="s")
        try:
            json.dumps(twin.dump(scope="s"), allow_nan=False)
            for ticket in twin.tickets(scope="s"):
                CallTicket.load(json.loads(json.dumps(ticket.dump(), allow_nan=False)))
        except PlanError as error:
            raise AssertionError("it can't be written down again") from error
        finally:
            twin.discard()

    load(dump)
    # Some of them: there are many.
    assert refused_count(islice(spoilt(dump), 0, None, 9), load, PlanError) > 150
    assert refused_count(map(sealed, islice(spoilt(dump), 1, None, 9)), load, PlanError) > 100


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_json_has_not_is_no_plan_P13(
    session: Session, plan: Any, number: str
) -> None:
    signer = Signer("k", b"x" * 32)
    text = json.dumps(plan.dump(scope="s", sign=signer)).replace(
        '"amount": 1', f'"amount": {number}'
    )
    for options in ({}, {"verify": {"k": signer.secret}}):
        for data in (text, text.encode(), json.loads(text)):
            with pytest.raises(PlanError, match="not JSON") as raised:
                ToolRoundPlan.resume(data, session, tools=Tools, scope="s", **options)
            assert raised.value.kind == "format"


def test_a_ticket_is_read_or_a_value_error(plan: Any) -> None:
    for ticket in plan.tickets(scope="s"):
        dump = json.loads(json.dumps(ticket.dump()))

        def load(data: Any) -> None:
            found = CallTicket.load(json.loads(data) if isinstance(data, str) else data)
            assert found.timeout > 0
            assert found.timeout == math.inf or math.isfinite(float(found.timeout))
            assert 0 <= found.max_retries < 2**63

        assert refused_count(spoilt(dump), load, (ValueError, RecursionError)) > 100
        for timeout in (math.nan, -1, 0, 10**400):
            with pytest.raises(ValueError, match="timeout of the ticket"):
                CallTicket.load({**dump, "timeout": timeout})


@pytest.mark.pure
@pytest.mark.slow
def test_a_session_is_loaded_or_a_transcript_error_R4(session: Session) -> None:
    turn = session.text_turn(ScriptedModel([Reply(calls=CALLS[:2])]), tools=Tools)
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    first, second = outcome.round.calls
    outcome.round.commit(session, [first.complete(1.0), second.complete("seen")])
    dump = json.loads(json.dumps(session.dump()))

    def load(data: Any) -> None:
        found = Session.load(data)
        assert found.usage.all_input_tokens >= 0
        json.dumps(found.dump(), allow_nan=False)

    assert refused_count(islice(spoilt(dump), 0, None, 5), load, TranscriptError) > 200


def test_a_lock_file_is_read_or_a_named_error(tmp_path: Path) -> None:
    document = json.loads(Lock({}).with_toolset("m:Tools", Tools).text())
    path = tmp_path / "lock.json"

    def load(data: Any) -> None:
        path.write_text(data)
        Lock.read(path)

    texts = (one for one in spoilt(document) if isinstance(one, str))
    assert refused_count(islice(texts, 0, None, 5), load, LutumpyError) > 60


def test_a_timeout_that_no_float_holds_is_refused_where_it_is_declared() -> None:
    for timeout in (10**400, math.nan, 0, -(10**400)):
        with pytest.raises(DeclarationError, match="timeout must be"):
            tool_fn(timeout=timeout)(lambda: None)
