"""Ways to break a valid history, one rule at a time. Each gives the rule that it breaks, or `None` if nothing fits."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from composed import PNG, History, Json

Mutation = Callable[[random.Random, History], str | None]
MUTATIONS: dict[str, dict[str, Mutation]] = {
    "openai_chat": {},
    "openai_responses": {},
    "anthropic_messages": {},
}
THOROUGH: dict[str, set[str]] = {
    "openai_chat": set(),
    "openai_responses": {"calls_interleaved", "call_cut_off"},
    "anthropic_messages": {"text_behind_calls", "message_behind_calls"},
}
"""What no provider is sure to refuse: mended by `thorough=True` alone."""

LONG = "x" * 70


def _of(api: str) -> Callable[[Mutation], Mutation]:
    def register(mutation: Mutation) -> Mutation:
        MUTATIONS[api][mutation.__name__.partition("_")[2]] = mutation
        return mutation

    return register


chat, responses, anthropic = _of("openai_chat"), _of("openai_responses"), _of("anthropic_messages")


def _where(history: History, wanted: Callable[[Json], Any]) -> list[int]:
    return [
        index for index, entry in enumerate(history) if isinstance(entry, dict) and wanted(entry)
    ]


def _set(entry: Json, key: str, value: Any) -> None:
    entry[key] = copy.deepcopy(value)


# -------------------------------------------------------------------- chat


def _callers(history: History) -> list[int]:
    return _where(history, lambda m: m.get("role") == "assistant" and m.get("tool_calls"))


def _tools(history: History) -> list[int]:
    return _where(history, lambda m: m.get("role") == "tool")


def _any_call(
    rng: random.Random, history: History, kind: str | None = None
) -> tuple[int, Json] | None:
    found = [
        (index, call)
        for index in _callers(history)
        for call in history[index]["tool_calls"]
        if kind is None or call["type"] == kind
    ]
    return rng.choice(found) if found else None


def _chat_set(rng: random.Random, history: History, key: str, value: Any, rule: str) -> str | None:
    """Set, or drop for `...`, something in the function of a random call."""
    found = _any_call(rng, history, "function")
    if found is None:
        return None
    body = found[1]["function"]
    if value is ...:
        del body[key]
    else:
        _set(body, key, value)
    return rule


@chat
def chat_result_lost(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    del history[rng.choice(_tools(history))]
    return "chat.results_after_calls"


@chat
def chat_all_results_lost(rng: random.Random, history: History) -> str | None:
    if not _callers(history):
        return None
    index = rng.choice(_callers(history))
    while index + 1 < len(history) and history[index + 1]["role"] == "tool":
        del history[index + 1]
    return "chat.results_after_calls"


@chat
def chat_message_pushed_between(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    history.insert(rng.choice(_tools(history)), {"role": "user", "content": "Are you there?"})
    return "chat.results_after_calls"


@chat
def chat_result_twice(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    index = rng.choice(_tools(history))
    history.insert(index + 1, copy.deepcopy(history[index]))
    return "chat.duplicate_result"


@chat
def chat_result_of_nothing(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    history.insert(
        rng.choice(_tools(history)), {"role": "tool", "tool_call_id": "call_ghost", "content": "x"}
    )
    return "chat.unknown_call_id"


@chat
def chat_result_without_calls(rng: random.Random, history: History) -> str | None:
    index = _where(history, lambda m: m["role"] == "user")[0]
    history.insert(index, {"role": "tool", "tool_call_id": "call_ghost", "content": "x"})
    return "chat.result_without_calls"


@chat
def chat_calls_trimmed_away(rng: random.Random, history: History) -> str | None:
    if not _callers(history):
        return None
    index = rng.choice(_callers(history))
    if index and (history[index - 1]["role"] == "tool" or history[index - 1].get("tool_calls")):
        return None  # its results would stand behind other calls
    del history[index]
    return "chat.result_without_calls"


@chat
def chat_result_at_the_end(rng: random.Random, history: History) -> str | None:
    if not _tools(history) or history[-1]["role"] == "tool":
        return None
    history.append(history.pop(rng.choice(_tools(history))))
    return "chat.results_after_calls"


@chat
def chat_result_before_its_call(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    index = rng.choice(_tools(history))
    history.insert(_where(history, lambda m: m["role"] == "user")[0], history.pop(index))
    return "chat.result_without_calls"


def _rename(history: History, index: int, call: Json, new: Any) -> None:
    old = call["id"]
    for at in range(index + 1, len(history)):
        if history[at]["role"] != "tool":
            break
        if history[at]["tool_call_id"] == old:
            history[at]["tool_call_id"] = new
    call["id"] = new


@chat
def chat_id_too_long(rng: random.Random, history: History) -> str | None:
    found = _any_call(rng, history)
    if found is None:
        return None
    _rename(history, *found, LONG)
    return "chat.call_id"


@chat
def chat_id_a_number(rng: random.Random, history: History) -> str | None:
    found = _any_call(rng, history)
    if found is None:
        return None
    _rename(history, *found, 17)
    return "chat.call_id"


@chat
def chat_id_missing(rng: random.Random, history: History) -> str | None:
    found = _any_call(rng, history)
    if found is None:
        return None
    _rename(history, *found, None)
    return "chat.call_id"


@chat
def chat_result_id_missing(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    del history[rng.choice(_tools(history))]["tool_call_id"]
    return "chat.tool_call_id"


@chat
def chat_ids_the_same(rng: random.Random, history: History) -> str | None:
    several = [index for index in _callers(history) if len(history[index]["tool_calls"]) > 1]
    if not several:
        return None
    index = rng.choice(several)
    first, *others = history[index]["tool_calls"]
    _rename(history, index, rng.choice(others), first["id"])
    return "chat.duplicate_call_id"


@chat
def chat_arguments_an_object(rng: random.Random, history: History) -> str | None:
    return _chat_set(rng, history, "arguments", {"city": "Oslo"}, "chat.arguments")


@chat
def chat_arguments_missing(rng: random.Random, history: History) -> str | None:
    return _chat_set(rng, history, "arguments", ..., "chat.arguments")


@chat
def chat_arguments_cut(rng: random.Random, history: History) -> str | None:
    return _chat_set(rng, history, "arguments", '{"city": "Os', "chat.arguments_json")


@chat
def chat_name_with_dots(rng: random.Random, history: History) -> str | None:
    return _chat_set(rng, history, "name", "weather.now", "chat.call_name")


@chat
def chat_name_empty(rng: random.Random, history: History) -> str | None:
    return _chat_set(rng, history, "name", "", "chat.call_name")


@chat
def chat_name_too_long(rng: random.Random, history: History) -> str | None:
    return _chat_set(rng, history, "name", LONG, "chat.call_name")


@chat
def chat_calls_empty(rng: random.Random, history: History) -> str | None:
    plain = _where(
        history, lambda m: m["role"] == "assistant" and not m.get("tool_calls") and m.get("content")
    )
    if not plain:
        return None
    history[rng.choice(plain)]["tool_calls"] = []
    return "chat.tool_calls"


@chat
def chat_call_flat(rng: random.Random, history: History) -> str | None:
    found = _any_call(rng, history, "function")
    if found is None:
        return None
    call = found[1]
    call |= call.pop("function")
    return "chat.tool_calls"


@chat
def chat_call_without_type(rng: random.Random, history: History) -> str | None:
    found = _any_call(rng, history)
    if found is None:
        return None
    del found[1]["type"]
    return "chat.tool_calls"


@chat
def chat_call_null(rng: random.Random, history: History) -> str | None:
    if not _callers(history):
        return None
    history[rng.choice(_callers(history))]["tool_calls"].append(None)
    return "chat.tool_calls"


@chat
def chat_empty_answer(rng: random.Random, history: History) -> str | None:
    history.insert(
        _where(history, lambda m: m["role"] == "user")[0] + 1,
        {"role": "assistant", "content": None},
    )
    return "chat.content"


@chat
def chat_content_null(rng: random.Random, history: History) -> str | None:
    places = _where(history, lambda m: m["role"] in ("user", "tool", "system"))
    history[rng.choice(places)]["content"] = None
    return "chat.content" if len(history) > 1 else None


@chat
def chat_content_an_object(rng: random.Random, history: History) -> str | None:
    history[rng.choice(_where(history, lambda m: m["role"] in ("user", "tool")))]["content"] = {
        "rain": 3
    }
    return "chat.content"


@chat
def chat_content_no_parts(rng: random.Random, history: History) -> str | None:
    if len(history) < 2:
        return None
    history[rng.choice(_where(history, lambda m: m["role"] in ("user", "tool", "assistant")))][
        "content"
    ] = []
    return "chat.content"


@chat
def chat_parts_of_responses(rng: random.Random, history: History) -> str | None:
    history[rng.choice(_where(history, lambda m: m["role"] == "user"))]["content"] = [
        {"type": "input_text", "text": "x"}
    ]
    return "chat.parts"


@chat
def chat_image_in_a_result(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    history[rng.choice(_tools(history))]["content"] = [{"type": "text", "text": "see"}, image]
    return "chat.parts"


@chat
def chat_role_missing(rng: random.Random, history: History) -> str | None:
    if not _tools(history):
        return None
    del history[rng.choice(_tools(history))]["role"]
    return "chat.role"


@chat
def chat_half_character(rng: random.Random, history: History) -> str | None:
    history[rng.choice(_where(history, lambda m: m["role"] == "user"))]["content"] = "smile \ud83d"
    return "chat.encoding"


# --------------------------------------------------------------- responses


@chat
def chat_entry_null(rng: random.Random, history: History) -> str | None:
    history.insert(rng.randrange(len(history) + 1), None)
    return "chat.messages"


@chat
def chat_messages_in_a_list(rng: random.Random, history: History) -> str | None:
    start = rng.randrange(len(history))
    history[start:] = [history[start:]]
    return "chat.messages"


@chat
def chat_role_in_capitals(rng: random.Random, history: History) -> str | None:
    message = rng.choice(history)
    message["role"] = message["role"].capitalize()
    return "chat.role"


@chat
def chat_role_of_another_program(rng: random.Random, history: History) -> str | None:
    history[rng.choice(_where(history, lambda m: m["role"] == "user"))]["role"] = "human"
    return "chat.role"


@chat
def chat_role_of_an_image_missing(rng: random.Random, history: History) -> str | None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    history.append({"content": [{"type": "text", "text": "?"}, image]})
    return "chat.role"


@chat
def chat_too_many_calls(rng: random.Random, history: History) -> str | None:
    if not _callers(history):
        return None
    index = rng.choice(_callers(history))
    while index + 1 < len(history) and history[index + 1]["role"] == "tool":
        del history[index + 1]
    names = [f"many_{k}" for k in range(rng.choice([129, 257, 300]))]
    function = {"name": "weather", "arguments": "{}"}
    history[index]["tool_calls"] = [
        {"id": n, "type": "function", "function": dict(function)} for n in names
    ]
    history[index + 1 : index + 1] = [
        {"role": "tool", "tool_call_id": n, "content": n} for n in names
    ]
    return "chat.tool_calls"


@chat
def chat_calls_stored_twice(rng: random.Random, history: History) -> str | None:
    if not _callers(history):
        return None
    index = rng.choice(_callers(history))
    history[index:index] = [copy.deepcopy(history[index]) for _ in range(rng.randint(1, 3))]
    return "chat.results_after_calls"


def _nested(levels: int) -> Any:
    value: Any = "x"
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return value


@chat
def chat_nested_too_deeply(rng: random.Random, history: History) -> str | None:
    history.append({"role": "user", "content": _nested(321)})
    return "chat.nesting"


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
    history.append({"role": "user", "content": _nested(321)})
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


@anthropic
def anthropic_entry_null(rng: random.Random, history: History) -> str | None:
    history.insert(rng.randrange(len(history) + 1), None)
    return "anthropic.messages"


@anthropic
def anthropic_messages_in_a_list(rng: random.Random, history: History) -> str | None:
    start = rng.randrange(len(history))
    history[start:] = [history[start:]]
    return "anthropic.messages"


@anthropic
def anthropic_role_of_another_program(rng: random.Random, history: History) -> str | None:
    history[rng.choice(_where(history, lambda m: m["role"] == "assistant"))]["role"] = "model"
    return "anthropic.role"


@anthropic
def anthropic_nested_too_deeply(rng: random.Random, history: History) -> str | None:
    return _in_block(rng, history, "tool_use", "input", {"a": _nested(320)}, "anthropic.nesting")


@anthropic
def anthropic_text_behind_calls(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "tool_use")
    if found is None:
        return None
    found[0].insert(found[1] + 1, {"type": "text", "text": "That was it."})
    return "anthropic.uses_last"


@anthropic
def anthropic_message_behind_calls(rng: random.Random, history: History) -> str | None:
    found = _blocks(history, "tool_use")
    if not found:
        return None
    content = rng.choice(["That was it.", [{"type": "text", "text": "That was it."}]])
    history.insert(rng.choice(found)[0] + 1, {"role": "assistant", "content": content})
    return "anthropic.uses_last"


def _calls(history: History, kind: str = "_call") -> list[int]:
    return _where(
        history, lambda i: str(i.get("type")).endswith(kind) and isinstance(i.get("call_id"), str)
    )


def _functions(history: History) -> list[int]:
    return _where(history, lambda i: i.get("type") == "function_call")


def _outputs(history: History, kind: str = "_call_output") -> list[int]:
    return _where(
        history, lambda i: str(i.get("type")).endswith(kind) and isinstance(i.get("call_id"), str)
    )


def _outputs_of_functions(history: History) -> list[int]:
    return _where(history, lambda i: i.get("type") == "function_call_output")


def _messages(history: History, *roles: str) -> list[int]:
    return _where(history, lambda i: i.get("type") in (None, "message") and i.get("role") in roles)


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
    places = _where(
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
    places = _where(history, lambda i: i.get("type") == "message" and i.get("role") == "assistant")
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
    places = _where(
        history, lambda i: i.get("type") == "reasoning" and isinstance(i.get("id"), str)
    )
    if not places:
        return None
    del history[rng.choice(places) + 1 :]
    return "responses.dangling_reasoning"


@responses
def responses_summary_missing(rng: random.Random, history: History) -> str | None:
    places = _where(history, lambda i: i.get("type") == "reasoning")
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
        _set(item, key, value)
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
    places = _where(history, lambda i: i.get("type") == "function_call_output" and "id" not in i)
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


# --------------------------------------------------------------- anthropic


def _blocks(history: History, kind: str) -> list[tuple[int, int]]:
    return [
        (index, number)
        for index, message in enumerate(history)
        if isinstance(message["content"], list)
        for number, block in enumerate(message["content"])
        if block["type"] == kind
    ]


def _block(rng: random.Random, history: History, kind: str) -> tuple[History, int] | None:
    found = _blocks(history, kind)
    if not found:
        return None
    index, number = rng.choice(found)
    return history[index]["content"], number


def _in_block(
    rng: random.Random, history: History, kind: str, key: str, value: Any, rule: str
) -> str | None:
    found = _block(rng, history, kind)
    if found is None:
        return None
    block = found[0][found[1]]
    if value is ...:
        del block[key]
    else:
        _set(block, key, value)
    return rule


@anthropic
def anthropic_result_lost(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "tool_result")
    if found is None:
        return None
    del found[0][found[1]]
    return "anthropic.results_after_uses"


@anthropic
def anthropic_results_message_lost(rng: random.Random, history: History) -> str | None:
    found = _blocks(history, "tool_result")
    if not found:
        return None
    del history[rng.choice(found)[0]]
    return "anthropic.results_after_uses"


@anthropic
def anthropic_text_before_results(rng: random.Random, history: History) -> str | None:
    found = _blocks(history, "tool_result")
    if not found:
        return None
    history[rng.choice(found)[0]]["content"].insert(0, {"type": "text", "text": "Here:"})
    return "anthropic.results_first"


@anthropic
def anthropic_message_pushed_between(rng: random.Random, history: History) -> str | None:
    found = _blocks(history, "tool_result")
    if not found:
        return None
    history.insert(rng.choice(found)[0], {"role": "user", "content": "Are you there?"})
    return "anthropic.results_first"


@anthropic
def anthropic_result_twice(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "tool_result")
    if found is None:
        return None
    found[0].insert(found[1] + 1, copy.deepcopy(found[0][found[1]]))
    return "anthropic.single_result"


@anthropic
def anthropic_result_of_nothing(rng: random.Random, history: History) -> str | None:
    places = [index for index, message in enumerate(history) if message["role"] == "user"]
    result = {"type": "tool_result", "tool_use_id": "toolu_ghost", "content": "x"}
    history.insert(rng.choice(places), {"role": "user", "content": [result]})
    return "anthropic.use_for_result"


@anthropic
def anthropic_call_trimmed_away(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "tool_use")
    if found is None:
        return None
    del found[0][found[1]]
    return "anthropic.use_for_result"


@anthropic
def anthropic_result_in_a_later_message(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "tool_result")
    if found is None or any(block is found[0] for block in history[-1:]):
        return None
    result = found[0].pop(found[1])
    history += [{"role": "assistant", "content": "Wait."}, {"role": "user", "content": [result]}]
    return "anthropic.use_for_result"


def _rename_use(history: History, index: int, number: int, new: Any) -> None:
    old = history[index]["content"][number]["id"]
    history[index]["content"][number]["id"] = new
    for message in history[index + 1 :]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result" and block.get("tool_use_id") == old:
                block["tool_use_id"] = new
                return


def _renamed(rng: random.Random, history: History, new: Any) -> str | None:
    found = _blocks(history, "tool_use")
    if not found:
        return None
    _rename_use(history, *rng.choice(found), new)
    return "anthropic.tool_use_id"


@anthropic
def anthropic_id_with_dots(rng: random.Random, history: History) -> str | None:
    return _renamed(rng, history, "call.1")


@anthropic
def anthropic_id_empty(rng: random.Random, history: History) -> str | None:
    return _renamed(rng, history, "")


@anthropic
def anthropic_id_missing(rng: random.Random, history: History) -> str | None:
    return _renamed(rng, history, None)


@anthropic
def anthropic_ids_the_same(rng: random.Random, history: History) -> str | None:
    several = [
        index
        for index, n in _blocks(history, "tool_use")
        if (index, n + 1) in _blocks(history, "tool_use")
    ]
    if not several:
        return None
    index = rng.choice(several)
    numbers = [n for at, n in _blocks(history, "tool_use") if at == index]
    _rename_use(history, index, numbers[1], history[index]["content"][numbers[0]]["id"])
    return "anthropic.unique_ids"


@anthropic
def anthropic_input_a_text(rng: random.Random, history: History) -> str | None:
    value = rng.choice(['{"city": "Oslo"}', '{"city": "Os', "", "[1]"])
    return _in_block(rng, history, "tool_use", "input", value, "anthropic.tool_use_input")


@anthropic
def anthropic_input_null(rng: random.Random, history: History) -> str | None:
    return _in_block(rng, history, "tool_use", "input", None, "anthropic.tool_use_input")


@anthropic
def anthropic_name_empty(rng: random.Random, history: History) -> str | None:
    return _in_block(
        rng,
        history,
        "tool_use",
        "name",
        rng.choice(["", ..., "x" * 300]),
        "anthropic.tool_use_name",
    )


@anthropic
def anthropic_empty_text(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, rng.choice(["text", "tool_result", "tool_use"]))
    if found is None:
        return None
    found[0].insert(found[1], {"type": "text", "text": ""})
    return "anthropic.empty_text"


@anthropic
def anthropic_result_from_the_assistant(rng: random.Random, history: History) -> str | None:
    found = _blocks(history, "tool_result")
    if not found:
        return None
    index, number = rng.choice(found)
    result = history[index]["content"].pop(number)
    before = history[index - 1]
    if before["role"] != "assistant" or not isinstance(before["content"], list):
        return None
    before["content"].append(result)
    return "anthropic.block_role"


@anthropic
def anthropic_call_from_the_user(rng: random.Random, history: History) -> str | None:
    found = _blocks(history, "tool_use")
    places = [index for index, message in enumerate(history) if message["role"] == "user"]
    if not found or not places:
        return None
    index, number = rng.choice(found)
    before = [place for place in places if place < index]
    if not before:
        return None
    call = history[index]["content"].pop(number)
    message = history[before[-1]]
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    message["content"].append(call)
    return "anthropic.block_role"


@anthropic
def anthropic_is_error_a_text(rng: random.Random, history: History) -> str | None:
    value = rng.choice(["false", 0, None])
    return _in_block(rng, history, "tool_result", "is_error", value, "anthropic.is_error")


@anthropic
def anthropic_error_that_says_nothing(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "tool_result")
    if found is None:
        return None
    found[0][found[1]] |= {"is_error": True, "content": rng.choice(["", []])}
    return "anthropic.empty_error"


@anthropic
def anthropic_error_with_an_image(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "tool_result")
    if found is None:
        return None
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    text = {"type": "text", "text": "see"}
    found[0][found[1]] |= {"is_error": True, "content": rng.choice([[image], [image, text]])}
    return "anthropic.error_content"


@anthropic
def anthropic_result_an_object(rng: random.Random, history: History) -> str | None:
    return _in_block(
        rng, history, "tool_result", "content", {"rain": 3}, "anthropic.result_content"
    )


@anthropic
def anthropic_thinking_last(rng: random.Random, history: History) -> str | None:
    places = [
        index
        for index, m in enumerate(history)
        if m["role"] == "assistant" and isinstance(m["content"], list)
    ]
    places = [
        at for at in places if at + 1 == len(history) or history[at + 1]["role"] != "assistant"
    ]
    if not places:
        return None
    history[rng.choice(places)]["content"].append(
        {"type": "thinking", "thinking": "", "signature": "S"}
    )
    return "anthropic.thinking_last"


@anthropic
def anthropic_thinking_unsigned(rng: random.Random, history: History) -> str | None:
    places = [
        m
        for m in history
        if m["role"] == "assistant" and isinstance(m["content"], list) and m["content"]
    ]
    if not places:
        return None
    rng.choice(places)["content"].insert(0, {"type": "thinking", "thinking": "Hm."})
    return "anthropic.thinking_block"


@anthropic
def anthropic_unknown_key(rng: random.Random, history: History) -> str | None:
    return _in_block(
        rng,
        history,
        rng.choice(["tool_use", "tool_result", "text"]),
        "index",
        0,
        "anthropic.block_keys",
    )


@anthropic
def anthropic_unknown_key_of_a_message(rng: random.Random, history: History) -> str | None:
    rng.choice(history)["id"] = "msg_1"
    return "anthropic.messages"


@anthropic
def anthropic_too_many_marks(rng: random.Random, history: History) -> str | None:
    found = [
        place for kind in ("text", "tool_use", "tool_result") for place in _blocks(history, kind)
    ]
    if len(found) < 5:
        return None
    for index, number in found:
        history[index]["content"][number]["cache_control"] = {"type": "ephemeral"}
    return "anthropic.cache_control"


@anthropic
def anthropic_system_first(rng: random.Random, history: History) -> str | None:
    history.insert(0, {"role": "system", "content": "Be brief."})
    return "anthropic.system_first"


@anthropic
def anthropic_system_between(rng: random.Random, history: History) -> str | None:
    places = [
        index
        for index in range(1, len(history))
        if history[index - 1]["role"] != "system" and history[index]["role"] == "user"
    ]
    if not places:
        return None
    history.insert(rng.choice(places), {"role": "system", "content": "Be brief."})
    return "anthropic.system_position"


@anthropic
def anthropic_user_says_nothing(rng: random.Random, history: History) -> str | None:
    if history[-1]["role"] == "user":
        history.append({"role": "assistant", "content": "Well."})
    history.append({"role": "user", "content": rng.choice(["", []])})
    return "anthropic.empty_user"


@anthropic
def anthropic_half_character(rng: random.Random, history: History) -> str | None:
    history.append({"role": "user", "content": "smile \ud83d"})
    return "anthropic.encoding"


@anthropic
def anthropic_content_an_object(rng: random.Random, history: History) -> str | None:
    history.append({"role": "user", "content": {"type": "text", "text": "x"}})
    return "anthropic.content"


@anthropic
def anthropic_bare_text(rng: random.Random, history: History) -> str | None:
    history.append({"role": "user", "content": ["x"]})
    return "anthropic.block"


@anthropic
def anthropic_role_missing(rng: random.Random, history: History) -> str | None:
    found = _blocks(history, "tool_result")
    if not found:
        return None
    del history[rng.choice(found)[0]]["role"]
    return "anthropic.role"


@anthropic
def anthropic_server_result_of_nothing(rng: random.Random, history: History) -> str | None:
    places = [
        m
        for m in history
        if m["role"] == "assistant" and isinstance(m["content"], list) and m["content"]
    ]
    if not places:
        return None
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_ghost", "content": []}
    rng.choice(places)["content"].insert(0, result)
    return "anthropic.use_for_server_result"


@anthropic
def anthropic_server_call_left_behind(rng: random.Random, history: History) -> str | None:
    if history[-1]["role"] == "assistant":
        history.append({"role": "user", "content": "?"})
    call = {"type": "server_tool_use", "id": "srvtoolu_ghost", "name": "web_search", "input": {}}
    history += [{"role": "assistant", "content": [call]}, {"role": "user", "content": "Go on."}]
    return "anthropic.mixed_turn_results_only"


@anthropic
def anthropic_server_id_of_another_host(rng: random.Random, history: History) -> str | None:
    if history[-1]["role"] == "assistant":
        history.append({"role": "user", "content": "?"})
    call = {"type": "server_tool_use", "id": "call.1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "call.1", "content": []}
    text = {"type": "text", "text": "Found."}
    history += [
        {"role": "assistant", "content": [call, result, text]},
        {"role": "user", "content": "Go on."},
    ]
    return "anthropic.server_id"
