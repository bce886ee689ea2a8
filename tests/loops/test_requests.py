"""What a loop asks the model, its progress events, and where tools run (with every form)."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from loop_toolkit import (
    ANSWER,
    Desk,
    Journal,
    Reviewer,
    Runner,
    asked,
    call,
    calls,
    check_valid,
    dispatcher,
    look,
    results,
    script,
)

from lutumpy import (
    Complete,
    Completed,
    Reject,
    RunNormally,
    Skip,
    TextDelta,
    ToolAvailability,
    ToolCallReady,
    ToolDecision,
    ToolRequirement,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.apis import serving
from lutumpy.execution import Dispatcher, ExecutionResult, IdempotencyKey, ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
)
from lutumpy.testing import Reply


def tools_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Names and descriptions of the tools in a Chat request."""
    return {tool["function"]["name"]: tool["function"]["description"] for tool in body["tools"]}


def test_a_requirement_holds_for_the_first_request_only(run: Runner) -> None:
    llm = script(calls(look("a")), calls(look("b")), ANSWER)
    run(asked(), llm, require=ToolRequirement.specific(Desk.look_up))
    choices = [body.get("tool_choice") for body in llm.requests]
    assert choices == [{"type": "function", "function": {"name": "look_up"}}, None, None]


def test_every_request_says_what_single_apis_are_told(run: Runner) -> None:
    llm = script(calls(look("a")), ANSWER)
    told = {Desk.count: {"openai_chat": {"x": 1}}, Desk.hidden: {"openai_chat": {"x": 2}}}
    run(asked(), llm, provider=told)
    for body in llm.requests:
        assert {one["function"]["name"]: one.get("x") for one in body["tools"]} == {
            "look_up": None,
            "count": 1,
            "wait_for_ever": None,
            "write": None,
        }


def test_every_request_has_the_same_tools_and_options(run: Runner) -> None:
    llm = script(calls(look("a")), ANSWER)
    run(
        asked(),
        llm,
        available=ToolAvailability.only(Desk.count, Desk.hidden),
        describe={Desk.count: "Count."},
        parallel=False,
        temperature=0.5,
        max_output_tokens=99,
        extra={"seed": 7},
    )
    first, second = llm.requests
    assert tools_of(first) == {"count": "Count.", "hidden": "Is not offered by default."}
    assert {k: v for k, v in first.items() if k != "messages"} == {
        k: v for k, v in second.items() if k != "messages"
    }
    assert (first["temperature"], first["max_completion_tokens"], first["seed"]) == (0.5, 99, 7)
    assert first["parallel_tool_calls"] is False


def test_description_hooks_word_each_request_and_explicit_texts_win_H8(run: Runner) -> None:
    hooks, journal = Desk.hooks(), Journal()

    @hooks.describe(Desk.look_up)
    def words(definition: Any) -> str:
        return f"{len(journal.ran)} words so far"

    @hooks.describe(Desk.count)
    def never(definition: Any) -> str:
        return "from the hook"

    llm = script(calls(look("a")), ANSWER)
    run(asked(), llm, journal, hooks=hooks, describe={Desk.count: "explicit"})
    texts = [(tools_of(body)["look_up"], tools_of(body)["count"]) for body in llm.requests]
    assert texts == [("0 words so far", "explicit"), ("1 words so far", "explicit")]


def test_async_hooks_decide_describe_and_review(backend: str) -> None:
    hooks = Desk.hooks()

    @hooks.describe(Desk.look_up)
    async def words(definition: Any) -> str:
        await anyio.lowlevel.checkpoint()
        return "words"

    @hooks.on(Desk.look_up)
    async def cached(metadata: Any, input: Any) -> ToolDecision[Any, str]:
        await anyio.lowlevel.checkpoint()
        return Complete("cached") if input.word == "a" else RunNormally(input)

    session, journal = asked(), Journal()
    llm = script(calls(look("a"), look("b")), ANSWER)
    Runner(backend)(session, llm, journal, hooks=hooks)
    assert tools_of(llm.requests[0])["look_up"] == "words"
    assert results(session) == [("ok", "cached"), ("ok", "b means b")]
    assert journal.ran == ["look_up b"]


def test_edits_of_hooks_are_what_runs(run: Runner) -> None:
    def upper(call: BaseToolCall) -> ToolDecision:
        return RunNormally(call.input.model_copy(update={"word": call.input.word.upper()}))

    session, journal = asked(), Journal()
    run(session, script(calls(look("cat")), ANSWER), journal, hooks=upper)
    assert journal.ran == ["look_up CAT"]


