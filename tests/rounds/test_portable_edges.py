"""The rarer members of a plan that is written down: requests for approval, issues alone, outputs of
many types, and what hostile dumps hold of them (rules P12, P13, K3).
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from lutumpy import (
    Complete,
    DynamicTool,
    Hold,
    HookError,
    ImagePart,
    NeedsTools,
    PlanError,
    Reject,
    RunNormally,
    Session,
    TakenOverError,
    TextPart,
    ToolInput,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    text_tool,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.errors import StoreError
from lutumpy.execution import ExecutionResult
from lutumpy.models import ToolMetadata
from lutumpy.testing import Call, Reply, render
from lutumpy.tools import NotPortable, call_arguments, load_input
from lutumpy.tools.portable_input import dump_input

API = "openai_responses"
WIKI = Call("ask", {"q": "tools"}, id="mcpr_1", server_label="wiki")


class Point(BaseModel):
    x: int
    y: int = 0


@tool_fn(effect="read")
def where(name: str) -> Point:
    """Where something is."""
    return Point(x=1)


@tool_fn(effect="read")
def draw(name: str) -> ImagePart | list[TextPart]:
    """Draw something."""
    return [TextPart("x")]


@tool_fn(effect="read")
def count() -> int:
    """Count."""
    return 1


@text_tool
def note(text: str) -> None:
    """Take a note."""


class Desk(Toolset):
    where = tool(where)
    draw = tool(draw)
    count = tool(count)
    note = tool(note)


def read(*calls: Call, tools: Any = Desk) -> tuple[Session, Any]:
    session = Session()
    session.push_user("Look it up.")
    reply = render(Reply(calls=calls), API, number=1, model="m")
    outcome = tools.offer().read(OpenAIResponses.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def there_and_back(plan: Any, session: Session, tools: Any = Desk) -> Any:
    data = json.loads(json.dumps(plan.suspend(scope="s")))
    twin: Any = ToolRoundPlan.resume(data, session, tools=tools, scope="s")
    assert twin.dump(scope="s") == data
    return twin


# --- requests for approval ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "word"),
    [(RunNormally(), "pending"), (Complete(True), "approved"), (Reject("no"), "rejected")],
)
def test_a_request_for_approval_is_written_down(decision: Any, word: str) -> None:
    session, round = read(WIKI)
    twin = there_and_back(round.apply_hooks_sync(lambda call: decision), session)
    (described,) = twin.decisions()
    assert (described["decision"], described["server_label"]) == (word, "wiki")
    results = [request.approve() for request in twin.approvals]
    twin.commit(session, results)
    assert OpenAIResponses.request(session.transcript)["input"][-1]["approve"] is (
        word != "rejected"
    )


def test_a_person_approves_what_a_hook_holds() -> None:
    for decision, approved in ((Complete(True), True), (Reject("no"), False)):
        session, round = read(WIKI)
        plan = round.apply_hooks_sync(lambda call: Hold("a stranger's server"))
        assert plan.decisions()[0]["decision"] == "held"
        assert plan.decisions()[0]["reason"] == "a stranger's server"
        twin = there_and_back(plan, session)
        assert len(twin.approvals) == 1
        assert twin.held == ()
        with pytest.raises(HookError, match="ann on call"):
            twin.decide({"mcpr_1": Complete(1)}, by="ann")
        decided = twin.decide({"mcpr_1": decision}, by="ann")
        (described,) = decided.decisions()
        assert next(hook["did"] for hook in described["hooks"]) == "held"
        assert (described["by"], described["source"]) == ("ann", "person")
        again = there_and_back(decided, session)
        assert [one["by"] for one in again.decisions()] == ["ann"]
        again.commit(session, [])
        sent = OpenAIResponses.request(session.transcript)["input"][-1]
        assert sent["approve"] is approved


def test_a_held_request_may_be_answered_at_commit() -> None:
    session, round = read(WIKI)
    plan = round.apply_hooks_sync(lambda call: Hold())
    plan.commit(session, [plan.approvals[0].approve()])
    assert OpenAIResponses.request(session.transcript)["input"][-1]["approve"] is True


def test_a_person_may_leave_a_request_to_the_next() -> None:
    session, round = read(WIKI)
    plan = round.apply_hooks_sync(lambda call: Hold())
    passed = plan.decide({"mcpr_1": RunNormally()}, by="ann")
    (described,) = passed.decisions()
    assert (described["decision"], described["by"]) == ("pending", "ann")
    again = passed.apply_hooks_sync(lambda call: Complete(True))
    assert len(again.decisions()[0]["hooks"]) == 3
    again.commit(session, [])


def test_the_record_of_requests_is_the_same_if_the_plan_was_kept_in_between() -> None:
    def passes(call: Any) -> Any:
        return RunNormally()

    def holds(call: Any) -> Any:
        return Hold("look")

    def approves(call: Any) -> Any:
        return Complete(True)

    def refuses(call: Any) -> Any:
        return Reject("no")

    steps: dict[str, Callable[[Any], Any]] = {
        one.__name__: lambda plan, one=one: plan.apply_hooks_sync(one)
        for one in (passes, holds, approves, refuses)
    }

    def decide(plan: Any) -> Any:
        held = [row["call_id"] for row in plan.decisions() if row["decision"] == "held"]
        return plan.decide(dict.fromkeys(held, Complete(True)), by="ann")

    steps["ann"] = decide
    for names in itertools.product(steps, repeat=2):
        records = []
        for is_kept in (False, True):
            session, plan = read(WIKI)
            plan = plan.apply_hooks_sync(passes)
            for name in names:
                plan = steps[name](plan)
                if is_kept:
                    plan = there_and_back(plan, session)
            plan = plan.apply_hooks_sync(passes)
            records.append(plan.decisions())
            plan.discard()
        assert records[0] == records[1], names


# --- issues, texts, dynamic tools --------------------------------------------------------------


def test_a_round_of_issues_alone_is_written_down() -> None:
    session, round = read(Call("nobody", {}, id="c1"))
    twin = there_and_back(round.apply_hooks_sync(lambda call: RunNormally()), session)
    assert [issue.reason for issue in twin.issues] == ["unknown_tool"]
    twin.commit(session, [])


def test_a_text_is_written_down_and_decided() -> None:
    session, round = read(Call("note", "buy milk", id="c1", is_text=True))
    plan = round.apply_hooks_sync(lambda call: Hold())
    twin = there_and_back(plan, session)
    assert twin.held[0].metadata.is_text
    decided = twin.decide({"c1": RunNormally("buy oats")}, by="ann")
    again = there_and_back(decided, session)
    assert again.pending[0].input == "buy oats"
    assert again.pending[0].metadata.arguments == "buy milk"
    assert again.decisions()[0]["decision"] == "edited"
    assert call_arguments(again.pending[0]) == call_arguments(decided_twin(again))
    again.commit(session, [again.pending[0].complete(None)])


def decided_twin(plan: Any) -> Any:
    """The pending call with nothing known of it but its input."""
    call = plan.pending[0]
    return call.holding(call.input)


def test_a_dynamic_tool_is_written_down() -> None:
    pytest.importorskip("jsonschema_rs", reason="the extra schema isn't installed")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    checked = DynamicTool("checked", "x", schema, validate=lambda values: {"made": values["n"]})
    plain = DynamicTool("plain", "x", schema, run=lambda values: {"n": values["n"]})
    tools: Any = Toolset.of("Tools", [plain, checked])
    session, round = read(
        Call("plain", {"n": 1}, id="c1"), Call("checked", {"n": 2}, id="c2"), tools=tools
    )
    complete = lambda call: Complete({"n": 7}) if call.metadata.id == "c1" else RunNormally()  # noqa: E731
    twin = there_and_back(round.apply_hooks_sync(complete), session, tools)
    assert twin.handled[0].output == {"n": 7}
    assert dict(twin.pending[0].input.values) == {"made": 2}
    with pytest.raises(NotPortable, match="doesn't fit the schema"):
        load_input(tools.selector("plain").tool, {"n": "x"})
    with pytest.raises(NotPortable, match="not a JSON object"):
        load_input(tools.selector("plain").tool, [1])
    twin.commit(session, [call.fail("x") for call in twin.pending])


def test_an_input_that_no_plan_could_be_made_of_is_not_written_down_P12() -> None:
    pytest.importorskip("jsonschema_rs", reason="the extra schema isn't installed")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools: Any = Toolset.of("Tools", [DynamicTool("plain", "x", schema)])

    def spoil(call: Any) -> Reject:
        call.input.values["n"] = "many"
        return Reject("no such number")

    session, round = read(Call("plain", {"n": 1}, id="c1"), tools=tools)
    plan = round.apply_hooks_sync(spoil)
    with pytest.raises(PlanError, match="still open") as caught:
        plan.suspend(scope="s")
    assert caught.value.kind == "not_portable"
    plan.commit(session, [])


# --- outputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("where", Point(x=3)),
        ("draw", ImagePart(data=b"png", media_type="image/png")),
        ("draw", [TextPart("a"), TextPart("b")]),
        ("count", 7),
    ],
)
def test_the_output_of_a_handled_call_comes_back(name: str, output: Any) -> None:
    arguments = {} if name == "count" else {"name": "desk"}
    session, round = read(Call(name, arguments, id="c1"))
    twin = there_and_back(round.apply_hooks_sync(lambda call: Complete(output)), session)
    assert twin.handled[0].output == output
    twin.commit(session, [])


def test_what_is_no_output_of_the_type_is_left_out() -> None:
    _, round = read(Call("count", {}, id="c1"))
    call = round.calls[0]
    for content in ("seven", "1.5", "[", (TextPart("x"),)):
        result = ToolResult.load({**call.complete(7).dump(), "content": dumped(content)}, call)
        assert result.output is None
        assert result.content == content
    round.discard()


def dumped(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [{"part": "text", "text": part.text} for part in content]


@pytest.mark.parametrize(
    "change",
    [
        {"status": "great"},
        {"status": 7},
        {"content": 7},
        {"content": []},
        {"content": [{"part": "hologram"}]},
        {"rejection_reason": 7},
        {"output_error": []},
        {"outcome": "perhaps", "attempts": 1, "latency": 0.0},
        {"outcome": "ok"},
        {"outcome": "ok", "attempts": -1, "latency": 0.0},
        {"outcome": "ok", "attempts": 1, "latency": "long"},
    ],
    ids=str,
)
def test_a_dump_of_a_result_that_is_none_is_refused(change: Any) -> None:
    metadata = ToolMetadata("c1", "count", "{}")
    _, round = read(Call("count", {}, id="c1"))
    data = {**ToolResult(metadata, "1").dump(), **change}
    with pytest.raises(ValueError, match="the dump of a result of call 'c1' is invalid"):
        ToolResult.load(data, round.calls[0])
    with pytest.raises(ValueError, match="is invalid"):
        ToolResult.load({}, round.calls[0])
    round.discard()


def test_a_result_of_the_executor_comes_back_as_one() -> None:
    _, round = read(Call("count", {}, id="c1"))
    call = round.calls[0]
    made = ExecutionResult(
        call.metadata, "no", "rejected", "no", outcome="rejected", error=ValueError("x")
    )
    data = made.dump()
    assert data["error"] == "ValueError"
    back = ToolResult.load(data, call)
    assert isinstance(back, ExecutionResult)
    assert (back.outcome, back.rejection_reason, back.error) == ("rejected", "no", None)
    round.discard()


# --- inputs ------------------------------------------------------------------------------------


class Odd:
    """Equal to nothing, not even asked."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


