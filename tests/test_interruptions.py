"""An exception may come out of any line, as those of signals do (rule K3a).

Then a session is as before the step or as after it. Each step is run again and again, interrupted
at one more place each time: at each line, and at each byte code. What the session sends afterwards
is compared with one that was never interrupted: before the step, or after it.
"""

from __future__ import annotations

import dis
import functools
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, coroutine
from typing import Any

import pytest
from every_api import ADAPTERS
from profiles import examples

import lutumpy
from lutumpy import (
    AssistantTurn,
    Complete,
    DroppedRoundError,
    Finished,
    HookError,
    LutumpyError,
    NeedsTools,
    Reject,
    RoundClosedError,
    RunNormally,
    Session,
    StaleRoundError,
    ToolRound,
    Toolset,
    Usage,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel

PACKAGE = os.path.dirname(lutumpy.__file__)
every_api = pytest.mark.parametrize("api", ADAPTERS)
# Without ephemerals less happens, and it is the same for every API.
every_scene = pytest.mark.parametrize(
    ("api", "ephemeral"), [("openai_chat", False), *[(api, True) for api in ADAPTERS]]
)
# Rounds are dropped here on purpose, one at each place of the code.
pytestmark = [
    pytest.mark.scaled,
    pytest.mark.filterwarnings("ignore:a tool round:ResourceWarning"),
]
# Each place of each step takes an hour; by default so many lines and byte codes of a step, evenly
# spread. 0: every one.
MOST = int(os.environ.get("LUTUMPY_INTERRUPTIONS", examples(60)))


@pytest.fixture(autouse=True, scope="module")
def cheap_collections() -> Iterator[None]:
    """What was there before these tests isn't looked at by the garbage collector, which takes most
    of the time otherwise.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Interrupt(BaseException):
    """As KeyboardInterrupt, and not mistaken for one that somebody really sent."""


@tool_fn
def lookup(key: str) -> str:
    """Look something up."""
    return f"{key} found"


class Tools(Toolset):
    lookup = tool(lookup)


def chat_reply(calls: list[tuple[str, str]], text: str | None = None) -> dict[str, Any]:
    found = [
        {"id": call_id, "type": "function", "function": {"name": "lookup", "arguments": arguments}}
        for call_id, arguments in calls
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": found} if found else {})}
    finish = "tool_calls" if found else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def responses_reply(calls: list[tuple[str, str]], text: str | None = None) -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": "lookup",
            "arguments": arguments,
        }
        for call_id, arguments in calls
    ]
    if text is not None:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {"id": "resp_1", "status": "completed", "output": output, "usage": usage}


def anthropic_reply(calls: list[tuple[str, str]], text: str | None = None) -> dict[str, Any]:
    content: list[dict[str, Any]] = (
        [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}] if calls else []
    )
    for call_id, arguments in calls:
        try:
            given = json.loads(arguments)
        except ValueError:
            given = {"broken": arguments}
        content.append({"type": "tool_use", "id": call_id, "name": "lookup", "input": given})
    if text is not None:
        content.append({"type": "text", "text": text})
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {"content": content, "stop_reason": "tool_use" if calls else "end_turn", "usage": usage}


def gemini_reply(calls: list[tuple[str, str]], text: str | None = None) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": "hm", "thought": True}] if calls else []
    for call_id, arguments in calls:
        call = {"id": call_id, "name": "lookup", "args": json.loads(arguments)}
        parts.append({"functionCall": call, "thoughtSignature": "c2ln"})
    if text is not None:
        parts.append({"text": text})
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage}


def converse_reply(calls: list[tuple[str, str]], text: str | None = None) -> dict[str, Any]:
    told = {"reasoningText": {"text": "hm", "signature": "c2ln"}}
    content: list[dict[str, Any]] = [{"reasoningContent": told}] if calls else []
    for call_id, arguments in calls:
        use = {"toolUseId": call_id, "name": "lookup", "input": json.loads(arguments)}
        content.append({"toolUse": use})
    if text is not None:
        content.append({"text": text})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
    }


def ollama_reply(calls: list[tuple[str, str]], text: str | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or ""}
    if calls:
        message["thinking"] = "hm"
        message["tool_calls"] = [
            {"id": call_id, "function": {"name": "lookup", "arguments": json.loads(arguments)}}
            for call_id, arguments in calls
        ]
    counts = {"prompt_eval_count": 10, "eval_count": 5}
    return {"message": message, "done": True, "done_reason": "stop", **counts}


REPLIES: dict[str, Callable[..., dict[str, Any]]] = {
    "openai_chat": chat_reply,
    "openai_responses": responses_reply,
    "anthropic_messages": anthropic_reply,
    "gemini_generate_content": gemini_reply,
    "bedrock_converse": converse_reply,
    "ollama_chat": ollama_reply,
}
TWO = [("call_a", '{"key":"a"}'), ("call_b", '{"kye":"b"}')]


def turn_of(api: str, calls: list[tuple[str, str]], text: str | None = None) -> AssistantTurn:
    turn: AssistantTurn = ADAPTERS[api].response(REPLIES[api](calls, text))
    return turn


# --- what a session sends -------------------------------------------------------------------------


def sent(session: Session) -> dict[str, Any]:
    """Everything that this session would send and dump.

    A copy says so, so that nothing of the session changes.
    """
    dump = session.dump()
    bodies = sent_after_loading(json.dumps(dump))
    # A request that was cut off was sent all the same, so it is listed among those whose cost is
    # unknown (rule U1).
    assert len(dump.pop("unsettled")) <= 1
    return {**bodies, "dump": json.dumps(dump)}


# Nearly all places of a step leave the same few dumps behind, and loading one takes most of a try.
@functools.lru_cache(maxsize=64)
def sent_after_loading(dump: str) -> Mapping[str, str]:
    """What a session that is loaded from a dump sends to each API."""
    twin = Session.load(dump)
    twin.push_user("And now?")
    return {
        api: json.dumps(adapter.request(twin.transcript, Tools.offer()))
        for api, adapter in ADAPTERS.items()
    }


def without_usage(dump: str) -> str:
    """A dump but for what the session cost."""
    return json.dumps({name: value for name, value in json.loads(dump).items() if name != "usage"})


def bodies(session: Session) -> dict[str, str]:
    """What this very session sends, with whatever it has kept of earlier requests."""
    session.push_user("And now?")
    return {
        api: json.dumps(adapter.request(session.transcript, Tools.offer()))
        for api, adapter in ADAPTERS.items()
    }


# --- interrupting ---------------------------------------------------------------------------------


def _in_finalizer(frame: FrameType | None) -> bool:
    # What a finalizer raises goes nowhere, so an interrupt there interrupts nobody; nor does one in
    # the callback by which hypothesis times the garbage collector.
    while frame is not None:
        if frame.f_code.co_name in ("__del__", "gc_callback"):
            return True
        frame = frame.f_back
    return False


def _in_coverage(frame: FrameType | None) -> bool:
    # It holds a lock of its own then, which nobody would give back.
    while frame is not None:
        if "coverage" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _puts_exception_away(frame: FrameType) -> bool:
    # At the last byte code of an `except`, Python looks for no signal. What a trace raises there
    # leaves the exception that was handled in its place, and all frames that this holds with it.
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "POP_EXCEPT"


def run_until(step: Callable[[], object], place: int, event: str) -> bool:
    """Run `step`, interrupted at the place of this number; whether it got that far."""
    passed = 0
    reached = False

    def local(frame: FrameType, kind: str, argument: object) -> Any:
        nonlocal passed, reached
        # What Python does of its own accord, as when a generator that nobody wants any more is
        # closed, has no line; an exception there would interrupt nobody.
        if kind == event and frame.f_lineno is not None:
            if passed >= place and not _puts_exception_away(frame):
                reached = True
                sys.settrace(None)
                raise Interrupt
            passed += 1
        return local

    def begin(frame: FrameType, kind: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        if not (name.startswith(PACKAGE) or name == "<string>") or _in_finalizer(frame):
            return None
        if event == "opcode":
            frame.f_trace = local  # from Python 3.13 on, the next line does nothing without it
            frame.f_trace_opcodes = True
        return local

    before = sys.gettrace()
    try:
        sys._getframe().f_trace_opcodes = (
            event == "opcode"
        )  # in Python 3.12, settrace asks whether any frame wants them
        sys.settrace(begin)
        step()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)
    return reached


def places(run: Callable[[int, str], bool], *, most: int = MOST) -> Iterator[tuple[int, str]]:
    """Lines and byte codes of a step, evenly spread.

    `run` interrupts there, and says whether it got that far.
    """
    for event in ("line", "opcode"):
        # How long the step is, is found by doubling: a place behind its end interrupts nothing.
        end = 64
        while run(end, event):
            end *= 2
        stride = max(1, end // most) if most else 1
        for place in range(0, end, stride):
            if not run(place, event):
                break
            yield place, event


class Scene:
    """A session in the middle of something, made anew for each interruption."""

    def __init__(self, api: str, *, ephemeral: bool = False) -> None:
        self.api = api
        self.session = Session()
        self.session.push_system("Be brief.")
        self.session.push_user("Look up a and b.")
        if ephemeral:
            self.session.push_ephemeral_user("It is noon.")
        # Encoders that have something to keep.
        ADAPTERS[api].request(self.session.transcript, Tools.offer())

    def read(self) -> ToolRound[Any]:
        outcome = Tools.offer().read(turn_of(self.api, TWO), self.session)
        assert isinstance(outcome, NeedsTools)
        return outcome.round

    def results(self, round: Any) -> list[Any]:
        return [call.complete(f"{call.arguments['key']} found") for call in round.calls]


Prepare = Callable[[Scene], "Callable[[], object]"]


def push(scene: Scene) -> Callable[[], object]:
    return lambda: scene.session.push_user("One more thing.")


def push_ephemeral(scene: Scene) -> Callable[[], object]:
    return lambda: scene.session.push_ephemeral_user("It is late.")


def read(scene: Scene) -> Callable[[], object]:
    turn = turn_of(scene.api, TWO)
    return lambda: Tools.offer().read(turn, scene.session)


def read_finished(scene: Scene) -> Callable[[], object]:
    turn = turn_of(scene.api, [], "Done.")
    return lambda: Tools.offer().read(turn, scene.session)


def commit(scene: Scene) -> Callable[[], object]:
    round = scene.read()
    results = scene.results(round)
    scene.kept = round  # type: ignore[attr-defined]  # held, so that it isn't dropped
    return lambda: round.commit(scene.session, results)


def discard(scene: Scene) -> Callable[[], object]:
    round = scene.read()
    scene.kept = round  # type: ignore[attr-defined]
    return round.discard


def add_usage(scene: Scene) -> Callable[[], object]:
    return lambda: scene.session.add_usage(Usage(1, 2, 3))


def decide(call: Any) -> Any:
    return Reject("no") if call.input.key == "b" else RunNormally(call.input)


def apply_and_commit(scene: Scene) -> Callable[[], object]:
    round = scene.read()

    def step() -> None:
        plan = round.apply_hooks_sync(decide)
        plan.commit(scene.session, scene.results_of(plan))  # type: ignore[attr-defined]

    scene.results_of = lambda plan: [
        c.complete(f"{c.arguments['key']} found") for c in plan.pending
    ]  # type: ignore[attr-defined]
    return step


def collect(scene: Scene) -> Callable[[], object]:
    llm = ScriptedModel([Reply("Done.")], api=scene.api, check=False)  # type: ignore[arg-type]
    return lambda: scene.session.text_turn(llm).collect_sync()


def collect_calls(scene: Scene) -> Callable[[], object]:
    llm = ScriptedModel([Reply(calls=[Call("lookup", {"key": "a"})])], api=scene.api, check=False)  # type: ignore[arg-type]
    return lambda: scene.session.text_turn(llm, tools=Tools).collect_sync()


def stream(scene: Scene) -> Callable[[], object]:
    llm = ScriptedModel([Reply("Done.")], api=scene.api, check=False)  # type: ignore[arg-type]

    def step() -> None:
        with scene.session.text_turn(llm, tools=Tools).stream_sync() as events:
            for _ in events:
                pass

    return step


def structured(scene: Scene) -> Callable[[], object]:
    """The value comes by a tool, whose call is committed with its result."""
    llm: Any = ScriptedModel(
        [Reply(calls=[Call("answer", {"value": 3})])], api=scene.api, check=False
    )  # type: ignore[arg-type]
    llm.structured = "tool"
    return lambda: scene.session.structured_turn(llm, int).collect_sync()


def commit_staged(scene: Scene) -> Callable[[], object]:
    llm = ScriptedModel([Reply("Done.")], api=scene.api, check=False)  # type: ignore[arg-type]
    outcome = scene.session.text_turn(llm).collect_staged_sync()
    return lambda: outcome.commit(scene.session)


def discard_staged(scene: Scene) -> Callable[[], object]:
    llm = ScriptedModel([Reply("Done.")], api=scene.api, check=False)  # type: ignore[arg-type]
    return scene.session.text_turn(llm).collect_staged_sync().discard


def discard_open(scene: Scene) -> Callable[[], object]:
    scene.read()  # and dropped
    return scene.session.discard_open


def take_another_transcript(scene: Scene) -> Callable[[], object]:
    scene.read().discard()
    window = scene.session.transcript.window(max_rounds=1)
    window.push_user("Another one.")

    def step() -> None:
        scene.session.transcript = window

    return step


def set_usage(scene: Scene) -> Callable[[], object]:
    def step() -> None:
        scene.session.usage = Usage(7, 7, 14)

    return step


REQUESTS: list[Prepare] = [collect, collect_calls, stream, structured]
STEPS: list[Prepare] = [
    *(push, push_ephemeral, read, read_finished, commit, discard, add_usage, apply_and_commit),
    *REQUESTS,
    *(commit_staged, discard_staged),
    *(discard_open, take_another_transcript, set_usage),
]


@every_scene
@pytest.mark.parametrize("prepare", STEPS, ids=lambda prepare: prepare.__name__)
def test_a_step_is_done_or_not_done_whatever_interrupts_it_K3a(
    api: str, ephemeral: bool, prepare: Prepare
) -> None:
    def ended(run: Callable[[Callable[[], object]], object]) -> tuple[Session, object]:
        """A session after the step, or after as much of it as `run` lets happen.

        A round that it left behind is discarded.
        """
        scene = Scene(api, ephemeral=ephemeral)
        step = prepare(scene)
        found = run(step)
        del step
        scene.__dict__.pop("kept", None)
        # Cut off while Python itself puts an exception away, a frame may wait for the garbage
        # collector.
        gc.collect()
        scene.session.discard_open()
        return scene.session, found

    before = sent(ended(lambda step: None)[0])
    after = sent(ended(lambda step: bool(step()))[0])  # nothing of what it gives is kept
    # A round whose making was interrupted may have been read, and was dropped then.
    allowed = [before, after]
    if prepare is apply_and_commit:
        dropped = Scene(api, ephemeral=ephemeral)
        dropped.read()
        dropped.session.discard_open()
        allowed.append(sent(dropped.session))
    if prepare in REQUESTS:
        allowed = [{**one, "dump": without_usage(one["dump"])} for one in allowed]
    seen: list[int] = []

    def interrupted(place: int, event: str) -> bool:
        session, reached = ended(lambda step: run_until(step, place, event))
        found = sent(session)
        if prepare in REQUESTS:
            # The known cost of an answer that was left is counted, though the answer isn't there
            # (rule U1).
            found = {**found, "dump": without_usage(found["dump"])}
        assert found in allowed, (place, event)
        seen.append(allowed.index(found))
        # What it has kept of earlier requests is what it would make anew.
        assert bodies(session) == {key: found[key] for key in ADAPTERS}, (place, event)
        return bool(reached)

    assert list(places(interrupted))
    assert allowed[0] == allowed[1] or {0, 1} <= set(seen)


@every_scene
def test_a_commit_that_was_interrupted_is_done_or_can_be_done_and_its_round_says_which_K3a(
    api: str, ephemeral: bool
) -> None:
    whole = Scene(api, ephemeral=ephemeral)
    round = whole.read()
    round.commit(whole.session, whole.results(round))
    after = sent(whole.session)
    ways: set[str] = set()

    def interrupted(place: int, event: str) -> bool:
        scene = Scene(api, ephemeral=ephemeral)
        round = scene.read()
        results = scene.results(round)
        reached = run_until(lambda: round.commit(scene.session, results), place, event)
        if scene.session.turns():
            ways.add("done")
            assert "committed" in repr(round)
            with pytest.raises(RoundClosedError, match="committed"):
                round.commit(scene.session, results)
            with pytest.raises(RoundClosedError, match="committed"):
                round.discard()
        else:
            ways.add("not done")
            assert "open" in repr(round)
            # Something else may come first; then the answer still goes behind it.
            round.commit(scene.session, results)
        assert sent(scene.session) == after, (place, event)
        return reached

    assert list(places(interrupted))
    assert ways == {"done", "not done"}


@every_api
def test_a_commit_that_was_cut_off_leaves_no_id_and_no_item_behind_K3a(api: str) -> None:
    """What it has written already counts for nobody: the next turn may have the same ids."""

    def interrupted(place: int, event: str) -> bool:
        scene = Scene(api)
        round = scene.read()
        results = scene.results(round)
        reached = run_until(lambda: round.commit(scene.session, results), place, event)
        if scene.session.turns():
            return reached
        round.discard()
        again = scene.read()
        assert [entry.metadata.id for entry in (*again.calls, *again.issues)] == [
            "call_a",
            "call_b",
        ]
        assert again.issues[0].repeat == 0
        again.commit(scene.session, scene.results(again))
        assert len(scene.session.transcript) == 4
        return reached

    assert list(places(interrupted))


@every_scene
def test_a_request_that_was_interrupted_is_the_same_when_it_is_made_again_K3a(
    api: str, ephemeral: bool
) -> None:
    """An encoder that was cut off in an item doesn't send it twice."""

    def scene() -> Session:
        made = Scene(api)
        round = made.read()
        round.commit(made.session, made.results(round))
        made.session.push_user("Go on.")
        if ephemeral:
            made.session.push_ephemeral_user("It is late.")
        return made.session

    request = ADAPTERS[api].request
    expected = json.dumps(request(scene().transcript, Tools.offer()))

    def interrupted(place: int, event: str) -> bool:
        session = scene()
        reached = run_until(lambda: request(session.transcript, Tools.offer()), place, event)
        assert json.dumps(request(session.transcript, Tools.offer())) == expected, (place, event)
        for other in ADAPTERS.values():
            other.request(session.transcript, Tools.offer())
        return reached

    assert list(places(interrupted))


@every_api
@pytest.mark.parametrize("what", ["fork", "dump", "load"])
def test_a_copy_that_was_interrupted_changes_nothing_K3a(api: str, what: str) -> None:
    scene = Scene(api, ephemeral=True)
    round = scene.read()
    round.commit(scene.session, scene.results(round))
    data = json.dumps(scene.session.dump())
    steps: dict[str, Callable[[], object]] = {
        "fork": scene.session.fork,
        "dump": scene.session.dump,
        "load": lambda: Session.load(data),
    }
    before = sent(scene.session)

    def interrupted(place: int, event: str) -> bool:
        reached = run_until(steps[what], place, event)
        assert sent(scene.session) == before, (place, event)
        return reached

    assert list(places(interrupted))


@every_api
def test_hooks_that_were_interrupted_leave_the_round_as_decoded_or_gave_it_to_a_plan_K3a_H2(
    api: str,
) -> None:
    def edit(call: Any) -> Any:
        call.input.key = "edited in place"
        return RunNormally(call.input)

    def interrupted(place: int, event: str) -> bool:
        scene = Scene(api)
        round = scene.read()
        reached = run_until(lambda: round.apply_hooks_sync(edit), place, event)
        if "open" in repr(round):
            assert round.calls[0].input.key == "a"
            plan = round.apply_hooks_sync(decide)
            plan.commit(scene.session, scene.results(PlanAsRound(plan)))
        else:
            # The plan that took its place was dropped before anybody got it, and the next request
            # says so.
            with pytest.raises(DroppedRoundError, match="call_a"):
                ADAPTERS[api].request(scene.session.transcript)
            scene.session.discard_open()
        bodies(scene.session)
        return reached

    assert list(places(interrupted))


def plan_by_signal_of_a_hook(round: Any) -> None:
    """Two hooks' edits, and an exception of the second: the interrupt meets what comes after it."""

    def edit(call: Any) -> Any:
        call.input.key = "edited in place"
        if call.metadata.id == "call_c":
            raise Interrupt
        return RunNormally(call.input)

    round.apply_hooks_sync(edit)


def plan_cancelled_while_a_hook_waits(round: Any) -> None:
    """A hook edits and waits; the task is cancelled, and the interrupt meets what comes then."""

    @coroutine
    def wait() -> Any:
        yield

    async def edit(call: Any) -> Any:
        call.input.key = "edited in place"
        await wait()
        return RunNormally(call.input)

    planning = round.apply_hooks(edit)
    planning.send(None)
    planning.throw(Interrupt)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # interrupted before it began
@pytest.mark.parametrize("plan_with", [plan_by_signal_of_a_hook, plan_cancelled_while_a_hook_waits])
def test_hooks_that_raise_and_are_interrupted_as_well_leave_the_round_as_decoded_K3a_H2(
    plan_with: Callable[[Any], None],
) -> None:
    calls = [("call_a", '{"key":"a"}'), ("call_b", '{"kye":"b"}'), ("call_c", '{"key":"c"}')]

    def interrupted(place: int, event: str) -> bool:
        scene = Scene("openai_chat")
        outcome = Tools.offer().read(turn_of("openai_chat", calls), scene.session)
        assert isinstance(outcome, NeedsTools)
        round = outcome.round
        reached = run_until(lambda: plan_with(round), place, event)
        assert [call.input.key for call in round.calls] == ["a", "c"]
        # Nothing is left behind that hinders or changes the next plan.
        plan = round.apply_hooks_sync(lambda call: RunNormally())
        assert [call.input.key for call in plan.pending] == ["a", "c"]
        plan.commit(scene.session, scene.results(PlanAsRound(plan)))
        return reached

    assert list(places(interrupted))


class PlanAsRound:
    """The pending calls of a plan under the name that those of a round have."""

    def __init__(self, plan: Any) -> None:
        self.calls = plan.pending


def test_a_stream_that_was_interrupted_while_it_ended_is_read_or_not_K3a() -> None:
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Done"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    before = sent(Scene("openai_chat").session)
    whole = Scene("openai_chat")
    Tools.offer().reader(OpenAIChat.stream_decoder(), whole.session).collect(chunks)
    after = sent(whole.session)

    def interrupted(place: int, event: str) -> bool:
        scene = Scene("openai_chat")
        reader = Tools.offer().reader(OpenAIChat.stream_decoder(), scene.session)
        reached = run_until(lambda: reader.collect(chunks), place, event)
        assert sent(scene.session) in (before, after)
        return reached

    assert list(places(interrupted))


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="the platform has no timers that signal"
)
@every_api
def test_signals_at_any_moment_leave_a_session_that_goes_on_K3a(api: str) -> None:
    """Real ones, aimed at a loop that requests, reads, decides and commits."""
    if sys.gettrace() is not None:
        pytest.skip(
            "a tracer, as coverage is one, holds locks that an exception from a signal would leave "
            "locked"
        )

    scene = Scene(api)
    session, request = scene.session, ADAPTERS[api].request

    def work(number: int) -> None:
        request(session.transcript, Tools.offer())
        outcome = Tools.offer().read(turn_of(api, [(f"call_{number}", '{"key":"a"}')]), session)
        assert isinstance(outcome, NeedsTools)
        plan = outcome.round.apply_hooks_sync(lambda call: Complete("found"))
        plan.commit(session, [])
        assert isinstance(Tools.offer().read(turn_of(api, [], "Done."), session), Finished)

    def ring(number: int, frame: FrameType | None) -> None:
        inside = frame
        while inside is not None and inside.f_code is not work.__code__:
            inside = inside.f_back
        if inside is not None and not _in_finalizer(frame) and not _in_coverage(frame):
            raise Interrupt

    work(-1)  # pydantic imports something then; an interrupted import leaves its file open
    session.push_user("Next.")
    before = signal.signal(signal.SIGALRM, ring)
    interrupted = 0
    try:
        for number in range(examples(75)):
            signal.setitimer(signal.ITIMER_REAL, 0.00002 + (number % 25) * 0.00004)
            try:
                work(number)
            except Interrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            gc.collect()
            session.discard_open()
            session.push_user("Next.")
            # The encoders that lived through all this say what new ones say.
            fresh = Session.load(json.dumps(session.dump()))
            assert request(session.transcript) == request(fresh.transcript)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted


@pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="the platform has no timers that signal"
)
def test_signals_while_hooks_edit_and_raise_leave_inputs_as_decoded_K3a_H2() -> None:
    """Real ones, one after another, aimed at what comes after an exception of a hook."""
    if sys.gettrace() is not None:
        pytest.skip("a tracer holds locks that an exception from a signal would leave locked")
    calls = [(f"call_{number}", json.dumps({"key": f"k{number}"})) for number in range(4)]
    turn = turn_of("openai_chat", calls)
    keys = [f"k{number}" for number in range(4)]
    left = 0

    def edit(call: Any) -> Any:
        call.input.key = "edited in place"
        if call.metadata.id == "call_3":
            raise ValueError("no")
        return RunNormally(call.input)

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal left
        if not left or _in_finalizer(frame) or _in_coverage(frame):
            return
        left -= 1
        if left:
            signal.setitimer(signal.ITIMER_REAL, 0.000005)
        raise Interrupt

    def interrupted(round: ToolRound[Any], seconds: float) -> bool:
        nonlocal left
        try:
            left = 2
            signal.setitimer(signal.ITIMER_REAL, seconds)
            with pytest.raises(HookError):
                round.apply_hooks_sync(edit)
        except Interrupt:
            return True
        finally:
            left = 0
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False

    before = signal.signal(signal.SIGALRM, ring)
    count = 0
    try:
        for number in range(examples(1500)):
            session = Session()
            session.push_user("go")
            outcome = Tools.offer().read(turn, session)
            assert isinstance(outcome, NeedsTools)
            try:
                count += interrupted(outcome.round, 0.00001 + (number % 60) * 0.000005)
            except Interrupt:  # the second one, on the way out
                left = 0
                signal.setitimer(signal.ITIMER_REAL, 0)
                count += 1
            assert [call.input.key for call in outcome.round.calls] == keys
            plan = outcome.round.apply_hooks_sync(lambda call: RunNormally())
            assert [call.input.key for call in plan.pending] == keys
            plan.discard()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert count


