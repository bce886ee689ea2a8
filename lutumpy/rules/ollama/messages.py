"""The law of Ollama's API: what `POST /api/chat` refuses, and in which words.

Sources: `api/types.go` and `server/routes.go` of Ollama, its documentation, and errors that users
report. The server reads JSON into typed fields, so a wrong type is refused and an unknown key is
not even seen; `null` is the same as leaving a key out.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.rules.declared import undeclared
from lutumpy.rules.encoding import EncodingWords, check_encoding
from lutumpy.rules.ollama.limits import MAX_TOP_LOGPROBS, THINK_WORDS
from lutumpy.rules.ollama.sequence import call_named, check_sequence
from lutumpy.rules.ollama.shapes import refusal, wrong_type
from lutumpy.rules.ollama.tools import check_tools
from lutumpy.rules.problem import Problem, about, is_array, is_number, items

__all__ = ["PARAMETERS", "ROLES", "WHERE", "check_messages", "check_request", "is_base64"]

PARAMETERS = frozenset(
    "model messages tools format options stream think keep_alive logprobs top_logprobs truncate "
    "shift".split()
)
"""The keys of a request that the API reads."""
ROLES = ("system", "user", "assistant", "tool")
WHERE = "messages[{}]"
_WORDS = EncodingWords(
    "invalid character 'N' looking for beginning of value",
    "invalid character in string literal",
    kind="",
)
_TEXT_FIELDS = (
    ("content", "ollama.content"),
    ("thinking", "ollama.thinking"),
    ("tool_name", "ollama.result_names"),
    ("tool_call_id", "ollama.result_names"),
)


def check_request(body: Any, *, compatible: bool = False) -> list[Problem]:
    """Every problem of a request body. Any JSON is accepted; nothing raises.

    Args:
        body: The request.
        compatible: Changes nothing: every server of this API is Ollama's own.
    """
    if not isinstance(body, Mapping):
        return [refusal("ollama.body", "body", "json: cannot unmarshal the body")]
    found = _check_parameters(body)
    messages = body.get("messages")
    if messages is not None:
        found += check_encoding("ollama", messages, WHERE, _WORDS)
        found += _check_shapes(messages)
    elif "messages" not in body:
        found.append(_no_messages())
    if body.get("tools") is not None:
        found += check_tools(body["tools"])
    return found + check_sequence(messages)


def check_messages(messages: Any, *, tools: Any = None) -> list[Problem]:
    """The problems of a history alone: shapes first, then calls and results.

    Args:
        messages: The request's `messages`.
        tools: Its tools, or their names, to find calls of tools that are not declared.
    """
    found = check_encoding("ollama", messages, WHERE, _WORDS)
    found += _check_shapes(messages)
    found += check_sequence(messages)
    if tools is not None:
        found += undeclared("ollama.tool_declared", _named_calls(messages), tools)
    return found


def is_base64(value: str) -> bool:
    """Whether a text is what Go's reader takes as bytes."""
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return True


