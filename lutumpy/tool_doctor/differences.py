"""Where two JSON values differ, as far as the order of keys and of sets makes no difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from lutumpy.plain import json_values
from lutumpy.plain.pointer import escape

__all__ = ["Difference", "differences"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ.

    Attributes:
        path: Where, as a JSON Pointer.
        kind: What happened on the way from the first value to the second.
        before: What was there, `None` when it was added.
        after: What is there now, `None` when it was removed.
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
