"""The law of each wire: every rule is broken once, with the provider's own words; valid and
recorded requests pass.
"""

from __future__ import annotations

import copy
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from counting import calls_made
from each_case import each
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy.errors import Problem
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.gemini import messages as gemini
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
CHECKS: dict[str, Callable[[Any], list[Problem]]] = {
    "openai_chat": chat.check_request,
    "openai_responses": responses.check_request,
    "anthropic_messages": anthropic.check_request,
    "gemini_generate_content": gemini.check_request,
}
MESSAGES_KEYS = {"openai_responses": "input", "gemini_generate_content": "contents"}
"""Where the messages stand, if not under `messages`."""

NAMED_IN_BODY = ("openai_chat", "openai_responses", "anthropic_messages")
"""The APIs whose recordings hold the model in the request."""

Json = dict[str, Any]


def rows(name: str) -> list[Json]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


def refused(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.certainty == "refused"]


VALID: dict[str, Json] = json.loads((FIXTURES / "valid_requests.json").read_text(encoding="utf-8"))
VIOLATIONS = rows("violations.jsonl")


def valid(api: str) -> Json:
    body: Json = copy.deepcopy(VALID[api])
    return body


def edit(body: Json, path: str, value: Any) -> Json:
    """Set what is at `path`, such as `messages.2.content`, or delete it for `...`; `+2` inserts
    before the third.
    """
    *parents, last = path.split(".")
    node: Any = body
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node[part]
    key: Any = int(last) if isinstance(node, list) else last
    if value is DELETE:
        del node[key]
    elif last.startswith("+"):
        node.insert(key, copy.deepcopy(value))
    else:
        node[key] = copy.deepcopy(value)
    return body


DELETE = ...
USER: Json = {"role": "user", "content": "x"}
OUT: Json = {"type": "function_call_output", "call_id": "call_x", "output": "?"}
SEARCH: Json = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}


