"""Wherever a document's path leads, a request goes to the server that the user named, and what it
holds has the names that the document has.
"""

from __future__ import annotations

import random
from dataclasses import replace
from email.message import Message
from email.parser import BytesParser
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

import httpx2
import pytest
from openapi_toolkit import (
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

from lutumpy import InvalidArgumentsError
from lutumpy.openapi import AddressError, OperationRequest, tools

SERVER = "https://api.example/v1"
FORM = "application/x-www-form-urlencoded"
TENANT = {"in": "query", "name": "tenant", "required": True, "schema": {"const": "t1"}}


def sent_to(path: str, *parameters: dict[str, Any], **arguments: Any) -> str:
    """The address of a request to an operation of this path."""
    source = operation({"parameters": list(parameters)}, path=path, method="get")
    return request_of(source, arguments).url_at(SERVER)


# --- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("https://evil.example/x", "doesn't begin with '/'"),
        ("//evil.example/x", "names a host"),
        ("/\\evil.example/x", "names a host"),
        ("@evil.example/x", "doesn't begin with '/'"),
        (".evil.example/x", "doesn't begin with '/'"),
        (":80@evil.example", "doesn't begin with '/'"),
        ("\\\\evil.example", "doesn't begin with '/'"),
        ("\t//evil.example", "doesn't begin with '/'"),
        (" /x", "doesn't begin with '/'"),
        ("", "doesn't begin with '/'"),
        ("?a=b", "doesn't begin with '/'"),
        ("#a", "doesn't begin with '/'"),
        ("/../admin", "leads to another one"),
        ("/a/%2e%2E/admin", "leads to another one"),
        ("/a/./b", "leads to another one"),
        ("/a/x\\..\\b", "leads to another one"),
        ("/a/..%5cb", "leads to another one"),
    ],
)
def test_a_path_that_leads_to_another_address_is_skipped(path: str, why: str) -> None:
    assert why in why_skipped(document({path: {"get": {"operationId": "it"}}}))


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/a b\t\r\n\0", "/a%20b%09%0D%0A%00"),
        ("/é\udc00", "/%C3%A9%EF%BF%BD"),
        ("/a%20b%2", "/a%20b%252"),
        ('/a\\b|^`<>"{}', "/a%5Cb%7C%5E%60%3C%3E%22%7B%7D"),
        ("/x:go/@me/a;b=c,d(1)!*'$&+~", "/x:go/@me/a;b=c,d(1)!*'$&+~"),
        ("/\t/evil.example", "/%09/evil.example"),
        ("/a//b/", "/a//b/"),
        ("/", "/"),
        ("/a?b=c d&e", "/a?b=c%20d&e"),
        ("/a?b=é#f?g", "/a?b=%C3%A9"),
        ("/a#b?c=d", "/a"),
    ],
)
def test_a_path_is_encoded_and_what_is_encoded_stays(path: str, sent: str) -> None:
    assert sent_to(path) == SERVER + sent


def test_what_follows_a_hash_is_a_name_and_the_parameters_are_sent() -> None:
    identified = {"in": "path", "name": "id", "required": True}
    fields = {"in": "query", "name": "fields", "schema": {"type": "string"}}
    paths = {
        f"/files/{{id}}{name}": {"put": {"parameters": [identified, fields]}}
        for name in ("", "#copy", "#add_shared_link", "#move{to}")
    }
    sent = Sent()
    found = tools(document(paths), call=sent)
    assert found.skipped == {}
    assert found["PUT /files/{id}#copy"].name != found["PUT /files/{id}"].name
    for tool in found:
        parse(tool, {"id": "7", "fields": "a"}).call_sync()
    assert [one.target for one in sent.requests] == ["/files/7?fields=a"] * 4


def test_a_query_in_a_path_is_sent_before_the_parameters() -> None:
    more = {"in": "query", "name": "more", "schema": {"type": "string"}}
    assert sent_to("/x?action=foo", more, more="1&2").endswith("/x?action=foo&more=1%262")
    identified = {"in": "path", "name": "id", "schema": {}}
    assert sent_to("/x?a=1&id={id}", identified, id="?&=#").endswith("/x?a=1&id=%3F%26%3D%23")
    # What a query parameter writes is left to it.
    assert sent_to("/x?more={more}", more, more="1").endswith("/x?more=1")
    assert "no such parameter" in why_skipped(of_parameter(more, path="/x?m=a{more}"))


