"""The record of a plan (rules H2, H6, H7).

For each call: what was asked, what will run, who let it pass, changed or refused it, and why.
"""

from __future__ import annotations

import itertools
import logging
import sys
from typing import Any

import pytest
from hook_toolkit import ADD, DELETE, WEATHER, AppTools, Forecast, Weather, start
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from lutumpy import (
    Complete,
    HookError,
    Reject,
    RunNormally,
    ToolInput,
    Toolset,
    hook_impl,
    tool,
    tool_input,
)
from lutumpy.hooks.changes import InputWatch
from lutumpy.page import render
from lutumpy.testing import Call


def in_place(metadata: Any, input: Any) -> Any:
    input.city = "Bergen"
    return RunNormally(input)


def passes(metadata: Any, input: Any) -> Any:
    return RunNormally(input)


def replaces(metadata: Any, input: Any) -> Any:
    return RunNormally(Weather(city="Bergen"))


def copies(metadata: Any, input: Any) -> Any:
    return RunNormally(input.model_copy(deep=True))


def deep(metadata: Any, input: Any) -> Any:
    input.days.append(1)
    return RunNormally(input)


def back(metadata: Any, input: Any) -> Any:
    input.city = " Oslo "
    return RunNormally(input)


def refuses(metadata: Any, input: Any) -> Any:
    return Reject("not today")


def answers(metadata: Any, input: Any) -> Any:
    return Complete(Forecast(text="dry"))


async def waits(metadata: Any, input: Any) -> Any:
    return RunNormally(input)


def registry(*hooks: Any) -> Any:
    made = AppTools.hooks()
    for hook in hooks:
        made.on(AppTools.weather)(hook)
    return made


async def audit(*passes: Any, call: Any = WEATHER, toolset: Any = AppTools) -> dict[str, Any]:
    """The record of one call after these runs of hooks."""
    _, plan = start(call, toolset=toolset)
    for hooks in passes:
        plan = await plan.apply_hooks(hooks)  # type: ignore[assignment]
    plan.discard()
    (entry,) = plan.decisions()  # type: ignore[attr-defined]
    assert entry["arguments"] == call.arguments or isinstance(call.arguments, dict)
    return dict(entry)


