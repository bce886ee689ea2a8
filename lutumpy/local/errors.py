"""What can go wrong with a model on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from lutumpy.errors import LutumpyError

__all__ = ["FetchError", "LocalServerError", "missing_extra"]


class FetchError(LutumpyError):
    """The model could not be fetched. Nothing was kept; what was in the cache before is still there."""


class LocalServerError(LutumpyError):
    """The server could not be started, or isn't running. No process of it is left.

    Attributes:
        log: The last lines that llama.cpp wrote, at most 50.
    """

    def __init__(self, message: str, log: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.log: tuple[str, ...] = tuple(log)


def missing_extra(package: str) -> ImportError:
    """The error for a package of the `local` extra that isn't installed."""
    return ImportError(
        f'lutumpy.local needs {package}; install it with: python -m pip install ".[local]" (in a clone)',
        name=package,
    )
