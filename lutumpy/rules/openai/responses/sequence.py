"""The rules of Responses about the order of items: calls and outputs, reasoning and what follows.

Sources: recorded exchanges, and the refusals that users report.
"""

# Unlike Chat Completions, this API wants no output right after its call: an output may be
# anywhere later. Reasoning is bound more tightly: it comes right before the item that it led to,
# and the server remembers by their ids which two belong together.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lutumpy.rules.openai.responses.kinds import (
    OUTPUT_TO_CALLS,
    calls_of_output,
    id_of_call,
    is_by_model,
    is_call,
    is_led_to,
    is_unknown_call,
    kind_of_item,
    may_stay_open,
    waits_for_output,
    words_of_call,
    words_of_output,
)
from lutumpy.rules.problem import Certainty, Problem, items, text


def check_sequence(
    entries: Any, server_held_prefix: bool, required_reasoning: Mapping[str, str] | None = None
) -> list[Problem]:
    """The problems of the order and pairing of items; `items.py` checks their shapes.

    Args:
        entries: The request's `input`, of any type.
        server_held_prefix: The server holds the start of the conversation, with calls whose outputs
            are here.
        required_reasoning: For an item's id, the id of the reasoning item that has to precede it.
    """
    if isinstance(entries, str):
        return []
    found = _check_item_ids(entries)
    found += _check_reasoning_followed(entries)
    if required_reasoning:
        found += _check_reasoning_present(entries, required_reasoning)
    found += _check_pairing(entries, server_held_prefix)
    return found + _check_approvals(entries, server_held_prefix)


def _typed_items(entries: Any) -> list[tuple[int, str, Mapping[str, Any]]]:
    """The place, type and value of every item that is an object."""
    found: list[tuple[int, str, Mapping[str, Any]]] = []
    for index, item in enumerate(items(entries)):
        if isinstance(item, Mapping):
            found.append((index, kind_of_item(item), item))
    return found


def _check_item_ids(entries: Any) -> list[Problem]:
    """No item comes twice."""
    found: list[Problem] = []
    seen: set[str] = set()
    for index, kind, item in _typed_items(entries):
        item_id = text(item.get("id"))
        if item_id is None:
            continue
        if item_id in seen:
            message = (
                f"Duplicate item found with id {item_id}. Remove duplicate items from your input "
                "and try again."
            )
            # Whether a repeated id of an output is refused is not known.
            certainty: Certainty = "some" if kind.endswith("_output") else "refused"
            rule, where = "responses.duplicate_item", f"input[{index}].id"
            found.append(Problem(rule, where, message, certainty, param="input"))
        seen.add(item_id)
    return found


def _check_reasoning_followed(entries: Any) -> list[Problem]:
    """A reasoning item comes before the item that it led to; a message has its id.

    Recorded: refusals, and 92 accepted requests that send reasoning back like this.
    """
    found: list[Problem] = []
    listed = _typed_items(entries)
    for number, (index, kind, item) in enumerate(listed):
        if kind != "reasoning":
            continue
        after = listed[number + 1] if number + 1 < len(listed) else None
        certainty: Certainty = "refused"
        if after is not None:
            if is_led_to(after[2]):
                continue
            if is_by_model(after[2]) and after[2].get("type") == "message":
                certainty = "some"
        item_id = text(item.get("id"))
        if item_id is None:
            certainty = "some"
        message = (
            f"Item '{item_id}' of type 'reasoning' was provided without its required following "
            "item."
        )
        rule, where = "responses.dangling_reasoning", f"input[{index}]"
        found.append(Problem(rule, where, message, certainty, param="input"))
    return found


def _check_reasoning_present(entries: Any, required: Mapping[str, str]) -> list[Problem]:
    """An item that is sent back with its id comes after the reasoning that led to it."""
    found: list[Problem] = []
    seen: set[str] = set()
    for index, kind, item in _typed_items(entries):
        item_id = text(item.get("id"))
        if item_id is None:
            continue
        seen.add(item_id)
        reasoning = required.get(item_id)
        if reasoning is not None and reasoning not in seen:
            message = (
                f"Item '{item_id}' of type '{kind}' was provided without its required 'reasoning' "
                f"item: '{reasoning}'."
            )
            rule, where = "responses.required_reasoning", f"input[{index}]"
            found.append(Problem(rule, where, message, "refused", param="input"))
    return found


@dataclass(slots=True)
class _Call:
    """A call, and whether its output has come."""

    position: str
    kind: str
    call_id: str
    needs_output: bool
    tools: tuple[str, ...] = ()
    answered: bool = False


