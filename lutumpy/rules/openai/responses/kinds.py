"""The kinds of items of Responses: which are calls, what answers them, what follows reasoning.

A kind of call that this release doesn't know is read by what all known ones have in common: a type
that ends in `_call`; and where the program answers it, a `call_id` that its output names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.problem import text

__all__ = [
    "AFTER_REASONING",
    "CALL_WORDS",
    "OUTPUT_TO_CALLS",
    "calls_of_output",
    "id_of_call",
    "is_by_model",
    "is_call",
    "is_led_to",
    "is_unknown_call",
    "kind_of_item",
    "waits_for_output",
    "words_of_call",
    "words_of_output",
]

CALL_WORDS: Mapping[str, str] = {
    "function_call": "function call",
    "custom_tool_call": "custom tool call",
    "tool_search_call": "tool search call",
    "computer_call": "computer call",
    "local_shell_call": "local shell call",
    "shell_call": "shell call",
    "apply_patch_call": "apply patch call",
}
"""Calls that the program answers, by their type, as OpenAI's texts name them."""

OUTPUT_TO_CALLS: Mapping[str, tuple[str, ...]] = {
    # A function output answered a tool search in one accepted recording.
    "function_call_output": ("function_call", "tool_search_call"),
    "custom_tool_call_output": ("custom_tool_call",),
    "tool_search_output": ("tool_search_call",),
    "computer_call_output": ("computer_call",),
    "local_shell_call_output": ("local_shell_call",),
    "shell_call_output": ("shell_call",),
    "apply_patch_call_output": ("apply_patch_call",),
}
"""Which calls an output can answer, by their types."""

AFTER_REASONING = frozenset(
    "reasoning function_call custom_tool_call tool_search_call computer_call local_shell_call "
    "shell_call apply_patch_call web_search_call file_search_call code_interpreter_call "
    "image_generation_call mcp_call mcp_list_tools mcp_approval_request program compaction "
    "item_reference".split()
)
"""Items that may follow reasoning, besides a message with its id [recorded]."""

_CALL = "_call"
# Under one of these a call that the provider ran has what came of it.
_OUTCOMES = ("output", "outputs", "result", "results", "error")


def kind_of_item(item: Mapping[str, Any]) -> str:
    """The type of an item; messages and references may come without one."""
    return text(item.get("type")) or ("message" if "role" in item else "item_reference")


def is_unknown_call(kind: str) -> bool:
    """Whether a type is that of calls which this release doesn't know."""
    return kind.endswith(_CALL) and kind not in CALL_WORDS and kind not in AFTER_REASONING


def is_call(kind: str) -> bool:
    """Whether a type is that of calls which the program may answer."""
    return kind in CALL_WORDS or is_unknown_call(kind)


def may_stay_open(item: Mapping[str, Any]) -> bool:
    """Whether an item is a call that may have its output at any later time, or none yet: the flag
    `async` stands on the call itself [guide "Async tool calling"; SDK].
    """
    return item.get("async") is True and item.get("type") in ("function_call", "custom_tool_call")


def waits_for_output(item: Mapping[str, Any]) -> bool:
    """Whether an item is a call that waits for an output of the program's.

    A call of an unknown kind does as far as anybody can tell: it has an id for its output, and
    doesn't say itself what came of it.
    """
    kind = text(item.get("type")) or ""
    if may_stay_open(item):
        return False
    if kind in CALL_WORDS:
        # A search for tools that the provider runs itself needs no output of ours.
        return kind != "tool_search_call" or item.get("execution") == "client"
    if not is_unknown_call(kind) or text(item.get("call_id")) is None:
        return False
    return all(item.get(key) is None for key in _OUTCOMES)


def calls_of_output(kind: str) -> tuple[str, ...]:
    """The types of the calls that an output of a type can answer; none for what isn't an output."""
    known = OUTPUT_TO_CALLS.get(kind)
    if known is not None:
        return known
    call = kind.removesuffix("_output")
    return (call,) if call != kind and call.endswith(_CALL) else ()


def id_of_call(item: Mapping[str, Any]) -> str | None:
    """The id by which a call and its output know each other."""
    call_id = text(item.get("call_id"))
    # The API description has no `call_id` for this output: its `id` is the call's.
    if call_id is None and item.get("type") == "local_shell_call_output":
        return text(item.get("id"))
    return call_id


def is_by_model(item: Mapping[str, Any]) -> bool:
    """Whether the model wrote an item."""
    kind = kind_of_item(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return kind in AFTER_REASONING or is_unknown_call(kind)


def is_led_to(item: Mapping[str, Any]) -> bool:
    """Whether an item is one that the reasoning right before it led to; a message has its id."""
    if not is_by_model(item):
        return False
    return kind_of_item(item) != "message" or item.get("id") is not None


def words_of_call(kind: str) -> str:
    """How OpenAI's texts name a call of a type."""
    return CALL_WORDS.get(kind) or kind.replace("_", " ")


def words_of_output(kind: str) -> str:
    """How OpenAI's texts name an output of a type."""
    (call, *_) = calls_of_output(kind)
    return f"{words_of_call(call)} output"
