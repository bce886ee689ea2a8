"""The Responses rules about the sequence of items: calls and their outputs, reasoning and what it led to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lutumpy.rules.problem import Certainty, Problem, items, text

CALL_WORDS: Mapping[str, str] = {
    "function_call": "function call",
    "custom_tool_call": "custom tool call",
    "tool_search_call": "tool search call",
    "computer_call": "computer call",
    "local_shell_call": "local shell call",
    "shell_call": "shell call",
    "apply_patch_call": "apply patch call",
}
"""Item types that wait for an output of ours, as the errors name them."""

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
OUTPUT_WORDS: Mapping[str, str] = {
    "tool_search_output": "tool search call",
    "local_shell_call_output": "local shell call",
    "computer_call_output": "computer call",
}
AFTER_REASONING = frozenset(
    "reasoning function_call custom_tool_call tool_search_call computer_call local_shell_call shell_call "
    "apply_patch_call web_search_call file_search_call code_interpreter_call image_generation_call mcp_call "
    "mcp_list_tools mcp_approval_request program compaction item_reference".split()
)
"""What a model puts after its reasoning, besides a message that has its id."""


def check_sequence(
    entries: Any, server_held_prefix: bool, required_reasoning: Mapping[str, str] | None = None
) -> list[Problem]:
    """Problems of the order and pairing of items; shapes are somebody else's."""
    if isinstance(entries, str):
        return []
    found = _item_ids(entries)
    found += _reasoning_followed(entries)
    if required_reasoning:
        found += _reasoning_present(entries, required_reasoning)
    return found + _pairing(entries, server_held_prefix)


def _entries(entries: Any) -> list[tuple[int, str, Mapping[str, Any]]]:
    found: list[tuple[int, str, Mapping[str, Any]]] = []
    for index, item in enumerate(items(entries)):
        if isinstance(item, Mapping):
            kind = text(item.get("type")) or ("message" if "role" in item else "item_reference")
            found.append((index, kind, item))
    return found


def _item_ids(entries: Any) -> list[Problem]:
    """No item comes twice."""
    found: list[Problem] = []
    seen: set[str] = set()
    for index, kind, item in _entries(entries):
        item_id = text(item.get("id"))
        if item_id is None:
            continue
        if item_id in seen:
            message = f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
            certainty: Certainty = "some" if kind.endswith("_output") else "refused"
            found.append(
                Problem(
                    "responses.duplicate_item",
                    f"input[{index}].id",
                    message,
                    certainty,
                    param="input",
                )
            )
        seen.add(item_id)
    return found


def _reasoning_followed(entries: Any) -> list[Problem]:
    """A reasoning item comes with the item that it led to, a message by its id [recorded; 92 replays obey]."""
    found: list[Problem] = []
    listed = _entries(entries)
    for number, (index, kind, item) in enumerate(listed):
        if kind != "reasoning":
            continue
        after = listed[number + 1] if number + 1 < len(listed) else None
        certainty: Certainty = "refused"
        if after is not None:
            if after[1] in AFTER_REASONING:
                continue
            if after[1] == "message" and after[2].get("role") == "assistant":
                if after[2].get("id") is not None:
                    continue
                if after[2].get("type") == "message":
                    certainty = "some"
        item_id = text(item.get("id"))
        if item_id is None:
            certainty = "some"
        message = f"Item '{item_id}' of type 'reasoning' was provided without its required following item."
        found.append(
            Problem(
                "responses.dangling_reasoning", f"input[{index}]", message, certainty, param="input"
            )
        )
    return found


def _reasoning_present(entries: Any, required: Mapping[str, str]) -> list[Problem]:
    """An item that is sent back by its id brings the reasoning that led to it."""
    found: list[Problem] = []
    seen: set[str] = set()
    for index, kind, item in _entries(entries):
        item_id = text(item.get("id"))
        if item_id is None:
            continue
        seen.add(item_id)
        reasoning = required.get(item_id)
        if reasoning is not None and reasoning not in seen:
            message = f"Item '{item_id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
            found.append(
                Problem(
                    "responses.required_reasoning",
                    f"input[{index}]",
                    message,
                    "refused",
                    param="input",
                )
            )
    return found


