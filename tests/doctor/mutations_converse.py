"""Ways to break a valid history of Converse, one rule at a time."""

from __future__ import annotations

import copy
import random
from typing import Any

from breaking import LONG, Mutation, find_entries, nested_value, register_in, set_copy
from composed import PNG, History

MUTATIONS: dict[str, Mutation] = {}
"""By name."""

converse = register_in(MUTATIONS)


def _places(history: History, key: str) -> list[tuple[int, int]]:
    return [
        (index, number)
        for index, message in enumerate(history)
        for number, block in enumerate(message["content"])
        if key in block
    ]


def _block(rng: random.Random, history: History, key: str) -> tuple[History, int] | None:
    found = _places(history, key)
    if not found:
        return None
    index, number = rng.choice(found)
    return history[index]["content"], number


def _inside(
    rng: random.Random, history: History, key: str, member: str, value: Any, rule: str
) -> str | None:
    found = _block(rng, history, key)
    if found is None:
        return None
    inner = found[0][found[1]][key]
    if value is ...:
        del inner[member]
    else:
        set_copy(inner, member, value)
    return f"converse.{rule}"


@converse
def converse_entry_null(rng: random.Random, history: History) -> str | None:
    history.insert(rng.randrange(len(history) + 1), None)
    return "converse.messages"


@converse
def converse_messages_in_a_list(rng: random.Random, history: History) -> str | None:
    start = rng.randrange(len(history))
    history[start:] = [history[start:]]
    return "converse.messages"


@converse
def converse_unknown_key_of_a_message(rng: random.Random, history: History) -> str | None:
    rng.choice(history)["id"] = "msg_1"
    return "converse.messages"


@converse
def converse_role_of_another_program(rng: random.Random, history: History) -> str | None:
    found = find_entries(history, lambda m: m["role"] == "assistant")
    if not found:
        return None
    history[rng.choice(found)]["role"] = "model"
    return "converse.role"


@converse
def converse_role_missing(rng: random.Random, history: History) -> str | None:
    found = _places(history, rng.choice(["toolUse", "toolResult"]))
    if not found:
        return None
    del history[rng.choice(found)[0]]["role"]
    return "converse.role"


@converse
def converse_nested_too_deeply(rng: random.Random, history: History) -> str | None:
    return _inside(rng, history, "toolUse", "input", {"a": nested_value(320)}, "nesting")


@converse
def converse_half_character(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "text")
    if found is None:
        return None
    found[0][found[1]]["text"] = "smile \ud83d"
    return "converse.encoding"


@converse
def converse_content_a_text(rng: random.Random, history: History) -> str | None:
    alone = [m for m in history if len(m["content"]) == 1 and "text" in m["content"][0]]
    if not alone:
        return None
    rng.choice(alone)["content"] = rng.choice(["x", {"text": "x"}, 7])
    return "converse.content"


@converse
def converse_bare_text(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "text")
    if found is None:
        return None
    found[0][found[1]] = "x"
    return "converse.block"


@converse
def converse_content_empty(rng: random.Random, history: History) -> str | None:
    history.append({"role": "assistant", "content": []})
    return "converse.empty_content"


@converse
def converse_block_with_a_type(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "text")
    if found is None:
        return None
    found[0][found[1]] = {"type": "text", "text": "typed"}
    return "converse.block"


@converse
def converse_block_of_two(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "text")
    if found is None or any("toolResult" in block for block in found[0]):
        return None
    found[0][found[1]]["cachePoint"] = {"type": "default"}
    return "converse.block"


@converse
def converse_blank_text(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, rng.choice(["text", "toolResult", "toolUse"]))
    if found is None:
        return None
    found[0].insert(found[1], {"text": ""})
    return "converse.blank_text"


@converse
def converse_blank_text_in_a_result(rng: random.Random, history: History) -> str | None:
    return _inside(rng, history, "toolResult", "content", [{"text": ""}], "blank_result")


@converse
def converse_text_a_number(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "text")
    if found is None:
        return None
    found[0][found[1]]["text"] = 7
    return "converse.text"


@converse
def converse_unknown_key(rng: random.Random, history: History) -> str | None:
    key = rng.choice(["toolUse", "toolResult"])
    return _inside(rng, history, key, "index", 0, "block_keys")


@converse
def converse_type_of_an_answer(rng: random.Random, history: History) -> str | None:
    return _inside(rng, history, "toolUse", "type", "tool_use", "tool_use_type")


