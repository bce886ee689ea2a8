"""The error for what isn't installed."""

from __future__ import annotations

__all__ = ["missing_extra"]


def missing_extra(package: str) -> ImportError:
    """The error for a package of the `local` extra that isn't installed."""
    return ImportError(
        f'lutumpy.local needs {package}; install it with: python -m pip install ".[local]" (in a '
        "clone)",
        name=package,
    )
