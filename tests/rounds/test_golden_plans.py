"""Plans that earlier releases wrote are taken up by this one (rules P12, P13).

The files are never written again: what somebody keeps today has to be read tomorrow. Another
version of the format gets a file beside them: `python tests/rounds/test_golden_plans.py FILE`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lutumpy import (
    Complete,
    DynamicTool,
    Hold,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    Signer,
    ToolRoundPlan,
    Toolset,
    dynamic,
    text_tool,
    tool,
    tool_fn,
)
from lutumpy.apis import api_names, serving
from lutumpy.testing import Call, Reply, render

FIXTURES = Path(__file__).parent.parent / "fixtures"
SIGNER = Signer("k1", b"0123456789abcdef0123456789abcdef")
KEYS = {"k1": SIGNER.secret}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


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


@text_tool(effect="once")
def patch(text: str) -> str:
    """Patch a file."""
    return "done"


class Desk(Toolset):
    look = tool(look)
    move = tool(move)
    wipe = tool(wipe)
    patch = tool(patch)
    own = dynamic()


TOOLS = Desk.with_dynamic_tools({Desk.own: [DynamicTool("count", "Count.", SCHEMA)]})
CALLS = (
    Call("look", {"place": "the shed"}, id="call_1"),
    Call("look", {"place": "the attic", "near": 0.5}, id="call_2"),
    Call("move", {"what": "the desk"}, id="call_3"),
    Call("wipe", {"volume": "old"}, id="call_4"),
    Call("wipe", {"volume": "new"}, id="call_5"),
    Call("count", {"n": 3}, id="call_6"),
    Call("no_such_tool", {}, id="call_7"),
    Call("look", {"place": 7}, id="call_8"),
)
PATCH = Call("patch", "*** Begin\n+ one line", id="call_9")


def decide(call: Any) -> Any:
    """One of each: edited, completed, held, rejected, and what runs as it is."""
    match call.metadata.id:
        case "call_2":
            return RunNormally.edited(near=2.0)
        case "call_3":
            return Complete({"moved": 0})
        case "call_4":
            return Hold("wiping is final")
        case "call_5":
            return Reject("the new one is needed")
        case _:
            return RunNormally()


class Golden(NamedTuple):
    """A plan that was written down, and where it goes on."""

    api: str
    signed: bool
    session: Any
    plan: Any
    standings: dict[str, str]

    def __str__(self) -> str:
        return f"{self.api}{'-signed' * self.signed}"


def make() -> Iterator[dict[str, Any]]:
    for api in api_names():
        for signed in (False, True):
            session = Session()
            session.push_user("go")
            calls = (*CALLS, PATCH) if api.startswith("openai") else CALLS
            answer = render(Reply(calls=calls), api, number=1, model="m")
            turn = serving(api, "adapter").response(answer)
            outcome = TOOLS.offer().read(turn, session)
            assert isinstance(outcome, NeedsTools)
            plan = outcome.round.apply_hooks_sync(decide)
            dumped: Any = plan.suspend(scope="s", sign=SIGNER if signed else None)
            standings = {call["call_id"]: call["standing"] for call in dumped["calls"]}
            yield {
                "api": api,
                "signed": signed,
                "session": session.dump(),
                "plan": dumped,
                "standings": standings,
            }


def goldens() -> list[Golden]:
    lines = (FIXTURES / "plans_version_1.jsonl").read_text(encoding="utf-8").splitlines()
    return [Golden(**json.loads(line)) for line in lines]


@pytest.mark.parametrize("golden", goldens(), ids=str)
def test_a_plan_that_was_kept_is_taken_up_and_committed_P12(golden: Golden) -> None:
    session = Session.load(golden.session)
    keys = KEYS if golden.signed else None
    plan: ToolRoundPlan[Any] = ToolRoundPlan.resume(
        golden.plan, session, tools=TOOLS, scope="s", verify=keys
    )
    again = plan.dump(scope="s", sign=SIGNER if golden.signed else None)
    assert again == golden.plan
    assert {each["call_id"]: each["decision"] for each in plan.decisions()}.keys() == set(
        golden.standings
    )
    pending = {call.metadata.id: call.input for call in plan.pending}
    waiting = [name for name, standing in golden.standings.items() if standing == "pending"]
    assert sorted(pending) == sorted(waiting)
    assert getattr(pending["call_2"], "near") == 2.0  # noqa: B009 - inputs of functions have no type
    assert [call.metadata.id for call in plan.held] == ["call_4"]
    assert [handled.output for handled in plan.handled] == [{"moved": 0}]
    plan = plan.decide({"call_4": Reject("no")}, by="ann")
    plan.commit(session, [call.fail("not run here") for call in plan.pending])
    last: Any = list(session.transcript)[-1]
    assert [result.call_id for result in last.results] == [*golden.standings]


def test_the_kept_plans_have_a_call_of_every_standing() -> None:
    found = {standing for golden in goldens() for standing in golden.standings.values()}
    assert found == {"pending", "held", "handled", "rejected", "issue"}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("".join([json.dumps(line) + "\n" for line in make()]))
