"""The law of Converse: every rule is broken once, with the provider's own words; valid and recorded
requests pass.
"""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

import pytest
from counting import calls_made
from each_case import each
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy.errors import Problem
from lutumpy.rules.bedrock import law
from lutumpy.rules.bedrock.catalogue import RULES
from lutumpy.rules.bedrock.messages import check_messages, check_request
from lutumpy.rules.shape import DeclaredTool

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"
LLAMA = "us.meta.llama4-maverick-17b-instruct-v1:0"
Json = dict[str, Any]


def rows(name: str) -> list[Json]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


def refused(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.certainty == "refused"]


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: str = "tooluse_a", **more: Any) -> Json:
    return {"toolUse": {"toolUseId": call_id, "name": "weather", "input": {"a": 1}, **more}}


def result(call_id: str = "tooluse_a", **more: Any) -> Json:
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": "rain"}], **more}}


TOOL: Json = {
    "toolSpec": {
        "name": "weather",
        "description": "How is the weather?",
        "inputSchema": {"json": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
}
RESULT = "messages.2.content.0.toolResult"
SIGNED: Json = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "S"}}}
VALID: Json = {
    "messages": [
        user({"text": "Weather?"}),
        assistant(SIGNED, {"text": "I look."}, use(), use("tooluse_b")),
        user(result(status="success"), result("tooluse_b", content=[{"json": {"rain": 3}}])),
        assistant({"text": "Rain."}),
        user({"text": "And now?"}, {"cachePoint": {"type": "default"}}),
    ],
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "inferenceConfig": {"maxTokens": 64, "temperature": 0.5, "stopSequences": ["x"]},
    "toolConfig": {"tools": [TOOL], "toolChoice": {"auto": {}}},
}


def valid(**changed: Any) -> Json:
    body: Json = {**copy.deepcopy(VALID), **changed}
    return body


def edited(path: str, value: Any) -> Json:
    """The valid request with another value at a place, or without it for `...`; `+2` inserts
    before the third.
    """
    body = valid()
    *parents, last = path.split(".")
    node: Any = body
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node[part]
    key: Any = int(last) if isinstance(node, list) else last
    if value is ...:
        del node[key]
    elif last.startswith("+"):
        node.insert(key, value)
    else:
        node[key] = value
    return body


def test_a_valid_request_has_no_problem_of_any_kind() -> None:
    for model in ({}, {"modelId": CLAUDE}, {"model": CLAUDE}, {"modelId": NOVA}):
        assert check_request({**valid(), **model}) == []


VIOLATIONS = rows("violations_converse.jsonl")


@each("row", VIOLATIONS, lambda row: row["rule"])
def test_each_rule_refuses_in_the_providers_words(row: Json) -> None:
    found = refused(check_request(edited(row["path"], row.get("value", ...))))
    assert (row["rule"], row["message"]) in [(p.rule, p.message) for p in found]
    assert {p.kind for p in found} == {"ValidationException"}


def test_a_body_that_is_no_object_is_refused() -> None:
    (problem,) = check_request([])  # type: ignore[arg-type]
    assert problem.rule == "converse.body"


# ------------------------------------------------------------- recordings


@pytest.mark.parametrize(
    "row", rows("rejected_converse.jsonl"), ids=lambda row: row["source"].rpartition("/")[2]
)
def test_recorded_refusals_are_foretold_word_for_word(row: Json) -> None:
    found = check_request({**row["request"], "modelId": row["model"]})
    told = [p for p in found if p.message == row["response"]["message"]]
    assert len(told) == 1
    # A model that nobody knows may be a new one.
    assert told[0].certainty == ("some" if told[0].rule == "converse.model" else "refused")
    assert refused(found)[:1] in ([], told)
    if told[0].rule != "converse.model":
        unknown = [p for p in check_request(row["request"]) if p.message == told[0].message]
        assert [p.certainty for p in unknown] == ["some"]


def test_recorded_histories_that_were_accepted_are_not_refused() -> None:
    accepted = rows("converse_histories.jsonl")
    assert len(accepted) > 30
    for row in accepted:
        body = {"messages": row["history"], "toolConfig": {"tools": [TOOL]}}
        assert refused(check_request(body)) == []
        assert refused(check_request({**body, "modelId": row["model"]})) == []
        assert refused(check_messages(row["history"], row["system"], model=row["model"])) == []


# ---------------------------------------------------- what only some models refuse


def rules_of(body: Json, certainty: str = "refused") -> list[str]:
    return [p.rule.partition(".")[2] for p in check_request(body) if p.certainty == certainty]


