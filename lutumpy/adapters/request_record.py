"""What one request says anew, and what it leaves out: it goes with the request, and its answer gets
it.

An adapter makes a `RequestRecord` for each request. What builds the body fills it in; when the
answer is decoded, `stamp` puts settings, origin and report on the turn (rules PB1, PB8, OR1, OR5).
"""

# The life of a record:
#
#   made --the body is built--> filled in --request fails--> forgotten: nothing is recorded
#                                  |
#                                  +--answer--> stamp(turn): the turn has it; the round or the
#                                               session commits turn and record in one store
#
# With a client of the user's own nobody sees the answer: `request` notes the record on the
# transcript, and `read` with the same offer takes it from there (`ItemStore.take_note`).

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lutumpy.core.items import AssistantTurn
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.prefix import (
    NOTHING_CHANGED,
    DroppedReasoning,
    LeftOut,
    OnPrefixChange,
    PrefixReport,
)
from lutumpy.core.streaming import Delta, StreamDecoder
from lutumpy.core.turn_origin import TurnOrigin
from lutumpy.core.turn_settings import TurnSettings
from lutumpy.errors import PrefixChangedError

if TYPE_CHECKING:
    from lutumpy.core.noted_request import NotedRequest

__all__ = [
    "NO_REWRITES",
    "STARTED_AGAIN",
    "RecordingDecoder",
    "RequestRecord",
    "Rewrites",
    "SentRequest",
]

_log = logging.getLogger("lutumpy.prefix")
# A program that sets up no logging shouldn't find warnings among what it prints.
_log.addHandler(logging.NullHandler())

_BYTES_PER_TOKEN = 4  # as in the estimates of costs


Rewrites: TypeAlias = "frozenset[tuple[str, int]]"
"""Which changes an encoder has made to entries that may have been sent before, each with the place
of the entry; `STARTED_AGAIN` with the number of turns before it, as it changes entries anywhere.
"""

STARTED_AGAIN = "start"
"""The change that takes all entries out which said changes of settings."""

NO_REWRITES: Rewrites = frozenset()
"""No entry of a history is written again in a new place."""

SentRequest: TypeAlias = "tuple[Mapping[str, Any], Rewrites, int, tuple[bytes, ...]]"
"""As much of an answered request as tells whether a later one begins with it (rule PB20): what
comes before the entries, by field and without cache marks; how earlier entries were rewritten by
then; how many entries are permanent; and the entries behind those.
"""

_Asked: TypeAlias = "tuple[str, str | None, str | None]"
"""Who gets a request: API, host and model."""


