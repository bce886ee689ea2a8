"""Manifests with `[http]`: a request to their server, with values in their places alone."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio
import pytest
from clad_toolkit import BACKENDS, Workshop, call, run, toml
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import DeclarationError, InvalidArgumentsError, ToolError
from lutumpy.execution import ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.toolclad import Evidence
from lutumpy.toolclad.command import Spelled
from lutumpy.toolclad.http_request import HttpRequest, HttpTemplate, compile_http
from lutumpy.toolclad.tables import HttpTable

TEXTS = {"q": {"type": "string"}, "count": {"type": "integer"}, "flag": {"type": "boolean"}}


def manifest(
    http: dict[str, Any],
    args: dict[str, Any] | None = None,
    *,
    name: str = "fetch",
    tool: dict[str, Any] | None = None,
    output: dict[str, Any] | None = None,
) -> str:
    """The text of a manifest with a request."""
    return toml(name, (), args, http=http, tool=tool, output=output)


@dataclass
class Answer:
    """What the server of a test answers."""

    status: int = 200
    body: bytes = b"hello"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    wait: float = 0.0


@dataclass
class Server:
    """A server on the loopback, and what came to it: method, address, headers and body."""

    url: str
    answer: Answer = field(default_factory=Answer)
    got: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): text for name, text in self.headers.items()}
            made.got.append((self.command, self.path, headers, body))
            answer = made.answer
            time.sleep(answer.wait)
            self.send_response(answer.status)
            for name, text in answer.headers.items():
                self.send_header(name, text)
            self.send_header("content-length", str(len(answer.body) + answer.cut))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(answer.body)
            self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        def log_message(self, *_: Any) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Server(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def problems(workshop: Workshop, text: str) -> str:
    workshop.write_text("a.clad.toml", text)
    with pytest.raises(DeclarationError) as refused:
        workshop.load()
    return str(refused.value)


def output_of(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.content)
    return found


# --- values stand in their places -----------------------------------------------------------------


def compiled(http: dict[str, Any], environment: dict[str, str] | None = None) -> HttpTemplate:
    template = compile_http(
        HttpTable.model_validate(http), [*TEXTS], ["count", "flag"], environment or {}
    )
    assert isinstance(template, HttpTemplate), template
    return template


def built(template: HttpTemplate, **values: str) -> HttpRequest:
    return template.build({name: Spelled(text, True) for name, text in values.items()})


ANY_TEXT = st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable())


@given(ANY_TEXT, ANY_TEXT)
def test_a_value_arrives_as_it_is_and_moves_nothing_else(one: str, other: str) -> None:
    json_body = '{"a": "<{q}>", "b": {count}, "c": ["{other}", {other}, {flag}]}'
    http = {"url": "https://h.example:8443/x{q}/y?k={q}&fix=1&{other}=2", "method": "POST"}
    arguments = ["q", "other", "count", "flag"]
    for headers, body in (
        ({}, json_body),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "a={q}&b=fix&{other}={count}"),
    ):
        table = HttpTable.model_validate({**http, "headers": headers, "body_template": body})
        template = compile_http(table, arguments, ["count", "flag"], {})
        assert isinstance(template, HttpTemplate)
        request = built(template, q=one, other=other, count="7")
        parts = urlsplit(request.url)
        assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "h.example:8443", "")
        assert [unquote(part) for part in parts.path.split("/")] == ["", f"x{one}", "y"]
        assert parse_qsl(parts.query, keep_blank_values=True) == [
            ("k", one),
            ("fix", "1"),
            (other, "2"),
        ]
        assert request.body is not None
        if body is json_body:
            sent = json.loads(request.body)
            assert sent == {"a": f"<{one}>", "b": 7, "c": [other, other, None]}
        else:
            assert parse_qsl(request.body.decode(), keep_blank_values=True) == [
                ("a", one),
                ("b", "fix"),
                (other, "7"),
            ]


def test_what_has_no_value_is_left_out_where_that_can_be() -> None:
    template = compiled(
        {
            "url": "https://h.example/all?q={q}&n={count}&fix",
            "method": "PUT",
            "headers": {"X-Query": "is {q}", "X-Fix": "1"},
            "body_template": '{"q": "{q}", "n": {count}}',
        }
    )
    request = built(template)
    assert request.url == "https://h.example/all?fix"
    assert dict(request.headers) == {"X-Fix": "1", "content-type": "application/json"}
    assert request.body == b'{"q": "", "n": null}'
    needs = compiled({"url": "https://h.example/{q}"})
    with pytest.raises(ValueError, match="q: it stands in the path of the address, so it is"):
        built(needs)
    assert built(compiled({"url": "https://h.example"})).url == "https://h.example"


@pytest.mark.parametrize(
    ("url", "value"),
    [("https://h.example/a/{q}/b", ".."), ("https://h.example/{q}", "."),
     ("https://h.example/%2e{q}/b", "."), ("https://h.example/{q}{q}", ".")],
)  # fmt: skip
def test_no_value_leads_out_of_a_path(url: str, value: str) -> None:
    with pytest.raises(ValueError, match="a segment of the address's path can't be"):
        built(compiled({"url": url}), q=value)


def test_a_header_takes_no_more_than_ascii() -> None:
    template = compiled({"url": "https://h.example/", "headers": {"X-Q": "a {q}"}})
    assert built(template, q="b c").headers == (("X-Q", "a b c"),)
    for value in ("é", "a\r\nX-Other: 1", "\x7f"):
        with pytest.raises(ValueError, match="q: it stands in a header, which takes ASCII alone"):
            built(template, q=value)
    for value in ("b ", " "):  # the client would refuse it, when nobody knows what was sent
        with pytest.raises(ValueError, match="q: a header can't begin or end with spaces"):
            built(template, q=value)


# --- what is wrong is said when it is loaded ------------------------------------------------------


@pytest.mark.parametrize(
    ("http", "expected"),
    [
        ({"url": "ftp://h.example/"}, "http.url: it is http:// or https:// with a host"),
        ({"url": "https:///x"}, "http.url: it is http:// or https:// with a host"),
        ({"url": "https://h.example/#top"}, "without a fragment"),
        ({"url": "https://{q}/"}, "http.url: the host is the manifest's alone"),
        ({"url": "https://h.example:{count}/"}, "http.url: the host is the manifest's alone"),
        ({"url": "https://me:word@h.example/"}, "is no host, or has a name and password"),
        ({"url": "https://h.example:port/"}, "http.url: 'h.example:port' is no host"),
        ({"url": "https://h.example/a b"}, "blanks, have to be percent-encoded"),
        ({"url": "https://h.example/é?{q}"}, "what isn't ASCII, and blanks"),
        ({"url": "https://h.example/{other}"}, "http: {other} is not an argument"),
        ({"url": "https://h.example/", "headers": {"Host": "x"}}, "'Host' can't be set"),
        ({"url": "https://h.example/", "headers": {"a b": "x"}}, "'a b' can't be set"),
        ({"url": "https://h.example/", "headers": {"A": "1", "a": "2"}}, "'a' is there twice"),
        ({"url": "https://h.example/", "headers": {"A": "ü"}}, "http.headers.A: a header takes"),
        ({"url": "https://h.example/", "headers": {"A": "1 "}}, "http.headers.A: a header can't"),
        ({"url": "https://h.example/", "body_template": "{}"}, "GET has no body"),
        (
            {"url": "https://h.example/", "method": "POST", "body_template": '{"a": {q}'},
            "http.body_template: it is not JSON",
        ),
        (
            {
                "url": "https://h.example/",
                "method": "POST",
                "body_template": "<a>{q}</a>",
                "headers": {"content-type": "application/xml"},
            },
            "a body is JSON or a form (application/x-www-form-urlencoded), not 'application/xml'",
        ),
        ({"url": "https://h.example/", "method": "TRACE"}, "http.method: Input should be 'GET'"),
        ({"url": "https://h.example/", "success_status": [20]}, "http.success_status.0: "),
        ({"url": "https://h.example/{_secret:key}"}, "'key' is not there; set TOOLCLAD_SECRET_KEY"),
        ({"url": "https://h.example/", "follow": True}, "http.follow: there is no such key"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(
    workshop: Workshop, http: dict[str, Any], expected: str
) -> None:
    assert expected in problems(workshop, manifest(http, TEXTS))


def test_a_manifest_has_a_program_or_a_request(workshop: Workshop) -> None:
    text = manifest({"url": "https://h.example/"})
    both = f'{text}\n[command]\nexec = ["true"]\n'
    assert "it has either [command], for a program, or [http]" in problems(workshop, both)
    neither = '[tool]\nname = "a"\n[output]\nformat = "text"\n'
    assert "it has either [command], for a program, or [http]" in problems(workshop, neither)


def test_a_secret_that_no_header_takes_is_refused(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_KEY", "a\nb")
    text = manifest({"url": "https://h.example/", "headers": {"X": "{_secret:key}"}})
    assert "the secret 'key' is not printable ASCII" in problems(workshop, text)


def test_the_manifest_of_the_packages_own_tests_is_a_tool(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `api-check` in the tests of toolclad 0.6.1: without a description, with a secret."""
    monkeypatch.setenv("TOOLCLAD_SECRET_TOKEN", "hush-hush")
    workshop.write_text(
        "api.clad.toml",
        """
[tool]
name = "health-check"
version = "1.0.0"
binary = ""
[http]
method = "GET"
url = "https://api.example.com/health"
success_status = [200, 204]
error_status = [500, 503]
[http.headers]
Authorization = "Bearer {_secret:token}"
[output]
format = "json"
""",
    )
    clad = workshop.load()
    (tool,) = clad.tools
    assert (tool.name, tool.definition.description) == ("health-check", "health-check")
    found = clad.manifests["health-check"]
    assert found.command({}) == ("GET", "https://api.example.com/health")
    request = found.build({})
    assert isinstance(request, HttpRequest)
    assert request.headers == (("Authorization", "Bearer hush-hush"),)
    assert isinstance(found.template, HttpTemplate)
    good = [status for status in (200, 201, 204, 302, 500) if found.template.is_success(status)]
    assert good == [200, 204]


