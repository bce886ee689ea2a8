"""What a transcript is built on: items, call ids, failures and costs, which change together or not
at all (K3a).

`transcript_state` explains how. This module has the lists, the one method that writes them, and
what rounds and adapters ask.
"""

# The hot paths of a round end here, so each question has an answer that doesn't depend on the
# length of the conversation:
#
#   encoded        items that were encoded once are never looked at again
#   fresh_id       a dictionary of ids; where the list was cut back, the list decides
#   failures       counts that are brought up to date by the failures since the last question
#   position       two numbers of the state
#  The caches (`_id_index`, `_failures`, `_encoders`) may know more than the state counts, after a
# change that was interrupted. They are therefore either checked against the list, or taken out of
# their attribute while they are brought up to date, so that an interrupt leaves no half of one
# behind.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from lutumpy.core.call_ids import TakenIds
from lutumpy.core.encoding import ItemEncoder
from lutumpy.core.items import AssistantTurn, Item, ToolMetadata, ToolResults, Usage
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript_state import (
    Draft,
    FailureKey,
    Failures,
    Receipt,
    State,
    ephemerals_among,
)
from lutumpy.errors import DroppedRoundError, TranscriptError
from lutumpy.plain import json_values

if TYPE_CHECKING:
    from lutumpy.core.noted_request import NotedRequest, RequestNote
    from lutumpy.core.promises import PromisedCall

__all__ = ["FailureKey", "ItemStore", "failure_key"]

E = TypeVar("E", bound=ItemEncoder)

_ID = attrgetter("id")


S = TypeVar("S", bound="ItemStore")


