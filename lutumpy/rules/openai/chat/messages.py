"""The law of Chat Completions: what `POST /v1/chat/completions` refuses, and in which words.

Two parts: the shape of each message, and the pairing of calls with their results. Tools are in
`chat/tools.py`, the numbers in `chat/limits.py`.

Sources: OpenAI's API description, recorded exchanges, and errors that users report. See `Problem`
for what is claimed. The texts of problems are OpenAI's own, mistakes included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lutumpy.rules.declared import undeclared
from lutumpy.rules.encoding import check_encoding
from lutumpy.rules.hosts import for_compatible_host
from lutumpy.rules.openai import media
from lutumpy.rules.openai.chat.catalogue import is_vendor_only
from lutumpy.rules.openai.chat.limits import MAX_CALL_ID, MAX_CALLS
from lutumpy.rules.openai.chat.media import check_shown_file, check_shown_image
from lutumpy.rules.openai.chat.overlooked import check_overlooked
from lutumpy.rules.openai.chat.tools import check_model_limits, check_tool_choice, check_tools
from lutumpy.rules.openai.limits import MAX_NAME
from lutumpy.rules.openai.models import check_model_parameters
from lutumpy.rules.openai.shapes import (
    check_model,
    check_name,
    check_ranges,
    check_speaker,
    check_text_length,
    empty_array,
    empty_string,
    is_official,
    long_array,
    long_string,
    missing,
    unknown,
    wrong_type,
    wrong_value,
)
from lutumpy.rules.problem import (
    Certainty,
    Problem,
    about,
    is_array,
    is_json_object,
    is_object,
    items,
    text,
)

__all__ = ["check_messages", "check_request", "check_user_part"]

PARAMETERS = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction "
    "presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream "
    "stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options".split()
)
"""The keys of a request [API description]."""
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PARTS: Mapping[str, tuple[str, ...]] = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
    "function": ("text",),
}
"""The types of content parts, by the role of the message [API description]."""
PART_BODIES = {
    "text": "text",
    "image_url": "image_url",
    "input_audio": "input_audio",
    "file": "file",
    "refusal": "refusal",
}
"""The key that holds what a part is made of, by the type of the part."""
CALL_TYPES = ("function", "custom")
WHERE = "messages[{}]"

NO_SYSTEM_MODELS = ("o1-mini", "o1-preview")
"""How the names of models begin that take neither system nor developer messages [recorded]."""


def check_request(body: Mapping[str, Any], *, compatible: bool = False) -> list[Problem]:
    """Every problem of a request body, in the order in which the API would find them.

    Any JSON is accepted; nothing raises.

    Args:
        body: The request.
        compatible: The host is not OpenAI: what only OpenAI is known to refuse has certainty
            "some".
    """
    # Callers may pass any JSON.
    if not is_object(body):
        return [wrong_type("chat.body", "body", "an object", body)]
    model = text(body.get("model"))
    found = _check_parameters(body)
    messages = body.get("messages")
    if messages is not None:
        found += check_encoding("chat", messages, WHERE)
        found += _check_shapes(messages, model)
    found += check_tools(body, model)
    found += check_tool_choice(body)
    found += check_model_limits(body, model)
    found += check_model_parameters("chat", body)
    found += _check_pairing(messages)
    return for_compatible_host(found, is_vendor_only) if compatible else found


def check_messages(
    messages: Sequence[Any],
    *,
    tools: Sequence[Any] | None = None,
    model: str | None = None,
    compatible: bool = False,
) -> list[Problem]:
    """The problems of a transcript alone: shapes first, then the pairing of calls and results.

    Args:
        messages: The request's `messages`.
        tools: Its tools, or their names, to find calls of tools that are not declared.
        model: Its `model`, to find what only some models refuse.
        compatible: The host is not OpenAI: what only OpenAI is known to refuse has certainty
            "some".
    """
    found = check_encoding("chat", messages, WHERE)
    found += _check_shapes(messages, model)
    found += _check_pairing(messages)
    if tools is not None:
        found += undeclared("chat.tool_declared", _named_calls(messages), tools)
    return for_compatible_host(found, is_vendor_only) if compatible else found


def _check_parameters(body: Mapping[str, Any]) -> list[Problem]:
    found = check_model("chat", body.get("model"), "you must provide a model parameter")
    if body.get("messages") is None:
        found.append(missing("chat.required", "messages"))
    found += [unknown("chat.unknown_parameter", str(key)) for key in body if key not in PARAMETERS]
    return found + check_ranges("chat", body)


# ------------------------------------------------------------------ shapes


def _check_shapes(messages: Any, model: str | None) -> list[Problem]:
    if not is_array(messages):
        return [wrong_type("chat.messages", "messages", "an array of objects", messages)]
    if not messages:
        return [empty_array("chat.messages", "messages")]
    found: list[Problem] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not is_object(message):
            found.append(wrong_type("chat.messages", where, "an object", message))
            continue
        role = message.get("role")
        if role is None:
            found.append(missing("chat.role", f"{where}.role"))
        elif not isinstance(role, str):
            found.append(wrong_type("chat.role", f"{where}.role", "a string", role))
        elif role not in ROLES:
            found.append(wrong_value("chat.role", f"{where}.role", role, ROLES))
        else:
            found += _check_role_for_model(where, role, model)
            found += _check_content(where, index, message, role, model)
            if message.get("parts") or message.get("images"):
                found += check_overlooked(where, message)
            if role == "assistant":
                found += _check_calls(where, message.get("tool_calls"))
            if role == "tool":
                found += _check_tool_call_id(where, message.get("tool_call_id"))
            elif (name := message.get("name")) is not None:
                found += check_speaker("chat.name", f"{where}.name", name)
            elif role == "function":
                found.append(missing("chat.name", f"{where}.name"))
    return found


def _check_role_for_model(where: str, role: str, model: str | None) -> list[Problem]:
    if role not in ("system", "developer"):
        return []
    if model is None or not model.startswith(NO_SYSTEM_MODELS):
        return []
    param = f"{where}.role"
    message = f"Unsupported value: '{param}' does not support '{role}' with this model."
    rule, code = "chat.role_for_model", "unsupported_value"
    return [Problem(rule, param, message, "refused", param=param, code=code)]


def _check_content(
    where: str, index: int, message: Mapping[str, Any], role: str, model: str | None
) -> list[Problem]:
    content = message.get("content")
    if isinstance(content, str):
        return media.check_text("chat.part_length", f"{where}.content", content)
    if content is None:
        return _check_absent_content(where, index, message, role)
    if not is_array(content):
        expected = "one of a string or array of objects"
        return [wrong_type("chat.content", f"{where}.content", expected, content)]
    if not content:
        return [empty_array("chat.content", f"{where}.content")]
    found: list[Problem] = []
    for number, part in enumerate(content):
        found += _check_part(where, f"{where}.content[{number}]", part, role, model)
    return found


def _check_absent_content(
    where: str, index: int, message: Mapping[str, Any], role: str
) -> list[Problem]:
    """Only an assistant's message may lack content, when it holds something else instead."""
    others = ("tool_calls", "refusal", "audio", "function_call")
    if role == "assistant" and any(message.get(key) is not None for key in others):
        return []
    if "content" not in message and role != "assistant":
        return [missing("chat.content", f"{where}.content")]
    text = "Invalid value for 'content': expected a string, got null."
    certainty: Certainty = "some" if role == "function" else "refused"
    # OpenAI writes this `param` with a dot before the bracket [recorded].
    param = f"messages.[{index}].content"
    return [Problem("chat.content", f"{where}.content", text, certainty, param=param)]


