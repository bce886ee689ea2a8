"""Operations of a document as tools: names, arguments, filters, and what never leaves its place."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
from openapi_toolkit import (
    GITHUB,
    Sent,
    document,
    of_body,
    of_parameter,
    only_tool,
    operation,
    parse,
    refusal,
    request_of,
    why_skipped,
)

from lutumpy import (
    DeclarationError,
    DynamicInput,
    DynamicOutput,
    ToolCall,
    ToolError,
    ToolMetadata,
    Toolset,
    dynamic,
)
from lutumpy.execution import Dispatcher, IdempotencyKey, ToolExecutor
from lutumpy.openapi import Operation, OperationRequest, tools


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def names(paths: dict[str, Any], **options: Any) -> list[str]:
    return [tool.name for tool in tools(document(paths), call=Sent(), **options)]


# --- names --------------------------------------------------------------------------------------


def test_an_operation_id_that_is_a_name_is_the_tools_name() -> None:
    paths = {"/a": {"get": {"operationId": "list_pets"}}}
    (tool,) = found = tools(document(paths), call=Sent())
    assert tool.name == tool.original_name == "list_pets"
    assert found["list_pets"] is found[0] is found.tools[-1] is tool
    assert tool in found
    assert len(found) == 1
    assert found.operations["list_pets"].label == "GET /a"
    assert repr(found) == "<OpenApiTools: 1 tools, 0 skipped>"
    with pytest.raises(KeyError):
        found["other"]


def test_a_name_that_was_changed_ends_in_digits_of_the_original_Y5() -> None:
    long = "x" * 65
    paths = {
        "/a": {"get": {"operationId": "pets.list"}, "post": {"operationId": "pets/list"}},
        "/b/{id}": {"get": {"parameters": [{"name": "id", "in": "path"}]}},
        "/c": {"get": {"operationId": long}, "put": {"operationId": "été"}},
    }
    found = tools(document(paths), call=Sent())
    assert {tool.original_name: tool.name for tool in found} == {
        "pets.list": f"pets_list_{digest('pets.list')}",
        "pets/list": f"pets_list_{digest('pets/list')}",
        "GET /b/{id}": f"GET_b_id_{digest('GET /b/{id}')}",
        long: f"{'x' * 55}_{digest(long)}",
        "été": f"t_{digest('été')}",
    }
    assert found["GET /b/{id}"].name.startswith("GET_b_id_")


def test_an_id_that_two_operations_have_names_neither_Y5() -> None:
    one, two = {"operationId": "same"}, {"operationId": "same"}
    expected = {f"GET_a_{digest('GET /a')}", f"GET_b_{digest('GET /b')}"}
    assert set(names({"/a": {"get": one}, "/b": {"get": two}})) == expected


def test_a_name_that_looks_like_another_ones_digest_collides_with_nothing_Y5() -> None:
    taken = f"a_b_{digest('a.b')}"
    paths = {"/a": {"get": {"operationId": "a.b"}}, "/b": {"get": {"operationId": taken}}}
    found = names(paths)
    assert len(set(found)) == 2
    assert taken not in found
    assert found == list(reversed(names(dict(reversed(paths.items())))))


def test_a_prefix_stands_before_each_name_and_counts() -> None:
    paths = {"/a": {"get": {"operationId": "list"}, "put": {"operationId": "x" * 62}}}
    assert names(paths, prefix="gh_") == ["gh_list", f"gh_{'x' * 52}_{digest('x' * 62)}"]
    for wrong in ("a.", "é", "x" * 33):
        with pytest.raises(DeclarationError, match="can't stand before the names"):
            names(paths, prefix=wrong)


def test_names_are_those_of_the_document_however_it_is_filtered() -> None:
    everything = {tool.original_name: tool.name for tool in tools(GITHUB, call=Sent())}
    for name, tool_name in everything.items():
        assert [one.name for one in tools(GITHUB, call=Sent(), only=[name])] == [tool_name]


# --- which operations ---------------------------------------------------------------------------

PATHS: dict[str, Any] = {
    "/pets": {
        "get": {"operationId": "list", "tags": ["pets"], "summary": "List pets."},
        "post": {"operationId": "add", "tags": ["pets", "admin"], "deprecated": True},
    },
    "/owners": {"delete": {"operationId": "clear", "tags": ["admin"]}, "get": {}},
}


def test_filters_hold_all_together() -> None:
    assert names(PATHS, only=["add", "GET /pets"]) == ["list", "add"]
    assert names(PATHS, tags=["admin"]) == ["add", "clear"]
    assert names(PATHS, include=lambda operation: operation.method == "DELETE") == ["clear"]
    assert names(PATHS, tags=["admin"], only=["add", "list"]) == ["add"]
    assert names(PATHS, only=["GET /owners"]) == [f"GET_owners_{digest('GET /owners')}"]
    assert names(PATHS, only=[]) == []


def test_a_filter_that_names_nothing_is_refused() -> None:
    with pytest.raises(DeclarationError, match="the document has no operations 'adds'"):
        names(PATHS, only=["adds"])
    with pytest.raises(DeclarationError, match="the document has no tags 'pet'"):
        names(PATHS, tags=["pet"])
    with pytest.raises(DeclarationError, match="only takes a list of texts"):
        names(PATHS, only="add")


def test_what_is_not_a_document_of_openapi_3_says_why() -> None:
    for source, why in (
        ({"swagger": "2.0"}, "Swagger '2.0'"),
        ({"openapi": "2.9"}, "'2.9'; 3.0 and 3.1 are read"),
        ({"openapi": 3.0}, "openapi: 3.0; 3.0 and 3.1 are read"),
        ({}, "openapi: None"),
        ('{"openapi": "3.1.0"}', "a mapping, not str; read JSON with json.loads"),
        ({"openapi": "3.1.0", "paths": []}, "`paths` is "),
        ({"openapi": "3.1.0", "jsonSchemaDialect": "urn:other"}, "dialect 'urn:other'"),
    ):
        with pytest.raises(DeclarationError, match=why):
            tools(source, call=Sent())  # type: ignore[arg-type]
    assert len(tools({"openapi": "3.1.0"}, call=Sent())) == 0
    with pytest.raises(DeclarationError, match="call must be a function"):
        tools(document({}), call=None)  # type: ignore[arg-type]


def test_one_bad_operation_harms_no_other_Y1() -> None:
    bad = {
        "/1": {"get": {"parameters": [{"name": "a", "in": "query", "schema": {"type": "nix"}}]}},
        "/2": {"get": {"parameters": [{"name": "a", "in": "moon"}]}},
        "/3": {"get": {"parameters": [{"in": "query"}]}},
        "/4": {"get": {"parameters": {}}},
        "/5/{a}": {"get": {}},
        "/6": {"get": {"parameters": [{"name": "a b", "in": "header"}]}},
        "/7": {"get": {"parameters": [{"name": "a", "in": "query", "style": "label"}]}},
        "/8": {"post": {"requestBody": {"content": {"nothing": {}}}}},
        "/9": {"post": {"requestBody": {"content": {}}}},
        "/10": {"get": {"parameters": [{"name": "a", "in": "query", "content": {"a/b": {}}}]}},
        "/11": {"get": 3},
        "/12": {"$ref": "paths.yaml"},
        "/13": {
            "get": {
                "parameters": [
                    {"name": "a", "in": "query", "schema": {"minLength": "x"}},
                ]
            }
        },
        "/14": {"get": {"parameters": [{"name": "a", "in": "query"}] * 2}},
        "/15": {
            "get": {
                "parameters": [
                    {"name": "a", "in": "query"},
                    {"name": "a", "in": "query", "required": True},
                ]
            }
        },
    }
    deep: Any = {}
    for _ in range(3000):
        deep = {"items": deep}
    bad["/16"] = {"get": {"parameters": [{"name": "a", "in": "query", "schema": deep}]}}
    found = tools(document({**bad, **PATHS}), call=Sent())
    originals = [tool.original_name for tool in found]
    assert originals == ["GET /14", "list", "add", "GET /owners", "clear"]
    assert {name.split("/")[1] for name in found.skipped} == {
        *map(str, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16])
    }
    assert found.skipped["GET /2"] == "the parameter 'a' is in 'moon'"
    assert found.skipped["GET /5/{a}"] == ("its path has {a}, and no such parameter is declared")
    assert found.skipped["POST /8"] == (
        "its request body is nothing, which is no media type that is sent"
    )
    assert found.skipped["GET /16"] == "its schemas are nested too deeply"


# --- what a tool says ---------------------------------------------------------------------------


def test_the_effect_is_that_of_the_method_unless_it_is_given() -> None:
    paths: dict[str, Any] = {
        "/a": {method: {} for method in ("get", "head", "put", "delete", "post", "patch")}
    }

    def effects(**options: Any) -> list[str]:
        found = tools(document(paths), call=Sent(), **options)
        return [
            f"{found.operations[tool.name].method} {tool.definition.options.effect}"
            for tool in found
        ]

    assert effects() == [
        "GET read",
        "PUT idempotent",
        "POST once",
        "DELETE idempotent",
        "HEAD read",
        "PATCH once",
    ]
    given = effects(effect=lambda operation: "read" if operation.method == "POST" else None)
    assert given[2:4] == ["POST read", "DELETE idempotent"]


def test_the_description_is_that_of_the_document_unless_it_is_given() -> None:
    texts = {"summary": "List.", "description": "At length."}
    for definition, told in (
        (texts, "List.\n\nAt length."),
        ({**texts, "description": "List. And more."}, "List. And more."),
        ({**texts, "deprecated": True}, "List.\n\nAt length.\n\nDeprecated."),
        ({}, "POST /it"),
    ):
        assert only_tool(operation(definition)).definition.description == told
    tool = only_tool(operation(texts), describe=lambda operation: f"It is {operation.label}")
    assert tool.definition.description == "It is POST /it"


def test_servers_and_security_are_told_and_used_by_the_caller() -> None:
    source = document(
        {
            "/a": {
                "get": {"security": [{"key": []}, {"oauth": ["read"], "key": []}, {}]},
                "put": {"security": [], "servers": [{"url": "https://up.example"}]},
                "post": {},
            }
        },
        servers=[{"url": "https://{where}/v1", "variables": {"where": {"default": "a.example"}}}],
        security=[{"basic": []}],
    )
    found = tools(source, call=Sent())
    told = {one.method: (one.servers, one.security) for one in found.operations.values()}
    assert told == {
        "GET": (("https://a.example/v1",), (("key",), ("oauth", "key"), ())),
        "PUT": (("https://up.example",), ()),
        "POST": (("https://a.example/v1",), (("basic",),)),
    }


# --- arguments ----------------------------------------------------------------------------------


def test_places_that_share_a_name_are_told_apart() -> None:
    parameters = [
        {"name": "id", "in": place, "required": True, "schema": {"type": "string"}}
        for place in ("path", "query", "header", "cookie")
    ]
    parameters.append({"name": "body", "in": "query", "schema": {"type": "string"}})
    body = {"content": {"application/json": {"schema": {"type": "integer"}}}}
    source = operation({"parameters": parameters, "requestBody": body}, path="/it/{id}")
    tool = only_tool(source)
    assert list(tool.schema["properties"]) == [
        "path_id",
        "query_id",
        "header_id",
        "cookie_id",
        "query_body",
        "request_body",
    ]
    request = request_of(
        source,
        {
            "path_id": "1",
            "query_id": "2",
            "header_id": "3",
            "cookie_id": "4",
            "query_body": "5",
            "request_body": 6,
        },
    )
    assert request.target == "/it/1?id=2&body=5"
    assert request.headers == {"id": "3", "Cookie": "id=4", "Content-Type": "application/json"}
    assert request.content == b"6"


def test_a_parameter_whose_name_no_provider_takes_has_a_clean_one_and_is_sent_by_its_own() -> None:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in ("filter[name]", "$top", "labels[]", "labels", "X.y-z")
    ]
    source = operation({"parameters": parameters}, method="get")
    assert list(only_tool(source).schema["properties"]) == [
        "filter_name",
        "top",
        *[name for name in only_tool(source).schema["properties"] if "labels" in name],
        "X.y-z",
    ]
    assert request_of(source, {"filter_name": "a", "top": "1"}).query == (
        ("filter[name]", "a"),
        ("$top", "1"),
    )


def test_parameters_of_the_path_are_replaced_by_those_of_the_operation() -> None:
    shared = [
        {"name": "a", "in": "query", "required": True, "schema": {"type": "integer"}},
        {"name": "X-B", "in": "header", "schema": {"type": "integer"}},
        {"name": "unused", "in": "path", "schema": {}},
    ]
    own = [{"name": "x-b", "in": "header", "schema": {"type": "string"}, "deprecated": True}]
    tool = only_tool(
        document({"/a": {"parameters": shared, "get": {"operationId": "x", "parameters": own}}})
    )
    assert tool.schema["properties"] == {
        "a": {"type": "integer"},
        "x-b": {"type": "string", "deprecated": True},
    }
    assert tool.schema["required"] == ["a"]


def test_headers_that_belong_to_the_client_are_nothing_for_a_model() -> None:
    parameters = [
        {"name": name, "in": "header", "required": True}
        for name in ("Authorization", "accept", "Content-Type", "Host", "Content-Length", "Cookie")
    ]
    assert only_tool(operation({"parameters": parameters})).schema["properties"] == {}


def test_the_arguments_take_no_names_that_the_operation_has_not() -> None:
    tool = only_tool(of_parameter({"name": "a", "in": "query", "schema": {"type": "integer"}}))
    assert refusal(tool, {"b": 1}) == "b: Extra inputs are not permitted"
    assert refusal(tool, {"a": "x"}) == 'a: "x" is not of type "integer"'


def test_json_is_taken_before_forms() -> None:
    media = {
        "multipart/form-data": {"schema": {"type": "object"}},
        "application/merge-patch+json": {"schema": {"type": "integer"}},
        "text/plain": {},
        "application/json; charset=utf-8": {"schema": {"type": "string"}},
    }
    for content, media_type in (
        (media, "application/json"),
        ({key: media[key] for key in list(media)[:3]}, "application/merge-patch+json"),
        ({"*/*": {"schema": {"type": "string"}}, "text/plain": {}}, "application/json"),
    ):
        source = operation({"requestBody": {"content": content}})
        value = 3 if media_type.endswith("+json") else "x"
        assert request_of(source, {"body": value}).media_type == media_type


# --- nothing leaves its place ---------------------------------------------------------------------


@pytest.mark.parametrize("value", ["", ".", "..", "a/b", "../admin", "a\\b", "/", None, [], {}])
def test_a_value_of_a_path_stays_in_its_segment(value: Any) -> None:
    tool = only_tool(
        of_parameter({"name": "id", "in": "path", "schema": {}}, path="/pets/{id}/photo")
    )
    assert refusal(tool, {"id": value}) != ""


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a b?c#d", "/pets/a%20b%3Fc%23d"),
        ("%2e%2e", "/pets/%252e%252e"),
        ("...", "/pets/..."),
        ("a;b=c", "/pets/a%3Bb%3Dc"),
        ("\r\n\0", "/pets/%0D%0A%00"),
        (True, "/pets/true"),
    ],
)
def test_what_a_path_takes_is_percent_encoded(value: Any, path: str) -> None:
    source = of_parameter({"name": "id", "in": "path", "schema": {}}, path="/pets/{id}")
    assert request_of(source, {"id": value}).path == path


def test_json_in_a_path_stays_in_its_segment() -> None:
    parameter = {"name": "id", "in": "path", "content": {"application/json": {}}}
    source = of_parameter(parameter, path="/pets/{id}")
    assert request_of(source, {"id": {"a": 1}}).path == "/pets/%7B%22a%22%3A1%7D"
    assert refusal(only_tool(source), {"id": {"a": "/"}}) != ""


def test_two_values_make_no_dots_together() -> None:
    parameters = [{"name": name, "in": "path", "schema": {}} for name in "ab"]
    tool = only_tool(operation({"parameters": parameters}, path="/x/{a}{b}"))
    assert refusal(tool, {"a": ".", "b": "."}) == "the path: 'a' makes the segment '..' of the path"
    assert refusal(tool, {"a": ".", "b": "a"}) == ""


def test_segments_are_taken_where_the_caller_says_so() -> None:
    place = {"owner": "o", "repo": "r"}
    tool = tools(GITHUB, call=Sent(), multi_segment=["path"])["repos/get-content"]
    assert refusal(tool, {**place, "path": "docs/a.md"}) == ""
    for wrong in ("docs/../../x", "docs//x", "/docs", "docs/", ".", "a\\..\\b"):
        assert refusal(tool, {**place, "path": wrong}) == (
            "path: no part of it between slashes can be empty, '.' or '..'"
        )
    assert refusal(tool, {**place, "owner": "a/b", "path": "x"}) == (
        "owner: it is one segment of the path and can't hold '/' or '\\'"
    )


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\n", "\0", "é", " a", "a ", ["a", "b\n"]])
def test_a_header_holds_no_line_break_and_nothing_that_a_client_refuses(value: Any) -> None:
    tool = only_tool(of_parameter({"name": "X-A", "in": "header", "schema": {}}))
    assert refusal(tool, {"X-A": value}).startswith("X-A: it is sent as a header")


# --- running ------------------------------------------------------------------------------------


async def test_call_may_be_async_and_is_given_what_it_asks_for() -> None:
    seen: list[Any] = []

    async def call(request: OperationRequest, key: IdempotencyKey, tenant: str) -> Any:
        seen.append((request.target, key, tenant))
        if request.query_values["a"] == "no":
            raise ToolError("404: there is no such thing")
        return {"ok": [True]}

    class App(Toolset[ToolCall[DynamicInput, DynamicOutput]]):
        more = dynamic()

    source = of_parameter({"name": "a", "in": "query", "required": True, "schema": {}})
    offered = App.with_dynamic_tools({App.more: tools(source, call=call)})
    calls = [
        offered.parse(ToolMetadata(f"c{value}", "it", json.dumps({"a": value})))
        for value in ("yes", "no")
    ]
    first, second = await ToolExecutor().run(calls, Dispatcher(offered, context={"tenant": "t1"}))
    assert first.content == '{"ok":[true]}'
    assert (second.status, second.content) == ("error", "404: there is no such thing")
    assert {(target, tenant) for target, _, tenant in seen} == {
        ("/it?a=yes", "t1"),
        ("/it?a=no", "t1"),
    }
    assert all(key for _, key, _ in seen)


def test_a_plain_call_runs_without_an_event_loop() -> None:
    tool = only_tool(of_body({}), call=Sent({"id": 1}))
    assert parse(tool, {"body": 3}).call_sync() == {"id": 1}


def test_an_async_call_is_awaited() -> None:
    class Client:
        async def __call__(self, request: OperationRequest) -> Any:
            return request.method

    tool = only_tool(of_body({}), call=Client())
    assert asyncio.run(parse(tool, {"body": 3}).call()) == "POST"


def test_a_request_is_a_value_that_names_its_operation() -> None:
    source = of_body({})
    request = request_of(source, {"body": 1})
    assert isinstance(request.operation, Operation)
    assert request.operation.definition is source["paths"]["/it"]["post"]
    assert request.operation.label == "POST /it"
    assert request == request_of(source, {"body": 1})
    assert json.loads(request.content or b"") == 1


def test_options_reach_the_tools() -> None:
    tool = only_tool(of_body({}), timeout=3.0, max_retries=1, strict=False)
    options = tool.definition.options
    assert (options.timeout, options.max_retries, options.strict) == (3.0, 1, False)


def test_a_schema_that_is_none_skips_its_operation() -> None:
    assert why_skipped(of_body({"properties": {"a": 3}})) == "a schema is 3, not an object"