def test_a_round_that_hooks_decide_as_a_whole_runs_nothing(run: Runner) -> None:
    session, journal = asked(), Journal()
    done = run(
        session,
        script(calls(look("a"), call("count", text="x")), ANSWER),
        journal,
        hooks=lambda call: Reject("no"),
    )
    assert (done.rounds, journal.ran) == (1, [])
    assert results(session) == [("rejected", "Tool call rejected: no")] * 2


def test_the_executor_is_the_one_that_was_given(run: Runner) -> None:
    executor = ToolExecutor(deduplicate=True)
    session, journal = asked(), Journal()
    run(session, script(calls(look("a"), look("a")), ANSWER), journal, executor=executor)
    assert journal.ran == ["look_up a"]
    assert [report.outcome for report in executor.report.calls] == ["ok", "rejected"]


def test_the_scope_tells_equal_conversations_apart(run: Runner) -> None:
    keys: list[str] = []

    @tool_fn
    def pay(amount: int, *, key: Skip[IdempotencyKey]) -> None:
        """Pay."""
        keys.append(key)

    class Till(Toolset):
        member = tool(pay)

    executor = ToolExecutor()
    for scope in ("mine", "yours", "mine"):
        llm = script(calls(call("pay", amount=1)), ANSWER)
        run(asked(), llm, tools=Till, dispatch=Dispatcher(Till), executor=executor, scope=scope)
    mine, yours, again = keys
    assert mine == again != yours


def test_what_a_tool_raises_is_not_shown_to_the_model(run: Runner) -> None:
    session = asked()
    run(session, script(calls(look("broken"), look("unknown")), ANSWER))
    (_, broken), (_, unknown) = results(session)
    assert "ValueError" in broken
    assert "secret" not in broken
    assert unknown == "no such word"


# --- progress ----------------------------------------------------------------------------


def test_progress_tells_every_step_in_order(run: Runner) -> None:
    events: list[LoopEvent] = []
    llm = script(
        Reply(
            text="Hm.",
            calls=[look("cat", "c1"), call("count", "c2", text="x"), call("nope", "c3")],
            usage=(20, 5),
        ),
        ANSWER,
    )

    def hooks(call: BaseToolCall) -> ToolDecision:
        return Complete(3) if call.metadata.name == "count" else RunNormally(call.input)

    done = run(asked(), llm, hooks=hooks, on_progress=events.append)
    assert [type(event) for event in events] == [
        RequestStarted,
        RoundDecoded,
        RoundPlanned,
        RoundExecuted,
        RoundCommitted,
        RequestStarted,
        LoopEnded,
    ]
    steps = [event for event in events if not isinstance(event, LoopEnded)]
    assert [event.round for event in steps] == [1, 1, 1, 1, 1, 2]
    assert [event.usage.total_tokens for event in events] == [0, 25, 25, 25, 25, 25, 40]
    _, decoded, planned, executed, _, _, stopped = events
    assert isinstance(decoded, RoundDecoded)
    assert ([c.metadata.id for c in decoded.calls], [i.metadata.id for i in decoded.issues]) == (
        ["c1", "c2"],
        ["c3"],
    )
    assert decoded.text == "Hm."
    assert isinstance(planned, RoundPlanned)
    assert ([c.metadata.id for c in planned.pending], len(planned.handled), planned.rejected) == (
        ["c1"],
        1,
        (),
    )
    assert isinstance(executed, RoundExecuted)
    (result,) = executed.results
    assert isinstance(result, ExecutionResult)
    assert (result.content, result.attempts) == ("cat means tac", 1)
    assert isinstance(stopped, LoopEnded)
    assert (stopped.rounds, stopped.result) == (1, done)


def test_results_are_told_as_they_are_committed(run: Runner) -> None:
    events: list[Any] = []
    run(
        asked(),
        script(calls(look("cat")), ANSWER),
        hooks=Desk.hooks().with_hooks(Reviewer()),
        on_progress=events.append,
    )
    (executed,) = [event for event in events if isinstance(event, RoundExecuted)]
    assert executed.results[0].content == "[seen] cat means tac"
    assert executed.results[0].outcome == "ok"


def test_callbacks_may_wait(backend: str) -> None:
    events: list[str] = []

    async def tell(event: Any) -> None:
        await anyio.lowlevel.checkpoint()
        events.append(type(event).__name__)

    Runner(backend)(asked(), script(calls(look("cat")), ANSWER), on_progress=tell, on_event=tell)
    assert events[0] == "RequestStarted"
    assert events.count("ToolCallReady") == 1
    assert events.count("Completed") == 2


