"""Ways to break a valid history of Responses, one rule at a time."""

from __future__ import annotations

import copy
import random
from typing import Any

from breaking import LONG, Mutation, find_entries, nested_value, register_in, set_copy
from composed import PNG, History

MUTATIONS: dict[str, Mutation] = {}
"""By name."""

responses = register_in(MUTATIONS)


@responses
def responses_entry_null(rng: random.Random, history: History) -> str | None:
    history.insert(rng.randrange(len(history) + 1), None)
    return "responses.input"


@responses
def responses_items_in_a_list(rng: random.Random, history: History) -> str | None:
    start = rng.randrange(len(history))
    history[start:] = [history[start:]]
    return "responses.input"


@responses
def responses_role_of_another_program(rng: random.Random, history: History) -> str | None:
    history[rng.choice(_messages(history, "user"))]["role"] = "human"
    return "responses.role"


@responses
def responses_nested_too_deeply(rng: random.Random, history: History) -> str | None:
    history.append({"role": "user", "content": nested_value(321)})
    return "responses.nesting"


@responses
def responses_calls_interleaved(rng: random.Random, history: History) -> str | None:
    found = [index for index in _functions(history) if index + 1 in _functions(history)]
    if not found:
        return None
    history.insert(rng.choice(found) + 1, {"role": "assistant", "content": "And this."})
    return "responses.interleaved_calls"


@responses
def responses_call_cut_off(rng: random.Random, history: History) -> str | None:
    if not _functions(history):
        return None
    history[rng.choice(_functions(history))] |= {
        "status": "incomplete",
        "arguments": '{"city": "Os',
    }
    return "responses.truncated_call"


def _functions(history: History) -> list[int]:
    return find_entries(history, lambda i: i.get("type") == "function_call")


def _outputs(history: History, kind: str = "_call_output") -> list[int]:
    return find_entries(
        history, lambda i: str(i.get("type")).endswith(kind) and isinstance(i.get("call_id"), str)
    )


def _outputs_of_functions(history: History) -> list[int]:
    return find_entries(history, lambda i: i.get("type") == "function_call_output")


def _messages(history: History, *roles: str) -> list[int]:
    return find_entries(
        history, lambda i: i.get("type") in (None, "message") and i.get("role") in roles
    )


@responses
def responses_output_lost(rng: random.Random, history: History) -> str | None:
    if not _outputs(history):
        return None
    del history[rng.choice(_outputs(history))]
    return "responses.output_for_call"


@responses
def responses_outputs_cut_off(rng: random.Random, history: History) -> str | None:
    if not _outputs(history):
        return None
    del history[rng.choice(_outputs(history)) :]
    return "responses.output_for_call"


@responses
def responses_call_trimmed_away(rng: random.Random, history: History) -> str | None:
    if not _functions(history):
        return None
    del history[rng.choice(_functions(history))]
    return "responses.call_for_output"


@responses
def responses_output_before_its_call(rng: random.Random, history: History) -> str | None:
    if not _outputs(history):
        return None
    history.insert(0, history.pop(rng.choice(_outputs(history))))
    return "responses.call_for_output"


@responses
def responses_output_twice(rng: random.Random, history: History) -> str | None:
    if not _outputs(history):
        return None
    index = rng.choice(_outputs(history))
    again = {key: value for key, value in history[index].items() if key != "id"}
    history.insert(rng.randint(index + 1, len(history)), copy.deepcopy(again))
    return "responses.duplicate_output"


@responses
def responses_output_of_nothing(rng: random.Random, history: History) -> str | None:
    output = {"type": "function_call_output", "call_id": "call_ghost", "output": "x"}
    history.insert(rng.randint(0, len(history)), output)
    return "responses.call_for_output"


@responses
def responses_output_of_another_kind(rng: random.Random, history: History) -> str | None:
    if not _outputs_of_functions(history):
        return None
    history[rng.choice(_outputs_of_functions(history))]["type"] = "custom_tool_call_output"
    return "responses.call_for_output"


