"""The law of Responses: what `POST /v1/responses` refuses, and in which words.

The shapes of items are here; the rules about their order and pairing are in `sequence.py`, those
about tools in `tools.py`, the numbers in `limits.py`.

Sources: OpenAI's API description, recorded exchanges, and errors that users report. The texts of
problems are OpenAI's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.rules.declared import undeclared
from lutumpy.rules.encoding import check_encoding
from lutumpy.rules.hosts import for_compatible_host
from lutumpy.rules.openai import media
from lutumpy.rules.openai.models import check_model_parameters
from lutumpy.rules.openai.responses.catalogue import is_vendor_only
from lutumpy.rules.openai.responses.changes import check_change, check_changes
from lutumpy.rules.openai.responses.limits import (
    ID_PREFIXES,
    MAX_CALL_ID,
    MAX_HISTORY_NAME,
    MAX_ITEM_ID,
    MAX_OUTPUT,
)
from lutumpy.rules.openai.responses.media import check_shown_file, check_shown_image
from lutumpy.rules.openai.responses.requests import COUNT_PARAMETERS, check_background
from lutumpy.rules.openai.responses.sequence import check_sequence
from lutumpy.rules.openai.responses.tools import check_deferred, check_tool_choice, check_tools
from lutumpy.rules.openai.shapes import (
    check_model,
    check_name,
    check_ranges,
    check_text_length,
    empty_string,
    long_string,
    missing,
    unknown,
    wrong_type,
    wrong_value,
)
from lutumpy.rules.problem import Certainty, Problem, about, is_array, is_json, items, text

__all__ = ["check_input_part", "check_messages", "check_request"]

PARAMETERS = frozenset(
    "access_programs background background_options context_management conversation image include "
    "input instructions max_output_tokens max_tool_calls metadata model moderation "
    "parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options "
    "prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options "
    "temperature text tool_choice tools top_logprobs top_p truncation user".split()
)
"""The keys of a request [API description]."""
ROLES = ("assistant", "system", "developer", "user")
ITEM_TYPES = (
    "additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction "
    "compaction_trigger computer_call computer_call_output configuration_update custom_tool_call "
    "custom_tool_call_output file_search_call function_call function_call_output "
    "image_generation_call item_reference local_shell_call local_shell_call_output "
    "mcp_approval_request mcp_approval_response mcp_call mcp_list_tools message program "
    "program_output reasoning shell_call shell_call_output tool_search_call tool_search_output "
    "web_search_call"
).split()
"""The types of input items [API description]."""
KNOWN_PREFIXES = ("function_call", "message", "reasoning")
"""Items whose prefix of the id users report as checked; of the others only recordings show one."""

INPUT_PARTS = ("input_text", "input_image", "input_file")
"""Types of parts that a user's message or an output may hold."""
OTHER_PARTS = (
    "input_audio",
    "output_text",
    "refusal",
    "computer_screenshot",
    "summary_text",
    "tether_browsing_display",
)
"""Further types on the list of the API description; few of them are accepted in an input."""
ASSISTANT_PARTS = ("output_text", "refusal")
WHERE = "input[{}]"
ITEM_KEYS: Mapping[str, frozenset[str]] = {
    "message": frozenset("type role content id status phase".split()),
    "reasoning": frozenset("type id summary content encrypted_content status".split()),
    "function_call": frozenset(
        "type id call_id name arguments status namespace caller async".split()
    ),
    "custom_tool_call": frozenset(
        "type id call_id name input status namespace caller async".split()
    ),
    "function_call_output": frozenset(
        "type id call_id output status name namespace caller".split()
    ),
    "custom_tool_call_output": frozenset(
        "type id call_id output status name namespace caller".split()
    ),
    "configuration_update": frozenset("type id reasoning text".split()),
}
"""The keys of the items that programs write themselves [API description]; of other items nothing is
claimed."""

OF_CHAT = ("tool_calls", "function_call", "tool_call_id")
"""Keys of messages of Chat Completions: no model of this API wrote an item with one."""

STATUSES = ("in_progress", "completed", "incomplete")
WITH_STATUS = frozenset(
    "message reasoning function_call function_call_output custom_tool_call "
    "custom_tool_call_output tool_search_call tool_search_output computer_call_output shell_call "
    "shell_call_output local_shell_call_output".split()
)
"""Items with an optional `status`."""