def test_models_differ_in_what_stands_beside_results() -> None:
    body = valid()
    body["messages"][2]["content"].append({"text": "Go on."})
    assert rules_of({**body, "modelId": LLAMA}) == ["results_alone"]
    assert rules_of({**body, "modelId": CLAUDE}) == []
    assert rules_of(body, "discouraged") == ["results_alone"]


def test_results_come_first_for_claude() -> None:
    body = edited("messages.2.content.+0", {"text": "Here:"})
    assert rules_of({**body, "modelId": CLAUDE}) == ["results_first"]
    assert rules_of({**body, "modelId": NOVA}) == []
    assert rules_of(body, "some") == ["results_first"]


def test_a_conversation_begins_with_the_user_and_speaks_in_turns() -> None:
    begins = edited("messages.+0", assistant({"text": "Hello."}))
    assert rules_of({**begins, "modelId": LLAMA}) == ["first_user"]
    assert rules_of({**begins, "modelId": CLAUDE}, "some") == ["first_user"]
    twice = edited("messages.+0", user({"text": "Hello."}))
    assert rules_of({**twice, "modelId": CLAUDE}) == ["alternation"]
    assert rules_of({**twice, "modelId": NOVA}) == []
    assert rules_of(edited("messages.4.role", "system"), "some") == ["system_role", "last_user"]


def test_unsigned_reasoning_is_not_for_claude() -> None:
    unsigned = {"reasoningContent": {"reasoningText": {"text": "Hm."}}}
    body = edited("messages.1.content.0", unsigned)
    assert rules_of({**body, "modelId": CLAUDE}) == ["signature"]
    assert rules_of({**body, "modelId": "openai.gpt-oss-120b-1:0"}) == []
    assert rules_of(body, "some") == ["signature"]
    assert rules_of({**body, "modelId": "us.deepseek.r1-v1:0"}, "some") == ["reasoning_for_model"]


def test_with_a_thinking_budget_the_turn_that_goes_on_starts_with_reasoning() -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    messages = [
        user({"text": "?"}),
        assistant({"text": "I look."}, use()),
        user(result()),
        assistant(use("tooluse_b")),
        user(result("tooluse_b")),
    ]
    body = valid(messages=messages, additionalModelRequestFields=thinking, modelId=CLAUDE)
    (problem,) = refused(check_request(body))
    assert problem.message.startswith(
        "The model returned the following errors: messages.1.content.0.type: Expected `thinking` "
        "or `redacted_thinking`, but found `text`."
    )
    assert rules_of(body, "some") == ["reasoning_first"]
    assert rules_of({**body, "modelId": NOVA}) == []
    body["messages"] = [*messages, assistant({"text": "Rain."}), user({"text": "And now?"})]
    assert rules_of(body) == []
    forced = {"tools": [TOOL], "toolChoice": {"any": {}}}
    assert "tool_choice_thinking" in rules_of({**body, "toolConfig": forced})


def test_choices_name_tools_that_are_there() -> None:
    choice = {"tools": [TOOL], "toolChoice": {"tool": {"name": "clock"}}}
    assert rules_of(valid(toolConfig=choice, modelId=CLAUDE)) == ["tool_choice_unknown"]
    assert rules_of(valid(toolConfig=choice), "some") == ["tool_choice_unknown"]
    choice["toolChoice"] = {"any": {}}
    (problem,) = check_request(valid(toolConfig=choice, modelId=LLAMA))
    assert problem.message == (
        "This model doesn't support the toolConfig.toolChoice.any field. Remove any and try again."
    )


@pytest.mark.parametrize(
    ("model", "rule", "certainty"),
    [
        ("scripted", "model", "some"),
        ("us.amazon.nova-micro-v1:O", "model", "some"),
        ("deepseek.r1-v1:0", "model", "refused"),
        ("arn:aws:bedrock:us-east-1:000000000000:application-inference-profile/x", "", ""),
        (f"arn:aws:bedrock:us-east-1:000000000000:inference-profile/{CLAUDE}", "", ""),
    ],
)
def test_names_of_models_say_what_is_known(model: str, rule: str, certainty: str) -> None:
    body = valid(modelId=model)
    del body["messages"][1]["content"][0]
    found = check_request(body)
    assert [(p.rule, p.certainty) for p in found] == (
        [(f"converse.{rule}", certainty)] if rule else []
    )


def test_an_arn_of_a_model_counts_as_that_model() -> None:
    arn = f"arn:aws:bedrock:us-east-1:000000000000:inference-profile/{CLAUDE}"
    film = {"video": {"format": "mp4", "source": {"bytes": "x"}}}
    assert rules_of(edited("messages.4.content.+0", film) | {"modelId": arn}) == ["video_for_model"]