def closed(**properties: Any) -> Json:
    """An object schema as strict wants it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def function(parameters: Any, strict: bool) -> Json:
    return {
        "type": "function",
        "function": {"name": "f", "parameters": parameters, "strict": strict},
    }


@pytest.mark.parametrize("api", list(CHECKS))
def test_a_valid_request_has_no_problem_of_any_kind(api: str) -> None:
    assert CHECKS[api](valid(api)) == []


# -------------------------------------------------------------- violations


@each("row", VIOLATIONS, lambda row: row["rule"])
def test_each_rule_refuses_in_the_providers_words(row: Json) -> None:
    body = edit({**valid(row["api"]), **row.get("with", {})}, row["path"], row.get("value", DELETE))
    found = refused(CHECKS[row["api"]](body))
    assert (row["rule"], row["message"]) in [(problem.rule, problem.message) for problem in found]


def test_interleaved_thinking_lets_the_budget_reach_max_tokens() -> None:
    body = {
        **valid("anthropic_messages"),
        "max_tokens": 2048,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    }
    without = [p.rule for p in anthropic.check_request(body)]
    assert "anthropic.thinking" in without
    beta = "interleaved-thinking-2025-05-14"
    for found in (
        anthropic.check_request(body, betas=["other", beta]),
        anthropic.check_request({**body, "anthropic_beta": [beta]}),
    ):
        assert "anthropic.thinking" not in [problem.rule for problem in found]
    assert "anthropic.thinking" in [p.rule for p in anthropic.check_request(body, betas=["other"])]
    # Whose headers aren't known may have asked for it, where there are tools to think between.
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    for offered, betas, sure in (([], None, True), (tools, None, False), (tools, [], True)):
        found = anthropic.check_request({**body, "tools": offered}, betas=betas)
        (thinking,) = [problem for problem in found if problem.rule == "anthropic.thinking"]
        assert thinking.certainty == ("refused" if sure else "some")
    below = {**body, "thinking": {"type": "enabled", "budget_tokens": 2047}}
    assert "anthropic.thinking" not in [p.rule for p in anthropic.check_request(below)]


def test_limits_that_take_a_large_body() -> None:
    many = [{"type": "function", "function": {"name": f"f{n}"}} for n in range(129)]
    found = chat.check_request({**valid("openai_chat"), "tools": many})
    assert found[0].message == (
        "Invalid 'tools': array too long. Expected an array with maximum length 128, "
        "but got an array with length 129 instead."
    )
    wide = closed(**{f"p{n}": {"type": "string"} for n in range(6000)})
    (problem,) = refused(
        chat.check_request(edit(valid("openai_chat"), "tools.+0", function(wide, True)))
    )
    assert (
        problem.message == "Invalid schema for function 'f': 6000 parameters exceeds limit of 5000."
    )
    name = "x" * 120_000
    (problem,) = refused(
        chat.check_request(
            edit(
                valid("openai_chat"),
                "tools.+0",
                function(closed(**{name: {"type": "null"}, "y": {"type": "null"}}), True),
            )
        )
    )
    assert (
        problem.message
        == "Invalid schema for function 'f': 120001 characters exceeds limit of 120000."
    )


def test_a_long_list_of_values_is_limited_by_its_characters() -> None:
    def with_values(*values: str) -> list[Problem]:
        schema = closed(x={"type": "string", "enum": list(values)})
        return refused(
            chat.check_request(edit(valid("openai_chat"), "tools.+0", function(schema, True)))
        )

    assert with_values(*[f"{n:060}" for n in range(250)]) == []
    assert with_values(*[f"{n:059}" for n in range(254)], "x" * 14) == []  # 15,000 characters
    (problem,) = with_values(*[f"{n:060}" for n in range(251)])
    assert problem.message == (
        "Invalid schema for function 'f': In context=('properties', 'x'), enum with 251 values "
        "exceeds limit of 15000 characters with 15060."
    )


def test_openai_errors_carry_param_and_code() -> None:
    body = edit(valid("openai_chat"), "messages.4", DELETE)
    (problem,) = refused(chat.check_request(body))
    assert (problem.status, problem.kind) == (400, "invalid_request_error")
    assert (problem.param, problem.code) == ("messages.[4].role", None)
    assert (problem.position, problem.call_ids) == ("messages[2]", ("call_b",))
    (problem,) = refused(chat.check_request(edit(valid("openai_chat"), "zzz", 1)))
    assert (problem.param, problem.code) == ("zzz", "unknown_parameter")
    (problem,) = refused(
        responses.check_request(edit(valid("openai_responses"), "tools.1.parameters.required", []))
    )
    assert (problem.param, problem.code) == ("tools[1].parameters", "invalid_function_parameters")


# ------------------------------------------------ what only some refuse


SOFT: list[tuple[str, str, str, Any, str]] = [
    (
        "openai_chat",
        "chat.arguments_json",
        "messages.2.tool_calls.0.function.arguments",
        "{oops",
        "discouraged",
    ),
    (
        "openai_chat",
        "chat.tool_description",
        "tools.1.function.description",
        "x" * 1025,
        "discouraged",
    ),
    ("openai_chat", "chat.tools_empty", "tools", [], "some"),
    ("openai_chat", "chat.tool_names", "tools.1.function.name", "weather", "some"),
    ("openai_responses", "responses.strict_unset", "tools.0.strict", None, "discouraged"),
    ("openai_responses", "responses.truncated_call", "input.2.status", "incomplete", "discouraged"),
    (
        "openai_responses",
        "responses.duplicate_output",
        "input.+6",
        {**OUT, "call_id": "call_a"},
        "some",
    ),
    (
        "openai_responses",
        "responses.interleaved_calls",
        "input.+3",
        {"role": "assistant", "content": "x"},
        "some",
    ),
    (
        "anthropic_messages",
        "anthropic.strict_pattern",
        "tools.1.input_schema.properties.city.pattern",
        "^a$",
        "some",
    ),
]


ANY_OF = closed(
    x={"anyOf": [closed(a={"type": "string"}), closed(a={"type": "string"}, b={"type": "string"})]}
)
STRICT_ANY_OF = function(ANY_OF, True)
PAUSED: Json = {"role": "assistant", "content": [SEARCH]}
SOFT += [
    (
        "openai_chat",
        "chat.schema_properties",
        "tools.0.function.parameters",
        {"type": "object"},
        "some",
    ),
    ("openai_chat", "chat.schema_root", "tools.0.function.parameters", {}, "some"),
    ("openai_chat", "chat.strict_any_of", "tools.+0", STRICT_ANY_OF, "some"),
    (
        "openai_chat",
        "chat.strict_keywords",
        "tools.+0",
        function(closed(x={"type": "string", "minLength": 1}), True),
        "some",
    ),
    ("openai_chat", "chat.duplicate_call_id", "messages.2.tool_calls.1.id", "call_a", "some"),
    ("openai_responses", "responses.tool_names", "tools.1.name", "weather", "some"),
    ("openai_responses", "responses.tool_name", "tools.1.name", "x" * 65, "some"),
    (
        "openai_responses",
        "responses.tool_description",
        "tools.1.description",
        "x" * 1025,
        "discouraged",
    ),
    ("openai_responses", "responses.duplicate_call_id", "input.3.call_id", "call_a", "some"),
    ("anthropic_messages", "anthropic.server_tool_declared", "messages", [USER, PAUSED], "some"),
]


CITY = "tools.1.input_schema.properties.city"
SOFT += [
    ("openai_chat", "chat.tool_keys", "tools.0.cache_control", {"type": "ephemeral"}, "some"),
    ("openai_responses", "responses.tool_keys", "tools.0.quite_new", True, "some"),
    ("anthropic_messages", "anthropic.input_examples", "tools.0.input_examples", [{}], "some"),
    ("anthropic_messages", "anthropic.strict_keywords", CITY, {"enum": [["a"], "b"]}, "some"),
    (
        "anthropic_messages",
        "anthropic.strict_keywords",
        CITY,
        {"oneOf": [{"type": "string"}]},
        "some",
    ),
    (
        "anthropic_messages",
        "anthropic.strict_keywords",
        CITY,
        {"type": "string", "format": "colour"},
        "some",
    ),
    ("openai_chat", "chat.strict_type", "tools.+0", function(closed(x=True), True), "some"),
    (
        "openai_responses",
        "responses.dangling_reasoning",
        "input.+0",
        {"type": "reasoning", "summary": []},
        "some",
    ),
]


@pytest.mark.parametrize(
    ("api", "rule", "path", "value", "certainty"), SOFT, ids=[case[1] for case in SOFT]
)
def test_doubtful_and_unwise_things_are_told_but_not_refused(
    api: str, rule: str, path: str, value: Any, certainty: str
) -> None:
    body = edit(valid(api), path, value)
    if rule == "anthropic.server_tool_declared":
        del body["tools"][2]
    found = CHECKS[api](body)
    assert (rule, certainty) in [(problem.rule, problem.certainty) for problem in found]
    assert rule not in [problem.rule for problem in refused(found)]


def test_a_prefill_should_not_end_in_space() -> None:
    found = anthropic.check_messages(
        [USER, {"role": "assistant", "content": "It "}], model="claude-sonnet-4-5"
    )
    assert [(p.rule, p.certainty) for p in found] == [("anthropic.prefill_whitespace", "some")]


def test_an_id_of_an_earlier_message_is_only_discouraged_by_chat() -> None:
    body = valid("openai_chat")
    body["messages"] += copy.deepcopy(body["messages"][2:])
    assert {(p.rule, p.certainty) for p in chat.check_request(body)} == {
        ("chat.reused_call_id", "discouraged")
    }


def test_a_server_tools_result_is_expected_in_the_next_answer() -> None:
    body = valid("anthropic_messages")
    body["messages"][1]["content"].insert(2, SEARCH)
    del body["messages"][2]["content"][2]
    body["messages"] += [{"role": "assistant", "content": "Rain."}, USER]
    found = anthropic.check_request(body)
    assert [(p.rule, p.certainty) for p in found] == [("anthropic.server_result_missing", "some")]


def test_the_values_that_would_do_are_listed() -> None:
    found = responses.check_request(
        edit(valid("openai_responses"), "input.0", {"type": "function_cal"})
    )
    assert found[0].message.startswith(
        "Invalid value: 'function_cal'. Supported values are: 'additional_tools', "
    )
    found = anthropic.check_request(edit(valid("anthropic_messages"), "tools.0.type", "function"))
    assert found[0].message.startswith(
        "tools.0: Input tag 'function' found using 'type' does not match any of the expected tags: "
        "'advisor_20260301', "
    )


def test_fine_tuned_models_take_fewer_keywords() -> None:
    body = edit(
        valid("openai_chat"),
        "tools.+0",
        function(closed(x={"type": "string", "pattern": "^a"}), True),
    )
    assert chat.check_request(body) == []
    found = refused(chat.check_request({**body, "model": "ft:gpt-4o-mini:us::1"}))
    assert found[0].message == (
        "Invalid schema for function 'f': In context=('properties', 'x'), 'pattern' is not "
        "permitted."
    )


@pytest.mark.parametrize("check", list(CHECKS.values()))
def test_a_body_that_is_no_object_is_refused(check: Callable[[Any], list[Problem]]) -> None:
    assert [p.certainty for p in check([])] == ["refused"]


def test_results_in_another_order_are_only_discouraged() -> None:
    body = valid("openai_chat")
    body["messages"][3], body["messages"][4] = body["messages"][4], body["messages"][3]
    assert [(p.rule, p.certainty) for p in chat.check_request(body)] == [
        ("chat.result_order", "discouraged")
    ]
    body = valid("anthropic_messages")
    results = body["messages"][2]["content"]
    results[0], results[1] = results[1], results[0]
    assert [(p.rule, p.certainty) for p in anthropic.check_request(body)] == [
        ("anthropic.result_order", "discouraged")
    ]


def test_an_id_of_an_earlier_turn_is_only_discouraged() -> None:
    body = valid("anthropic_messages")
    body["messages"] += copy.deepcopy(body["messages"][1:])
    assert {(p.rule, p.certainty) for p in anthropic.check_request(body)} == {
        ("anthropic.reused_id", "discouraged")
    }


# -------------------------------------------------- rules of several parts


def test_outputs_may_answer_calls_that_the_server_holds() -> None:
    body = {"model": "gpt-5", "previous_response_id": "resp_1", "input": [OUT]}
    assert responses.check_request(body) == []
    assert responses.check_messages([OUT], server_held_prefix=True) == []
    assert [p.rule for p in responses.check_messages([OUT])] == ["responses.call_for_output"]


def test_an_item_sent_back_by_id_needs_the_reasoning_known_to_belong_to_it() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    entries = [call, {**OUT, "call_id": "c"}]
    (problem,) = responses.check_messages(entries, required_reasoning={"fc_1": "rs_1"})
    assert problem.message == (
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_1'."
    )
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert (
        responses.check_messages([reasoning, *entries], required_reasoning={"fc_1": "rs_1"}) == []
    )


def test_reasoning_before_a_message_without_id_lacks_its_item() -> None:
    """As recorded: the words of the answer alone don't count as the item that followed."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    found = responses.check_messages([reasoning, {"role": "assistant", "content": "x"}, USER])
    assert [p.rule for p in refused(found)] == ["responses.dangling_reasoning"]