# --- the request is sent --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_request_is_sent_and_its_answer_read(
    workshop: Workshop, server: Server, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_KEY", "hush-hush")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # of this process, and not named
    http = {
        "method": "POST",
        "url": f"{server.url}/rooms/{{q}}?n={{count}}&key={{_secret:key}}",
        "headers": {"Authorization": "Bearer {_secret:key}"},
        "body_template": '{"text": "{q}", "really": {flag}}',
    }
    workshop.write_text("a.clad.toml", manifest(http, TEXTS, output={"format": "json"}))
    kept: list[dict[str, Any]] = []
    with pytest.warns(UserWarning, match="http.url is not https"):
        clad = workshop.load(evidence=lambda name, envelope: kept.append(envelope))
    server.answer = Answer(201, b'{"you": "hush-hush", "id": 4}')
    result = run(clad, "fetch", {"q": "a/b ö", "count": 2, "flag": True}, backend=backend)
    ((method, address, headers, body),) = server.got
    assert (method, address) == ("POST", "/rooms/a%2Fb%20%C3%B6?n=2&key=hush-hush")
    assert headers["authorization"] == "Bearer hush-hush"
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == {"text": "a/b ö", "really": True}
    told = output_of(result)
    assert list(told) == ["status", "http_status", "results", "duration_ms", "output_hash"]
    assert (told["status"], told["http_status"]) == ("success", 201)
    assert told["results"] == {"you": "{_secret:key}", "id": 4}
    assert isinstance(result.output, Evidence)
    (envelope,) = kept
    assert envelope["command"] == (
        f"POST {server.url}/rooms/a%2Fb%20%C3%B6?n=2&key={{_secret:key}}"
    )
    assert "hush" not in json.dumps(envelope)
    assert "hush" not in json.dumps(result.dump())
    request = clad.manifests["fetch"].build({"q": "a", "count": 2, "flag": True})
    assert "hush" not in repr(request)
    assert "hush" not in repr(clad.manifests)


