"""What a request said anew, and what of the conversation it had to leave out: a `PrefixReport`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    # A name for checkers alone: protocols are slow to build.

    class HasPrefix(Protocol):
        """A turn."""

        @property
        def prefix(self) -> PrefixReport | None: ...


__all__ = [
    "NOTHING_CHANGED",
    "NOTHING_KNOWN",
    "DroppedReasoning",
    "LeftOut",
    "OnPrefixChange",
    "PrefixReport",
    "checked_policy",
    "report_of",
]

OnPrefixChange = Literal["append", "drop", "error"]
"""What a request does when settings have changed since the turn before.

`append` says the change behind the conversation, where the API has words for that, so that all
reasoning and the cache of the prompt stay; where it has none, exactly the reasoning is left out
that the API would refuse. `drop` changes the beginning of the request in place, so that what was
withdrawn leaves the prompt. `error` sends nothing if reasoning would be lost.
"""

_POLICIES = ("append", "drop", "error")


def checked_policy(policy: object) -> OnPrefixChange:
    """The option `on_prefix_change`, checked.

    Raises:
        ValueError: It is none of its words.
    """
    for known in _POLICIES:
        if policy == known:
            return known  # type: ignore[return-value]  # mypy reads a tuple of texts
    raise ValueError(
        f"on_prefix_change={policy!r:.100} is none of {', '.join(_POLICIES)}; nothing was sent"
    )


@dataclass(frozen=True, slots=True)
class DroppedReasoning:
    """Reasoning of one turn that the model didn't get to see.

    Attributes:
        turn: The turn, as an index into `turns()` of the transcript; -1 where the provider's word
            for it couldn't be found again.
        reason: Why, as `prefix_mismatch`; the provider's own word where it is the provider's.
        by: Who left it out: this library before sending, or the provider.
    """

    turn: int
    reason: str
    by: Literal["lutumpy", "provider"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a request doesn't hold because of where it goes (rule OR5). The session keeps it.

    Attributes:
        turn: The turn that has it, as an index into `turns()` of the transcript.
        what: What it is, as `reasoning_content` or `signed reasoning`.
        why: The reason, in a sentence.
    """

    turn: int
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class PrefixReport:
    """What a request changed of all that was sent before it, and what that cost.

    It is true when something was lost: reasoning, or content that doesn't go to this host.

    Attributes:
        appended: What was said anew, each as the API's word and the tool, as `tool_removal send`.
        changed: Where the request differs from the one before, as `tools` or `messages.4`.
        dropped: The reasoning that the model didn't see.
        left_out: What doesn't go to this API, host or model.
        cache: Whether the provider's prompt cache can serve: the request `begins` with the one
            before it, or `restarts`; `unknown` where no request before it is known.
        waiting: What has changed and can only be said with the next request.
        unverified: Turns with signed reasoning that was sent though nobody knows what it was signed
            over, as of a history that was read; each as an index into `turns()`.
    """

    appended: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    dropped: tuple[DroppedReasoning, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    cache: Literal["begins", "restarts", "unknown"] = "unknown"
    waiting: tuple[str, ...] = ()
    unverified: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.dropped or self.left_out)


NOTHING_KNOWN = PrefixReport()
"""The report of a turn whose request isn't known."""

NOTHING_CHANGED = PrefixReport(cache="begins")
"""The report of a request that only goes on."""


def report_of(turn: HasPrefix) -> PrefixReport:
    """What the request of a turn changed; an empty report where that isn't known."""
    return NOTHING_KNOWN if turn.prefix is None else turn.prefix
