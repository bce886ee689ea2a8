"""No key is ever in a cassette, wherever a program, a tool or a model put it (rule V3)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx2
import pytest
from cassette_toolkit import SCRIPT, Atlas, model_of, no_network, talk_sync
from each_case import each
from every_api import APIS
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AdapterError, NeedsTools, Session
from lutumpy.errors import CassetteError
from lutumpy.testing import Call, Cassette, Failure, Reply, serve
from lutumpy.testing.cassettes.answers import cut, keep_answer, written_answer
from lutumpy.testing.cassettes.differences import first_difference
from lutumpy.testing.cassettes.secrets import MASK, Secrets

CANARY = 'canary/1"2\\3+é-0123456789'  # of the kind that JSON and addresses spell otherwise
HEADER_CANARY = "sk-canary-0123456789abcdef"


def is_free(text: str, key: str) -> bool:
    spellings = {key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1]}
    return not any(spelling in text for spelling in spellings)


@each("api", APIS)
def test_a_key_in_headers_bodies_and_answers_is_in_no_file(api: str, tmp_path: Path) -> None:
    key = HEADER_CANARY
    for streamed in (False, True):
        # In a stream it would come in pieces: see below.
        said = "no key" if streamed else key
        script = [Reply(text=f"It is {said}.", calls=[Call("population", {"city": said})])]
        path = tmp_path / f"{api}_{streamed}.jsonl"
        with serve(script) as server, Cassette(path, "record") as cassette:
            llm = model_of(cassette, api, server.url, key=key)
            session = Session()
            session.push_user(f"Is {key} my key?")
            turn: Any = session.text_turn(llm)
            if streamed:
                with turn.stream_sync() as stream:
                    list(stream)
            else:
                turn.collect_sync()
            assert key in str([*session.transcript])  # the program has what it asked for
        text = path.read_text(encoding="utf-8")
        assert is_free(text, key), text
        assert text.count(MASK) >= (1 if streamed else 2)
        assert is_free(text, "AKIDCANARY0123456789")
        # Where the request had it, it is compared as the mask that was written.
        with no_network(), Cassette(path) as cassette:
            llm = model_of(cassette, api)
            session = Session()
            session.push_user(f"Is {key} my key?")
            turn = session.text_turn(llm)
            if streamed:
                with turn.stream_sync() as stream:
                    list(stream)
            else:
                turn.collect_sync()


def test_a_key_in_pieces_over_the_deltas_of_a_stream_is_not_written(tmp_path: Path) -> None:
    """No text of the file holds it then, but the file does."""
    path = tmp_path / "a.jsonl"
    key = "a-key-without-a-known-look-4711"
    with serve([Reply(text=f"Your key is {key}.")]) as server:
        cassette = Cassette(path, "record")
        session = Session()
        session.push_user("What is my key?")
        llm = model_of(cassette, "openai_chat", server.url, key=key)
        with session.text_turn(llm).stream_sync() as stream:
            list(stream)
        with pytest.raises(CassetteError, match="exchange 1 still holds a key"):
            cassette.close()
    assert not path.exists()


def test_the_key_of_a_server_that_the_provider_calls_is_in_no_file(tmp_path: Path) -> None:
    def connector(api: str, key: str) -> dict[str, Any]:
        about = {"type": "mcp", "server_label": "s", "server_url": "https://mcp.example.com"}
        if api == "openai_responses":
            headers = {"X-Api-Key": key, "X-Kind": "plain"}
            return {"tools": [{**about, "authorization": f"Bearer {key}", "headers": headers}]}
        server = {"type": "url", "name": "s", "url": "https://mcp.example.com"}
        return {"mcp_servers": [{**server, "authorization_token": key}]}

    key = "oauth9f8e7d6c5b4a"  # of no maker that is known
    for api in ("openai_responses", "anthropic_messages"):
        path = tmp_path / f"{api}.jsonl"
        with serve([Reply(text=f"It is {key}.")]) as server, Cassette(path, "record") as cassette:
            session = Session()
            session.push_user("authorization?")
            llm = model_of(cassette, api, server.url)  # type: ignore[arg-type]
            session.text_turn(llm, extra=connector(api, key)).collect_sync()
        text = path.read_text()
        assert is_free(text, key), text
        assert "mcp.example.com" in text
        for other in (key, "another-key", ""):
            with no_network(), Cassette(path) as cassette:
                session = Session()
                session.push_user("authorization?")
                llm = model_of(cassette, api)  # type: ignore[arg-type]
                session.text_turn(llm, extra=connector(api, other)).collect_sync()


def test_a_key_in_an_error_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    failure = Failure(401, f"Incorrect API key provided: {HEADER_CANARY}")
    with serve([failure]) as server, Cassette(path, "record") as cassette:
        llm = model_of(cassette, "openai_chat", server.url, key=HEADER_CANARY)
        with pytest.raises(AdapterError, match="canary"):
            talk_sync(llm)
    with pytest.raises(AdapterError, match=r"provided: \[redacted\]"), Cassette(path) as cassette:
        talk_sync(model_of(cassette, "openai_chat"))


def test_keys_in_the_query_and_in_the_environment_and_what_a_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    monkeypatch.setenv("SHOP_API_KEY", "the-shops-own-key")
    url_key = "k/e+y 0123456789"
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": f"{url_key}; the-shops-own-key; Mrs. Miller"}]}
        ]
    }
    address = "/v1beta/models/gemini-3-flash-preview:generateContent"

    def redact(text: str) -> str:
        return text.replace("Miller", "M.")

    cassette = Cassette(path, "record", redact=redact)
    with serve([Reply(text="Hello Mrs. Miller.")]) as server, cassette:
        client = cassette.client(httpx2.Client, base_url=server.url)
        answer = client.post(address, params={"key": url_key, "alt": "json"}, json=body)
        assert answer.status_code == 200, answer.text
    text = path.read_text(encoding="utf-8")
    assert "Miller" not in text
    assert "the-shops" not in text
    assert is_free(text, url_key)
    (entry,) = map(json.loads, text.splitlines())
    assert entry["url"] == f"{address}?key={MASK}&alt=json"
    assert entry["request"]["contents"][0]["parts"][0]["text"] == f"{MASK}; {MASK}; Mrs. M."
    assert set(entry["headers"]) <= {"content-type", "x-request-id"}
    with no_network(), Cassette(path, redact=redact) as cassette:
        client = cassette.client(httpx2.Client, base_url="https://example.com")
        params = {"key": url_key, "alt": "json"}
        assert client.post(address, params=params, json=body).json() == entry["response"]


def test_a_key_is_masked_however_a_tool_or_an_address_spells_it_V3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'wJalr/K7MDENG+bPxRfi CY"EX\\é='
    monkeypatch.setenv("SHOP_SECRET", key)
    in_json = json.dumps({"key": key})
    escaped = [letter if letter.isalnum() else f"\\u{ord(letter):04X}" for letter in key]
    spellings = [
        in_json,
        json.dumps({"body": in_json}),  # a tool's JSON in another one's
        in_json.replace("/", "\\/"),  # PHP
        '{"key": "' + "".join(escaped) + '"}',  # .NET
        f"https://shop.example/?at={quote(key)}",
        f"https://shop.example/?at={quote_plus(key).replace('%2B', '%2b')}",
    ]
    path = tmp_path / "a.jsonl"
    script = [Reply(calls=[Call("population", {"city": "Oslo"})] * len(spellings)), Reply(text="-")]

    def ask(llm: Any) -> None:
        session = Session()
        session.push_user("Which keys are there?")
        outcome = session.text_turn(llm, tools=Atlas).collect_sync()
        assert isinstance(outcome, NeedsTools)
        calls = outcome.round.calls
        failed = [call.fail(text) for call, text in zip(calls, spellings, strict=True)]
        outcome.round.commit(session, failed)
        session.text_turn(llm, tools=Atlas).collect_sync()

    with serve(script) as server, Cassette(path, "record") as cassette:
        ask(model_of(cassette, "openai_chat", server.url))
    text = path.read_text(encoding="utf-8")
    assert text.count(MASK) == len(spellings)
    assert "MDENG" not in text
    with Cassette(path) as cassette:
        ask(model_of(cassette, "openai_chat"))


def test_what_was_masked_is_not_compared_since_another_machine_has_other_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"

    def ask(cassette: Cassette, key: str, url: str | None = None) -> str:
        session = Session()
        session.push_user(f"My key is {key}, isn't it?")
        llm = model_of(cassette, "ollama_chat", url)
        return str(session.text_turn(llm).collect_sync().text)

    monkeypatch.setenv("SHOP_TOKEN", "a-key-of-the-first-machine")
    with serve([Reply(text="It is.")]) as server, Cassette(path, "record") as cassette:
        ask(cassette, "a-key-of-the-first-machine", server.url)
    monkeypatch.setenv("SHOP_TOKEN", "a-key-of-another-machine")
    with Cassette(path) as cassette:
        assert ask(cassette, "a-key-of-another-machine") == "It is."
    monkeypatch.delenv("SHOP_TOKEN")
    with Cassette(path) as cassette:
        assert ask(cassette, "whatever") == "It is."
    assert first_difference(f"a {MASK} b", "a key c") is not None
    assert first_difference(f"{MASK}{MASK}", "a\nb") is None


@each("api", APIS)
def test_what_was_a_word_on_one_machine_may_be_a_key_on_another(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{api}.jsonl"
    monkeypatch.delenv("POSTGRES_PASSWORD", raising=False)

    def ask(llm: Any, question: str) -> str:
        session = Session()
        session.push_user(question)
        return str(session.text_turn(llm).collect_sync().text)

    def redact(text: str) -> str:  # not to be done twice
        return text.replace("Oslo", "Oslo-Oslo")

    asked, more = "Is the postgres in Oslo?", "Which postgres?"
    with serve([Reply(text="Yes, that postgres.")]) as server:
        with Cassette(path, "record", redact=redact) as cassette:
            ask(model_of(cassette, api, server.url), asked)
        monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")
        with Cassette(path, redact=redact) as cassette:
            assert ask(model_of(cassette, api), asked) == "Yes, that postgres."
        server.play(Reply(text="The last one."))
        with Cassette(path, "record-new", redact=redact) as cassette:
            ask(model_of(cassette, api, server.url), asked)
            ask(model_of(cassette, api, server.url), more)
    assert "postgres" not in path.read_text()
    monkeypatch.delenv("POSTGRES_PASSWORD")
    with Cassette(path, redact=redact) as cassette:
        assert ask(model_of(cassette, api), asked) == f"Yes, that {MASK}."
        assert ask(model_of(cassette, api), more) == "The last one."


LOOKS = [
    "sk-proj-abcdefgh",
    "sk-ant-api03-abc_def-ghi",
    "AIza" + "x" * 35,
    "AKIAIOSFODNN7EXAMPLE",
    "ABSK" + "Q" * 40,
    "ghp_" + "a" * 36,
    "hf_" + "a" * 30,
    "gsk_" + "a" * 52,
    "xai-" + "a" * 80,
    "ya29." + "a" * 60,
    "xoxb-1234567890-abc",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]
HARMLESS = [
    "risk-averse-people",
    "task-0123456789",
    "Bearer authentication",
    "the bearer of bad news",
    "AKIA",
    "skeleton",
    MASK,
]


@given(st.lists(st.text("ab", max_size=3), min_size=2, max_size=6), st.text("ab", max_size=12))
@settings(max_examples=examples(300))
def test_a_masked_text_fits_what_has_its_pieces_in_order(pieces: list[str], text: str) -> None:
    pattern = re.compile(".*".join(pieces))
    differs = first_difference(MASK.join(pieces), text) is not None
    assert differs == (pattern.fullmatch(text) is None)


def test_many_masks_in_a_long_text_are_compared_in_no_time() -> None:
    text = ("a" * 50 + MASK) * 200
    assert first_difference(text + "b", "a" * 20_000 + "c") is not None


def test_what_looks_like_a_key_is_cut_and_what_doesnt_stays() -> None:
    secrets = Secrets()
    for text in LOOKS:
        assert secrets.mask_text(f"It is {text}, he said.") == f"It is {MASK}, he said."
    assert secrets.mask_text("Authorization: Bearer abc123xyz") == f"Authorization: Bearer {MASK}"
    for text in HARMLESS:
        assert secrets.mask_text(f"It is {text}.") == f"It is {text}."


def test_which_headers_hold_keys() -> None:
    secrets = Secrets()
    headers = {
        "Authorization": "Bearer first-key-1",
        "x-api-key": "second-key",
        "cookie": "third=cookie",
        "x-stainless-arch": "x64-and-more",
        "x-short-key": "any",
        "X-My-Auth": "AWS4-HMAC-SHA256 Credential=FOURTHKEY/2026/us, Signature=fifthkey0",
    }
    secrets.add_of_request("http://user:sixth-key@host/?token=seventhkey&a=long-enough", headers)
    for (
        key
    ) in "first-key-1 second-key third=cookie FOURTHKEY fifthkey0 sixth-key seventhkey".split():
        assert secrets.mask_text(f"<{key}>") == f"<{MASK}>", key
    assert secrets.mask_text("x64-and-more any long-enough") == "x64-and-more any long-enough"
    assert secrets.mask_url("http://user:sixth-key@host/?token=seventhkey") == f"/?token={MASK}"
    assert secrets.mask_url("http://host") == "/"


KEYS = st.text(min_size=8, max_size=30).filter(lambda text: len(set(text) - set(MASK)) > 3)


@given(KEYS, st.text(max_size=20), st.integers(0, 5))
@settings(max_examples=examples(60))
def test_whatever_the_key_it_is_in_nothing_that_is_written(key: str, other: str, at: int) -> None:
    secrets = Secrets()
    secrets.add(key)
    text = f"{other}{key}{other}"
    value = {"a": [text, {text: 1}], "b": text}
    masked = secrets.mask_value(value)
    assert secrets.mask_value(masked) == masked
    assert is_free(json.dumps(masked, ensure_ascii=False), key) or key in other + MASK + other
    stream = "".join([f"data: {json.dumps(value, ensure_ascii=bool(at % 2))}\n\n"] * 2)
    data = stream.encode("utf-8", "surrogatepass")
    sizes = [at, 7, len(data) - at - 7]
    kept, chunks = keep_answer(data, "text/event-stream", sizes, secrets)
    for line in kept.split("\n"):
        if line:
            assert json.loads(line.removeprefix("data: ")) == masked
    whole = written_answer(kept, "text/event-stream")
    assert chunks is not None
    assert sum(chunks) == len(whole)
    assert b"".join(cut(whole, chunks)) == whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON, JSON)
def test_two_values_differ_where_it_is_said_V1(one: Any, other: Any) -> None:
    from lutumpy.plain import json_values
    from lutumpy.plain.pointer import tokens

    found = first_difference(one, other)
    assert (found is None) == json_values.equal(one, other)
    if found is None:
        return
    for value, there in ((one, found.recorded), (other, found.sent)):
        for step in tokens(found.pointer):
            if isinstance(value, dict):
                value = value.get(step, found)
            elif isinstance(value, list):
                value = value[int(step)] if int(step) < len(value) else found
            if value is found:
                break
        assert value is found or value == there
    assert first_difference(one, other, [found.pointer]) != found
    assert str(found)


@given(st.binary(max_size=60), st.lists(st.integers(0, 20), max_size=6))
def test_a_stream_without_secrets_is_kept_byte_for_byte_V5(data: bytes, sizes: list[int]) -> None:
    pieces = [piece for piece in cut(data, sizes) if piece]
    kept, chunks = keep_answer(data, "text/event-stream", [len(p) for p in pieces], Secrets())
    again = json.loads(json.dumps(kept))
    whole = written_answer(again, "text/event-stream")
    assert whole == data
    assert [*cut(whole, chunks)] == pieces


@given(JSON)
def test_an_answer_in_JSON_is_the_same_value_again(value: Any) -> None:
    data = json.dumps(value).encode()
    kept, _ = keep_answer(data, "application/json", [len(data)], Secrets())
    again = written_answer(json.loads(json.dumps(kept)), "application/json")
    assert json.loads(again) == value


def test_an_answer_that_is_a_text_in_JSON_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "the-shops-own-key")
    data = b'"the-shops-own-key is wrong"'
    kept, _ = keep_answer(data, "application/json", [len(data)], Secrets())
    assert kept == f'"{MASK} is wrong"'


def test_the_talk_of_the_other_tests_holds_no_key(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with serve(SCRIPT) as server, Cassette(path, "record") as cassette:
        talk_sync(
            model_of(cassette, "anthropic_messages", server.url, key=CANARY.replace("é", "e"))
        )
    assert "canary" not in path.read_text()
