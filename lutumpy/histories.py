"""Histories from elsewhere: whether what was read or loaded can be sent to every API.

A transcript that this library made breaks no rule of any API (rule K5). One that was read from a
history, or answered by a compatible host with rules of its own, may break rules of the vendor: it
goes back to its host as it came. So a dump notes what is refused of it, and loading a dump refuses
only what is refused in addition: that got in after the dump was written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lutumpy.apis import Api, api_names, is_built_in, serving
from lutumpy.core.items import AssistantTurn
from lutumpy.core.transcript import Transcript
from lutumpy.doctor.check import check_messages
from lutumpy.errors import TranscriptError

__all__ = ["check_loaded", "known_refusals"]


def known_refusals(transcript: Transcript) -> list[list[str]]:
    """What each API refuses for sure of its own entries and turns: pairs of API and rule."""
    own = _apis_with_entries(transcript)
    refused = [_refusals(transcript, api) for api in api_names() if api in own]
    return sorted([list(pair) for pairs in refused for pair in pairs])


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


def _apis_with_entries(transcript: Transcript) -> set[str]:
    """The APIs whose own entries or turns are in a transcript."""
    apis = {item.verbatim.api for item in transcript if item.verbatim is not None}
    return apis | {turn.api for turn in transcript.turns()}


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