def test_neighbouring_messages_of_a_role_are_one_turn_to_anthropic() -> None:
    body = valid("anthropic_messages")
    first, second, third = body["messages"][2]["content"]
    body["messages"][2:] = [
        {"role": "user", "content": [first]},
        {"role": "user", "content": [second]},
        {"role": "user", "content": [third]},
    ]
    assert anthropic.check_request(body) == []


def paused(*more: Json) -> Json:
    body = valid("anthropic_messages")
    body["messages"] = [USER, {"role": "assistant", "content": [SEARCH]}, *more]
    return body


def test_a_paused_turn_is_resumed_by_sending_it_back_as_the_last_message() -> None:
    assert anthropic.check_request(paused()) == []
    assert [p.rule for p in refused(anthropic.check_request(paused(USER)))] == [
        "anthropic.mixed_turn_results_only"
    ]


def test_a_mixed_turn_takes_results_only() -> None:
    body = valid("anthropic_messages")
    body["messages"][1]["content"].insert(2, SEARCH)
    del body["messages"][2]["content"][2]
    assert anthropic.check_request(body) == []


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("claude-fable-5", "tool_choice forces tool use is not compatible with this model"),
        (
            "claude-mythos-5-1",
            'tool_choice: type "tool" and "any" are not supported for this model.',
        ),
        ("claude-opus-5-5", 'tool_choice: type "tool" and "any" are not supported for this model.'),
        (
            "claude-sonnet-5.5",
            'tool_choice: type "tool" and "any" are not supported for this model.',
        ),
        ("claude-opus-4-6", None),
        ("claude-sonnet-4-5-20250929", None),
        ("some-other-model", None),
    ],
)
def test_newer_models_take_no_forced_choice(model: str, message: str | None) -> None:
    body = {**valid("anthropic_messages"), "model": model, "tool_choice": {"type": "any"}}
    assert [p.message for p in refused(anthropic.check_request(body))] == (
        [message] if message else []
    )


