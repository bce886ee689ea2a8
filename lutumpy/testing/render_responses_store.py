"""What Responses keeps: responses that can be continued and retrieved, and conversations."""

# A request goes on from one of two places: from the response that `previous_response_id` names, or
# from the end of a `conversation`. What the API then holds before the request's own input is the
# same list in both cases. Each response keeps a list of its own, since it may be continued more
# than once, in different ways.
#
#     of a response    when                     what for
#     held             it was answered          the input of the request that continues it
#     items            it was answered          what `input_items` lists: without its own output
#     answer           it was answered          what retrieving it gives; cancelling takes it away

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.items import item_type
from lutumpy.rules.openai.responses.limits import ID_PREFIXES
from lutumpy.testing.api_server import Json, objects
from lutumpy.testing.render_openai import CREATED
from lutumpy.testing.render_responses import conversation_id, waiting

__all__ = ["Conversation", "ResponseStore", "StoredResponse", "input_items", "unknown_conversation"]

OUTPUT_PREFIXES = {"function_call_output": "fco", "custom_tool_call_output": "ctco"}


@dataclass(slots=True)
class StoredResponse:
    """A response that can be retrieved and continued.

    Attributes:
        answer: Its JSON when it is finished.
        held: What a request that continues it has before its own input.
        items: The input that led to it, as it is listed.
        events: Its stream events, if it was streamed.
        is_given: Whether anybody got the finished answer; before that, one in the background can be
            cancelled.
    """

    answer: Json
    held: list[Any]
    items: list[Json]
    events: list[Json] | None
    is_fetched: bool

    @property
    def in_background(self) -> bool:
        return self.answer.get("background") is True

    def cancel(self) -> None:
        """End it without an answer, unless somebody has got the answer already."""
        if not self.is_fetched:
            self.held = self.held[: len(self.held) - len(objects(self.answer.get("output")))]
            self.answer = waiting(self.answer, "cancelled")
            self.is_fetched = True


@dataclass(slots=True)
class Conversation:
    """A conversation that Responses holds."""

    id: str
    created_at: int
    metadata: dict[str, Any]
    items: list[Json] = field(default_factory=list[Json])

    @property
    def answer(self) -> Json:
        return {
            "id": self.id,
            "object": "conversation",
            "created_at": self.created_at,
            "metadata": self.metadata,
        }


class ResponseStore:
    """The responses and conversations of one server, by their ids."""

    def __init__(self) -> None:
        self.responses: dict[str, StoredResponse] = {}
        self.conversations: dict[str, Conversation] = {}
        self._numbers = itertools.count(1)

    def held_before(self, body: Mapping[str, Any]) -> list[Any] | Problem:
        """What the server has before the input of a request, or why it has nothing."""
        previous, conversation = body.get("previous_response_id"), body.get("conversation")
        if previous is not None:
            stored = self.responses.get(previous) if isinstance(previous, str) else None
            return stored.held if stored is not None else _unknown_response(previous)
        if conversation is not None:
            wanted = conversation_id(body)
            found = self.conversations.get(wanted or "")
            if found is None:
                return unknown_conversation(wanted or conversation, "conversation")
            return found.items
        return []

    def keep(self, body: Mapping[str, Any], answer: Json, events: list[Json] | None) -> None:
        """Keep an answer where its request wants that, and add it to the request's conversation."""
        output = objects(answer.get("output"))
        sent = input_items(body)
        listed = [self.list_item(item) for item in sent]
        conversation = self.conversations.get(conversation_id(body) or "")
        if isinstance(answer.get("id"), str) and body.get("store") is not False:
            held = self.held_before(body)
            before = [] if isinstance(held, Problem) else held
            self.responses[answer["id"]] = StoredResponse(
                answer,
                [*before, *sent, *output],
                [*self._listed_before(body, conversation), *listed],
                events,
                is_fetched=body.get("background") is not True or body.get("stream") is True,
            )
        if conversation is not None:
            conversation.items += [*listed, *output]

    def _listed_before(
        self, body: Mapping[str, Any], conversation: Conversation | None
    ) -> list[Json]:
        if conversation is not None:
            return conversation.items
        previous = self.responses.get(str(body.get("previous_response_id")))
        if previous is None:
            return []
        return previous.items + objects(previous.answer.get("output"))

    def begin_conversation(self, metadata: Mapping[str, Any], items: list[Any]) -> Conversation:
        """A new conversation with these items."""
        number = next(self._numbers)
        conversation = Conversation(f"conv_{number:050x}", CREATED + number, dict(metadata))
        conversation.items += [self.list_item(item) for item in items]
        self.conversations[conversation.id] = conversation
        return conversation

    def list_item(self, item: Any) -> Json:
        """An item as the API lists it: with its type, an id, and the parts of a message."""
        kind = item_type(item)
        listed: Json = {**item, "type": kind}
        if listed.get("id") is None:
            prefix = OUTPUT_PREFIXES.get(kind) or ID_PREFIXES.get(kind) or "item"
            listed["id"] = f"{prefix}_{next(self._numbers):048x}"
        if kind == "message":
            listed["content"] = _list_content(item)
        if kind == "message" or "call_id" in listed:
            listed.setdefault("status", "completed")
        return listed


def input_items(body: Mapping[str, Any]) -> list[Any]:
    """The input as items; a text is a user's message."""
    entries = body.get("input")
    if isinstance(entries, str):
        return [{"role": "user", "content": entries}]
    return list(entries) if isinstance(entries, list) else []


def unknown_conversation(wanted: Any, where: str) -> Problem:
    """The refusal of a request for a conversation that isn't there."""
    message = f"Conversation with id '{wanted}' not found."
    return Problem("responses.conversation", where, message, "refused", status=404)


def _unknown_response(previous: Any) -> Problem:
    message = f"Previous response with id '{previous}' not found."
    code, param = "previous_response_not_found", "previous_response_id"
    return Problem("responses.previous_response", param, message, "refused", param=param, code=code)


def _list_content(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    if not isinstance(content, str):
        return content
    if message.get("role") == "assistant":
        return [{"type": "output_text", "text": content, "annotations": [], "logprobs": []}]
    return [{"type": "input_text", "text": content}]
