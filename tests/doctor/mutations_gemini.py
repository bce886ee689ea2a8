"""Ways to break a valid history of generateContent, one rule at a time."""

from __future__ import annotations

import random
from typing import Any

from breaking import Mutation, find_entries, nested_value, register_in
from composed import PNG, History, Json

MUTATIONS: dict[str, Mutation] = {}
"""By name."""

gemini = register_in(MUTATIONS)


def _name(part: Json, name: str, other: str) -> str | None:
    return name if name in part else other if other in part else None


def _call_key(part: Any) -> str | None:
    return _name(part, "functionCall", "function_call") if isinstance(part, dict) else None


def _result_key(part: Any) -> str | None:
    return _name(part, "functionResponse", "function_response") if isinstance(part, dict) else None


def _places(history: History, find: Any) -> list[tuple[int, int, str]]:
    return [
        (index, number, find(part))
        for index, content in enumerate(history)
        for number, part in enumerate(content["parts"])
        if find(part)
    ]


def _pick(rng: random.Random, history: History, find: Any) -> tuple[int, int, str] | None:
    found = _places(history, find)
    return rng.choice(found) if found else None


def _in_call(rng: random.Random, history: History, key: str, value: Any, rule: str) -> str | None:
    place = _pick(rng, history, _call_key)
    return _set(history, place, key, value, rule)


def _in_result(rng: random.Random, history: History, key: str, value: Any, rule: str) -> str | None:
    place = _pick(rng, history, _result_key)
    return _set(history, place, key, value, rule)


def _set(
    history: History, place: tuple[int, int, str] | None, key: str, value: Any, rule: str
) -> str | None:
    if place is None:
        return None
    index, number, name = place
    body = history[index]["parts"][number][name]
    if value is ...:
        if key not in body:
            return None
        del body[key]
    else:
        body[key] = value
    return rule


@gemini
def gemini_entry_null(rng: random.Random, history: History) -> str | None:
    history.insert(rng.randrange(len(history) + 1), None)
    return "gemini.contents"


@gemini
def gemini_contents_in_a_list(rng: random.Random, history: History) -> str | None:
    start = rng.randrange(len(history))
    history[start:] = [history[start:]]
    return "gemini.contents"


@gemini
def gemini_role_of_another_program(rng: random.Random, history: History) -> str | None:
    found = find_entries(history, lambda c: c.get("role") == "model")
    if not found:
        return None
    history[rng.choice(found)]["role"] = rng.choice(["assistant", "Model", "ai"])
    return "gemini.role"


