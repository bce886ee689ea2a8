"""What the test server knows of its own answers: signed thinking, threads, stored responses, conversations."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.anthropic.requests import continues_thread
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.openai.responses.limits import ID_PREFIXES
from lutumpy.testing.render_chat import CREATED
from lutumpy.testing.render_responses import conversation_id, waiting
from lutumpy.testing.script import Api

UNFINISHED = ("pause_turn", "compaction")
"""Stop reasons after which a thread goes on without a new message."""

OUTPUT_PREFIXES = {"function_call_output": "fco", "custom_tool_call_output": "ctco"}


@dataclass(slots=True)
class Thread:
    """A conversation that Messages holds, up to one of its answers.

    Attributes:
        messages: Everything up to that answer, with it.
        fixed: The `system` and `tools` that it was created with.
        unfinished: Whether the answer is no end of a turn.
        continued: Whether another answer has followed: each can be continued once.
        in_flight: Whether one is being given.
    """

    messages: list[Any]
    fixed: dict[str, Any]
    unfinished: bool
    continued: bool = False
    in_flight: bool = False


@dataclass(slots=True)
class StoredResponse:
    """A response that can be retrieved and continued.

    Attributes:
        answer: Its JSON when it is finished.
        held: What a request that continues it has before its own input.
        items: The input that led to it, as it is listed.
        events: Its stream events, if it was streamed.
        given: Whether the finished answer was given to anybody; before that, one in the background can be cancelled.
    """

    answer: dict[str, Any]
    held: list[Any]
    items: list[dict[str, Any]]
    events: list[dict[str, Any]] | None
    given: bool

    @property
    def in_background(self) -> bool:
        return self.answer.get("background") is True

    def cancel(self) -> None:
        """End it without an answer, unless the answer was given already."""
        if not self.given:
            self.held = self.held[: len(self.held) - len(objects(self.answer.get("output")))]
            self.answer = waiting(self.answer, "cancelled")
            self.given = True


@dataclass(slots=True)
class Conversation:
    """A conversation that Responses holds."""

    id: str
    created_at: int
    metadata: dict[str, Any]
    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def answer(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "conversation",
            "created_at": self.created_at,
            "metadata": self.metadata,
        }


class Memory:
    """What the server remembers. Not locked: the server does that."""

    def __init__(self) -> None:
        self.reasoning: dict[str, str] = {}
        self.signed: dict[str, str] = {}
        self.threads: dict[str, Thread] = {}
        self.responses: dict[str, StoredResponse] = {}
        self.conversations: dict[str, Conversation] = {}
        self.models: dict[str, dict[str, None]] = {}
        self._numbers = itertools.count(1)

    # ---------------------------------------------------------- requests

    def check(self, api: Api, body: Any, *, counted: bool = False) -> list[Problem]:
        """The problems of a request, with what it refers to. A thread that it may continue is in flight from then on.

        Args:
            api: The API that got it.
            body: The request.
            counted: It asks for its tokens to be counted.
        """
        if api == "openai_chat":
            return chat.check_request(body)
        if api == "anthropic_messages":
            return self._check_messages(body, counted)
        found = responses.check_request(body, required_reasoning=self.reasoning, counted=counted)
        if _refused(found) or not isinstance(body, Mapping):
            return found
        held = self.held(body)
        if isinstance(held, Problem):
            return [*found, held]
        if held and not counted:
            found += responses.check_messages(
                [*held, *input_items(body)], required_reasoning=self.reasoning
            )
        return found

    def held(self, body: Mapping[str, Any]) -> list[Any] | Problem:
        """What the server has before the input of a request to Responses, or why it has nothing."""
        previous, conversation = body.get("previous_response_id"), body.get("conversation")
        if previous is not None:
            stored = self.responses.get(previous) if isinstance(previous, str) else None
            if stored is not None:
                return stored.held
            message = f"Previous response with id '{previous}' not found."
            code, param = "previous_response_not_found", "previous_response_id"
            return Problem(
                "responses.previous_response", param, message, "refused", param=param, code=code
            )
        if conversation is not None:
            found = self.conversations.get(conversation_id(body) or "")
            return (
                found.items
                if found is not None
                else _no_conversation(conversation_id(body) or conversation)
            )
        return []

    def remember(
        self,
        api: Api,
        body: Mapping[str, Any],
        said: Mapping[str, Any],
        events: list[dict[str, Any]] | None = None,
    ) -> None:
        """Keep what later requests may refer to.

        Args:
            api: The API that answered.
            body: The request.
            said: The answer's JSON.
            events: Its events, if it was streamed.
        """
        if isinstance(body.get("model"), str):
            self.models.setdefault(vendor(api), {})[body["model"]] = None
        if api == "anthropic_messages":
            for block in objects(said.get("content")):
                if block.get("type") == "thinking" and isinstance(block.get("signature"), str):
                    self.signed[block["signature"]] = block.get("thinking", "")
            self._keep_thread(body, said)
        elif api == "openai_responses":
            output = objects(said.get("output"))
            for before, item in itertools.pairwise(output):
                ids = (before.get("id"), item.get("id"))
                if (
                    before.get("type") == "reasoning"
                    and isinstance(ids[0], str)
                    and isinstance(ids[1], str)
                ):
                    self.reasoning[ids[1]] = ids[0]
            self._keep_response(body, dict(said), output, events)

    def _keep_response(
        self,
        body: Mapping[str, Any],
        said: dict[str, Any],
        output: list[dict[str, Any]],
        events: Any,
    ) -> None:
        held = self.held(body)
        before = [] if isinstance(held, Problem) else held
        sent = input_items(body)
        listed = [self.listed(item) for item in sent]
        conversation = self.conversations.get(conversation_id(body) or "")
        previous = self.responses.get(str(body.get("previous_response_id")))
        earlier = (
            previous.items + objects(previous.answer.get("output")) if previous is not None else []
        )
        if conversation is not None:
            earlier = list(conversation.items)
        if isinstance(said.get("id"), str) and body.get("store") is not False:
            given = body.get("background") is not True or body.get("stream") is True
            everything = [*before, *sent, *output]
            self.responses[said["id"]] = StoredResponse(
                said, everything, [*earlier, *listed], events, given
            )
        if conversation is not None:
            conversation.items += [*listed, *output]

    # ----------------------------------------------------------- threads

    def _check_messages(self, body: Any, counted: bool) -> list[Problem]:
        found = anthropic.check_request(body, issued=self.signed, counted=counted)
        if _refused(found) or not isinstance(body, Mapping) or not continues_thread(body):
            return found
        previous = body["thread"]["previous_message_id"]
        thread = self.threads.get(previous)
        refusal = _thread_refusal(thread, previous)
        if thread is None or refusal is not None:
            return [*found, *([refusal] if refusal is not None else [])]
        if not body["messages"] and not thread.unfinished:
            message = "messages: at least one message is required"
            return [*found, Problem("anthropic.messages", "messages", message, "refused")]
        whole = {key: value for key, value in body.items() if key != "thread"}
        whole.update(thread.fixed, messages=[*thread.messages, *body["messages"]])
        found = anthropic.check_request(whole, issued=self.signed)
        if not body["messages"]:
            found = [
                problem for problem in found if not problem.rule.startswith("anthropic.prefill")
            ]
        thread.in_flight = not _refused(found)
        return found

    def release(self, body: Any) -> None:
        """The request was answered or has failed: nothing is in flight for it any more."""
        thread = self._continued(body)
        if thread is not None:
            thread.in_flight = False

    def _continued(self, body: Any) -> Thread | None:
        """The thread that a request continues, if there is one."""
        if not isinstance(body, Mapping) or not continues_thread(body):
            return None
        previous = body["thread"].get("previous_message_id")
        return self.threads.get(previous) if isinstance(previous, str) else None

    def _keep_thread(self, body: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        if body.get("thread") is None or not isinstance(said.get("id"), str):
            return
        continued = self._continued(body)
        fixed = {key: body[key] for key in ("system", "tools") if body.get(key) is not None}
        messages = _without_cache_control(body.get("messages") or [])
        if continued is not None:
            continued.continued = True
            fixed = continued.fixed
            messages = [*continued.messages, *messages]
        answer = {"role": "assistant", "content": said.get("content")}
        stop = said.get("stop_reason")
        if stop == "compaction":
            messages = []  # the summary stands for all of them
        thread = Thread([*messages, answer], _without_cache_control(fixed), stop in UNFINISHED)
        self.threads[said["id"]] = thread

    # ----------------------------------------------------- conversations

    def begin_conversation(self, metadata: Mapping[str, Any], items: list[Any]) -> Conversation:
        number = next(self._numbers)
        conversation = Conversation(f"conv_{number:050x}", CREATED + number, dict(metadata))
        conversation.items += [self.listed(item) for item in items]
        self.conversations[conversation.id] = conversation
        return conversation

    def listed(self, item: Any) -> dict[str, Any]:
        """An item as the API lists it: with its type, an id, and the parts of a message."""
        kind = responses.item_type(item)
        found: dict[str, Any] = {**item, "type": kind}
        if found.get("id") is None:
            prefix = OUTPUT_PREFIXES.get(kind) or ID_PREFIXES.get(kind) or "item"
            found["id"] = f"{prefix}_{next(self._numbers):048x}"
        if kind == "message":
            found["content"] = _parts(item)
        if kind == "message" or "call_id" in found:
            found.setdefault("status", "completed")
        return found


def vendor(api: Api) -> str:
    return "anthropic" if api == "anthropic_messages" else "openai"


def objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def input_items(body: Mapping[str, Any]) -> list[Any]:
    """The input as items; a text is a user's message."""
    entries = body.get("input")
    if isinstance(entries, str):
        return [{"role": "user", "content": entries}]
    return list(entries) if isinstance(entries, list) else []


