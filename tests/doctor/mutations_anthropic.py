"""Ways to break a valid history of Messages, one rule at a time."""

from __future__ import annotations

import copy
import random
from typing import Any

from breaking import Mutation, find_entries, nested_value, register_in, set_copy
from composed import PNG, History

MUTATIONS: dict[str, Mutation] = {}
"""By name."""

anthropic = register_in(MUTATIONS)


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
    history[rng.choice(find_entries(history, lambda m: m["role"] == "assistant"))]["role"] = "model"
    return "anthropic.role"


@anthropic
def anthropic_nested_too_deeply(rng: random.Random, history: History) -> str | None:
    return _in_block(
        rng, history, "tool_use", "input", {"a": nested_value(320)}, "anthropic.nesting"
    )


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
        set_copy(block, key, value)
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
def anthropic_message_of_white_space(rng: random.Random, history: History) -> str | None:
    content = rng.choice(
        [" ", [{"type": "text", "text": "\n"}], [{"type": "text", "text": " "}] * 2]
    )
    place = rng.choice([*find_entries(history, lambda m: m.get("role") == "user"), len(history)])
    role = rng.choice(["user", "assistant"]) if place and place < len(history) else "user"
    calls = place and isinstance(history[place - 1], dict) and "tool_use" in str(history[place - 1])
    if calls:  # a message before the results would be another mistake
        return None
    history.insert(place, {"role": role, "content": content})
    return "anthropic.blank_text"


@anthropic
def anthropic_image_in_a_data_url(rng: random.Random, history: History) -> str | None:
    data = f"data:image/png;base64,{PNG}"
    source = {"type": "base64", "media_type": rng.choice(["image/png", "image/jpeg"]), "data": data}
    history.append({"role": "user", "content": [{"type": "image", "source": source}]})
    return "anthropic.media_source"


@anthropic
def anthropic_image_of_another_type(rng: random.Random, history: History) -> str | None:
    source = {"type": "base64", "media_type": "image/jpeg", "data": PNG}
    history.append({"role": "user", "content": [{"type": "image", "source": source}]})
    return "anthropic.image_type"


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
