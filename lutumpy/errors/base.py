"""What all errors have in common."""

from __future__ import annotations

__all__ = ["LutumpyError"]


class LutumpyError(Exception):
    """The root of every error that this library raises."""
