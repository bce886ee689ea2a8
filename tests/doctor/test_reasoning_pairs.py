"""Reasoning of Responses goes with the item that it led to, whatever a repair is for; and calls of
kinds that this release doesn't know are answered, or left out with their reasoning.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from typing import Any

import pytest
from composed import History, Json, composed, recorded
from mutations import MUTATIONS
from profiles import examples

from lutumpy.doctor import Problem, apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.json_patch import apply_operations

API = "openai_responses"
USER: Json = {"role": "user", "content": "x"}
CUT: Json = {"name": "look", "arguments": '{"a": 1', "status": "incomplete"}
SAID: Json = {"type": "message", "id": "msg_1", "role": "assistant", "content": "Well."}
CALLS: list[Json] = [
    {"type": "function_call", "name": "look", "arguments": "{}"},
    {"type": "custom_tool_call", "name": "sql", "input": "select"},
    {"type": "shell_call", "action": {"commands": ["ls"]}},
    {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "x"}},
    {"type": "local_shell_call", "id": "lsh_1", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "tool_search_call", "execution": "client", "arguments": {}},
    {"type": "computer_call", "id": "cu_1", "action": {"type": "screenshot"}},
    {"type": "foo_call", "id": "foo_1"},
    {"type": "hosted_bar_call", "status": "completed", "arguments": "{}"},
]
RUN_BY_THE_PROVIDER: list[Json] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "file_search_call", "id": "fs_1", "queries": ["x"], "status": "completed"},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "c"},
    {"type": "image_generation_call", "id": "ig_1", "result": "x", "status": "completed"},
    {"type": "mcp_call", "id": "mcp_1", "name": "a", "arguments": "{}", "server_label": "w"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "w", "tools": []},
    {"type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {}},
    {"type": "foo_call", "id": "foo_1", "status": "completed"},
    {"type": "foo_call", "call_id": "c1", "result": "done"},
]
OTHERS: list[Json] = [
    *({**call, "call_id": f"x{number}"} for number, call in enumerate(CALLS)),
    {"type": "function_call", "call_id": "cut", **CUT},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "w", "name": "a"},
    {"type": "message", "id": "msg_e", "role": "assistant", "content": ""},
    {"type": "message", "id": "msg_n", "role": "assistant", "content": None},
    {"type": "message", "id": "chatcmpl-1", "role": "assistant", "content": "Well."},
    {"type": "item_reference"},
    {"type": "item_reference", "id": "rs_0"},
]
RECORDED = [history for history in recorded(API) if isinstance(history, list)]
# An item in a list inside the list, or without a type, is looked at only when it is mended.
UNCOVERING = frozenset({"items_in_a_list", "type_missing"})


def reasoning(number: int, *, has_id: bool = True) -> Json:
    named = {"id": f"rs_x{number}"} if has_id else {}
    return {"type": "reasoning", **named, "summary": [], "encrypted_content": "gAAA"}


def broken(rng: random.Random) -> History:
    """A history with items that repairs take away, most of them behind reasoning."""
    history = copy.deepcopy(rng.choice(RECORDED)) if rng.random() < 0.4 else composed(API, rng)
    for number in range(rng.randint(1, 3)):
        added: History = [copy.deepcopy(rng.choice(OTHERS))]
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            number += 10
            added.insert(0, reasoning(number, has_id=rng.random() < 0.8))
        at = rng.randint(0, len(history))
        history[at:at] = added
    for name in rng.sample(sorted(MUTATIONS[API].keys() - UNCOVERING), rng.randint(0, 2)):
        try:
            MUTATIONS[API][name](rng, history)
        except (KeyError, TypeError, IndexError, AttributeError):
            continue  # what another one broke can't be found any more
    for _ in range(rng.randint(0, 2) if history else 0):
        at, to = rng.randrange(len(history)), rng.randrange(len(history))
        if rng.random() < 0.5:
            history.insert(to, history.pop(at))
        elif rng.random() < 0.5:
            history.insert(to, copy.deepcopy(history[at]))
        elif len(history) > 1:
            del history[at]
    return history


def lone(problems: list[Problem]) -> int:
    return sum([problem.rule == "responses.dangling_reasoning" for problem in problems])


@pytest.mark.pure
@pytest.mark.slow
def test_no_repair_leaves_reasoning_without_the_item_that_it_led_to() -> None:
    rng = random.Random(25)
    kinds: Counter[str] = Counter()
    for _ in range(examples(1000)):
        history = broken(rng)
        options: Json = {
            "server_held_prefix": rng.random() < 0.2,
            "compatible": rng.random() < 0.2,
        }
        document = copy.deepcopy(history)
        before = check_messages(API, document, **options)
        start = before
        for repair in propose_repairs(API, history, thorough=rng.random() < 0.5, **options):
            document = apply_operations(document, repair.patch)
            after = check_messages(API, document, **options)
            assert lone(after) <= lone(before), (repair, history)
            before = after
            kinds[repair.kind] += 1
        # Nothing is refused afterwards that wasn't before.
        sure = {problem.rule for problem in before if problem.certainty == "refused"}
        assert sure <= {problem.rule for problem in start}, history
    assert {"drop_call", "drop_duplicate", "drop_empty", "drop_reference", "drop_id"} <= set(kinds)


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("host", [None, "compatible"])
def test_a_dropped_call_takes_its_reasoning_along_and_says_so(
    thorough: bool, has_id: bool, host: str | None
) -> None:
    cut = {"type": "function_call", "call_id": "cut", **CUT}
    computer = {**CALLS[6], "call_id": "c"}
    for call in [cut, computer] if thorough else [computer]:
        history = [USER, reasoning(0, has_id=has_id), reasoning(1, has_id=has_id), call, USER]
        (repair,) = propose_repairs(API, history, thorough=thorough, host=host)
        assert repair.kind == "drop_call"
        assert "reasoning" in repair.reason
        assert apply_repairs(history, [repair]) == [USER, USER]


def test_reasoning_stays_where_another_item_of_the_model_follows() -> None:
    computer = {**CALLS[6], "call_id": "c"}
    for kept in (SAID, RUN_BY_THE_PROVIDER[0]):
        history = [USER, reasoning(0), computer, kept]
        repairs = propose_repairs(API, history)
        assert apply_repairs(history, repairs) == [USER, reasoning(0), kept]


def test_reasoning_without_its_item_leaves_what_later_reasoning_led_to() -> None:
    nameless = {name: value for name, value in SAID.items() if name != "id"}
    history = [USER, reasoning(0), nameless, reasoning(1), SAID, USER]
    (repair,) = propose_repairs(API, history, thorough=True)
    assert repair.kind == "drop_reasoning"
    assert apply_repairs(history, [repair]) == [USER, nameless, reasoning(1), SAID, USER]


def test_a_call_stays_when_nothing_else_would_be_left() -> None:
    history = [reasoning(0), {**CALLS[6], "call_id": "c"}]
    assert propose_repairs(API, history, thorough=True) == []


@pytest.mark.parametrize("has_reasoning", [False, True])
@pytest.mark.parametrize("call", CALLS, ids=[call["type"] for call in CALLS])
def test_a_call_without_an_output_is_reported_and_mended(call: Json, has_reasoning: bool) -> None:
    call = {**call, "call_id": "c1"}
    history = [USER, *([reasoning(0)] if has_reasoning else []), call]
    found = [p for p in check_messages(API, history) if p.rule == "responses.output_for_call"]
    is_known = call["type"] not in ("foo_call", "hosted_bar_call")
    assert [p.certainty for p in found] == ["refused" if is_known else "some"]
    assert found[0].message.startswith("No tool output found for ")
    for host in (None, "compatible"):
        mended = apply_repairs(history, propose_repairs(API, history, host=host))
        assert check_messages(API, mended, host=host) == []
        assert propose_repairs(API, mended, host=host) == []


@pytest.mark.parametrize("call", CALLS, ids=[call["type"] for call in CALLS])
def test_a_call_with_an_output_of_its_kind_is_answered(call: Json) -> None:
    output = {"type": f"{call['type'].removesuffix('_call')}_call_output", "call_id": "c1"}
    if call["type"] == "tool_search_call":
        output = {"type": "tool_search_output", "call_id": "c1"}
    if call["type"] == "local_shell_call":
        output = {"type": "local_shell_call_output", "id": "c1"}
    history = [USER, {**call, "call_id": "c1"}, {**output, "output": "x"}]
    assert "responses.output_for_call" not in {p.rule for p in check_messages(API, history)}
    alone = [USER, history[-1]]
    assert "responses.call_for_output" in {p.rule for p in check_messages(API, alone)}


@pytest.mark.parametrize("call", RUN_BY_THE_PROVIDER, ids=json.dumps)
def test_a_call_that_the_provider_ran_needs_no_output(call: Json) -> None:
    rules = {problem.rule for problem in check_messages(API, [USER, reasoning(0), call])}
    assert rules <= {"responses.item_type"}
    assert propose_repairs(API, [USER, reasoning(0), call]) == []


def test_an_output_stays_with_the_call_that_ran_when_one_with_its_id_was_cut_off() -> None:
    ran: Json = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
    cut: Json = {"type": "function_call", "call_id": "a", **CUT}
    output: Json = {"type": "function_call_output", "call_id": "a", "output": "rain"}
    history: list[Any] = [USER, cut, USER, ran, output]
    mended = apply_repairs(history, propose_repairs(API, history, thorough=True))
    assert mended == [USER, USER, ran, output]