def test_events_come_from_streamed_turns_that_end_in_the_same_outcome_S1(
    run: Runner, api: str
) -> None:
    seen: list[Any] = []
    streamed, whole = asked(), asked()
    replies = (Reply(text="Let me see.", calls=[look("cat"), call("nope")]), ANSWER)
    llm = script(*replies, api=api)
    assert run(streamed, llm, on_event=seen.append).text == ANSWER.text
    if serving(api, "rules").SHAPE.model_path is None:  # the others have it in the path
        assert all(body.get("stream") for body in llm.requests)
    run(whole, script(*replies, api=api))
    assert streamed.turns()[-1] == whole.turns()[-1]
    assert results(streamed) == results(whole)
    assert (
        "".join([event.text for event in seen if isinstance(event, TextDelta)])
        == "Let me see." + ANSWER.text
    )
    assert len([event for event in seen if isinstance(event, ToolCallReady)]) == 1
    assert len([event for event in seen if isinstance(event, Completed)]) == 2
    check_valid(streamed)


def test_a_lone_surrogate_in_streamed_arguments_is_an_issue_and_no_error_C2(
    run: Runner, api: str
) -> None:
    session = asked()
    llm = script(
        calls(call("count", text="\ud800"), call("count", text="\ud800", more=1), look("cat")),
        ANSWER,
        api=api,
    )
    assert run(session, llm, on_event=lambda event: None).stopped_by == "answer"
    assert results(session)[-1] == ("ok", "cat means tac")
    check_valid(session)


# --- where tools run ---------------------------------------------------------------------

WHO = contextvars.ContextVar("WHO", default="nobody")


def test_tools_see_the_context_variables_of_the_caller(run: Runner) -> None:
    seen: list[str] = []

    @tool_fn
    async def there() -> None:
        """Waits."""
        seen.append(WHO.get())

    @tool_fn
    def here() -> None:
        """Doesn't."""
        seen.append(WHO.get())

    class Both(Toolset):
        waits = tool(there)
        plain = tool(here)

    token = WHO.set("the caller")
    try:
        run(
            asked(),
            script(calls(call("there"), call("here")), ANSWER),
            tools=Both,
            dispatch=Dispatcher(Both),
        )
    finally:
        WHO.reset(token)
    assert seen == ["the caller", "the caller"]


def test_the_sync_form_keeps_one_event_loop_for_all_rounds_and_leaves_none() -> None:
    """What an async tool keeps between its calls, as a client, belongs to its event loop."""
    import asyncio

    loops: list[Any] = []
    kept: list[asyncio.Queue[int]] = []

    @tool_fn
    async def put() -> None:
        """Put a number into a queue that later rounds take it from."""
        loops.append(asyncio.get_running_loop())
        if not kept:
            kept.append(asyncio.Queue(1))
            await kept[0].put(1)

            async def later() -> None:
                await kept[0].put(2)

            tasks.append(asyncio.create_task(later()))
        else:
            loops.append(await kept[0].get())

    tasks: list[Any] = []

    class Queues(Toolset):
        member = tool(put)

    before = threading.active_count()
    done = Runner("sync")(
        asked(),
        script(*[calls(call("put"))] * 3, ANSWER),
        tools=Queues,
        dispatch=Dispatcher(Queues),
    )
    assert (done.rounds, done.stopped_by) == (3, "answer")
    assert loops[0] is loops[1] is loops[3]
    assert (loops[2], loops[4]) == (1, 2), "a task of the first round went on in the later ones"
    assert loops[0].is_closed()
    assert threading.active_count() <= before


def test_an_answer_without_tools_needs_no_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("an event loop was started")

    monkeypatch.setattr("lutumpy.loops.effects.start_blocking_portal", refused)
    assert Runner("sync")(asked(), script(ANSWER)).stopped_by == "answer"


def test_loops_of_several_conversations_may_share_executor_dispatcher_and_hooks(
    backend: str,
) -> None:
    from functools import partial

    from lutumpy.loops import run_tools

    executor, dispatch, hooks = ToolExecutor(max_concurrency=2), dispatcher(), Desk.hooks()
    sessions = [asked(f"Number {k}?") for k in range(20)]

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for k, session in enumerate(sessions):
                llm = script(calls(look(f"w{k}")), calls(call("count", text="x" * k)), ANSWER)
                group.start_soon(
                    partial(
                        run_tools,
                        session,
                        llm,
                        tools=Desk,
                        dispatch=dispatch,
                        hooks=hooks,
                        executor=executor,
                    )
                )

    anyio.run(main, backend=backend)
    for k, session in enumerate(sessions):
        assert results(session) == [("ok", f"w{k} means {f'w{k}'[::-1]}"), ("ok", str(k))]