def test_nova_takes_no_files_in_results() -> None:
    place = {"s3Location": {"uri": "s3://bucket-a/x.pdf"}}
    document = {"document": {"format": "pdf", "name": "a", "source": place}}
    body = edited(f"{RESULT}.content", [document])
    assert rules_of({**body, "modelId": NOVA}) == ["result_media"]
    assert rules_of({**body, "modelId": CLAUDE}) == []
    document["document"]["source"] = {"bytes": "x"}
    body = edited(f"{RESULT}.content", [document])
    assert rules_of({**body, "modelId": NOVA}, "some") == ["result_media"]


def test_names_of_documents_are_plain() -> None:
    for name, certainty in (
        ("Document 1", None),
        ("(x) [y]", None),
        ("a.pdf", "refused"),
        ("two  spaces", "refused"),
        ("a\nb", "refused"),
        ("full\u3000width", "refused"),
        # Not among the characters that the documentation lists, and accepted when it was tried.
        ("a_b", "some"),
        (" a", "some"),
    ):
        document = {"document": {"format": "pdf", "name": name, "source": {"bytes": "x"}}}
        for sure in ("refused", "some"):
            found = rules_of(edited("messages.4.content.+0", document), sure)
            assert found == (["document_name"] if sure == certainty else []), name


def test_blank_results_and_white_space_are_doubtful() -> None:
    assert rules_of(edited("messages.4.content.0.text", " \n"), "some") == ["blank_text"]
    blank = edited(f"{RESULT}.content", [{"text": ""}])
    assert rules_of(blank, "some") == ["blank_result"]
    assert rules_of({**blank, "modelId": CLAUDE}) == ["blank_result"]


def test_the_providers_own_tools_answer_in_the_models_message() -> None:
    own = use(type="server_tool_use")
    told = result(type="nova_code_interpreter_result")
    messages = [
        user({"text": "?"}),
        assistant(own, told, use("tooluse_b")),
        user(result("tooluse_b")),
    ]
    assert check_request(valid(messages=messages, modelId=NOVA)) == []


def test_what_works_and_is_unwise_is_discouraged() -> None:
    swapped = valid()
    swapped["messages"][2]["content"].reverse()
    assert rules_of(swapped, "discouraged") == ["result_order"]
    again = valid()
    again["messages"] += [assistant(use()), user(result())]
    assert rules_of(again, "discouraged") == ["reused_id"]
    behind = edited("messages.1.content.+4", {"text": "That was it."})
    assert rules_of(behind, "some") == ["calls_last"]
    many = edited("messages.4.content", [{"text": "x"}, *[{"cachePoint": {"type": "default"}}] * 4])
    assert rules_of(many, "some") == ["cache_point"]
    shown = {"image": {"format": "png", "source": {"bytes": "x"}}}
    assert rules_of(edited("messages.3.content.+1", shown), "some") == ["block_role"]


def test_tools_of_a_history_need_a_config_and_a_declaration() -> None:
    found = check_messages(VALID["messages"], tools=[])
    assert [p.rule for p in found] == ["converse.tool_declared", "converse.tool_config"]
    assert check_messages(VALID["messages"], tools=["weather"]) == []
    assert check_messages(VALID["messages"], tools=[TOOL]) == []


def test_a_request_may_be_a_prompt_of_the_providers() -> None:
    assert check_request({"promptVariables": {"x": {"text": "y"}}}) == []


def test_another_host_is_held_to_what_the_wire_needs() -> None:
    body = edited("messages.4.content.0.text", "")
    assert refused(check_request(body)) != []
    assert refused(check_request(body, compatible=True)) == []
    lost = edited("messages.2.content.1", ...)
    assert refused(check_request(lost, compatible=True)) != []
    unknown = edited("messages.4.id", 1)
    assert refused(check_request(unknown, compatible=True)) == []


# ------------------------------------------------------------------ tools


def strict(schema: Json) -> Json:
    spec = {"name": "f", "inputSchema": {"json": schema}, "strict": True}
    return {"toolConfig": {"tools": [{"toolSpec": spec}]}, "messages": [user({"text": "x"})]}