def test_a_parameter_that_the_path_states_is_not_asked_for() -> None:
    action = {"in": "query", "name": "action", "required": True, "schema": {"type": "string"}}
    source = of_parameter(action, path="/x?action=foo")
    assert only_tool(source).schema["properties"] == {}
    assert request_of(source, {}).target == "/x?action=foo"
    spread = {"in": "query", "name": "o", "schema": {"properties": {"action": {}, "b": {}}}}
    source = of_parameter(spread, path="/x?action=foo")
    assert "action" in refusal(only_tool(source), {"o": {"action": "bar"}})
    assert request_of(source, {"o": {"b": 1}}).target == "/x?action=foo&b=1"


def test_a_name_with_a_slash_is_filled_in() -> None:
    parameter = {"in": "path", "name": "a/b#c?d", "schema": {}}
    source = of_parameter(parameter, path="/x/{a/b#c?d}")
    (argument,) = only_tool(source).schema["properties"]
    assert request_of(source, {argument: "1"}).path == "/x/1"


def test_values_make_no_empty_segment_and_no_dots_with_what_stands_beside_them() -> None:
    parameters = [{"in": "path", "name": name, "schema": {}} for name in "ab"]
    tool = only_tool(operation({"parameters": parameters}, path="/x/{a}{b}", method="get"))
    assert refusal(tool, {"a": ".", "b": "."}) == "the path: 'a' makes the segment '..' of the path"
    one = {"in": "path", "name": "a", "schema": {}}
    assert refusal(only_tool(of_parameter(one, path="/x/.{a}")), {"a": "."}) != ""
    assert refusal(only_tool(of_parameter(one, path="/{a}/b")), {"a": {"b": None}}) != ""
    label = {**one, "style": "label", "explode": True}
    assert refusal(only_tool(of_parameter(label, path="/x/{a}")), {"a": ["", ""]}) != ""


def test_json_in_a_path_is_encoded_whatever_is_reserved() -> None:
    parameter = {
        "in": "path",
        "name": "id",
        "allowReserved": True,
        "content": {"application/json": {}},
    }
    source = of_parameter(parameter, path="/x/{id}/end")
    assert request_of(source, {"id": "?a@b:c"}).path == "/x/%22%3Fa%40b%3Ac%22/end"


# --- joining --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("https://api.example", "https://api.example/it?a=1"),
        ("https://api.example/", "https://api.example/it?a=1"),
        ("https://api.example/v1", "https://api.example/v1/it?a=1"),
        ("https://api.example/v1//", "https://api.example/v1/it?a=1"),
        ("HTTPS://API.Example:443/v1/", "https://API.Example:443/v1/it?a=1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/it?a=1"),
        ("https://me:secret@api.example/a%20b", "https://me:secret@api.example/a%20b/it?a=1"),
    ],
)
def test_a_request_has_an_address_on_its_server(server: str, address: str) -> None:
    source = of_parameter({"in": "query", "name": "a", "schema": {}})
    assert request_of(source, {"a": 1}).url_at(server) == address


@pytest.mark.parametrize(
    "server",
    [
        "",
        "/v1",
        "//api.example",
        "api.example/v1",
        "ftp://api.example",
        "https://",
        "https:///v1",
        "https://api.example/v1?key=secret",
        "https://api.example/v1#x",
        "https://api.example?",
        "https://api.example/../v1",
        "https://api.example/%2e%2e",
        "https://api.example\\@evil.example",
        "https://api.example\n.evil.example",
        "https://api.example/a b",
        "https://api.example:99999",
        "https://[::1",
        None,
        7,
    ],
)
def test_what_is_not_the_address_of_a_server_is_refused(server: Any) -> None:
    request = request_of(of_parameter({"in": "query", "name": "a", "schema": {}}), {})
    with pytest.raises(AddressError, match="the server's address can't be used: ") as refused:
        request.url_at(server)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"path": path}
        for path in (
            *("//evil.example", "@evil.example", "https://evil.example", "", "x", "/x?a", "/x#a"),
            *("/\\evil.example", "/a b", "/\r\n", "/é", "/%2", "/../x", "/a/%2e%2e", "/.%2E/", 3),
        )
    ]
    + [{"query_string": query} for query in ("a#b", "a b", "é", "a\r\nX: y", "%", "\\", None)],
)
def test_a_request_that_could_leave_its_server_can_not_be_made(changed: dict[str, Any]) -> None:
    request = request_of(of_parameter({"in": "query", "name": "a", "schema": {}}), {"a": 1})
    with pytest.raises(AddressError, match="nothing was sent"):
        replace(request, **changed)


