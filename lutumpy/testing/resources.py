"""What the test server answers beside a model's answers: models, counts, stored responses, conversations.

Envelopes are those that the SDKs read. Nothing here takes an answer from the script.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from lutumpy.errors import Problem
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.openai.shapes import check_integer, long_array, missing, wrong_type, wrong_value
from lutumpy.testing.exchange import Exchange
from lutumpy.testing.memory import Conversation, Memory, StoredResponse, input_items, vendor
from lutumpy.testing.paths import Target
from lutumpy.testing.render_chat import CREATED

Json = dict[str, Any]

MODELS: Mapping[str, str] = {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-5"}
"""The first model of each vendor's list, which has those that requests have named after it. Any other can be retrieved."""

COUNTED = ("instructions", "system", "tools", "messages")
CHARACTERS_OF_TOKEN = 4
MAX_ITEMS = 20
MAX_PAGE = 100
MAY_FOLLOW = ("responses.output_for_call", "responses.dangling_reasoning")
"""What a conversation may lack until more is added to it."""

ORDERS = ("asc", "desc")


class Refused(Exception):
    """A request that gets an error; the first of the problems is what it says."""

    def __init__(self, *problems: Problem) -> None:
        self.problems: list[Problem] = list(problems)
        super().__init__(problems[0].message)


class Resources:
    """Answers from the server's memory to one request, whose lock is held."""

    def __init__(
        self,
        memory: Memory,
        exchange: Exchange,
        target: Target,
        query: Mapping[str, str],
        body: Any,
    ) -> None:
        self._memory = memory
        self._exchange = exchange
        self._ids = target.ids
        self._query = query
        self._body = body

    def answer(self, operation: str) -> tuple[Response, list[Problem]]:
        """The response, and the problems that were found."""
        try:
            return _OPERATIONS[operation](self), []
        except Refused as refused:
            response = self._exchange.refusal(refused.problems)
            assert response is not None, "what is raised is a refusal"
            return response, refused.problems

    # ------------------------------------------------------------ models

    def _model(self, name: str) -> Json:
        if self._exchange.api != "anthropic_messages":
            return {"id": name, "object": "model", "created": CREATED, "owned_by": "openai"}
        return {
            "type": "model",
            "id": name,
            "display_name": name.replace("-", " ").title(),
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "active",
            "line": None,
            "deprecated_at": None,
            "retires_at": None,
            "max_input_tokens": 200_000,
            "max_tokens": 64_000,
            "capabilities": None,
            "allowed_fallback_models": [],
        }

    def model(self) -> Response:
        return self._exchange.json(self._model(self._ids["model"]))

    def models(self) -> Response:
        kind = vendor(self._exchange.api)
        names = dict.fromkeys([MODELS[kind], *self._memory.models.get(kind, ())])
        data = [self._model(name) for name in names]
        if kind == "openai":
            return self._exchange.json({"object": "list", "data": data})
        limit = self._query.get("limit", "")
        start = _after(data, self._query.get("after_id"))
        stop = (
            _after(data, self._query.get("before_id")) - 1
            if "before_id" in self._query
            else len(data)
        )
        shown = data[start:stop][: int(limit) if limit.isdecimal() else MAX_PAGE]
        return self._exchange.json(
            _page(shown, has_more=bool(shown) and shown[-1]["id"] != data[stop - 1]["id"])
        )

    # ------------------------------------------------------------ counts

    def count(self) -> Response:
        problems = self._memory.check(self._exchange.api, self._body, counted=True)
        refused = [problem for problem in problems if problem.certainty == "refused"]
        if refused:
            raise Refused(
                *refused, *[problem for problem in problems if problem.certainty != "refused"]
            )
        counted = [self._body[key] for key in COUNTED if self._body.get(key) is not None]
        if self._exchange.api == "openai_responses":
            held = self._memory.held(self._body)
            counted += [*([] if isinstance(held, Problem) else held), *input_items(self._body)]
            return self._exchange.json(
                {"object": "response.input_tokens", "input_tokens": _tokens(counted)}
            )
        found: Json = {"input_tokens": _tokens(counted)}
        if self._body.get("context_management") is not None:
            found["context_management"] = {"original_input_tokens": found["input_tokens"]}
        return self._exchange.json(found)

    # --------------------------------------------------------- responses

    def _stored(self) -> StoredResponse:
        wanted = self._ids["response"]
        found = self._memory.responses.get(wanted)
        if found is None:
            message = f"Response with id '{wanted}' not found."
            raise Refused(
                Problem("responses.response", "response_id", message, "refused", status=404)
            )
        return found

    def response(self) -> Response:
        stored = self._stored()
        stored.given = True
        if self._query.get("stream") != "true":
            return self._exchange.json(stored.answer)
        if not stored.in_background or stored.events is None:
            message = "Only a response that was created with 'background' and 'stream' true can be streamed again."
            raise Refused(Problem("responses.stream", "stream", message, "refused", param="stream"))
        start = self._query.get("starting_after", "")
        after = int(start) if start.isdecimal() else -1
        return self._exchange.events(
            [event for event in stored.events if event["sequence_number"] > after]
        )

    def cancel_response(self) -> Response:
        stored = self._stored()
        if not stored.in_background:
            message = "Cannot cancel a synchronous response."
            raise Refused(Problem("responses.cancel", "response_id", message, "refused"))
        stored.cancel()
        return self._exchange.json(stored.answer)

    def delete_response(self) -> Response:
        self._stored()
        wanted = self._ids["response"]
        del self._memory.responses[wanted]
        return self._exchange.json({"id": wanted, "object": "response", "deleted": True})

    def input_items(self) -> Response:
        return self._listed(self._stored().items)

    # ----------------------------------------------------- conversations

    def _conversation(self) -> Conversation:
        wanted = self._ids["conversation"]
        found = self._memory.conversations.get(wanted)
        if found is None:
            message = f"Conversation with id '{wanted}' not found."
            raise Refused(
                Problem("responses.conversation", "conversation_id", message, "refused", status=404)
            )
        return found

    def _fields(self, *known: str, required: str | None = None) -> Json:
        """The body, which has these keys alone."""
        body = {} if self._body is None else self._body
        if not isinstance(body, dict):
            raise Refused(wrong_type("responses.body", "body", "an object", body))
        unknown = [
            Problem(
                "responses.unknown_parameter",
                key,
                f"Unknown parameter: '{key}'.",
                "refused",
                param=key,
            )
            for key in body
            if key not in known
        ]
        found = [replace(problem, code="unknown_parameter") for problem in unknown]
        if required is not None and body.get(required) is None:
            found.append(missing("responses.required", required))
        if not isinstance(body.get("metadata") or {}, dict):
            found.append(
                wrong_type("responses.metadata", "metadata", "an object", body["metadata"])
            )
        if found:
            raise Refused(*found)
        return body

    def _new_items(self, items: Any) -> list[Any]:
        """Items to add: their shapes are checked, not whether every call has its output yet."""
        if not isinstance(items, list):
            raise Refused(wrong_type("responses.input", "items", "an array of objects", items))
        found = (
            [long_array("responses.input", "items", MAX_ITEMS, len(items))]
            if len(items) > MAX_ITEMS
            else []
        )
        for problem in responses.check_messages(items, server_held_prefix=True):
            if problem.certainty == "refused" and problem.rule not in MAY_FOLLOW:
                param = (
                    problem.param.replace("input", "items", 1)
                    if problem.param is not None
                    else None
                )
                found.append(
                    replace(
                        problem, message=problem.message.replace("input[", "items["), param=param
                    )
                )
        if found:
            raise Refused(*found)
        return items

    def create_conversation(self) -> Response:
        body = self._fields("items", "metadata")
        items = self._new_items(body.get("items") or [])
        return self._exchange.json(
            self._memory.begin_conversation(body.get("metadata") or {}, items).answer
        )

    def conversation(self) -> Response:
        return self._exchange.json(self._conversation().answer)

    def update_conversation(self) -> Response:
        found = self._conversation()
        body = self._fields("metadata")
        if "metadata" not in body:
            raise Refused(missing("responses.required", "metadata"))
        found.metadata = dict(body["metadata"] or {})
        return self._exchange.json(found.answer)

    def delete_conversation(self) -> Response:
        found = self._conversation()
        del self._memory.conversations[found.id]
        return self._exchange.json(
            {"id": found.id, "object": "conversation.deleted", "deleted": True}
        )

    def items(self) -> Response:
        return self._listed(self._conversation().items)

    def create_items(self) -> Response:
        found = self._conversation()
        body = self._fields("items", required="items")
        added = [self._memory.listed(item) for item in self._new_items(body["items"])]
        found.items += added
        return self._exchange.json({"object": "list", **_page(added, has_more=False)})

    def _item(self) -> tuple[Conversation, Json]:
        conversation = self._conversation()
        wanted = self._ids["item"]
        for item in conversation.items:
            if item.get("id") == wanted:
                return conversation, item
        raise Refused(_no_item(wanted))

    def item(self) -> Response:
        return self._exchange.json(self._item()[1])

    def delete_item(self) -> Response:
        conversation, item = self._item()
        conversation.items.remove(item)
        return self._exchange.json(conversation.answer)

    # ------------------------------------------------------------- lists

    def _listed(self, items: list[Json]) -> Response:
        """A page of a list, the latest first unless asked otherwise."""
        order, limit, after = (
            self._query.get("order", "desc"),
            self._query.get("limit", "20"),
            self._query.get("after"),
        )
        if order not in ORDERS:
            raise Refused(wrong_value("responses.page", "order", order, ORDERS))
        problems = check_integer("responses.page", "limit", _number(limit), 1, MAX_PAGE)
        if problems:
            raise Refused(*problems)
        ordered = items if order == "asc" else items[::-1]
        start = _after(ordered, after)
        shown = ordered[start : start + int(limit)]
        return self._exchange.json(
            {"object": "list", **_page(shown, has_more=start + len(shown) < len(ordered))}
        )