def check_request(
    body: Mapping[str, Any],
    *,
    required_reasoning: Mapping[str, str] | None = None,
    compatible: bool = False,
    counted: bool = False,
) -> list[Problem]:
    """Every problem of a request body, in the order in which the API would find them.

    Any JSON is accepted; nothing raises.

    Args:
        body: The request.
        required_reasoning: For an item's id, the id of the reasoning item that has to precede it:
            the server remembers which reasoning led to which item.
        compatible: The host is not OpenAI: what only OpenAI is known to refuse has certainty
            "some".
        counted: The request asks for its tokens to be counted. Such a request takes fewer
            parameters and requires none.
    """
    # Callers may pass any JSON.
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return [wrong_type("responses.body", "body", "an object", body)]
    held = body.get("previous_response_id") is not None or body.get("conversation") is not None
    entries = body.get("input")
    found = _check_parameters(body, counted)
    if entries is not None:
        found += check_encoding("responses", entries, WHERE) + _check_shapes(entries)
    found += check_tools(body) + check_deferred(body) + check_changes(body)
    found += check_tool_choice(body, held)
    found += check_model_parameters("responses", body)
    found += check_sequence(entries, held, required_reasoning)
    return for_compatible_host(found, is_vendor_only) if compatible else found


def check_messages(
    input: str | Sequence[Any],
    *,
    tools: Sequence[Any] | None = None,
    server_held_prefix: bool = False,
    required_reasoning: Mapping[str, str] | None = None,
    compatible: bool = False,
) -> list[Problem]:
    """The problems of an input alone: shapes first, then the sequence of items.

    Args:
        input: The request's `input`.
        tools: Its tools, or their names, to find calls of tools that are not declared.
        server_held_prefix: The server holds the start of the conversation
            (`previous_response_id`, `conversation`), so an output may answer a call that is not in
            the input.
        required_reasoning: As for `check_request`.
        compatible: As for `check_request`.
    """
    found = check_encoding("responses", input, WHERE) + _check_shapes(input)
    found += check_sequence(input, server_held_prefix, required_reasoning)
    found += _check_arguments(input)
    if tools is not None:
        declared = [*tools, *_tools_in_input(input)]
        found += undeclared("responses.tool_declared", _named_calls(input), declared)
    return for_compatible_host(found, is_vendor_only) if compatible else found


def _check_parameters(body: Mapping[str, Any], counted: bool) -> list[Problem]:
    found: list[Problem] = []
    # A stored prompt (`prompt`) names its model.
    needs_model = body.get("prompt") is None and not counted
    if needs_model or body.get("model") is not None:
        found += check_model("responses", body.get("model"))
    starts = ("input", "previous_response_id", "prompt", "conversation")
    if not counted and all(body.get(key) is None for key in starts):
        message = (
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be "
            "provided."
        )
        rule, code = "responses.required", "missing_required_parameter"
        found.append(Problem(rule, "input", message, "refused", param="input", code=code))
    if body.get("previous_response_id") is not None and body.get("conversation") is not None:
        message = (
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. "
            "Ensure you are only providing one of: 'previous_response_id' or 'conversation'."
        )
        rule, code = "responses.held_prefix", "mutually_exclusive_parameters"
        found.append(Problem(rule, "conversation", message, "refused", code=code))
    known = COUNT_PARAMETERS if counted else PARAMETERS
    found += check_background(body)
    found += [unknown("responses.unknown_parameter", str(key)) for key in body if key not in known]
    return found + check_ranges("responses", body)


def _named_calls(entries: Any) -> Iterator[tuple[str, str, str]]:
    """Position, name and id of every call of one of the user's own tools."""
    for index, item in enumerate(items(entries)):
        if isinstance(item, Mapping) and item.get("type") in ("function_call", "custom_tool_call"):
            name = text(item.get("name"))
            if name is not None:
                yield f"input[{index}]", name, text(item.get("call_id")) or ""


def _check_arguments(entries: Any) -> list[Problem]:
    """Arguments that are not JSON. This API accepts them, so `check_request` doesn't report it."""
    found: list[Problem] = []
    for index, item in enumerate(items(entries)):
        if isinstance(item, Mapping) and item.get("type") == "function_call":
            arguments = item.get("arguments")
            if isinstance(arguments, str) and not is_json(arguments):
                message = (
                    f"The arguments of {item.get('call_id')} are not JSON; this API does not look, "
                    "others do."
                )
                rule, where = "responses.arguments_json", f"input[{index}].arguments"
                problem = Problem(rule, where, message, "discouraged")
                found += about([problem], text(item.get("call_id")), text(item.get("name")))
    return found


def _tools_in_input(entries: Any) -> Iterator[Any]:
    """Tools that items of the input bring: pushed by the program, or found by a search."""
    bringing = ("additional_tools", "tool_search_output")
    for item in items(entries):
        if isinstance(item, Mapping) and item.get("type") in bringing:
            yield from items(item.get("tools"))


# ------------------------------------------------------------------ shapes