def test_variables_of_a_server_are_filled_in_once() -> None:
    variables = {"a": {"default": "{b}"}, "b": {"default": "x"}, "c": {}}
    source = document(
        {"/it": {"get": {}}}, servers=[{"url": "https://{a}.{b}.{c}", "variables": variables}]
    )
    (read,) = tools(source, call=Sent()).operations.values()
    assert read.servers == ("https://{b}.x.{c}",)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"additionalProperties": True}])
def test_an_object_of_a_query_writes_no_parameter_that_the_document_does_not_name(
    schema: Any,
) -> None:
    free = {"in": "query", "name": "filter", "schema": schema}
    tool = only_tool(operation({"parameters": [free, TENANT]}, method="get"))
    for key in ("tenant", "admin", "filter[a]", ""):
        assert refusal(tool, {"tenant": "t1", "filter": {key: "x"}}).startswith("filter: ")
    assert refusal(tool, {"tenant": "t1", "filter": {}}) == ""


def test_a_property_that_is_another_parameter_is_not_asked_for_and_not_taken() -> None:
    named = {
        "allOf": [{"$ref": "#/components/schemas/Filter"}],
        "required": ["tenant", "a"],
    }
    components = {"schemas": {"Filter": {"properties": {"tenant": {}, "a": {"type": "string"}}}}}
    parameters = [{"in": "query", "name": "filter", "schema": named}, TENANT]
    source = operation({"parameters": parameters}, method="get", components=components)
    tool = only_tool(source)
    assert refusal(tool, {"tenant": "t1", "filter": {"tenant": "t2", "a": "x"}}) == (
        "filter: it can't have the property 'tenant', the name of another one"
    )
    assert request_of(source, {"tenant": "t1", "filter": {"a": "x"}}).target == "/it?a=x&tenant=t1"


def test_two_objects_that_write_one_name_skip_the_operation() -> None:
    parameters = [
        {"in": "query", "name": name, "schema": {"properties": {"limit": {}}}} for name in "ab"
    ]
    for listed in (parameters, parameters[::-1]):
        assert "both have the property 'limit'" in why_skipped(operation({"parameters": listed}))
    deep = [{"in": "query", "name": name, "style": "deepObject"} for name in ("a", "a[b]")]
    assert "write the same names" in why_skipped(operation({"parameters": deep}))


def test_a_deep_object_stays_below_its_name() -> None:
    deep = {"in": "query", "name": "f", "style": "deepObject", "schema": {}}
    stated = {"in": "query", "name": "f[tenant]", "schema": {"const": "t1"}}
    source = operation({"parameters": [deep, stated]}, method="get")
    tool = only_tool(source)
    for value in ({"tenant": "t2"}, {"tenant": {"": "t2"}}, {"a][tenant": 1}, {"": 1}, {"]": 1}):
        assert refusal(tool, {"f": value}) != ""
    assert request_of(source, {"f": {"a&b=c": {"d": 1}}}).query == (("f[a&b=c][d]", "1"),)


def test_an_object_of_cookies_writes_those_that_the_document_names() -> None:
    schema = {"properties": {"a": {}, "b c": {}, "session": {}}}
    spread = {"in": "cookie", "name": "o", "allowReserved": True, "schema": schema}
    session = {"in": "cookie", "name": "session", "schema": {"const": "s1"}}
    source = operation({"parameters": [spread, session]}, method="get")
    tool = only_tool(source)
    for value in ({"session": "s2"}, {"admin": "1"}, {"b c": 1}, {"a; admin": 1}):
        assert refusal(tool, {"o": value}) != ""
    request = request_of(source, {"o": {"a": "1; admin=1,b"}, "session": "s1"})
    assert request.headers["Cookie"] == "a=1%3B%20admin%3D1%2Cb; session=s1"
    named = {"in": "cookie", "name": "a!#$&'*+^`|~", "schema": {}}
    request = request_of(of_parameter(named), _only(named, "x"))
    assert request.cookies == {"a!#$&'*+^`|~": "x"}


def _only(parameter: dict[str, Any], value: Any) -> dict[str, Any]:
    """Arguments with this value for the one parameter, whatever its argument's name is."""
    (argument,) = only_tool(of_parameter(parameter)).schema["properties"]
    return {argument: value}