# --- rounds that were dropped ---------------------------------------------------------------------


@every_api
def test_a_dropped_round_is_named_by_the_next_request_until_it_is_discarded_C7a(api: str) -> None:
    scene = Scene(api)
    with pytest.warns(
        ResourceWarning, match="dropped without commit or discard, with the calls lookup, lookup"
    ):
        scene.read()
    for _ in range(2):
        with pytest.raises(
            DroppedRoundError, match=r"lookup \('call_a'\), lookup \('call_b'\).*discard_open"
        ) as caught:
            ADAPTERS[api].request(scene.session.transcript, Tools.offer())
    assert [call.id for call in caught.value.calls] == ["call_a", "call_b"]
    assert isinstance(caught.value, LutumpyError)
    for copy in (scene.session.fork(), Session.load(scene.session.dump())):
        ADAPTERS[api].request(copy.transcript)  # a fork and a load begin without marks
    ADAPTERS[api].messages(scene.session.transcript)  # what is no request is not refused
    scene.session.discard_open()
    scene.session.transcript.discard_open()
    ADAPTERS[api].request(scene.session.transcript, Tools.offer())


def test_several_rounds_may_be_open_as_long_as_something_holds_them_C7a() -> None:
    scene = Scene("openai_chat")
    one, two = scene.read(), scene.read()
    OpenAIChat.request(scene.session.transcript)
    one.commit(scene.session, scene.results(one))
    with pytest.raises(StaleRoundError, match="rebase=True"):
        two.commit(scene.session, scene.results(two))
    two.commit(scene.session, scene.results(two), rebase=True)
    assert len(scene.session.turns()) == 2
