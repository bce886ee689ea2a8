"""Values of parameters are spelled as OpenAPI's table of styles says."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_toolkit import of_body, of_parameter, only_tool, refusal, request_of

ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}
NAMED = {"properties": {"R": {}, "G": {}, "B": {}}}
"""Takes everything, and names the properties of `OBJECT`."""

# OpenAPI 3.1.1, 4.8.12.4 "Style Examples"; what needs it is percent-encoded.
PATHS = [
    ("matrix", False, "blue", ";color=blue"),
    ("matrix", False, ARRAY, ";color=blue,black,brown"),
    ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
    ("matrix", True, "blue", ";color=blue"),
    ("matrix", True, ARRAY, ";color=blue;color=black;color=brown"),
    ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
    ("label", False, "blue", ".blue"),
    ("label", False, ARRAY, ".blue,black,brown"),
    ("label", False, OBJECT, ".R,100,G,200,B,150"),
    ("label", True, "blue", ".blue"),
    ("label", True, ARRAY, ".blue.black.brown"),
    ("label", True, OBJECT, ".R=100.G=200.B=150"),
    ("simple", False, "blue", "blue"),
    ("simple", False, ARRAY, "blue,black,brown"),
    ("simple", False, OBJECT, "R,100,G,200,B,150"),
    ("simple", True, ARRAY, "blue,black,brown"),
    ("simple", True, OBJECT, "R=100,G=200,B=150"),
]
QUERIES = [
    ("form", False, "", "color="),
    ("form", False, "blue", "color=blue"),
    ("form", False, ARRAY, "color=blue,black,brown"),
    ("form", False, OBJECT, "color=R,100,G,200,B,150"),
    ("form", True, "", "color="),
    ("form", True, "blue", "color=blue"),
    ("form", True, ARRAY, "color=blue&color=black&color=brown"),
    ("form", True, OBJECT, "R=100&G=200&B=150"),
    ("spaceDelimited", False, ARRAY, "color=blue%20black%20brown"),
    ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
    ("pipeDelimited", False, ARRAY, "color=blue%7Cblack%7Cbrown"),
    ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
    ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
]


def color(place: str, **more: Any) -> dict[str, Any]:
    return {"name": "color", "in": place, "required": True, "schema": NAMED, **more}


@pytest.mark.parametrize(("style", "explode", "value", "spelled"), PATHS)
def test_path_parameters_are_spelled_by_the_table(
    style: str, explode: bool, value: Any, spelled: str
) -> None:
    source = of_parameter(color("path", style=style, explode=explode), path="/in/{color}/end")
    request = request_of(source, {"color": value})
    assert request.path == request.target == f"/in/{spelled}/end"
    assert request.path_values == {"color": value}


@pytest.mark.parametrize(("style", "explode", "value", "spelled"), QUERIES)
def test_query_parameters_are_spelled_by_the_table(
    style: str, explode: bool, value: Any, spelled: str
) -> None:
    request = request_of(
        of_parameter(color("query", style=style, explode=explode)), {"color": value}
    )
    assert request.query_string == spelled
    assert request.target == f"/it?{spelled}"
    assert list(request.query) == parse_qsl(spelled, keep_blank_values=True)


@pytest.mark.parametrize(
    ("explode", "value", "spelled"),
    [
        (False, "a b", "a b"),
        (False, ARRAY, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200,B,150"),
        (True, OBJECT, "R=100,G=200,B=150"),
    ],
)
def test_headers_are_spelled_by_the_table_and_never_percent_encoded(
    explode: bool, value: Any, spelled: str
) -> None:
    request = request_of(of_parameter(color("header", explode=explode)), {"color": value})
    assert request.headers == {"color": spelled}
    assert request.query_string == ""


def test_cookies_stand_in_one_header_percent_encoded() -> None:
    source = of_parameter(color("cookie", explode=False))
    request = request_of(source, {"color": "a; admin=1"})
    assert request.headers == {"Cookie": "color=a%3B%20admin%3D1"}
    assert request.cookies == {"color": "a%3B%20admin%3D1"}
    assert request.cookie_values == {"color": "a; admin=1"}


def test_form_is_exploded_where_nothing_is_said_and_others_are_not() -> None:
    assert request_of(of_parameter(color("query")), {"color": ["a", "b"]}).query_string == (
        "color=a&color=b"
    )
    source = of_parameter(color("query", style="pipeDelimited"))
    assert request_of(source, {"color": ["a", "b"]}).query_string == "color=a%7Cb"


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (True, "color=true"),
        (3, "color=3"),
        (3.0, "color=3"),
        (0.5, "color=0.5"),
        (1e30, "color=1e%2B30"),
        (None, ""),
        ([], ""),
        ({}, ""),
        (["a", None, "b"], "color=a&color=b"),
        ("a&b=c#d +é", "color=a%26b%3Dc%23d%20%2B%C3%A9"),
    ],
)
def test_a_value_of_a_query_is_a_text(value: Any, spelled: str) -> None:
    assert request_of(of_parameter(color("query")), {"color": value}).query_string == spelled


def test_a_comma_inside_of_a_value_is_told_from_one_between_values() -> None:
    source = of_parameter(color("query", explode=False))
    assert request_of(source, {"color": ["a,b", "c"]}).query_string == "color=a%2Cb,c"


def test_reserved_characters_stay_where_the_document_says_so_but_none_that_ends_a_value() -> None:
    source = of_parameter(color("query", allowReserved=True))
    spelled = request_of(source, {"color": "a/b?c=d&e#f+g"}).query_string
    assert spelled == "color=a/b?c%3Dd%26e%23f%2Bg"


def test_content_of_a_parameter_is_json_text() -> None:
    parameter = {"in": "query", "name": "filter", "content": {"application/json": {"schema": {}}}}
    request = request_of(of_parameter(parameter), {"filter": {"a": [1, None]}})
    assert request.query == (("filter", '{"a":[1,null]}'),)
    request = request_of(of_parameter({**parameter, "in": "header"}), {"filter": {"a": "é"}})
    assert request.headers == {"filter": '{"a": "\\u00e9"}'}


def test_deep_objects_are_spelled_as_servers_read_them() -> None:
    source = of_parameter(color("query", style="deepObject"))
    request = request_of(source, {"color": {"a": {"b": 1, "c": [2, 3]}, "d": None}})
    assert request.query == (
        ("color[a][b]", "1"),
        ("color[a][c][0]", "2"),
        ("color[a][c][1]", "3"),
    )


@pytest.mark.parametrize(
    ("style", "value", "why"),
    [
        ("form", [["a"]], "color: a list or an object can't stand inside of a list or an object"),
        ("form", {"R": {"b": 1}}, "color: a list or an object can't stand inside"),
        ("pipeDelimited", ["a|b", "c"], "color: a value can't hold '|' here"),
        ("spaceDelimited", ["a b"], "color: a value can't hold ' ' here"),
        ("deepObject", {"a": [[1]]}, "color: a list in this place can't hold lists"),
    ],
)
def test_what_a_style_has_no_spelling_for_is_an_issue(style: str, value: Any, why: str) -> None:
    tool = only_tool(of_parameter(color("query", style=style)))
    assert refusal(tool, {"color": value}).startswith(why)


# --- bodies ---------------------------------------------------------------------------------------

FORM = "application/x-www-form-urlencoded"


def test_a_json_body_is_the_value_itself() -> None:
    request = request_of(of_body({}), {"body": {"a": [1, None, "é"]}})
    assert request.content == '{"a":[1,null,"é"]}'.encode()
    assert request.media_type == "application/json"
    assert request.headers == {"Content-Type": "application/json"}
    assert request.body == {"a": [1, None, "é"]}


def test_a_body_of_null_is_a_body_and_a_missing_one_is_not() -> None:
    source = of_body({})
    assert request_of(source, {"body": None}).content == b"null"
    del source["paths"]["/it"]["post"]["requestBody"]["required"]
    request = request_of(source, {})
    assert (request.content, request.media_type, request.headers) == (None, None, {})


def test_a_form_repeats_lists_and_writes_what_is_nested_as_json() -> None:
    source = of_body({"type": "object"}, media_type=FORM)
    value = {"a": "x y&", "b": [1, 2], "c": {"d": [True]}, "e": None}
    request = request_of(source, {"body": value})
    assert request.content == b"a=x%20y%26&b=1&b=2&c=%7B%22d%22%3A%5Btrue%5D%7D"
    assert request.headers == {"Content-Type": FORM}


def test_a_form_is_spelled_in_the_styles_that_the_document_names() -> None:
    encoding = {"a": {"style": "deepObject"}, "b": {"style": "form", "explode": False}}
    source = of_body({"type": "object"}, media_type=FORM, encoding=encoding)
    request = request_of(source, {"body": {"a": {"b": 1}, "b": ["x", "y"]}})
    assert request.content == b"a%5Bb%5D=1&b=x,y"
    assert refusal(only_tool(source), {"body": {"b": [["x"]]}}).startswith("body: its field 'b': ")


@pytest.mark.parametrize(
    ("encoding", "value", "spelled"),
    [
        ({"explode": False}, ["x", "y"], b"a=x,y"),
        ({"explode": True}, ["x", "y"], b"a=x&a=y"),
        ({"allowReserved": True}, "x/y?", b"a=x/y?"),
        ({"explode": True}, {"b": 1}, b"b=1"),
        ({"explode": False}, {"b": 1}, b"a=b,1"),
        ({"contentType": "text/plain"}, ["x", "y"], b"a=x&a=y"),
    ],
)
def test_a_field_that_only_says_how_it_explodes_has_the_style_of_a_query(
    encoding: dict[str, Any], value: Any, spelled: bytes
) -> None:
    schema = {"type": "object", "properties": {"a": {"properties": {"b": {}}}}}
    source = of_body(schema, media_type=FORM, encoding={"a": encoding})
    assert request_of(source, {"body": {"a": value}}).content == spelled


def test_a_form_must_be_an_object() -> None:
    tool = only_tool(of_body({}, media_type=FORM))
    assert refusal(tool, {"body": [1]}) == "body: it is sent as a form and must be an object"


def test_a_multipart_form_has_a_part_for_each_value_and_files_have_names() -> None:
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "photo": {"type": "string", "contentMediaType": "image/svg+xml"},
            "notes": {"type": "array", "items": {"type": "string", "format": "binary"}},
        },
    }
    encoding = {"photo": {"contentType": "image/svg+xml"}}
    source = of_body(schema, media_type="multipart/form-data", encoding=encoding)
    value = {"title": "T", "photo": "<svg/>", "notes": ["1", "2"], "more": {"a": 1}}
    request = request_of(source, {"body": value})
    assert request.content is not None
    boundary = request.headers["Content-Type"].removeprefix("multipart/form-data; boundary=")
    *parts, end = request.content.decode().split(f"--{boundary}")
    assert end == "--\r\n"
    assert parts == [
        "",
        '\r\nContent-Disposition: form-data; name="title"\r\n\r\nT\r\n',
        '\r\nContent-Disposition: form-data; name="photo"; filename="photo"\r\n'
        "Content-Type: image/svg+xml\r\n\r\n<svg/>\r\n",
        *[
            '\r\nContent-Disposition: form-data; name="notes"; filename="notes"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n{text}\r\n"
            for text in "12"
        ],
        '\r\nContent-Disposition: form-data; name="more"\r\n'
        'Content-Type: application/json\r\n\r\n{"a":1}\r\n',
    ]
    assert request_of(source, {"body": value}).content == request.content


def test_a_field_name_of_the_models_own_adds_no_line_to_a_part() -> None:
    source = of_body({"type": "object"}, media_type="multipart/form-data")
    request = request_of(source, {"body": {'a"\r\nX: y': "1"}})
    assert request.content is not None
    assert b'name="a%22%0D%0AX: y"\r\n\r\n1' in request.content


# --- properties -----------------------------------------------------------------------------------

TEXTS = st.text(max_size=12)


@given(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=4))
def test_whatever_the_texts_a_server_reads_the_pairs_that_were_written(
    pairs: dict[str, str],
) -> None:
    schema = {"properties": {name: {} for name in pairs}}
    request = request_of(of_parameter(color("query", schema=schema)), {"color": pairs})
    read = parse_qsl(request.query_string, keep_blank_values=True, strict_parsing=True)
    assert read == list(request.query)
    assert read == list(pairs.items())


@given(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=4))
def test_whatever_the_texts_a_server_reads_the_form_that_was_written(
    fields: dict[str, str],
) -> None:
    source = of_body({"type": "object"}, media_type=FORM)
    content = request_of(source, {"body": fields}).content
    assert content is not None
    read = parse_qsl(content.decode("ascii"), keep_blank_values=True, strict_parsing=True)
    assert read == list(fields.items())
