"""The target of a turn, a session or a transcript, and its position at the request."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from lutumpy.core.transcript import Transcript

__all__ = ["HasTranscript", "Position", "Target", "begin_request", "position_of", "transcript_of"]


class HasTranscript(Protocol):
    """A session: it holds a transcript, and what answers cost is counted there."""

    @property
    def transcript(self) -> Transcript: ...


Target: TypeAlias = "Transcript | HasTranscript"
"""Where an answer is committed: a transcript, or a session that has one."""


def transcript_of(target: Target) -> Transcript:
    """The transcript behind a target; raises `TypeError` for anything else."""
    if isinstance(target, Transcript):
        return target
    found = getattr(target, "transcript", None)
    if not isinstance(found, Transcript):
        raise TypeError(f"a Session or a Transcript is needed, not {type(target).__name__}")
    return found


class Position(NamedTuple):
    """Where a transcript stood at one moment.

    Attributes:
        length: How many items it had.
        revision: Its revision, which grows with every change.
    """

    length: int
    revision: int


def position_of(transcript: Transcript) -> Position:
    """Where the transcript is now."""
    return Position._make(transcript.position())


def begin_request(transcript: Transcript) -> Position:
    """Where the transcript is, for a request that is about to be made.

    Raises:
        DroppedRoundError: a round on this transcript was dropped open; nothing was sent.
        TranscriptError: there is nothing to answer but open calls (rule LR6).
    """
    # Not part of `position_of`: a program that reads a reply by hand has sent its request already.
    if transcript.dropped or transcript._state.open:
        transcript.refuse_unready()
    return Position(len(transcript), transcript.revision)
