"""The events of a conversation's log, as values: what `StoredEvent.load` gives.

A run writes what happens to it, and every front end is a function of that. Nothing here holds what
a provider sent, an exception's text, or the bytes of a file.
"""

# Calls and results are what was shown of them, not what runs: a log is read where the tools aren't.
# So the steps of a loop have twins here, of the same names, with `ShownCall` in place of a call.
# How each is written from the loop's own values is in `shown.py`.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, get_args

from lutumpy import Usage
from lutumpy.plain.values import dataclass
from lutumpy.tools import Question

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "ENDINGS",
    "CallAsked",
    "CallDecided",
    "CallDelivered",
    "CallHeld",
    "CallPromised",
    "Completed",
    "Delta",
    "DurableEvent",
    "LoopEnded",
    "MessagesTaken",
    "RequestStarted",
    "Restarted",
    "RoundCommitted",
    "RoundDecoded",
    "RoundExecuted",
    "RoundPlanned",
    "RunFailed",
    "RunStopped",
    "RunWaits",
    "ShownCall",
    "ShownIssue",
    "ShownMessage",
    "ShownRejection",
    "ShownResult",
    "UnknownEvent",
    "load_event",
]

ENDINGS: frozenset[str] = frozenset({"LoopEnded", "RunWaits", "RunFailed", "RunStopped"})
"""The events that end a run: each that wasn't killed or taken over writes one of them (rule W1)."""


# --- what is shown of calls, results and messages ----------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message of the user.

    Attributes:
        id: The key that it was pushed with; empty where it came with the session.
        text: Its texts.
        files: Its files by name, `image` for an image.
    """

    id: str
    text: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call (rule W3).

    Attributes:
        call_id: Its id.
        tool: The tool's name.
        arguments: What the model wrote.
        input: What runs, or ran: the input as JSON values, with the edits of hooks and people.
        edited: Whether that isn't what the model asked for.
        effect: The effect of the tool; empty for a call that the provider makes itself.
    """

    call_id: str
    tool: str
    arguments: str
    input: JsonValue = None
    edited: bool = False
    effect: str = ""


@dataclass(frozen=True, slots=True)
class ShownResult:
    """The result of a call.

    Attributes:
        call: The call.
        status: `ok`, `error` or `rejected`; `promised` where it comes later (`CallDelivered`).
        content: Its text as the model reads it; images and files are described.
        cut: Whether that is its beginning only: 16 kB are shown.
    """

    call: ShownCall
    status: str
    content: JsonValue = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class ShownIssue:
    """A call that can't be executed.

    Attributes:
        call_id: Its id.
        tool: The name that the model wrote.
        arguments: What it wrote.
        reason: What is wrong, as `ToolCallIssue.reason`.
        detail: What the model is told.
    """

    call_id: str
    tool: str
    arguments: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ShownRejection:
    """A call that will not be run.

    Attributes:
        call: The call.
        reason: Why; the model is told.
        source: Who decided: `hook`, `policy` or `person`.
    """

    call: ShownCall
    reason: str = ""
    source: str = "hook"


