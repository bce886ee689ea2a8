"""The law of generateContent: every rule is broken once, in the API's own words; valid and recorded
requests pass.
"""

from __future__ import annotations

import copy
import json
import pathlib
import re
from typing import Any

import pytest
from counting import calls_made
from each_case import each

from lutumpy.doctor import check_messages, is_compatible
from lutumpy.errors import Problem
from lutumpy.rules.gemini import limits
from lutumpy.rules.gemini.catalogue import RULES
from lutumpy.rules.gemini.fields import field, key_of, listed_in, snake
from lutumpy.rules.gemini.law import (
    SHAPE,
    check_part,
    read_tool,
    tools_of,
    write_tool,
    write_tools,
)
from lutumpy.rules.gemini.messages import check_request
from lutumpy.rules.gemini.models import generation, is_misspelled, signs_calls
from lutumpy.rules.gemini.tool_settings import TOOL_SETTINGS
from lutumpy.rules.media import is_base64

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
API = "gemini_generate_content"
FLASH = "gemini-3-flash-preview"
Json = dict[str, Any]
DELETE: Any = ...


def rows(name: str) -> list[Json]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


RECORDED = rows("gemini_requests.jsonl")
VALID: Json = json.loads((FIXTURES / "valid_requests.json").read_text(encoding="utf-8"))[API]
VIOLATIONS = rows("violations_gemini.jsonl")


def valid() -> Json:
    return copy.deepcopy(VALID)


def edit(body: Json, path: str, value: Any) -> Json:
    """Set what is at `path`, or delete it for `...`; `+2` inserts before the third."""
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


def broken(row: Json) -> Json:
    body = edit({**valid(), **row.get("with", {})}, row["path"], row.get("value", DELETE))
    if row.get("drop_last"):  # the turn then goes on
        del body["contents"][-1]
    return body


def refused(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.certainty == "refused"]


def request_of(row: Json) -> Json:
    return {**row["request"], "model": row["model"]}


def test_a_valid_request_has_no_problem_of_any_kind() -> None:
    assert check_request(valid()) == []