def _check_shapes(entries: Any) -> list[Problem]:
    if isinstance(entries, str):
        return []
    if not is_array(entries):
        expected = "one of a string or array of objects"
        return [wrong_type("responses.input", "input", expected, entries)]
    found: list[Problem] = []
    for index, item in enumerate(entries):
        where = f"input[{index}]"
        if isinstance(item, Mapping):
            found += _check_item(where, item)
        else:
            found.append(wrong_type("responses.input", where, "an object", item))
    return found


def item_type(item: Mapping[str, Any]) -> Any:
    """The type of an input item; messages and item references may come without one."""
    kind = item.get("type")
    if kind is not None:
        return kind
    if "role" in item:
        return "message"
    return "item_reference" if "id" in item else None


def _check_item(where: str, item: Mapping[str, Any]) -> list[Problem]:
    kind = item_type(item)
    if kind is None:
        return [missing("responses.input", f"{where}.type")]
    if kind not in ITEM_TYPES:
        return [wrong_value("responses.item_type", f"{where}.type", kind, ITEM_TYPES)]
    found = _check_keys(where, kind, item)
    found += _check_item_id(where, kind, item)
    found += _check_status(where, kind, item)
    if kind == "message":
        return found + _check_message(where, item)
    if kind == "reasoning":
        return found + _check_reasoning(where, item)
    if kind == "item_reference":
        if isinstance(item.get("id"), str):
            return found
        return [missing("responses.input", f"{where}.id")]
    if kind in ("additional_tools", "configuration_update"):
        return found + check_change(where, kind, item)
    if kind in ("function_call", "custom_tool_call"):
        return found + _check_call(where, kind, item)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return found + _check_output(where, kind, item)
    return found


