"""One value for all spellings of a JSON Schema, so that two can be compared."""

from __future__ import annotations

from typing import Any

__all__ = ["canonical"]

# Arrays whose order means nothing.
_SETS = frozenset({"required", "type"})
# Keywords whose keys are names that the developer chose: one may well be called "required".
_NAMES = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


def canonical(value: Any, *, names: bool = False) -> Any:
    """A schema with its keys sorted, and with what is a set in it: the same value for every
    spelling of one schema.

    Args:
        value: The schema, or a part of one.
        names: Whether the keys of `value` are names of properties and not keywords.
    """
    if isinstance(value, dict):
        sorted_value = {
            key: canonical(value[key], names=not names and key in _NAMES) for key in sorted(value)
        }
        if not names:
            for key in _SETS & sorted_value.keys():
                if isinstance(sorted_value[key], list) and all(
                    isinstance(entry, str) for entry in sorted_value[key]
                ):
                    sorted_value[key] = sorted(sorted_value[key])
        return sorted_value
    if isinstance(value, (list, tuple)):
        return [canonical(entry) for entry in value]
    if isinstance(value, float) and value.is_integer():
        # JSON has one kind of number: 1.0 and 1 are the same to every reader.
        return int(value)
    return value