def in_snake(value: Any) -> Any:
    """The request with every field in the other spelling; schemas and arguments stay."""
    if isinstance(value, list):
        return [in_snake(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = ("args", "response", "parametersJsonSchema", "parameters")
    return {snake(key): inner if key in kept else in_snake(inner) for key, inner in value.items()}


def test_both_spellings_of_fields_and_words_in_any_case_are_one() -> None:
    body = in_snake(valid())
    body["tool_config"]["function_calling_config"]["mode"] = "any"
    assert check_request(body) == []
    body["contents"][2]["parts"].pop()
    (problem,) = refused(check_request(body))
    assert problem.rule == "gemini.results_count"


@each("row", VIOLATIONS, lambda row: row["rule"])
def test_each_rule_refuses_in_the_apis_words(row: Json) -> None:
    found = refused(check_request(broken(row)))
    assert (row["rule"], row["message"]) in [(problem.rule, problem.message) for problem in found]
    assert all((problem.status, problem.kind) == (400, "INVALID_ARGUMENT") for problem in found)


def test_every_rule_that_is_sure_of_a_refusal_is_broken_once() -> None:
    # The last is told only of what another host or model sealed: tests/doctor/test_moves.py.
    only_by_hand = {"gemini.encoding", "gemini.signature_modified", "gemini.sealed"}
    sure = {rule for rule in RULES if "refused" in RULES[rule].certainties} - only_by_hand
    assert sure <= {row["rule"] for row in VIOLATIONS}


CALL: Json = {"functionCall": {"name": "clock", "args": {}}}
RESULT: Json = {"functionResponse": {"name": "clock", "response": {"output": "9"}}}
SECOND = "contents.1.parts.2"
SOFT: list[tuple[str, str, Any, str]] = [
    ("gemini.response", "contents.2.parts.0.functionResponse.response", DELETE, "some"),
    ("gemini.part", "contents.0.parts.+1", {"videoMetadata": {"fps": 1}}, "some"),
    ("gemini.media", "contents.0.parts.+1", {"inlineData": {"mimeType": "image/png"}}, "some"),
    ("gemini.media_type", "contents.0.parts.+1", {"inlineData": {"data": "AAAA"}}, "some"),
    (
        "gemini.media_type",
        "contents.0.parts.+1",
        {"inlineData": {"data": "AAAA", "mimeType": "application/zip"}},
        "some",
    ),
    (
        "gemini.media_type",
        "contents.2.parts.0.functionResponse.parts",
        [{"inlineData": {"data": "AAAA", "mimeType": "audio/mpeg"}}],
        "some",
    ),
    (
        "gemini.file_address",
        "contents.0.parts.+1",
        {"fileData": {"fileUri": "https://example.com/a.png", "mimeType": "image/png"}},
        "some",
    ),
    ("gemini.user_first", "contents.+0", {"role": "model", "parts": [{"text": "Hi."}]}, "some"),
    ("gemini.results_first", "contents.2.parts.+0", {"text": "Here."}, "some"),
    ("gemini.results_alone", "contents.2.parts.+2", {"text": "Go on."}, "discouraged"),
    ("gemini.unique_ids", f"{SECOND}.functionCall.id", "fc_a", "some"),
    ("gemini.result_id", "contents.2.parts.0.functionResponse.id", "fc_z", "some"),
    ("gemini.result_id", "contents.2.parts.0.functionResponse.id", DELETE, "some"),
    ("gemini.result_name", "contents.2.parts.0.functionResponse.name", "clock", "some"),
    ("gemini.signature", "contents.1.parts.1.thoughtSignature", DELETE, "some"),
    ("gemini.second_signature", f"{SECOND}.thoughtSignature", "AAAA", "discouraged"),
    ("gemini.tool_declared", f"{SECOND}.functionCall.name", "other", "discouraged"),
    ("gemini.choice_names", "toolConfig.functionCallingConfig.mode", 77, "some"),
    (
        "gemini.choice_unknown",
        "toolConfig.functionCallingConfig.allowedFunctionNames",
        ["clock"],
        "some",
    ),
    ("gemini.own_tools", "tools.+1", {"googleSearch": {}}, "some"),
    (
        "gemini.tool_schema",
        "tools.0.functionDeclarations.1.parameters.additionalProperties",
        False,
        "some",
    ),
    ("gemini.model", "model", "gemini-3.6-flahs", "some"),
]


@pytest.mark.parametrize(
    "part",
    [
        {"thought": True, "thoughtSignature": "AAAA"},
        {"thought": True, "thought_signature": "AAAA"},
    ],
)
def test_a_signed_thought_needs_no_text(part: Json) -> None:
    assert check_request(edit(valid(), "contents.1.parts.+0", part)) == []


@pytest.mark.parametrize(
    "part",
    [
        {"thought": True},
        {"thoughtSignature": "AAAA"},
        {"thought": False, "thoughtSignature": "AAAA"},
        {"thought": True, "thoughtSignature": ""},
    ],
)
def test_half_of_a_signed_thought_is_no_part(part: Json) -> None:
    found = check_request(edit(valid(), "contents.1.parts.+0", part))
    assert [(problem.rule, problem.certainty) for problem in found] == [("gemini.part", "refused")]


@pytest.mark.parametrize(
    "config",
    [
        {"thinkingBudget": 0},
        {"thinkingLevel": "low"},
        {"thinkingBudget": None, "thinkingLevel": "low"},
        {"thinkingBudget": "1024", "thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"},
        {"thinkingBudget": -1, "includeThoughts": True},
    ],
)
def test_one_way_to_say_how_much_is_thought_is_taken(config: Json) -> None:
    body = edit(valid(), "generationConfig.thinkingConfig", config)
    assert check_request(body) == []


@pytest.mark.parametrize("mode", ["NONE", "MODE_UNSPECIFIED", 0, 1, None])
def test_names_are_refused_with_every_mode_that_leaves_the_choice(mode: Any) -> None:
    body = edit(valid(), "toolConfig.functionCallingConfig.mode", mode)
    assert "gemini.choice_names" in [problem.rule for problem in refused(check_request(body))]


@pytest.mark.parametrize(("rule", "path", "value", "certainty"), SOFT)
def test_what_is_not_sure_to_be_refused_says_so(
    rule: str, path: str, value: Any, certainty: str
) -> None:
    found = check_request(edit(valid(), path, value))
    assert (rule, certainty) in [(problem.rule, problem.certainty) for problem in found]
    assert not [p for p in refused(found) if p.rule == rule]


# ------------------------------------------------------------- recordings


def test_recorded_requests_that_were_accepted_are_not_refused() -> None:
    accepted = [row for row in RECORDED if row["status"] == 200]
    assert len(accepted) >= 60
    for row in accepted:
        assert refused(check_request(request_of(row))) == []
        # Nothing is told of a history either but what everybody may do.
        rules = {p.rule for p in check_request(request_of(row)) if p.rule in RULES}
        assert rules <= {"gemini.tool_declared", "gemini.file_address"}


@pytest.mark.parametrize(
    "row", [row for row in RECORDED if row["status"] != 200], ids=lambda row: row["model"]
)
def test_recorded_refusals_are_explained_by_a_rule(row: Json) -> None:
    error = row["response"]["error"]
    found = [p for p in check_request(request_of(row)) if p.certainty != "discouraged"]
    assert found
    assert (found[0].status, found[0].kind) == (error["code"], error["status"])
    # Vertex names projects and places where the Gemini API names models.
    if not error["message"].startswith("Publisher Model"):
        assert found[0].message == error["message"]


# -------------------------------------------------------------- signatures


def unsigned(body: Json) -> Json:
    return edit(body, "contents.1.parts.1.thoughtSignature", DELETE)


@pytest.mark.parametrize(
    ("model", "certainty"),
    [
        ("gemini-3-flash-preview", "refused"),
        ("models/gemini-3.5-flash", "refused"),
        ("publishers/google/models/gemini-3.1-pro-preview", "refused"),
        ("gemini-2.5-flash", None),
        ("gemini-2.0-flash", None),
        ("my-tuned-model", "some"),
        (None, "some"),
    ],
)
def test_newer_models_want_the_signature_of_the_turn_that_goes_on(
    model: str | None, certainty: str | None
) -> None:
    contents = unsigned(valid())["contents"][:3]
    found = [p.certainty for p in check_messages(API, contents, model=model)]
    assert found == ([] if certainty is None else [certainty])


def test_each_content_with_calls_begins_with_a_signed_one() -> None:
    body = valid()
    first, second = body["contents"][1]["parts"][1:]
    del body["contents"][3]
    body["contents"][1:2] = [
        {"role": "model", "parts": [first]},
        {"role": "model", "parts": [second]},
    ]
    (problem,) = refused(check_request(body))
    assert (problem.rule, problem.path[:3]) == ("gemini.signature", (2, "parts", 0))
    assert "position 3" in problem.message


def test_a_changed_part_is_told_by_what_the_server_signed() -> None:
    body = valid()
    signature = "AY89a18wvS6z"
    part = copy.deepcopy(body["contents"][1]["parts"][1])
    assert check_request(body, issued={signature: part}) == []
    part["functionCall"]["args"] = {"city": "Rome"}
    (problem,) = check_request(body, issued={signature: part})
    assert (problem.rule, problem.message) == (
        "gemini.signature_modified",
        "Corrupted thought signature.",
    )
    assert check_request(body, issued={signature: {"text": "x"}})
    body["contents"][1]["parts"][1] = {"text": "x", "thoughtSignature": signature}
    assert any(
        p.rule == "gemini.signature_modified" for p in check_request(body, issued={signature: part})
    )


# ----------------------------------------------------------------- pairing


def turn(*names: str, ids: bool = False) -> tuple[Json, Json]:
    """A content of calls and one of their results."""
    calls: list[Json] = []
    results: list[Json] = []
    for number, name in enumerate(names):
        more = {"id": f"id{number}"} if ids else {}
        calls.append({"functionCall": {**more, "name": name, "args": {}}})
        results.append({"functionResponse": {**more, "name": name, "response": {}}})
    calls[0]["thoughtSignature"] = "AAAA"
    return {"role": "model", "parts": calls}, {"role": "user", "parts": results}


USER: Json = {"role": "user", "parts": [{"text": "x"}]}


@pytest.mark.parametrize("ids", [False, True])
def test_results_in_another_order_are_told(ids: bool) -> None:
    calls, results = turn("a", "b", "c", ids=ids)
    assert check_messages(API, [USER, calls, results], model=FLASH) == []
    results["parts"].reverse()
    found = check_messages(API, [USER, calls, results], model=FLASH)
    assert [(p.rule, p.certainty) for p in found] == [("gemini.result_order", "discouraged")]


def test_neighbouring_contents_of_one_role_are_one_turn() -> None:
    calls, results = turn("a", "b", "c")
    split = [{"role": "user", "parts": [part]} for part in results["parts"]]
    assert check_messages(API, [USER, calls, *split], model="gemini-2.5-flash") == []


def test_a_content_without_a_role_is_the_users() -> None:
    calls, results = turn("a")
    del results["role"]
    assert check_messages(API, [{"parts": [{"text": "x"}]}, calls, results], model=FLASH) == []


def test_a_cache_may_hold_the_beginning() -> None:
    calls, results = turn("a")
    contents = [results, calls, results]
    assert {p.rule for p in check_messages(API, contents, model=FLASH)} == {
        "gemini.call_for_result"
    }
    body = {"cachedContent": "cachedContents/1", "contents": contents}
    assert check_request({**body, "model": FLASH}) == []
    assert SHAPE.is_continued(body)
    assert check_messages(API, contents, model=FLASH, server_held_prefix=True) == []


def test_other_hosts_keep_the_rules_of_pairing_alone() -> None:
    body = edit(valid(), "zzz", 1)
    assert refused(check_request(body))
    assert not refused(check_request(body, compatible=True))
    assert refused(check_request(edit(body, "contents.2.parts.1", DELETE), compatible=True))


@pytest.mark.parametrize(
    ("host", "other"),
    [
        ("gemini", False),
        ("vertex", False),
        ("us-central1-aiplatform.googleapis.com", False),
        ("localhost:8080", True),
        ("evil-aiplatform.googleapis.com.example.org", True),
    ],
)
def test_vertex_is_the_vendor_as_well(host: str, other: bool) -> None:
    assert is_compatible(API, host) is other


# ------------------------------------------------------------------- tools


def test_tools_are_read_one_by_one_and_written_in_one_entry() -> None:
    body = {**valid(), "tools": [*valid()["tools"], {"googleSearch": {}}]}
    tools = tools_of(body)
    assert tools is not None
    first, second, own = tools
    assert (read_tool(first).name, read_tool(own)) == ("weather", None)  # type: ignore[union-attr]
    declared = read_tool(second)
    assert declared is not None
    assert declared.schema["type"] == "OBJECT"
    assert write_tools(tools) == {"tools": body["tools"]}
    assert write_tool(declared)["functionDeclarations"][0]["name"] == "tight"
    assert tools_of({"contents": []}) is None
    mixed = {"functionDeclarations": [{"name": "a"}], "codeExecution": {}}
    assert tools_of({"tools": mixed}) == [
        {"functionDeclarations": [{"name": "a"}]},
        {"codeExecution": {}},
    ]
    assert read_tool("x") is None


def test_more_functions_than_a_request_may_declare() -> None:
    many = [{"name": f"f{n}"} for n in range(limits.MAX_DECLARATIONS + 1)]
    found = check_request({**valid(), "tools": [{"functionDeclarations": many}]})
    assert "gemini.too_many_tools" in [p.rule for p in found]


def test_a_schema_nested_beyond_the_stack_is_walked() -> None:
    schema: Json = {"type": "OBJECT", "properties": {}}
    for _ in range(3000):
        schema = {"type": "OBJECT", "properties": {"x": schema}}
    declared = {"name": "weather", "parameters": schema}
    assert check_request({**valid(), "tools": {"functionDeclarations": [declared]}}) == []


def test_what_a_declaration_may_say_beside_its_schema() -> None:
    assert TOOL_SETTINGS.refusals("f", {"behavior": "BLOCKING"}) == []
    assert len(TOOL_SETTINGS.refusals("f", {"name": "g", "strict": True})) == 2
    assert "has no type" in TOOL_SETTINGS.refusals("f", {"type": "google_search"})[0]


# --------------------------------------------------------- names, numbers


def test_versions_are_read_from_names() -> None:
    assert generation("models/gemini-2.5-flash") == (2, 5)
    assert generation("gemini-3-pro-preview") == (3, 0)
    assert generation("gemma-3") is None
    assert signs_calls("gemini-3.6-flash") is True


@each("row", RECORDED, lambda row: row["model"])
def test_names_of_models_that_answered_are_well_spelled(row: Json) -> None:
    assert is_misspelled(row["model"]) is (row["status"] == 404)


def test_fields_are_found_in_either_spelling() -> None:
    assert field({"function_call": 1}, "functionCall") == 1
    assert field({"functionCall": None, "function_call": 1}, "functionCall") == 1
    assert field(None, "functionCall") is None
    assert key_of({"function_call": 1}, "functionCall") == "function_call"
    assert key_of({}, "functionCall") == "functionCall"
    assert [*listed_in({"parts": [1]}, "parts")] == [1]
    assert [*listed_in({"parts": {"text": "a lone one"}}, "parts")] == [{"text": "a lone one"}]
    assert [*listed_in({"parts": 5}, "parts")] == []


@pytest.mark.parametrize(
    ("text", "fits"),
    [("AAAA", True), ("AA==", True), ("A-_/+A", True), ("AAA", True), ("A", False), ("a b", False)],
)
def test_both_alphabets_of_base64_are_taken(text: str, fits: bool) -> None:
    assert is_base64(text) is fits


def test_parts_that_programs_write_say_or_show_something() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert check_part({"text": "x"}, "message") == []
    assert check_part({**image, "mediaResolution": {"level": 1}}, "message") == []
    assert check_part(image, "result") == []
    messages: list[Json] = [
        {},
        {"text": " "},
        {"text": "x", "thought": True},
        {"toolCall": {}},
        CALL,
        RESULT,
    ]
    for value in messages:
        assert check_part(value, "message")
    shown: list[Json] = [{}, {"text": "x"}, {**image, "fileData": {"fileUri": "gs://x"}}]
    for value in shown:
        assert check_part(value, "result")


def test_no_message_is_without_its_place_in_the_words_of_the_api() -> None:
    for row in VIOLATIONS:
        if row["message"].startswith("GenerateContentRequest."):
            assert re.match(r"GenerateContentRequest\.[\w\[\].]+: ", row["message"])


@pytest.mark.pure
@pytest.mark.slow
def test_work_grows_with_the_body_not_with_its_square() -> None:
    def work(turns: int) -> int:
        body = valid()
        body["contents"] = [copy.deepcopy(c) for _ in range(turns) for c in body["contents"]]
        return calls_made(lambda: check_request(body))

    assert work(400) < 5 * work(100)


@pytest.mark.parametrize("value", [None, 5, "x", [], {"contents": 5}, {"contents": [None, 5, []]}])
def test_odd_bodies_are_refused_and_never_raise(value: Any) -> None:
    assert refused(check_request(value))


ODD: list[tuple[str, Any]] = [
    ("model", 5),
    ("systemInstruction.role", 5),
    ("toolConfig.functionCallingConfig.allowedFunctionNames", [5]),
    ("toolConfig.functionCallingConfig.mode", True),
    ("tools.0.functionDeclarations.1.parameters.required", "city"),
    ("tools.0.functionDeclarations.1.parameters.required", [5]),
    ("tools.0.functionDeclarations.1.parameters.type", True),
    ("tools.0.functionDeclarations.1.parameters.anyOf", 5),
    ("tools.0.functionDeclarations.1.name", 5),
    ("tools.0.functionDeclarations.1.parameters", "x"),
    ("tools.0.functionDeclarations.1", "x"),
    ("tools.0.functionDeclarations", "x"),
    ("tools.0", "x"),
    ("contents.1.parts.1.functionCall", "x"),
    ("contents.2.parts.0.functionResponse.parts", ["x"]),
    ("contents.2.parts.0.functionResponse.parts", [{"inlineData": 5}]),
    ("contents.2.parts.0.functionResponse.parts", 5),
    ("contents.0.parts.0", {"inlineData": {"data": 5, "mimeType": "image/png"}}),
    ("contents.0.parts.0", {"fileData": {"fileUri": 5}}),
    ("contents.1.parts.1.thoughtSignature", 5),
    ("contents.0.role", 5),
]


@pytest.mark.parametrize(("path", "value"), ODD)
def test_values_of_another_type_than_their_field_are_refused(path: str, value: Any) -> None:
    found = refused(check_request(edit(valid(), path, value)))
    assert found
    assert any(p.message.startswith(("Invalid", "GenerateContentRequest.")) for p in found)
