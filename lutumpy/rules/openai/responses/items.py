"""The law of OpenAI's Responses: what `POST /v1/responses` refuses, and in which words.

Sources: OpenAI's API description, recorded exchanges, and errors that users report. The shapes of items are here,
the rules about their sequence in `responses_sequence`, those about tools in `responses_tools`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.rules import media
from lutumpy.rules.call_ids import RESPONSES_MAX
from lutumpy.rules.declared import undeclared
from lutumpy.rules.encoding import check_encoding
from lutumpy.rules.hosts import for_compatible_host
from lutumpy.rules.openai.models import check_model_parameters
from lutumpy.rules.openai.responses.catalogue import is_vendor_only
from lutumpy.rules.openai.responses.requests import COUNT_PARAMETERS, check_background
from lutumpy.rules.openai.responses.sequence import check_sequence
from lutumpy.rules.openai.responses.tools import check_tool_choice, check_tools
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

__all__ = ["check_messages", "check_request"]

PARAMETERS = frozenset(
    "access_programs background background_options context_management conversation image include input instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream "
    "stream_options temperature text tool_choice tools top_logprobs top_p truncation user".split()
)
ROLES = ("assistant", "system", "developer", "user")
ITEM_TYPES = (
    "additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction compaction_trigger "
    "computer_call computer_call_output configuration_update custom_tool_call custom_tool_call_output file_search_call "
    "function_call function_call_output image_generation_call item_reference local_shell_call local_shell_call_output "
    "mcp_approval_request mcp_approval_response mcp_call mcp_list_tools message program program_output reasoning "
    "shell_call shell_call_output tool_search_call tool_search_output web_search_call"
).split()
ID_PREFIXES: Mapping[str, str] = {
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "message": "msg",
    "reasoning": "rs",
    "tool_search_call": "tsc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
}
KNOWN_PREFIXES = ("function_call", "message", "reasoning")
"""Items whose id prefix users report as checked; the others' is only what recordings show."""

INPUT_PARTS = ("input_text", "input_image", "input_file")
OTHER_PARTS = (
    "input_audio",
    "output_text",
    "refusal",
    "computer_screenshot",
    "summary_text",
    "tether_browsing_display",
)
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
"""The keys of the items that programs write themselves [API description]; of other items nothing is claimed."""

OF_CHAT = ("tool_calls", "function_call", "tool_call_id")
"""What Chat Completions has in its messages: no model of this API wrote it."""

STATUSES = ("in_progress", "completed", "incomplete")
WITH_STATUS = frozenset(
    "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output tool_search_call "
    "tool_search_output computer_call_output shell_call shell_call_output local_shell_call_output".split()
)
"""Items that may say how far they are, and needn't."""

MAX_CALL_ID = RESPONSES_MAX
MAX_ITEM_ID = 64
MAX_HISTORY_NAME = 128
MAX_OUTPUT = media.MAX_TEXT_PART


