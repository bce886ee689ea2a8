"""What holds for every document: names whatever the order, places whatever the values, and a
schema that takes exactly what the operation takes.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx2
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_toolkit import GITHUB, Sent, document, only_tool, operation, parse, refusal
from profiles import examples

from lutumpy.openapi import tools
from lutumpy.plain.clean_names import clean_names

NAMES = st.text("ab.[]_-/é", min_size=1, max_size=4) | st.sampled_from(
    ["id", "body", "self", "x" * 70]
)
TOKENS = st.sampled_from(["id", "body", "X-Id", "x.y", "self", "class", "a_b", "a.b"])
PATH_NAMES = st.sampled_from(["id", "body", "name", "a.b", "X-Id"])


def shuffled(value: Any, chance: random.Random) -> Any:
    """A document with the keys of its objects in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


# --- names --------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.sampled_from(["get", "put"]), NAMES, st.none() | NAMES),
        unique_by=lambda one: one[:2],
        max_size=8,
    ),
    st.sampled_from(["", "p_"]),
    st.randoms(use_true_random=False),
)
def test_the_same_document_in_another_order_gives_the_same_names_Y5(
    operations: list[tuple[str, str, str | None]], prefix: str, chance: random.Random
) -> None:
    paths: dict[str, Any] = {}
    for method, path, own in operations:
        paths.setdefault(f"/{path}", {})[method] = {"operationId": own} if own else {}
    found = tools(document(paths), call=Sent(), prefix=prefix)
    other = tools(document(shuffled(paths, chance)), call=Sent(), prefix=prefix)
    assert {tool.original_name: tool.name for tool in found} == {
        tool.original_name: tool.name for tool in other
    }
    assert len({tool.name for tool in found}) == len(found)
    assert found.skipped == other.skipped
    assert len(found) + len(found.skipped) == len(operations)
    assert all(tool.name.startswith(prefix) for tool in found)


@given(st.sets(st.text("ab._", max_size=3) | st.text("a.", min_size=60, max_size=70), max_size=12))
def test_clean_names_are_names_and_different(texts: set[str]) -> None:
    made = clean_names(sorted(texts))
    assert made == clean_names(sorted(texts, reverse=True))
    assert len(set(made.values())) == len(texts)
    for text, name in made.items():
        assert 1 <= len(name) <= 64
        assert name.replace("_", "a").replace("-", "a").isalnum()
        assert name == text or name[-9] == "_"


@given(st.randoms(use_true_random=False))
@settings(max_examples=examples(20))
def test_a_real_document_in_another_order_gives_equal_tools(chance: random.Random) -> None:
    found = {tool.name: tool for tool in tools(GITHUB, call=Sent(), closed=True)}
    other = {tool.name: tool for tool in tools(shuffled(GITHUB, chance), call=Sent(), closed=True)}
    assert found.keys() == other.keys()
    for name, tool in found.items():
        assert tool.schema == other[name].schema


# --- places -------------------------------------------------------------------------------------

SCALARS = (
    st.text(max_size=8)
    | st.integers(-(10**6), 10**6)
    | st.booleans()
    | st.sampled_from(["..", ".", "a/b", "%2F", "&=#?", "\r\n", ";", ","])
)


@st.composite
def parameter_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    places = st.tuples(st.just("path"), PATH_NAMES) | st.tuples(
        st.sampled_from(["query", "header", "cookie"]), TOKENS
    )
    keys = draw(st.lists(places, unique_by=lambda key: (key[0], key[1].lower()), max_size=6))
    return [{"in": place, "name": name, "required": True, "schema": {}} for place, name in keys]


@pytest.mark.slow
@given(parameter_lists(), st.booleans(), st.data())
def test_every_value_lands_in_its_place(
    parameters: list[dict[str, Any]], has_body: bool, data: st.DataObject
) -> None:
    path = "/it" + "".join([f"/{{{one['name']}}}" for one in parameters if one["in"] == "path"])
    body = {"required": True, "content": {"application/json": {}}}
    definition: dict[str, Any] = {"parameters": parameters}
    if has_body:
        definition["requestBody"] = body
    sent = Sent()
    tool = only_tool(operation(definition, path=path), call=sent)
    names = list(tool.schema["properties"])
    assert len(names) == len(parameters) + has_body
    values = [data.draw(SCALARS, label=name) for name in names]
    arguments = dict(zip(names, values, strict=True))
    if refusal(tool, arguments):
        assert any(one["in"] in ("path", "header") for one in parameters)
        return
    parse(tool, arguments).call_sync()
    (request,) = sent.requests
    # As a server reads them: each place alone, in the order of the document.
    texts = [json.dumps(value) if isinstance(value, bool) else str(value) for value in values]
    expected: dict[str, list[tuple[str, str]]] = {}
    for parameter, text in zip(parameters, texts, strict=False):
        expected.setdefault(parameter["in"], []).append((parameter["name"], text))
    segments = request.path.removeprefix("/it").split("/")[1:]
    assert [unquote(one) for one in segments] == [text for _, text in expected.get("path", [])]
    assert not {".", "..", ""} & set(segments)
    assert parse_qsl(request.query_string, keep_blank_values=True) == expected.get("query", [])
    headers = {**request.headers}
    cookies = [one.partition("=") for one in headers.pop("Cookie", "").split("; ") if one]
    assert [(name, unquote(text)) for name, _, text in cookies] == expected.get("cookie", [])
    if has_body:
        assert headers.pop("Content-Type") == "application/json"
        assert json.loads(request.content or b"") == values[-1]
    assert list(headers.items()) == expected.get("header", [])
    assert not any(set("\r\n") & set(text) for text in [request.path, *request.headers.values()])


