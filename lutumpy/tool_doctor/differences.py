"""Where two JSON values differ, as far as the order of keys and of sets makes no difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from lutumpy.plain import json_values
from lutumpy.plain.pointer import escape

__all__ = ["Difference", "canonical", "differences"]

# Arrays whose order means nothing.
_SETS = frozenset({"required", "type"})
# Keywords whose keys are names that the developer chose: one may well be called "required".
_NAMES = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ.

    Attributes:
        path: Where, as a JSON Pointer.
        kind: What happened on the way from the first value to the second.
        before: What stood there, `None` when it was added.
        after: What stands there now, `None` when it was removed.
    """

    path: str
    kind: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """The places where `after` differs from `before`, each as deep as it can be named."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *[key for key in after if key not in before]]:
            inner = f"{path}/{escape(str(key))}"
            if key not in after:
                yield Difference(inner, "removed", before=before[key])
            elif key not in before:
                yield Difference(inner, "added", after=after[key])
            else:
                yield from differences(before[key], after[key], inner)
    # Arrays of different lengths are compared whole: without an id for each element, which one was
    # added would be a guess.
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{path}/{index}")
    elif not json_values.equal(before, after):
        yield Difference(path, "changed", before, after)


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