@pytest.mark.parametrize(
    ("model", "allowed"),
    [
        ("claude-sonnet-4-5", True),
        ("claude-sonnet-4-20250514", True),
        ("claude-haiku-4-5-20251001", True),
        ("claude-3-5-sonnet-20241022", True),
        ("claude-sonnet-4-6", False),
        ("us.anthropic.claude-opus-4-8-v1", False),
        ("claude-haiku-5", False),
    ],
)
def test_older_models_take_a_prefill(model: str, allowed: bool) -> None:
    found = anthropic.check_messages([USER, {"role": "assistant", "content": "It"}], model=model)
    assert (found == []) is allowed


def thinking(body: Json) -> Json:
    return {**body, "thinking": {"type": "enabled", "budget_tokens": 1024}}


def test_a_thinking_budget_asks_for_the_thinking_of_the_turn() -> None:
    body = thinking(valid("anthropic_messages"))
    assert anthropic.check_request(body) == []
    del body["messages"][1]["content"][0]
    (problem,) = refused(anthropic.check_request(body))
    assert problem.message.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. "
        "When `thinking` is enabled, a final `assistant` message must start with a thinking block"
    )


def test_thinking_of_turns_that_are_over_may_be_left_out() -> None:
    body = thinking(valid("anthropic_messages"))
    del body["messages"][1]["content"][0]
    body["messages"] += [{"role": "assistant", "content": "Rain."}, USER]
    assert anthropic.check_request(body) == []


