"""What each kind of repair does to a transcript, and what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from composed import ROWS

from lutumpy import TranscriptError
from lutumpy.doctor import Repair, apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.writing import INTERRUPTED
from lutumpy.models import Api
from lutumpy.plain import json_values

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "x"}
MORE: Json = {"role": "user", "content": "And now?"}


def caller(*ids: str, arguments: Any = "{}") -> Json:
    calls = [
        {"id": i, "type": "function", "function": {"name": "weather", "arguments": arguments}}
        for i in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool(call_id: str, content: Any = "rain") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def call(call_id: str, **more: Any) -> Json:
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "weather",
        "arguments": "{}",
        **more,
    }


def output(call_id: str, said: Any = "rain") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": said}


def use(call_id: str, **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": {}, **more}


def result(call_id: str, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "rain", **more}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": list(blocks)}


TEXT: Json = {"type": "text", "text": "Hm."}
CLOSED: Json = {"type": "tool_result", "tool_use_id": "b", "is_error": True, "content": INTERRUPTED}
REASONING: Json = {"type": "reasoning", "id": "rs_1", "summary": []}


def mended(api: Api, messages: list[Any], **options: Any) -> tuple[list[str], list[Any]]:
    repairs = propose_repairs(api, messages, **options)
    return [repair.kind for repair in repairs], apply_repairs(messages, repairs)


CHAT: list[tuple[list[str], list[Any], list[Any]]] = [
    # An open call is closed in the order of the calls.
    (
        ["close_call"],
        [USER, caller("a", "b", "c"), tool("a"), tool("c")],
        [USER, caller("a", "b", "c"), tool("a"), tool("b", INTERRUPTED), tool("c")],
    ),
    (
        ["close_call", "close_call"],
        [USER, caller("a", "b")],
        [USER, caller("a", "b"), tool("a", INTERRUPTED), tool("b", INTERRUPTED)],
    ),
    # Results that stand elsewhere are moved, not closed.
    (
        ["move_result", "move_result"],
        [USER, caller("a", "b"), MORE, tool("b", "2"), tool("a", "1")],
        [USER, caller("a", "b"), tool("a", "1"), tool("b", "2"), MORE],
    ),
    (["move_result"], [tool("a"), USER, caller("a")], [USER, caller("a"), tool("a")]),
    # An id may come again in a later round: each round keeps its own result.
    (
        ["move_result", "close_call"],
        [USER, caller("a"), MORE, tool("a", "1"), USER, caller("a")],
        [USER, caller("a"), tool("a", "1"), MORE, USER, caller("a"), tool("a", INTERRUPTED)],
    ),
    (
        ["drop_result"],
        [USER, caller("a"), tool("a", "1"), tool("a", "2")],
        [USER, caller("a"), tool("a", "1")],
    ),
    (["drop_result"], [tool("z"), USER], [USER]),
    (
        ["rename_id"],
        [USER, caller("a", "a"), tool("a", "1"), tool("a", "2")],
        [USER, caller("a", "a_2"), tool("a", "1"), tool("a_2", "2")],
    ),
    (
        ["wrap_arguments"],
        [USER, caller("a", arguments='{"c": "Os'), tool("a")],
        [USER, caller("a", arguments='{"INVALID_JSON":"{\\"c\\": \\"Os"}'), tool("a")],
    ),
    (
        ["wrap_arguments"],
        [USER, caller("a", arguments={"c": 1}), tool("a")],
        [USER, caller("a", arguments='{"c":1}'), tool("a")],
    ),
    (
        ["wrap_arguments"],
        [USER, caller("a", arguments=""), tool("a")],
        [USER, caller("a"), tool("a")],
    ),
    (
        ["set_content"],
        [USER, caller("a"), tool("a", {"rain": 3})],
        [USER, caller("a"), tool("a", '{"rain":3}')],
    ),
    (["drop_empty"], [USER, {"role": "assistant", "content": None}, MORE], [USER, MORE]),
    # A turn that was stored twice is one turn: its results are not made up.
    (
        ["drop_duplicate"],
        [USER, caller("a"), caller("a"), tool("a")],
        [USER, caller("a"), tool("a")],
    ),
    (
        ["drop_duplicate", "close_call"],
        [USER, caller("a"), caller("a")],
        [USER, caller("a"), tool("a", INTERRUPTED)],
    ),
    (
        ["close_call"],
        [USER, caller("a"), caller("a", arguments='{"c":1}'), tool("a")],
        [USER, caller("a"), tool("a", INTERRUPTED), caller("a", arguments='{"c":1}'), tool("a")],
    ),
    (
        ["move_message", "drop_empty"],
        [[USER, caller("a"), tool("a")], None, MORE],
        [USER, caller("a"), tool("a"), MORE],
    ),
    (
        ["set_role", "set_role"],
        [{"role": "Human", "content": "x"}, {"role": "ai", "content": "y"}],
        [USER, {"role": "assistant", "content": "y"}],
    ),
]


RESPONSES: list[tuple[list[str], list[Any], list[Any]]] = [
    (
        ["close_call"],
        [USER, call("a"), call("b"), output("a"), MORE],
        [USER, call("a"), call("b"), output("a"), output("b", INTERRUPTED), MORE],
    ),
    (
        ["close_call"],
        [USER, call("a"), call("b"), output("b"), MORE],
        [USER, call("a"), call("b"), output("a", INTERRUPTED), output("b"), MORE],
    ),
    (["move_result"], [output("a"), USER, call("a"), MORE], [USER, call("a"), output("a"), MORE]),
    (["drop_result"], [USER, output("z")], [USER]),
    (
        ["drop_result"],
        [USER, call("a"), output("a", "1"), output("a", "2")],
        [USER, call("a"), output("a", "1")],
    ),
    # A call that was sent twice is one call; two calls of one id are two.
    (["drop_duplicate"], [USER, call("a"), call("a"), output("a")], [USER, call("a"), output("a")]),
    (
        ["rename_id"],
        [USER, call("a"), output("a", "1"), call("a"), output("a", "2")],
        [USER, call("a"), output("a", "1"), call("a_2"), output("a_2", "2")],
    ),
    # Reasoning goes with the ids that would ask for it.
    (["drop_reasoning"], [USER, REASONING, MORE], [USER, MORE]),
    (
        ["drop_reasoning"],
        [USER, REASONING, {"role": "assistant", "content": "x"}, call("a", id="fc_1"), output("a")],
        [USER, {"role": "assistant", "content": "x"}, call("a"), output("a")],
    ),
    (["drop_id"], [USER, call("a", id="call_a"), output("a")], [USER, call("a"), output("a")]),
    (["set_role"], [USER, call("a"), tool("a")], [USER, call("a"), output("a")]),
    (
        ["set_field"],
        [USER, call("a"), {**output("a"), "type": "custom_tool_call_output"}],
        [USER, call("a"), output("a")],
    ),
    # A screenshot can't be made up.
    (
        ["drop_call"],
        [USER, {"type": "computer_call", "call_id": "a", "action": {}}, MORE],
        [USER, MORE],
    ),
]


ANTHROPIC: list[tuple[list[str], list[Any], list[Any]]] = [
    (
        ["close_call"],
        [USER, assistant(use("a"), use("b")), user(result("a"), TEXT)],
        [USER, assistant(use("a"), use("b")), user(result("a"), CLOSED, TEXT)],
    ),
    # A crash: the next request still has to say what the user said.
    (
        ["close_call"],
        [USER, assistant(use("b")), MORE],
        [USER, assistant(use("b")), user(CLOSED), MORE],
    ),
    (["close_call"], [USER, assistant(use("b"))], [USER, assistant(use("b")), user(CLOSED)]),
    (
        ["move_result"],
        [USER, assistant(use("a")), user(TEXT, result("a"))],
        [USER, assistant(use("a")), user(result("a"), TEXT)],
    ),
    (
        ["move_result"],
        [USER, assistant(use("a")), user(TEXT), assistant(TEXT), user(result("a"), TEXT)],
        [USER, assistant(use("a")), user(result("a"), TEXT), assistant(TEXT), user(TEXT)],
    ),
    # What is left of a message from which the last block was moved is nothing.
    (
        ["move_result", "drop_empty"],
        [USER, assistant(use("a")), MORE, user(result("a")), assistant(TEXT)],
        [USER, assistant(use("a")), user(result("a")), MORE, assistant(TEXT)],
    ),
    (
        ["move_result"],
        [USER, assistant(use("a"), result("a")), assistant(TEXT), MORE],
        [USER, assistant(use("a")), assistant(TEXT), user(result("a")), MORE],
    ),
    (
        ["drop_result"],
        [USER, assistant(use("a")), user(result("a"), result("a"))],
        [USER, assistant(use("a")), user(result("a"))],
    ),
    (
        ["rename_id"],
        [USER, assistant(use("a"), use("a")), user(result("a"), result("a"))],
        [USER, assistant(use("a"), use("a_2")), user(result("a"), result("a_2"))],
    ),
    (
        ["wrap_arguments"],
        [USER, assistant(use("a", input='{"c":')), user(result("a"))],
        [USER, assistant(use("a", input={"INVALID_JSON": '{"c":'})), user(result("a"))],
    ),
    (
        ["wrap_arguments"],
        [USER, assistant(use("a", input='{"c": 1}')), user(result("a"))],
        [USER, assistant(use("a", input={"c": 1})), user(result("a"))],
    ),
    (
        ["drop_empty"],
        [USER, assistant({"type": "text", "text": ""}, use("a")), user(result("a"))],
        [USER, assistant(use("a")), user(result("a"))],
    ),
    (
        ["drop_reasoning"],
        [USER, assistant(TEXT, {"type": "thinking", "thinking": "", "signature": "S"}), MORE],
        [USER, assistant(TEXT), MORE],
    ),
    (
        ["set_role"],
        [{"role": "system", "content": "Be brief."}, USER],
        [{"role": "user", "content": "<system>\nBe brief.\n</system>"}, USER],
    ),
    (
        ["move_message"],
        [USER, {"role": "system", "content": "!"}, MORE],
        [USER, MORE, {"role": "system", "content": "!"}],
    ),
    (
        ["set_role"],
        [USER, {"role": "model", "content": [TEXT]}, MORE],
        [USER, assistant(TEXT), MORE],
    ),
    (
        ["move_content"],
        [
            USER,
            assistant(use("a")),
            user(result("a", is_error=True, content=[TEXT, {"type": "image"}])),
        ],
        [
            USER,
            assistant(use("a")),
            user(result("a", is_error=True, content=[TEXT]), {"type": "image"}),
        ],
    ),
]


@pytest.mark.parametrize(
    ("api", "case"),
    [
        (api, case)
        for api, cases in (
            ("openai_chat", CHAT),
            ("openai_responses", RESPONSES),
            ("anthropic_messages", ANTHROPIC),
        )
        for case in cases
    ],
    ids=lambda value: ",".join(value[0]) if isinstance(value, tuple) else value,
)
def test_a_broken_transcript_becomes_the_one_that_was_meant(
    api: Api, case: tuple[list[str], list[Any], list[Any]]
) -> None:
    kinds, broken, expected = case
    assert mended(api, broken) == (kinds, expected)


# ------------------------------------------------------------ ids and names


def test_ids_that_are_too_long_are_shortened_the_same_way_each_time() -> None:
    """As R2 has it: call and result alike, without collision."""
    messages = [USER, caller("x" * 50, "y" * 50), tool("x" * 50), tool("y" * 50)]
    kinds, fixed = mended("openai_chat", messages)
    ids = [entry["id"] for entry in fixed[1]["tool_calls"]]
    assert kinds == ["replace_id", "replace_id"]
    assert [entry["tool_call_id"] for entry in fixed[2:]] == ids
    assert len(set(ids)) == 2
    assert all(len(i) <= 40 for i in ids)
    assert mended("openai_chat", messages)[1] == fixed


def test_calls_and_results_without_ids_are_matched_by_their_place_if_it_tells() -> None:
    nameless = [USER, caller("", ""), tool("", "1"), tool("", "2")]
    kinds, fixed = mended("openai_chat", nameless)
    assert kinds == ["replace_id", "replace_id"]
    assert [entry["content"] for entry in fixed[2:]] == ["1", "2"]
    kinds, fixed = mended(
        "openai_chat", [USER, caller("a", "b"), tool("b"), {"role": "tool", "content": "1"}]
    )
    assert kinds == ["match_result"]
    assert fixed[3]["tool_call_id"] == "a"
    kinds, fixed = mended("openai_chat", [USER, caller("a", "b"), {"role": "tool", "content": "1"}])
    assert kinds == ["drop_result", "close_call", "close_call"]


def test_a_refused_name_is_replaced_the_same_way_at_each_call() -> None:
    messages = [USER, caller("a", "b"), tool("a"), tool("b"), caller("c"), tool("c")]
    text = json.dumps(messages).replace('"weather"', '"weather.now"')
    kinds, fixed = mended("openai_chat", json.loads(text))
    assert kinds == ["rename_tool"] * 3
    assert json.loads(text.replace("weather.now", "weather_now")) == fixed


def test_numbers_as_ids_stay_readable() -> None:
    messages = [USER, caller("a"), tool("a")]
    kinds, fixed = mended("openai_chat", json.loads(json.dumps(messages).replace('"a"', "17")))
    assert kinds == ["replace_id"]
    assert fixed == json.loads(json.dumps(messages).replace('"a"', '"17"'))


# --------------------------------------------------------------- conditions


def test_outputs_of_calls_that_the_server_holds_are_left_alone() -> None:
    assert propose_repairs("openai_responses", [output("z")], server_held_prefix=True) == []
    assert [r.kind for r in propose_repairs("openai_responses", [USER, output("z")])] == [
        "drop_result"
    ]


def test_what_works_badly_is_mended_only_when_asked_for() -> None:
    again = [USER, caller("a"), tool("a"), caller("a"), tool("a")]
    assert propose_repairs("openai_chat", again) == []
    kinds, fixed = mended("openai_chat", again, thorough=True)
    assert kinds == ["rename_id"]
    assert fixed == [USER, caller("a"), tool("a"), caller("a_2"), tool("a_2")]
    swapped = [USER, caller("a", "b"), tool("b"), tool("a")]
    assert propose_repairs("openai_chat", swapped) == []
    assert mended("openai_chat", swapped, thorough=True)[1] == [
        USER,
        caller("a", "b"),
        tool("a"),
        tool("b"),
    ]
    blocks = [USER, assistant(use("a"), use("b")), user(result("b"), result("a"), TEXT)]
    assert propose_repairs("anthropic_messages", blocks) == []
    assert mended("anthropic_messages", blocks, thorough=True) == (
        ["move_result"],
        [USER, assistant(use("a"), use("b")), user(result("a"), result("b"), TEXT)],
    )


def test_more_calls_than_a_message_takes_are_split_before_they_are_looked_at_one_by_one() -> None:
    many = caller(*[f"c{n}" for n in range(130)])
    del many["tool_calls"][129]["type"]
    kinds, fixed = mended("openai_chat", [USER, many, *[tool(f"c{n}") for n in range(130)]])
    assert kinds == ["move_call", "set_field", "move_result", "move_result"]
    assert [len(m["tool_calls"]) for m in fixed if "tool_calls" in m] == [128, 2]
    assert fixed[-3:] == [caller("c128", "c129"), tool("c128"), tool("c129")]


def test_calls_without_ids_keep_their_results_where_a_message_takes_fewer() -> None:
    """As many calls at once as only Ollama takes, which has no ids: their places pair them."""
    names = [f"f{n}" for n in range(130)]
    calls = [{"function": {"name": name, "arguments": {}}} for name in names]
    results = [{"role": "tool", "tool_name": name, "content": name} for name in names]
    history = [USER, {"role": "assistant", "content": "", "tool_calls": calls}, *results]
    kinds, fixed = mended("openai_chat", history)
    assert not {"close_call", "drop_result"} & set(kinds)
    made = [call for m in fixed for call in m.get("tool_calls", ())]
    contents = {m["tool_call_id"]: m["content"] for m in fixed if m["role"] == "tool"}
    assert [contents[call["id"]] for call in made] == names
    assert [call["function"]["name"] for call in made] == names


def test_text_behind_calls_goes_before_them_when_asked_for() -> None:
    said = {"role": "assistant", "content": "And this."}
    broken = [
        USER,
        assistant(TEXT, use("a"), {"type": "text", "text": "1"}, use("b")),
        said,
        user(result("a"), result("b")),
    ]
    assert propose_repairs("anthropic_messages", broken) == []
    kinds, fixed = mended("anthropic_messages", broken, thorough=True)
    assert kinds == ["move_content"]
    texts = [TEXT, {"type": "text", "text": "1"}, {"type": "text", "text": "And this."}]
    assert fixed == [USER, assistant(*texts, use("a"), use("b")), user(result("a"), result("b"))]
    thinking = {"type": "thinking", "thinking": "", "signature": "S"}
    signed = [USER, assistant(use("a"), thinking, TEXT), user(result("a"))]
    assert propose_repairs("anthropic_messages", signed, thorough=True) == []


def test_reasoning_behind_a_text_goes_first_where_the_request_wants_it_there() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "S"}
    broken = [USER, assistant(TEXT, thinking, use("a")), user(result("a"))]
    assert propose_repairs("anthropic_messages", broken) == []
    kinds, fixed = mended("anthropic_messages", broken, thinking="enabled")
    assert (kinds, fixed) == (
        ["move_content"],
        [USER, assistant(thinking, TEXT, use("a")), user(result("a"))],
    )
    assert check_messages("anthropic_messages", fixed, thinking="enabled") == []


def test_calls_that_were_cut_off_go_with_their_outputs_unless_they_can_be_read() -> None:
    cut = call("a", status="incomplete", arguments='{"c')
    broken = [USER, cut, output("a"), MORE]
    assert mended("openai_responses", broken, thorough=True) == (
        ["drop_call", "drop_result"],
        [USER, MORE],
    )
    assert (
        propose_repairs(
            "openai_responses", [USER, call("a", status="incomplete"), output("a")], thorough=True
        )
        == []
    )
    assert [
        r.kind for r in propose_repairs("openai_responses", [cut, output("a")], thorough=True)
    ] == ["wrap_arguments"]


def test_parallel_calls_with_a_message_between_get_their_outputs_behind_each() -> None:
    said = {"role": "assistant", "content": "And this."}
    broken = [
        USER,
        call("a"),
        call("b"),
        said,
        call("c"),
        output("a"),
        output("b"),
        output("c"),
        MORE,
    ]
    assert mended("openai_responses", broken, thorough=True) == (
        ["move_result"],
        [USER, call("a"), call("b"), output("a"), output("b"), said, call("c"), output("c"), MORE],
    )


def test_positions_are_those_before_the_repair_and_not_of_the_start() -> None:
    repairs = propose_repairs(
        "openai_chat", [{"role": "user", "content": "x"}, tool("y"), tool("z"), MORE]
    )
    assert [repair.position for repair in repairs] == ["messages[1]", "messages[1]"]
    opened = [USER, assistant(use("a")), MORE, assistant(use("b"))]
    assert [r.position for r in propose_repairs("anthropic_messages", opened)] == [
        "messages.1",
        "messages.4",
    ]


# ---------------------------------------------------------------- deep values


def nested(levels: int, leaf: Any = 1) -> Any:
    value = leaf
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return value


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("levels", [299, 300, 1_000, 50_000])
@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_no_nesting_makes_the_doctor_raise(api: Api, levels: int) -> None:
    """A value that is nested too deeply is reported and becomes its JSON text."""
    deep = nested(levels)
    places: list[Any] = [
        {"role": "user", "content": deep},
        {"role": deep, "content": "x"},
        {"role": "user", "content": "x", "more": deep},
        {"role": "user", "content": [{"type": deep, "text": "x"}]},
        {"type": "function_call", "call_id": "a", "name": "w", "arguments": deep},
        {"type": "function_call_output", "call_id": deep, "output": deep},
        caller("b", arguments=deep),
        {"role": "tool", "tool_call_id": deep, "content": deep},
        assistant(use("c", input=deep), {"type": deep}),
        deep,
    ]
    huge = levels > 10_000
    for thorough in (False,) if huge else (False, True):
        for place in places[::9] if huge else places:
            messages = [USER, place, MORE]
            told = [p for p in check_messages(api, messages) if p.rule.endswith(".nesting")]
            assert bool(told) == (levels > 300) or place is not deep
            repairs = propose_repairs(api, messages, thorough=thorough)
            fixed = apply_repairs(messages, repairs)
            assert json_values.equal(deep, nested(levels))
            json.dumps([repair.patch for repair in repairs])
            assert propose_repairs(api, fixed, thorough=thorough) == []
            assert [p for p in check_messages(api, fixed) if p.rule.endswith(".nesting")] == []


def test_what_is_nested_too_deeply_is_kept_as_its_text() -> None:
    value = nested(310, leaf='q"')
    messages = [USER, assistant(use("a", input={"v": value})), user(result("a"))]
    (repair,) = propose_repairs("anthropic_messages", messages)
    (problem,) = check_messages("anthropic_messages", messages)
    assert (problem.rule, problem.certainty, problem.path[:4]) == (
        "anthropic.nesting",
        "some",
        (1, "content", 0, "input"),
    )
    assert (repair.kind, repair.position) == ("set_content", "messages.1")
    node: Any = apply_repairs(messages, [repair])
    original: Any = messages
    for step in problem.path:
        node, original = node[step], original[step]
    assert json.loads(node) == original


def test_a_value_that_holds_itself_is_told_and_cut() -> None:
    circle: Json = {"role": "user", "content": "x"}
    circle["more"] = [circle]
    repairs = propose_repairs("anthropic_messages", [circle])
    assert json.dumps(apply_repairs([circle], repairs)) == json.dumps([USER])


def test_what_another_host_may_take_is_left_alone_there() -> None:
    messages = [USER, caller("x" * 50), tool("x" * 50)]
    assert propose_repairs("openai_chat", messages, compatible=True) == []
    assert [
        r.kind for r in propose_repairs("openai_chat", messages, compatible=True, thorough=True)
    ] == ["replace_id"]


def test_marks_for_the_cache_outside_the_messages_count() -> None:
    mark: Json = {"cache_control": {"type": "ephemeral"}}
    messages = [user({**TEXT, **mark}, {**TEXT, **mark})]
    system = [{**TEXT, **mark}]
    tools = [{"name": f"t{n}", "input_schema": {"type": "object"}, **mark} for n in range(2)]
    repairs = propose_repairs("anthropic_messages", messages, system=system, tools=tools)
    assert [repair.kind for repair in repairs] == ["drop_key"]
    assert apply_repairs(messages, repairs) == [user(TEXT, {**TEXT, **mark})]


@pytest.mark.parametrize(
    ("api", "messages", "options"),
    [
        ("openai_chat", [USER, 7], {}),
        ("openai_chat", [], {}),
        ("openai_chat", [{"role": "user"}], {}),
        ("openai_chat", [{"role": "nobody", "content": "x"}], {}),
        ("openai_responses", [USER, {"type": "unheard_of"}], {}),
        ("anthropic_messages", [{"role": "user", "content": ""}], {}),
        ("anthropic_messages", [USER, assistant(TEXT)], {"model": "claude-opus-4-8"}),
        (
            "anthropic_messages",
            [USER, assistant(use("a")), user(result("a"))],
            {"thinking": "enabled"},
        ),
    ],
)
def test_what_takes_a_guess_is_left_to_the_program(
    api: Api, messages: list[Any], options: Any
) -> None:
    assert propose_repairs(api, messages, **options) == []
    assert "refused" in [problem.certainty for problem in check_messages(api, messages, **options)]


@pytest.mark.parametrize("count", [1, 200])
def test_a_long_tail_is_mended_as_a_short_one(count: int) -> None:
    """However much is broken alike, no pass is left to the next call."""
    tail = [{"type": "reasoning", "id": f"rs_{n}", "summary": []} for n in range(count)]
    assert mended("openai_responses", [USER, *tail]) == (["drop_reasoning"] * count, [USER])
    thinking = [{"type": "thinking", "thinking": "", "signature": f"S{n}"} for n in range(count)]
    several = [assistant(block) for block in thinking]
    kinds, fixed = mended("anthropic_messages", [USER, assistant(TEXT, *thinking), *several])
    assert kinds == ["drop_reasoning"] * (2 * count)
    assert [block for message in fixed[1:] for block in message["content"]] == [TEXT]
    opened = [assistant(*[use(f"t{n}") for n in range(count)])]
    assert mended("anthropic_messages", [USER, *opened])[0] == ["close_call"] * count
    empty = [{"role": "user", "content": ""}] * count
    assert mended("anthropic_messages", [USER, assistant(TEXT), *empty])[1] == [
        USER,
        assistant(TEXT),
    ]
    calls = [call("a", arguments=str(n)) for n in range(count)]
    assert len(mended("openai_responses", [USER, *calls])[1]) == 1 + 2 * count


# ------------------------------------------------------------------ receipts


def test_a_repair_is_a_receipt_with_the_exact_edit() -> None:
    (repair,) = propose_repairs("anthropic_messages", [USER, assistant(use("b")), MORE])
    assert repair == Repair(
        kind="close_call",
        rule="anthropic.results_after_uses",
        reason="The call has no result in the next message, but the API requires one; "
        "it is closed as interrupted.",
        position="messages.1",
        call_ids=("b",),
        tools=("weather",),
        patch=[
            {"op": "test", "path": "/1/content/0/id", "value": "b"},
            {"op": "add", "path": "/2", "value": user(CLOSED)},
        ],
    )


def test_repairs_are_all_applied_or_none() -> None:
    broken = [USER, caller("a", "b"), tool("z")]
    repairs = propose_repairs("openai_chat", broken)
    assert len(repairs) == 3
    other = [USER, caller("a", "c"), tool("z")]
    before = json.dumps(other)
    with pytest.raises(
        TranscriptError,
        match=r"repair 2 \(close_call at messages\[1\]\) doesn't fit these messages",
    ):
        apply_repairs(other, repairs)
    assert json.dumps(other) == before
    with pytest.raises(TranscriptError, match="nothing was changed"):
        apply_repairs(broken, repairs[1:] + repairs[:1] + repairs)
    with pytest.raises(TranscriptError, match="repairs are for a list of messages"):
        apply_repairs("hi", repairs)


def test_the_first_repairs_may_be_applied_without_the_rest() -> None:
    broken = [USER, caller("a", "b"), tool("z")]
    repairs = propose_repairs("openai_chat", broken)
    assert apply_repairs(broken, repairs[:1]) == [
        USER,
        caller("a", "b"),
        tool("z"),
        tool("a", INTERRUPTED),
    ]


def test_the_list_that_comes_back_is_another_one() -> None:
    messages = [user(TEXT)]
    copy = apply_repairs(messages, [])
    copy[0]["content"][0]["text"] = "changed"
    assert messages == [user(TEXT)]


def test_objects_of_the_sdks_are_mended_as_json() -> None:
    from anthropic.types import TextBlock, ToolUseBlock

    blocks = [
        TextBlock(type="text", text="I look."),
        ToolUseBlock(type="tool_use", id="b", name="weather", input={}),
    ]
    messages = [USER, {"role": "assistant", "content": blocks}, MORE]
    fixed = apply_repairs(messages, propose_repairs("anthropic_messages", messages))
    assert fixed == [
        USER,
        assistant({"type": "text", "text": "I look."}, use("b")),
        user(CLOSED),
        MORE,
    ]
    assert messages[1]["content"] is blocks


def test_a_call_is_not_closed_twice_by_the_same_repair() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for behind in ([], [{"role": "user", "content": "And now?"}]):
        history = [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "tool_calls": [call]},
            *behind,
        ]
        repairs = propose_repairs("openai_chat", history)
        mended = apply_repairs(history, repairs)
        with pytest.raises(TranscriptError, match=r"stands at .* already; nothing was changed"):
            apply_repairs(mended, repairs)


def test_what_is_no_repair_is_told() -> None:
    with pytest.raises(TranscriptError, match="repair 1 is not a Repair but int"):
        apply_repairs([{"role": "user", "content": "Look."}], [5])  # type: ignore[list-item]


# An item without a type is read as a reference, whatever other keys it has.
ENCRYPTED: Json = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "gAAA"}
SPOKEN: Json = {
    "type": "message",
    "id": "msg_0",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Rain."}],
}
TYPELESS: Json = {key: value for key, value in ENCRYPTED.items() if key != "type"}


@pytest.mark.parametrize("copy_of_it", [TYPELESS, {"type": "item_reference", "id": "rs_0"}])
def test_a_reference_to_an_item_of_the_same_input_is_left_out(copy_of_it: Json) -> None:
    kinds, after = mended("openai_responses", [USER, ENCRYPTED, copy_of_it, SPOKEN, USER])
    assert kinds == ["drop_duplicate"]
    assert after == [USER, ENCRYPTED, SPOKEN, USER]


def test_an_item_of_an_unknown_type_with_the_id_of_another_loses_it() -> None:
    history = [USER, ENCRYPTED, SPOKEN, {"type": 5, "id": "rs_0"}, USER]
    found = [p.rule for p in check_messages("openai_responses", history)]
    assert "responses.duplicate_item" in found
    after = apply_repairs(history, propose_repairs("openai_responses", history))
    left = [p.rule for p in check_messages("openai_responses", after) if p.certainty == "refused"]
    assert "responses.duplicate_item" not in left


def test_a_providers_call_with_a_field_of_results_is_dropped_as_a_call() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "f", "tool_use_id": "x"}
    history: list[Any] = [
        {"role": "user", "content": "Search."},
        {"role": "assistant", "content": [call, {"type": "text", "text": "Hm."}]},
        {"role": "user", "content": "And now?"},
    ]
    repairs = propose_repairs("anthropic_messages", history)
    assert "drop_call" in [repair.kind for repair in repairs]
    for repair in repairs:
        assert repair.kind in ROWS[repair.rule].mending.repairs, repair


def test_an_output_that_gets_another_kind_makes_room_for_the_one_behind_it() -> None:
    """Two calls of both kinds have one id, and programs answer both by outputs of functions."""
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "shell", "input": "ls"}
    first, second = output("a", "first"), output("a", "second")
    kinds, after = mended("openai_responses", [USER, custom, first, call("a"), second])
    assert kinds == ["set_field"]
    first["type"] = "custom_tool_call_output"
    assert after == [USER, custom, first, call("a"), second]
