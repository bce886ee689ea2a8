"""Histories from elsewhere: whether what was read or loaded can be sent to every API.

A transcript that this library made breaks no rule of any API (rule K5). One that was read from a
history, or answered by a compatible host with rules of its own, may break rules of the vendor: it
goes back to its host as it came. So a dump notes what is refused of it, and loading a dump refuses
only what is refused in addition: that got in after the dump was written.
"""

# Checking a whole history against the rules takes many times as long as writing or reading it, so
# each item is checked once. A transcript keeps what is known of its items (`_Refusals`), as it
# keeps their encoded form, and a dump checks those that came since the one before. A dump that is
# loaded as it was written (`dumps.py` sees that by a digest) brings this knowledge along; only one
# that was edited, or is of an earlier release, is checked as a whole.
#
# New items are checked behind a user's message that stands for all before them. Rules that look
# further back, as that no id is there twice, are held by the transcript itself.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lutumpy.apis import Api, api_names, is_built_in, serving
from lutumpy.core.items import AssistantTurn, Item, Message, TextPart
from lutumpy.core.transcript import Transcript
from lutumpy.doctor.check import check_messages
from lutumpy.errors import TranscriptError

__all__ = ["accept_loaded", "check_loaded", "known_refusals"]

_BEFORE = Message("user", (TextPart("What was before."),))


class _Refusals:
    """An `ItemEncoder` that knows what the APIs refuse for sure of their own entries and turns.

    Pairs of API and rule. Items are checked when the pairs are asked for.
    """

    __slots__ = ("_apis", "_begun", "_pairs", "_unchecked")

    def __init__(self) -> None:
        self._pairs: frozenset[tuple[str, str]] = frozenset()
        self._apis: frozenset[str] = frozenset()
        self._begun = False
        self._unchecked: list[Item] = []

    def add(self, item: Item) -> None:
        self._unchecked.append(item)

    def copy(self) -> _Refusals:
        twin = _Refusals()
        twin._pairs, twin._apis, twin._begun = self._pairs, self._apis, self._begun
        twin._unchecked = self._unchecked.copy()
        return twin

    def pairs(self) -> frozenset[tuple[str, str]]:
        """What is refused of all items; checks those that came since it was last asked."""
        if not self._unchecked:
            return self._pairs
        apis = self._apis | _apis_with_entries(self._unchecked)
        items = self._unchecked
        if self._begun and not _is_from_user(items[0]):
            items = [_BEFORE, *items]
        part = Transcript().with_tail(items)
        found = [_refusals(part, api) for api in api_names() if api in apis]
        pairs = self._pairs.union(*found)
        if not _goes_on(self._unchecked):
            self.accept(pairs)
        return pairs

    def accept(self, pairs: frozenset[tuple[str, str]]) -> None:
        """Take all items as checked, with this result."""
        self._apis |= _apis_with_entries(self._unchecked)
        self._pairs, self._begun, self._unchecked = pairs, True, []


def _is_from_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"


def _goes_on(items: Iterable[Item]) -> bool:
    """Whether the last turn is only half of an answer: the provider goes on with it, and its rules
    look at both halves.
    """
    turns = [item for item in items if isinstance(item, AssistantTurn)]
    return bool(turns) and (turns[-1].finish_reason == "paused" or turns[-1].results_only)


def known_refusals(transcript: Transcript) -> list[list[str]]:
    """What each API refuses for sure of its own entries and turns: pairs of API and rule."""
    return sorted(map(list, transcript.encoded("refused", _Refusals).pairs()))


def accept_loaded(transcript: Transcript, known: Iterable[Iterable[str]]) -> None:
    """Note what is refused of a transcript whose dump is as it was written."""
    pairs = frozenset([(api, rule) for api, rule in known])
    transcript.encoded("refused", _Refusals).accept(pairs)


def check_loaded(transcript: Transcript, known: Any) -> None:
    """Check that a transcript from a dump can be sent to every built-in API, as it could before it
    was dumped; and to the added ones that wrote some of it.

    Args:
        transcript: The transcript; it is not changed.
        known: The `known_refusals` of the dump. `None` for dumps of earlier releases, which have
            none: then an API whose own entries are in the transcript is not checked.

    Raises:
        TranscriptError: the request of some API can't be made, or is refused for sure.
    """
    own = _apis_with_entries(transcript)
    allowed: set[tuple[str, str]] = set()
    if known is not None:
        allowed = {(str(api), str(rule)) for api, rule in known}
    for api in api_names():
        # Which packages are installed changes nothing about dumps without entries of theirs.
        if not is_built_in(api) and api not in own:
            continue
        try:
            refused = _refusals(transcript, api)
            if any(turn.signed for turn in transcript.turns()):
                # Signed reasoning is left out one day, together with the ephemerals that it was
                # signed over: the transcript must be sendable without it, too.
                _entries_of(_without_reasoning(transcript), api)
        except Exception as error:
            raise TranscriptError(
                f"the dump is invalid: no request of {api} can be made of it "
                f"({type(error).__name__}: {error}); nothing was loaded"
            ) from error
        if known is None and api in own:
            continue
        for pair in refused:
            if pair not in allowed:
                raise TranscriptError(f"the dump is invalid: {refused[pair]}; nothing was loaded")


def _apis_with_entries(items: Iterable[Item]) -> frozenset[str]:
    """The APIs whose own entries or turns are among the items."""
    found: set[str] = set()
    for item in items:
        if item.verbatim is not None:
            found.add(item.verbatim.api)
        if isinstance(item, AssistantTurn):
            found.add(item.api)
    return frozenset(found)


def _refusals(transcript: Transcript, api: Api) -> dict[tuple[str, str], str]:
    """The rules that the request of an API breaks for sure, each with what the provider says."""
    entries, system = _entries_of(transcript, api)
    if not entries:  # nothing to send yet
        return {}
    problems = check_messages(api, entries, system=system)
    return {
        (api, problem.rule): str(problem) for problem in problems if problem.certainty == "refused"
    }


def _entries_of(transcript: Transcript, api: Api) -> tuple[list[dict[str, Any]], Any]:
    """The messages of a request, and its system text if the API has a field for that."""
    twin = transcript.fork()  # what is encoded for the check isn't kept
    adapter = serving(api, "adapter")
    has_system = serving(api, "rules").SHAPE.system_key is not None
    return adapter.messages(twin), adapter.system(twin) if has_system else None


def _without_reasoning(transcript: Transcript) -> Transcript:
    bare = Transcript()
    bare._extend([
        replace(item, reasoning_dropped=True) if isinstance(item, AssistantTurn) else item
        for item in transcript
    ])  # fmt: skip
    return bare