class ItemStore:
    """The items of a conversation and what is known about them.

    `Transcript` adds what users see.
    """

    __slots__ = (
        "_answers",
        "_encoders",
        "_failed",
        "_failures",
        "_id_index",
        "_ids",
        "_noted",
        "_stable",
        "_state",
        "dropped",
        "sent_requests",
    )

    def __init__(self) -> None:
        # Only the state says how much of the lists below counts, see `transcript_state`.
        self._state = State()
        self._stable: list[Item] = []
        self._ids: list[str] = []
        # The index of an id in that list. An entry counts only if the id really is there.
        self._id_index: dict[str, int] = {}
        self._failed: list[tuple[FailureKey, int]] = []
        # The sums of the first entries of that list, and how many entries those are.
        self._failures: tuple[dict[FailureKey, int], int] = ({}, 0)
        self._answers: list[Usage] = []
        # Each encoder with the number of items that it has encoded.
        self._encoders: dict[str, tuple[ItemEncoder, int]] = {}
        # What the last request said that this transcript was rendered to, with its offer; after a
        # load, with the digest of that. Once an answer has taken it: how many had been read before.
        self._noted: tuple[ToolOffering | str | None, RequestNote, int | None] | None = None
        # The last request to each API, host and model that was answered; adapters fill it.
        self.sent_requests: dict[Any, Any] = {}
        # The calls of rounds that were garbage-collected open. Their finalizers append here (C7a).
        self.dropped: list[tuple[ToolMetadata, ...]] = []

    def __getstate__(self) -> tuple[object, ...]:
        """What `copy`, `deepcopy` and `pickle` take: what counts, in lists of its own.

        Without it two copies would write into the same lists. As after a load there are no caches
        and no marks of dropped rounds.
        """
        state = self._state
        return (
            state._replace(receipt=None),
            self._stable[: state.stable],
            self._ids[: state.ids],
            self._failed[: state.failures],
            self._answers[: state.answers],
            self._noted_data(),
        )

    def __setstate__(self, held: tuple[Any, ...]) -> None:
        ItemStore.__init__(self)
        self._state, self._stable, self._ids, self._failed, self._answers, noted = held
        if noted is not None:
            self.note_request(*noted)
        self._id_index = {call_id: index for index, call_id in enumerate(self._ids)}

    def __len__(self) -> int:
        return self._state.stable + len(self._state.tail)

    def __iter__(self) -> Iterator[Item]:
        state = self._state
        return chain(islice(self._stable, state.stable), state.tail)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return self._items()[index]
        stable = self._state.stable
        if index < 0:
            index += len(self)
        if 0 <= index < stable:
            return self._stable[index]
        if stable <= index < len(self):
            return self._state.tail[index - stable]
        raise IndexError(f"a transcript of {len(self)} items has none at this index")

    def position(self) -> tuple[int, int]:
        """How many items there are, and the revision."""
        state = self._state
        return state.stable + len(state.tail), state.revision

    def _items(self) -> list[Item]:
        """Every item, in a list of its own."""
        state = self._state
        return [*self._stable[: state.stable], *state.tail]

    def _write(
        self,
        settled: Sequence[Item],
        draft: Draft | None = None,
        *,
        added: bool = True,
        ids: Sequence[str] = (),
        failures: Failures | tuple[()] = (),
        usages: Sequence[Usage] = (),
        receipt: Receipt | None = None,
        open_calls: tuple[PromisedCall, ...] | None = None,
    ) -> None:
        """Make a change, all of it or nothing: the assignment of the new state is the change (rule
        K3a).

        Args:
            settled: Items that become permanent.
            draft: The new tail; without it there is none.
            added: Whether items were added.
            ids: Call ids that are used from now on.
            failures: Calls that failed.
            usages: What answers cost.
            receipt: Tells its holder whether the change was made.
            open_calls: The calls that are open afterwards; as before, if omitted.
        """
        # Read at once: each look at a field of a named tuple takes longer than all of this line.
        stable, _, _, _, used, failed, answers, revision, before, still_open = self._state
        # Slices are assigned, not extended: behind what counts there may be the remains of a change
        # that was interrupted. Most changes are to one or two of the lists.
        if settled:
            self._stable[stable:] = settled
            stable += len(settled)
        if ids:
            self._ids[used:] = ids
            for call_id in ids:
                self._id_index[call_id] = used
                used += 1
        if failures:
            self._failed[failed:] = failures
            failed += len(failures)
        if usages:
            self._answers[answers:] = usages
            answers += len(usages)
        if before is not None:
            before.written = True
        tail: tuple[Item, ...] = ()
        sent, held = 0, False
        if draft is not None:
            tail, sent, held = draft.tail, draft.sent, draft.held
        if added:
            revision += 1
        if open_calls is None:
            open_calls = still_open
        # As `State(...)`, without entering a function.
        self._state = tuple.__new__(
            State, (stable, tail, sent, held, used, failed, answers, revision, receipt, open_calls)
        )

    def holds(self, receipt: Receipt) -> bool:
        """Whether the change that came with this receipt was made."""
        # In this order: the next change marks it, and only then takes its place.
        return self._state.receipt is receipt or receipt.written

    # --- what rounds need -------------------------------------------------------------------------

    def fresh_ids(self, turn: AssistantTurn) -> AssistantTurn:
        """`turn` with new ids for calls whose id is missing, repeated, or already used here (rule
        C6).

        Fresh ids contain a number and have nine letters and digits, which every API accepts.
        """
        # Most answers need no fresh id: look before anything is built.
        calls = turn.calls
        ids = [*map(_ID, calls)]
        distinct = set(ids)
        if (
            len(distinct) == len(ids)
            and "" not in distinct
            and self._id_index.keys().isdisjoint(ids)
            and "".join(ids).isascii()
        ):
            return turn
        taken = TakenIds()
        fresh: dict[int, str] = {}
        for index, call in enumerate(calls):
            wanted = self.fresh_id(call.id, taken)
            if wanted != call.id:
                fresh[index] = wanted
            taken.add(wanted)
        return turn.with_ids(fresh) if fresh else turn

    def fresh_id(self, wanted: str, taken: TakenIds) -> str:
        """`wanted`, or a new id if it is empty or was used here or by an earlier call of the answer
        (`taken`).

        Only earlier calls count, so a streamed call has its id before the next one arrives. Lone
        surrogates, which no provider accepts, are replaced.
        """
        return taken.fresh(wanted, self._uses, self._state.ids)

    def _uses(self, call_id: str) -> bool:
        """Whether a call here has this id."""
        position = self._id_index.get(call_id, -1)
        # The index may know more than the list, after a change that was interrupted.
        return -1 < position < self._state.ids and self._ids[position] == call_id

    def _uses_any(self, ids: Iterable[str]) -> bool:
        """Whether a call here has one of these ids."""
        return any(self._uses(call_id) for call_id in ids)

    def failures(self, name: str, arguments: str) -> int:
        """How often a call of this tool with the same arguments already failed here."""
        if not self._state.failures:
            return 0
        return self._failure_counts().get(failure_key(name, arguments), 0)

    def _failure_counts(self) -> dict[FailureKey, int]:
        counts, upto = self._failures
        end = self._state.failures
        if upto != end:
            # Taken out while it is changed: an interrupt leaves an empty cache, not a wrong one.
            self._failures = ({}, 0)
            for key, times in self._failed[upto:end]:
                counts[key] = counts.get(key, 0) + times
            self._failures = (counts, end)
        return counts

    def usages(self, since: int = 0) -> list[Usage]:
        """The usage of each answer that was read against this transcript, from index `since` on."""
        return self._answers[since : self._state.answers]

    def request_succeeded(self, turn: AssistantTurn, length: int) -> int:
        """An answer was read: drop the ephemerals that were sent, or keep them for signed reasoning
        (S4).

        Args:
            turn: The answer.
            length: How many items the request held; ephemerals added since then were not sent.

        Returns:
            How many of those items are still in the transcript.
        """
        state = self._state
        if not state.tail:
            self._write((), added=False, usages=(turn.usage,))
            return length
        draft = Draft(state)
        draft.answered(turn, state.tail[: max(0, length - state.stable)])
        self._write(draft.settled, draft, added=False, usages=(turn.usage,))
        return length - len(state.tail) + len(draft.settled) + len(draft.tail)

    def turn_discarded(self, receipt: Receipt | None = None) -> None:
        """An answer whose reasoning would have held the ephemerals will not be committed."""
        draft = Draft(self._state)
        if draft.sent and not draft.held:
            draft.release()
        self._write(draft.settled, draft, added=False, receipt=receipt)

    def encoded(self, key: str, make: Callable[[], E]) -> E:
        """The encoder `key` with every item encoded; read it, don't change it.

        Permanent items are encoded once and kept. Ephemerals and what follows them go into a copy.
        """
        state = self._state
        kept = self._encoders.get(key)
        encoder: Any
        encoder, upto = (make(), 0) if kept is None else kept
        if upto < state.stable:
            # Taken out while it is fed: after an interrupt the next request makes a new one.
            self._encoders.pop(key, None)
            for item in self._stable[upto : state.stable]:
                encoder.add(item)
            self._encoders[key] = (encoder, state.stable)
        if not state.tail:
            return cast("E", encoder)
        tail: E = encoder.copy()
        for item in state.tail:
            tail.add(item)
        return tail

    def refuse_dropped(self) -> None:
        """Raise `DroppedRoundError` if a round of this transcript was garbage-collected open (rule
        C7a).
        """
        if self.dropped:
            raise DroppedRoundError([call for calls in self.dropped for call in calls])

    def round_dropped(self, calls: tuple[ToolMetadata, ...]) -> None:
        """A round or plan with these calls was garbage-collected open.

        Finalizers call this at any moment, even in the middle of a change, so it only appends to a
        list.
        """
        self.dropped.append(calls)

    @property
    def open_calls(self) -> tuple[PromisedCall, ...]:
        """The calls whose results are still to come, oldest first."""
        return self._state.open

    @property
    def waits(self) -> bool:
        """Whether there is nothing to answer but open calls: their results come first (LR6)."""
        last = self[-1] if self._state.open else None
        return isinstance(last, ToolResults) and all(r.status == "promised" for r in last.results)

    def refuse_unready(self) -> None:
        """Raise if no request can be made now.

        Raises:
            DroppedRoundError: a round of this transcript was garbage-collected open (rule C7a).
            TranscriptError: there is nothing to answer but calls whose results are still to come.
        """
        self.refuse_dropped()
        if self.waits:
            names = ", ".join([f"{call.call_id!r} of {call.name!r}" for call in self._state.open])
            raise TranscriptError(
                f"there is nothing to answer but open calls ({names}); deliver a result, or push a "
                "message first; the transcript is unchanged"
            )

    def note_request(self, offering: ToolOffering | str | None, note: RequestNote) -> None:
        """A request with this offer (or the one with this digest) was rendered for a client of the
        user's own: `take_note` gives its answer what it said. The next note takes its place.
        """
        self._noted = offering, note, None

    def take_note(self, offering: ToolOffering | None, turn: AssistantTurn) -> AssistantTurn:
        """The answer with the record of its request, if one with this offer, or one that is equal
        but for what is deferred, was noted for its API.

        An answer that has its record already, as those of models have, stays as it is. The note is
        used up by the change with which the answer has been read, so that an interrupt loses none.
        """
        noted = self._open_note()
        if noted is None or turn.origin is not None:
            return turn
        asked, note = noted
        is_same = note.api == turn.api
        if is_same and asked is not offering:
            from lutumpy.core.noted_request import is_same_offer  # rare

            is_same = is_same_offer(asked, offering)
        if not is_same:
            self._noted = None
            return turn
        stamped = note.stamp(turn)
        self._noted = asked, note, self._state.answers
        return stamped

    def _open_note(self) -> tuple[ToolOffering | str | None, RequestNote] | None:
        """The request whose answer is still to be read, with its offer or the digest of that."""
        if self._noted is None:
            return None
        asked, note, answers = self._noted
        return (asked, note) if answers is None or self._state.answers == answers else None

    def _noted_data(self) -> tuple[str | None, NotedRequest] | None:
        """The same as values, with the digest of the offer."""
        noted = self._open_note()
        if noted is None:
            return None
        from lutumpy.core.noted_request import offer_digest  # rare

        asked, note = noted
        return asked if isinstance(asked, str) else offer_digest(asked), note.as_data()

    def committed(self, length: int) -> int:
        """How many of the first `length` items are permanent; ephemerals don't count."""
        state = self._state
        if length <= state.stable:
            return length
        return length - ephemerals_among(state.tail[: length - state.stable])

    def same_prefix(self, other: ItemStore, length: int) -> bool:
        """Whether `other` begins with the first `length` items of this one."""
        if other is self:
            return True
        if len(other) < length:
            return False
        return all(
            a is b or a == b
            for a, b in zip(self._items()[:length], other._items()[:length], strict=True)
        )

    def with_tail(self: S, items: Sequence[Item]) -> S:
        """This transcript, which has no ephemerals, followed by `items`, for one request; read it,
        don't change it.

        It shares the encoded items of this transcript; `items` are encoded for this request only.
        """
        longer = type(self)()
        longer._stable = self._stable
        longer._encoders = self._encoders
        longer.sent_requests = self.sent_requests
        longer._state = State(self._state.stable, tuple(items), open=self._state.open)
        return longer

    def _beside_items(self) -> Mapping[str, Any]:
        """What a dump holds besides the items."""
        state = self._state
        return {
            "failures": [
                [name, arguments, count]
                for (name, arguments), count in self._failure_counts().items()
            ],
            "ephemerals_sent": state.sent,
            "held": state.held,
            **(self._dump_open() if state.open else {}),
            **(self._dump_noted() if self._noted is not None else {}),
        }

    def _dump_noted(self) -> dict[str, Any]:
        """The request whose answer is still to be read, if there is one."""
        noted = self._noted_data()
        if noted is None:
            return {}
        from lutumpy.core.noted_request import dump_noted

        return {"request": dump_noted(*noted)}

    def _dump_open(self) -> dict[str, Any]:
        """The open calls whose rounds aren't among the items; of the others, results say it."""
        found = [call for call in self._state.open if call.is_detached]
        if not found:
            return {}
        from lutumpy.core.dump_promises import dump_open_call

        return {"open_calls": [dump_open_call(call) for call in found]}

    def _keep_open(self, calls: Sequence[PromisedCall]) -> None:
        """Take open calls whose rounds aren't here: their late results will be messages, and their
        ids are used.
        """
        if calls:
            ids = [call.call_id for call in calls]
            self._write((), added=False, ids=ids, open_calls=(*self._state.open, *calls))

    def _restore(self, failures: dict[FailureKey, int], sent: int, held: bool) -> None:
        draft = Draft(self._state)
        draft.sent, draft.held = sent, held
        self._write((), draft, added=False, failures=list(failures.items()))


def failure_key(name: str, arguments: str) -> FailureKey:
    """The key under which a failed call is counted: the tool, and its arguments as a JSON value."""
    return name, json_values.canonical_arguments(arguments)