def _check_pairing(entries: Any, server_held_prefix: bool) -> list[Problem]:
    """Each call has one output, anywhere after it."""
    found: list[Problem] = []
    # By id. Calls of different types may share one: their outputs tell them apart.
    calls: dict[str, list[_Call]] = {}
    # The type and the id of every output so far.
    outputs: set[tuple[str, str]] = set()
    # The calls since the last output, by id, and whether another item comes after them.
    waiting: dict[str, _Call] = {}
    between = False
    for index, kind, item in _typed_items(entries):
        where = f"input[{index}]"
        call_id = id_of_call(item)
        if call_id is None:
            between = bool(waiting)
            continue
        if is_call(kind):
            if between and waiting:
                found.append(_interleaved(where, waiting))
                waiting, between = {}, False
            name = text(item.get("name"))
            tools = (name,) if name else ()
            if call_id in calls:
                message = f"The call_id {call_id} is used by more than one call."
                rule = "responses.duplicate_call_id"
                ids = (call_id,)
                found.append(Problem(rule, where, message, "some", call_ids=ids, tools=tools))
                if any(other.kind == kind for other in calls[call_id]):
                    continue
            needs = waits_for_output(item)
            call = _Call(where, kind, call_id, needs, tools)
            calls.setdefault(call_id, []).append(call)
            if needs:
                waiting[call_id] = call
        elif calls_of_output(kind):
            found += _check_output(where, kind, call_id, calls, outputs, server_held_prefix)
            outputs.add((kind, call_id))
            waiting, between = {}, False
    for call in [call for same in calls.values() for call in same]:
        if call.needs_output and not call.answered:
            found.append(_unanswered(call))
    return found


def find_open_calls(entries: Any) -> list[Problem]:
    """The calls that have no output and need none yet, as the problems that others would be."""
    answered: set[tuple[str, str]] = set()
    found: list[Problem] = []
    for index, kind, item in reversed(_typed_items(entries)):
        call_id = id_of_call(item)
        if call_id is None:
            continue
        if calls_of_output(kind):
            answered.update([(call, call_id) for call in calls_of_output(kind)])
        elif may_stay_open(item) and (kind, call_id) not in answered:
            name = text(item.get("name"))
            call = _Call(f"input[{index}]", kind, call_id, True, (name,) if name else ())
            found.append(replace(_unanswered(call), path=(index,)))
    return found[::-1]


def _check_approvals(entries: Any, server_held_prefix: bool) -> list[Problem]:
    """Each request for approval has a response, and each response its request.

    The first refusal is reported by many programs, the second by one, both with these texts; a
    request that the server holds is known to be enough for a response without `conversation`.
    """
    requests: dict[str, tuple[int, str]] = {}
    responses: dict[str, int] = {}
    for index, kind, item in _typed_items(entries):
        if kind == "mcp_approval_request" and (item_id := text(item.get("id"))) is not None:
            requests.setdefault(item_id, (index, text(item.get("name")) or ""))
        elif kind == "mcp_approval_response":
            request_id = text(item.get("approval_request_id"))
            if request_id is not None:
                responses.setdefault(request_id, index)
    found: list[Problem] = []
    for request_id, (index, name) in requests.items():
        if request_id not in responses:
            message = f"The following MCP approval requests do not have an approval: {request_id}"
            rule, where = "responses.approval_for_request", f"input[{index}]"
            found.append(
                Problem(
                    rule,
                    where,
                    message,
                    "refused",
                    param="input",
                    call_ids=(request_id,),
                    tools=(name,) if name else (),
                )
            )
    for request_id, index in responses.items():
        if request_id not in requests and not server_held_prefix:
            message = (
                "The following MCP approval requests have approval responses but weren't passed as "
                f"input: {request_id}"
            )
            rule, where, ids = "responses.request_for_approval", f"input[{index}]", (request_id,)
            found.append(Problem(rule, where, message, "refused", param="input", call_ids=ids))
    return found


def _unanswered(call: _Call) -> Problem:
    message = f"No tool output found for {words_of_call(call.kind)} {call.call_id}."
    return Problem(
        "responses.output_for_call",
        call.position,
        message,
        # Whether the provider has run a call of an unknown kind itself is not known.
        "some" if is_unknown_call(call.kind) else "refused",
        param="input",
        call_ids=(call.call_id,),
        tools=call.tools,
    )


def _interleaved(where: str, waiting: Mapping[str, _Call]) -> Problem:
    """DeepSeek wants parallel calls side by side and answers this [recorded]; OpenAI doesn't."""
    first = next(iter(waiting))
    message = f"No tool output found for tool call {first}."
    rule, code = "responses.interleaved_calls", "invalid_request_error"
    return Problem(rule, where, message, "some", code=code, call_ids=(first,))


def _check_output(
    where: str,
    kind: str,
    call_id: str,
    calls: dict[str, list[_Call]],
    outputs: set[tuple[str, str]],
    server_held_prefix: bool,
) -> list[Problem]:
    ids = (call_id,)
    same_id = calls.get(call_id, [])
    fitting = [call for call in same_id if call.kind in calls_of_output(kind)]
    # Where calls of several types share an id, the output is for the one that waits for it.
    waiting = [call for call in fitting if call.needs_output and not call.answered]
    call = next(iter(waiting or fitting), None)
    if (kind, call_id) in outputs:
        message = f"The call {call_id} has more than one output."
        tools = call.tools if call is not None else ()
        rule = "responses.duplicate_output"
        return [Problem(rule, where, message, "some", param="input", call_ids=ids, tools=tools)]
    if call is not None:
        call.answered = True
        return []
    if not same_id and server_held_prefix:
        return []
    message = f"No tool call found for {words_of_output(kind)} with call_id {call_id}."
    certainty: Certainty = "refused" if kind in OUTPUT_TO_CALLS else "some"
    rule = "responses.call_for_output"
    return [Problem(rule, where, message, certainty, param="input", call_ids=ids)]
