"""Batches of Messages at the test server.

Source: the types and doc strings of the vendor's SDK (2.12). The words of the refusals are those of
its other endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.errors import Problem
from lutumpy.testing.api_server import Json, Query, Refused, Resource, Route
from lutumpy.testing.batches import CREATE_BATCH, BatchAnswer, BatchEntry, write_lines
from lutumpy.testing.lists import write_page

__all__ = ["BATCH_ROUTES", "MessageBatches"]

BATCH_ROUTES: tuple[Route, ...] = (
    Route("/messages/batches", {"POST": CREATE_BATCH, "GET": "batches"}),
    Route("/messages/batches/{batch}", {"GET": "batch", "DELETE": "delete_batch"}),
    Route("/messages/batches/{batch}/cancel", {"POST": "cancel_batch"}),
    Route("/messages/batches/{batch}/results", {"GET": "batch_results"}),
)

_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_MADE = "2026-01-01T00:00:00Z"
_EXPIRES = "2026-01-02T00:00:00Z"


@dataclass(slots=True)
class MessageBatches:
    """The batches of one server, by their ids."""

    _batches: dict[str, Json] = field(default_factory=dict[str, Json])
    _results: dict[str, list[Json]] = field(default_factory=dict[str, "list[Json]"])

    def read(self, body: Any) -> list[BatchEntry]:
        """The requests of a batch."""
        requests = body.get("requests") if isinstance(body, Mapping) else None
        if not isinstance(requests, list) or not requests:
            raise _refused("requests", "Field required" if requests is None else "empty list")
        found: list[BatchEntry] = []
        for number, request in enumerate(requests):
            where = f"requests.{number}"
            asked = request if isinstance(request, Mapping) else {}
            custom_id, params = asked.get("custom_id"), asked.get("params")
            if not isinstance(custom_id, str) or not _CUSTOM_ID.match(custom_id):
                raise _refused(f"{where}.custom_id", "String should match '^[a-zA-Z0-9_-]{1,64}$'")
            if custom_id in [entry.custom_id for entry in found]:
                raise _refused(f"{where}.custom_id", "custom_id must be unique")
            if not isinstance(params, Mapping):
                raise _refused(f"{where}.params", "Field required")
            if params.get("stream"):
                raise _refused(f"{where}.params.stream", "Input should be False")
            found.append(BatchEntry(custom_id, "/v1/messages", {**params}))
        return found

    def keep(self, answers: list[BatchAnswer], url: str) -> Json:
        """Keep what came of a batch."""
        batch_id = f"msgbatch_{len(self._batches) + 1:024d}"
        results: list[Json] = []
        for answer in answers:
            kind = "succeeded" if answer.status == 200 else "errored"
            key = "message" if kind == "succeeded" else "error"
            result = {"type": kind, key: answer.body}
            results.append({"custom_id": answer.custom_id, "result": result})
        self._results[batch_id] = results
        kinds = [one["result"]["type"] for one in results]
        counts = {"succeeded": kinds.count("succeeded"), "errored": kinds.count("errored")}
        ended: Json = {
            "id": batch_id,
            "type": "message_batch",
            "processing_status": "ended",
            "request_counts": {"processing": 0, **counts, "canceled": 0, "expired": 0},
            "created_at": _MADE,
            "expires_at": _EXPIRES,
            "ended_at": _MADE,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{url}/{batch_id}/results",
        }
        self._batches[batch_id] = ended
        waiting = {"processing": len(results), "succeeded": 0, "errored": 0}
        return {
            **ended,
            "processing_status": "in_progress",
            "request_counts": {**ended["request_counts"], **waiting},
            "ended_at": None,
            "results_url": None,
        }

    def resources(self) -> Mapping[str, Resource]:
        """What answers each operation."""
        return {
            "batches": self._list,
            "batch": self._find,
            "cancel_batch": self._find,  # it has ended, and stays as it is
            "delete_batch": self._delete,
            "batch_results": self._show_results,
        }

    def _find(self, query: Query) -> Json:
        found = self._batches.get(query.ids["batch"])
        if found is None:
            message, kind = f"Not found: {query.ids['batch']}", "not_found_error"
            raise Refused(Problem("anthropic.batch", "", message, "refused", status=404, kind=kind))
        return found

    def _list(self, query: Query) -> Json:
        return write_page([*self._batches.values()][::-1], has_more=False)

    def _delete(self, query: Query) -> Json:
        batch_id = self._find(query)["id"]
        del self._batches[batch_id], self._results[batch_id]
        return {"id": batch_id, "type": "message_batch_deleted"}

    def _show_results(self, query: Query) -> bytes:
        return write_lines(self._results[self._find(query)["id"]])


def _refused(where: str, words: str) -> Refused:
    return Refused(Problem("anthropic.batch", where, f"{where}: {words}", "refused"))
