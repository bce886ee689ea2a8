"""`check_messages`: the rules about histories behind one door, with places for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall

from lutumpy.doctor import Problem, check_messages
from lutumpy.models import Api
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses

FIXTURES = Path(__file__).parent.parent / "fixtures"
KEYS = {"openai_chat": "messages", "openai_responses": "input", "anthropic_messages": "messages"}
Json = dict[str, Any]
USER: Json = {"role": "user", "content": "x"}


def rows(name: str) -> list[Json]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


def rules(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.rule, problem.certainty) for problem in problems]


def chat_call(**changes: Any) -> Json:
    function = {"name": "weather", "arguments": "{}", **changes}
    return {
        "role": "assistant",
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }


CHAT_RESULT: Json = {"role": "tool", "tool_call_id": "a", "content": "rain"}
USE: Json = {"type": "tool_use", "id": "a", "name": "weather", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "a", "content": "rain"}
CALL: Json = {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "a", "output": "rain"}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


# ------------------------------------------------------------- recordings


ACCEPTED = [row for row in rows("histories.jsonl") if row["status"] == 200]


@pytest.mark.parametrize("api", list(KEYS))
def test_no_recorded_history_that_was_accepted_is_refused_for_sure(api: Api) -> None:
    found = [row for row in ACCEPTED if row["api"] == api]
    assert len(found) > 50
    for row in found:
        official = row["host"] in ("api.openai.com", "api.anthropic.com")
        held = bool(row.get("previous_response_id") or row.get("conversation"))
        problems = check_messages(
            api,
            row["history"],
            system=row["system"],
            server_held_prefix=held,
            compatible=not official,
        )
        assert [p for p in problems if p.certainty == "refused"] == [], row["source"]


TOOL_RETURN = "test_multimodal_tool_return_matrix[{}].yaml#1"
REJECTED = {
    "test_openai_o1_mini_system_role[developer].yaml#0": "chat.role_for_model",
    "test_openai_o1_mini_system_role[system].yaml#0": "chat.role_for_model",
    TOOL_RETURN.format("direct-binary-audio-openai_chat"): "chat.audio_for_model",
    TOOL_RETURN.format("direct-url-audio-openai_responses"): "responses.file_url",
    TOOL_RETURN.format("direct-url_force_download-audio-openai_responses"): "responses.file_data",
    TOOL_RETURN.format(
        "tool_return_content-url_force_download-audio-openai_responses"
    ): "responses.file_data",
    "test_openai_responses_thinking_with_modified_history.yaml#1": "responses.dangling_reasoning",
    # About the request, not about the transcript in it:
    "test_anthropic_explicit_effort_xhigh_unsupported_model_errors.yaml#0": None,
    "test_openai_web_search_tool_model_not_supported.yaml#0": None,
    "test_openai_responses_model_http_error.yaml#0": None,
}
"""The recorded refusals, and the rule about transcripts that each shows."""


@pytest.mark.parametrize(
    "row", rows("rejected.jsonl"), ids=lambda row: row["source"].rpartition("/")[2]
)
def test_recorded_refusals_have_the_right_rule_and_words(row: Json) -> None:
    body = row["request"]
    found = check_messages(row["api"], body[KEYS[row["api"]]], model=body.get("model"))
    sure = [problem for problem in found if problem.certainty == "refused"]
    rule = REJECTED[row["source"].rpartition("/")[2]]
    if rule is None:
        assert sure == []
    else:
        assert (sure[0].rule, sure[0].message) == (rule, row["response"]["error"]["message"])


def test_what_another_host_refused_is_told_as_one_of_some() -> None:
    (row,) = [row for row in rows("errors.jsonl") if row["host"] == "api.deepseek.com"]
    found = check_messages("openai_responses", row["request"]["input"])
    assert rules(found) == [("responses.interleaved_calls", "some")]


# ------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("api", "messages", "path"),
    [
        (
            "openai_chat",
            [USER, chat_call(arguments=5), CHAT_RESULT],
            (1, "tool_calls", 0, "function", "arguments"),
        ),
        ("openai_chat", [USER, chat_call()], (1,)),
        (
            "openai_chat",
            [{"role": "user", "content": [{"type": "text"}]}],
            (0, "content", 0, "text"),
        ),
        ("openai_chat", "?", ()),
        ("openai_responses", [USER, CALL], (1,)),
        ("openai_responses", [{**CALL, "zzz": 1}, OUTPUT], (0, "zzz")),
        ("openai_responses", [{**CALL, "a.b": 1}, OUTPUT], (0,)),
        (
            "openai_responses",
            [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
            (0, "content", 0, "type"),
        ),
        (
            "anthropic_messages",
            [USER, assistant({**USE, "input": 5}), user(RESULT)],
            (1, "content", 0, "input"),
        ),
        ("anthropic_messages", [user({"type": "text", "text": ""})], (0, "content", 0)),
        ("anthropic_messages", [user({"type": "text", "text": 5})], (0, "content", 0, "text")),
        (
            "anthropic_messages",
            [USER, assistant(USE), user({**RESULT, "content": [{"type": "text"}]})],
            (2, "content", 0, "content", 0, "text"),
        ),
        ("anthropic_messages", [{"role": "user", "content": "\ud800"}], (0, "content")),
        ("anthropic_messages", [user({**RESULT, "tool_use_id": "b"})], (0, "content", 0)),
    ],
)
def test_a_problem_says_where_it_is_for_programs(
    api: Api, messages: Any, path: tuple[str | int, ...]
) -> None:
    assert check_messages(api, messages)[0].path == path


def test_a_problem_of_the_system_text_is_not_in_the_messages() -> None:
    (problem,) = check_messages("anthropic_messages", [USER], system=[{"type": "text", "text": ""}])
    assert (problem.rule, problem.path[0]) == ("anthropic.empty_text", "system")


def test_ids_and_names_of_the_calls_are_told() -> None:
    found = [
        *check_messages("openai_chat", [USER, chat_call()]),
        *check_messages("openai_responses", [USER, CALL]),
        *check_messages("anthropic_messages", [USER, assistant(USE)]),
        *check_messages("anthropic_messages", [USER, assistant(USE), user(RESULT, RESULT)]),
        *check_messages("openai_chat", [USER, chat_call(arguments=None), CHAT_RESULT]),
    ]
    assert [(problem.call_ids, problem.tools) for problem in found] == [(("a",), ("weather",))] * 5


# ------------------------------------------------- rules beside a request


def test_tools_that_a_history_calls_should_be_declared() -> None:
    """Providers don't look (hosts of Anthropic's wire may, where none is declared at all)."""
    declared = [{"type": "function", "function": {"name": "clock"}}]
    history = [USER, chat_call(), CHAT_RESULT]
    assert rules(check_messages("openai_chat", history, tools=declared)) == [
        ("chat.tool_declared", "discouraged")
    ]
    assert check_messages("openai_chat", history, tools=["weather"]) == []
    assert check_messages("openai_chat", history) == []
    flat = [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "weather"}]}]
    assert check_messages("openai_responses", [USER, CALL, OUTPUT], tools=flat) == []
    found = check_messages(
        "openai_responses",
        [USER, CALL, CALL | {"call_id": "b"}, OUTPUT, OUTPUT | {"call_id": "b"}],
        tools=[],
    )
    assert rules(found) == [("responses.tool_declared", "discouraged")]
    added = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [{"type": "function", "name": "weather"}],
    }
    assert check_messages("openai_responses", [USER, added, CALL, OUTPUT], tools=[]) == []
    messages = [USER, assistant(USE), user(RESULT)]
    assert rules(check_messages("anthropic_messages", messages, tools=[])) == [
        ("anthropic.tool_declared", "some")
    ]
    found = check_messages(
        "anthropic_messages", messages, tools=[{"name": "clock", "input_schema": {}}]
    )
    assert rules(found) == [("anthropic.tool_declared", "discouraged")]


def test_a_tool_that_a_result_refers_to_is_to_be_declared() -> None:
    reference = {"type": "tool_reference", "tool_name": "clock"}
    messages = [USER, assistant(USE), user({**RESULT, "content": [reference]})]
    assert rules(check_messages("anthropic_messages", messages, tools=["weather"])) == [
        ("anthropic.tool_reference", "some")
    ]
    assert check_messages("anthropic_messages", messages, tools=["weather", "clock"]) == []


def test_outputs_may_answer_what_the_server_holds() -> None:
    assert check_messages("openai_responses", [OUTPUT], server_held_prefix=True) == []
    assert rules(check_messages("openai_responses", [OUTPUT])) == [
        ("responses.call_for_output", "refused")
    ]


def test_results_may_answer_what_a_thread_holds() -> None:
    def held(*messages: Any) -> list[Any]:
        return rules(check_messages("anthropic_messages", list(messages), server_held_prefix=True))

    assert held(user(RESULT)) == []
    assert held() == []  # a turn that paused goes on
    assert rules(check_messages("anthropic_messages", [user(RESULT)])) == [
        ("anthropic.use_for_result", "refused")
    ]
    # What stands in the messages pairs up all the same.
    assert held(user(RESULT), assistant(USE)) == [("anthropic.results_after_uses", "refused")]
    assert held(user(RESULT), assistant({"type": "text", "text": "x"}), user(RESULT)) == [
        ("anthropic.use_for_result", "refused")
    ]
    late = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    assert held(user(RESULT), assistant(late), USER) == []
    assert held({"role": "system", "content": "One more tool."}) == []


@pytest.mark.parametrize(
    ("api", "messages", "expected"),
    [
        (
            "anthropic_messages",
            [USER, assistant(USE), user({**RESULT, "is_error": True, "content": ""})],
            "empty_error",
        ),
        (
            "anthropic_messages",
            [USER, assistant(USE), user({**RESULT, "is_error": True, "content": []})],
            "empty_error",
        ),
        ("anthropic_messages", [{"role": "user", "content": "\udc00"}], "encoding"),
        ("openai_responses", [{**CALL, "arguments": "9" * 1_048_577}, OUTPUT], "arguments_length"),
        ("openai_responses", [{"role": "user", "content": "x", "name": "bob"}], "item_keys"),
    ],
)
def test_rules_that_are_refused(api: Api, messages: Any, expected: str) -> None:
    found = check_messages(api, messages)
    assert [(p.rule.partition(".")[2], p.certainty) for p in found] == [(expected, "refused")]


@pytest.mark.parametrize(
    ("api", "messages", "expected"),
    [
        (
            "anthropic_messages",
            [USER, assistant(USE, {"type": "text", "text": "x"}), user(RESULT)],
            "uses_last",
        ),
        (
            "anthropic_messages",
            [USER, assistant({**USE, "toolset_name": "t"}), user(RESULT)],
            "toolset_name",
        ),
        (
            "openai_chat",
            [USER, chat_call(arguments="9" * 1_048_577 + "x"), CHAT_RESULT],
            "arguments_length",
        ),
        ("openai_responses", [{**CALL, "new": 1}, OUTPUT], "item_keys"),
        ("openai_chat", [{"role": "user", "content": "\ud800"}], "encoding"),
        ("openai_responses", [{"role": "user", "content": "\ud800"}], "encoding"),
    ],
)
def test_rules_that_only_some_enforce(api: Api, messages: Any, expected: str) -> None:
    found = check_messages(api, messages)
    assert (expected, "some") in [(p.rule.partition(".")[2], p.certainty) for p in found]
    assert "refused" not in [p.certainty for p in found]


@pytest.mark.parametrize("api", list(KEYS))
@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1, 2}], ids=str)
def test_what_json_does_not_know_is_refused(api: Api, value: Any) -> None:
    found = check_messages(
        api, [USER, {"role": "user", "content": [{"type": "text", "text": value}]}]
    )
    assert (f"{found[0].rule}", found[0].path) == (
        f"{api.split('_')[1 if 'openai' in api else 0]}.encoding",
        (1, "content", 0, "text"),
    )


def test_the_test_servers_rules_are_these_rules() -> None:
    """Both checks have one source: what `check_messages` is sure about, that of requests is."""
    checks = {"openai_chat": chat, "openai_responses": responses, "anthropic_messages": anthropic}
    for row in rows("violations.jsonl"):
        messages = row.get("value") if row["path"] in ("messages", "input") else None
        if isinstance(messages, list):
            body = {"model": "m", "max_tokens": 1, KEYS[row["api"]]: messages}
            whole = {
                p.rule for p in checks[row["api"]].check_request(body) if p.certainty == "refused"
            }
            assert {
                p.rule for p in check_messages(row["api"], messages) if p.certainty == "refused"
            } <= whole


# ----------------------------------------------------------- what it takes


def test_objects_of_the_sdks_are_taken_as_they_are() -> None:
    blocks = [
        TextBlock(type="text", text="I look."),
        ToolUseBlock(type="tool_use", id="a", name="weather", input={}),
    ]
    assert (
        check_messages(
            "anthropic_messages", [USER, {"role": "assistant", "content": blocks}, user(RESULT)]
        )
        == []
    )
    found = check_messages("anthropic_messages", [USER, {"role": "assistant", "content": blocks}])
    assert [(p.rule, p.call_ids) for p in found] == [("anthropic.results_after_uses", ("a",))]
    message = ChatCompletionMessage.model_validate(chat_call())
    assert check_messages("openai_chat", [USER, message, CHAT_RESULT]) == []
    assert rules(check_messages("openai_chat", (USER, message))) == [
        ("chat.results_after_calls", "refused")
    ]
    call = ResponseFunctionToolCall.model_validate(CALL)
    assert check_messages("openai_responses", [USER, call, OUTPUT]) == []


def test_nothing_that_was_given_is_changed() -> None:
    messages = [USER, chat_call(arguments=float("nan")), CHAT_RESULT]
    before = repr(messages)
    check_messages("openai_chat", messages)
    assert repr(messages) == before


def test_an_unknown_api_is_told() -> None:
    with pytest.raises(
        ValueError,
        match="unknown api 'chat': one of openai_chat, openai_responses, anthropic_messages",
    ):
        check_messages("chat", [])  # type: ignore[arg-type]


def test_other_hosts_rules_are_doubtful() -> None:
    history = [USER, chat_call(name="a.b"), CHAT_RESULT]
    assert rules(check_messages("openai_chat", history)) == [("chat.call_name", "refused")]
    assert rules(check_messages("openai_chat", history, compatible=True)) == [
        ("chat.call_name", "some")
    ]