def brief(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["decision"], entry["input"]["city"], entry.get("source"), entry.get("by")


@pytest.mark.parametrize("loud", [False, True])
@pytest.mark.parametrize(
    ("hooks", "expected", "did"),
    [
        ([in_place], ("edited", "Bergen", "hook", "in_place"), None),
        ([replaces], ("edited", "Bergen", "hook", "replaces"), None),
        ([passes], ("pending", " Oslo ", "hook", "passes"), None),
        ([waits], ("pending", " Oslo ", "hook", "waits"), None),
        ([copies], ("pending", " Oslo ", "hook", "copies"), None),
        ([deep], ("edited", " Oslo ", "hook", "deep"), None),
        ([refuses], ("rejected", " Oslo ", "hook", "refuses"), None),
        (
            [passes, in_place, waits],
            ("edited", "Bergen", "hook", "in_place"),
            "passed edited passed",
        ),
        ([in_place, passes], ("edited", "Bergen", "hook", "in_place"), "edited passed"),
        ([replaces, passes], ("edited", "Bergen", "hook", "replaces"), "edited passed"),
        (
            [passes, copies, waits],
            ("pending", " Oslo ", "hook", "passes, copies, waits"),
            "passed passed passed",
        ),
        ([in_place, back], ("pending", " Oslo ", "hook", "in_place, back"), "edited edited"),
        ([in_place, refuses, passes], ("rejected", "Bergen", "hook", "refuses"), "edited rejected"),
        ([passes, answers, waits], ("handled", " Oslo ", "hook", "answers"), "passed handled"),
        # Which of them changed a value deep inside is not seen.
        ([deep, passes], ("edited", " Oslo ", "hook", "deep, passes"), "edited edited"),
        ([deep, in_place], ("edited", "Bergen", "hook", "in_place"), "passed edited"),
    ],
)
async def test_an_audit_says_what_will_run_and_who_decided(
    hooks: list[Any],
    expected: tuple[Any, ...],
    did: str | None,
    loud: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG if loud else logging.WARNING, "lutumpy.tool_hook")
    entry = await audit(registry(*hooks))
    assert brief(entry) == expected
    assert [h["did"] for h in entry.get("hooks", ())] == (did.split() if did else [])
    assert [h["by"] for h in entry.get("hooks", ())] == [h.__name__ for h in hooks][
        : len(did.split()) if did else 0
    ]
    assert entry.get("reason") == ("not today" if expected[0] == "rejected" else None)


def policy_passes(call: Any) -> Any:
    return RunNormally(call.input)


def policy_edits(call: Any) -> Any:
    call.input.city = "Rome"
    return RunNormally(call.input)


def policy_rejects(call: Any) -> Any:
    return Reject("read-only")


@pytest.mark.parametrize(
    ("runs", "expected", "did"),
    [
        ([policy_edits], ("edited", "Rome", "policy", "policy_edits"), None),
        ([policy_passes], ("pending", " Oslo ", "policy", "policy_passes"), None),
        ([[in_place], policy_passes], ("edited", "Bergen", "hook", "in_place"), "edited passed"),
        ([[passes], policy_edits], ("edited", "Rome", "policy", "policy_edits"), "passed edited"),
        (
            [[in_place], policy_edits],
            ("edited", "Rome", "policy", "in_place, policy_edits"),
            "edited edited",
        ),
        ([[deep], policy_passes], ("edited", " Oslo ", "hook", "deep"), "edited passed"),
        (
            [[passes], [deep], [passes]],
            ("edited", " Oslo ", "hook", "deep"),
            "passed edited passed",
        ),
        (
            [[replaces], [passes], policy_rejects],
            ("rejected", "Bergen", "policy", "policy_rejects"),
            "edited passed rejected",
        ),
        ([[refuses], policy_passes], ("rejected", " Oslo ", "hook", "refuses"), None),
        ([[], policy_passes], ("pending", " Oslo ", "policy", "policy_passes"), None),
        ([[]], ("pending", " Oslo ", None, None), None),
    ],
)
async def test_a_second_run_of_hooks_keeps_the_record_of_the_first(
    runs: list[Any], expected: tuple[Any, ...], did: str | None
) -> None:
    entry = await audit(*[registry(*run) if isinstance(run, list) else run for run in runs])
    assert brief(entry) == expected
    assert [h["did"] for h in entry.get("hooks", ())] == (did.split() if did else [])


async def test_each_call_has_a_record_of_its_own() -> None:
    class Gate:
        @hook_impl
        def any_tool_hook(self, metadata: Any, call: Any) -> Any:
            return (
                Reject("no deletes") if metadata.name == "delete-file" else RunNormally(call.input)
            )

    hooks = registry(in_place).with_hooks(Gate())
    _, round = start(WEATHER, DELETE, ADD)
    plan = await round.apply_hooks(hooks)
    plan.discard()
    weather, delete, add = plan.decisions()
    gate = Gate.any_tool_hook.__qualname__
    assert (weather["by"], [h["did"] for h in weather["hooks"]]) == (
        "in_place",
        ["passed", "edited"],
    )
    assert (delete["decision"], delete["by"], delete["reason"]) == ("rejected", gate, "no deletes")
    assert (add["decision"], add["by"]) == ("pending", gate)


async def test_a_failed_run_of_hooks_leaves_no_record() -> None:
    def raises(call: Any) -> Any:
        call.input.city = "Rome"
        raise ValueError

    _, round = start(WEATHER)
    with pytest.raises(HookError):
        await round.apply_hooks(raises)
    plan = await round.apply_hooks(registry(passes))
    with pytest.raises(HookError):
        await plan.apply_hooks(raises)
    plan.discard()
    assert [brief(entry) for entry in plan.decisions()] == [("pending", " Oslo ", "hook", "passes")]


async def test_an_edit_that_no_hook_made_is_nobodys() -> None:
    _, round = start(WEATHER)
    plan = await round.apply_hooks(AppTools.hooks())
    plan.pending[0].input.city = "Rome"
    plan.discard()
    assert [brief(entry) for entry in plan.decisions()] == [("edited", "Rome", None, None)]


class Odd:
    """Equal to nothing but itself."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __repr__(self) -> str:
        return f"Odd({self.word})"


class Hostile:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparing")

    __hash__ = None  # type: ignore[assignment]


counter = itertools.count()


@tool_input(name="note")
class Note(ToolInput[None]):
    """Note something."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="allow", validate_assignment=True)

    word: str
    number: float = 0.0
    secret: SecretStr = SecretStr("")
    made: int = Field(default_factory=lambda: next(counter))
    odd: Any = Field(default_factory=lambda: Odd("a"), json_schema_extra={"type": "string"})


class Notes(Toolset):
    note = tool(Note)


def note(**edits: Any) -> Any:
    def edit(metadata: Any, input: Any) -> Any:
        for name, value in edits.items():
            setattr(input, name, value)
        return RunNormally(input)

    return edit


@pytest.mark.parametrize("hooks", [1, 2])
@pytest.mark.parametrize(
    ("edits", "edited"),
    [
        ({}, False),
        ({"word": "a"}, False),
        ({"word": "b"}, True),
        ({"secret": SecretStr("hidden")}, True),
        ({"made": -1}, True),  # the counter never gives it
        ({"odd": Odd("b")}, True),
        ({"number": float("nan")}, True),
        ({"further": 1}, True),
        ({"odd": Hostile()}, True),
    ],
)
async def test_values_that_compare_badly_are_no_edits_and_hide_none(
    edits: dict[str, Any], edited: bool, hooks: int
) -> None:
    """Defaults that are made anew, secrets, objects without `==`, fields of any name."""
    made = Notes.hooks()
    made.on(Notes.note)(note(**edits))
    for _ in range(hooks - 1):
        made.on(Notes.note)(passes)
    entry = await audit(made, call=Call("note", {"word": "a"}, id="c1"), toolset=Notes)
    assert entry["decision"] == ("edited" if edited else "pending")
    both = hooks == 2 and not edited
    assert entry["by"] == note.__qualname__ + ".<locals>.edit" + (", passes" if both else "")
    assert "hidden" not in str(entry["input"])


async def test_an_input_of_another_class_is_an_edit_and_one_that_decodes_no_more_is_none() -> None:
    class Better(Weather):
        pass

    assert (await audit(lambda call: RunNormally(Better(city=" Oslo "))))["decision"] == "edited"

    once = itertools.count()

    @tool_input(name="once", output=None)
    class Once(BaseModel):
        """Once."""

        n: int

        def model_post_init(self, context: Any) -> None:
            if next(once):
                raise ValueError("a second time")

    class OnlyOnce(Toolset):
        once = tool(Once)

    entry = await audit(
        lambda call: RunNormally(call.input), call=Call("once", {"n": 1}, id="c1"), toolset=OnlyOnce
    )
    assert entry["decision"] == "pending"


def test_a_watch_notes_each_hook_that_changed_something() -> None:
    weather = Weather(city="a")
    watch = InputWatch(weather)
    watch.look(weather, 0)
    weather.city = "b"
    watch.look(weather, 1)
    watch.look(weather, 2)
    weather.city = Hostile()  # type: ignore[assignment]
    watch.look(weather, 3)
    watch.look(weather, 4)
    assert watch.changed_by == [1, 3]


async def test_the_page_shows_edits_in_place_and_who_let_a_call_pass() -> None:
    session, round = start(WEATHER, ADD)
    made = registry(in_place, passes)
    made.on(AppTools.add)(passes)
    plan = await round.apply_hooks(made)
    page = render(session, answer=round.turn, decisions=[plan])
    plan.discard()
    for said in (
        "Edited by a hook",
        "hook in_place",
        "hook in_place: edited",
        "hook passes: passed",
        "Let pass",
    ):
        assert said in page
    assert "Input after the hooks" in page


async def test_the_log_has_effective_input_and_reason_at_debug_only_h6(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def unwritable(metadata: Any, input: Any) -> Any:
        return RunNormally(Weather.model_construct(city=object(), days=[]))

    caplog.set_level(logging.INFO, "lutumpy.tool_hook")
    await audit(registry(in_place, refuses))
    assert "Bergen" not in caplog.text
    assert "not today" not in caplog.text
    assert not any(hasattr(record, "reason") for record in caplog.records)
    caplog.clear()
    caplog.set_level(logging.DEBUG, "lutumpy.tool_hook")
    await audit(registry(in_place, unwritable, refuses))
    assert caplog.messages == [
        "call_1 of weather: run_normally by in_place",
        'call_1 of weather: arguments {"city": " Oslo "}',
        'call_1 of weather: input {"city":"Bergen","days":[]}',
        f"call_1 of weather: run_normally by {unwritable.__qualname__}",
        'call_1 of weather: arguments {"city": " Oslo "}',
        caplog.messages[5],
        "call_1 of weather: reject by refuses: not today",
        'call_1 of weather: arguments {"city": " Oslo "}',
    ]
    assert "object object" in caplog.messages[5]
    assert caplog.records[6].reason == "not today"  # type: ignore[attr-defined]
    assert [r.levelno for r in caplog.records].count(logging.DEBUG) == 5


async def test_the_record_of_many_calls_costs_what_they_are_H6() -> None:
    """Eight times the calls cost eight times the instructions, and no more."""

    async def instructions(count: int) -> int:
        several = [Call("weather", {"city": "Oslo"}, id=f"c{n}") for n in range(count)]
        _, decided = start(*several)
        plan = await decided.apply_hooks(registry(passes))
        ran = 0

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal ran
            frame.f_trace_opcodes = True
            ran += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            assert len(plan.decisions()) == count
        finally:
            sys.settrace(before)
        plan.discard()
        return ran

    await instructions(25)  # Python 3.12 counts nothing of code that it traces for the first time
    few = await instructions(25)
    assert 0 < await instructions(200) < 8.5 * few
