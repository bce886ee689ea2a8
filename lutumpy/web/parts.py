"""Messages and parts of a conversation, and what may change in them (see `view.py`)."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, Union

from lutumpy.durable.log import LoopEnded, RunFailed, RunStopped, RunWaits, ShownMessage

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "CallAnswered",
    "CallBegan",
    "CallEnded",
    "CallGrew",
    "CallInput",
    "CallIsHeld",
    "CallPart",
    "CallRests",
    "CallStatus",
    "Change",
    "Changes",
    "Part",
    "PartBegan",
    "PartEnded",
    "PartGrew",
    "PromiseChanged",
    "PromisePart",
    "QuestionChanged",
    "QuestionPart",
    "RunEnded",
    "Step",
    "StepBegan",
    "StepEnded",
    "StepReset",
    "StepRewritten",
    "Task",
    "TaskBegan",
    "TaskEnded",
    "TextPart",
    "ValueGiven",
]


# --- the state ---------------------------------------------------------------------------------


@dataclass(slots=True)
class TextPart:
    """Text or readable reasoning of an answer.

    Attributes:
        kind: Which of the two; a refusal is text.
        id: Its place: `<round>.<number of the part>`.
        text: What of it is known.
        open: Whether more may come.
    """

    kind: Literal["text", "reasoning"]
    id: str
    text: str = ""
    open: bool = True


CallStatus = Literal["streaming", "ready", "held", "ok", "error", "rejected", "issue"]


@dataclass(slots=True)
class CallPart:
    """A call of an answer.

    Attributes:
        call_id: Its id.
        tool: The tool's name.
        id: Its place, as of `TextPart`.
        arguments: What of the model's text is known.
        complete: Whether that is all of it.
        input: What runs, or ran; `None` until that is known.
        edited: Whether that isn't what the model asked for.
        status: How far it has come; `issue` is a call that can't be run.
        approval_id: The id of the question whether it may run; empty where nobody asks.
        approved: The answer to it; `None` as long as there is none.
        automatic: Whether nobody had to be asked.
        question: Why a person is asked.
        reason: Why it was refused; what is wrong with an issue.
        schema: The JSON Schema of the tool's input, for a call that is held.
        content: What came of it.
        result_number: How many calls of the step had ended before it did.
        promised: Whether its round went on without its result, which comes later.
        rests: Whether a run has ended without its result, and asks nobody anything.
    """

    call_id: str
    tool: str
    id: str
    arguments: str = ""
    complete: bool = False
    input: JsonValue = None
    edited: bool = False
    status: CallStatus = "streaming"
    approval_id: str = ""
    approved: bool | None = None
    automatic: bool = False
    question: str = ""
    reason: str = ""
    schema: Mapping[str, JsonValue] = field(default_factory=dict)
    content: JsonValue = None
    result_number: int = 0
    promised: bool = False
    rests: bool = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in ("ok", "error", "rejected", "issue")


@dataclass(slots=True)
class PromisePart:
    """A call whose result comes later, or has come (rule W9a).

    Attributes:
        call_id: Its id.
        data: What is shown of it: `state` is `open`, `ok`, `error` or `rejected`.
    """

    call_id: str
    data: Mapping[str, JsonValue]


@dataclass(slots=True)
class QuestionPart:
    """What a server asks in the middle of a call (rule W9a). Its texts are a stranger's.

    Attributes:
        call_id: The id of the call.
        tool: The name of the tool.
        leg: Which leg of the call asks.
        questions: What it asks, by key: `message`, and `form` or `url`.
        answered: Whether the call has gone on.
    """

    call_id: str
    tool: str
    leg: int
    questions: Mapping[str, Mapping[str, JsonValue]]
    answered: bool = False

    @property
    def data(self) -> dict[str, JsonValue]:
        """What is shown of it."""
        return {
            "toolCallId": self.call_id,
            "tool": self.tool,
            "state": "answered" if self.answered else "open",
            "questions": [{"key": key, **values} for key, values in self.questions.items()],
        }


Part: TypeAlias = Union[TextPart, CallPart, PromisePart, QuestionPart]


@dataclass(slots=True)
class Step:
    """A round: one answer of the model, and what became of its calls."""

    number: int
    parts: list[Part] = field(default_factory=list)
    complete: bool = False
    ended: bool = False

    def call(self, call_id: str) -> CallPart | None:
        """The call with this id."""
        for part in self.parts:
            if isinstance(part, CallPart) and part.call_id == call_id:
                return part
        return None

    def calls(self) -> list[CallPart]:
        """Its calls, in order."""
        return [part for part in self.parts if isinstance(part, CallPart)]


@dataclass(slots=True)
class Task:
    """What answers messages of the user.

    Attributes:
        number: Its number in the conversation, from 1.
        id: The id of its assistant message.
        messages: The messages that it answers.
        steps: Its rounds.
        value: The value of the answer, where the loop asks for one.
        ending: How its last run ended; `None` while one goes on.
    """

    number: int
    id: str
    messages: list[ShownMessage] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    value: JsonValue = None
    ending: LoopEnded | RunWaits | RunFailed | RunStopped | None = None


# --- changes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskBegan:
    task: Task


@dataclass(frozen=True, slots=True)
class MessagesShown:
    """The task answers these messages, beside those that were shown before."""

    messages: tuple[ShownMessage, ...]


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """The next task begins: nothing more is said in this one."""

    task: Task


@dataclass(frozen=True, slots=True)
class StepBegan:
    step: Step


@dataclass(frozen=True, slots=True)
class StepReset:
    """What was shown of the step, the `dropped`, is taken back."""

    step: Step
    dropped: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class StepEnded:
    step: Step


@dataclass(frozen=True, slots=True)
class PartBegan:
    part: TextPart


@dataclass(frozen=True, slots=True)
class PartGrew:
    part: TextPart
    text: str


@dataclass(frozen=True, slots=True)
class PartEnded:
    part: TextPart


@dataclass(frozen=True, slots=True)
class CallBegan:
    call: CallPart


@dataclass(frozen=True, slots=True)
class CallGrew:
    call: CallPart
    text: str


@dataclass(frozen=True, slots=True)
class StepRewritten:
    """The arguments of its calls are whole, and were shown with other space in them."""

    step: Step


@dataclass(frozen=True, slots=True)
class CallInput:
    """What runs is known, or is another one than was said before."""

    call: CallPart


@dataclass(frozen=True, slots=True)
class CallIsHeld:
    """A person has to decide it."""

    call: CallPart


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """It was decided whether it runs; where `call.automatic`, nobody was asked."""

    call: CallPart


@dataclass(frozen=True, slots=True)
class CallRests:
    """It was decided that it runs, and the run has ended without its result."""

    call: CallPart


@dataclass(frozen=True, slots=True)
class CallEnded:
    """Nothing more comes of it: `call.status` and `call.content` say what did."""

    call: CallPart


@dataclass(frozen=True, slots=True)
class PromiseChanged:
    """A result was promised, or a promise was kept."""

    part: PromisePart


@dataclass(frozen=True, slots=True)
class QuestionChanged:
    """A server asks something, or its call has gone on."""

    part: QuestionPart


@dataclass(frozen=True, slots=True)
class ValueGiven:
    value: JsonValue


@dataclass(frozen=True, slots=True)
class RunEnded:
    event: LoopEnded | RunWaits | RunFailed | RunStopped


Change: TypeAlias = Union[
    TaskBegan,
    MessagesShown,
    TaskEnded,
    StepBegan,
    StepReset,
    StepEnded,
    PartBegan,
    PartGrew,
    PartEnded,
    CallBegan,
    CallGrew,
    StepRewritten,
    CallInput,
    CallIsHeld,
    CallAnswered,
    CallRests,
    CallEnded,
    PromiseChanged,
    QuestionChanged,
    ValueGiven,
    RunEnded,
]


R = TypeVar("R")
Changes: TypeAlias = Generator[Change, None, R]