def _check_keys(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    """Items that programs write have no other keys than those of the table [probed].

    An item that the model wrote may have a key that the API knows and this table doesn't yet.
    """
    known = ITEM_KEYS.get(kind)
    if known is None or item.keys() <= known:
        return []
    is_ours = kind.endswith("_output") or (kind == "message" and item.get("role") != "assistant")
    found: list[Problem] = []
    for key in item:
        if key not in known:
            # A position is read as steps: a key with a dot or a bracket is in the text only.
            position = f"{where}.{key}" if isinstance(key, str) and key.isidentifier() else where
            certainty: Certainty = "refused" if is_ours or key in OF_CHAT else "some"
            problem = unknown("responses.item_keys", f"{where}.{key}", certainty)
            found.append(replace(problem, position=position))
    return found


def _check_status(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    """A status has one of three values [API description]; `null` is accepted [recorded twice]."""
    value = item.get("status")
    if value is None or kind not in WITH_STATUS:
        return []
    where = f"{where}.status"
    if not isinstance(value, str):
        return [wrong_type("responses.status", where, "a string", value)]
    if value not in STATUSES:
        return [wrong_value("responses.status", where, value, STATUSES)]
    if kind == "reasoning":
        # The API description has it, and the endpoint refused it [reported: litellm#13420]. No
        # recording sends it.
        return [unknown("responses.status", where, "some")]
    return []


def _check_item_id(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    """An item's id begins with the prefix of its type."""
    where = f"{where}.id"
    value = item.get("id")
    if value is None:
        return []
    if not isinstance(value, str):
        return [wrong_type("responses.item_id", where, "a string", value)]
    prefix = ID_PREFIXES.get(kind)
    # Messages of the application have ids of its own, if any; only a model's have the prefix.
    if kind == "message" and item.get("role") != "assistant":
        prefix = None
    if prefix is not None and not value.startswith(prefix):
        message = f"Invalid '{where}': '{value}'. Expected an ID that begins with '{prefix}'."
        certainty: Certainty = "refused" if kind in KNOWN_PREFIXES else "some"
        rule, code = "responses.item_id", "invalid_value"
        return [Problem(rule, where, message, certainty, param=where, code=code)]
    if len(value) > MAX_ITEM_ID:
        return [long_string("responses.item_id", where, MAX_ITEM_ID, len(value))]
    return []


def _check_message(where: str, item: Mapping[str, Any]) -> list[Problem]:
    role = item.get("role")
    if role is None:
        return [missing("responses.role", f"{where}.role")]
    if role not in ROLES:
        return [wrong_value("responses.role", f"{where}.role", role, ROLES)]
    content = item.get("content")
    if isinstance(content, str):
        return []
    if content is None:
        return [missing("responses.content", f"{where}.content")]
    if not is_array(content):
        expected = "one of a string or array of objects"
        return [wrong_type("responses.content", f"{where}.content", expected, content)]
    found: list[Problem] = []
    for index, part in enumerate(content):
        found += _check_part(f"{where}.content[{index}]", part, is_assistant=role == "assistant")
    return found


def check_input_part(where: str, part: Any) -> list[Problem]:
    """The problems of one content part of a user's message, or of an output."""
    return _check_part(where, part, is_assistant=False)


def _check_part(where: str, part: Any, *, is_assistant: bool) -> list[Problem]:
    if not isinstance(part, Mapping):
        return [wrong_type("responses.parts", where, "an object", part)]
    kind = part.get("type")
    if kind is None:
        return [missing("responses.parts", f"{where}.type")]
    allowed = ASSISTANT_PARTS if is_assistant else INPUT_PARTS
    if kind not in allowed:
        # The API accepts parts of the long list in more places than its description says.
        certainty: Certainty = "some" if not is_assistant and kind in OTHER_PARTS else "refused"
        return [wrong_value("responses.parts", f"{where}.type", kind, allowed, certainty)]
    key = {"input_text": "text", "output_text": "text", "refusal": "refusal"}.get(kind)
    if key is not None and part.get(key) is None:
        return [missing("responses.parts", f"{where}.{key}")]
    if key is not None and not isinstance(part.get(key), str):
        return [wrong_type("responses.parts", f"{where}.{key}", "a string", part.get(key))]
    if kind == "input_image":
        return check_shown_image(where, part)
    if kind == "input_file":
        return check_shown_file(where, part)
    if kind == "input_text":
        return media.check_text("responses.part_length", f"{where}.text", part["text"])
    return []


def _check_reasoning(where: str, item: Mapping[str, Any]) -> list[Problem]:
    """`summary` is required, and may be empty; in it are texts [API description]."""
    rule, where = "responses.reasoning_summary", f"{where}.summary"
    summary = item.get("summary")
    if summary is None:
        return [missing(rule, where)]
    if not is_array(summary):
        return [wrong_type(rule, where, "an array of objects", summary)]
    for index, part in enumerate(summary):
        at = f"{where}[{index}]"
        if not isinstance(part, Mapping):
            return [wrong_type(rule, at, "an object", part)]
        if part.get("type") != "summary_text":
            return [wrong_value(rule, f"{at}.type", part.get("type"), ("summary_text",))]
        if part.get("text") is None:
            return [missing(rule, f"{at}.text")]
        if not isinstance(part["text"], str):
            return [wrong_type(rule, f"{at}.text", "a string", part["text"])]
    return []


def _check_call(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    found = _check_call_id(f"{where}.call_id", item.get("call_id"))
    # In a history a name may be longer than in a declaration.
    name = text(item.get("name"))
    found += check_name("responses.call_name", f"{where}.name", item.get("name"), MAX_HISTORY_NAME)
    key = "arguments" if kind == "function_call" else "input"
    value = item.get(key)
    if value is None:
        found.append(missing("responses.arguments", f"{where}.{key}"))
    elif not isinstance(value, str):
        found.append(wrong_type("responses.arguments", f"{where}.{key}", "a string", value))
    else:
        found += check_text_length("responses.arguments_length", f"{where}.{key}", value, "refused")
    if item.get("status") == "incomplete":
        message = (
            "The call was cut off before its arguments ended; it should have been dropped, not "
            "answered."
        )
        found.append(Problem("responses.truncated_call", where, message, "discouraged"))
    if found:
        found = about(found, text(item.get("call_id")), name)
    return found


def _check_call_id(where: str, value: Any) -> list[Problem]:
    if value is None:
        return [missing("responses.call_id", where)]
    if not isinstance(value, str):
        return [wrong_type("responses.call_id", where, "a string", value)]
    if not value:
        return [empty_string("responses.call_id", where)]
    if len(value) > MAX_CALL_ID:
        return [long_string("responses.call_id", where, MAX_CALL_ID, len(value))]
    return []


def _check_output(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    call_id = item.get("call_id")
    # An output that the host adds by itself names a tool instead of a call.
    names_tool = kind == "function_call_output" and item.get("name") is not None
    if call_id is not None or not names_tool:
        found += _check_call_id(f"{where}.call_id", call_id)
    where = f"{where}.output"
    output = item.get("output")
    if output is None:
        return [*found, missing("responses.output", where)]
    if isinstance(output, str):
        if len(output) > MAX_OUTPUT:
            found.append(long_string("responses.output", where, MAX_OUTPUT, len(output)))
        return found
    if not is_array(output):
        expected = "one of a string or array of objects"
        return [*found, wrong_type("responses.output", where, expected, output)]
    for index, part in enumerate(output):
        found += _check_part(f"{where}[{index}]", part, is_assistant=False)
    return found