def _check_parameters(body: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    model = body.get("model")
    if model is not None and not isinstance(model, str):
        found.append(wrong_type("ollama.model", "model", model, "string"))
    elif not model:
        found.append(refusal("ollama.model", "model", "model is required"))
    for key, kind, name in _TYPES:
        value = body.get(key)
        if value is not None and not (isinstance(value, kind) and not _is_wrong_bool(value, kind)):
            found.append(wrong_type("ollama.parameters", key, value, name))
    think = body.get("think")
    if think is not None and not isinstance(think, bool) and think not in THINK_WORDS:
        words = ", ".join([f'"{word}"' for word in THINK_WORDS[:3]])
        message = f'invalid think value: "{think}" (must be {words}, true, or false)'
        found.append(refusal("ollama.think", "think", message))
    wanted = body.get("format")
    if not (wanted in (None, "", "json") or isinstance(wanted, Mapping)):
        message = f'invalid format: "{wanted}"; expected "json" or a valid JSON Schema object'
        found.append(refusal("ollama.format", "format", message))
    keep = body.get("keep_alive")
    if keep is not None and not isinstance(keep, str) and not is_number(keep):
        found.append(wrong_type("ollama.parameters", "keep_alive", keep, "api.Duration"))
    top = body.get("top_logprobs")
    if isinstance(top, int) and not 0 <= top <= MAX_TOP_LOGPROBS:
        message = f"top_logprobs must be between 0 and {MAX_TOP_LOGPROBS}"
        found.append(refusal("ollama.parameters", "top_logprobs", message))
    return found


_TYPES: tuple[tuple[str, Any, str], ...] = (
    ("stream", bool, "bool"),
    ("options", Mapping, "map[string]interface {}"),
    ("logprobs", bool, "bool"),
    ("top_logprobs", int, "int"),
    ("truncate", bool, "bool"),
    ("shift", bool, "bool"),
)


def _is_wrong_bool(value: Any, kind: Any) -> bool:
    return isinstance(value, bool) and kind is int


def _no_messages() -> Problem:
    message = "There are no messages: the model is loaded, and answers nothing."
    return refusal("ollama.messages", "messages", message, "some")


# ------------------------------------------------------------------ shapes


def _check_shapes(messages: Any) -> list[Problem]:
    if not is_array(messages):
        return [wrong_type("ollama.messages", "messages", messages, "[]api.Message")]
    if not messages:
        return [_no_messages()]
    found: list[Problem] = []
    for index, message in enumerate(messages):
        where = WHERE.format(index)
        if not isinstance(message, Mapping):
            found.append(wrong_type("ollama.messages", where, message, "api.Message"))
        else:
            found += _check_message(where, message)
    return found


def _check_message(where: str, message: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    role = message.get("role")
    if role is not None and not isinstance(role, str):
        found.append(wrong_type("ollama.role", f"{where}.role", role, "string"))
    elif role is None or role.lower() not in ROLES:
        # The template of the model decides, and most leave such a message out.
        text = f"{where}.role: {role!r} is none of {', '.join(ROLES)}"
        found.append(refusal("ollama.role", f"{where}.role", text, "some"))
    for key, rule in _TEXT_FIELDS:
        value = message.get(key)
        if value is not None and not isinstance(value, str):
            found.append(wrong_type(rule, f"{where}.{key}", value, "string"))
    if not message.get("content") and message.get("parts"):
        text = "a message of another API: its text is under `parts`, which this one doesn't read"
        found.append(refusal("ollama.content", f"{where}.content", text, "discouraged"))
    found += _check_images(f"{where}.images", message.get("images"))
    return found + _check_calls(f"{where}.tool_calls", message.get("tool_calls"))


def _check_images(where: str, images: Any) -> list[Problem]:
    if images is None:
        return []
    if not is_array(images):
        return [wrong_type("ollama.images", where, images, "[]api.ImageData")]
    found: list[Problem] = []
    for number, image in enumerate(images):
        at = f"{where}[{number}]"
        if not isinstance(image, str):
            found.append(wrong_type("ollama.images", at, image, "api.ImageData"))
        elif not is_base64(image):
            found.append(refusal("ollama.images", at, "illegal base64 data at input byte 0"))
    return found


def _check_calls(where: str, calls: Any) -> list[Problem]:
    if calls is None:
        return []
    if not is_array(calls):
        return [wrong_type("ollama.tool_calls", where, calls, "[]api.ToolCall")]
    found: list[Problem] = []
    for number, call in enumerate(calls):
        found += _check_call(f"{where}[{number}]", call)
    return found


def _check_call(where: str, call: Any) -> list[Problem]:
    if not isinstance(call, Mapping):
        return [wrong_type("ollama.tool_calls", where, call, "api.ToolCall")]
    found: list[Problem] = []
    call_id = call.get("id")
    if call_id is not None and not isinstance(call_id, str):
        found.append(wrong_type("ollama.call_id", f"{where}.id", call_id, "string"))
    function = call.get("function")
    at = f"{where}.function"
    if not isinstance(function, Mapping):
        found.append(wrong_type("ollama.tool_calls", at, function, "api.ToolCallFunction"))
        return about(found, *call_named(call))
    name, arguments = function.get("name"), function.get("arguments")
    if name is not None and not isinstance(name, str):
        found.append(wrong_type("ollama.call_name", f"{at}.name", name, "string"))
    elif not name:
        text = "a call without the name of its tool can't be answered"
        found.append(refusal("ollama.call_name", f"{at}.name", text, "some"))
    if arguments is not None and not isinstance(arguments, Mapping):
        kind = "api.ToolCallFunctionArguments"
        found.append(wrong_type("ollama.arguments", f"{at}.arguments", arguments, kind))
    return about(found, *call_named(call))


def _named_calls(messages: Any) -> Iterator[tuple[str, str, str]]:
    """Position, name and id of every call that has a name."""
    for index, message in enumerate(items(messages)):
        calls = items(message.get("tool_calls")) if isinstance(message, Mapping) else ()
        for number, call in enumerate(calls):
            call_id, name = call_named(call)
            if name:
                yield f"messages[{index}].tool_calls[{number}]", name, call_id or ""