def test_thinking_with_a_budget_forbids_a_forced_choice() -> None:
    body = thinking({**valid("anthropic_messages"), "tool_choice": {"type": "any"}})
    assert [p.message for p in refused(anthropic.check_request(body))] == [
        "Thinking may not be enabled when tool_choice forces tool use."
    ]


def test_thinking_that_was_disabled_cannot_end_the_transcript() -> None:
    block = {"type": "thinking", "thinking": "x", "signature": "E"}
    content = [block, {"type": "text", "text": "It"}]
    found = anthropic.check_messages(
        [USER, {"role": "assistant", "content": content}],
        model="claude-opus-4-5",
        thinking="disabled",
    )
    assert [p.rule for p in found] == ["anthropic.thinking_disabled"]
    assert found[0].message.startswith(
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final "
        "position cannot contain `thinking`."
    )


def test_changed_thinking_is_told_by_what_the_server_signed() -> None:
    body = valid("anthropic_messages")
    assert anthropic.check_request(body, issued={"Eq": ""}) == []
    (problem,) = anthropic.check_request(body, issued={"Eq": "I thought."})
    assert problem.message == (
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original "
        "response."
    )


# ------------------------------------------------------------- recordings


@pytest.mark.parametrize(
    "row", rows("rejected.jsonl"), ids=lambda row: row["source"].rpartition("/")[2]
)
def test_recorded_refusals_are_foretold_word_for_word(row: Json) -> None:
    problem = refused(CHECKS[row["api"]](row["request"]))[0]
    error = row["response"]["error"]
    assert (problem.status, problem.message, problem.kind) == (
        row["status"],
        error["message"],
        error["type"],
    )
    if row["api"] != "anthropic_messages":
        assert (problem.param, problem.code) == (error["param"], error["code"])


@pytest.mark.parametrize("api", NAMED_IN_BODY)
def test_recorded_requests_that_were_accepted_are_not_refused(api: str) -> None:
    recorded = [row["request"] for row in rows(f"{api}.jsonl") if row.get("status", 200) == 200]
    assert recorded
    for request in recorded:
        assert refused(CHECKS[api](request)) == []


@pytest.mark.parametrize(
    ("name", "check"),
    [("openai_chat", chat.check_request), ("openai_responses", responses.check_request)],
)
def test_recorded_requests_to_other_hosts_keep_the_rules_of_pairing(
    name: str, check: Callable[..., list[Problem]]
) -> None:
    for row in rows(f"compat_{name}.jsonl"):
        if row.get("status", 200) == 200:
            assert refused(check(row["request"], compatible=True)) == []


def test_another_hosts_refusal_is_told_as_one_of_some() -> None:
    (row,) = [row for row in rows("errors.jsonl") if row["host"] == "api.deepseek.com"]
    found = responses.check_request(row["request"])
    assert [(p.message, p.certainty) for p in found] == [
        (row["response"]["error"]["message"], "some")
    ]


def test_rules_of_openai_alone_are_doubtful_at_other_hosts() -> None:
    body = edit(valid("openai_chat"), "reasoning", {})
    assert refused(chat.check_request(body))
    assert not refused(chat.check_request(body, compatible=True))
    assert refused(chat.check_request(edit(body, "messages.4", DELETE), compatible=True))


