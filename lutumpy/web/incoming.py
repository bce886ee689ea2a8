"""What a browser sends, left in the store: messages, decisions, answers (rules W11, W14 to W16)."""

# A client may send a request twice, come again after a reload, or show what nobody asks now. So
# nothing that it says counts as the state of the conversation: that is in the store. Where it goes
# on in the log depends on what it brought:
#
#   a message that nobody has taken   behind the end of the log, where its task will begin
#   a message that was taken before   at the beginning of the task that answers it
#   answers                           behind the event that asked, which the client has seen
#   nothing                           behind the end of the log
#
# A message is refused while a person is asked something, and so is an answer to what nobody asks.

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lutumpy import FilePart, ImagePart, Session, TextPart
from lutumpy.durable import (
    AskedCall,
    DurableEvent,
    DurableLoop,
    HeldPlan,
    OperatorStore,
    StoredEvent,
)
from lutumpy.durable.conversation import is_message, load_message
from lutumpy.durable.log import (
    ENDINGS,
    CallAsked,
    CallHeld,
    MessagesTaken,
    RunWaits,
    ShownCall,
    ShownMessage,
)
from lutumpy.durable.shown import show_message
from lutumpy.errors import PlanError, StoreError
from lutumpy.models import Message
from lutumpy.web.inbound import (
    ApprovalAnswer,
    Inbound,
    NewMessage,
    QuestionAnswer,
    WebError,
    question_id,
)
from lutumpy.web.runs import Runs
from lutumpy.web.show import Show

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["ANSWER_FIRST", "Incoming", "Past", "Received", "if_any"]

T = TypeVar("T")

ANSWER_FIRST = "A call waits for an answer. Send the message when it has one."
"""What somebody is told who sends a message while a person is asked something."""


@dataclass(frozen=True)
class Past:
    """A log, as it stands.

    Attributes:
        events: Its events, in order.
        last: The number of the last one, whether or not it is there still.
    """

    events: Sequence[StoredEvent]
    last: int

    def find(self, message_id: str) -> tuple[int | None, ShownMessage | None]:
        """The task that answers a message, and what it is; `None` for one that nobody took."""
        for stored in self.events:
            event = stored.load()
            if isinstance(event, MessagesTaken):
                for message in event.messages:
                    if message.id == message_id:
                        return stored.task, message
        return None, None

    @property
    def ending(self) -> DurableEvent | None:
        """Its last event."""
        return self.events[-1].load() if self.events else None

    @property
    def is_over(self) -> bool:
        """Whether its last run has ended, and not with a question to a person."""
        event = self.ending
        asks = isinstance(event, RunWaits) and bool(event.held or event.asked)
        return not self.is_going_on and not asks

    @property
    def last_task(self) -> int | None:
        """The task at its end."""
        return self.events[-1].task if self.events else None

    @property
    def is_going_on(self) -> bool:
        """Whether its last run hasn't ended."""
        return bool(self.events) and self.events[-1].event.get("event") not in ENDINGS

    def of_task(self, task: int) -> Past:
        """What of it belongs to a task; where there is another one behind it, with its end.

        A task that a message has cut short has none of its own: the next one is its end.
        """
        own = [stored for stored in self.events if stored.task == task]
        later = [stored for stored in self.events if stored.task > task]
        if not own or not later:
            return Past(own, self.last)
        if own[-1].event.get("event") not in ENDINGS:
            own.append(later[0])
        return Past(own, own[-1].seq)

    def waits(
        self, approval_ids: Collection[str], asked: Collection[str] = ()
    ) -> StoredEvent | None:
        """The event that said that these are waited for, where its clients stand; `None` where none
        did.

        It is the first that names one of the held calls: others may have been decided since, which
        such a client hasn't seen. Of calls that ask, it is the last, since each leg asks anew.

        Args:
            approval_ids: Calls that were held.
            asked: The ids of calls that asked something.
        """
        found: StoredEvent | None = None
        for stored in self.events:
            event = stored.load()
            if isinstance(event, RunWaits):
                named = {f"{event.digest}:{call_id}" for call_id in event.held}
                if named & {*approval_ids}:
                    return stored
                if {*event.asked} & {*asked}:
                    found = stored
        return found

    def asking_calls(self) -> dict[str, ShownCall]:
        """The calls that have ever asked something, by the ids of their questions."""
        events = [stored.load() for stored in self.events if stored.event["event"] == "CallAsked"]
        return {
            question_id(event.call.call_id, question.leg, question.key): event.call
            for event in events
            if isinstance(event, CallAsked)
            for question in event.questions
        }

    def asked(self, approval_id: str) -> CallHeld | None:
        """The question with this id, if it was ever asked."""
        for stored in self.events:
            if stored.event.get("approval_id") == approval_id:
                event = stored.load()
                if isinstance(event, CallHeld):
                    return event
        return None


@dataclass(frozen=True)
class Received:
    """What became of a request.

    Attributes:
        past: The log before it; where it has answered questions, with the answers.
        after: The number of the event behind which the client goes on.
        task: The task that answers it; `None` where that hasn't begun.
        goes_on: Whether the conversation does: else its log has all that comes.
    """

    past: Past
    after: int
    task: int | None
    goes_on: bool = True


