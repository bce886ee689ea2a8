"""Questions of a server in the middle of a call, in a store (rules LR23 to LR29)."""

# A call whose server asks something has run until then, and goes on when it is sent again with the
# answers. Each time is a leg, with a marker and a record of its own:
#
#   record               marker alone, after a crash              its value
#   -------------------  ---------------------------------------  -------------------------------
#   `call:<id>`          the first leg: `maybe_executed` (once)   a result, or what was asked
#   `leg:<n>:<id>`       leg n: likewise, and not sent again      a result, or what was asked
#
# So the result of a call is the record of its last leg. Answers are rows of the inbox beside the
# decisions about the open plan, one for each question; the first one stands. A leg is begun once
# all questions of the one before are answered, by whichever process runs the conversation then.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from lutumpy import CallTicket, ToolResult
from lutumpy.durable.types import InboxEntry, is_answer
from lutumpy.errors import StoreError
from lutumpy.execution import ExecutionResult
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.tools import CallLeg, Question, find_misfit

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.durable.conversation import OpenConversation

__all__ = [
    "AskedCall",
    "QuestionStore",
    "answer_id",
    "answer_value",
    "answers_to",
    "asked_call",
    "asked_calls",
    "asked_of",
    "check_answers",
    "is_asked",
    "leg_of",
    "leg_record",
    "legs_behind",
    "ticket_of_leg",
]


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call that goes on when a person has answered.

    Attributes:
        call_id: Its id.
        tool: The name of the tool.
        leg: Which leg of it asked, from 1.
        questions: What nobody has answered yet. None where the call only waits for its next leg.
    """

    call_id: str
    tool: str
    leg: int
    questions: tuple[Question, ...]


class QuestionStore(Protocol):
    """What a store needs for questions; the stores of this library have it."""

    async def asked(self, scope: str) -> tuple[AskedCall, ...]:
        """The calls of the open round whose servers have asked something, with what nobody has
        answered yet; one whose questions are all answered isn't among them. A call that became a
        task may be among them more than once, with a leg for each time that it asked.

        Raises:
            StoreError: `unknown_scope`.
        """
        ...

    async def answer(
        self, scope: str, call_id: str, leg: int, answers: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """Keep answers; the conversation is `open` then. Whether they fit was checked before.

        Args:
            scope: The conversation's id.
            call_id: The id of the call.
            leg: Which leg of it asked.
            answers: By the keys of the questions.
            by: Who answers.

        Returns:
            `True` if all of them were taken; a second one for a question is ignored.

        Raises:
            StoreError: `unknown_scope`; `answer`: no round is open.
        """
        ...


# --- records -----------------------------------------------------------------------------------


def leg_record(call_id: str, leg: int) -> str:
    """The name of the record of one leg of a call."""
    return f"call:{call_id}" if leg <= 1 else f"leg:{leg}:{call_id}"


def is_asked(result: ToolResult) -> bool:
    """Whether it isn't a result yet: its server has asked something."""
    return isinstance(result, ExecutionResult) and result.outcome == "asked"


def leg_of(conversation: OpenConversation, call_id: str) -> CallLeg:
    """Which leg a call is at: the one that is to be run, or whose questions are open."""
    leg = CallLeg(1, None)
    while True:
        handle = _handle_of(conversation.recorded(leg_record(call_id, leg.number)))
        if handle is None:
            return leg
        answers = _answers_in(conversation.answers, call_id, leg.number)
        if any(question["key"] not in answers for question in handle["questions"]):
            return leg
        resume = {**handle["resume"], "answers": {**answers}}
        leg = CallLeg(leg.number + 1, resume)


def ticket_of_leg(ticket: CallTicket, leg: CallLeg) -> CallTicket:
    """The ticket of one leg of a call."""
    return replace(ticket, leg=leg.number, resume=cast("JsonValue", leg.resume))


def legs_behind(conversation: OpenConversation, call_id: str) -> list[Mapping[str, Any]]:
    """What was asked behind the leg that promised a result, one for each leg."""
    found: list[Mapping[str, Any]] = []
    number = leg_of(conversation, call_id).number
    while True:
        number += 1
        handle = _handle_of(conversation.recorded(leg_record(call_id, number)))
        if handle is None:
            return found
        found.append(handle)


