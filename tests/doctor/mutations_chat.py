"""Ways to break a valid history of Chat Completions, one rule at a time."""

from __future__ import annotations

import copy
import random
from typing import Any

from breaking import LONG, Mutation, find_entries, nested_value, register_in, set_copy
from composed import PNG, History, Json

MUTATIONS: dict[str, Mutation] = {}
"""By name."""

chat = register_in(MUTATIONS)


def _callers(history: History) -> list[int]:
    return find_entries(history, lambda m: m.get("role") == "assistant" and m.get("tool_calls"))


def _tools(history: History) -> list[int]:
    return find_entries(history, lambda m: m.get("role") == "tool")


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
        set_copy(body, key, value)
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
    index = find_entries(history, lambda m: m["role"] == "user")[0]
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
    history.insert(find_entries(history, lambda m: m["role"] == "user")[0], history.pop(index))
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
    plain = find_entries(
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
        find_entries(history, lambda m: m["role"] == "user")[0] + 1,
        {"role": "assistant", "content": None},
    )
    return "chat.content"


@chat
def chat_content_null(rng: random.Random, history: History) -> str | None:
    places = find_entries(history, lambda m: m["role"] in ("user", "tool", "system"))
    history[rng.choice(places)]["content"] = None
    return "chat.content" if len(history) > 1 else None


@chat
def chat_content_an_object(rng: random.Random, history: History) -> str | None:
    history[rng.choice(find_entries(history, lambda m: m["role"] in ("user", "tool")))][
        "content"
    ] = {"rain": 3}
    return "chat.content"


@chat
def chat_content_no_parts(rng: random.Random, history: History) -> str | None:
    if len(history) < 2:
        return None
    history[
        rng.choice(find_entries(history, lambda m: m["role"] in ("user", "tool", "assistant")))
    ]["content"] = []
    return "chat.content"


@chat
def chat_parts_of_responses(rng: random.Random, history: History) -> str | None:
    history[rng.choice(find_entries(history, lambda m: m["role"] == "user"))]["content"] = [
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
    history[rng.choice(find_entries(history, lambda m: m["role"] == "user"))]["content"] = (
        "smile \ud83d"
    )
    return "chat.encoding"


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
    history[rng.choice(find_entries(history, lambda m: m["role"] == "user"))]["role"] = "human"
    return "chat.role"


@chat
def chat_name_with_spaces(rng: random.Random, history: History) -> str | None:
    places = find_entries(history, lambda m: m.get("role") in ("user", "assistant", "system"))
    if not places:
        return None
    history[rng.choice(places)]["name"] = rng.choice(["Ann Lee", "a/b", "<x>", " ", "", 5, {}])
    return "chat.name"


@chat
def chat_image_without_its_object(rng: random.Random, history: History) -> str | None:
    url = f"data:image/png;base64,{PNG}"
    image = rng.choice([url, {"url": PNG}, {"url": "data:image/png;base64,"}])
    content = [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": image}]
    history.append({"role": "user", "content": content})
    return "chat.media_source"


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


@chat
def chat_nested_too_deeply(rng: random.Random, history: History) -> str | None:
    history.append({"role": "user", "content": nested_value(321)})
    return "chat.nesting"