def check_user_part(where: str, part: Any) -> list[Problem]:
    """The problems of one content part of a user's message."""
    return _check_part(where.partition(".")[0], where, part, "user", None)


def _check_part(message: str, where: str, part: Any, role: str, model: str | None) -> list[Problem]:
    if not is_object(part):
        return [wrong_type("chat.parts", where, "an object", part)]
    kind = part.get("type")
    if kind is None:
        return [missing("chat.parts", f"{where}.type")]
    allowed = PARTS[role]
    # An image in the wrong message is refused in words of its own.
    if kind == "image_url" and kind not in allowed:
        text = (
            f"Invalid '{message}'. Image URLs are only allowed for messages with role 'user', "
            f"but this message with role '{role}' contains an image URL."
        )
        return [Problem("chat.parts", where, text, "refused", param=message, code="invalid_value")]
    if kind not in allowed:
        return [wrong_value("chat.parts", f"{where}.type", kind, allowed)]
    if kind == "input_audio" and model is not None and is_official(model) and "audio" not in model:
        text = (
            f"Invalid '{message}'. Content blocks are expected to be either text or image_url type."
        )
        rule, code = "chat.audio_for_model", "invalid_value"
        return [Problem(rule, where, text, "refused", param=message, code=code)]
    key = PART_BODIES[kind]
    if part.get(key) is None:
        return [missing("chat.parts", f"{where}.{key}")]
    return _check_part_body(where, key, part[key])