def check_request(
    body: Mapping[str, Any],
    *,
    required_reasoning: Mapping[str, str] | None = None,
    compatible: bool = False,
    counted: bool = False,
) -> list[Problem]:
    """Every problem of a request body, in the order in which the API would meet them. No JSON makes it raise.

    Args:
        body: The request.
        required_reasoning: Item id to the id of the reasoning item that the server knows to belong before it.
        compatible: The host is another than OpenAI: what only OpenAI is known to refuse has certainty "some".
        counted: The request asks for its tokens to be counted, which takes fewer parameters and needs none.
    """
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # the wire may bring anything
        return [wrong_type("responses.body", "body", "an object", body)]
    held = body.get("previous_response_id") is not None or body.get("conversation") is not None
    entries = body.get("input")
    found = _top_level(body, counted)
    if entries is not None:
        found += check_encoding("responses", entries, WHERE) + _shapes(entries)
    found += check_tools(body)
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
        tools: Its tools, or their names, for calls of tools that it doesn't declare.
        server_held_prefix: The conversation's start is at the server (`previous_response_id`, `conversation`), so an
            output may answer a call that is not in the input.
        required_reasoning: Item id to the id of the reasoning item that the server knows to belong before it.
        compatible: The host is another than OpenAI: what only OpenAI is known to refuse has certainty "some".
    """
    found = check_encoding("responses", input, WHERE) + _shapes(input)
    found += check_sequence(input, server_held_prefix, required_reasoning) + _unreadable(input)
    if tools is not None:
        found += undeclared(
            "responses.tool_declared", _named_calls(input), [*tools, *_additional(input)]
        )
    return for_compatible_host(found, is_vendor_only) if compatible else found


def _top_level(body: Mapping[str, Any], counted: bool) -> list[Problem]:
    found: list[Problem] = []
    needs_model = body.get("prompt") is None and not counted  # a stored prompt names its model
    if needs_model or body.get("model") is not None:
        found += check_model("responses", body.get("model"))
    if not counted and all(
        body.get(key) is None for key in ("input", "previous_response_id", "prompt", "conversation")
    ):
        message = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        code = "missing_required_parameter"
        found.append(
            Problem("responses.required", "input", message, "refused", param="input", code=code)
        )
    if body.get("previous_response_id") is not None and body.get("conversation") is not None:
        message = (
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. "
            "Ensure you are only providing one of: 'previous_response_id' or 'conversation'."
        )
        code = "mutually_exclusive_parameters"
        found.append(
            Problem("responses.held_prefix", "conversation", message, "refused", code=code)
        )
    known = COUNT_PARAMETERS if counted else PARAMETERS
    found += check_background(body)
    found += [unknown("responses.unknown_parameter", str(key)) for key in body if key not in known]
    return found + check_ranges("responses", body)


def _named_calls(entries: Any) -> Iterator[tuple[str, str, str]]:
    """Position, name and id of every call of a tool of ours."""
    for index, item in enumerate(items(entries)):
        if isinstance(item, Mapping) and item.get("type") in ("function_call", "custom_tool_call"):
            name = text(item.get("name"))
            if name is not None:
                yield f"input[{index}]", name, text(item.get("call_id")) or ""


def _unreadable(entries: Any) -> list[Problem]:
    """Arguments that nobody can read: this API takes them, so a request is not blamed for it."""
    found: list[Problem] = []
    for index, item in enumerate(items(entries)):
        if isinstance(item, Mapping) and item.get("type") == "function_call":
            arguments = item.get("arguments")
            if isinstance(arguments, str) and not is_json(arguments):
                message = f"The arguments of {item.get('call_id')} are no JSON; this API does not look, others do."
                problem = Problem(
                    "responses.arguments_json", f"input[{index}].arguments", message, "discouraged"
                )
                found += about([problem], text(item.get("call_id")), text(item.get("name")))
    return found


def _additional(entries: Any) -> Iterator[Any]:
    """Tools that came with the input: pushed by the program, or found by a search."""
    for item in items(entries):
        if isinstance(item, Mapping) and item.get("type") in (
            "additional_tools",
            "tool_search_output",
        ):
            yield from items(item.get("tools"))


# ------------------------------------------------------------------ shapes


def _shapes(entries: Any) -> list[Problem]:
    if isinstance(entries, str):
        return []
    if not is_array(entries):
        return [
            wrong_type("responses.input", "input", "one of a string or array of objects", entries)
        ]
    found: list[Problem] = []
    for index, item in enumerate(entries):
        where = f"input[{index}]"
        found += (
            _item(where, item)
            if isinstance(item, Mapping)
            else [wrong_type("responses.input", where, "an object", item)]
        )
    return found


def item_type(item: Mapping[str, Any]) -> Any:
    """The type of an input item; messages and item references may come without one."""
    kind = item.get("type")
    if kind is not None:
        return kind
    if "role" in item:
        return "message"
    return "item_reference" if "id" in item else None


def _item(where: str, item: Mapping[str, Any]) -> list[Problem]:
    kind = item_type(item)
    if kind is None:
        return [missing("responses.input", f"{where}.type")]
    if kind not in ITEM_TYPES:
        return [wrong_value("responses.item_type", f"{where}.type", kind, ITEM_TYPES)]
    found = _item_keys(where, kind, item) + _item_id(where, kind, item) + _status(where, kind, item)
    if kind == "message":
        return found + _message(where, item)
    if kind == "reasoning":
        return found + _reasoning(where, item)
    if kind == "item_reference":
        return (
            found
            if isinstance(item.get("id"), str)
            else [missing("responses.input", f"{where}.id")]
        )
    if kind in ("function_call", "custom_tool_call"):
        return found + _call(where, kind, item)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return found + _output(where, kind, item)
    return found


def _item_keys(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    """The items that programs write hold no other keys [probed].

    What the model wrote may hold a key that the API knows and this table doesn't yet.
    """
    known = ITEM_KEYS.get(kind)
    if known is None or item.keys() <= known:
        return []
    ours = kind.endswith("_output") or (kind == "message" and item.get("role") != "assistant")
    found: list[Problem] = []
    for key in item:
        if key not in known:
            # A key that would read as several steps is named in the message only.
            position = f"{where}.{key}" if isinstance(key, str) and key.isidentifier() else where
            certainty: Certainty = "refused" if ours or key in OF_CHAT else "some"
            problem = unknown("responses.item_keys", f"{where}.{key}", certainty)
            found.append(replace(problem, position=position))
    return found


def _status(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    """Three values [API description]; `null` is none [recorded: 2 accepted]."""
    value = item.get("status")
    if value is None or kind not in WITH_STATUS:
        return []
    where = f"{where}.status"
    if not isinstance(value, str):
        return [wrong_type("responses.status", where, "a string", value)]
    if value not in STATUSES:
        return [wrong_value("responses.status", where, value, STATUSES)]
    # The description has it, and the endpoint answered this [reported: litellm#13420]; no recording sends it.
    return [unknown("responses.status", where, "some")] if kind == "reasoning" else []


def _item_id(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    """The prefix of an item's id names its type."""
    where = f"{where}.id"
    value = item.get("id")
    if value is None:
        return []
    if not isinstance(value, str):
        return [wrong_type("responses.item_id", where, "a string", value)]
    prefix = ID_PREFIXES.get(kind)
    if kind == "message" and item.get("role") != "assistant":
        prefix = None
    if prefix is not None and not value.startswith(prefix):
        message = f"Invalid '{where}': '{value}'. Expected an ID that begins with '{prefix}'."
        certainty: Certainty = "refused" if kind in KNOWN_PREFIXES else "some"
        return [
            Problem(
                "responses.item_id", where, message, certainty, param=where, code="invalid_value"
            )
        ]
    if len(value) > MAX_ITEM_ID:
        return [long_string("responses.item_id", where, MAX_ITEM_ID, len(value))]
    return []


