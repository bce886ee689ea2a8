"""Results of calls as the items that answer them on Responses."""

from __future__ import annotations

from typing import Any

from lutumpy.adapters.openai.parts import cut_output, responses_part
from lutumpy.adapters.openai.responses.tool_search import found_definitions
from lutumpy.core.items import APPROVED, ImagePart, ResultBlock, TextPart
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.plain import json_values
from lutumpy.rules.openai.limits import MAX_TEXT_PART

__all__ = ["CALLED_BY_PROGRAMS", "output_item"]

# One white pixel, as PNG.
_EMPTY_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4"
    "DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
_SHELL_KEYS = {"stdout", "stderr", "outcome"}
_ACKNOWLEDGED = "acknowledged_safety_checks"
# Kinds of calls that a program of the provider may make: their outputs have a field `caller`.
CALLED_BY_PROGRAMS = frozenset({"function", "custom", "shell_call", "apply_patch_call"})


def output_item(result: ResultBlock, call_id: str, kind: str) -> dict[str, Any]:
    """A result as the item that answers this kind of call [OpenAI's API description]."""
    if kind == SEARCH_CALL and (tools := found_definitions(result)) is not None:
        return {
            "type": "tool_search_output",
            "call_id": call_id,
            "execution": "client",
            "status": "completed",
            "tools": tools,
        }
    if kind in ("function", "custom", SEARCH_CALL):
        # A tool search may be answered like a function [recorded]; its own output takes no text.
        word = "custom_tool" if kind == "custom" else "function"
        output: Any = result.content
        if not isinstance(output, str):
            output = [responses_part(part) for part in output] or ""
        elif len(output) > MAX_TEXT_PART:
            output = cut_output(output)
        return {"type": f"{word}_call_output", "call_id": call_id, "output": output}
    failed = result.status not in ("ok", "promised")
    text = cut_output(result.text)
    if kind == "mcp_approval_request":
        # Only the one text that approves a call approves it; whatever else is here, as the
        # library's own answer to a call that nobody was asked about, refuses it.
        answer: dict[str, Any] = {
            "type": "mcp_approval_response",
            "approval_request_id": call_id,
            "approve": not failed and text == APPROVED,
        }
        return answer if answer["approve"] else {**answer, "reason": text}
    if kind == "shell_call" and (typed := _shell_output(result)) is not None:
        return {"type": "shell_call_output", "call_id": call_id, **typed}
    if kind == "shell_call":
        written = {
            "stdout": "" if failed else text,
            "stderr": text if failed else "",
            "outcome": {"type": "exit", "exit_code": 1 if failed else 0},
        }
        return {"type": "shell_call_output", "call_id": call_id, "output": [written]}
    if kind == "apply_patch_call":
        status = "failed" if failed else "completed"
        return {
            "type": "apply_patch_call_output",
            "call_id": call_id,
            "status": status,
            "output": text,
        }
    if kind == "computer_call":
        return _computer_output(result, call_id, failed=failed)
    if kind == "local_shell_call":
        return {"type": f"{kind}_output", "id": call_id, "call_id": call_id, "output": text}
    # A kind that nobody knows: all kinds but the search for tools name their outputs like this.
    return {"type": f"{kind}_output", "call_id": call_id, "output": text}


def _computer_output(result: ResultBlock, call_id: str, *, failed: bool) -> dict[str, Any]:
    """The output of a computer call, which takes a picture and no text.

    It is the result's own, if it has one. Otherwise, the call has failed: the picture is empty, and
    the status says that it is incomplete [API description]. A missing address is refused [report:
    "Invalid 'input[N].output.image_url'. Expected a valid URL"].
    """
    parts = () if isinstance(result.content, str) else result.content
    pictures = [responses_part(part) for part in parts if isinstance(part, ImagePart)]
    shown = next((part["image_url"] for part in pictures if part.get("image_url")), None)
    output = {"type": "computer_screenshot", "image_url": shown or _EMPTY_PICTURE}
    status = "incomplete" if failed or shown is None else "completed"
    answer: dict[str, Any] = {
        "type": "computer_call_output",
        "call_id": call_id,
        "output": output,
        "status": status,
    }
    for part in parts:
        value = _read_object(part.text) if isinstance(part, TextPart) else None
        if status == "completed" and value is not None and value.keys() == {_ACKNOWLEDGED}:
            answer[_ACKNOWLEDGED] = value[_ACKNOWLEDGED]
    return answer


def _shell_output(result: ResultBlock) -> dict[str, Any] | None:
    """What `lutumpy.provider_tools.ShellResult` says of each command, as the API takes it; `None`
    for any other result.
    """
    value = _read_object(result.content) if isinstance(result.content, str) else None
    if value is None or not {"output"} <= value.keys() <= {"output", "max_output_length"}:
        return None
    written = value["output"]
    if not isinstance(written, list) or not written:
        return None
    if not all(isinstance(one, dict) and one.keys() == _SHELL_KEYS for one in written):
        return None
    if value.get("max_output_length") is None:
        value.pop("max_output_length", None)
    return value


def _read_object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value = json_values.decode(text.encode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