def _refused(problems: list[Problem]) -> bool:
    return any(problem.certainty == "refused" for problem in problems)


def _parts(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    if not isinstance(content, str):
        return content
    if message.get("role") == "assistant":
        return [{"type": "output_text", "text": content, "annotations": [], "logprobs": []}]
    return [{"type": "input_text", "text": content}]


def _no_conversation(wanted: Any) -> Problem:
    message = f"Conversation with id '{wanted}' not found."
    return Problem("responses.conversation", "conversation", message, "refused", status=404)


def _thread_refusal(thread: Thread | None, previous: str) -> Problem | None:
    """Why a thread can't be continued; status and code are the SDK's, the words are its descriptions of them."""
    where = "thread.continue.previous_message_id"
    if thread is None:
        message = (
            f"No usable Thread state was found for `previous_message_id` {previous}. "
            'Replay the full conversation with `thread: {"type": "create"}` to start a new Thread.'
        )
        kind, code = "not_found_error", "thread_not_found"
        return Problem(
            "anthropic.thread", where, message, "refused", status=404, kind=kind, code=code
        )
    if thread.continued:
        message = (
            f"The response that `previous_message_id` names ({previous}) has already been continued, and each response "
            "can be continued only once. Continue from the Thread's most recent response `id`."
        )
        return Problem(
            "anthropic.thread", where, message, "refused", code="thread_already_continued"
        )
    if thread.in_flight:
        message = (
            f"Another request is still continuing from the same `previous_message_id` ({previous})."
        )
        return Problem(
            "anthropic.thread", where, message, "refused", code="thread_continue_in_flight"
        )
    return None


def _without_cache_control(value: Any) -> Any:
    """A copy without the cache markers, which were set for the request that came with them."""
    if isinstance(value, Mapping):
        return {
            key: _without_cache_control(item)
            for key, item in value.items()
            if key != "cache_control"
        }
    return [_without_cache_control(item) for item in value] if isinstance(value, list) else value
