"""Entries, contents and ids of a shape that no API takes: what each becomes, and is accepted."""

from __future__ import annotations

from typing import Any

import pytest
from composed import APIS
from composed import said as told
from test_repairs import (
    MORE,
    REASONING,
    TEXT,
    USER,
    Json,
    assistant,
    call,
    caller,
    mended,
    output,
    result,
    tool,
    use,
    user,
)

from lutumpy.doctor import check_messages
from lutumpy.doctor.writing import INTERRUPTED
from lutumpy.models import Api
from lutumpy.rules.openai.limits import MAX_ARGUMENTS
from lutumpy.rules.openai.responses.limits import MAX_OUTPUT

HALVES: Json = {chr(0xD800): 1, chr(0xDC00): 2}
THINKING: Json = {"type": "thinking", "thinking": "Hm.", "signature": "S"}
IMAGE: Json = {"type": "image_url", "image_url": {"url": "https://x/1.png", "detail": "low"}}

Case = tuple[list[str], list[Any], list[Any]]


def calls(*entries: Any) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(entries)}


def custom(text: Any) -> Json:
    return calls({"id": "a", "type": "custom", "custom": {"name": "w", "input": text}})


def said(content: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def asked(*parts: Any) -> Json:
    return {"role": "user", "content": list(parts)}


ONE = caller("a")["tool_calls"][0]
CHAT: list[Case] = [
    # A role is told from what only one role says.
    (
        ["set_role"],
        [USER, {"content": [{"type": "refusal", "refusal": "no"}]}, MORE],
        [USER, said([{"type": "refusal", "refusal": "no"}]), MORE],
    ),
    (
        ["set_role"],
        [{"content": [{"type": "text", "text": "x"}, IMAGE]}],
        [asked({"type": "text", "text": "x"}, IMAGE)],
    ),
    (
        ["set_role"],
        [USER, {"tool_calls": [ONE]}, tool("a")],
        [USER, {"role": "assistant", "tool_calls": [ONE]}, tool("a")],
    ),
    (
        ["set_role"],
        [USER, caller("a"), {"tool_call_id": "a", "content": "rain"}],
        [USER, caller("a"), tool("a")],
    ),
    # Calls that are no list of calls.
    (
        ["set_field"],
        [USER, {**caller("a"), "tool_calls": ONE}, tool("a")],
        [USER, caller("a"), tool("a")],
    ),
    (["drop_key"], [USER, said("x", tool_calls=5), MORE], [USER, said("x"), MORE]),
    (["drop_call"], [USER, calls(5, ONE), tool("a")], [USER, caller("a"), tool("a")]),
    (
        ["wrap_arguments"],
        [USER, caller("a", arguments=None), tool("a")],
        [USER, caller("a"), tool("a")],
    ),
    (["wrap_arguments"], [USER, custom(None), tool("a")], [USER, custom(""), tool("a")]),
    (["wrap_arguments"], [USER, custom({"b": 1}), tool("a")], [USER, custom('{"b":1}'), tool("a")]),
    # Contents and parts.
    (
        ["set_content"],
        [USER, said({"type": "text", "text": "x"}), MORE],
        [USER, said([{"type": "text", "text": "x"}]), MORE],
    ),
    (
        ["set_content"],
        [USER, said(["x"]), MORE],
        [USER, said([{"type": "text", "text": "x"}]), MORE],
    ),
    (
        ["set_content"],
        [USER, said([{"type": "output_text", "text": "x"}]), MORE],
        [USER, said([{"type": "text", "text": "x"}]), MORE],
    ),
    (
        ["set_content"],
        [USER, said([{"type": "text", "text": 5}]), MORE],
        [USER, said([{"type": "text", "text": "5"}]), MORE],
    ),
    (
        ["set_content"],
        [asked({"type": "refusal", "refusal": "no"})],
        [asked({"type": "text", "text": "no"})],
    ),
    (["drop_empty"] * 2, [USER, said([{"type": "refusal", "text": "x"}]), MORE], [USER, MORE]),
    # Ids of every kind are told apart.
    (
        ["rename_id"] * 2,
        [USER, caller("a", "a", "a"), tool("a", "1"), tool("a", "2"), tool("a", "3")],
        [USER, caller("a", "a_2", "a_3"), tool("a", "1"), tool("a_2", "2"), tool("a_3", "3")],
    ),
    (
        ["replace_id"],
        [USER, caller(5), tool(5)],  # type: ignore[arg-type]
        [USER, caller("5"), tool("5")],
    ),
    (
        ["rename_id"],
        [USER, caller("a", "a", "a_2"), tool("a", "1"), tool("a", "2"), tool("a_2", "3")],
        [USER, caller("a", "a_3", "a_2"), tool("a", "1"), tool("a_3", "2"), tool("a_2", "3")],
    ),
    (
        ["replace_id", "replace_id", "close_call"],
        [USER, caller("", ""), tool("", "1")],
        [
            USER,
            caller("call_recovered_2", "call_recovered_3"),
            tool("call_recovered_2", INTERRUPTED),
            tool("call_recovered_3", "1"),
        ],
    ),
    (["drop_result"], [{"role": "tool", "content": "1"}, USER], [USER]),
    (["replace_characters"], [{**USER, **HALVES}], [{**USER, "\ufffd": 2}]),
]


def question(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": list(parts)}]


def freeform(text: Any) -> list[Any]:
    return [
        USER,
        {"type": "custom_tool_call", "call_id": "a", "name": "w", "input": text},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "x"},
    ]


def waits(kind: str, **more: Any) -> Json:
    return {"type": kind, "call_id": "a", **more}


SEARCH = waits("tool_search_call", execution="client", arguments={})
LOCAL_SHELL = waits(
    "local_shell_call",
    id="lsh_1",
    action={"type": "exec", "command": ["ls"], "env": {}},
    status="completed",
)
SHELL = waits("shell_call", action={"commands": ["ls"]}, status="completed")
PATCH = waits(
    "apply_patch_call", operation={"type": "delete_file", "path": "x"}, status="completed"
)
DONE = {"role": "assistant", "content": "x"}
CUT = {"status": "incomplete", "arguments": '{"a'}
WEB: Json = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
RESPONSES: list[Case] = [
    (["drop_reference"], [{"type": "item_reference"}, USER], [USER]),
    # An item's type is told from its keys.
    (
        ["set_field"],
        [USER, {"call_id": "a", "name": "weather", "arguments": "{}"}, output("a")],
        [USER, call("a"), output("a")],
    ),
    (
        ["set_field"],
        [USER, call("a"), {"call_id": "a", "output": "rain"}],
        [USER, call("a"), output("a")],
    ),
    (
        ["set_field", "replace_id", "close_call"],
        [USER, {"name": "weather", "arguments": "{}"}, MORE],
        [USER, call("call_recovered_2"), output("call_recovered_2", INTERRUPTED), MORE],
    ),
    (
        ["set_role"],
        [USER, {"role": None, "content": [{"type": "output_text", "text": "x"}]}, MORE],
        [USER, {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}, MORE],
    ),
    (
        ["set_role"],
        [{"role": None, "content": [{"type": "input_text", "text": "x"}]}],
        question({"type": "input_text", "text": "x"}),
    ),
    # Parts of the other wire.
    (
        ["set_content"],
        question(IMAGE),
        question({"type": "input_image", "image_url": "https://x/1.png", "detail": "low"}),
    ),
    (
        ["set_content"],
        [USER, call("a"), output("a", [{"type": "image_url", "image_url": "https://x"}])],
        [USER, call("a"), output("a", [{"type": "input_image", "image_url": "https://x"}])],
    ),
    (
        ["drop_empty", "set_content"],
        question(5, "bare"),
        question({"type": "input_text", "text": "bare"}),
    ),
    (
        ["set_content"],
        [{"role": "user", "content": {"type": "input_text", "text": "x"}}],
        question({"type": "input_text", "text": "x"}),
    ),
    (
        ["set_content"],
        question({"type": "input_text", "text": {"a": 1}}),
        question({"type": "input_text", "text": '{"a":1}'}),
    ),
    (["set_content"], [USER, call("a"), output("a", None)], [USER, call("a"), output("a", "")]),
    (
        ["set_content"],
        [USER, call("a"), output("a", {"type": "input_text", "text": "q"})],
        [USER, call("a"), output("a", [{"type": "input_text", "text": "q"}])],
    ),
    (["drop_empty"], [USER, {"role": "assistant", "content": None}, MORE], [USER, MORE]),
    (["wrap_arguments"], freeform(None), freeform("")),
    (["wrap_arguments"], freeform({"b": 1}), freeform('{"b":1}')),
    # Reasoning is sent back with its own id, or encrypted, or not at all.
    (
        ["drop_reasoning"],
        [USER, {"type": "reasoning", "id": "nope", "summary": []}, DONE],
        [USER, DONE],
    ),
    (
        ["drop_id"],
        [USER, {"type": "reasoning", "id": "nope", "summary": [], "encrypted_content": "E"}, DONE],
        [USER, {"type": "reasoning", "summary": [], "encrypted_content": "E"}, DONE],
    ),
    (
        ["set_field"],
        [USER, {**REASONING, "summary": "x"}, call("a", id="fc_1"), output("a")],
        [
            USER,
            {**REASONING, "summary": [{"type": "summary_text", "text": "x"}]},
            call("a", id="fc_1"),
            output("a"),
        ],
    ),
    (
        ["drop_duplicate"],
        [
            USER,
            REASONING,
            call("a", id="fc_1"),
            output("a"),
            REASONING,
            call("b", id="fc_2"),
            output("b"),
        ],
        [USER, REASONING, call("a", id="fc_1"), output("a"), call("b", id="fc_2"), output("b")],
    ),
    (
        ["drop_reasoning"],
        [
            USER,
            {**REASONING, "summary": [{"type": "summary_text", "text": "1"}]},
            call("a", id="fc_1"),
            output("a"),
            REASONING,
            call("b", id="fc_2"),
            output("b"),
        ],
        [
            USER,
            {**REASONING, "summary": [{"type": "summary_text", "text": "1"}]},
            call("a", id="fc_1"),
            output("a"),
            call("b", id="fc_2"),
            output("b"),
        ],
    ),
    (
        ["drop_id"],
        [USER, call("a", id="fc_1"), output("a"), call("b", id="fc_1"), output("b")],
        [USER, call("a", id="fc_1"), output("a"), call("b"), output("b")],
    ),
    (
        ["drop_id"],
        [USER, WEB, {**WEB, "status": "failed"}, MORE],
        [USER, WEB, {"type": "web_search_call", "status": "failed"}, MORE],
    ),
    # Each kind of call that waits is closed in its own words.
    (
        ["close_call"],
        [USER, SEARCH],
        [
            USER,
            SEARCH,
            waits("tool_search_output", execution="client", status="incomplete", tools=[]),
        ],
    ),
    (
        ["close_call"],
        [USER, LOCAL_SHELL],
        [USER, LOCAL_SHELL, waits("local_shell_call_output", id="a", output=INTERRUPTED)],
    ),
    (
        ["close_call"],
        [USER, SHELL],
        [
            USER,
            SHELL,
            waits(
                "shell_call_output",
                output=[
                    {
                        "stdout": "",
                        "stderr": INTERRUPTED,
                        "outcome": {"type": "exit", "exit_code": 1},
                    }
                ],
            ),
        ],
    ),
    (
        ["close_call"],
        [USER, PATCH],
        [USER, PATCH, waits("apply_patch_call_output", status="failed", output=INTERRUPTED)],
    ),
    # Outputs without an id are matched by their place, if it tells.
    (
        ["match_result"],
        [
            USER,
            call("a"),
            call("b"),
            output("b"),
            {"type": "function_call_output", "output": "rain"},
        ],
        [USER, call("a"), call("b"), output("b"), output("a")],
    ),
    (
        ["drop_result", "drop_result", "close_call"],
        [
            USER,
            call("a"),
            {"type": "function_call_output", "output": "1"},
            {"type": "function_call_output", "output": "2"},
        ],
        [USER, call("a"), output("a", INTERRUPTED)],
    ),
]


ANTHROPIC: list[Case] = [
    # What only the model says tells the role.
    (
        ["set_role"],
        [USER, {"content": [THINKING, TEXT]}, MORE],
        [USER, assistant(THINKING, TEXT), MORE],
    ),
    (
        ["set_role"],
        [USER, user(use("a"), use("b")), user(result("a"), result("b"))],
        [USER, assistant(use("a"), use("b")), user(result("a"), result("b"))],
    ),
    (
        ["move_call"] * 2,
        [USER, user(use("a"), TEXT, use("b")), user(result("a"), result("b"))],
        [
            USER,
            user(TEXT),
            assistant(use("a")),
            assistant(use("b")),
            user(result("a"), result("b")),
        ],
    ),
    (["drop_reasoning"], [USER, user(THINKING, TEXT)], [USER, user(TEXT)]),
    # Contents, texts and blocks.
    (
        ["set_content"],
        [USER, assistant({"type": "text", "text": {"a": 1}}), MORE],
        [USER, assistant({"type": "text", "text": '{"a":1}'}), MORE],
    ),
    (["set_content"], [USER, said(TEXT), MORE], [USER, assistant(TEXT), MORE]),
    (["set_content"], [USER, said(5), MORE], [USER, said("5"), MORE]),
    (["set_content"], [USER, assistant("Hm."), MORE], [USER, assistant(TEXT), MORE]),
    (["set_content"], [USER, assistant({"text": "Hm."}), MORE], [USER, assistant(TEXT), MORE]),
    (["drop_empty"], [USER, assistant(5, TEXT), MORE], [USER, assistant(TEXT), MORE]),
    (["drop_key"] * 2, [USER, said("x", a=1, b=2), MORE], [USER, said("x"), MORE]),
    (
        ["drop_key"] * 3,
        [USER, assistant(use("a", x=1, y=2)), user(result("a", x=1))],
        [USER, assistant(use("a")), user(result("a"))],
    ),
    # Calls and results.
    (
        ["set_content"],
        [USER, assistant(use("a")), user(result("a", content=TEXT))],
        [USER, assistant(use("a")), user(result("a", content=[TEXT]))],
    ),
    (
        ["set_content"],
        [USER, assistant(use("a")), user(result("a", content={"b": 1}))],
        [USER, assistant(use("a")), user(result("a", content='{"b":1}'))],
    ),
    (
        ["set_field"],
        [USER, assistant(use("a")), user(result("a", is_error="TRUE"))],
        [USER, assistant(use("a")), user(result("a", is_error=True))],
    ),
    (
        ["set_field"],
        [USER, assistant(use("a")), user(result("a", is_error="no"))],
        [USER, assistant(use("a")), user(result("a", is_error=False))],
    ),
    (
        ["set_field"],
        [USER, assistant(use("a")), user(result("a", is_error=1))],
        [USER, assistant(use("a")), user(result("a", is_error=True))],
    ),
    (
        ["set_field"],
        [USER, assistant(use("a")), user(result("a", is_error=None))],
        [USER, assistant(use("a")), user(result("a"))],
    ),
    (
        ["set_field"],
        [USER, assistant(use("a", toolset_name="t")), user(result("a"))],
        [USER, assistant(use("a", toolset_name="t")), user(result("a", toolset_name="t"))],
    ),
    (
        ["rename_tool", "wrap_arguments"],
        [USER, assistant(use("a", name="", input=None)), user(result("a"))],
        [USER, assistant(use("a", name="unknown_tool")), user(result("a"))],
    ),
    (
        ["rename_tool"],
        [USER, assistant(use("a", name="n" * 250)), user(result("a"))],
        [USER, assistant(use("a", name="n" * 200)), user(result("a"))],
    ),
    # Results without an id are matched by their place, if it tells.
    (
        ["match_result"],
        [
            USER,
            assistant(use("a"), use("b")),
            user(result("b"), result(None)),  # type: ignore[arg-type]
        ],
        [USER, assistant(use("a"), use("b")), user(result("b"), result("a"))],
    ),
    (
        ["match_result"] * 2,
        [
            USER,
            assistant(use("a"), use("b")),
            user(result("", content="1"), result("", content="2")),
        ],
        [
            USER,
            assistant(use("a"), use("b")),
            user(result("a", content="1"), result("b", content="2")),
        ],
    ),
    (
        ["replace_id"],
        [USER, assistant(use(7)), user(result(7))],
        [USER, assistant(use("7")), user(result("7"))],
    ),  # type: ignore[arg-type]
    (
        ["replace_id", "close_call"],
        [USER, assistant(use(7))],  # type: ignore[arg-type]
        [USER, assistant(use("7")), user(result("7", is_error=True, content=INTERRUPTED))],
    ),
    # The end of a conversation.
    (["set_content"], [USER, said("Well ")], [USER, said("Well")]),
    (
        ["set_content"],
        [USER, assistant(TEXT, {"type": "text", "text": "so \n"})],
        [USER, assistant(TEXT, {"type": "text", "text": "so"})],
    ),
    (
        ["drop_reasoning"] * 2,
        [USER, assistant(TEXT, THINKING, THINKING), MORE],
        [USER, assistant(TEXT), MORE],
    ),
    # Instructions.
    (
        ["set_role"],
        [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, USER],
        [user({"type": "text", "text": "<system>\nBe brief.\n</system>"}), USER],
    ),
    (
        ["move_message"],
        [
            USER,
            {"role": "system", "content": "1"},
            {"role": "system", "content": "2"},
            MORE,
            assistant(TEXT),
            MORE,
        ],
        [
            USER,
            MORE,
            {"role": "system", "content": "1"},
            {"role": "system", "content": "2"},
            assistant(TEXT),
            MORE,
        ],
    ),
    # Results that no call claims, and the message that held nothing else.
    (
        ["drop_result", "drop_result", "drop_empty"],
        [USER, user(result("z"), result("y")), MORE],
        [USER, MORE],
    ),
    (
        ["move_result"] * 2,
        [
            USER,
            assistant(use("a"), use("b"), use("c")),
            user(result("c"), TEXT, result("b")),
            assistant(TEXT),
            user(result("a"), TEXT),
        ],
        [
            USER,
            assistant(use("a"), use("b"), use("c")),
            user(result("a"), result("b"), result("c"), TEXT),
            assistant(TEXT),
            user(TEXT),
        ],
    ),
    (
        ["wrap_arguments"],
        [USER, assistant(use("a", input="null")), user(result("a"))],
        [USER, assistant(use("a")), user(result("a"))],
    ),
    (
        ["wrap_arguments"],
        [USER, assistant(use("a", input='{"a": NaN}')), user(result("a"))],
        [USER, assistant(use("a", input={"INVALID_JSON": '{"a": NaN}'})), user(result("a"))],
    ),
    (
        ["rename_id"],
        [
            USER,
            assistant(use("a"), use("a"), use("a_2")),
            user(result("a"), result("a"), result("a_2")),
        ],
        [
            USER,
            assistant(use("a"), use("a_3"), use("a_2")),
            user(result("a"), result("a_3"), result("a_2")),
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
def test_what_no_api_takes_becomes_what_was_meant(api: Api, case: Case) -> None:
    kinds, broken, expected = case
    assert mended(api, broken) == (kinds, expected)
    assert [p.rule for p in check_messages(api, expected) if p.certainty == "refused"] == []


@pytest.mark.parametrize(
    ("api", "part"),
    [
        ("openai_responses", {"type": "image_url", "image_url": {"detail": "low"}}),
        ("openai_responses", {"type": 5, "text": "x"}),
        ("openai_chat", {"type": ["x"], "text": "x"}),
        ("openai_chat", {"type": 5}),
    ],
)
def test_a_part_that_nobody_can_read_is_left_for_you(api: Api, part: Json) -> None:
    messages = question(part)
    assert mended(api, messages) == ([], messages)
    assert check_messages(api, messages) != []


def test_a_role_that_nothing_tells_is_left_for_you() -> None:
    for api in APIS:
        messages: list[Any] = [{"role": None, "content": told(api, "x")}]
        if api == "gemini_generate_content":  # a content without a role is the user's
            messages = [{"role": "narrator", "parts": [{"text": "x"}]}]
        assert mended(api, messages) == ([], messages)


@pytest.mark.pure
@pytest.mark.slow
def test_what_is_longer_than_the_api_takes_back_is_cut_and_says_so() -> None:
    kinds, fixed = mended(
        "openai_responses", [USER, call("a"), output("a", "x" * (MAX_OUTPUT + 5))]
    )
    assert kinds == ["set_content"]
    assert len(fixed[2]["output"]) <= MAX_OUTPUT
    assert fixed[2]["output"].endswith(f"x... [cut: {MAX_OUTPUT + 5} characters]")
    long = "x" * (MAX_ARGUMENTS + 5)
    kinds, fixed = mended(
        "openai_chat",
        [USER, caller("a", arguments='{"a":"' + long + '"}'), tool("a")],
        thorough=True,
    )
    arguments = fixed[1]["tool_calls"][0]["function"]["arguments"]
    assert kinds == ["wrap_arguments"]
    assert len(arguments) <= MAX_ARGUMENTS
    assert arguments.startswith('{"TRUNCATED":"{\\"a\\":\\"xxx')
    assert arguments.endswith('x"}')


def test_a_call_that_was_cut_off_goes_with_its_result_when_asked_for() -> None:
    assert mended("openai_responses", [USER, call("a", **CUT), MORE], thorough=True) == (
        ["drop_call"],
        [USER, MORE],
    )
    answered = [USER, call("a", **CUT), output("a"), MORE]
    assert mended("openai_responses", answered, thorough=True) == (
        ["drop_call", "drop_result"],
        [USER, MORE],
    )


def test_a_result_that_holds_null_holds_nothing_when_asked_for() -> None:
    messages = [USER, assistant(use("a")), user(result("a", content=None))]
    assert mended("anthropic_messages", messages) == ([], messages)
    bare = {"type": "tool_result", "tool_use_id": "a"}
    assert mended("anthropic_messages", messages, thorough=True) == (
        ["set_content"],
        [*messages[:2], user(bare)],
    )


def test_a_call_cut_off_that_holds_whole_arguments_is_closed_instead() -> None:
    for whole in (
        call("a", status="incomplete"),
        {
            "type": "custom_tool_call",
            "call_id": "a",
            "name": "w",
            "input": "x",
            "status": "incomplete",
        },
    ):
        kinds, fixed = mended("openai_responses", [USER, whole, MORE], thorough=True)
        assert (kinds, fixed[1], fixed[3]) == (["close_call"], whole, MORE)


def test_an_id_that_a_number_is_no_name_for_is_another_one_in_call_and_result() -> None:
    history = [USER, assistant(use(1.5)), user(result(1.5))]  # type: ignore[arg-type]
    kinds, fixed = mended("anthropic_messages", history)
    assert kinds == ["replace_id"]
    assert fixed[1]["content"][0]["id"] == fixed[2]["content"][0]["tool_use_id"]


def test_calls_that_stand_apart_are_closed_where_they_are_when_asked_for() -> None:
    kinds, fixed = mended(
        "openai_responses", [USER, call("a"), MORE, call("b"), output("b")], thorough=True
    )
    assert (kinds, fixed) == (
        ["close_call"],
        [USER, call("a"), output("a", INTERRUPTED), MORE, call("b"), output("b")],
    )


def test_reasoning_that_can_not_come_first_is_left_for_you() -> None:
    messages = [USER, said("x"), assistant(THINKING, use("a")), user(result("a"))]
    assert mended("anthropic_messages", messages, thinking="enabled") == ([], messages)


def test_reasoning_before_the_last_words_goes_where_the_request_allows_none() -> None:
    messages = [USER, assistant(THINKING, TEXT)]
    options = {"thinking": "disabled", "model": "claude-opus-4-5"}
    assert mended("anthropic_messages", messages, **options) == (
        ["drop_reasoning"],
        [USER, assistant(TEXT)],
    )


def test_what_an_error_shows_and_nobody_knows_is_left_for_you() -> None:
    shown = [{"type": "hologram"}]
    messages = [USER, assistant(use("a")), user(result("a", is_error=True, content=shown))]
    assert mended("anthropic_messages", messages) == ([], messages)
    assert check_messages("anthropic_messages", messages) != []


def test_what_needs_its_id_keeps_it() -> None:
    messages = [
        USER,
        {"type": "web_search_call", "id": "nope", "status": "completed"},
        {"type": "message"},
        MORE,
    ]
    assert mended("openai_responses", messages) == ([], messages)


def test_reasoning_at_the_end_goes_where_the_request_allows_none() -> None:
    messages = [USER, assistant(TEXT, THINKING)]
    assert mended("anthropic_messages", messages, thinking="disabled") == (
        ["drop_reasoning"],
        [USER, assistant(TEXT)],
    )


def test_images_of_a_result_keep_their_order_in_the_messages_behind_it() -> None:
    """A tool message takes text only: each image goes behind the results, with a note."""
    second = {"type": "image_url", "image_url": {"url": "https://x/2.png"}}
    kinds, fixed = mended("openai_chat", [USER, caller("a"), tool("a", [IMAGE, second]), MORE])
    assert kinds == ["move_content"] * 2
    assert [
        part for message in fixed[3:5] for part in message["content"] if part["type"] == "image_url"
    ] == [
        IMAGE,
        second,
    ]
    assert fixed[5:] == [MORE]
