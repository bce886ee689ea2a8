"""What a transcript would send to each API, and which rules of the API that is known to break.

A transcript that this library made breaks none (rule K5). One that was read from a history, or answered by a host with rules
of its own, may break some of the vendor's: it goes back to its host as it came. So a dump notes what is refused of it anyway,
and loading it refuses what is refused besides: that came in after the dump was written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lutumpy.core import json_values
from lutumpy.core.items import Api, AssistantTurn
from lutumpy.core.transcript import Transcript
from lutumpy.doctor.check import check_messages
from lutumpy.errors import TranscriptError

__all__ = ["check_loaded", "known_refusals"]

_APIS: tuple[Api, ...] = ("openai_chat", "openai_responses", "anthropic_messages")


def known_refusals(transcript: Transcript) -> list[list[str]]:
    """What the APIs refuse for sure of what they themselves, or hosts like them, have said: pairs of API and rule."""
    spoken = _spoken(transcript)
    found = [_refused(transcript, api) for api in _APIS if api in spoken]
    return sorted([list(pair) for pairs in found for pair in pairs])


def check_loaded(transcript: Transcript, known: Any) -> None:
    """Check that a transcript from a dump can be sent to every API, as it could be before.

    Args:
        transcript: The transcript; it is left as it is.
        known: The `known_refusals` that stand in the dump, or `None`, as in dumps of earlier releases: then what stands in the
            words of an API itself is not held against it.

    Raises:
        TranscriptError: the request of some API can't be made, or is refused for sure.
    """
    spoken = _spoken(transcript)
    allowed = (
        {(str(api), str(rule)) for api, rule in known}
        if known is not None
        else set[tuple[str, str]]()
    )
    for api in _APIS:
        try:
            refused = _refused(transcript, api)
            if any(turn.signed for turn in transcript.turns()):
                # Such reasoning is left out one day, with the ephemerals that it was signed over.
                _entries(_without_reasoning(transcript), api)
        except Exception as error:
            raise TranscriptError(
                f"the dump is invalid: no request of {api} can be made of it ({type(error).__name__}: {error}); "
                "nothing was loaded"
            ) from error
        if known is None and api in spoken:
            continue
        for pair in refused:
            if pair not in allowed:
                raise TranscriptError(f"the dump is invalid: {refused[pair]}; nothing was loaded")


def _spoken(transcript: Transcript) -> set[str]:
    """The APIs whose own words are in a transcript."""
    spoken = {item.verbatim.api for item in transcript if item.verbatim is not None}
    return spoken | {turn.api for turn in transcript.turns()}


def _refused(transcript: Transcript, api: Api) -> dict[tuple[str, str], str]:
    """The rules that the request of an API breaks for sure, each with what the provider says."""
    entries, system = _entries(transcript, api)
    if not entries:  # there is nothing to send yet
        return {}
    problems = check_messages(api, entries, system=system)
    return {
        (api, problem.rule): str(problem) for problem in problems if problem.certainty == "refused"
    }


def _entries(transcript: Transcript, api: Api) -> tuple[list[dict[str, Any]], Any]:
    """The messages of a request, and the system's where that stands by itself."""
    twin = transcript.fork()  # what is encoded here isn't kept there
    if api == "anthropic_messages":
        from lutumpy.adapters.anthropic.request import encoder_of

        encoder = encoder_of(twin, None)
        system = encoder.system()
        return json_values.decode(encoder.history()), json_values.decode(system) if system else None
    if api == "openai_chat":
        from lutumpy.adapters.openai import OpenAIChat

        return OpenAIChat.messages(twin), None
    from lutumpy.adapters.openai import OpenAIResponses

    return OpenAIResponses.messages(twin), None


def _without_reasoning(transcript: Transcript) -> Transcript:
    bare = Transcript()
    bare._extend(
        [
            replace(i, reasoning_dropped=True) if isinstance(i, AssistantTurn) else i
            for i in transcript
        ]
    )
    return bare