@converse
def converse_name_refused(rng: random.Random, history: History) -> str | None:
    value = rng.choice(["", ..., LONG, "get.weather", "ortsname ä"])
    return _inside(rng, history, "toolUse", "name", value, "tool_use_name")


@converse
def converse_input_a_text(rng: random.Random, history: History) -> str | None:
    value = rng.choice(['{"city": "Oslo"}', '{"city": "Os', "", "[1]", None, [1]])
    return _inside(rng, history, "toolUse", "input", value, "tool_use_input")


def _rename(history: History, index: int, number: int, new: Any) -> None:
    use = history[index]["content"][number]["toolUse"]
    old, use["toolUseId"] = use["toolUseId"], new
    for block in history[index + 1]["content"]:
        result = block.get("toolResult", {})
        if result.get("toolUseId") == old:
            result["toolUseId"] = new
            return


def _renamed(rng: random.Random, history: History, new: Any) -> str | None:
    found = _places(history, "toolUse")
    if not found:
        return None
    _rename(history, *rng.choice(found), new)
    return "converse.tool_use_id"


@converse
def converse_id_refused(rng: random.Random, history: History) -> str | None:
    return _renamed(rng, history, rng.choice(["call 1", LONG, "", None, 7]))


@converse
def converse_ids_the_same(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolUse")
    several = [(index, n) for index, n in found if (index, n + 1) in found]
    if not several:
        return None
    index, number = rng.choice(several)
    call_id = history[index]["content"][number]["toolUse"]["toolUseId"]
    _rename(history, index, number + 1, call_id)
    return "converse.unique_ids"


@converse
def converse_result_id_missing(rng: random.Random, history: History) -> str | None:
    return _inside(rng, history, "toolResult", "toolUseId", ..., "tool_use_id")


@converse
def converse_result_content_odd(rng: random.Random, history: History) -> str | None:
    value = rng.choice(["rain", "", {"rain": 3}, {"text": "x"}, None, ..., 7])
    return _inside(rng, history, "toolResult", "content", value, "result_content")


@converse
def converse_result_json_a_list(rng: random.Random, history: History) -> str | None:
    value = [{"json": rng.choice([[1, 2], "x", 7])}]
    return _inside(rng, history, "toolResult", "content", value, "result_json")


@converse
def converse_status_odd(rng: random.Random, history: History) -> str | None:
    value = rng.choice(["Error", "failed", "done", True])
    found = _block(rng, history, "toolResult")
    if found is None:
        return None
    found[0][found[1]]["toolResult"].update(content=[{"text": "x"}], status=value)
    return "converse.result_status"


@converse
def converse_error_that_says_nothing(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "toolResult")
    if found is None:
        return None
    found[0][found[1]]["toolResult"].update(content=[], status="error")
    return "converse.empty_error"


@converse
def converse_image_of_another_type(rng: random.Random, history: History) -> str | None:
    image = {"image": {"format": rng.choice(["image/png", "tiff"]), "source": {"bytes": PNG}}}
    return _inside(rng, history, "toolResult", "content", [image], "image_type")


def _document(**changed: Any) -> dict[str, Any]:
    document = {"format": "txt", "name": "notes", "source": {"bytes": "aGk="}}
    return {"document": {**document, **changed}}


@converse
def converse_document_of_another_type(rng: random.Random, history: History) -> str | None:
    value = [_document(format=rng.choice(["text/plain", "application/pdf", "markdown"]))]
    return _inside(rng, history, "toolResult", "content", value, "document_type")


@converse
def converse_document_misnamed(rng: random.Random, history: History) -> str | None:
    value = [_document(name=rng.choice(["notes.txt", "two  spaces", "", LONG * 3, None]))]
    return _inside(rng, history, "toolResult", "content", value, "document_name")


@converse
def converse_document_without_words(rng: random.Random, history: History) -> str | None:
    places = [m for m in history if m["role"] == "user" and not _has(m, "text")]
    places += [m for m in history if m["role"] == "user" and len(m["content"]) == 1]
    if not places:
        return None
    message = rng.choice(places)
    message["content"] = [block for block in message["content"] if "text" not in block]
    message["content"].append(_document())
    return "converse.document_text"


def _has(message: dict[str, Any], key: str) -> bool:
    return any(key in block for block in message["content"])


@converse
def converse_cache_point_odd(rng: random.Random, history: History) -> str | None:
    point = {"cachePoint": rng.choice([{"type": "ephemeral"}, {"type": "default", "ttl": "2h"}])}
    history[0]["content"].append(point)
    return "converse.cache_point"


@converse
def converse_reasoning_broken(rng: random.Random, history: History) -> str | None:
    places = [m for m in history if m["role"] == "assistant" and m["content"]]
    if not places:
        return None
    told = rng.choice([{"reasoningText": {}}, {"reasoningText": {"text": 7}}, {}])
    rng.choice(places)["content"].insert(0, {"reasoningContent": told})
    return "converse.reasoning_block"


@converse
def converse_signature_empty(rng: random.Random, history: History) -> str | None:
    places = [m for m in history if m["role"] == "assistant" and m["content"]]
    if not places:
        return None
    told = {"reasoningText": {"text": "Hm.", "signature": ""}}
    rng.choice(places)["content"].insert(0, {"reasoningContent": told})
    return "converse.signature"


@converse
def converse_user_twice(rng: random.Random, history: History) -> str | None:
    places = find_entries(history, lambda m: m["role"] == "user" and not _has(m, "toolResult"))
    history.insert(rng.choice(places), {"role": "user", "content": [{"text": "Hello?"}]})
    return "converse.alternation"


@converse
def converse_assistant_twice(rng: random.Random, history: History) -> str | None:
    places = find_entries(history, lambda m: m["role"] == "assistant")
    if not places:
        return None
    history.insert(rng.choice(places), {"role": "assistant", "content": [{"text": "Well."}]})
    return "converse.alternation"


@converse
def converse_result_lost(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "toolResult")
    if found is None:
        return None
    del found[0][found[1]]
    return "converse.results_after_calls"


@converse
def converse_results_message_lost(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolResult")
    if not found:
        return None
    del history[rng.choice(found)[0]]
    return "converse.results_after_calls"


@converse
def converse_text_before_results(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolResult")
    if not found:
        return None
    history[rng.choice(found)[0]]["content"].insert(0, {"text": "Here:"})
    return "converse.results_first"


@converse
def converse_message_pushed_between(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolResult")
    if not found:
        return None
    message = {"role": "user", "content": [{"text": "Are you there?"}]}
    history.insert(rng.choice(found)[0], message)
    return "converse.results_after_calls"


@converse
def converse_results_in_two_messages(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolResult")
    several = [index for index, n in found if (index, n + 1) in found]
    if not several:
        return None
    index = rng.choice(several)
    moved = history[index]["content"].pop(0)
    history.insert(index, {"role": "user", "content": [moved]})
    return "converse.results_after_calls"


@converse
def converse_calls_in_two_messages(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolUse")
    several = [(index, n) for index, n in found if (index, n + 1) in found]
    if not several:
        return None
    index, number = rng.choice(several)
    blocks = history[index]["content"]
    history[index]["content"] = blocks[: number + 1]
    history.insert(index + 1, {"role": "assistant", "content": blocks[number + 1 :]})
    return "converse.results_after_calls"


@converse
def converse_result_twice(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "toolResult")
    if found is None:
        return None
    found[0].insert(found[1] + 1, copy.deepcopy(found[0][found[1]]))
    return "converse.single_result"


@converse
def converse_result_of_nothing(rng: random.Random, history: History) -> str | None:
    places = find_entries(history, lambda m: m["role"] == "user")
    result = {"toolUseId": "tooluse_ghost", "content": [{"text": "x"}]}
    history[rng.choice(places)]["content"].insert(0, {"toolResult": result})
    return "converse.call_for_result"


@converse
def converse_call_trimmed_away(rng: random.Random, history: History) -> str | None:
    found = _block(rng, history, "toolUse")
    if found is None:
        return None
    del found[0][found[1]]
    return "converse.call_for_result"


@converse
def converse_result_from_the_assistant(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolResult")
    if not found:
        return None
    index, number = rng.choice(found)
    history[index - 1]["content"].append(history[index]["content"].pop(number))
    return "converse.block_role"


@converse
def converse_call_from_the_user(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolUse")
    if not found:
        return None
    index, number = rng.choice(found)
    call = history[index]["content"].pop(number)
    history[index - 1]["content"].append(call)
    return "converse.block_role"


@converse
def converse_reasoning_from_the_user(rng: random.Random, history: History) -> str | None:
    told = {"reasoningText": {"text": "Hm.", "signature": "S"}}
    history[0]["content"].append({"reasoningContent": told})
    return "converse.block_role"


@converse
def converse_text_behind_calls(rng: random.Random, history: History) -> str | None:
    found = _places(history, "toolUse")
    if not found:
        return None
    history[rng.choice(found)[0]]["content"].append({"text": "That was it."})
    return "converse.calls_last"