@pytest.mark.parametrize(
    "spelled",
    [
        'aB+/=="1', "aB%2B%2F%3D%3D%221", "aB%2b/%3d%3d%221", r'aB+/==\"1', r"aB+\/==\"1",
        r"aB\u002B/\u003d\u003D\u00221", r'aB+\\\/==\\\"1',
    ],
)  # fmt: skip
def test_a_secret_is_hidden_however_a_server_spells_it(
    workshop: Workshop, server: Server, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_A", "aB+/")  # the beginning of the other one
    monkeypatch.setenv("TOOLCLAD_SECRET_B", 'aB+/=="1')
    http = {"method": "GET", "url": f"{server.url}/?a={{_secret:a}}&b={{_secret:b}}"}
    workshop.write_text("a.clad.toml", manifest(http, TEXTS))
    with pytest.warns(UserWarning, match="http.url is not https"):
        clad = workshop.load()
    server.answer = Answer(200, f"<{spelled}> and <aB+/>".encode())
    told = output_of(run(clad, "fetch", {"q": "a"}))
    assert told["results"] == {"raw_output": "<{_secret:b}> and <{_secret:a}>"}


@pytest.mark.parametrize(
    ("answer", "more", "status", "error"),
    [
        (Answer(404, b"no"), {}, 404, "the server answered with the status 404"),
        (
            Answer(302, b"", {"location": "/elsewhere"}),
            {},
            302,
            "the server answered with the status 302; redirects are not followed",
        ),
        (Answer(200), {"success_status": [201]}, 200, "the server answered with the status 200"),
        (Answer(200), {"error_status": [200]}, 200, "the server answered with the status 200"),
        (
            Answer(200, b"hel", cut=True),
            {},
            200,
            "the connection broke (RemoteProtocolError); it may have taken effect",
        ),
        (Answer(200, b"[1,"), {}, 200, "the output is not JSON"),
    ],
)
def test_what_is_no_success_is_a_failed_result(
    workshop: Workshop,
    server: Server,
    answer: Answer,
    more: dict[str, Any],
    status: int,
    error: str,
) -> None:
    text = manifest({"url": server.url, **more}, output={"format": "json"})
    workshop.write_text("a.clad.toml", text)
    server.answer = answer
    result = run(workshop.load(), "fetch", {})
    told = output_of(result)
    assert (result.status, result.outcome) == ("error", "failed")
    assert (told["status"], told["http_status"]) == ("error", status)
    assert told["results"]["error"].startswith(error)
    assert len(server.got) == 1


def test_a_server_that_is_not_there_has_got_nothing(workshop: Workshop) -> None:
    with serving() as gone:
        url = gone.url
    workshop.write_text("a.clad.toml", manifest({"url": url}))
    told = output_of(run(workshop.load(), "fetch", {}))
    assert told["results"] == {
        "error": "the server could not be reached (ConnectError); nothing was sent"
    }
    assert told["http_status"] == 0


def test_a_server_that_takes_too_long_is_given_up(workshop: Workshop, server: Server) -> None:
    server.answer = Answer(wait=1.5)
    workshop.write_text("a.clad.toml", manifest({"url": server.url}))
    told = output_of(run(workshop.load(timeout=0.3), "fetch", {}))
    assert (told["status"], told["http_status"]) == ("timeout", 0)
    assert "no whole answer came in 0." in told["results"]["error"]
    assert "it may have taken effect" in told["results"]["error"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cancelled_caller_leaves_evidence(
    workshop: Workshop, server: Server, backend: str
) -> None:
    server.answer = Answer(wait=1.0)
    workshop.write_text("a.clad.toml", manifest({"url": server.url}))
    kept: list[dict[str, Any]] = []
    clad = workshop.load(evidence=lambda name, envelope: kept.append(envelope))

    async def give_up() -> None:
        with anyio.move_on_after(0.3):
            await ToolExecutor().run([call(clad, "fetch", {})], clad.dispatch)

    anyio.run(give_up, backend=backend)
    assert [envelope["status"] for envelope in kept] == ["interrupted"]
    assert kept[0]["results"]["error"] == "the caller gave up; it may have taken effect"


def test_an_answer_that_is_too_long_is_cut_or_a_failure(workshop: Workshop, server: Server) -> None:
    server.answer = Answer(body=b"[" + b"1," * 5000 + b"1]")
    workshop.write_text("a.clad.toml", manifest({"url": server.url}))
    workshop.write_text(
        "b.clad.toml", manifest({"url": server.url}, name="read", output={"format": "json"})
    )
    clad = workshop.load(max_output=100)
    text = output_of(run(clad, "fetch", {}))["results"]["raw_output"]
    assert text.startswith("[1,1,")
    assert "the output has 10003 bytes" in text
    assert "which can't be read alone" in output_of(run(clad, "read", {}))["results"]["error"]


def test_a_proxy_is_one_that_was_named(workshop: Workshop, server: Server) -> None:
    """The server of the test stands where the proxy is: it is sent the whole address."""
    workshop.write_text("a.clad.toml", manifest({"url": "http://h.example/x?q={q}"}, TEXTS))
    clad = workshop.load(environment={"HTTP_PROXY": server.url})
    assert output_of(run(clad, "fetch", {"q": "a"}))["status"] == "success"
    assert [address for _, address, _, _ in server.got] == ["http://h.example/x?q=a"]


# --- who may send it ------------------------------------------------------------------------------


def test_a_person_is_shown_the_request_without_its_secrets(
    workshop: Workshop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_KEY", "hush-hush")
    http = {"method": "DELETE", "url": f"{server.url}/{{q}}?key={{_secret:key}}"}
    workshop.write_text("a.clad.toml", manifest(http, TEXTS, tool={"human_approval": True}))
    with pytest.warns(UserWarning, match="everybody on its way can read the secrets"):
        clad = workshop.load()
    assert "runs only what a person has approved" in str(run(clad, "fetch", {"q": "a"}).content)
    assert server.got == []
    shown: list[tuple[str, ...]] = []

    def approve(asked: BaseToolCall) -> bool:
        found = clad.manifest_of(asked)
        assert found is not None
        shown.append(found.command(asked.arguments))
        return True

    asked = call(clad, "fetch", {"q": "a"})
    clad.policy(approve)(asked)
    assert shown == [("DELETE", f"{server.url}/a?key={{_secret:key}}")]
    (result,) = anyio.run(ToolExecutor().run, [asked], clad.dispatch)
    assert result.status == "ok"
    assert server.got[0][:2] == ("DELETE", "/a?key=hush-hush")


def test_no_value_names_a_secret(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_OTHER", "hush-hush")
    workshop.write_text("a.clad.toml", manifest({"url": "https://h.example/?q={q}"}, TEXTS))
    clad = workshop.load()
    for value in ("{_secret:other}", "{q}"):
        with pytest.raises(InvalidArgumentsError, match="braces are not allowed"):
            call(clad, "fetch", {"q": value})
    template = compiled({"url": "https://h.example/?q={q}"}, {"TOOLCLAD_SECRET_OTHER": "hush"})
    assert built(template, q="{_secret:other}").url == (
        "https://h.example/?q=%7B_secret%3Aother%7D"
    )


def test_a_value_that_cannot_stand_in_its_place_is_an_issue(workshop: Workshop) -> None:
    workshop.write_text("a.clad.toml", manifest({"url": "https://h.example/{q}"}, TEXTS))
    clad = workshop.load()
    with pytest.raises(InvalidArgumentsError, match="it stands in the path"):
        call(clad, "fetch", {})
    with pytest.raises(ToolError, match="a segment of the address's path"):
        clad.manifests["fetch"].command({"q": "."})