@responses
def responses_approval_unanswered(rng: random.Random, history: History) -> str | None:
    request = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "wiki",
        "name": "ask",
        "arguments": "{}",
    }
    history.insert(0, request)
    return "responses.approval_for_request"


@responses
def responses_approval_of_nothing(rng: random.Random, history: History) -> str | None:
    response = {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_ghost",
        "approve": True,
    }
    history.insert(0, response)
    return "responses.request_for_approval"


def _call_id(history: History, old: str, new: Any) -> None:
    for item in history:
        if isinstance(item, dict) and item.get("call_id") == old:
            item["call_id"] = new


@responses
def responses_call_id_too_long(rng: random.Random, history: History) -> str | None:
    if not _functions(history):
        return None
    _call_id(history, history[rng.choice(_functions(history))]["call_id"], LONG)
    return "responses.call_id"


@responses
def responses_call_id_missing(rng: random.Random, history: History) -> str | None:
    if not _functions(history):
        return None
    _call_id(history, history[rng.choice(_functions(history))]["call_id"], None)
    return "responses.call_id"


@responses
def responses_call_id_empty(rng: random.Random, history: History) -> str | None:
    if not _functions(history):
        return None
    _call_id(history, history[rng.choice(_functions(history))]["call_id"], "")
    return "responses.call_id"


@responses
def responses_call_ids_the_same(rng: random.Random, history: History) -> str | None:
    if len(_functions(history)) < 2:
        return None
    first, second = rng.sample(_functions(history), 2)
    _call_id(history, history[first]["call_id"], history[second]["call_id"])
    return "responses.duplicate_call_id"


@responses
def responses_item_twice(rng: random.Random, history: History) -> str | None:
    places = find_entries(
        history,
        lambda i: isinstance(i.get("id"), str) and i.get("type") in ("message", "function_call"),
    )
    if not places:
        return None
    index = rng.choice(places)
    history.insert(index + 1, copy.deepcopy(history[index]))
    return "responses.duplicate_item"


@responses
def responses_item_id_of_a_call(rng: random.Random, history: History) -> str | None:
    if not _functions(history):
        return None
    history[rng.choice(_functions(history))]["id"] = "call_123"
    return "responses.item_id"


@responses
def responses_item_id_too_long(rng: random.Random, history: History) -> str | None:
    if not _functions(history):
        return None
    history[rng.choice(_functions(history))]["id"] = f"fc_{LONG}"
    return "responses.item_id"


@responses
def responses_message_id_of_another_host(rng: random.Random, history: History) -> str | None:
    places = find_entries(
        history, lambda i: i.get("type") == "message" and i.get("role") == "assistant"
    )
    if not places:
        return None
    history[rng.choice(places)]["id"] = "chatcmpl-1"
    return "responses.item_id"


@responses
def responses_reasoning_before_a_user(rng: random.Random, history: History) -> str | None:
    reasoning = {"type": "reasoning", "id": "rs_ghost", "summary": [], "encrypted_content": "gAAA"}
    history.insert(rng.choice([*_messages(history, "user"), len(history)]), reasoning)
    return "responses.dangling_reasoning"


@responses
def responses_what_reasoning_led_to_lost(rng: random.Random, history: History) -> str | None:
    places = find_entries(
        history, lambda i: i.get("type") == "reasoning" and isinstance(i.get("id"), str)
    )
    if not places:
        return None
    del history[rng.choice(places) + 1 :]
    return "responses.dangling_reasoning"


@responses
def responses_image_as_chat_spells_it(rng: random.Random, history: History) -> str | None:
    url = f"data:image/png;base64,{PNG}"
    image = rng.choice([{"url": url}, PNG, "data:image/png;base64,"])
    content = [{"type": "input_text", "text": "?"}, {"type": "input_image", "image_url": image}]
    history.append({"role": "user", "content": content})
    return "responses.media_source"


