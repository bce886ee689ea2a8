"""The spans of deliveries (rule LR20): one for each late result."""

# Whoever leaves a result with `DurableLoop(telemetry=...).deliver` makes its span, inside whatever
# else that process does then, and marks the row. What comes otherwise has no such mark: a result
# that a poll has found, one of a store's own `deliver`, a call that was withdrawn or given up. Of
# that the run makes the span that takes it.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lutumpy import ToolResult
from lutumpy.durable.types import InboxEntry

__all__ = ["DeliverySpans"]


class DeliverySpans:
    """Makes spans of what is delivered to one conversation.

    Args:
        telemetry: The loop's. One of the user's own needn't have `delivery`: then nothing is made.
        scope: The conversation's id.
    """

    def __init__(self, telemetry: Any, scope: str) -> None:
        self._delivery: Any = getattr(telemetry, "delivery", None)
        self._scope = scope

    @contextmanager
    def leave(
        self, result: ToolResult, key: str | None, earlier: Mapping[str, str] | None
    ) -> Iterator[dict[str, Any]]:
        """The span of a result that is being left in the store; gives the marks of its row."""
        marks: dict[str, Any] = {} if key is None else {"key": key}
        if self._delivery is None:
            yield marks
            return
        with self._delivery(result, key=key, conversation=self._scope, earlier=earlier):
            yield {**marks, "traced": True}

    def note_taken(
        self,
        results: Iterable[ToolResult],
        entries: Sequence[InboxEntry],
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """Make the spans of results that are taken, where nobody has made them.

        Args:
            results: The results.
            entries: The rows of those that were delivered.
            keys: The keys of their calls by id, as far as the caller knows them.
        """
        if self._delivery is None:
            return
        rows = {str(entry.value["call_id"]): entry.value for entry in entries}
        for result in results:
            call_id = result.metadata.id
            row = rows.get(call_id, {})
            if not row.get("traced"):
                key = (keys or {}).get(call_id) or row.get("key")
                with self._delivery(result, key=key, conversation=self._scope):
                    pass  # it is a moment: that of the commit
