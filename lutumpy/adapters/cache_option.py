"""The option of adapters whose provider keeps the beginning of a request where it is told to."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

__all__ = ["Cache", "checked_cache"]

Cache: TypeAlias = Literal["auto"]


def checked_cache(cache: Any) -> Cache | None:
    """The `cache` option, when it is one."""
    if cache is None or cache == "auto":
        return "auto" if cache else None
    raise ValueError(
        f"cache takes 'auto' or None, not {cache!r}; breakpoints of your own go into extra"
    )