@responses
def responses_summary_missing(rng: random.Random, history: History) -> str | None:
    places = find_entries(history, lambda i: i.get("type") == "reasoning")
    if not places:
        return None
    del history[rng.choice(places)]["summary"]
    return "responses.reasoning_summary"


def _in_function(
    rng: random.Random, history: History, key: str, value: Any, rule: str
) -> str | None:
    if not _functions(history):
        return None
    item = history[rng.choice(_functions(history))]
    if value is ...:
        del item[key]
    else:
        set_copy(item, key, value)
    return rule


@responses
def responses_arguments_an_object(rng: random.Random, history: History) -> str | None:
    return _in_function(rng, history, "arguments", {"city": "Oslo"}, "responses.arguments")


@responses
def responses_arguments_missing(rng: random.Random, history: History) -> str | None:
    return _in_function(rng, history, "arguments", ..., "responses.arguments")


@responses
def responses_arguments_cut(rng: random.Random, history: History) -> str | None:
    return _in_function(rng, history, "arguments", '{"city": "Os', "responses.arguments_json")


@responses
def responses_arguments_too_long(rng: random.Random, history: History) -> str | None:
    return _in_function(
        rng, history, "arguments", '{"x":"' + "y" * 1_100_000 + '"}', "responses.arguments_length"
    )


@responses
def responses_name_with_dots(rng: random.Random, history: History) -> str | None:
    return _in_function(rng, history, "name", "weather.now", "responses.call_name")


@responses
def responses_unknown_key(rng: random.Random, history: History) -> str | None:
    if not _outputs_of_functions(history):
        return None
    history[rng.choice(_outputs_of_functions(history))]["index"] = 0
    return "responses.item_keys"


@responses
def responses_result_as_chat_writes_it(rng: random.Random, history: History) -> str | None:
    places = [at for at in _outputs_of_functions(history) if isinstance(history[at]["output"], str)]
    if not places:
        return None
    at = rng.choice(places)
    history[at] = {
        "role": "tool",
        "tool_call_id": history[at]["call_id"],
        "content": history[at]["output"],
    }
    return "responses.role"


@responses
def responses_parts_of_chat(rng: random.Random, history: History) -> str | None:
    places = _messages(history, "user")
    if not places:
        return None
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    history[rng.choice(places)]["content"] = [{"type": "text", "text": "x"}, image]
    return "responses.parts"


@responses
def responses_content_null(rng: random.Random, history: History) -> str | None:
    places = _messages(history, "user", "developer", "system")
    if not places or len(history) < 2:
        return None
    history[rng.choice(places)]["content"] = None
    return "responses.content"


@responses
def responses_output_null(rng: random.Random, history: History) -> str | None:
    if not _outputs_of_functions(history):
        return None
    history[rng.choice(_outputs_of_functions(history))]["output"] = None
    return "responses.output"


@responses
def responses_output_an_object(rng: random.Random, history: History) -> str | None:
    if not _outputs_of_functions(history):
        return None
    history[rng.choice(_outputs_of_functions(history))]["output"] = {"rain": 3}
    return "responses.output"


@responses
def responses_type_missing(rng: random.Random, history: History) -> str | None:
    places = find_entries(
        history, lambda i: i.get("type") == "function_call_output" and "id" not in i
    )
    if not places:
        return None
    del history[rng.choice(places)]["type"]
    return "responses.input"


@responses
def responses_reference_to_nothing(rng: random.Random, history: History) -> str | None:
    history.insert(0, {"type": "item_reference"})
    return "responses.input"


@responses
def responses_not_a_number(rng: random.Random, history: History) -> str | None:
    if not _messages(history, "user"):
        return None
    history[rng.choice(_messages(history, "user"))]["content"] = [
        {"type": "input_text", "text": float("nan")}
    ]
    return "responses.encoding"