def _check_part_body(where: str, key: str, value: Any) -> list[Problem]:
    if key in ("text", "refusal") and not isinstance(value, str):
        return [wrong_type("chat.parts", f"{where}.{key}", "a string", value)]
    if key == "text":
        return media.check_text("chat.part_length", f"{where}.text", value)
    if key == "image_url":
        return check_shown_image(f"{where}.image_url", value)
    if key == "input_audio" and is_object(value):
        format_at = f"{where}.input_audio.format"
        return media.check_sound("chat.audio_format", format_at, value.get("format"))
    return check_shown_file(f"{where}.file", value) if key == "file" else []


def _check_calls(where: str, calls: Any) -> list[Problem]:
    if calls is None:
        return []
    where = f"{where}.tool_calls"
    if not is_array(calls):
        return [wrong_type("chat.tool_calls", where, "an array of objects", calls)]
    if not calls:
        return [empty_array("chat.tool_calls", where)]
    found: list[Problem] = []
    if len(calls) > MAX_CALLS:
        found.append(long_array("chat.tool_calls", where, MAX_CALLS, len(calls)))
    for index, call in enumerate(calls):
        found += _check_call(f"{where}[{index}]", call)
    return found


def _check_call(where: str, call: Any) -> list[Problem]:
    if not is_object(call):
        return [wrong_type("chat.tool_calls", where, "an object", call)]
    found = _check_call_id(f"{where}.id", call.get("id"))
    kind = call.get("type")
    if kind is None:
        return [*found, missing("chat.tool_calls", f"{where}.type")]
    if kind not in CALL_TYPES:
        return [*found, wrong_value("chat.tool_calls", f"{where}.type", kind, CALL_TYPES)]
    body = call.get(kind)
    if body is None:
        return [*found, missing("chat.tool_calls", f"{where}.{kind}")]
    if not is_object(body):
        return [*found, wrong_type("chat.tool_calls", f"{where}.{kind}", "an object", body)]
    found += check_name("chat.call_name", f"{where}.{kind}.name", body.get("name"), MAX_NAME)
    # A function's arguments are JSON in a text; a custom tool's input is any text.
    key = "arguments" if kind == "function" else "input"
    value = body.get(key)
    where = f"{where}.{kind}.{key}"
    if value is None:
        found.append(missing("chat.arguments", where))
    elif not isinstance(value, str):
        found.append(wrong_type("chat.arguments", where, "a string", value))
    else:
        found += check_text_length("chat.arguments_length", where, value, "some")
        if kind == "function" and not is_json_object(value):
            found.append(_unreadable_arguments(where, call))
    # All problems of one call name it, so that a repair can be matched to the call.
    if found:
        found = about(found, text(call.get("id")), text(body.get("name")))
    return found


def _unreadable_arguments(where: str, call: Mapping[str, Any]) -> Problem:
    message = (
        f"The arguments of {call.get('id')} are not a JSON object; this API does not look, "
        "other APIs do."
    )
    return Problem("chat.arguments_json", where, message, "discouraged")


def _check_call_id(where: str, value: Any) -> list[Problem]:
    if value is None:
        return [missing("chat.call_id", where)]
    if not isinstance(value, str):
        return [wrong_type("chat.call_id", where, "a string", value)]
    if not value:
        # Unlike on Responses, no refusal of an empty id is known for sure.
        return [empty_string("chat.call_id", where, "some")]
    if len(value) > MAX_CALL_ID:
        return [long_string("chat.call_id", where, MAX_CALL_ID, len(value))]
    return []


def _check_tool_call_id(where: str, value: Any) -> list[Problem]:
    where = f"{where}.tool_call_id"
    if value is None:
        return [missing("chat.tool_call_id", where)]
    if not isinstance(value, str):
        return [wrong_type("chat.tool_call_id", where, "a string", value)]
    return []


# ----------------------------------------------------------------- pairing


# Results come right after the message whose calls they answer. So the check moves through the
# messages with one window, which holds the calls that results may answer here:
#
#   message               | window closed               | window open (calls wait)
#   ----------------------+-----------------------------+-----------------------------------------
#   assistant with calls  | opens                       | closes, then opens for the new calls
#   tool                  | `chat.result_without_calls` | answers a call, or is a problem:
#                         |                             | `chat.unknown_call_id`,
#                         |                             | `chat.duplicate_result`
#   any other, or the end | stays closed                | closes; if a call still waits, it is
#                         |                             | `chat.results_after_calls`