def _number(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _after(items: list[Json], item_id: str | None) -> int:
    """Where the list goes on after an item."""
    if item_id is None:
        return 0
    for index, item in enumerate(items):
        if item.get("id") == item_id:
            return index + 1
    raise Refused(_no_item(item_id))


def _no_item(item_id: str) -> Problem:
    return Problem(
        "responses.item", "item_id", f"Item with id '{item_id}' not found.", "refused", status=404
    )


def _page(items: list[Json], *, has_more: bool) -> Json:
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return {"data": items, "first_id": first, "last_id": last, "has_more": has_more}


def _tokens(value: Any) -> int:
    """A count by length: no tokenizer is at hand, and equal requests have equal counts."""
    return max(
        1, len(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) // CHARACTERS_OF_TOKEN
    )


_OPERATIONS: Mapping[str, Callable[[Resources], Response]] = {
    "models": Resources.models,
    "model": Resources.model,
    "count": Resources.count,
    "response": Resources.response,
    "delete_response": Resources.delete_response,
    "cancel_response": Resources.cancel_response,
    "input_items": Resources.input_items,
    "create_conversation": Resources.create_conversation,
    "conversation": Resources.conversation,
    "update_conversation": Resources.update_conversation,
    "delete_conversation": Resources.delete_conversation,
    "items": Resources.items,
    "create_items": Resources.create_items,
    "item": Resources.item,
    "delete_item": Resources.delete_item,
}
