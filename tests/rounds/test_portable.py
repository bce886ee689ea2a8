"""Plans as data: written down and taken up again (rules P9, P12 to P15)."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import datetime, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
from every_api import ADAPTERS
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, field_validator

from lutumpy import (
    CallTicket,
    CommitError,
    Complete,
    Hold,
    NeedsTools,
    PlanError,
    Reject,
    RoundClosedError,
    RunNormally,
    Session,
    Signer,
    StaleRoundError,
    ToolInput,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, IdempotencyKey, ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel, render


class Item(BaseModel):
    name: str
    at: datetime = Field(default_factory=lambda: datetime.now(timezone.utc))
    count: int = Field(default=1, alias="howMany")


@tool_input(name="order")
class Order(ToolInput[str]):
    """Order things."""

    items: list[Item]
    note: str | None = None
    id: UUID = Field(default_factory=uuid4)


@tool_fn(effect="read")
def look(place: str, near: float = 1.5) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


@tool_fn(effect="idempotent")
def move(what: str, to: str = "here") -> dict[str, int]:
    """Move something."""
    return {"moved": 1}


@tool_fn
def wipe(volume: str, force: bool = False) -> None:
    """Wipe a volume."""


class Desk(Toolset):
    order = tool(Order)
    look = tool(look)
    move = tool(move)
    wipe = tool(wipe)


SIGNER = Signer("k1", b"0123456789abcdef0123456789abcdef")
KEYS = {"k1": SIGNER.secret}

ORDER = Call("order", {"items": [{"name": "nail", "howMany": 3}, {"name": "saw"}]}, id="call_1")
LOOK = Call("look", {"place": "the shed"}, id="call_2")
MOVE = Call("move", {"what": "the desk"}, id="call_3")
WIPE = Call("wipe", {"volume": "old"}, id="call_4")
UNKNOWN = Call("no_such_tool", {}, id="call_5")
WRONG = Call("look", {"place": 7}, id="call_6")
ALL = (ORDER, LOOK, MOVE, WIPE, UNKNOWN, WRONG)


def policy(call: Any) -> Any:
    """Holds one, completes one, edits one, lets the others pass."""
    if Desk.wipe.matches(call):
        return Hold("wiping is final")
    if Desk.move.matches(call):
        return Complete({"moved": 0})
    if Desk.look.matches(call):
        return RunNormally.edited(near=2.0)
    return RunNormally()


def rejects(call: Any) -> Any:
    return Reject("not today")


def read(
    *calls: Call, api: str = "openai_chat", decide: Any = policy
) -> tuple[Session, ToolRoundPlan[Any]]:
    """A session and the plan of one answer."""
    session = Session()
    session.push_system("You help.")
    session.push_user("go")
    turn = ADAPTERS[api].response(render(Reply(calls=calls), api, number=1, model="m"))
    outcome = Desk.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round.apply_hooks_sync(decide)


def load(data: Any, session: Any, **options: Any) -> ToolRoundPlan[Any]:
    return ToolRoundPlan.resume(data, session, tools=Desk, scope="s", **options)


def finish(plan: ToolRoundPlan[Any], session: Session) -> None:
    """Decide, run and commit what is left."""
    if plan.held:
        plan = plan.decide({call.metadata.id: RunNormally() for call in plan.held}, by="ann")
    plan.commit(session, [call.fail("not run here") for call in plan.pending])


def bytes_of(session: Session, api: str) -> str:
    return json.dumps(ADAPTERS[api].messages(session.transcript))


# --- there and back ----------------------------------------------------------------------------


@pytest.mark.parametrize("api", ADAPTERS)
@pytest.mark.parametrize("sign", [None, SIGNER])
def test_a_resumed_plan_dumps_to_the_same_bytes_and_commits_to_the_same_transcript_P12(
    api: str, sign: Signer | None
) -> None:
    session, plan = read(*ALL, api=api)
    other = Session.load(json.dumps(session.dump()))
    data = json.loads(json.dumps(plan.dump(scope="s", sign=sign)))
    twin = load(json.dumps(data), other, verify=KEYS if sign else None)
    assert json.dumps(twin.dump(scope="s", sign=sign)) == json.dumps(data)
    assert twin.decisions() == plan.decisions()
    assert [call.input for call in twin.pending] == [call.input for call in plan.pending]
    assert [call.metadata for call in twin.held] == [call.metadata for call in plan.held]
    assert [one.output for one in twin.handled] == [one.output for one in plan.handled]
    assert twin.issues == plan.issues
    finish(plan, session)
    finish(twin, other)
    assert bytes_of(session, api) == bytes_of(other, api)
    assert session.usage == other.usage
    assert other.transcript.failures("look", '{"place":7}') == 1


texts = st.text(max_size=20)
orders = st.lists(
    st.builds(lambda n, c: {"name": n, "howMany": c}, texts, st.integers()), max_size=3
)


@given(
    items=orders,
    note=st.none() | texts,
    place=texts,
    near=st.floats(allow_nan=False, allow_infinity=False),
    decide=st.sampled_from([policy, rejects, lambda call: Hold(), lambda call: RunNormally()]),
)
def test_any_plan_comes_back_as_it_was_P12(
    items: list[Any], note: str | None, place: str, near: float, decide: Any
) -> None:
    calls = [
        Call("order", {"items": items, "note": note}, id="a"),
        Call("look", {"place": place, "near": near}, id="b"),
        Call("look", {"place": place}, id="c"),
    ]
    session, plan = read(*calls, decide=decide)
    data = json.dumps(plan.suspend(scope="s"))
    twin = load(data, session)
    assert json.dumps(twin.dump(scope="s")) == data
    finish(twin, session)


def test_the_arguments_are_not_decoded_again_P12() -> None:
    session, plan = read(ORDER)
    before = plan.pending[0].input
    twin = load(plan.suspend(scope="s"), session)
    # A default_factory would give another id, and another time.
    assert twin.pending[0].input == before
    twin.discard()


def test_hooks_of_a_resumed_plan_see_and_restore_what_was_dumped_P12() -> None:
    session, plan = read(ORDER)
    before = plan.pending[0].input
    twin = load(plan.suspend(scope="s"), session)

    def breaks(call: Any) -> Any:
        call.input.note = "changed"
        raise RuntimeError("no")

    with pytest.raises(Exception, match="raised"):
        twin.apply_hooks_sync(breaks)
    assert twin.pending[0].input == before
    again = twin.apply_hooks_sync(rejects)
    assert again.decisions()[0]["decision"] == "rejected"
    again.discard()


@pytest.mark.parametrize("api", ADAPTERS)
def test_keys_are_equal_in_process_in_the_plan_and_in_tickets_P9(api: str) -> None:
    session, plan = read(ORDER, LOOK, MOVE, LOOK, api=api, decide=lambda call: RunNormally())
    seen: dict[str, str] = {}
    dispatch = Dispatcher(Desk)

    @dispatch.on(Desk.order)
    def order(input: Order, key: IdempotencyKey) -> str:
        seen["order"] = key
        return "ok"

    tickets = plan.tickets(scope="s")
    data = plan.dump(scope="s")
    keys = [call["key"] for call in data["calls"]]  # type: ignore[index,union-attr,call-overload]
    assert [ticket.key for ticket in tickets] == keys
    assert len(set(keys)) == 4
    twin = load(plan.suspend(scope="s"), session)
    assert [call.key for call in twin.pending] == keys
    assert [ticket.key for ticket in twin.tickets(scope="s")] == keys
    results = ToolExecutor(scope="s").run_sync(twin.pending, dispatch)
    assert seen["order"] == keys[0]
    twin.commit(session, results)
    again, fresh = read(ORDER, LOOK, MOVE, LOOK, api=api, decide=lambda call: RunNormally())
    # `order` has a default that is made anew: it doesn't count, since the model didn't write it.
    results = ToolExecutor(scope="s").run_sync(fresh.pending, dispatch)
    assert seen["order"] == keys[0]
    fresh.commit(again, results)


def test_a_ticket_comes_back_from_json() -> None:
    _, plan = read(ORDER, WIPE, decide=lambda call: RunNormally())
    for ticket in plan.tickets(scope="s"):
        assert CallTicket.load(json.loads(json.dumps(ticket.dump()))) == ticket
    first, second = plan.tickets(scope="s")
    assert (first.tool, first.effect, second.effect) == ("order", "once", "once")
    assert first.tool_digest == Desk.order.definition.digest
    plan.discard()


# --- open and closed ---------------------------------------------------------------------------


def test_a_suspended_plan_is_closed_without_a_warning() -> None:
    session, plan = read(WIPE)
    plan.suspend(scope="s")
    uses: list[Callable[[ToolRoundPlan[Any]], Any]] = [
        lambda plan: plan.dump(scope="s"),
        lambda plan: plan.suspend(scope="s"),
        lambda plan: plan.discard(),
        lambda plan: plan.commit(session, []),
        lambda plan: plan.decide({}, by="ann"),
    ]
    for use in uses:
        with pytest.raises(RoundClosedError, match="handed over to a dump"):
            use(plan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del plan
        gc.collect()
    session.transcript.refuse_dropped()


def test_dumping_leaves_a_plan_open() -> None:
    session, plan = read(LOOK)
    plan.dump(scope="s")
    plan.commit(session, [call.complete("x") for call in plan.pending])


def test_a_round_without_hooks_can_be_written_down_too() -> None:
    session = Session()
    session.push_user("go")
    turn = OpenAIChat.response(render(Reply(calls=[LOOK]), "openai_chat", number=1, model="m"))
    outcome = Desk.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    twin = load(outcome.round.suspend(scope="s"), session)
    twin.commit(session, [call.complete("x") for call in twin.pending])


def test_ephemerals_under_signed_reasoning_stay_for_a_suspended_round_S4() -> None:
    session = Session()
    session.push_user("go")
    session.push_ephemeral_user("be brief")
    reply = Reply(calls=[LOOK], reasoning="hm")
    model = ScriptedModel([reply], api="anthropic_messages")
    outcome = session.text_turn(model, tools=Desk).collect_sync()
    assert isinstance(outcome, NeedsTools)
    count = len(session.transcript)
    plan = outcome.round.apply_hooks_sync(lambda call: RunNormally())
    data = plan.suspend(scope="s")
    assert len(session.transcript) == count
    loaded = Session.load(json.dumps(session.dump()))
    twin = load(data, loaded)
    twin.commit(loaded, [call.complete("x") for call in twin.pending])
    assert loaded.transcript[count].reasoning_dropped is False  # type: ignore[union-attr]


def test_a_session_that_was_saved_before_the_request_counts_the_answer_once_U1() -> None:
    session = Session()
    session.push_user("go")
    session.push_ephemeral_user("be brief")
    saved = session.dump()
    model = ScriptedModel([Reply(calls=[LOOK])])
    outcome = session.text_turn(model, tools=Desk).collect_sync()
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(lambda call: RunNormally())
    data = plan.suspend(scope="s")
    loaded = Session.load(saved)
    twin = load(data, loaded, counted=False)
    assert loaded.usage == session.usage
    assert len(loaded.transcript) == len(session.transcript)
    twin.commit(loaded, [call.complete("x") for call in twin.pending])
    assert loaded.usage == session.usage


# --- refused -----------------------------------------------------------------------------------


@tool_fn
def log_in(name: str, password: SecretStr) -> str:
    """Log in."""
    return "in"


class Doubled(ToolInput[str]):
    """Each reading doubles it."""

    n: int

    @field_validator("n")
    @classmethod
    def twice(cls, value: int) -> int:
        return value * 2


@pytest.mark.parametrize(
    ("declared", "arguments"),
    [
        (log_in, {"name": "ann", "password": "x"}),
        (tool_input(name="doubled")(Doubled), {"n": 1}),
    ],
)
def test_an_input_that_does_not_survive_json_is_not_portable_P12(
    declared: Any, arguments: Any
) -> None:
    class Own(Toolset):
        it = tool(declared)

    session = Session()
    session.push_user("go")
    name = Own.selectors()[0].name
    reply = Reply(calls=[Call(name, arguments, id="x")])
    turn = OpenAIChat.response(render(reply, "openai_chat", number=1, model="m"))
    outcome = Own.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    plan: Any = outcome.round.apply_hooks_sync(lambda call: RunNormally())
    for write in (plan.dump, plan.suspend, plan.tickets):
        with pytest.raises(PlanError) as raised:
            write(scope="s")
        assert raised.value.kind == "not_portable"
        assert name in str(raised.value)
    plan.discard()  # still open


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    twin = deepcopy(data)
    place = twin
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return twin


def without_digest(data: Any) -> Any:
    """The dump with a digest that fits its content, as anybody can make it."""
    from lutumpy.tools.signing import seal

    twin = {key: value for key, value in data.items() if key != "digest"}
    signature = twin.pop("signature", None)
    seal(twin, None)
    return {**twin, "signature": signature} if signature is not None else twin


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path, value


def another(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return "x"
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}x" if isinstance(value, str) else "x"


def test_every_leaf_that_is_changed_is_refused_under_verify_P15() -> None:
    session, plan = read(*ALL)
    data = json.loads(json.dumps(plan.suspend(scope="s", sign=SIGNER)))
    seen = 0
    for path, value in leaves(data):
        seen += 1
        twin = changed(data, path, another(value))
        variants = [twin] if path[0] in ("digest", "signature") else [twin, without_digest(twin)]
        for variant in variants:
            with pytest.raises(PlanError):
                load(variant, session, verify=KEYS)
    assert seen > 60
    load(data, session, verify=KEYS).discard()


def test_without_verify_accidents_are_noticed_P15() -> None:
    session, plan = read(*ALL)
    data = json.loads(json.dumps(plan.suspend(scope="s")))
    for path, value in leaves(data):
        with pytest.raises(PlanError):
            load(changed(data, path, another(value)), session)
    load(data, session).discard()


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("junk", [None, True, 7, "x", [], {}, [[]], {"a": 1}, -1, 1e300])
def test_whatever_a_dump_holds_it_is_a_plan_error_P13(junk: Any) -> None:
    session, plan = read(*ALL)
    data = json.loads(json.dumps(plan.suspend(scope="s")))
    length, usage = len(session.transcript), session.usage
    for path, _ in leaves(data):
        for depth in range(1, len(path) + 1):
            try:
                twin = load(without_digest(changed(data, path[:depth], junk)), session)
            except PlanError:
                continue
            # It says the same in another way, or something that is as good.
            twin.discard()
    assert (len(session.transcript), session.usage) == (length, usage)


def test_a_dump_that_is_spelled_otherwise_is_the_same_P13() -> None:
    session, plan = read(LOOK)
    data = plan.suspend(scope="s", sign=SIGNER)
    text = json.dumps(dict(reversed(list(data.items()))), indent=3)
    assert json.loads(text)["calls"][0]["input"]["near"] == 2.0
    for spelled in (text, text.encode(), text.replace("2.0", "2")):
        load(spelled, session, verify=KEYS).discard()


class Other(Toolset):
    order = tool(Order)


def refused(kind: str, session: Any, data: Any, **options: Any) -> PlanError:
    with pytest.raises(PlanError) as raised:
        ToolRoundPlan.resume(data, session, **{"tools": Desk, "scope": "s", **options})
    assert raised.value.kind == kind
    return raised.value


def test_each_kind_has_its_reason_P13() -> None:
    session, plan = read(LOOK, ORDER)
    data: Any = plan.dump(scope="s", sign=SIGNER)
    refused("format", session, "{")
    refused("format", session, "[]")
    refused("format", session, {"format": "lutumpy.session"})
    refused("version", session, {**data, "version": 2})
    refused("version", session, {**data, "version": True})
    unsigned = {key: value for key, value in data.items() if key != "signature"}
    refused("unsigned", session, unsigned, verify=KEYS)
    refused("unsigned", session, data, verify={"k2": b"other"})
    refused("unsigned", session, data, verify={})
    refused("tampered", session, data, verify={"k1": b"another secret"})
    refused("tampered", session, {**data, "scope": "t"})
    refused("scope", session, data, scope="t")
    refused("position", Session(), data)
    other = Session()
    other.push_user("something else")
    other.push_user("go")
    refused("position", other, data)
    error = refused("schema", session, data, tools=Other)
    assert error.tools == ("look",)
    bad = without_digest(changed(unsigned, ("calls", 0, "input"), {"place": 7}))
    refused("input", session, bad)
    plan.commit(session, [call.fail("x") for call in plan.pending])
    refused("committed", session, data)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("calls", 0, "tool"), "move", "its calls are not those of its turn"),
        (("calls", 2, "result", "status"), "ok", "the result of a rejected call has the status"),
        (("calls", 2, "source"), "fate", "the source of a decision is 'fate'"),
        (("calls", 3, "reason"), "boredom", "no issue has the reason 'boredom'"),
        (("calls", 3, "repeat"), -1, "and -1 repeats"),
    ],
    ids=str,
)
def test_what_a_dump_says_of_its_calls_has_to_fit_P13(path: Any, value: Any, words: str) -> None:
    def decide(call: Any) -> Any:
        return Reject("no") if Desk.wipe.matches(call) else RunNormally()

    session, plan = read(LOOK, MOVE, WIPE, UNKNOWN, decide=decide)
    data = plan.suspend(scope="s")
    assert words in str(refused("format", session, without_digest(changed(data, path, value))))
    without_id = {name: of for name, of in data["calls"][0].items() if name != "call_id"}
    without = without_digest(changed(data, ("calls", 0), without_id))
    assert "'call_id' is missing" in str(refused("format", session, without))
    with pytest.raises(ValueError, match="'refuse' or 'reject', not 'ignore'"):
        load(data, session, drift="ignore")
    load(data, session).discard()


def test_ephemerals_before_the_round_do_not_move_where_it_begins_K4() -> None:
    session, plan = read(LOOK)
    data = plan.suspend(scope="s")
    fuller = Session.load(session.dump())
    fuller.push_ephemeral_user("by the way")
    fuller.push_user("are you there?")
    twin = load(data, fuller)
    twin.commit(fuller, [call.complete("x") for call in twin.pending], rebase=True)
    assert len(fuller.turns()) == 1


def test_items_that_were_added_do_not_refuse_a_dump_K4() -> None:
    session, plan = read(LOOK)
    data = plan.suspend(scope="s")
    session.push_user("are you there?")
    twin = load(data, session)
    results = [call.complete("x") for call in twin.pending]
    with pytest.raises(StaleRoundError):
        twin.commit(session, results)
    twin.commit(session, results, rebase=True)
    assert len(session.turns()) == 1


def test_a_plan_that_was_taken_up_twice_is_committed_once_P3() -> None:
    session, plan = read(LOOK)
    data = plan.dump(scope="s")
    twin = load(data, session)
    results = [call.complete("x") for call in twin.pending]
    twin.commit(session, results)
    for rebase in (False, True):
        with pytest.raises(StaleRoundError):
            plan.commit(session, results, rebase=rebase)
    plan.discard()
    assert len(session.turns()) == 1


def test_a_held_call_is_still_held_after_a_dump() -> None:
    session, plan = read(WIPE)
    twin = load(plan.suspend(scope="s"), session)
    with pytest.raises(CommitError):
        twin.commit(session, [])
    decided = twin.decide({"call_4": RunNormally.edited(force=True)}, by="ann")
    again = load(decided.suspend(scope="s"), session)
    assert again.pending[0].input.force is True
    (described,) = again.decisions()
    assert (described["decision"], described["by"]) == ("edited", "ann")
    again.discard()


# --- drift -------------------------------------------------------------------------------------


def drifted() -> Any:
    @tool_fn(name="look", effect="read")
    def other_look(place: str, near: float = 1.5, far: bool = False) -> str:
        """Look somewhere."""
        return ""

    class Changed(Toolset):
        order = tool(Order)
        look = tool(other_look)
        wipe = tool(wipe)

    return Changed


def test_only_tools_that_are_called_matter_P14() -> None:
    session, plan = read(WIPE)
    data = plan.suspend(scope="s")
    # `look` is another one there, and `move` is gone.
    again: Any = ToolRoundPlan.resume(data, session, tools=drifted(), scope="s")
    finish(again, session)


def test_a_changed_tool_refuses_the_dump_or_its_calls_P14() -> None:
    session, plan = read(LOOK, WIPE)
    data = plan.suspend(scope="s")
    assert refused("schema", session, data, tools=drifted()).tools == ("look",)
    twin: Any = ToolRoundPlan.resume(data, session, tools=drifted(), scope="s", drift="reject")
    (issue,) = twin.issues
    assert (issue.metadata.name, issue.reason) == ("look", "not_available")
    assert "changed while" in issue.detail
    assert [call.metadata.name for call in twin.held] == ["wipe"]
    finish(twin, session)


def test_the_effect_is_part_of_what_was_decided_on_P14() -> None:
    @tool_fn(name="wipe", effect="read")
    def harmless(volume: str, force: bool = False) -> None:
        """Wipe a volume."""

    class Changed(Toolset):
        wipe = tool(harmless)

    session, plan = read(WIPE)
    refused("schema", session, plan.suspend(scope="s"), tools=Changed)


# --- signers -----------------------------------------------------------------------------------


def test_a_signer_hides_its_secret() -> None:
    assert "0123" not in repr(SIGNER)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Signer("", b"x"), ValueError),
        (lambda: Signer("k", b""), ValueError),
        (lambda: Signer(1, b"x"), TypeError),  # type: ignore[arg-type]
        (lambda: Signer("k", "text"), TypeError),  # type: ignore[arg-type]
    ],
)
def test_a_signer_needs_an_id_and_a_secret(make: Callable[[], Any], error: Any) -> None:
    with pytest.raises(error):
        make()


def test_scope_and_signer_are_checked_first() -> None:
    _, plan = read(LOOK)
    with pytest.raises(TypeError, match="scope="):
        plan.dump(scope=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sign="):
        plan.dump(scope="s", sign=b"secret")  # type: ignore[arg-type]
    plan.discard()