@pytest.mark.parametrize("explode", [True, False])
def test_a_value_in_a_header_or_a_path_does_not_become_two(explode: bool) -> None:
    schema = {"properties": {"a": {}, "tenant": {"const": "t1"}}}
    header = {"in": "header", "name": "X-A", "explode": explode, "schema": schema}
    tool = only_tool(of_parameter(header))
    for value in ({"a": "1,tenant=t2"}, {"a,tenant": 1}, ["a,b"]):
        assert "can't hold ','" in refusal(tool, {"X-A": value})
    assert (refusal(tool, {"X-A": {"a=b": 1}}) != "") is explode
    assert refusal(tool, {"X-A": "a,b"}) == ""
    label = {"in": "path", "name": "p", "style": "label", "explode": explode, "schema": schema}
    tool = only_tool(of_parameter(label, path="/x/{p}"))
    assert (refusal(tool, {"p": {"a": "1.b"}}) != "") is explode
    matrix = {**label, "style": "matrix"}
    tool = only_tool(of_parameter(matrix, path="/x/{p}"))
    assert (refusal(tool, {"p": {"b": "1"}}) != "") is explode
    query = {**header, "in": "query", "allowReserved": True, "explode": False}
    source = of_parameter(query)
    request = request_of(source, _only(query, {"a": "1,tenant,t2"}))
    assert request.query_string == "X-A=a,1%2Ctenant%2Ct2"


def test_a_media_type_with_a_line_break_is_not_taken() -> None:
    assert "request body is" in why_skipped(of_body({}, media_type="a/b\r\nX-Admin: 1; c+json"))
    assert "request body is" in why_skipped(of_body({}, media_type="a/x\r\ny+json"))
    encoding = {"a": {"contentType": "text/plain\r\nX: y"}}
    source = of_body({"properties": {"a": {}}}, media_type="multipart/form-data", encoding=encoding)
    assert b"X: y" not in (request_of(source, {"body": {"a": "1"}}).content or b"")


def test_headers_of_the_connection_are_nothing_for_a_model() -> None:
    names = ["Proxy-Authorization", "TE", "Upgrade", "Expect", "Keep-Alive", "Trailer"]
    parameters = [{"in": "header", "name": name, "schema": {}} for name in names]
    assert only_tool(operation({"parameters": parameters})).schema["properties"] == {}


# --- forms ----------------------------------------------------------------------------------------


def test_fields_of_a_form_do_not_write_each_others_names() -> None:
    schema = {
        "properties": {
            "tenant": {"const": "t1"},
            "spread": {"properties": {"x": {}, "tenant": {}}},
            "deep": {"properties": {"tenant": {"const": "t1"}}},
        }
    }
    encoding = {"spread": {"style": "form"}, "deep": {"style": "deepObject"}}
    source = of_body(schema, media_type=FORM, encoding=encoding)
    tool = only_tool(source)
    for value in (
        {"spread": {"tenant": "t2"}},
        {"spread": {"admin": "1"}},
        {"deep": {"tenant": "t1"}, "deep[tenant]": "t2"},
        {"deep[admin]": "1"},
        {"tenant[]": "t2"},
        {"spread": {"x": 1}, "x": 2},
        {"deep": {"tenant][x": 1}},
    ):
        assert refusal(tool, {"body": value}).startswith("body: "), value
    content = request_of(
        source, {"body": {"tenant": "t1", "spread": {"x": "&tenant=t2"}, "own": 1}}
    ).content
    assert content == b"tenant=t1&x=%26tenant%3Dt2&own=1"


def test_a_spread_field_has_the_names_of_all_parts_of_its_schema() -> None:
    part = {"properties": {"spread": {"allOf": [{"properties": {"x": {}}}]}}}
    schema = {"allOf": [part, {"properties": {"spread": {"anyOf": [{"properties": {"y": {}}}]}}}]}
    source = of_body(schema, media_type=FORM, encoding={"spread": {"style": "form"}})
    assert request_of(source, {"body": {"spread": {"x": 1, "y": 2}}}).content == b"x=1&y=2"
    assert "'z'" in refusal(only_tool(source), {"body": {"spread": {"z": 1}}})