def answers_to(conversation: OpenConversation, leg: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answers to all questions of a leg, by key; `None` where one is open."""
    answers = _answers_in(conversation.answers, str(leg["call_id"]), int(leg["leg"]))
    return answers if all(each["key"] in answers for each in leg["questions"]) else None


def asked_of(result: ToolResult, answers: Iterable[InboxEntry] = ()) -> AskedCall:
    """What a call asks whose result says so, but for what was answered."""
    assert result.promise is not None
    return asked_call(cast("Mapping[str, Any]", result.promise.handle), answers)


def asked_calls(records: Mapping[str, Any], inbox: Sequence[InboxEntry]) -> tuple[AskedCall, ...]:
    """The calls of a round that ask something.

    Args:
        records: The records of the round, by name.
        inbox: What waits; the answers of the open plan among it.
    """
    handles = [handle for handle in map(_handle_of, records.values()) if handle is not None]
    withdrawn = {str(each.value["call_id"]) for each in inbox if each.kind == "late"}
    found: list[AskedCall] = []
    for handle in handles:
        call_id = str(handle["call_id"])
        asked = asked_call(handle, inbox)
        if asked.questions and call_id not in withdrawn:
            found.append(asked)
    return tuple(found)


def _handle_of(value: Any) -> Mapping[str, Any] | None:
    """What a record keeps of a leg that ended with questions."""
    if not isinstance(value, Mapping) or value.get("outcome") != "asked":
        return None
    return cast("Mapping[str, Any]", value["promise"]["handle"])


def asked_call(handle: Mapping[str, Any], inbox: Iterable[InboxEntry]) -> AskedCall:
    """What a leg asks, but for what was answered."""
    call_id, leg = str(handle["call_id"]), int(handle["leg"])
    answered = _answers_in(inbox, call_id, leg)
    place = {"call_id": call_id, "tool": handle["tool"], "leg": leg}
    questions = [
        Question.load({**each, **place})
        for each in handle["questions"]
        if each["key"] not in answered
    ]
    return AskedCall(call_id, str(handle["tool"]), leg, tuple(questions))


# --- answers -----------------------------------------------------------------------------------


def answer_id(plan_digest: str, call_id: str, leg: int, key: str) -> str:
    """The id of the entry that answers a question: there is one."""
    return f"answer:{plan_digest}:{json_values.encode_text([call_id, leg, key])}"


def answer_value(
    plan_digest: str, call_id: str, leg: int, key: str, answer: Any, by: str
) -> dict[str, Any]:
    """What such an entry holds."""
    place = {"plan": plan_digest, "call_id": call_id, "leg": leg, "key": key}
    return {**place, "answer": answer, "by": by}


def check_answers(call_id: str, asked: Sequence[AskedCall], answers: Mapping[str, Any]) -> None:
    """Raise `StoreError` for an answer to what isn't asked, or that doesn't fit (rule LR24).

    Args:
        call_id: The id of the call.
        asked: What it asks, by leg.
        answers: The answers, by the keys of the questions.
    """
    known = {question.key: question for call in asked for question in call.questions}
    for key, answer in answers.items():
        question = known.get(key)
        if question is None:
            open_keys = ", ".join(map(repr, known))
            raise StoreError(
                "answer",
                f"the call {call_id!r:.100} doesn't ask {key!r:.100}, or was answered; open are "
                f"{open_keys}; nothing was taken",
            )
        misfit = find_misfit(question.form, answer)
        if misfit is not None:
            raise StoreError(
                "answer", f"the answer to {key!r:.100} doesn't fit: {misfit}; nothing was taken"
            )


def _answers_in(inbox: Iterable[InboxEntry], call_id: str, leg: int) -> dict[str, Any]:
    """The answers to the questions of one leg, by key."""
    return {
        str(entry.value["key"]): entry.value["answer"]
        for entry in inbox
        if is_answer(entry) and entry.value["call_id"] == call_id and entry.value["leg"] == leg
    }
