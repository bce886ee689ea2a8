"""Responses at the test server: stored responses, conversations, and counts of tokens.

Envelopes are those that the SDKs read. A request is checked twice: by itself, and behind what the
server holds before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from lutumpy.apis import Api
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.items import check_messages, check_request
from lutumpy.rules.openai.responses.moves import refuse_seal
from lutumpy.rules.openai.shapes import check_integer, long_array, missing, wrong_type, wrong_value
from lutumpy.rules.writing import BoundBlock
from lutumpy.testing.api_server import (
    NO_HEADERS,
    Json,
    Query,
    Refused,
    Resource,
    Route,
    first_refusal,
    objects,
)
from lutumpy.testing.lists import index_after, unknown_item, write_page
from lutumpy.testing.prompt_cache import Piece, PromptTokens, count_tokens
from lutumpy.testing.reasoning_memory import ReasoningMemory
from lutumpy.testing.render_openai import CREATED
from lutumpy.testing.render_openai_server import OpenAIServer
from lutumpy.testing.render_responses import waiting
from lutumpy.testing.render_responses_store import (
    Conversation,
    ResponseStore,
    StoredResponse,
    input_items,
    unknown_conversation,
)

__all__ = ["ResponsesServer"]

COUNTED = ("instructions", "tools")
"""What costs tokens in a request, beside its input."""

MAX_ITEMS = 20
MAX_PAGE = 100
ORDERS = ("asc", "desc")
MAY_FOLLOW = (
    "responses.output_for_call",
    "responses.approval_for_request",
    "responses.dangling_reasoning",
)
"""What a conversation may lack until more is added to it."""


class ResponsesServer(OpenAIServer):
    """Responses, with its conversations."""

    path_starts: ClassVar[tuple[str, ...]] = ("/responses", "/conversations")
    needs_body: ClassVar[frozenset[str]] = OpenAIServer.needs_body | {
        "count",
        "compact",
        "update_conversation",
        "create_items",
    }

    def __init__(self, api: Api, models: dict[str, None]) -> None:
        super().__init__(api, models)
        # Ids of reasoning items by the ids of the items that they belong to.
        self._reasoning: dict[str, str] = {}
        self._store = ResponseStore()
        # What answers tell of the reasoning of requests in flight, by the identity of these.
        self._changes: dict[int, list[Json]] = {}

    @property
    def routes(self) -> tuple[Route, ...]:
        conversation = "/conversations/{conversation}"
        return (
            *super().routes,
            Route("/responses/input_tokens", {"POST": "count"}),
            Route("/responses/compact", {"POST": "compact"}),
            Route("/responses/{response}", {"GET": "response", "DELETE": "delete_response"}),
            Route("/responses/{response}/cancel", {"POST": "cancel_response"}),
            Route("/responses/{response}/input_items", {"GET": "input_items"}),
            Route("/conversations", {"POST": "create_conversation"}),
            Route(
                conversation,
                {
                    "GET": "conversation",
                    "POST": "update_conversation",
                    "DELETE": "delete_conversation",
                },
            ),
            Route(f"{conversation}/items", {"GET": "items", "POST": "create_items"}),
            Route(f"{conversation}/items/{{item}}", {"GET": "item", "DELETE": "delete_item"}),
        )

    def resources(self) -> Mapping[str, Resource]:
        return {
            "count": self._count,
            "compact": self._compact,
            "response": self._retrieve_response,
            "delete_response": self._delete_response,
            "cancel_response": self._cancel_response,
            "input_items": self._list_input,
            "create_conversation": self._create_conversation,
            "conversation": self._retrieve_conversation,
            "update_conversation": self._update_conversation,
            "delete_conversation": self._delete_conversation,
            "items": self._list_items,
            "create_items": self._create_items,
            "item": self._retrieve_item,
            "delete_item": self._delete_item,
        }

    # --- A model's answer ------------------------------------------------------------------------

    def check(
        self, body: Any, *, headers: Mapping[str, str] = NO_HEADERS, is_counted: bool = False
    ) -> list[Problem]:
        found = check_request(
            body,
            required_reasoning=self._reasoning,
            counted=is_counted,
            compatible=self.place.is_compatible(self.api),
        )
        if first_refusal(found) is not None or not isinstance(body, Mapping):
            return found
        held = self._store.held_before(body)
        if isinstance(held, Problem):
            return [*found, held]
        if held and not is_counted:
            whole = [*held, *input_items(body)]
            found += check_messages(whole, required_reasoning=self._reasoning)
        if first_refusal(found) is None and not is_counted:
            self._tell_removed(body, held)
        return found

    def prompt_of(self, body: Mapping[str, Any]) -> list[Piece]:
        """Tools, the output's format, instructions and input; from the version on that binds its
        reasoning, instructions come after the input, and aren't cached.
        """
        held = self._store.held_before(body)
        entries = [*([] if isinstance(held, Problem) else held), *input_items(body)]
        model, instructions = body.get("model"), body.get("instructions")
        binding = self._memory.binding
        is_behind = binding.kind_of(model) is not None and binding.binds(model)
        text = body.get("text")
        head = [*objects(body.get("tools"))]
        if isinstance(text, Mapping) and text.get("format") is not None:
            head.append({"format": text["format"]})
        if instructions is not None and not is_behind:
            entries = [instructions, *entries]
        pieces = [Piece(value) for value in [*head, *entries]]
        if instructions is not None and is_behind:
            pieces.append(Piece(instructions, is_end=False))
        return pieces

    def write_cached(self, usage: Json, tokens: PromptTokens) -> None:
        usage["input_tokens_details"] = {
            "cached_tokens": tokens.cached,
            "cache_write_tokens": 0,
        }

    def output_of(self, answer: Mapping[str, Any]) -> Any:
        return answer.get("output")

    def refuse_seal(self, path: str, seal: str) -> Problem:
        return refuse_seal(path, seal)

    def _tell_removed(self, body: Mapping[str, Any], held: list[Any]) -> None:
        """Note which reasoning the model doesn't see; nobody is refused for it."""
        judged = self._memory.judge(_join_held(body, held))
        reasons = {block.path: "model_mismatch" for block in judged.hidden}
        reasons.update({block.path: "prefix_mismatch" for block in judged.mismatched})
        blocks = sorted([*judged.hidden, *judged.mismatched], key=_order_of)
        self._changes[id(body)] = [
            {
                "id": self._memory.id_of(block),
                "action": "removed",
                "reason": reasons[block.path],
                "type": "reasoning",
            }
            for block in blocks
        ]

    @property
    def _memory(self) -> ReasoningMemory:
        assert self.reasoning is not None, "the rules of Responses say how it binds reasoning"
        return self.reasoning

    def arrange(self, answer: Json, body: Mapping[str, Any]) -> Json:
        """An answer in the background isn't there yet when the request for it is answered."""
        answer = self._with_changes(answer, body)
        return waiting(answer, "queued") if body.get("background") is True else answer

    def arrange_events(self, events: list[Json], body: Mapping[str, Any]) -> list[Json]:
        return [
            {**event, "response": self._with_changes(event["response"], body)}
            if isinstance(event.get("response"), dict)
            else event
            for event in events
        ]

    def _with_changes(self, answer: Json, body: Mapping[str, Any]) -> Json:
        changes = self._changes.get(id(body))
        return {**answer, "input_transformations": changes} if changes else answer

    def release(self, body: Any) -> None:
        self._changes.pop(id(body), None)

    def remember(
        self, body: Mapping[str, Any], answer: Mapping[str, Any], events: list[Json] | None = None
    ) -> None:
        super().remember(body, answer, events)
        for before, item in itertools.pairwise(objects(answer.get("output"))):
            before_id, item_id = before.get("id"), item.get("id")
            has_ids = isinstance(before_id, str) and isinstance(item_id, str)
            if before.get("type") == "reasoning" and has_ids:
                self._reasoning[str(item_id)] = str(before_id)
        held = self._store.held_before(body)
        if not isinstance(held, Problem):
            self._memory.remember(_join_held(body, held), answer.get("output"))
        self._store.keep(body, self._with_changes(dict(answer), body), events)

    def _count(self, query: Query) -> Json:
        problems = self.check(query.body, is_counted=True)
        if first_refusal(problems) is not None:
            # The sort keeps the order among the refusals, and puts the doubtful ones behind them.
            raise Refused(*sorted(problems, key=lambda problem: problem.certainty != "refused"))
        counted = [query.body[key] for key in COUNTED if query.body.get(key) is not None]
        held = self._store.held_before(query.body)
        before = [] if isinstance(held, Problem) else held
        counted += [*before, *input_items(query.body)]
        return {"object": "response.input_tokens", "input_tokens": count_tokens(counted)}

    def _compact(self, query: Query) -> Json:
        """The user's messages, and one item that stands for all the rest."""
        problems = self.check(query.body, is_counted=True)
        if first_refusal(problems) is not None:
            raise Refused(*sorted(problems, key=lambda problem: problem.certainty != "refused"))
        held = self._store.held_before(query.body)
        entries = [*([] if isinstance(held, Problem) else held), *input_items(query.body)]
        kept = [self._store.list_item(item) for item in entries if item.get("role") == "user"]
        item = self._store.list_item({"type": "compaction"})
        item["encrypted_content"] = f"gAAAAAB{item['id']}"
        read = count_tokens(entries)
        usage = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + 1,
        }
        return {
            "id": str(item["id"]).replace("cmp_", "resp_", 1),
            "object": "response.compaction",
            "created_at": CREATED,
            "output": [*kept, item],
            "usage": usage,
        }

    # --- Stored responses ------------------------------------------------------------------------

    def _find_response(self, query: Query) -> StoredResponse:
        wanted = query.ids["response"]
        found = self._store.responses.get(wanted)
        if found is None:
            message = f"Response with id '{wanted}' not found."
            raise Refused(
                Problem("responses.response", "response_id", message, "refused", status=404)
            )
        return found

    def _retrieve_response(self, query: Query) -> Json | list[Json]:
        stored = self._find_response(query)
        stored.is_fetched = True
        if query.options.get("stream") != "true":
            return stored.answer
        if not stored.in_background or stored.events is None:
            message = (
                "Only a response that was created with 'background' and 'stream' true can be "
                "streamed again."
            )
            raise Refused(Problem("responses.stream", "stream", message, "refused", param="stream"))
        start = query.options.get("starting_after", "")
        after = int(start) if start.isdecimal() else -1
        return [event for event in stored.events if event["sequence_number"] > after]

    def _cancel_response(self, query: Query) -> Json:
        stored = self._find_response(query)
        if not stored.in_background:
            message = "Cannot cancel a synchronous response."
            raise Refused(Problem("responses.cancel", "response_id", message, "refused"))
        stored.cancel()
        return stored.answer

    def _delete_response(self, query: Query) -> Json:
        self._find_response(query)
        wanted = query.ids["response"]
        del self._store.responses[wanted]
        return {"id": wanted, "object": "response", "deleted": True}

    def _list_input(self, query: Query) -> Json:
        return _list(self._find_response(query).items, query.options)

    # --- Conversations ---------------------------------------------------------------------------

    def _find_conversation(self, query: Query) -> Conversation:
        wanted = query.ids["conversation"]
        found = self._store.conversations.get(wanted)
        if found is None:
            raise Refused(unknown_conversation(wanted, "conversation_id"))
        return found

    def _create_conversation(self, query: Query) -> Json:
        body = _check_fields(query.body, "items", "metadata")
        items = _check_new_items(body.get("items") or [])
        return self._store.begin_conversation(body.get("metadata") or {}, items).answer

    def _retrieve_conversation(self, query: Query) -> Json:
        return self._find_conversation(query).answer

    def _update_conversation(self, query: Query) -> Json:
        found = self._find_conversation(query)
        body = _check_fields(query.body, "metadata")
        if "metadata" not in body:
            raise Refused(missing("responses.required", "metadata"))
        found.metadata = dict(body["metadata"] or {})
        return found.answer

    def _delete_conversation(self, query: Query) -> Json:
        found = self._find_conversation(query)
        del self._store.conversations[found.id]
        return {"id": found.id, "object": "conversation.deleted", "deleted": True}

    def _list_items(self, query: Query) -> Json:
        return _list(self._find_conversation(query).items, query.options)

    def _create_items(self, query: Query) -> Json:
        found = self._find_conversation(query)
        body = _check_fields(query.body, "items", required="items")
        added = [self._store.list_item(item) for item in _check_new_items(body["items"])]
        found.items += added
        return {"object": "list", **write_page(added, has_more=False)}

    def _find_item(self, query: Query) -> tuple[Conversation, Json]:
        conversation = self._find_conversation(query)
        wanted = query.ids["item"]
        for item in conversation.items:
            if item.get("id") == wanted:
                return conversation, item
        raise Refused(unknown_item(wanted))

    def _retrieve_item(self, query: Query) -> Json:
        return self._find_item(query)[1]

    def _delete_item(self, query: Query) -> Json:
        conversation, item = self._find_item(query)
        conversation.items.remove(item)
        return conversation.answer