@given(st.lists(st.text(min_size=1, max_size=8) | SCALARS, min_size=6, max_size=6))
def test_httpx_sends_the_request_as_it_was_spelled(values: list[Any]) -> None:
    styles = ["form", "spaceDelimited", "pipeDelimited", "deepObject"]
    parameters = [
        {"in": "query", "name": style, "style": style, "explode": style == "deepObject"}
        for style in styles
    ]
    parameters += [{"in": "path", "name": "id"}, {"in": "cookie", "name": "c"}]
    sent = Sent()
    source = operation({"parameters": parameters}, path="/it/{id}/end")
    arguments: dict[str, Any] = {style: [values[k]] for k, style in enumerate(styles)}
    arguments["deepObject"] = {str(values[3]): values[3]}
    arguments |= {"id": values[4], "c": values[5]}
    tool = only_tool(source, call=sent)
    if refusal(tool, arguments):
        return
    parse(tool, arguments).call_sync()
    (request,) = sent.requests
    seen: list[httpx2.Request] = []

    def answer(received: httpx2.Request) -> httpx2.Response:
        seen.append(received)
        return httpx2.Response(200)

    with httpx2.Client(
        base_url="http://a.example/v1", transport=httpx2.MockTransport(answer)
    ) as client:
        client.request(request.method, request.target, headers=request.headers)
    assert seen[0].url.raw_path == f"/v1{request.target}".encode()
    assert seen[0].headers["cookie"] == request.headers["Cookie"]


# --- schemas ------------------------------------------------------------------------------------

LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "integer", "minimum": 2},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda one: {"type": "array", "items": one}),
        st.dictionaries(st.sampled_from("pq"), inner, min_size=1).map(
            lambda properties: {"type": "object", "properties": properties, "required": ["p"]}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda many: {"anyOf": many}),
        inner.map(lambda one: {"allOf": [one]}),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.sampled_from(["a", "c", 1, 2, True, None]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(SCHEMAS, st.booleans(), st.booleans(), VALUES)
@settings(max_examples=examples(300))
def test_the_tool_takes_exactly_what_the_operation_takes(
    schema: dict[str, Any], nullable: bool, required: bool, value: Any
) -> None:
    given_schema = {**schema, "nullable": True} if nullable else schema
    definition = {
        "parameters": [{"name": "a", "in": "query", "required": required, "schema": schema}],
        "requestBody": {"content": {"application/json": {"schema": given_schema}}},
    }
    tool = only_tool(operation(definition, version="3.0.3"))
    takes_value = jsonschema.Draft202012Validator(schema).is_valid(value)
    # The validator of the tool alone: a query has no spelling for what is nested in it.
    is_valid = tool.__lutumpy_tool__.schema.is_valid
    fill = {"a": value} if takes_value else {}
    assert is_valid({"a": value}) is takes_value
    assert is_valid({}) is not required
    if fill or not required:
        fits = takes_value or (nullable and value is None)
        assert is_valid({**fill, "body": value}) is fits
    assert not is_valid({**fill, "b": value})


# --- broken documents -----------------------------------------------------------------------------


@given(st.randoms(use_true_random=False), st.sampled_from([None, 3, "x", [], {}, [3], {"$ref": 3}]))
@settings(max_examples=examples(100))
def test_whatever_is_broken_in_a_document_the_rest_of_it_is_tools_Y1(
    chance: random.Random, nonsense: Any
) -> None:
    broken = deepcopy(GITHUB)
    place: Any = broken["paths"]
    path: list[Any] = []
    while isinstance(place, (dict, list)) and place and (len(path) < 2 or chance.random() < 0.85):
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        path.append(key)
        place = place[key]
    holder = broken["paths"]
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = nonsense
    found = tools(broken, call=Sent(), closed=True, outputs=True)
    assert len(found) >= 5
    assert len(found) + len(found.skipped) <= 9


@given(st.randoms(use_true_random=False))
@settings(max_examples=examples(100))
def test_whatever_is_broken_in_its_schemas_nothing_is_raised_Y1(chance: random.Random) -> None:
    words: list[Any] = [
        None,
        3,
        "x",
        [],
        {},
        [3],
        True,
        ["a"],
        [["a"]],
        {"a": 3},
        {"type": 3},
        {"propertyName": []},
    ]
    schema: dict[str, Any] = {
        key: chance.choice(words)
        for key in chance.sample(
            [
                *("type", "properties", "required", "allOf", "oneOf", "items", "enum", "$ref"),
                *("additionalProperties", "nullable", "discriminator", "exclusiveMinimum"),
                *("examples", "not", "minimum", "dependentSchemas", "readOnly", "anyOf"),
            ],
            4,
        )
    }
    broken = deepcopy(GITHUB)
    broken["components"]["schemas"]["label"] = schema
    body = broken["paths"]["/repos/{owner}/{repo}/issues"]["post"]["requestBody"]
    body["content"]["application/json"]["schema"] = {"allOf": [schema], "properties": {"a": schema}}
    found = tools(broken, call=Sent(), closed=chance.random() < 0.5, outputs=True)
    assert len(found) + len(found.skipped) == 8
    assert len(found) >= 5
