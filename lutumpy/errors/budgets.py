"""What goes wrong with money."""

from __future__ import annotations

from lutumpy.errors.base import LutumpyError

__all__ = ["BudgetExceeded", "NotSupportedError", "UnknownPriceError"]


class BudgetExceeded(LutumpyError):
    """A budget is used up. The request was not sent; the session is as it was.

    Attributes:
        limit: Which limit: `usd`, `tokens` or `requests`.
    """

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit: str = limit

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, str]]:
        return type(self), (self.args[0], self.limit)


class NotSupportedError(LutumpyError, NotImplementedError):
    """The API, or the host, has no such call. Nothing was sent."""


class UnknownPriceError(LutumpyError, LookupError):
    """Nobody knows what a model costs. Nothing was sent."""
