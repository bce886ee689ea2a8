"""Which fields a content part has that a program wrote for one API, and what each of them holds.

The tables are the business of each API; this looks one object up in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

__all__ = ["Holds", "Misfit", "find_misfit", "holds_address", "holds_base64", "holds_text"]

Holds: TypeAlias = Callable[[Any], bool]
"""Whether a field may hold a value."""

Misfit: TypeAlias = tuple[str, Literal["missing", "unknown", "wrong"]]
"""A field, and what is wrong with it."""


def find_misfit(
    value: Mapping[str, Any],
    required: Mapping[str, Holds],
    optional: Mapping[str, Holds],
) -> Misfit | None:
    """The first field of an object that doesn't fit, or `None`.

    Args:
        value: The object. Its `type` has been looked at.
        required: The fields that it must have.
        optional: Those that it may have.
    """
    for key, holds in required.items():
        if key not in value:
            return key, "missing"
        if not holds(value[key]):
            return key, "wrong"
    for key, inner in value.items():
        if key == "type" or key in required:
            continue
        if key not in optional:
            return key, "unknown"
        if not optional[key](inner):
            return key, "wrong"
    return None


def holds_text(value: Any) -> bool:
    """A text that says something."""
    return isinstance(value, str) and bool(value.strip())


def holds_address(value: Any) -> bool:
    """An http(s) address without white space."""
    if not isinstance(value, str) or any(character.isspace() for character in value):
        return False
    scheme, found, rest = value.partition("://")
    return bool(found) and scheme.lower() in ("http", "https") and rest[:1] not in ("", *"/?#")


def holds_base64(value: Any) -> bool:
    """Bytes in base64, at least one."""
    if not isinstance(value, str) or not value:
        return False
    import base64  # rare

    try:
        return bool(base64.b64decode(value, validate=True))
    except ValueError:
        return False
