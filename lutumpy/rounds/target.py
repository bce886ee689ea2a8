"""What a turn is written into: a session, or a transcript of the user's own."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from lutumpy.core.transcript import Transcript


class HasTranscript(Protocol):
    """A session: what holds a transcript. What answers cost is counted there."""

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


def own_transcript(transcript: Transcript | None) -> Transcript:
    """The transcript of a new session: the one it was given, or an empty one; raises `TypeError` for anything else."""
    if transcript is None:
        return Transcript()
    if isinstance(transcript, Transcript):
        return transcript
    hint = (
        "session.fork() is a copy of one"
        if hasattr(transcript, "transcript")
        else "say something by session.push_user"
    )
    raise TypeError(
        f"Session takes a Transcript or nothing, not {type(transcript).__name__}: {hint}; "
        "a provider's messages are read by Transcript.from_messages"
    )