def _message(where: str, item: Mapping[str, Any]) -> list[Problem]:
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
        return [
            wrong_type(
                "responses.content",
                f"{where}.content",
                "one of a string or array of objects",
                content,
            )
        ]
    found: list[Problem] = []
    for index, part in enumerate(content):
        found += _part(f"{where}.content[{index}]", part, assistant=role == "assistant")
    return found


def _part(where: str, part: Any, *, assistant: bool) -> list[Problem]:
    if not isinstance(part, Mapping):
        return [wrong_type("responses.parts", where, "an object", part)]
    kind = part.get("type")
    if kind is None:
        return [missing("responses.parts", f"{where}.type")]
    allowed = ASSISTANT_PARTS if assistant else INPUT_PARTS
    if kind not in allowed:
        # What stands on the long list of parts is refused in fewer places than the description says.
        certainty: Certainty = "some" if not assistant and kind in OTHER_PARTS else "refused"
        return [wrong_value("responses.parts", f"{where}.type", kind, allowed, certainty)]
    key = {"input_text": "text", "output_text": "text", "refusal": "refusal"}.get(kind)
    if key is not None and part.get(key) is None:
        return [missing("responses.parts", f"{where}.{key}")]
    if key is not None and not isinstance(part.get(key), str):
        return [wrong_type("responses.parts", f"{where}.{key}", "a string", part.get(key))]
    if kind in ("input_image", "input_file"):
        return _media(where, kind, part)
    return (
        media.check_text("responses.part_length", f"{where}.text", part["text"])
        if kind == "input_text"
        else []
    )


def _media(where: str, kind: str, part: Mapping[str, Any]) -> list[Problem]:
    """Images and files of a kind and a size that the API takes."""
    if kind == "input_image":
        url = part.get("image_url")
        return media.check_image(
            "responses.image_type", "responses.part_length", f"{where}.image_url", url
        )
    data, url = part.get("file_data"), part.get("file_url")
    found = media.check_file_data(
        "responses.file_data", "responses.part_length", f"{where}.file_data", data
    )
    return found or media.check_file_url("responses.file_url", f"{where}.file_url", url)


def _reasoning(where: str, item: Mapping[str, Any]) -> list[Problem]:
    """`summary` is required even when empty."""
    if item.get("summary") is None:
        return [missing("responses.reasoning_summary", f"{where}.summary")]
    if not is_array(item.get("summary")):
        return [
            wrong_type(
                "responses.reasoning_summary",
                f"{where}.summary",
                "an array of objects",
                item.get("summary"),
            )
        ]
    return []


def _call(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    found = _call_id(f"{where}.call_id", item.get("call_id"))
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
        message = "The call was cut off before its arguments ended; it should have been dropped, not answered."
        found.append(Problem("responses.truncated_call", where, message, "discouraged"))
    if found:
        found = about(found, text(item.get("call_id")), name)
    return found


def _call_id(where: str, value: Any) -> list[Problem]:
    if value is None:
        return [missing("responses.call_id", where)]
    if not isinstance(value, str):
        return [wrong_type("responses.call_id", where, "a string", value)]
    if not value:
        return [empty_string("responses.call_id", where)]
    return (
        [long_string("responses.call_id", where, MAX_CALL_ID, len(value))]
        if len(value) > MAX_CALL_ID
        else []
    )


def _output(where: str, kind: str, item: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    hosted = (
        kind == "function_call_output"
        and item.get("call_id") is None
        and item.get("name") is not None
    )
    if not hosted:  # an output that the host injects names a tool instead of a call
        found += _call_id(f"{where}.call_id", item.get("call_id"))
    where = f"{where}.output"
    output = item.get("output")
    if output is None:
        return [*found, missing("responses.output", where)]
    if isinstance(output, str):
        too_long = len(output) > MAX_OUTPUT
        return (
            [*found, long_string("responses.output", where, MAX_OUTPUT, len(output))]
            if too_long
            else found
        )
    if not is_array(output):
        return [
            *found,
            wrong_type("responses.output", where, "one of a string or array of objects", output),
        ]
    for index, part in enumerate(output):
        found += _part(f"{where}[{index}]", part, assistant=False)
    return found
