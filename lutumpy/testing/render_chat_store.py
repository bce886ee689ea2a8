"""Stored chat completions at the test server: what `store=True` keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.errors import Problem
from lutumpy.testing.api_server import Json, Query, Refused, Resource, Route, objects
from lutumpy.testing.lists import index_after, write_page

__all__ = ["STORE_ROUTES", "ChatStore"]

STORE_ROUTES: tuple[Route, ...] = (
    Route(
        "/chat/completions/{completion}",
        {"GET": "completion", "POST": "update_completion", "DELETE": "delete_completion"},
    ),
    Route("/chat/completions/{completion}/messages", {"GET": "completion_messages"}),
)
"""Where they are, beside the list of all."""

PAGE = 20


@dataclass(slots=True)
class ChatStore:
    """The completions that one server keeps, by their ids."""

    _answers: dict[str, Json] = field(default_factory=dict[str, Json])
    _messages: dict[str, list[Json]] = field(default_factory=dict[str, "list[Json]"])

    def keep(self, body: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Keep an answer, if its request wants that."""
        answer_id = answer.get("id")
        if body.get("store") is not True or not isinstance(answer_id, str):
            return
        self._answers[answer_id] = {**answer, "metadata": body.get("metadata") or {}}
        self._messages[answer_id] = [
            {**message, "id": f"{answer_id}-{number}"}
            for number, message in enumerate(objects(body.get("messages")))
        ]

    def resources(self) -> Mapping[str, Resource]:
        """What answers each operation."""
        return {
            "list_completions": self._list,
            "completion": self._retrieve,
            "update_completion": self._update,
            "delete_completion": self._delete,
            "completion_messages": self._list_messages,
        }

    def _find(self, query: Query) -> Json:
        wanted = query.ids["completion"]
        found = self._answers.get(wanted)
        if found is None:
            message = f"No chat completion found with id '{wanted}'."
            where = "completion_id"
            raise Refused(Problem("chat.completion", where, message, "refused", status=404))
        return found

    def _retrieve(self, query: Query) -> Json:
        return self._find(query)

    def _update(self, query: Query) -> Json:
        found = self._find(query)
        metadata = query.body.get("metadata") if isinstance(query.body, Mapping) else None
        if not isinstance(metadata, Mapping):
            message = "Missing required parameter: 'metadata'."
            raise Refused(Problem("chat.required", "metadata", message, "refused"))
        found["metadata"] = dict(metadata)
        return found

    def _delete(self, query: Query) -> Json:
        wanted = self._find(query)["id"]
        del self._answers[wanted], self._messages[wanted]
        return {"id": wanted, "object": "chat.completion.deleted", "deleted": True}

    def _list(self, query: Query) -> Json:
        model = query.options.get("model")
        found = [one for one in self._answers.values() if model in (None, one.get("model"))]
        return _page(found, query)

    def _list_messages(self, query: Query) -> Json:
        return _page(self._messages[self._find(query)["id"]], query)


def _page(items: list[Json], query: Query) -> Json:
    """A page of a list, the oldest first unless asked otherwise."""
    ordered = items[::-1] if query.options.get("order") == "desc" else items
    limit = query.options.get("limit", "")
    start = index_after(ordered, query.options.get("after"))
    shown = ordered[start : start + (int(limit) if limit.isdecimal() else PAGE)]
    has_more = start + len(shown) < len(ordered)
    return {"object": "list", **write_page(shown, has_more=has_more)}
