"""What errors carry, as far as it can be read."""

from __future__ import annotations

from typing import Protocol

__all__ = ["CallData", "PartialAnswer", "TokenCounts"]


# What errors carry is made by the core, which raises them: so they name only what can be read of
# it.
class CallData(Protocol):
    """A call that an error is about: a `ToolMetadata`."""

    @property
    def id(self) -> str:
        """The call's id."""
        ...

    @property
    def name(self) -> str:
        """The tool's name, as the model wrote it."""
        ...

    @property
    def arguments(self) -> str:
        """The text of the arguments, as the model wrote it."""
        ...


class TokenCounts(Protocol):
    """What is known of the tokens of an answer that broke off: a `Usage`."""

    @property
    def input_tokens(self) -> int:
        """The provider's own figure of what was sent."""
        ...

    @property
    def output_tokens(self) -> int:
        """Tokens of the answer."""
        ...

    @property
    def total_tokens(self) -> int:
        """Everything."""
        ...


class PartialAnswer(Protocol):
    """What had arrived of an answer: an `AssistantTurn` that is not in the transcript."""

    @property
    def text(self) -> str:
        """The text so far."""
        ...

    @property
    def reasoning(self) -> str | None:
        """The readable reasoning so far, or `None`."""
        ...

    @property
    def usage(self) -> TokenCounts:
        """The tokens that are known so far."""
        ...

    @property
    def model(self) -> str | None:
        """The model's name as answered."""
        ...

    @property
    def response_id(self) -> str | None:
        """The provider's id of the answer."""
        ...
