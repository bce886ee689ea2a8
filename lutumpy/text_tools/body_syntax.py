"""Ways to write calls that are read from the whole text between two tags."""

# JSON calls are followed character by character (`Block`), since models break JSON in ways that
# have to be told apart while it arrives. Every other format needs two things only: where the text
# of a block ends, and what is in it. Where it ends is told by its end tags, but for those in a
# quoted text; what is in it is read when it is there. So a syntax is a value: its tags, its
# quotes, and a plain function from the text of a block to its calls.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from lutumpy.plain.values import dataclass
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools
from lutumpy.text_tools.trailing_text import may_be_rest, shown_rest
from lutumpy.text_tools.written_calls import cut_detail

__all__ = ["BodySyntax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodySyntax(ABC):
    """One way to write calls whose blocks are read when they are complete.

    Attributes:
        start: The tag before the calls; empty for calls that are the whole answer.
        ends: The tags that end them; the instruction names the first.
        around: Tags around blocks, which aren't shown.
        escapes: Whether a backslash escapes the next character of a quoted text.
    """

    start: str
    ends: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    escapes: bool = False

    @property
    def tags(self) -> tuple[str, str]:
        """The tags before and behind a call."""
        return (self.start, self.ends[0]) if self.start and self.ends else (self.start, "")

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts around a call and in it by which it is told from other text."""
        return tuple([text for text in (self.start, *self.ends) if text and self.start])

    @property
    def rule(self) -> str:
        """How an instruction says to write the arguments; empty where they are a JSON object."""
        return ""

    def quotes(self, tools: KnownTools) -> Mapping[str, str]:
        """The marks that begin a text in which no end tag counts, and what ends each."""
        return {}

    def behind_quotes(self) -> tuple[str, ...]:
        """What has to follow the end of a quoted text, which else goes on; empty for anything."""
        return ()

    def begins(self, text: str, tools: KnownTools) -> bool:
        """Whether a text without start tag may be calls, by its first characters."""
        return False

    def for_offer(self, tools: KnownTools) -> Sequence[BodySyntax]:
        """The syntaxes for an offer, where the tags are made of the tools' names."""
        return [self]

    @abstractmethod
    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""

    @abstractmethod
    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The calls in the text of a block; never raises.

        Args:
            body: The text between the tags.
            tools: The tools of the offer.
            whole: Whether the end tag has come, or the text ends here.

        Returns:
            The calls, those that can't be read included; `None` for a text that is not calls.
        """

    def unreadable(self, name: str, written: str, problem: str) -> ParsedCall:
        """A call that can't be read, with what is wrong in words for the model."""
        detail = (
            f"The tool call can't be read: {problem}. "
            f"Write it again as {self.spelled('tool_name', '{}')}."
        )
        return ParsedCall(name, written, "malformed", detail)

    def end_with_rest(self, calls: Sequence[ParsedCall], rest: str) -> list[ParsedCall]:
        """The calls of a block, behind the last of which is a text that begins no call.

        A sentence is dropped (rule T1). What may be the rest of the last call with a name makes it
        one that can't be read, since it may have ended too early (rule C5).
        """
        if not may_be_rest(rest):
            return list(calls)
        named = [index for index, call in enumerate(calls) if call.name]
        if not named:
            return [*calls, self.unreadable("", rest, f"{shown_rest(rest)} begins no call")]
        last = calls[named[-1]]
        written = "".join([call.arguments for call in calls[named[-1] :]]) + rest
        problem = f"{shown_rest(rest)} stands behind it, so it may have ended too early"
        return [*calls[: named[-1]], self.unreadable(last.name, written, problem)]

    def cut(self, name: str, written: str) -> ParsedCall:
        """A call that the text ends in."""
        return ParsedCall(name, written, "truncated", cut_detail(name))
