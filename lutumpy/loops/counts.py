"""What the limits of a loop are held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from lutumpy import ToolMetadata, ToolResult
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

__all__ = ["FailureKey", "LoopCounts", "failed_calls", "failure_key"]

FailureKey: TypeAlias = "tuple[str, str]"
"""The name of a tool, and its arguments in a form that is the same for equal JSON values."""


@dataclass(frozen=True, slots=True)
class LoopCounts:
    """What a loop has counted, so that another one can go on counting.

    Attributes:
        rounds: How many rounds were committed.
        tokens: What was spent before this loop began, in tokens; its own tokens are added to that.
        failures: In how many rounds a call of this tool with these arguments went wrong.
        value_retries: How often the model was asked again for an answer that has a value.
    """

    rounds: int = 0
    tokens: int = 0
    failures: Mapping[FailureKey, int] = field(default_factory=dict)
    value_retries: int = 0


def failed_calls(results: Iterable[ToolResult]) -> Iterator[ToolMetadata]:
    """The calls that went wrong, without those skipped as duplicates of another of the round."""
    seen: set[FailureKey] = set()
    for result in results:
        key = failure_key(result.metadata)
        skipped = key in seen and result.status == "rejected"
        seen.add(key)
        if result.status not in ("ok", "promised") and not skipped:
            yield result.metadata


def failure_key(metadata: ToolMetadata) -> FailureKey:
    """The key under which a call is counted that went wrong."""
    return metadata.name, json_values.canonical_arguments(metadata.arguments)