# --- events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MessagesTaken:
    """The first event of a task: the messages that it answers.

    Where more of them come before the first request, so does another event of this kind.
    """

    messages: tuple[ShownMessage, ...]


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request is about to be sent. Attributes as in `lutumpy.loops`."""

    round: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer. It is dropped once `Completed` takes its place.

    Attributes:
        kind: The name of its class in `lutumpy.streaming`, as `TextDelta`.
        values: Its attributes.
    """

    kind: str
    values: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole answer of a round, once for each.

    Attributes:
        blocks: Its blocks in order: `{"block": "text" | "reasoning" | "refusal", "text": ...}`,
            `{"block": "call", "call_id": ..., "tool": ..., "arguments": ...}` or
            `{"block": "opaque", "kind": ...}`.
    """

    blocks: tuple[Mapping[str, JsonValue], ...]


@dataclass(frozen=True, slots=True)
class RoundDecoded:
    """The model called tools; hooks have not decided yet. Attributes as in `lutumpy.loops`."""

    round: int
    usage: Usage = field(default_factory=Usage)
    calls: tuple[ShownCall, ...] = ()
    issues: tuple[ShownIssue, ...] = ()
    text: str = ""
    approvals: tuple[ShownCall, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundPlanned:
    """The hooks have decided. Attributes as in `lutumpy.loops`; `held` wait for a person, and then
    nothing runs before that.
    """

    round: int
    usage: Usage = field(default_factory=Usage)
    pending: tuple[ShownCall, ...] = ()
    handled: tuple[ShownResult, ...] = ()
    rejected: tuple[ShownRejection, ...] = ()
    approvals: tuple[ShownCall, ...] = ()
    held: tuple[ShownCall, ...] = ()
    issues: tuple[ShownIssue, ...] = ()


@dataclass(frozen=True, slots=True)
class CallHeld:
    """A person has to decide a call; written once for each.

    Attributes:
        call: The call.
        reason: Why a hook holds it.
        approval_id: Names plan and call: `<digest>:<call id>`.
        digest: The digest of the plan, which decisions have to name.
        schema: The JSON Schema of the tool's input; empty for a call of the provider's.
    """

    call: ShownCall
    reason: str
    approval_id: str
    digest: str
    schema: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallDecided:
    """Somebody has decided a call that was held.

    Attributes:
        approval_id: As in `CallHeld`.
        call: The call, with the input that will run.
        decision: `run`, `edited`, `complete` or `reject`.
        by: Who decided.
        reason: Why it was rejected.
    """

    approval_id: str
    call: ShownCall
    decision: Literal["run", "edited", "complete", "reject"]
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CallPromised:
    """The result of a call comes later. `note` is what the model is told, `until` (ISO 8601) when
    the call is given up; empty where nobody said it.
    """

    call: ShownCall
    note: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class CallAsked:
    """The server of a call wants to know something from a person; written once for each leg.

    Attributes:
        call: The call.
        questions: All that it asks and nobody has answered, for `loop.answer`. It is a stranger's
            text.
    """

    call: ShownCall
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class CallDelivered:
    """The late result of a call is taken: `outcome` is its status (`ok`, `error`, `rejected`), and
    `reason` is `delivered`, or `expired` where none came. `content` and `cut` are as in
    `ShownResult`; a log of an earlier release has none.
    """

    call_id: str
    tool: str
    outcome: str
    reason: str = "delivered"
    content: JsonValue = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class RoundExecuted:
    """The pending calls have run. Attributes as in `lutumpy.loops`."""

    round: int
    usage: Usage = field(default_factory=Usage)
    results: tuple[ShownResult, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundCommitted:
    """The turn and all results are in the session. Attributes as in `lutumpy.loops`."""

    round: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Restarted:
    """What was streamed of this round's answer is lost, or will come as a whole: forget it.

    Attributes:
        round: The number of the round in its task.
        attempt: Which execution of the round goes on now: the fence of its claim.
    """

    round: int
    attempt: int


@dataclass(frozen=True, slots=True)
class LoopEnded:
    """The model has answered, or a limit was reached.

    Attributes:
        rounds: How many rounds of the task were committed.
        usage: Tokens of the last run.
        text: What the model wrote in its last turn.
        stopped_by: As `LoopResult.stopped_by`.
        value: The value of the answer as JSON values, where the loop asks for one.
    """

    rounds: int
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    stopped_by: str = "unknown"
    value: JsonValue = None


@dataclass(frozen=True, slots=True)
class RunWaits:
    """The run has ended, and goes on when somebody has decided or answered, or a late result came.

    Attributes:
        digest: The digest of the plan.
        held: The ids of the calls that nobody has decided yet.
        promised: The ids of the calls whose results are still to come.
        asked: The ids of the calls with questions that nobody has answered.
        poll_after: Seconds after which to run again, where nobody else tells when.
    """

    digest: str
    held: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    poll_after: float | None = None


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run has ended by an error; its round stays open, and the next run goes on with it.

    Attributes:
        kind: The class of the error. Its text may hold anything, and is not in the log.
        retryable: Whether the error says that the same may succeed later.
    """

    kind: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The run was cancelled; its round stays open.

    Attributes:
        by: Who stopped it; `program` where the program has cancelled it.
    """

    by: str


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event that this release doesn't know.

    Attributes:
        name: Its name.
        values: Its values.
    """

    name: str
    values: Mapping[str, JsonValue]


DurableEvent: TypeAlias = Union[
    MessagesTaken,
    RequestStarted,
    Delta,
    Completed,
    RoundDecoded,
    RoundPlanned,
    CallHeld,
    CallDecided,
    CallPromised,
    CallAsked,
    CallDelivered,
    RoundExecuted,
    RoundCommitted,
    Restarted,
    LoopEnded,
    RunWaits,
    RunFailed,
    RunStopped,
    UnknownEvent,
]
"""An event of a log, for `match`."""


# --- reading -----------------------------------------------------------------------------------


def load_event(data: Mapping[str, Any]) -> DurableEvent:
    """The event of its JSON values; `UnknownEvent` for another release's."""
    name = str(data.get("event", ""))
    values = {key: value for key, value in data.items() if key not in ("event", "delta")}
    if data.get("delta"):
        return Delta(name, values)
    if name == "LoopEnded" and isinstance(values.get("result"), Mapping):
        values = {**values["result"], **values}
    kind = _KINDS.get(name)
    if kind is None:
        return UnknownEvent(name, values)
    try:
        loaded: DurableEvent = _load_as(kind, values)
    except (TypeError, ValueError, AttributeError):
        return UnknownEvent(name, values)
    return loaded


_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in get_args(DurableEvent)
    if kind not in (Delta, UnknownEvent)  # those have other forms
}


def _load_as(kind: type[Any], values: Any) -> Any:
    """A value of one of the classes here; what a newer release has more is left out."""
    found: dict[str, Any] = {}
    for each in fields(kind):
        if each.name not in values:
            if each.default is MISSING and each.default_factory is MISSING:
                raise ValueError(f"{kind.__name__} has no {each.name}")
            continue
        load = _NESTED.get((kind, each.name)) or _NESTED.get(each.name)
        value = values[each.name]
        found[each.name] = value if load is None else load(value)
    return kind(**found)


def _each(load: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: tuple([load(value) for value in values])


def _call(value: Any) -> Any:
    return _load_as(ShownCall, value)


# How attributes are read, by name; those of one class alone come first.
_NESTED: Mapping[Any, Callable[[Any], Any]] = {
    (RunWaits, "held"): tuple,
    "promised": tuple,
    "asked": tuple,
    "questions": _each(Question.load),
    (RoundPlanned, "handled"): _each(lambda value: _load_as(ShownResult, value)),
    (RoundPlanned, "rejected"): _each(lambda value: _load_as(ShownRejection, value)),
    "call": _call,
    "calls": _each(_call),
    "pending": _each(_call),
    "held": _each(_call),
    "approvals": _each(_call),
    "results": _each(lambda value: _load_as(ShownResult, value)),
    "issues": _each(lambda value: _load_as(ShownIssue, value)),
    "messages": _each(lambda value: _load_as(ShownMessage, value)),
    "blocks": tuple,
    "files": tuple,
    "usage": lambda value: Usage(**value),
}