class RequestRecord:
    """What one request says of itself.

    Attributes:
        api: The API that it goes to.
        model: The model that is asked, where known.
        host: The authority of the address that it goes to, where known.
        policy: What happens when settings have changed.
        effort: How much the model should think, in the provider's word.
        output: The format of the answer.
        origin: What a turn without signed reasoning comes from, where that is made already.
        settings: What the request says anew; `None` for nothing.
        prefix: Gives the digest of all that it sends before the answer.
        seal: What shows that an answer holds reasoning that is bound to the request, where the turn
            doesn't say it is signed.
        headers: HTTP headers that the request needs.
        turns: Gives the turns (indexes) whose reasoning the request sends, by the index of their
            entry or by ids of items: as the provider names what it left out.
        repeated_without: The turn whose reasoning the provider refused, if this is the request that
            is sent in place of the refused one (rule PB10).
    """

    # A record is made for every request, and most say nothing: what they don't say is here, once.
    api: str = ""
    model: str | None = None
    host: str | None = None
    policy: OnPrefixChange = "append"
    effort: str | None = None
    output: OutputSpec | None = None
    origin: TurnOrigin | None = None
    settings: TurnSettings | None = None
    prefix: Callable[[], str] | None = None
    seal: bytes = b""
    headers: Mapping[str, str] = {}
    turns: Callable[[], Mapping[int | str, int]] | None = None
    repeated_without: int | None = None
    _appended: tuple[str, ...] = ()
    _changed: tuple[str, ...] = ()
    _dropped: tuple[DroppedReasoning, ...] = ()
    _left_out: tuple[LeftOut, ...] = ()
    _waiting: tuple[str, ...] = ()
    _unverified: tuple[int, ...] = ()
    _says_anything: bool = False
    _cache: Literal["begins", "restarts", "unknown"] = "unknown"
    # Where the transcript keeps its last requests, and this one for it.
    _sent: tuple[MutableMapping[Any, Any], _Asked, SentRequest] | None = None

    # --- while the body is built ------------------------------------------------------------------

    def say_appended(self, *words: str) -> None:
        """The request says this behind the conversation, as `tool_removal send`."""
        self._says_anything = True
        self._appended += words

    def say_changed(self, *places: str) -> None:
        """The request differs here from the one before."""
        self._says_anything = True
        self._changed += tuple([place for place in places if place not in self._changed])

    def say_waiting(self, *words: str) -> None:
        """This can be said only with the next request."""
        self._says_anything = True
        self._waiting += words

    def say_unverified(self, turns: Sequence[int]) -> None:
        """The request sends the reasoning of these turns, of which nobody knows what it was signed
        over (rule PB18).
        """
        self._says_anything = True
        self._unverified = tuple(turns)

    def leave_out(self, turn: int, what: str, why: str) -> None:
        """Something of this turn doesn't go where the request goes (rule OR5)."""
        self._says_anything = True
        self._left_out += (LeftOut(turn, what, why),)

    def drop_reasoning(
        self, turns: Sequence[int], reason: str, by: Literal["lutumpy", "provider"] = "lutumpy"
    ) -> None:
        """The request leaves the reasoning of these turns out.

        Raises:
            PrefixChangedError: The policy is to send nothing then.
        """
        if self.policy == "error" and turns and by == "lutumpy":
            raise PrefixChangedError(self._changed, tuple(turns))
        self._says_anything = True
        self._dropped += tuple([DroppedReasoning(turn, reason, by) for turn in turns])

    def tell_dropped(self, turns: Sequence[int]) -> None:
        """The reasoning of these turns was dropped before, with what it was signed over (S4)."""
        self._says_anything = True
        self._dropped += tuple(
            [DroppedReasoning(turn, "prefix_mismatch", "lutumpy") for turn in turns]
        )

    def compare(
        self,
        sent: MutableMapping[Any, Any],
        head: Mapping[str, Any],
        rewrites: Rewrites,
        entries: Sequence[bytes],
        kept: int,
    ) -> None:
        """Tell whether the request begins with the last one of its API, host and model (rule PB20).

        Args:
            sent: The last requests of the transcript.
            head: What comes before the entries, by field, without cache marks.
            rewrites: How entries that were sent before were rewritten.
            entries: All entries of the request, without cache marks.
            kept: How many of them are permanent.
        """
        key = self.api, self.host, self.model
        before: SentRequest | None = sent.get(key)
        if 0 < kept < len(entries):
            kept -= 1  # where an entry can still grow, what comes behind it moves
        # Most requests have nothing behind their permanent entries.
        behind = () if kept == len(entries) else tuple(entries[kept:])
        request = head, rewrites, kept, behind
        self._sent = sent, key, request
        if before is None:
            self._cache = "unknown"
            return
        known_head, known_rewrites, known, rest = before
        is_same = known_head == head
        if known_rewrites != rewrites and _are_rewritten(before, rewrites):
            is_same = False
        if is_same and (not rest or tuple(entries[known : known + len(rest)]) == rest):
            self._cache = "begins"
        else:
            self._warn(before, request, entries)

    def _warn(self, before: SentRequest, request: SentRequest, entries: Sequence[bytes]) -> None:
        """Say that the request doesn't begin with the one before it."""
        self._cache = "restarts"
        place, index = _first_change(before, request, entries)
        self.say_changed(place)
        tokens = sum(map(len, entries[index:])) // _BYTES_PER_TOKEN
        if index == 0:
            tokens += (
                sum([len(value) for value in request[0].values() if isinstance(value, bytes)])
                // _BYTES_PER_TOKEN
            )
        _log.warning(
            "the request to %s (%s) doesn't begin with the one before it: %s is different, so "
            "about %d tokens are read anew",
            self.api,
            self.model or "model unknown",
            place,
            tokens,
        )

    # --- when the answer is there -----------------------------------------------------------------

    def stamp(self, turn: AssistantTurn) -> AssistantTurn:
        """Put the record on a turn that was just decoded and that nobody else has seen; it is the
        same object.
        """
        if turn.input_transformations:
            self._read_transformations(turn.input_transformations)
        prefix = None
        if self.prefix is not None and (self.seal in turn.native if self.seal else turn.signed):
            prefix = self.prefix()
        origin = self.origin
        if origin is None or prefix is not None:
            origin = TurnOrigin(self.api, self.host, self.model or turn.model, prefix)
        # The turn is a frozen value, and a copy with three fields changed takes longer than all the
        # rest of decoding it.
        set_field = object.__setattr__
        set_field(turn, "origin", origin)
        if self.settings is not None:
            set_field(turn, "settings", self.settings)
        is_plain = self._cache == "begins" and not self._says_anything
        set_field(turn, "prefix", NOTHING_CHANGED if is_plain else self.report())
        if self._sent is not None:
            kept, key, request = self._sent
            kept[key] = request
        return turn

    def for_fork(self, sent_requests: MutableMapping[Any, Any]) -> RequestRecord:
        """The same record for a fork of the transcript.

        Args:
            sent_requests: Where the fork keeps its last requests.
        """
        twin = copy(self)
        if self._sent is not None:
            twin._sent = (sent_requests, *self._sent[1:])
        if self.prefix is not None:
            # What works it out belongs to the transcript, which may go on in another way.
            digest = self.prefix()
            twin.prefix = lambda: digest
        return twin

    def as_data(self) -> NotedRequest:
        """The same record as a value. It doesn't know the transcript's last requests."""
        from lutumpy.core.noted_request import NotedRequest

        return NotedRequest(
            self.api,
            self.host,
            self.model,
            self.settings,
            None if self.prefix is None else self.prefix(),
            self.seal.decode(),
            self.report(),
            {} if self.turns is None else self.turns(),
        )

    def decoding(self, decoder: StreamDecoder) -> RecordingDecoder:
        """A decoder like this one, whose turn gets this record."""
        return RecordingDecoder(decoder, self)

    def report(self) -> PrefixReport:
        """What the request changed, and what that cost."""
        return PrefixReport(
            appended=self._appended,
            changed=self._changed,
            dropped=self._dropped,
            left_out=self._left_out,
            cache=self._cache,
            waiting=self._waiting,
            unverified=self._unverified,
        )

    def _read_transformations(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add what the provider says that it left out (rule PB11)."""
        from lutumpy.core.noted_request import dropped_by_provider  # rare

        self._says_anything = True
        turns = {} if self.turns is None else self.turns()
        self._dropped += tuple(dropped_by_provider(entries, turns))


class RecordingDecoder:
    """A decoder whose turn gets the record of its request. All else is the other decoder's.

    Args:
        decoder: Decodes the stream.
        record: Of the request that the stream answers.

    Attributes:
        record: As given; another one where the request was repeated.
    """

    __slots__ = ("_decoder", "_feed", "feed_all", "feed_arguments", "record")

    def __init__(self, decoder: StreamDecoder, record: RequestRecord) -> None:
        self._decoder = decoder
        self._feed = decoder.feed
        self.record: RequestRecord = record
        # Not every decoder has the short ways, which stand for most of the events.
        for name in ("feed_arguments", "feed_all"):
            method = getattr(decoder, name, None)
            if method is not None:
                setattr(self, name, method)

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event. Raises as the decoder does."""
        return self._feed(chunk)

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, as the decoder has it."""
        return self._decoder.partial()

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, with its record. Raises as the decoder does."""
        return self.record.stamp(self._decoder.finish(request_id))


def _are_rewritten(before: SentRequest, rewrites: Rewrites) -> bool:
    """Whether entries that the request before held are written in another way by now. Those that
    came after it may be: nobody has seen them yet.
    """
    _, known_rewrites, known, rest = before
    held = known + len(rest)
    changed = rewrites ^ known_rewrites
    return any(what == STARTED_AGAIN or place < held for what, place in changed)


def _first_change(
    before: SentRequest, request: SentRequest, entries: Sequence[bytes]
) -> tuple[str, int]:
    """Where a request stops to be the one before it: a field, or an entry as a text, and how many
    entries come before that.
    """
    known_head, _, known, rest = before
    head, rewrites, _, _ = request
    for name in {**known_head, **head}:
        if known_head.get(name) != head.get(name):
            return name, 0
    if not _are_rewritten(before, rewrites):
        for index, entry in enumerate(rest, known):
            if index >= len(entries) or entries[index] != entry:
                return f"messages.{index}", index
    return "messages", 0