def _check_pairing(messages: Any) -> list[Problem]:
    """Each call has one result, in the messages right after it."""
    window = _ResultWindow()
    for index, message in enumerate(items(messages)):
        if not is_object(message):
            window.close(f"messages.[{index}].role")
        elif message.get("role") == "tool":
            window.take_result(index, message.get("tool_call_id"))
        else:
            window.close(f"messages.[{index}].role")
            if message.get("role") == "assistant":
                window.open(index, message.get("tool_calls"))
    window.close("messages")
    return window.found


def _named_calls(messages: Any) -> Iterator[tuple[str, str, str]]:
    """Position, name and id of every call that has a name."""
    for index, message in enumerate(items(messages)):
        calls = items(message.get("tool_calls")) if is_object(message) else ()
        for number, call in enumerate(calls):
            name = call_name(call)
            if name is not None:
                yield f"messages[{index}].tool_calls[{number}]", name, text(call.get("id")) or ""


def call_name(call: Any) -> str | None:
    """The name in a call of any kind, if it has one."""
    if not is_object(call):
        return None
    body = call.get(text(call.get("type")) or "function")
    return text(body.get("name")) if is_object(body) else None


class _ResultWindow:
    """The calls of the last assistant message, while their results may come."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        # Of the open window: whether each call is answered, by id; the ids in the order of their
        # results; the position of the message with the calls.
        self.calls: dict[str, bool] = {}
        self.order: list[str] = []
        self.position = ""
        self.is_open = False
        # Of the whole history: the name of each call by its id, and the ids of earlier messages.
        self.names: dict[str, str] = {}
        self.earlier: set[str] = set()

    def open(self, index: int, calls: Any) -> None:
        """Expect the results of these calls; a message without calls opens nothing."""
        self.position = f"messages[{index}]"
        for number, call in enumerate(items(calls)):
            self.is_open = True
            call_id = text(call.get("id")) if is_object(call) else None
            if call_id is None:
                continue
            name = call_name(call)
            if name is not None:
                self.names[call_id] = name
            where = f"{self.position}.tool_calls[{number}].id"
            if call_id in self.calls:
                message = f"Duplicate value for 'tool_call_id' of {call_id} in message[{index}]"
                self.add("chat.duplicate_call_id", where, message, "some", (call_id,))
            elif call_id in self.earlier:
                message = f"The tool call id {call_id} is used by more than one message."
                self.add("chat.reused_call_id", where, message, "discouraged", (call_id,))
            self.calls.setdefault(call_id, False)
        self.earlier.update(self.calls)

    def take_result(self, index: int, value: Any) -> None:
        where = f"messages[{index}]"
        call_id = text(value)
        ids = () if call_id is None else (call_id,)
        if not self.is_open:
            message = (
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                "message with 'tool_calls'."
            )
            param = f"messages.[{index}].role"
            self.add("chat.result_without_calls", where, message, "refused", ids, param)
        elif call_id is None:
            return  # the check of shapes reports it
        elif call_id not in self.calls:
            message = (
                f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of "
                "previous message."
            )
            param = f"messages.[{index}].tool_call_id"
            self.add("chat.unknown_call_id", where, message, "refused", ids, param)
        elif self.calls[call_id]:
            message = f"Duplicate value for 'tool_call_id' of {call_id} in message[{index}]"
            param = f"messages.[{index}].tool_call_id"
            self.add("chat.duplicate_result", where, message, "refused", ids, param)
        else:
            self.calls[call_id] = True
            self.order.append(call_id)

    def close(self, param: str) -> None:
        """No more results may come; `param` is the position that OpenAI's refusal names."""
        open_ids = tuple(call_id for call_id, answered in self.calls.items() if not answered)
        if open_ids:
            message = (
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {', '.join(open_ids)}"
            )
            self.add("chat.results_after_calls", self.position, message, "refused", open_ids, param)
        elif self.order != list(self.calls):
            message = "The results stand in another order than their calls."
            self.add("chat.result_order", self.position, message, "discouraged", tuple(self.order))
        self.calls, self.order, self.is_open = {}, [], False

    def add(
        self,
        rule: str,
        where: str,
        message: str,
        certainty: Certainty,
        ids: tuple[str, ...],
        param: str | None = None,
    ) -> None:
        names = [self.names[call_id] for call_id in ids if call_id in self.names]
        tools = tuple(dict.fromkeys(names))
        problem = Problem(rule, where, message, certainty, param=param, call_ids=ids, tools=tools)
        self.found.append(problem)
