"""Calls whose results have to be asked for, by the runs of a durable loop (rules LR32 to LR34)."""

# A result that a poll finds is delivered like any other: a row of the inbox, unique by the call. So
# two processes that poll the same call do no harm, and what is written is written once.
#
# What a task asks in the meantime is recorded as a leg of its call, behind the leg that promised:
#
#   record             what it holds                    then
#   -----------------  -------------------------------  --------------------------------------
#   `call:<id>`        the promise, with the task's id  it is polled
#   `leg:2:<id>`       questions of the task            answers are sent with the next poll
#   `leg:3:<id>`       further questions                likewise
#   `sent:2:<id>`      that the answers were sent       they are not sent again
#
# A process that dies behind the sending leaves no such record: the server ignores what it has.

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeAlias, cast

from lutumpy import OpenCall, ToolResult
from lutumpy.durable.conversation import OpenConversation
from lutumpy.durable.late import LateStore, late_value
from lutumpy.durable.questions import (
    AskedCall,
    answers_to,
    asked_call,
    leg_of,
    leg_record,
    legs_behind,
)
from lutumpy.execution import asked_result
from lutumpy.hooks import BaseToolCall
from lutumpy.models import PromisedCall
from lutumpy.plain.values import dataclass
from lutumpy.tools import Asked, CallLeg, Polled, Poller, poll_once

__all__ = ["PollReport", "PolledCall", "Polls"]

logger: logging.Logger = logging.getLogger("lutumpy.durable")

_MOST_CALLS = 10_000  # that one process knows the times of

Leg: TypeAlias = "Mapping[str, Any]"
"""What is recorded of a leg that ended with questions."""


@dataclass(frozen=True, slots=True)
class PolledCall:
    """An open call that is polled.

    Attributes:
        call: The call.
        poller: What asks for its result.
        open_call: The call as the round has it, where that is open.
    """

    call: PromisedCall
    poller: Poller
    open_call: BaseToolCall | None = None


@dataclass(frozen=True, slots=True)
class PollReport:
    """What polling has found.

    Attributes:
        wait: Seconds after which to poll again; `None` where nothing is polled.
        asked: The calls that ask a person something.
        lost: The ids of the calls that nobody knows of any more.
    """

    wait: float | None
    asked: list[AskedCall]
    lost: set[str]


class Polls:
    """When a loop polled each call last. A process that has just started polls what is due by the
    interval since it was promised.
    """

    def __init__(self) -> None:
        self._next: dict[tuple[str, str], float] = {}

    async def poll(
        self,
        conversation: OpenConversation,
        calls: Sequence[PolledCall],
        *,
        holds: bool,
    ) -> PollReport:
        """Ask once for each call that is due, and deliver what came.

        Args:
            conversation: The conversation.
            calls: The open calls that are polled.
            holds: Whether the round waits for answers of people.
        """
        waits: list[float] = []
        report = PollReport(None, [], set())
        for each in calls:
            call, poller, call_id = each.call, each.poller, each.call.call_id
            legs = legs_behind(conversation, call_id) if holds else []
            key = conversation.scope, call_id
            new = _new_answers(conversation, legs)
            wait = self._seconds_to(key, call, poller)
            if wait <= 0 or new:
                answers = {name: one for each in new.values() for name, one in each.items()}
                found = await _ask(conversation, call, poller, answers, holds=holds)
                if found is None:
                    # Nothing is known that wasn't before, and no answer counts as sent.
                    wait = poller.interval(call.promise.handle)
                    self._note(key, wait)
                    waits.append(wait)
                    report.asked.extend(_open_questions(conversation, legs))
                    continue
                if found.state in ("done", "lost"):
                    self._next.pop(key, None)
                    if found.state == "lost":
                        report.lost.add(call_id)
                    continue
                wait = found.wait
                self._note(key, wait)
                for leg in new:
                    await conversation.record(_sent_record(call_id, leg), True)
                if found.asked is not None:
                    legs = await _keep_questions(conversation, each, found.asked, legs)
            report.asked.extend(_open_questions(conversation, legs))
            waits.append(wait)
        return PollReport(min(waits, default=None), report.asked, report.lost)

    def _note(self, key: tuple[str, str], wait: float) -> None:
        self._next.pop(key, None)
        self._next[key] = time.monotonic() + wait
        # Calls that another process has brought to their end are never heard of again here.
        while len(self._next) > _MOST_CALLS:
            del self._next[next(iter(self._next))]

    def _seconds_to(self, key: tuple[str, str], call: PromisedCall, poller: Poller) -> float:
        """Seconds until the call is due; none where its time is over: it is asked a last time."""
        now, promise = datetime.now(timezone.utc), call.promise
        if promise.until is not None and promise.until <= now:
            return 0.0
        due = self._next.get(key)
        if due is not None:
            return due - time.monotonic()
        since = promise.since or now
        return poller.interval(promise.handle) - (now - since).total_seconds()


async def _ask(
    conversation: OpenConversation,
    call: PromisedCall,
    poller: Poller,
    answers: Mapping[str, Any],
    *,
    holds: bool,
) -> Polled | None:
    """Ask for one call, and deliver its result if there is one; `None` if nobody could be asked."""
    try:
        polled = await poll_once(poller, call.metadata, call.promise.handle, answers, holds=holds)
    except Exception as error:
        logger.warning("the call %s couldn't be polled: %s", call.call_id, error)
        return None
    if polled.state == "done":
        result = _result_of(call, polled)
        value = late_value(call.call_id, call.name, result, digest=call.promise.tool_digest)
        await cast("LateStore", conversation.store).deliver(conversation.scope, call.call_id, value)
    return polled


def _new_answers(conversation: OpenConversation, legs: list[Leg]) -> dict[int, dict[str, Any]]:
    """The answers that nobody has sent yet, by leg: those of legs that are answered whole."""
    found: dict[int, dict[str, Any]] = {}
    for leg in legs:
        is_sent = conversation.recorded(_sent_record(str(leg["call_id"]), leg["leg"])) is not None
        answers = None if is_sent else answers_to(conversation, leg)
        if answers:
            found[leg["leg"]] = answers
    return found


def _sent_record(call_id: str, leg: int) -> str:
    return f"sent:{leg}:{call_id}"


def _open_questions(conversation: OpenConversation, legs: list[Leg]) -> list[AskedCall]:
    """What is open of each leg: a task may ask more before it has the first answers."""
    asked = [asked_call(leg, conversation.answers) for leg in legs]
    return [each for each in asked if each.questions]


def _result_of(call: PromisedCall, polled: Polled) -> ToolResult:
    opened = OpenCall.of(call)
    if polled.error is not None:
        return opened.fail(polled.error)
    return opened.complete(polled.output)


async def _keep_questions(
    conversation: OpenConversation, polled: PolledCall, asked: Asked, legs: list[Leg]
) -> list[Leg]:
    """The legs of a call, with what its task asks now; each question is asked once (LR33)."""
    known = {question["key"] for leg in legs for question in leg["questions"]}
    new = {key: question for key, question in asked.questions.items() if key not in known}
    if not new:
        return legs
    called = polled.open_call
    assert called is not None  # only a round that is open holds questions
    call_id = called.metadata.id
    before = legs[-1]["leg"] if legs else leg_of(conversation, call_id).number
    called.leg = CallLeg(before + 1, None)
    result = asked_result(called, Asked(asked.server, new, asked.resume), 1, 0.0)
    await conversation.record(leg_record(call_id, before + 1), result.dump())
    assert result.promise is not None
    return [*legs, result.promise.handle]