def test_strict_tools_are_claudes_and_have_its_form() -> None:
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    assert check_request({**strict(closed), "modelId": CLAUDE}) == []
    assert rules_of({**strict(closed), "modelId": NOVA}, "some") == ["strict_for_model"]
    assert rules_of({**strict({"type": "object"}), "modelId": CLAUDE}) == ["strict_schema"]
    for odd in ({"type": "integer", "minimum": 1}, {"type": "array", "minItems": 2, "items": {}}):
        schema = {**closed, "properties": {"x": odd}}
        assert rules_of(strict(schema), "some") == ["strict_schema"]


def test_two_tools_of_one_name_are_doubtful() -> None:
    assert rules_of(valid(toolConfig={"tools": [TOOL, TOOL]}), "some") == ["tool_names"]


def test_tools_are_read_and_written() -> None:
    declared = law.read_tool(TOOL)
    assert declared is not None
    assert declared.name == "weather"
    assert law.write_tool(declared) == TOOL
    assert law.read_tool({"systemTool": {"name": "nova_grounding"}}) is None
    assert law.read_tool("weather") is None
    bare = law.write_tool(DeclaredTool("f", "", {"type": "object"}))
    assert bare == {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
    assert law.read_tool({"toolSpec": {"name": "f"}}) is not None
    assert law.tools_of(VALID) == VALID["toolConfig"]["tools"]
    assert law.tools_of({"messages": []}) is None
    assert law.write_tools([TOOL]) == {"toolConfig": {"tools": [TOOL]}}
    assert law.check_tools([TOOL]) == []


def test_settings_of_one_tool_have_no_type() -> None:
    (reason,) = law.TOOL_SETTINGS.refusals("f", {"type": "nova_grounding"})
    assert "tools have no type here ('nova_grounding')" in reason
    assert law.TOOL_SETTINGS.refusals("f", {"inputSchema": {}}) != []
    assert law.TOOL_SETTINGS.refusals("f", {"extra": 1}) == []


# ------------------------------------------------------------------ parts


@pytest.mark.parametrize(
    ("value", "place", "fits"),
    [
        ({"text": "x"}, "message", True),
        ({"cachePoint": {"type": "default"}}, "message", True),
        ({"cachePoint": {"type": "default"}}, "result", False),
        ({"json": {"a": 1}}, "result", True),
        ({"json": {"a": 1}}, "message", False),
        ({"video": {"format": "mp4", "source": {"bytes": "aaaa"}}}, "message", True),
        ({"video": {"format": "mp4", "source": {"bytes": "?"}}}, "message", False),
        ({"guardContent": {"text": {"text": "x", "qualifiers": ["query"]}}}, "message", True),
        ({"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}, "message", False),
        (
            {"document": {"name": "a.b", "format": "pdf", "source": {"bytes": "aaaa"}}},
            "message",
            False,
        ),
        (
            {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
            "result",
            True,
        ),
        ({}, "message", False),
        ({"text": ""}, "message", False),
    ],
)
def test_parts_for_it_alone_are_looked_at_closely(value: Json, place: Any, fits: bool) -> None:
    assert (law.check_part(value, place) == []) is fits


# --------------------------------------------------------- size and hostility


@pytest.mark.pure
@pytest.mark.slow
def test_work_grows_with_the_body_not_with_its_square() -> None:
    def work(turns: int) -> int:
        body = valid()
        body["messages"] = [entry for _ in range(turns) for entry in VALID["messages"]]
        return calls_made(lambda: check_request(body))

    assert work(400) < 5 * work(100)


WORDS = st.sampled_from(
    "role content messages system toolConfig tools toolChoice toolSpec inputSchema json name text "
    "toolUse toolResult toolUseId input status error success user assistant image document video "
    "source bytes s3Location uri format png reasoningContent reasoningText signature cachePoint "
    "type default inferenceConfig temperature modelId any tool auto strict server_tool_use "
    "additionalModelRequestFields thinking enabled".split()
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=4)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=25,
)


@given(st.dictionaries(WORDS, JSON, max_size=6) | JSON)
@settings(max_examples=examples(150))
def test_no_json_makes_the_rules_raise(body: Any) -> None:
    for problem in check_request(body):
        assert problem.rule.startswith("converse.")
        if problem.rule in RULES:
            assert problem.certainty in RULES[problem.rule].certainties


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "assistant", "system", 7]),
                "content": st.lists(st.dictionaries(WORDS, JSON, max_size=2), max_size=4) | JSON,
            }
        ),
        max_size=5,
    )
)
@settings(max_examples=examples(150))
def test_no_history_makes_the_rules_raise(messages: list[Any]) -> None:
    check_messages(messages, tools=[], model=CLAUDE, thinking="enabled")
    check_request({"messages": messages, "modelId": NOVA, "toolConfig": messages})