def test_an_output_is_for_the_call_that_waits_for_it() -> None:
    body = {
        "model": "m",
        "input": [
            {"role": "user", "content": "go"},
            {"type": "tool_search_call", "execution": "server", "call_id": "a", "arguments": {}},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
        ],
    }
    assert refused(responses.check_request(body)) == []
    del body["input"][-1]  # type: ignore[attr-defined]
    assert [p.rule for p in refused(responses.check_request(body))] == ["responses.output_for_call"]


# ------------------------------------------------------------------- size


@pytest.mark.slow
@pytest.mark.pure
@pytest.mark.parametrize("api", list(CHECKS))
def test_work_grows_with_the_body_not_with_its_square(api: str) -> None:
    def work(turns: int) -> int:
        body = valid(api)
        key = MESSAGES_KEYS.get(api, "messages")
        body[key] = [copy.deepcopy(entry) for _ in range(turns) for entry in body[key]]
        return calls_made(lambda: CHECKS[api](body))

    assert work(400) < 5 * work(100)


# ----------------------------------------------------------------- hostile

WORDS = st.sampled_from(
    "type role content messages input tools tool_calls id call_id name function arguments user "
    "assistant tool system text tool_use tool_result reasoning function_call function_call_output "
    "message parameters input_schema strict properties required items anyOf $ref #/$defs/x $defs "
    "enum model max_tokens tool_choice thinking any auto object array string summary output "
    "tool_use_id is_error cache_control claude-sonnet-5 gpt-5 custom signature web_search "
    "server_tool_use previous_response_id conversation additionalProperties integer minimum "
    "contents parts functionCall functionResponse function_call args response inlineData "
    "fileData mimeType data fileUri thoughtSignature thought functionDeclarations toolConfig "
    "mode ANY functionCallingConfig generationConfig temperature OBJECT ARRAY".split()
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)


@given(JSON)
@settings(max_examples=examples(150), deadline=None)
def test_no_json_makes_a_check_raise(value: Any) -> None:
    for check in CHECKS.values():
        for problem in check(value):
            assert isinstance(problem, Problem)
            assert problem.rule


@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_no_damage_to_a_valid_request_makes_a_check_raise(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(list(CHECKS)))
    body = valid(api)
    node: Any = body
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], (dict, list)) and data.draw(st.booleans()):
            node = node[key]
        else:
            node[key] = data.draw(JSON)
            break
    for problem in CHECKS[api](body):
        assert problem.message


@pytest.mark.slow
def test_a_schema_nested_beyond_the_stack_is_walked() -> None:
    schema: Json = {"type": "object", "properties": {}}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"x": schema}}
    for strict in (False, True):
        chat.check_request({**valid("openai_chat"), "tools": [function(schema, strict)]})
        anthropic.check_request(
            {
                **valid("anthropic_messages"),
                "tools": [{"name": "f", "input_schema": schema, "strict": strict}],
            }
        )


@pytest.mark.parametrize(
    ("key", "value", "position"),
    [
        ("tools", "all of them", "tools"),
        ("tools", ["weather"], "tools[0]"),
        ("tool_choice", 5, "tool_choice"),
        ("tool_choice", {}, "tool_choice.type"),
        ("tool_choice", {"type": "function", "function": {}}, "tool_choice.function.name"),
        ("tool_choice", {"type": "function", "function": {"name": 5}}, "tool_choice.function.name"),
    ],
)
def test_tools_and_choices_of_another_type_are_refused_where_they_stand(
    key: str, value: Any, position: str
) -> None:
    problems = chat.check_request({**valid("openai_chat"), key: value})
    assert position in [problem.position for problem in problems]


@pytest.mark.parametrize(
    ("block", "places"),
    [
        ({"type": "server_tool_use", "id": "srvtoolu_1"}, ["name", "input"]),
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": 1, "input": "{}"},
            ["name", "input"],
        ),
        ({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "input": {}}, ["server_name"]),
        (
            {"type": "search_result", "content": [{"type": "text", "text": "x"}]},
            ["source", "title"],
        ),
        ({"type": "search_result"}, ["content", "source", "title"]),
    ],
)
def test_blocks_of_messages_have_what_their_type_cannot_do_without(
    block: dict[str, Any], places: list[str]
) -> None:
    """The vendor's API description requires it."""
    role = "user" if block["type"] == "search_result" else "assistant"
    history = [{"role": "user", "content": "x"}, {"role": role, "content": [block]}]
    found = [p for p in anthropic.check_messages(history) if p.rule == "anthropic.block"]
    assert [p.position.rpartition(".")[2] for p in found] == places
    assert {p.certainty for p in found} == {"refused"}
