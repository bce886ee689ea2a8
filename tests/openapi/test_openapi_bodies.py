"""Bodies that are texts, bytes or lists of files; lists in deep objects; real documents."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from openapi_toolkit import (
    FIXTURES,
    Sent,
    of_body,
    of_parameter,
    only_tool,
    operation,
    parse,
    refusal,
    request_of,
    why_skipped,
)

from lutumpy.openapi import OperationRequest, tools
from lutumpy.openapi.bodies import Body, spell_body
from lutumpy.openapi.styles import SpellingError

EXCERPTS: dict[str, Any] = json.loads((FIXTURES / "openapi_excerpts.json").read_text())
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
PNG_VALUE = {"base64": base64.b64encode(PNG).decode()}


def sent_for(name: str, original: str, arguments: Any) -> OperationRequest:
    """The request of a call of an operation of a real document."""
    sent = Sent()
    parse(tools(EXCERPTS[name], call=sent)[original], arguments).call_sync()
    (request,) = sent.requests
    return request


# --- texts and bytes ------------------------------------------------------------------------------


def test_a_text_is_sent_as_it_was_written() -> None:
    for media_type, header in (
        ("text/plain", "text/plain; charset=utf-8"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("text/*", "text/plain; charset=utf-8"),
        ("text/x-markdown", "text/x-markdown; charset=utf-8"),
        ("application/xml", "application/xml"),
        ("application/soap+xml", "application/soap+xml"),
        ("application/x-yaml", "application/x-yaml"),
        ("application/ndjson", "application/ndjson"),
        ("plain/text", "plain/text"),
    ):
        request = request_of(of_body({}, media_type=media_type), {"body": "a é\n<b/>"})
        assert request.content == "a é\n<b/>".encode(), media_type
        assert request.headers == {"Content-Type": header}
        assert request.media_type == header.partition(";")[0]
        assert request.body == "a é\n<b/>"


def test_a_text_keeps_its_schema_where_that_is_one_of_a_text() -> None:
    tool = only_tool(of_body({"type": "string", "enum": ["a"]}, media_type="text/plain"))
    assert refusal(tool, {"body": "b"}) != ""
    assert request_of(
        of_body({"type": "integer"}, media_type="text/plain"), {"body": 3}
    ).content == (b"3")
    # A tree of XML elements is a text here, whatever the schema says of the elements.
    for schema in ({"type": "object", "properties": {"a": {}}}, {"type": ["array", "null"]}, {}):
        tool = only_tool(of_body(schema, media_type="text/xml"))
        assert tool.schema["properties"]["body"] == {"type": "string"}
        assert refusal(tool, {"body": {"a": 1}}) != ""


def test_bytes_are_a_text_or_base64() -> None:
    for media_type, header in (
        ("image/png", "image/png"),
        ("application/octet-stream", "application/octet-stream"),
        ("application/pdf", "application/pdf"),
        ("image/*", "application/octet-stream"),
    ):
        source = of_body({"type": "string", "format": "binary"}, media_type=media_type)
        for value, content in (("é", "é".encode()), (PNG_VALUE, PNG)):
            request = request_of(source, {"body": value})
            assert (request.content, request.headers) == (content, {"Content-Type": header})
        tool = only_tool(source)
        assert refusal(tool, {"body": {"base64": "no base64!"}}) != ""
        assert refusal(tool, {"body": {"base64": "YQ==", "more": 1}}) != ""
        assert refusal(tool, {"body": 3}) != ""


def test_base64_that_only_looks_like_it_is_refused() -> None:
    body = Body("bytes", "a/b", {}, "", True, {}, frozenset(), frozenset(), {})
    for wrong in ("YQ=", "Y", "YQ==\u00e9"):
        with pytest.raises(SpellingError, match="its content is not base64"):
            spell_body(body, {"base64": wrong})


def test_anything_is_bytes_where_the_schema_says_so_and_json_else() -> None:
    source = of_body({"type": "string", "format": "binary"}, media_type="*/*")
    assert request_of(source, {"body": PNG_VALUE}).content == PNG
    assert request_of(of_body({}, media_type="*/*"), {"body": {"a": 1}}).content == b'{"a":1}'


def test_json_and_forms_come_before_texts_and_texts_before_bytes() -> None:
    content: dict[str, Any] = {name: {} for name in ("image/png", "text/csv", FORM, "a/b+json")}
    for media_type in ("a/b+json", FORM, "text/csv", "image/png"):
        source = operation({"requestBody": {"required": True, "content": dict(content)}})
        value: Any = {} if media_type in ("a/b+json", FORM) else "a"
        assert request_of(source, {"body": value}).media_type == media_type
        del content[media_type]


def test_what_is_no_media_type_is_skipped() -> None:
    for media_type in ("nothing", "a/b\r\nX: y", "multipart/mixed"):
        why = why_skipped(of_body({}, media_type=media_type))
        assert why.startswith("its request body is ")
        assert why.endswith(", which is no media type that is sent")


# --- lists of files -------------------------------------------------------------------------------


def test_a_multipart_body_that_is_no_object_is_a_list_of_files() -> None:
    files = [
        {"filename": 'a".txt', "content": "é"},
        {"filename": "b", "content": PNG_VALUE, "content_type": "image/png", "name": "x"},
    ]
    for schema in ({"type": "array", "items": {"type": "object"}}, {"type": "string"}):
        request = request_of(of_body(schema, media_type=MULTIPART), {"body": files})
        content = request.content or b""
        boundary = request.headers["Content-Type"].partition("boundary=")[2].encode()
        assert content.split(b"--" + boundary) == [
            b"",
            b'\r\nContent-Disposition: form-data; name="file"; filename="a%22.txt"\r\n'
            b"Content-Type: application/octet-stream\r\n\r\n\xc3\xa9\r\n",
            b'\r\nContent-Disposition: form-data; name="x"; filename="b"\r\n'
            b"Content-Type: image/png\r\n\r\n" + PNG + b"\r\n",
            b"--\r\n",
        ]
        tool = only_tool(of_body(schema, media_type=MULTIPART))
        for media_type in ("no type", "a/b;\r\nX: y", "a/b\nX"):
            file = {"filename": "a", "content": "a", "content_type": media_type}
            assert refusal(tool, {"body": [file]}).startswith("body: '"), media_type
        assert refusal(tool, {"body": [{"content": "a"}]}) == "body[0].filename: Field required"


# --- deep objects ---------------------------------------------------------------------------------


def test_lists_of_a_deep_object_are_numbered() -> None:
    source = of_parameter({"in": "query", "name": "a", "style": "deepObject", "schema": {}})
    value = [{"price": "p", "tags": ["x", None, "y"]}, {"price": "q"}]
    assert request_of(source, {"a": value}).query == (
        ("a[0][price]", "p"),
        ("a[0][tags][0]", "x"),
        ("a[0][tags][1]", "y"),
        ("a[1][price]", "q"),
    )
    assert request_of(source, {"a": []}).query == ()
    # No field of a form can write into such a list.
    encoding = {"a": {"style": "deepObject", "explode": True}}
    tool = only_tool(of_body({"properties": {"a": {}}}, media_type=FORM, encoding=encoding))
    assert "would be read as a part" in refusal(tool, {"body": {"a": ["x"], "a[1]": "y"}})


# --- what real documents ask for ------------------------------------------------------------------


def test_stripe_gets_its_lists_as_its_own_library_sends_them() -> None:
    body = {
        "customer": "cus_1",
        "items": [
            {"price": "price_1", "quantity": 2, "metadata": {"k": "v&w"}},
            {"price": "price_2", "tax_rates": ["txr_1", "txr_2"]},
        ],
        "expand": ["latest_invoice", "customer"],
        "cancel_at_period_end": True,
    }
    request = sent_for("stripe", "PostSubscriptions", {"body": body})
    # Lists numbered, percent-encoded throughout.
    assert (request.content or b"").decode().split("&") == [
        "customer=cus_1",
        "items%5B0%5D%5Bprice%5D=price_1",
        "items%5B0%5D%5Bquantity%5D=2",
        "items%5B0%5D%5Bmetadata%5D%5Bk%5D=v%26w",
        "items%5B1%5D%5Bprice%5D=price_2",
        "items%5B1%5D%5Btax_rates%5D%5B0%5D=txr_1",
        "items%5B1%5D%5Btax_rates%5D%5B1%5D=txr_2",
        "expand%5B0%5D=latest_invoice",
        "expand%5B1%5D=customer",
        "cancel_at_period_end=true",
    ]
    assert request.headers == {"Content-Type": FORM}
    listed = sent_for("stripe", "GetCharges", {"created": {"gte": 5}, "expand": ["data.customer"]})
    assert listed.target == "/v1/charges?created%5Bgte%5D=5&expand%5B0%5D=data.customer"


def test_box_gets_a_form_of_a_file_and_a_part_of_one() -> None:
    body = {"attributes": {"name": "a.txt", "parent": {"id": "0"}}, "file": "hello"}
    request = sent_for("box", "post_files_content", {"body": body, "fields": ["id", "name"]})
    boundary = request.headers["Content-Type"].partition("boundary=")[2]
    assert request.target == "/files/content?fields=id,name"
    assert (request.content or b"").decode().split(f"--{boundary}") == [
        "",
        '\r\nContent-Disposition: form-data; name="attributes"\r\n'
        "Content-Type: application/json\r\n\r\n"
        '{"name":"a.txt","parent":{"id":"0"}}\r\n',
        '\r\nContent-Disposition: form-data; name="file"; filename="file"\r\n'
        "Content-Type: application/octet-stream\r\n\r\nhello\r\n",
        "--\r\n",
    ]
    part = {
        "upload_session_id": "F971",
        "digest": "sha=fpRyg5eVQletdZqEKaFlqwBXJzM=",
        "content-range": "bytes 0-9/10",
        "body": PNG_VALUE,
    }
    request = sent_for("box", "put_files_upload_sessions_id", part)
    assert (request.method, request.target) == ("PUT", "/files/upload_sessions/F971")
    assert (request.content, dict(request.headers)) == (
        PNG,
        {
            "digest": "sha=fpRyg5eVQletdZqEKaFlqwBXJzM=",
            "content-range": "bytes 0-9/10",
            "Content-Type": "application/octet-stream",
        },
    )


def test_jira_gets_attachments_and_any_json() -> None:
    files = [{"filename": "log.txt", "content": "line", "content_type": "text/plain"}]
    request = sent_for("jira", "addAttachment", {"issueIdOrKey": "TEST-1", "body": files})
    boundary = request.headers["Content-Type"].partition("boundary=")[2]
    assert request.target == "/rest/api/3/issue/TEST-1/attachments"
    assert (request.content or b"").decode() == (
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="file"; filename="log.txt"\r\n'
        f"Content-Type: text/plain\r\n\r\nline\r\n--{boundary}--\r\n"
    )
    values = {"issueIdOrKey": "T-1", "propertyKey": "a b", "body": [1, {"a": None}]}
    request = sent_for("jira", "setIssueProperty", values)
    assert request.target == "/rest/api/3/issue/T-1/properties/a%20b"
    assert request.content == b'[1,{"a":null}]'
    paragraph = {"type": "paragraph", "content": [{"type": "text", "text": "Hi"}]}
    comment = {"body": {"type": "doc", "version": 1, "content": [paragraph]}}
    request = sent_for("jira", "addComment", {"issueIdOrKey": "T-1", "body": comment})
    assert json.loads(request.content or b"") == comment


def test_docusign_gets_a_document_and_a_lock() -> None:
    place = {"accountId": "a", "envelopeId": "e"}
    values = {**place, "documentId": "1", "body": PNG_VALUE}
    request = sent_for("docusign", "Documents_PutDocument", values)
    assert request.target == "/v2.1/accounts/a/envelopes/e/documents/1"
    assert (request.content, request.headers) == (PNG, {"Content-Type": "application/pdf"})
    lock = {"lockType": "edit", "lockDurationInSeconds": "300"}
    request = sent_for("docusign", "Lock_PostEnvelopeLock", {**place, "body": lock})
    assert json.loads(request.content or b"") == lock


def test_no_operation_of_these_documents_is_skipped() -> None:
    for name, source in EXCERPTS.items():
        found = tools(source, call=Sent())
        assert (dict(found.skipped), dict(found.notes)) == ({}, {}), name


# --- what can never be called -------------------------------------------------------------------


def test_a_body_that_requires_what_it_forbids_is_no_tool() -> None:
    closed = {"type": "object", "additionalProperties": False, "required": ["a"]}
    assert why_skipped(of_body(closed)) == (
        "its required body takes no value: it requires 'a', and forbids it"
    )
    ref = {"$ref": "#/components/schemas/Closed"}
    around = {"type": "object", "properties": {"in": {"allOf": [ref]}}, "required": ["in"]}
    assert why_skipped(of_body(around, schemas={"Closed": closed})) == (
        "its required body takes no value: it requires 'in.a', and forbids it"
    )
    never = {"type": "object", "properties": {"in": {"enum": []}}, "required": ["in"]}
    assert why_skipped(of_body(never)) == (
        "its required body takes no value: nothing fits 'in', which it requires"
    )


def test_a_body_that_something_may_fit_is_a_tool() -> None:
    closed = {"type": "object", "additionalProperties": False, "required": ["a"]}
    inner = {"properties": {"in": closed}, "required": ["in"], "type": "object"}
    itself = {"$ref": "#/components/schemas/Itself"}
    for schema in (
        {**closed, "type": ["object", "null"]},
        {**closed, "patternProperties": {"^a": {}}},
        {**closed, "properties": {"a": {"readOnly": True, "enum": []}}},
        {**inner, "required": []},
        {**inner, "properties": {"in": {"anyOf": [closed, {}]}}},
        {"type": "object", "properties": {"in": itself}, "required": ["in"]},
    ):
        assert only_tool(
            of_body(schema, schemas={"Itself": {**inner, "properties": {"in": itself}}})
        )
    assert only_tool(of_body({**closed, "nullable": True}, version="3.0.0"))


def test_whatever_a_body_requires_in_whatever_depth_the_document_is_read() -> None:
    deep: dict[str, object] = {"type": "string"}
    for _ in range(600):
        deep = {"type": "object", "properties": {"in": deep}, "required": ["in"]}
    odd = {"type": "object", "properties": {"in": {}}, "required": [["in"], {}, 5, None]}
    for body in (deep, odd):
        found = tools(of_body(body), call=Sent())
        assert len(found) + len(found.skipped) == 1