@dataclass(slots=True)
class _Call:
    position: str
    kind: str
    call_id: str
    needs_output: bool
    tools: tuple[str, ...] = ()
    answered: bool = False


def _pairing(entries: Any, server_held_prefix: bool) -> list[Problem]:
    """Each call has one output, anywhere after it."""
    found: list[Problem] = []
    calls: dict[
        str, list[_Call]
    ] = {}  # by id: calls of different kinds are told apart by their outputs
    answers: set[tuple[str, str]] = set()
    waiting: dict[str, _Call] = {}  # calls since the last output
    between = False
    for index, kind, item in _entries(entries):
        where = f"input[{index}]"
        call_id = text(item.get("call_id"))
        if call_id is None:
            between = bool(waiting)
            continue
        if kind in CALL_WORDS:
            if between and waiting:
                found += _interleaved(where, waiting)
                waiting, between = {}, False
            name = text(item.get("name"))
            tools = (name,) if name else ()
            if call_id in calls:
                message = f"The call_id {call_id} is used by more than one call."
                rule = "responses.duplicate_call_id"
                found.append(
                    Problem(rule, where, message, "some", call_ids=(call_id,), tools=tools)
                )
                if any(other.kind == kind for other in calls[call_id]):
                    continue
            needs = kind != "tool_search_call" or item.get("execution") == "client"
            call = _Call(where, kind, call_id, needs, tools)
            calls.setdefault(call_id, []).append(call)
            if needs:
                waiting[call_id] = call
        elif kind in OUTPUT_TO_CALLS:
            found += _output(where, kind, call_id, calls, answers, server_held_prefix)
            answers.add((kind, call_id))
            waiting, between = {}, False
    for call in [call for same in calls.values() for call in same]:
        if call.needs_output and not call.answered:
            message = f"No tool output found for {CALL_WORDS[call.kind]} {call.call_id}."
            rule, ids = "responses.output_for_call", (call.call_id,)
            found.append(
                Problem(
                    rule,
                    call.position,
                    message,
                    "refused",
                    param="input",
                    call_ids=ids,
                    tools=call.tools,
                )
            )
    return found


def _interleaved(where: str, waiting: Mapping[str, _Call]) -> list[Problem]:
    """DeepSeek wants parallel calls side by side, and says this [recorded]; OpenAI does not mind."""
    first = next(iter(waiting))
    message = f"No tool output found for tool call {first}."
    code = "invalid_request_error"
    return [
        Problem("responses.interleaved_calls", where, message, "some", code=code, call_ids=(first,))
    ]


def _output(
    where: str,
    kind: str,
    call_id: str,
    calls: dict[str, list[_Call]],
    answers: set[tuple[str, str]],
    server_held_prefix: bool,
) -> list[Problem]:
    ids = (call_id,)
    same_id = calls.get(call_id, [])
    fitting = [c for c in same_id if c.kind in OUTPUT_TO_CALLS[kind]]
    # Where calls of several kinds share an id, the output is for the one that waits for it.
    call = next(
        (c for c in fitting if c.needs_output and not c.answered), fitting[0] if fitting else None
    )
    if (kind, call_id) in answers:
        message = f"The call {call_id} has more than one output."
        tools = call.tools if call is not None else ()
        rule = "responses.duplicate_output"
        return [Problem(rule, where, message, "some", param="input", call_ids=ids, tools=tools)]
    if call is not None:
        call.answered = True
        return []
    if not same_id and server_held_prefix:
        return []
    if kind in ("function_call_output", "custom_tool_call_output"):
        words = kind.removesuffix("_call_output").replace("_", " ")
        message = f"No tool call found for {words} call output with call_id {call_id}."
    else:
        word = OUTPUT_WORDS.get(kind, kind.removesuffix("_output").replace("_", " "))
        message = f"No tool call found for {word} output with call_id {call_id}."
    return [
        Problem("responses.call_for_output", where, message, "refused", param="input", call_ids=ids)
    ]