@tool_input(name="aliased")
class Aliased(ToolInput[str]):
    """Its field has one name in answers, and none of its own in requests."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    amount: int = Field(serialization_alias="sum")
    odd: Any = None


class Names(Toolset):
    aliased = tool(Aliased)


def call_of(**arguments: Any) -> Any:
    _, round = read(Call("aliased", arguments, id="c1"), tools=Names)
    round.discard()
    return round.calls[0]


def test_an_alias_that_is_only_written_is_got_around() -> None:
    call = call_of(amount=3)
    assert dump_input(call) == {"amount": 3, "odd": None}
    assert load_input(call.tool, {"amount": 3, "odd": None}) == call.input


@pytest.mark.parametrize("odd", [object(), Odd(), {1: 2}, {True: 1}], ids=["a", "b", "c", "d"])
def test_what_can_not_be_written_is_named(odd: Any) -> None:
    call = call_of(amount=3)
    changed = call.holding(call.input.model_copy(update={"odd": odd}))
    with pytest.raises(NotPortable):
        dump_input(changed)


@pytest.mark.parametrize("data", [{"amount": "x"}, {"amount": float("nan")}, [], {1, 2}])
def test_what_is_no_input_is_refused(data: Any) -> None:
    with pytest.raises(NotPortable):
        load_input(call_of(amount=3).tool, data)


def test_a_text_tool_takes_text_only() -> None:
    with pytest.raises(NotPortable, match="not a text"):
        load_input(Desk.note.tool, {"input": "x"})


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlanError("schema", "x", ["look"]),
        lambda: StoreError("plan", "x"),
        lambda: TakenOverError("x"),
    ],
)
def test_errors_are_copied_and_pickled_whole(make: Callable[[], Any]) -> None:
    error = make()
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is type(error)
        assert (str(twin), vars(twin)) == (str(error), vars(error))