def _join_held(body: Mapping[str, Any], held: list[Any]) -> Json:
    """The request with all that the API holds before its input."""
    return {**body, "input": [*held, *input_items(body)]}


def _order_of(block: BoundBlock) -> int:
    """Where in the input a block of reasoning is."""
    return int(block.path.rpartition(".")[2])


# --- Checks of what was sent ---------------------------------------------------------------------


def _check_fields(sent: Any, *known: str, required: str | None = None) -> Json:
    """The body, which has these keys alone."""
    body = {} if sent is None else sent
    if not isinstance(body, dict):
        raise Refused(wrong_type("responses.body", "body", "an object", body))
    found = [_unknown_parameter(key) for key in body if key not in known]
    if required is not None and body.get(required) is None:
        found.append(missing("responses.required", required))
    if not isinstance(body.get("metadata") or {}, dict):
        found.append(wrong_type("responses.metadata", "metadata", "an object", body["metadata"]))
    if found:
        raise Refused(*found)
    return body


def _unknown_parameter(key: str) -> Problem:
    rule, message = "responses.unknown_parameter", f"Unknown parameter: '{key}'."
    return Problem(rule, key, message, "refused", param=key, code="unknown_parameter")


def _check_new_items(items: Any) -> list[Any]:
    """Items to add: their shapes are checked, not whether every call has its output yet."""
    if not isinstance(items, list):
        raise Refused(wrong_type("responses.input", "items", "an array of objects", items))
    found: list[Problem] = []
    if len(items) > MAX_ITEMS:
        found.append(long_array("responses.input", "items", MAX_ITEMS, len(items)))
    for problem in check_messages(items, server_held_prefix=True):
        if problem.certainty == "refused" and problem.rule not in MAY_FOLLOW:
            # The rules speak of a request's `input`; here the same list is called `items`.
            message = problem.message.replace("input[", "items[")
            param = problem.param and problem.param.replace("input", "items", 1)
            found.append(replace(problem, message=message, param=param))
    if found:
        raise Refused(*found)
    return items


def _list(items: list[Json], options: Mapping[str, str]) -> Json:
    """A page of a list, the latest first unless asked otherwise."""
    order, limit = options.get("order", "desc"), options.get("limit", "20")
    if order not in ORDERS:
        raise Refused(wrong_value("responses.page", "order", order, ORDERS))
    problems = check_integer("responses.page", "limit", _read_number(limit), 1, MAX_PAGE)
    if problems:
        raise Refused(*problems)
    ordered = items if order == "asc" else items[::-1]
    start = index_after(ordered, options.get("after"))
    shown = ordered[start : start + int(limit)]
    has_more = start + len(shown) < len(ordered)
    return {"object": "list", **write_page(shown, has_more=has_more)}


def _read_number(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text
