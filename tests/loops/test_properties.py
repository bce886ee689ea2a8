"""Whatever happens to a loop, its session can be sent to every API, and another loop continues it.

Random conversations, with requests, tools, hooks, reviews and callbacks that fail, interrupts at
random places, and messages that are pushed meanwhile; with every form of the loop (rules K1, K5,
E4, H4).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from every_api import APIS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_toolkit import ANSWER, FORMS, Desk, Journal, Runner, asked, check_valid, script
from profiles import examples

from lutumpy import (
    AdapterError,
    Complete,
    HookError,
    Reject,
    RunNormally,
    StaleRoundError,
    ToolDecision,
    ToolResult,
    hook_impl,
)
from lutumpy.execution import ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import LoopResult
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Failure, Reply


class Trouble(Exception):
    """What a callback raises."""


class Harder(BaseException):
    """The same, as an interrupt."""


@dataclass
class Plan:
    """What goes wrong when: at the n-th request, decision, review, tool run or progress event."""

    form: str
    api: str
    replies: list[Any]
    troubles: dict[tuple[str, int], str]
    streamed: bool
    reviewed: bool
    options: dict[str, Any]


words = st.sampled_from(["cat", "dog", "unknown", "broken"])
random_calls = st.one_of(
    st.builds(lambda word: Call("look_up", {"word": word}), words),
    st.builds(
        lambda text: Call("count", {"text": text}), st.sampled_from(["", "four", 3, None, "\ud800"])
    ),
    st.builds(lambda text: Call("write", {"text": text}), words),
    st.sampled_from(
        [
            Call("look_up", '{"word": "c'),
            Call("nope"),
            Call("hidden"),
            Call("look_up", {"word": "cat"}, id="same"),
        ]
    ),
)
replies = st.one_of(
    st.builds(
        Reply,
        text=st.sampled_from(["", "Hm."]),
        calls=st.lists(random_calls, min_size=1, max_size=4),
        finish=st.sampled_from([None, None, None, "length", "stop"]),
        reasoning=st.sampled_from([None, "so"]),
    ),
    st.sampled_from(
        [
            ANSWER,
            Failure(500, "down"),
            Reply(text="I", finish="length"),
            Reply(refusal="No."),
            Reply(text="...", finish="paused"),
        ]
    ),
)
troubles = st.dictionaries(
    st.tuples(
        st.sampled_from(["request", "decide", "review", "tool", "progress", "event"]),
        st.integers(0, 12),
    ),
    st.sampled_from(["error", "harder", "interrupt", "push", "complete", "reject"]),
    max_size=3,
)
plans = st.builds(
    Plan,
    form=st.sampled_from(FORMS),
    api=st.sampled_from(APIS),
    replies=st.lists(replies, min_size=1, max_size=5),
    troubles=troubles,
    streamed=st.booleans(),
    reviewed=st.booleans(),
    options=st.fixed_dictionaries(
        {},
        optional={
            "max_rounds": st.integers(1, 3),
            "max_repeats": st.integers(1, 3),
            "token_budget": st.integers(1, 100),
            "executor": st.builds(
                ToolExecutor, max_concurrency=st.integers(1, 3), deduplicate=st.booleans()
            ),
        },
    ),
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans)
def test_any_loop_leaves_a_session_that_goes_on(plan: Plan) -> None:
    session, journal = asked(), Journal()
    counts: dict[str, int] = {}

    def occasion(kind: str) -> str | None:
        """What goes wrong now; raises, pushes, or says what a policy has to decide."""
        number = counts[kind] = counts.get(kind, -1) + 1
        trouble = plan.troubles.get((kind, number))
        if trouble == "push":
            session.push_user("Meanwhile.")
        elif trouble == "error":
            raise Trouble
        elif trouble == "harder":
            raise Harder
        elif trouble == "interrupt":
            raise KeyboardInterrupt
        return trouble

    def answer(reply: Any) -> Callable[[Any, Any], Any]:
        def results(api: Any, body: Any) -> Any:
            if plan.troubles.get(("request", counts.get("request", -1) + 1)) in (
                "push",
                "interrupt",
                "harder",
            ):
                occasion("request")
            return reply

        return results

    class Hooks:
        @hook_impl
        def any_tool_hook(self, call: BaseToolCall) -> ToolDecision:
            decision = occasion("decide")
            if decision == "reject":
                return Reject("no")
            if decision == "complete" and call.metadata.name == "count":
                return Complete(7)
            return RunNormally(call.input)

    class Reviews(Hooks):
        @hook_impl
        def any_result_hook(self, result: ToolResult) -> ToolResult:
            occasion("review")
            return replace(result, content=f"[seen] {result.content}")

    for name in ("look_up", "count", "write"):
        journal.during[name] = lambda: occasion("tool")

    llm = script(*[answer(reply) for reply in plan.replies], api=plan.api)
    options = {
        **plan.options,
        "hooks": Desk.hooks().with_hooks(Reviews() if plan.reviewed else Hooks()),
        "on_progress": lambda event: occasion("progress") and None,
        "on_event": (lambda event: occasion("event") and None) if plan.streamed else None,
    }
    done: LoopResult | None = None
    with contextlib.suppress(
        AdapterError, HookError, StaleRoundError, Trouble, Harder, KeyboardInterrupt
    ):
        done = Runner(plan.form)(session, llm, journal, **options)
    check_valid(session)
    results = [
        r for item in session.transcript if isinstance(item, ToolResults) for r in item.results
    ]
    # Whatever ran has its result, and the model sees nothing of a tool's that wasn't reviewed.
    assert len(journal.ran) <= len([r for r in results if r.status != "rejected"])
    if plan.reviewed:
        own = [r.text for r in results if r.status == "ok" and r.text != "7"]
        assert [text for text in own if not text.startswith("[seen] ")] == []
    if done is not None:
        assert done.rounds == len(
            [item for item in session.transcript if isinstance(item, ToolResults)]
        )

    if done is None or done.stopped_by in ("answer", "refusal", "length", "paused", "unknown"):
        session.push_user("Go on.")
    again = Runner(plan.form)(
        session, script(Reply(calls=[Call("look_up", {"word": "cow"})]), ANSWER, api=plan.api)
    )
    assert (again.stopped_by, again.rounds) == ("answer", 1)
    check_valid(session)
