"""Repairs of single mistakes that recorded histories seldom hold."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.rules.openai.responses.limits import MAX_OUTPUT

SURE = "refused"

MARK = {"cache_control": {"type": "ephemeral"}}
ASKED = {"role": "user", "content": "Hi"}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, **MARK}


RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [text("x"), "odd", text("y")]}
CALLS = [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g")]
RESULTS = [{"functionResponse": {"name": name, "response": {"a": 1}}} for name in ("f", "g")]
EMPTY = {
    "role": "assistant",
    "content": [],
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    ],
}
ANSWERED = {"role": "tool", "tool_call_id": "c1", "content": "x"}
CONVERSE_USE = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}


def gemini(*parts: Any) -> list[Any]:
    asked = {"role": "user", "parts": [{"text": "Hi"}]}
    called = [{**CALLS[0], "thoughtSignature": "c2ln"}, CALLS[1]]
    return [asked, {"role": "model", "parts": called}, {"role": "user", "parts": list(parts)}]


def converse(status: Any) -> list[Any]:
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}], "status": status}}
    return [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": [CONVERSE_USE]},
        {"role": "user", "content": [result]},
    ]


@pytest.mark.parametrize(
    ("api", "history", "rule"),
    [
        (
            "anthropic_messages",
            [
                ASKED,
                {"role": "assistant", "content": [USE]},
                {"role": "user", "content": [RESULT, text("a"), text("b"), text("c")]},
            ],
            "anthropic.cache_control",
        ),
        ("gemini_generate_content", gemini(*RESULTS, {"text": "beside"}), "gemini.results_alone"),
        ("gemini_generate_content", gemini(*RESULTS[::-1]), "gemini.result_order"),
        ("openai_chat", [ASKED, EMPTY, ANSWERED], "chat.content"),
        ("bedrock_converse", converse("Failed"), "converse.result_status"),
        ("bedrock_converse", converse("odd"), "converse.result_status"),
    ],
)
def test_it_is_found_mended_and_found_no_more(api: Any, history: list[Any], rule: str) -> None:
    def found(messages: Any) -> list[str]:
        return [problem.rule for problem in check_messages(api, messages)]

    assert rule in found(history)
    mended = apply_repairs(history, propose_repairs(api, history, thorough=True))
    assert rule not in found(mended)
    assert len(mended) >= len(history)


# --- what random damage has found -----------------------------------------------------------------


def mended(api: Any, history: list[Any]) -> list[Any]:
    """The history after its repairs, which leaves nothing to propose."""
    after: list[Any] = apply_repairs(history, propose_repairs(api, history))
    assert propose_repairs(api, after) == []
    return after


def refused(api: Any, history: list[Any]) -> list[str]:
    return [problem.rule for problem in check_messages(api, history) if problem.certainty == SURE]


def test_calls_and_results_of_the_wrong_speakers_in_neighbouring_contents_are_parted() -> None:
    call, result = {"functionCall": {"name": "f"}}, {"functionResponse": {"name": "f"}}
    history = [
        {"role": "user", "parts": [{"text": "Hm."}, call, call]},
        {"role": "model", "parts": [result]},
    ]
    after = mended("gemini_generate_content", history)
    assert refused("gemini_generate_content", after) == []
    roles = {
        content["role"] for content in after for part in content["parts"] if "functionCall" in part
    }
    assert roles == {"model"}


ROUND = [
    {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
]


@pytest.mark.parametrize(
    ("api", "history"),
    [
        ("anthropic_messages", [ASKED, {"content": ROUND}, ASKED]),
        ("anthropic_messages", [ASKED, [{"content": ROUND[:1]}]]),
        (
            "openai_chat",
            [
                ASKED,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": 17, "type": "function", "function": {"name": "f", "arguments": ""}}
                    ],
                },
                {"tool_call_id": 17, "content": "rain"},
            ],
        ),
        ("openai_chat", [ASKED, [{"tool_calls": EMPTY["tool_calls"]}]]),
        (
            "bedrock_converse",
            [
                {"role": "user", "content": [{"text": "Hi"}]},
                [{"content": [CONVERSE_USE]}],
            ],
        ),
        ("ollama_chat", [ASKED, [{"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]]),
    ],
)
def test_a_role_that_calls_or_results_show_is_found(api: Any, history: list[Any]) -> None:
    after = mended(api, history)
    assert refused(api, after) == []
    assert "assistant" in [message["role"] for message in after]


@pytest.mark.parametrize("nothing", [False, [], "", {}])
@pytest.mark.parametrize("key", ["toolUse", "toolResult"])
def test_a_block_of_converse_that_holds_nothing_goes(key: str, nothing: Any) -> None:
    asked = {"role": "user", "content": [{"text": "Hi"}]}
    odd = {"role": "assistant", "content": [{"text": "So."}, {key: nothing}]}
    after = mended("bedrock_converse", [asked, odd, asked])
    assert refused("bedrock_converse", after) == []


def test_a_first_system_message_that_changes_tools_is_left_to_the_program() -> None:
    change = {
        "type": "tool_addition",
        "tool": {"type": "tool_reference", "name": "f"},
    }
    history = [{"role": "system", "content": [change]}, ASKED]
    assert propose_repairs("anthropic_messages", history) == []


def test_blocks_in_a_message_of_an_unknown_role_are_not_said_to_stand_wrong() -> None:
    history = [ASKED, {"role": "somebody", "content": [USE]}]
    assert "anthropic.block_role" not in refused("anthropic_messages", history)


def test_a_reference_by_an_id_that_no_item_can_have_goes() -> None:
    history = [{"role": "user", "content": "Hi"}, {"type": "item_reference", "id": "x" * 65}]
    assert refused("openai_responses", history) == ["responses.item_id"]
    assert mended("openai_responses", history) == history[:1]


@pytest.mark.parametrize("call_id", [[], {}, [1]])
def test_an_id_of_a_search_that_is_no_text_raises_nothing(call_id: Any) -> None:
    call = {"type": "function_call", "call_id": "c1"}
    history = [call, {"type": "tool_search_output", "call_id": call_id}, call]
    apply_repairs(history, propose_repairs("openai_responses", history))


@pytest.mark.parametrize(
    ("part", "role", "words"),
    [
        ({"functionResponse": {"name": "f", "response": {}}}, "user", "results"),
        ({"functionCall": {"name": "f", "args": {}}}, "model", "calls"),
        ({"text": "So.", "thoughtSignature": "c2ln"}, "model", "thoughts"),
    ],
)
def test_a_content_of_gemini_of_an_unknown_role_has_the_one_that_it_shows(
    part: Any, role: str, words: str
) -> None:
    asked = {"role": "user", "parts": [{"text": "Hi"}]}
    repairs = propose_repairs(
        "gemini_generate_content", [asked, {"role": "somebody", "parts": [part]}]
    )
    (repair,) = [repair for repair in repairs if repair.kind == "set_role"]
    assert repair.reason == (
        f"The role is missing or unknown; a message with {words} has the role {role!r}."
    )


# --- what each becomes ----------------------------------------------------------------------------


CALL = {"function": {"name": "f", "arguments": {}}}


def ollama(calls: Any) -> list[Any]:
    result = {"role": "tool", "tool_name": "f", "content": "x"}
    return [ASKED, {"role": "assistant", "content": "So.", "tool_calls": calls}, result]


@pytest.mark.parametrize("calls", [CALL, ["odd", CALL], [CALL, None]])
def test_ollamas_calls_are_a_list_of_calls(calls: Any) -> None:
    assert refused("ollama_chat", ollama(calls)) == ["ollama.tool_calls"]
    assert mended("ollama_chat", ollama(calls)) == ollama([CALL])


@pytest.mark.parametrize("calls", ["odd", 7, {}])
def test_of_ollamas_calls_that_hold_none_nothing_stays(calls: Any) -> None:
    assert mended("ollama_chat", ollama(calls)) == [ASKED, {"role": "assistant", "content": "So."}]


def test_an_id_of_ollama_is_a_text() -> None:
    call, result = {"id": 3, **CALL}, {"role": "tool", "tool_call_id": 3, "content": "x"}
    history = [ASKED, {"role": "assistant", "content": "", "tool_calls": [call]}, result]
    after = mended("ollama_chat", history)
    assert after[1]["tool_calls"] == [{"id": "3", **CALL}]
    assert after[2]["tool_call_id"] == "3"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([{"type": "reasoning.text", "text": "Hm."}, {"summary": "So."}, "odd"], "Hm.\n\nSo."),
        ("Hm.", "Hm."),
    ],
)
def test_reasoning_that_can_be_read_goes_where_the_host_takes_it(said: Any, words: str) -> None:
    turn = {"role": "assistant", "content": "x"}
    history = [ASKED, {**turn, "reasoning_details": said}, ASKED]
    repairs = propose_repairs("openai_chat", history, host="groq")
    assert apply_repairs(history, repairs) == [ASKED, {**turn, "reasoning": words}, ASKED]


def test_a_result_of_claude_that_is_an_error_holds_text_only() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    failed = {"type": "tool_result", "tool_use_id": "t1", "is_error": True}
    asked, called = ASKED, {"role": "assistant", "content": [USE]}
    for parts in ([image], [{"type": "text", "text": "no"}, image]):
        history = [asked, called, {"role": "user", "content": [{**failed, "content": parts}]}]
        assert refused("anthropic_messages", history) == ["anthropic.error_content"]
        result, behind = mended("anthropic_messages", history)[2]["content"]
        assert [part["type"] for part in result["content"]] == ["text"]
        assert behind == image


@pytest.mark.parametrize("written", [{}, {"toolset_name": "other"}])
def test_a_result_of_claude_names_the_toolset_of_its_call(written: dict[str, str]) -> None:
    call, result = {**USE, "toolset_name": "s"}, {"type": "tool_result", "tool_use_id": "t1"}
    history = [
        ASKED,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{**result, "content": "x", **written}]},
    ]
    (after,) = mended("anthropic_messages", history)[2]["content"]
    assert after == {**result, "content": "x", "toolset_name": "s"}


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            "call",
        ),
        ({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}, "result"),
    ],
)
def test_of_claudes_own_tools_no_call_or_result_is_alone(block: Any, kind: str) -> None:
    said = {"type": "text", "text": "So."}
    history = [ASKED, {"role": "assistant", "content": [block, said]}, ASKED]
    (repair,) = propose_repairs("anthropic_messages", history)
    assert repair.kind == f"drop_{kind}"
    assert apply_repairs(history, [repair])[1]["content"] == [said]


def test_of_an_output_that_is_too_long_the_beginning_stays_and_its_length_is_told() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "x" * (MAX_OUTPUT + 1)}
    history = [ASKED, call, output]
    (*_, after) = apply_repairs(history, propose_repairs("openai_responses", history))
    assert len(after["output"]) <= MAX_OUTPUT
    assert after["output"].endswith(f"xx... [cut: {MAX_OUTPUT + 1} characters]")


def test_an_image_of_an_answer_goes_to_the_user_behind_its_calls_and_results() -> None:
    image = {"type": "input_image", "image_url": "https://example.org/a.png"}
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    answer = {"role": "assistant", "content": [image]}
    _, first, *between, last = mended("openai_responses", [ASKED, answer, call, output])
    assert [part["type"] for part in first["content"]] == ["output_text"]
    assert between == [call, output]
    assert last["role"] == "user"
    assert last["content"][1] == image


def gemini_answer(parts: Any) -> list[Any]:
    said = {"role": "model", "parts": [{"text": "So."}]}
    return [*gemini()[:1], said, {"role": "user", "parts": parts}]


IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


@pytest.mark.parametrize(
    ("parts", "after"),
    [
        ({"text": "x"}, [{"text": "x"}]),
        ("x", [{"text": "x"}]),
        (7, [{"text": "7"}]),
        ([None, {"text": "x"}], [{"text": "x"}]),
        ([{}, {"text": "x"}], [{"text": "x"}]),
        (["x", 5], [{"text": "x"}, {"text": "5"}]),
        ([{"text": "x", **IMAGE}], [{"text": "x"}, IMAGE]),
        ([{"text": "x", "inlineData": 7}], [{"text": "x"}]),
    ],
)
def test_the_parts_of_gemini_are_a_list_of_parts_with_one_kind_of_data(
    parts: Any, after: list[Any]
) -> None:
    assert mended("gemini_generate_content", gemini_answer(parts)) == gemini_answer(after)


@pytest.mark.parametrize("parts", [[], [{}], [None]])
def test_a_content_of_gemini_that_holds_nothing_goes(parts: Any) -> None:
    history = gemini_answer(parts)
    assert mended("gemini_generate_content", history) == history[:2]


def test_instructions_among_geminis_contents_are_marked_as_such() -> None:
    history = [*gemini()[:1], {"role": "system", "parts": [{"text": "Be brief."}]}]
    assert mended("gemini_generate_content", history)[1] == {
        "role": "user",
        "parts": [{"text": "<system>\nBe brief.\n</system>"}],
    }


@pytest.mark.parametrize(
    ("blocks", "after"),
    [
        ([{"text": "x", **CONVERSE_USE}], [{"text": "x"}, CONVERSE_USE]),
        ([{"toolUse": {**CONVERSE_USE["toolUse"], "type": "tool_use"}}], [CONVERSE_USE]),
        ([{"toolUse": {**CONVERSE_USE["toolUse"], "odd": 1}}], [CONVERSE_USE]),
        (
            [{"toolUse": {**CONVERSE_USE["toolUse"], "name": "f g"}}],
            [{"toolUse": {**CONVERSE_USE["toolUse"], "name": "f_g"}}],
        ),
    ],
)
def test_a_block_of_converse_says_one_thing_as_requests_say_it(
    blocks: list[Any], after: list[Any]
) -> None:
    history = converse("success")
    history[1]["content"] = blocks
    assert mended("bedrock_converse", history)[1]["content"] == after


def test_a_mark_that_is_there_already_is_not_put_behind_its_text_again() -> None:
    mark = {"cachePoint": {"type": "default"}}
    history = [*converse("success")[:1], {"role": "assistant", "content": [{"text": "x", **mark}]}]
    history[1]["content"].append(mark)
    assert mended("bedrock_converse", history)[1]["content"] == [{"text": "x"}, mark]


@pytest.mark.parametrize("arguments", ["{}", {}])
def test_calls_that_ollamas_results_hold_are_spelled_as_calls(arguments: Any) -> None:
    history = ollama([CALL])
    history[2]["tool_calls"] = {"name": "f", "arguments": arguments}
    assert CALL in [call for turn in mended("ollama_chat", history) for call in _calls_of(turn)]


def _calls_of(message: dict[str, Any]) -> list[Any]:
    calls: list[Any] = message.get("tool_calls", [])
    return calls


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Ann Lee", "Ann_Lee"),
        (" Ann ", "Ann"),
        ("a/b|c", "a_b_c"),
        ("<x>", "x"),
        ("</>", None),
        ("", None),
    ],
)
def test_the_name_of_who_speaks_gets_the_characters_that_are_taken(
    name: str, wanted: str | None
) -> None:
    history = [{"role": "user", "name": name, "content": "Hi"}]
    (problem,) = check_messages("openai_chat", history)
    assert (problem.rule, problem.certainty) == ("chat.name", SURE)
    mended = apply_repairs(history, propose_repairs("openai_chat", history))
    assert mended[0].get("name") == wanted
    assert check_messages("openai_chat", mended) == []


@pytest.mark.parametrize("name", [{}, {"name": None}, {"name": ""}], ids=str)
def test_the_result_of_an_old_function_gets_the_name_of_its_call(name: dict[str, Any]) -> None:
    """The vendor's API description requires it."""
    call = {"name": "weather", "arguments": "{}"}
    asked = {"role": "assistant", "content": None, "function_call": call}
    result = {"role": "function", **name, "content": "rain"}
    for before, wanted in ((asked, "weather"), ({"role": "user", "content": "x"}, "unknown_tool")):
        history = [{"role": "user", "content": "Hi"}, before, result]
        assert [p.rule for p in check_messages("openai_chat", history)] == ["chat.name"]
        mended = apply_repairs(history, propose_repairs("openai_chat", history))
        assert mended[2] == {**result, "name": wanted}
        assert propose_repairs("openai_chat", mended) == []


def test_names_of_tools_beside_results_and_names_of_other_hosts_stay() -> None:
    history = [{"role": "user", "name": "Ann Lee", "content": "Hi"}]
    assert propose_repairs("openai_chat", history, compatible=True) == []
    named = [ASKED, {**EMPTY, "content": None}, {**ANSWERED, "name": "my tool"}]
    assert check_messages("openai_chat", named) == []