def test_a_name_of_a_part_holds_nothing_that_ends_it() -> None:
    source = of_body({"type": "object"}, media_type="multipart/form-data")
    name = 'a\\"; filename="x"\r\n\x00\x85\u2028'
    content = request_of(source, {"body": {name: "1"}}).content or b""
    assert b'name="a%5C%22; filename=%22x%22%0D%0A%00%C2%85%E2%80%A8"\r\n\r\n1' in content
    tool = only_tool(source)
    assert "under the same name" in refusal(tool, {"body": {'a"': "1", "a%22": "2"}})


# --- hostile documents ----------------------------------------------------------------------------

CHANCE = random.Random()
PIECES = [
    *("/", "//", "\\", ".", "..", "%2e", "%2F", "%", "@", "evil.example", "https:", ":", ":443"),
    *("?", "#", "&", "=", ";", ",", " ", "\t", "\r\n", "\0", "é", "{a}", "{b}", "{"),
    *("}", "x", "tenant=t2", "[", "]", "user:pw@", "v1", "+", "|", '"', "'"),
]
VALUES: list[Any] = [
    *PIECES,
    *("a", "", "t2", "1; admin=1", "x&tenant=t2", "x,tenant,t2", "x.tenant=t2", "x\r\nX-B: 1"),
    *(0, True, None, 1.5, [], {}, ["a", "b"], ["x|tenant", "b c"], [None], {"a": None}),
    *({"tenant": "t2"}, {"known": "1"}, {"known": "1,tenant=t2"}, {"admin": 1}, {"a][b": 1}),
    *({"": 1}, {"known": {"tenant": 1}}, {"known&tenant": "t2"}, {"X-T": 1}, {"p[tenant]": "t2"}),
]
SERVERS = [
    "https://api.example",
    "https://api.example/",
    "https://API.example:8443/v1/",
    "http://[::1]:80/a%20b/c",
    "https://me:pw@api.example/v1",
]


@pytest.fixture(autouse=True)
def _same_cases() -> None:
    """Each test meets the same cases, whatever ran before it in this process."""
    CHANCE.seed(25)


def some_path() -> str:
    path = "".join(CHANCE.choices([*PIECES, "\udc80"], k=CHANCE.randrange(7)))
    return path if CHANCE.random() < 0.3 else f"/x{path}"


def origin_of(url: str) -> tuple[Any, ...]:
    read = urlsplit(url)
    default = {"https": 443, "http": 80}[read.scheme]
    return read.scheme, read.hostname, read.port or default


def requests_of(source: dict[str, Any], tries: int = 1) -> list[OperationRequest]:
    """What is sent for calls with hostile arguments."""
    sent = Sent()
    for tool in tools(source, call=sent, multi_segment=["b"]):
        for _ in range(tries):
            arguments = {
                name: schema["const"] if "const" in schema else CHANCE.choice(VALUES)
                for name, schema in tool.schema["properties"].items()
            }
            try:
                parse(tool, arguments).call_sync()
            except InvalidArgumentsError:
                continue
    return sent.requests


@pytest.mark.pure
@pytest.mark.slow
def test_a_request_of_any_document_stays_on_its_server() -> None:
    made = 0
    for _ in range(1500):
        places = [("path", "a"), ("path", "b"), ("query", "q")]
        parameters = [
            {"in": place, "name": name, "allowReserved": CHANCE.random() < 0.5}
            for place, name in places
        ]
        source = operation({"parameters": parameters}, path=some_path(), method="get")
        server = CHANCE.choice(SERVERS)
        base = urlsplit(server)
        for request in requests_of(source):
            made += 1
            address = request.url_at(server)
            folder = base.path.rstrip("/") + "/"
            # As clients join, each in its own way.
            joined = [
                address,
                server.rstrip("/") + request.target,
                urljoin(server, request.target),
                str(httpx2.URL(server).join(request.target)),
                str(httpx2.URL(address)),
            ]
            assert {origin_of(url) for url in joined} == {origin_of(server)}
            for url in (address, str(httpx2.URL(address))):
                assert urlsplit(url).path.startswith(folder)
                assert ".." not in unquote(urlsplit(url).path).replace("\\", "/").split("/")
                assert urlsplit(url).fragment == ""
            assert urlsplit(address)[:2] == (base.scheme, base.netloc)
    assert made > 300


STYLES = {
    "query": ["form", "deepObject", "spaceDelimited", "pipeDelimited"],
    "header": ["simple"],
    "cookie": ["form"],
}
OBJECTS: list[Any] = [
    {},
    {"type": "object"},
    {"properties": {"known": {}, "tenant": {}}, "additionalProperties": True},
    {"allOf": [{"properties": {"known": {}}}], "patternProperties": {".": {}}},
    {"enum": [{"known": 1}, {"known": "1,tenant=t2"}, "x&tenant=t2", ["a", "b"]]},
]


