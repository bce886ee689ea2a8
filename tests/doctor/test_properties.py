"""What holds for every history: nothing sure to be refused is left, nothing valid changes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, get_args

import pytest
from composed import APIS, ROWS, History, composed, recorded
from counting import calls_made
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import MUTATIONS
from profiles import examples

from lutumpy import TranscriptError
from lutumpy.doctor import (
    Problem,
    Repair,
    RepairKind,
    apply_repairs,
    check_messages,
    propose_repairs,
)
from lutumpy.doctor.catalogue import KINDS
from lutumpy.doctor.json_patch import apply_operations
from lutumpy.models import Api
from lutumpy.plain.pointer import tokens
from lutumpy.rules.paths import path_of

SURE = "refused"

NOT_MENDED = frozenset(
    {
        "chat.messages",  # an entry that is no object, or no message at all
        "responses.input",
        "anthropic.messages",
        "chat.role",  # a role that the rest of the message doesn't show
        "responses.role",
        "anthropic.role",
        "responses.item_type",  # a type that nobody knows
        "chat.parts",
        "responses.parts",
        "anthropic.block",
        "chat.media_source",  # nobody knows what is to be shown
        "responses.media_source",
        "anthropic.media_source",
        "converse.messages",
        "converse.role",
        "converse.block",
        "converse.block_keys",  # deep in a block
        "converse.media_source",
        "converse.image_type",
        "converse.document_type",
        "gemini.contents",
        "gemini.role",
        "gemini.media",  # bytes that are none: nobody knows what they show
        "gemini.media_type",
        "anthropic.error_content",  # what an error shows in a block of a type that nobody knows
        "anthropic.image_type",  # what isn't there shows no type
        "anthropic.block_role",  # a change of tools: only the program knows what it meant
        "anthropic.system_first",
        "anthropic.tool_change",
        "anthropic.tool_change_position",
        "converse.tool_change_position",
        "responses.additional_tools",
    }
)
"""Rules of which some breaches can't be mended without guessing; all others in the table are
mended. Rules about tools, which an item may bring as well, aren't in it.
"""
MENDED = ROWS.keys() - NOT_MENDED

PLACED = frozenset(
    "set_role set_content wrap_arguments rename_tool drop_key drop_empty drop_id drop_result "
    "drop_call drop_duplicate drop_reference drop_reasoning replace_characters".split()
)
"""Kinds that change what their position names, and no other message."""

RECORDED = {
    api: [history for history in recorded(api) if isinstance(history, list)] for api in APIS
}  # an input may be a text

WORDS = st.sampled_from(
    "type role content tool_calls id call_id tool_call_id tool_use_id name function arguments user "
    "assistant tool system text tool_use tool_result reasoning function_call function_call_output "
    "custom_tool_call message input summary output is_error cache_control signature thinking "
    "toolUse toolResult toolUseId status json image reasoningContent cachePoint "
    "server_tool_use custom c1 c2 toolu_1 fc_1 rs_1 msg_1 parts functionCall functionResponse args "
    "response model inlineData thoughtSignature".split()
)
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | WORDS | st.text(max_size=4)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=20,
)
JUNK = st.lists(JSON, max_size=6) | JSON
SEEDS = st.integers(0, 2**32)


def sure(api: Api, history: Any, **options: Any) -> list[Problem]:
    return [
        problem for problem in check_messages(api, history, **options) if problem.certainty == SURE
    ]


def unexplained(left: list[Problem]) -> set[str]:
    """The rules of problems that should have been mended."""
    # What nobody can read isn't moved either, wherever else it ought to be.
    unreadable = {p.path for p in left if p.rule in NOT_MENDED}
    return {
        p.rule
        for p in left
        if p.rule in MENDED and not any(p.path in (path, path[:-1]) for path in unreadable)
    }


def damage(data: st.DataObject, history: History) -> None:
    """Change one place of a history, anywhere: another value, nothing, a copy, another place."""
    node: Any = history
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], (dict, list)) and node[key] and data.draw(st.integers(0, 2)):
            node = node[key]
            continue
        what = data.draw(st.sampled_from(["replace", "drop", "copy", "move"]))
        if what == "replace":
            node[key] = data.draw(JSON)
        elif what == "drop":
            del node[key]
        elif isinstance(node, list):
            value = copy.deepcopy(node[key]) if what == "copy" else node.pop(key)
            node.insert(data.draw(st.integers(0, len(node))), value)
        return


@pytest.mark.parametrize("api", APIS)
@given(history=JUNK)
@settings(max_examples=examples(80))
def test_no_json_makes_the_doctor_raise(api: Api, history: Any) -> None:
    for thorough in (False, True):
        found = check_messages(api, history)
        repairs = propose_repairs(api, history, thorough=thorough)
        if isinstance(history, list):
            mended = apply_repairs(history, repairs)
            assert propose_repairs(api, mended, thorough=thorough) == []
        for problem in found:
            assert problem.certainty in ROWS[problem.rule].rule.certainties


@pytest.mark.parametrize("api", APIS)
@given(data=st.data(), seed=SEEDS, held=st.booleans(), thorough=st.booleans())
@settings(max_examples=examples(60))
def test_after_the_repairs_nothing_is_sure_to_be_refused_but_what_takes_a_guess(
    api: Api, data: st.DataObject, seed: int, held: bool, thorough: bool
) -> None:
    rng = random.Random(seed)
    history = (
        copy.deepcopy(rng.choice(RECORDED[api])) if data.draw(st.booleans()) else composed(api, rng)
    )
    for _ in range(data.draw(st.integers(1, 4))):
        damage(data, history)
    before = json.dumps(history)
    repairs = propose_repairs(api, history, server_held_prefix=held, thorough=thorough)
    mended = apply_repairs(history, repairs)
    assert json.dumps(history) == before
    left = sure(api, mended, server_held_prefix=held)
    # A transcript of one message can't lose it, so what would drop that is left.
    assert unexplained(left) == set() or len(mended) == 1
    assert propose_repairs(api, mended, server_held_prefix=held, thorough=thorough) == []
    for repair in repairs:
        assert repair.kind in ROWS[repair.rule].mending.repairs, repair
        json.dumps(repair.patch, allow_nan=False)


def assert_placed(document: list[Any], repair: Repair) -> None:
    """The position is there just before the repair, and the edit is in the same message."""
    path = path_of(repair.position, document)
    if not path or not isinstance(path[0], int):
        assert repair.rule == "anthropic.cache_control"  # counted over the whole request
        return
    node: Any = document
    for number, step in enumerate(path):
        if number == len(path) - 1 and isinstance(step, str):
            assert isinstance(node, dict)  # the last may name what is missing
        else:
            node = node[step]
    if repair.kind in PLACED:
        edits = [op for op in repair.patch if op["op"] in ("replace", "remove")]
        assert not edits or path[0] in [int(tokens(op["path"])[0]) for op in edits]


@pytest.mark.parametrize("api", APIS)
@given(data=st.data(), seed=SEEDS, thorough=st.booleans())
@settings(max_examples=examples(60))
def test_positions_are_those_of_the_messages_just_before_the_repair(
    api: Api, data: st.DataObject, seed: int, thorough: bool
) -> None:
    history = composed(api, random.Random(seed), rounds=3)
    for _ in range(data.draw(st.integers(1, 4))):
        damage(data, history)
    document = copy.deepcopy(history)
    for repair in propose_repairs(api, history, thorough=thorough):
        assert_placed(document, repair)
        document = apply_operations(document, repair.patch)


@pytest.mark.parametrize("api", APIS)
@given(seed=SEEDS)
@settings(max_examples=examples(60))
def test_a_valid_history_gets_no_repairs(api: Api, seed: int) -> None:
    history = composed(api, random.Random(seed))
    assert check_messages(api, history) == []
    assert propose_repairs(api, history, thorough=True) == []
    assert apply_repairs(history, []) == history


@pytest.mark.parametrize("api", APIS)
def test_recorded_histories_get_no_repairs(api: Api) -> None:
    for history in RECORDED[api]:
        assert sure(api, history) == []
        assert propose_repairs(api, history) == []


def units(api: str, history: History) -> list[tuple[tuple[Any, ...], str]]:
    """What a repair may leave alone, with its path: messages or items, and blocks of Messages
    and Converse."""
    if api not in ("anthropic_messages", "bedrock_converse"):
        return [((index,), json.dumps(entry)) for index, entry in enumerate(history)]
    found: list[tuple[tuple[Any, ...], str]] = []
    for index, message in enumerate(history):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            found += [
                ((index, "content", n), json.dumps([message.get("role"), b]))
                for n, b in enumerate(content)
            ]
        else:
            found.append(((index,), json.dumps(message)))
    return found


@pytest.mark.parametrize("api", APIS)
@given(data=st.data(), seed=SEEDS)
@settings(max_examples=examples(60))
def test_what_no_problem_names_stays_as_it_is_and_in_its_order(
    api: Api, data: st.DataObject, seed: int
) -> None:
    """One place is broken. What changes together with it is named by its ids."""
    history = composed(api, random.Random(seed))
    name = data.draw(st.sampled_from(sorted(MUTATIONS[api])))
    if MUTATIONS[api][name](random.Random(seed), history) is None:
        return
    problems = check_messages(api, history)
    repairs = propose_repairs(api, history)
    named = {
        problem.path[:length]
        for problem in problems
        for length in range(4)
        if problem.path[:length]
    }
    if api == "gemini_generate_content":
        # Calls may have no ids: then the results are those of the content after them.
        named |= {(int(path[0]) + 1,) for path in named if isinstance(path[0], int)}
    ids = {call_id for problem in (*problems, *repairs) for call_id in problem.call_ids}
    nameless = any(
        repair.kind in ("replace_id", "match_result", "drop_reasoning") for repair in repairs
    )
    if nameless or any(problem.path == () for problem in problems):
        return
    kept = [
        text
        for path, text in units(api, history)
        if path not in named
        and path[:1] not in {p for p in named if len(p) == 1}
        and not any(i in text for i in ids)
    ]
    after = iter([text for _, text in units(api, apply_repairs(history, repairs))])
    assert [text for text in kept if text not in after] == []  # `in` walks on: a subsequence


@pytest.mark.parametrize("api", APIS)
@given(data=st.data(), seed=SEEDS)
@settings(max_examples=examples(40))
def test_repairs_fit_their_own_transcript_alone(api: Api, data: st.DataObject, seed: int) -> None:
    """Applied to another transcript, or twice, they fail as a whole: nothing half done."""
    history = composed(api, random.Random(seed))
    name = data.draw(st.sampled_from(sorted(MUTATIONS[api])))
    if MUTATIONS[api][name](random.Random(seed), history) is None:
        return
    repairs = propose_repairs(api, history)
    for repair in repairs:
        assert repair.patch[0]["op"] == "test"
        for other in ([], [{"role": "nobody"}]):
            with pytest.raises(TranscriptError, match="nothing was changed"):
                apply_repairs(other, [repair])


def test_of_each_rule_that_may_stay_broken_the_table_says_why() -> None:
    assert [rule for rule in NOT_MENDED if not ROWS[rule].mending.left] == []


def test_every_kind_of_repair_mends_some_rule() -> None:
    assert (
        {kind for row in ROWS.values() for kind in row.mending.repairs}
        == set(KINDS)
        == set(get_args(RepairKind))
    )


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_work_grows_with_the_messages_not_with_their_square(api: Api) -> None:
    """Counted are calls, not seconds: of the check, and of repairs where every round is broken."""

    def work(rounds: int, *, mend: bool) -> int:
        rng = random.Random(5)
        history = [entry for _ in range(rounds) for entry in composed(api, rng, rounds=1)]
        for index, entry in enumerate(history):
            _renumber(entry, index)
        if mend:
            history = [
                entry for index, entry in enumerate(history) if index % 7 or not _is_result(entry)
            ]
        return calls_made(
            lambda: propose_repairs(api, history) if mend else check_messages(api, history)
        )

    assert work(240, mend=False) < 4.6 * work(60, mend=False)
    assert work(240, mend=True) < 5.5 * work(60, mend=True)


def _renumber(entry: Any, index: int) -> None:
    """Give reasoning and messages ids of their own; calls keep theirs, as in real programs."""
    if isinstance(entry, dict) and isinstance(entry.get("id"), str):
        entry["id"] = f"{entry['id']}_{index}"


def _is_result(entry: Any) -> bool:
    return entry.get("role") == "tool" or "output" in entry