@gemini
def gemini_role_of_results(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None:
        return None
    history[place[0]]["role"] = "tool"
    return "gemini.role"


@gemini
def gemini_role_that_the_parts_show(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, lambda part: _call_key(part) or _result_key(part))
    if place is None:
        return None
    history[place[0]]["role"] = 5
    return "gemini.role"


@gemini
def gemini_instructions_among_the_contents(rng: random.Random, history: History) -> str | None:
    history.insert(0, {"role": "system", "parts": [{"text": "Be brief."}]})
    return "gemini.role"


@gemini
def gemini_message_of_another_api(rng: random.Random, history: History) -> str | None:
    found = find_entries(history, lambda c: set(c["parts"][0]) == {"text"} and len(c["parts"]) == 1)
    if not found:
        return None
    index = rng.choice(found)
    content = history[index]
    role = "assistant" if content.get("role") == "model" else "user"
    history[index] = {"role": role, "content": content["parts"][0]["text"] or "x"}
    return "gemini.unknown_key"


@gemini
def gemini_nested_too_deeply(rng: random.Random, history: History) -> str | None:
    return _in_call(rng, history, "args", {"a": nested_value(320)}, "gemini.nesting")


@gemini
def gemini_half_a_character(rng: random.Random, history: History) -> str | None:
    return _in_result(rng, history, "response", {"output": "\ud83d"}, "gemini.encoding")


@gemini
def gemini_key_of_another_api(rng: random.Random, history: History) -> str | None:
    return _in_result(rng, history, "call_id", "x", "gemini.unknown_key")


@gemini
def gemini_arguments_under_another_name(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _call_key)
    if place is None:
        return None
    body = history[place[0]]["parts"][place[1]][place[2]]
    body["arguments"] = body.pop("args", {})
    return "gemini.unknown_key"


@gemini
def gemini_response_under_another_name(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None:
        return None
    body = history[place[0]]["parts"][place[1]][place[2]]
    body["content"] = body.pop("response")
    return "gemini.unknown_key"


@gemini
def gemini_type_of_another_api(rng: random.Random, history: History) -> str | None:
    content = rng.choice(history)
    rng.choice(content["parts"])["type"] = "text"
    return "gemini.unknown_key"


@gemini
def gemini_image_of_another_api(rng: random.Random, history: History) -> str | None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    history.append({"role": "user", "parts": [{"text": "Look."}, image]})
    return "gemini.unknown_key"


@gemini
def gemini_parts_without_a_list(rng: random.Random, history: History) -> str | None:
    found = find_entries(history, lambda c: len(c["parts"]) == 1)
    if not found:
        return None
    index = rng.choice(found)
    (part,) = history[index]["parts"]
    history[index]["parts"] = rng.choice([part, "x" if set(part) == {"text"} else part])
    return "gemini.parts"


@gemini
def gemini_content_without_parts(rng: random.Random, history: History) -> str | None:
    content = {"role": rng.choice(["user", "model"])}
    if rng.random() < 0.5:
        content["parts"] = []  # type: ignore[assignment]
    history.insert(rng.randrange(1, len(history) + 1), content)
    return "gemini.empty_parts"


@gemini
def gemini_part_without_data(rng: random.Random, history: History) -> str | None:
    content = rng.choice(history)
    content["parts"].insert(
        rng.randrange(len(content["parts"]) + 1), rng.choice([{}, {"thought": True}])
    )
    return "gemini.part"


@gemini
def gemini_part_that_is_a_text(rng: random.Random, history: History) -> str | None:
    history[0]["parts"].append(rng.choice(["Go on.", None, 5]))
    return "gemini.part"


@gemini
def gemini_part_with_two_kinds_of_data(rng: random.Random, history: History) -> str | None:
    found = _places(history, lambda part: "text" if set(part) == {"text"} else None)
    if not found:
        return None
    index, number, _ = rng.choice(found)
    image = {"mimeType": "image/png", "data": PNG}
    history[index]["parts"][number]["inlineData"] = image
    return "gemini.part"


@gemini
def gemini_thought_that_is_a_word(rng: random.Random, history: History) -> str | None:
    rng.choice(history)["parts"][0]["thought"] = "yes"
    return "gemini.part"


@gemini
def gemini_text_that_is_none(rng: random.Random, history: History) -> str | None:
    found = _places(history, lambda part: "text" if "text" in part else None)
    if not found:
        return None
    index, number, _ = rng.choice(found)
    history[index]["parts"][number]["text"] = rng.choice([5, ["x"], {"a": 1}])
    return "gemini.text"


@gemini
def gemini_id_that_is_a_number(rng: random.Random, history: History) -> str | None:
    return _in_call(rng, history, "id", 5, "gemini.id")


@gemini
def gemini_call_without_a_name(rng: random.Random, history: History) -> str | None:
    return _in_call(rng, history, "name", rng.choice(["", ..., 5]), "gemini.name")


@gemini
def gemini_result_without_a_name(rng: random.Random, history: History) -> str | None:
    return _in_result(rng, history, "name", rng.choice(["", ..., None]), "gemini.name")


@gemini
def gemini_arguments_that_are_a_text(rng: random.Random, history: History) -> str | None:
    value = rng.choice(['{"city": "Oslo"}', "oops", "", ["x"], 5])
    return _in_call(rng, history, "args", value, "gemini.args")


@gemini
def gemini_response_that_is_a_text(rng: random.Random, history: History) -> str | None:
    return _in_result(rng, history, "response", rng.choice(["x", ["x"], 5]), "gemini.response")


@gemini
def gemini_response_missing(rng: random.Random, history: History) -> str | None:
    return _in_result(rng, history, "response", ..., "gemini.response")


@gemini
def gemini_result_that_shows_a_text(rng: random.Random, history: History) -> str | None:
    shown: Any = rng.choice([[{"text": "x"}], {"text": "x"}, "x", ["x"], [{"inlineData": 5}]])
    return _in_result(rng, history, "parts", shown, "gemini.result_parts")


@gemini
def gemini_bytes_in_a_data_url(rng: random.Random, history: History) -> str | None:
    url = f"data:image/png;base64,{PNG}"
    history.append(
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": url}}]}
    )
    return "gemini.media"


@gemini
def gemini_media_type_of_another_name(rng: random.Random, history: History) -> str | None:
    shown = [{"inlineData": {"mimeType": "image/jpg", "data": PNG}}]
    return _in_result(rng, history, "parts", shown, "gemini.media_type")


@gemini
def gemini_signature_that_is_none(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, lambda part: _call_key(part) or ("text" if "text" in part else ""))
    if place is None:
        return None
    part = history[place[0]]["parts"][place[1]]
    part.pop("thought_signature", None)
    part["thoughtSignature"] = rng.choice(["not base64!", 5])
    return "gemini.signature_bytes"


@gemini
def gemini_result_by_the_model(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None:
        return None
    history[place[0]]["role"] = "model"
    return "gemini.part_role"


@gemini
def gemini_call_by_the_user(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _call_key)
    if place is None:
        return None
    history[place[0]]["role"] = "user"
    return "gemini.part_role"


@gemini
def gemini_beginning_lost(rng: random.Random, history: History) -> str | None:
    if not _call_key(history[1]["parts"][-1]) if len(history) > 1 else True:
        return None
    del history[0]
    return "gemini.user_first" if history[0].get("role") == "model" else None


@gemini
def gemini_result_missing(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None:
        return None
    del history[place[0]]["parts"][place[1]]
    if not history[place[0]]["parts"]:
        del history[place[0]]
    return "gemini.results_count"


@gemini
def gemini_result_twice(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None:
        return None
    parts = history[place[0]]["parts"]
    parts.insert(place[1], parts[place[1]])
    return "gemini.results_count"


@gemini
def gemini_text_between(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None or history[place[0] - 1].get("role") != "model":
        return None
    history.insert(place[0], {"role": "user", "parts": [{"text": "Wait."}]})
    return "gemini.results_first"


@gemini
def gemini_result_without_a_call(rng: random.Random, history: History) -> str | None:
    found = find_entries(
        history,
        lambda c: c.get("role") == "model" and not any(_call_key(part) for part in c["parts"]),
    )
    if not found:
        return None
    result = {"functionResponse": {"id": "lost", "name": "weather", "response": {}}}
    history.insert(rng.choice(found) + 1, {"role": "user", "parts": [result]})
    return "gemini.call_for_result"


@gemini
def gemini_results_far_away(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None or not any(_result_key(part) for part in history[place[0]]["parts"]):
        return None
    content = history.pop(place[0])
    history += [
        {"role": "user", "parts": [{"text": "And?"}]},
        {"role": "model", "parts": [{"text": "Hm."}]},
        content,
    ]
    return "gemini.results_count"


@gemini
def gemini_ids_repeated(rng: random.Random, history: History) -> str | None:
    for content in history:
        calls = [part[key] for part in content["parts"] if (key := _call_key(part))]
        if len(calls) > 1 and calls[0].get("id"):
            calls[1]["id"] = calls[0]["id"]
            return "gemini.unique_ids"
    return None


@gemini
def gemini_id_of_another_call(rng: random.Random, history: History) -> str | None:
    return _in_result(rng, history, "id", "other", "gemini.result_id")


@gemini
def gemini_name_of_another_tool(rng: random.Random, history: History) -> str | None:
    return _in_result(rng, history, "name", "other", "gemini.result_name")


@gemini
def gemini_results_in_another_order(rng: random.Random, history: History) -> str | None:
    for content in history:
        keys = [_result_key(part) for part in content["parts"]]
        if len(keys) > 1 and all(keys):
            names = [part[key]["name"] for part, key in zip(content["parts"], keys, strict=True)]
            has_ids = all(
                part[key].get("id") for part, key in zip(content["parts"], keys, strict=True)
            )
            if has_ids or names != names[::-1]:
                content["parts"].reverse()
                return "gemini.result_order"
    return None


@gemini
def gemini_text_before_results(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None:
        return None
    history[place[0]]["parts"].insert(0, {"text": "Here."})
    return "gemini.results_first"


@gemini
def gemini_text_behind_results(rng: random.Random, history: History) -> str | None:
    place = _pick(rng, history, _result_key)
    if place is None:
        return None
    history[place[0]]["parts"].append({"text": "Go on."})
    return "gemini.results_alone"


@gemini
def gemini_unsigned(rng: random.Random, history: History) -> str | None:
    for content in history:
        for part in content["parts"]:
            if _call_key(part):
                part.pop("thoughtSignature", None)
                part.pop("thought_signature", None)
                return "gemini.signature"
    return None


@gemini
def gemini_second_signature(rng: random.Random, history: History) -> str | None:
    for content in history:
        calls = [part for part in content["parts"] if _call_key(part)]
        if len(calls) > 1:
            calls[1]["thoughtSignature"] = "AAAA"
            return "gemini.second_signature"
    return None
