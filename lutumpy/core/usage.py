"""What an answer cost, in tokens."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from lutumpy.plain.values import dataclass

__all__ = ["MOST_TOKENS", "Usage", "token_count"]

MOST_TOKENS = 10**12
"""No request has that many tokens. What is larger isn't a count, and sums of it fit nowhere."""


def token_count(value: Any) -> int:
    """What a reply says of tokens, if it is a number of them, else 0."""
    return value if type(value) is int and 0 < value < MOST_TOKENS else 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a request cost, as the provider counted them; numbers it does not give are 0.

    Values of several requests can be added, also of different providers: `all_input_tokens` stays
    right.

    Attributes:
        input_tokens: The provider's own figure. OpenAI includes cached tokens, Anthropic doesn't:
            to compare or add requests, use `all_input_tokens`.
        output_tokens: Tokens of the answer, reasoning included.
        total_tokens: Everything, cached input included.
        cached_input_tokens: Input that was read from the provider's cache.
        cache_creation_tokens: Input that was written to it.
        reasoning_tokens: The part of the output that was reasoning.
        cached_beside_tokens: The cached tokens, read and written, that `input_tokens` does not
            include. Left out, they are taken from what `total_tokens` has beyond input and output.
            Not compared.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_input_tokens: int = 0
    cache_creation_tokens: int = 0
    reasoning_tokens: int = 0
    cached_beside_tokens: int | None = field(default=None, compare=False, repr=False)

    @property
    def all_input_tokens(self) -> int:
        """All tokens that the model was given, cached ones included.

        Means the same for every provider.
        """
        return self.input_tokens + self._cached_beside()

    def _cached_beside(self) -> int:
        if self.cached_beside_tokens is not None:
            return self.cached_beside_tokens
        # Some hosts include reasoning in the total but not in the output. That surplus is not
        # cached input, so the result is never more than the cached tokens that were reported.
        beyond = max(0, self.total_tokens - self.input_tokens - self.output_tokens)
        return min(beyond, self.cached_input_tokens + self.cache_creation_tokens)

    def __sub__(self, other: Usage) -> Usage:
        """What was added since `other`."""
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.total_tokens - other.total_tokens,
            self.cached_input_tokens - other.cached_input_tokens,
            self.cache_creation_tokens - other.cache_creation_tokens,
            self.reasoning_tokens - other.reasoning_tokens,
            self._cached_beside() - other._cached_beside(),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self._cached_beside() + other._cached_beside(),
        )
