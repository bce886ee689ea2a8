"""What evals are given: trials, messages of inspect-ai, and a probe that stops a run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lutumpy import HookError, Session, Toolset, tool, tool_fn
from lutumpy.errors import ProbeStopped
from lutumpy.loops import run_tools, run_tools_sync
from lutumpy.testing import (
    Call,
    Probe,
    Reply,
    ScriptedModel,
    inspect_messages,
    pass_all_k,
    pass_at_k,
    transcript_snapshot,
    trials_of,
)

PAGE = Path(__file__).parent.parent.parent / "docs" / "evals.md"


@pytest.mark.slow
def test_the_programs_of_the_page_print_what_the_page_says() -> None:
    """Each in a process of its own: one of them sets the tracer of its process."""
    if "LUTUMPY_NEED_EVALS" not in os.environ:
        pytest.importorskip("pydantic_evals")
    programs = re.findall(
        r"^```py\n(import asyncio.*?)^```\n\n```console\n(.*?)^```", PAGE.read_text(), re.M | re.S
    )
    assert len(programs) == 2
    for program, printed in programs:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert done.stdout == printed, done.stderr


def test_pass_at_k_and_pass_all_k_are_shares_of_the_ways_to_draw_k_trials() -> None:
    from itertools import combinations

    for total in range(1, 7):
        for passed in range(total + 1):
            trials = [True] * passed + [False] * (total - passed)
            for k in range(1, total + 1):
                drawn = list(combinations(trials, k))
                assert pass_at_k(trials, k) == pytest.approx(sum(map(any, drawn)) / len(drawn))
                assert pass_all_k(trials, k) == pytest.approx(sum(map(all, drawn)) / len(drawn))
    for k in (0, 4):
        with pytest.raises(ValueError, match=f"k is from 1 to the number of trials, 3, not {k}"):
            pass_at_k([True] * 3, k)


def test_trials_are_sorted_by_case_and_what_raised_has_failed() -> None:
    def case(name: str, *held: bool, source: str | None = None, broken: int = 0) -> Any:
        found = {str(i): SimpleNamespace(value=value) for i, value in enumerate(held)}
        return SimpleNamespace(
            name=name,
            source_case_name=source,
            assertions=found,
            evaluator_failures=[None] * broken,
        )

    report = SimpleNamespace(
        cases=[
            case("a [1/2]", True, True, source="a"),
            case("a [2/2]", True, False, source="a"),
            case("b"),
            case("c", True, broken=1),
        ],
        failures=[SimpleNamespace(name="b")],
    )
    assert trials_of(report) == {"a": [True, False], "b": [True, False], "c": [False]}


@tool_fn
def look(item: str) -> str:
    """Look."""
    return f"a {item}"


class Desk(Toolset):
    look = tool(look)


SCRIPT = [
    Reply(text="Hm.", calls=[Call("look", {"item": "lamp"}), Call("look", "{")]),
    Reply(calls=[Call("look", "[1]"), Call.of_text("look", "x")]),
    Reply(refusal="No."),
]


def test_a_conversation_as_messages_of_inspect_ai() -> None:
    session, llm = Session(), ScriptedModel(SCRIPT)
    session.push_developer("Be brief.")
    session.push_user("A lamp?")
    for _ in SCRIPT[1:]:
        outcome: Any = session.text_turn(llm, tools=Desk).collect_sync()
        round = outcome.round
        results = [
            call.fail("it fell") if i else call.complete("a lamp")
            for i, call in enumerate(round.calls)
        ]
        round.commit(session, results)
    session.text_turn(llm, tools=Desk).collect_sync()
    system, user, first, ok, bad, second, *_, last = inspect_messages(session)
    assert system == {"role": "system", "content": "Be brief."}
    assert user == {"role": "user", "content": "A lamp?", "source": "input"}
    assert (first["role"], first["content"], first["model"]) == ("assistant", "Hm.", "scripted")
    lamp, broken = first["tool_calls"]
    assert lamp == {"id": lamp["id"], "function": "look", "arguments": {"item": "lamp"}}
    assert broken["arguments"] == {}
    assert broken["parse_error"]
    assert ok == {
        "role": "tool",
        "tool_call_id": lamp["id"],
        "function": "look",
        "content": "a lamp",
    }
    assert bad["error"]["type"] == "approval"
    listed, text = second["tool_calls"]
    assert listed["parse_error"] == "the arguments are not a JSON object"
    assert text["function"] == "look"
    assert (last["content"], "tool_calls" in last) == ("No.", False)
    assert [one["role"] for one in inspect_messages(session.transcript)][:2] == ["system", "user"]


def asked() -> tuple[Session, ScriptedModel]:
    session = Session()
    session.push_user("Look.")
    script = [Reply(calls=[Call("look", {"item": item})]) for item in ("lamp", "safe")]
    return session, ScriptedModel([*script, Reply(text="Done.")])


def no_safes(session: Session, call: Any) -> str | None:
    return "nobody looks into the safe" if call.input.item == "safe" else None


async def judged(session: Session, call: Any) -> str | None:
    return no_safes(session, call)


@pytest.mark.parametrize("check", [no_safes, judged], ids=["sync", "async"])
async def test_a_probe_stops_a_run_before_anything_of_the_round_has_run(check: Any) -> None:
    session, llm = asked()
    hooks = Desk.hooks().with_hooks(Probe(session, check, lambda session, call: None))
    with pytest.raises(HookError) as caught:
        await run_tools(session, llm, tools=Desk, hooks=hooks)
    assert repr(caught.value.__cause__) == "ProbeStopped('look: nobody looks into the safe')"
    assert isinstance(caught.value.__cause__, ProbeStopped)
    assert len(session.turns()) == 1
    session, llm = asked()
    hooks = Desk.hooks().with_hooks(Probe(session, check, judged, stop=False))
    result = await run_tools(session, llm, tools=Desk, hooks=hooks)
    assert result.text == "Done."
    assert "rejected: nobody looks into the safe" in transcript_snapshot(session)


def test_a_probe_needs_no_event_loop() -> None:
    session, llm = asked()
    hooks = Desk.hooks().with_hooks(Probe(session, lambda session, call: None, no_safes))
    with pytest.raises(HookError):
        run_tools_sync(session, llm, tools=Desk, hooks=hooks)
    session, llm = asked()
    hooks = Desk.hooks().with_hooks(Probe(session, judged))
    with pytest.raises(HookError, match="async"):
        run_tools_sync(session, llm, tools=Desk, hooks=hooks)