@pytest.mark.pure
@pytest.mark.slow
def test_whatever_is_written_a_request_has_the_names_of_its_document_C1() -> None:
    made = 0
    for _ in range(1000):
        parameters: list[dict[str, Any]] = []
        for place, styles in STYLES.items():
            name = "X-T" if place == "header" else "tenant"
            parameters.append(
                {"in": place, "name": name, "required": True, "schema": {"const": "t1"}}
            )
            more = {
                "allowReserved": CHANCE.random() < 0.5,
                "explode": CHANCE.random() < 0.7,
                "style": CHANCE.choice(styles),
                "schema": CHANCE.choice(OBJECTS),
            }
            parameters.append({"in": place, "name": "p", **more})
        for request in requests_of(operation({"parameters": parameters}, path="/x?stated=1"), 2):
            made += 1
            query = parse_qsl(urlsplit(request.url_at(SERVER)).query, keep_blank_values=True)
            names = {name for name, _ in query}
            assert names <= {"stated", "tenant", "p", "known"} | {
                name for name in names if name.startswith("p[") and name != "p[tenant"
            }
            assert [text for name, text in query if name == "tenant"] == ["t1"]
            assert [text for name, text in query if name == "stated"] == ["1"]
            cookies = dict(one.split("=", 1) for one in request.headers["Cookie"].split("; "))
            assert cookies.keys() <= {"tenant", "p", "known"}
            assert cookies["tenant"] == "t1"
            with_cookies: SimpleCookie = SimpleCookie()
            try:
                with_cookies.load(request.headers["Cookie"])
            except CookieError:
                raise AssertionError(request.headers) from None
            assert with_cookies.keys() <= {"tenant", "p", "known"}
            sent = httpx2.Request("GET", request.url_at(SERVER), headers=dict(request.headers))
            assert set(sent.headers) <= {"host", "cookie", "x-t", "p"}
            assert sent.headers["x-t"] == "t1"
            assert not any(set("\r\n\0") & set(text) for text in sent.headers.values())
    assert made > 300


@pytest.mark.pure
@pytest.mark.slow
def test_whatever_is_written_a_form_has_one_value_for_a_constant() -> None:
    made = 0
    for number in range(1000):
        properties: dict[str, Any] = {
            "tenant": {"const": "t1"},
            "p": CHANCE.choice(OBJECTS),
            'f"\r\nX: y': {"format": "binary"},
        }
        encoding = {
            "p": {
                "style": CHANCE.choice(STYLES["query"]),
                "explode": CHANCE.random() < 0.7,
                "allowReserved": CHANCE.random() < 0.5,
                "contentType": CHANCE.choice(["text/plain", "a/b\r\nX: y", 'a/b; c="', *PIECES]),
            }
        }
        media_type = "multipart/form-data" if number % 2 else FORM
        source = of_body(
            {"type": "object", "properties": properties}, media_type=media_type, encoding=encoding
        )
        body = {"tenant": "t1"}
        for key in ("p", CHANCE.choice(PIECES), "".join(CHANCE.choices(PIECES, k=3))):
            body[key] = CHANCE.choice(VALUES)
        sent = Sent()
        (tool,) = tools(source, call=sent)
        try:
            parse(tool, {"body": {**body, "tenant": "t1"}}).call_sync()
        except InvalidArgumentsError:
            continue
        made += 1
        (request,) = sent.requests
        if number % 2:
            head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
            whole: Message = BytesParser().parsebytes(head + (request.content or b""))
            parts: Any = whole.get_payload()
            assert isinstance(parts, list)
            read = [(one.get_param("name", header="content-disposition"), one) for one in parts]
            assert [one.get_payload() for name, one in read if name == "tenant"] == ["t1"]
            for _, one in read:
                assert {name.lower() for name in one} <= {
                    "content-disposition",
                    "content-type",
                }
                assert (one.get_filename() is None) or "f" in one.get_filename()
        else:
            content = (request.content or b"").decode("ascii")
            pairs = parse_qsl(content, keep_blank_values=True)
            assert [text for name, text in pairs if name == "tenant"] == ["t1"]
            assert not any(name.startswith("tenant[") for name, _ in pairs)
    assert made > 100