class Incoming:
    """Leaves what came in the store, and lets the conversation go on.

    Args:
        loop: The loop.
        store: Its store.
        runs: The runs of this process.
        new_session: Makes the session of a conversation that begins.
        show: What is shown: nobody answers for a call that isn't.
    """

    def __init__(
        self,
        loop: DurableLoop[Any, Any],
        store: OperatorStore,
        runs: Runs,
        new_session: Callable[[str, str], Session],
        show: Show,
    ) -> None:
        self._loop = loop
        self._store = store
        self._runs = runs
        self._new_session = new_session
        self._show = show

    async def take(self, inbound: Inbound, by: str) -> Received:
        """Leave what came in the store, and let the conversation go on.

        A message is refused while a person is asked something. It would wait behind the answer, and
        so would the client's response; clients send no answer while they have one open, and none
        from a message that isn't the last (npm `ai` 7, `addToolApprovalResponse`).

        Raises:
            WebError: it can't be taken.
        """
        scope = inbound.scope
        if inbound.message is not None:
            past = await self._past_or_new(scope, by)
            task, known = past.find(inbound.message.id)
            if task is None and await self._is_asking(scope):
                past = await self.past(scope)  # what is asked may have come of this very message
                task, known = past.find(inbound.message.id)
                if task is None:
                    raise WebError(409, ANSWER_FIRST)
            await self._push(scope, inbound.message, known)
            if task is not None:
                return Received(past, 0, task, await self._come_again(scope, past))
            self._runs.begin(scope, seen=past.last)
            return Received(past, past.last, None)
        past = await self.past(scope)
        if not inbound.answers and not inbound.replies:
            goes_on = await self._come_again(scope, past)
            return Received(past, past.last, past.last_task, goes_on)
        is_news = False
        if inbound.answers:
            is_news = await self._decide(scope, inbound.answers, past, by)
            past = await self.past(scope)  # what was decided now is behind what waited for it
        asked, is_reply = await self._reply(scope, inbound.replies, past, by)
        named = [answer.approval_id for answer in inbound.answers]
        waits = past.waits(named, asked)
        goes_on = True
        if is_news or is_reply or waits is None or waits.seq == past.last:
            self._runs.begin(scope, seen=past.last)
        else:  # all of it was answered before (rule W16)
            goes_on = await self._come_again(scope, past)
        if waits is None:
            return Received(past, 0, past.last_task, goes_on)
        return Received(past, waits.seq, waits.task, goes_on)

    async def _come_again(self, scope: str, past: Past) -> bool:
        """Let a conversation go on for a client that brings nothing new: only where it goes on by
        itself, or something waits to be taken (rule W11). Gives whether it does.
        """
        # A decision stands in the log: where it wasn't acted upon, what is behind it says why.
        is_waiting = any(
            not entry.taken and entry.kind != "decision" for entry in await self._store.inbox(scope)
        )
        if past.events and not past.is_going_on and not is_waiting:
            return False
        self._runs.begin(scope, seen=past.last)
        return True

    async def _is_asking(self, scope: str) -> bool:
        """Whether a person has to answer before the conversation goes on."""
        held = await self._store.held(scope=scope)
        return any(plan.held for plan in held) or bool(await self._all_asked(scope))

    async def _reply(
        self, scope: str, replies: Sequence[QuestionAnswer], past: Past, by: str
    ) -> tuple[set[str], bool]:
        """Answer what servers ask; gives the ids of the calls, and whether one was answered.

        The first answer stands, and a client has to answer all that it was asked: what somebody
        else has answered is no reason to refuse the rest.
        """
        asked = past.asking_calls()
        open_questions = {
            question_id(call.call_id, call.leg, question.key): question
            for call in (await self.asked(scope) if replies else ())
            for question in call.questions
        }
        by_call: dict[str, dict[str, Any]] = {}
        answered: set[str] = set()
        for reply in replies:
            question = open_questions.get(reply.id)
            if question is None:
                call = asked.get(reply.id)
                if call is None or self._show.hides(call.tool):
                    raise WebError(409, "Nobody asks that.")
                answered.add(call.call_id)
                continue
            answer = dict(reply.answer)
            if question.form is None:
                answer.pop("content", None)  # there is nothing to fill in
            by_call.setdefault(question.call_id, {})[question.key] = answer
        for call_id, answers in by_call.items():
            await self.answer(scope, call_id, answers, by)
        return {*by_call, *answered}, bool(by_call)

    async def _past_or_new(self, scope: str, by: str) -> Past:
        past = await if_any(self.past(scope))
        if past is None:
            await self._store.create(scope, self._new_session(scope, by))
            past = await self.past(scope)
        return past

    async def _push(self, scope: str, message: NewMessage, known: ShownMessage | None) -> None:
        """Push a message once; the same id with another content than is known is refused (W15)."""
        parts = _parts_of(message)
        inbox = await self._store.inbox(scope)
        left = [entry.value for entry in inbox if entry.id == f"message:{message.id}"]
        seen = [load_message(value).parts for value in left]
        is_other = bool(seen) and parts not in seen
        if known is not None:
            is_other = known.text != message.text or len(known.files) != len(message.files)
            if message.files:
                # The log has no bytes of files; the conversation has.
                session = await self._store.session(scope)
                seen += [item.parts for item in session.transcript if isinstance(item, Message)]
                is_other = is_other or parts not in seen
        if is_other:
            raise WebError(409, "There is another message with this id.")
        if known is None:
            await self._store.push(scope, _message(message), idempotency_key=message.id)

    async def _decide(
        self, scope: str, answers: Sequence[ApprovalAnswer], past: Past, by: str
    ) -> bool:
        """Decide calls that are held; what was decided before stays so (rule W16). Gives whether
        there was one.
        """
        held = {
            f"{plan.digest}:{call_id}": (plan.digest, call_id)
            for plan in await self._store.held(scope=scope)
            for call_id in plan.held
            if not self._show.hides(_tool_of(plan, call_id))
        }
        decisions: dict[str, dict[str, Any]] = {}
        for answer in answers:
            found = held.get(answer.approval_id)
            if found is not None:
                digest, call_id = found
                decisions.setdefault(digest, {})[call_id] = answer.decision()
                continue
            asked = past.asked(answer.approval_id)
            if asked is None or self._show.hides(asked.call.tool):
                raise WebError(409, "Nobody asks whether such a call may run.")
        for digest, decided in decisions.items():
            try:
                await self._loop.decide(scope, digest, decided, by=by)
            except StoreError as error:
                if error.kind == "plan":  # somebody was faster
                    continue
                raise WebError(422, "The answer doesn't fit the tool.") from error
            except PlanError as error:  # a release whose loop refuses such rounds
                raise WebError(409, "The tool has changed since it was asked for.") from error
        return bool(decisions)

    async def waiting(self, scope: str) -> tuple[Past, tuple[ShownMessage, ...]]:
        """The log, and the messages behind it that nobody has taken yet, as it will show them.

        Raises:
            StoreError: there is no such conversation.
        """
        # The log comes second: what is taken in between is in both then, and not in neither.
        entries = [entry for entry in await self._store.inbox(scope) if is_message(entry)]
        past = await self.past(scope)
        messages: list[ShownMessage] = []
        for entry in entries:
            key = entry.id.partition(":")[2]
            if past.find(key)[0] is None:
                shown: Any = show_message(load_message(entry.value), key)
                messages.append(ShownMessage(**{**shown, "files": tuple(shown["files"])}))
        return past, tuple(messages)

    async def past(self, scope: str) -> Past:
        """The log.

        Raises:
            StoreError: there is no such conversation.
        """
        last = await self._store.last_event(scope)
        events: list[StoredEvent] = []
        if last:
            async with aclosing(cast("Any", self._store.events(scope))) as log:
                async for stored in log:
                    if stored.seq <= last:
                        events.append(stored)
                    if stored.seq >= last:
                        break
        return Past(events, last)

    async def asked(self, scope: str) -> tuple[AskedCall, ...]:
        """The calls that ask something, of those that are shown."""
        asked = await self._all_asked(scope)
        return tuple([call for call in asked if not self._show.hides(call.tool)])

    async def _all_asked(self, scope: str) -> tuple[AskedCall, ...]:
        store: Any = self._store
        asked: tuple[AskedCall, ...] = await store.asked(scope) if hasattr(store, "asked") else ()
        return asked

    async def answer(
        self, scope: str, call_id: str, answers: Mapping[str, JsonValue], by: str
    ) -> bool:
        try:
            return await self._loop.answer(scope, call_id, answers, by=by)
        except StoreError as error:
            if error.kind != "answer":
                raise
            # It quotes the form and the answer, both of which the client has.
            raise WebError(422, str(error)) from error


async def if_any(reading: Awaitable[T]) -> T | None:
    """What is read of a conversation; `None` where there is no such conversation."""
    try:
        return await reading
    except StoreError as error:
        if error.kind != "unknown_scope":
            raise
        return None


def _tool_of(plan: HeldPlan, call_id: str) -> str:
    """The tool of a call of a plan."""
    calls: Any = plan.plan["calls"]
    return next(str(call["tool"]) for call in calls if call["call_id"] == call_id)


def _message(message: NewMessage) -> Message | str:
    return Message("user", _parts_of(message)) if message.files else message.text


def _parts_of(message: NewMessage) -> tuple[TextPart | ImagePart | FilePart, ...]:
    parts: list[TextPart | ImagePart | FilePart] = []
    if message.text or not message.files:
        parts.append(TextPart(message.text))
    for file in message.files:
        if file.media_type.startswith("image/"):
            parts.append(ImagePart(data=file.data, media_type=file.media_type))
        else:
            data, kind = file.data, file.media_type
            parts.append(FilePart(data=data, media_type=kind, filename=file.name))
    return tuple(parts)
