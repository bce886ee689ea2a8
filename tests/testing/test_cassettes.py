"""Cassettes: real traffic of every API, recorded at the test server and replayed without it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cassette_toolkit import QUESTION, SCRIPT, Atlas, model_of, no_network, talk, talk_sync
from each_case import each
from every_api import APIS

from lutumpy import AdapterError, Session, Toolset, tool, tool_fn
from lutumpy.errors import CassetteError, CassetteMismatch
from lutumpy.testing import Cassette, Failure, Reply, serve


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def recorded(
    path: Path, api: str, script: Sequence[Any] = SCRIPT, *, streamed: bool = False, **options: Any
) -> tuple[Session, list[str]]:
    """A conversation with the test server, which is in the file afterwards."""
    with serve(script) as server, Cassette(path, "record") as cassette:
        return talk_sync(model_of(cassette, api, server.url, **options), streamed=streamed)


@pytest.mark.slow
@each("api", APIS)
def test_a_conversation_is_replayed_without_a_network_whole_and_streamed_V5(
    api: str, tmp_path: Path
) -> None:
    for streamed in (False, True):
        path = tmp_path / f"{api}_{streamed}.jsonl"
        session, deltas = recorded(path, api, streamed=streamed)
        with no_network(), Cassette(path) as cassette:
            again, same = talk_sync(model_of(cassette, api), streamed=streamed)
        assert [*again.transcript] == [*session.transcript]
        assert same == deltas
        entries = lines(path)
        assert [entry["api"] for entry in entries] == [api, api]
        assert [entry["stream"] for entry in entries] == [streamed, streamed]
        assert all(len(entry["chunks"]) > 1 for entry in entries if streamed)


@pytest.mark.parametrize("api", APIS)
async def test_the_same_with_an_event_loop(api: str, tmp_path: Path) -> None:
    for streamed in (False, True):
        path = tmp_path / f"{api}_{streamed}.jsonl"
        async with serve(SCRIPT) as server, Cassette(path, "record") as cassette:
            llm = model_of(cassette, api, server.url, is_async=True)
            session, deltas = await talk(llm, streamed=streamed)
        with no_network():
            async with Cassette(path) as cassette:
                llm = model_of(cassette, api, is_async=True)
                again, same = await talk(llm, streamed=streamed)
        assert [*again.transcript] == [*session.transcript]
        assert same == deltas


def _collect(turn: Any, streamed: bool) -> None:
    if streamed:
        with turn.stream_sync() as stream:
            list(stream)
    else:
        turn.collect_sync()


@tool_fn(name="population")
def population_described(city: str) -> int:
    """How many people live in a town."""
    return 0


class OtherAtlas(Toolset):
    population = tool(population_described)


@each("api", APIS)
def test_a_changed_description_of_a_tool_is_named_with_its_pointer_V1_V2(
    api: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{api}.jsonl"
    recorded(path, api)
    for streamed in (False, True):
        session = Session()
        session.push_user(QUESTION)
        # With the retries that each SDK has when nobody says otherwise.
        turn = session.text_turn(model_of(Cassette(path), api, retries=2), tools=OtherAtlas)
        with no_network(), pytest.raises(CassetteMismatch) as caught:
            _collect(turn, streamed)
        if streamed and api not in ("bedrock_converse", "gemini_generate_content"):
            assert caught.value.pointer in ("/stream", "/stream_options/include_usage")
        elif streamed:
            assert caught.value.pointer is None  # the path differs
            assert "was recorded" in str(caught.value)
        else:
            assert caught.value.pointer is not None
            assert caught.value.pointer.endswith("/description")
            assert caught.value.recorded == "How many people live in a city."
            assert caught.value.sent == "How many people live in a town."
            assert 'in a city." was recorded, "' in str(caught.value)
        assert caught.value.request == 1
        assert caught.value.path == str(path)


@each("api", APIS)
def test_errors_are_recorded_and_the_retries_of_an_sdk_replayed_V6(
    api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)  # it reads no header
    path = tmp_path / f"{api}.jsonl"
    script = [Failure(429, "slow down", headers={"retry-after-ms": "1"}), *SCRIPT]
    if api == "gemini_generate_content":
        script = script[1:]  # its SDK doesn't retry by itself
    session, _ = recorded(path, api, script, retries=2)
    with no_network(), Cassette(path) as cassette:
        again, _ = talk_sync(model_of(cassette, api, retries=2))
    assert [*again.transcript] == [*session.transcript]
    assert [entry["status"] for entry in lines(path)][-2:] == [200, 200]
    assert len(lines(path)) == len(script)

    with pytest.raises(AdapterError):
        recorded(path, api, [Failure(400, "no such thing", headers={"request-id": "req_7"})])
    assert [entry["status"] for entry in lines(path)] == [400]
    with no_network(), Cassette(path) as cassette, pytest.raises(AdapterError) as caught:
        talk_sync(model_of(cassette, api, retries=2))
    assert caught.value.status == 400
    assert "no such thing" in str(caught.value)


@each("api", APIS)
def test_an_error_that_an_sdk_did_not_read_is_that_error_without_retries_V6(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)  # it reads no header
    path = tmp_path / f"{api}.jsonl"
    script = [Failure(503, "overloaded", headers={"retry-after-ms": "1"}), Reply(text="ok")]
    with (
        serve(script) as server,
        Cassette(path, "record") as cassette,
        suppress(AdapterError),  # the SDK of Gemini doesn't retry by itself
    ):
        talk_sync(model_of(cassette, api, server.url, retries=2), streamed=True)
    with pytest.raises(AdapterError) as caught, Cassette(path) as cassette:
        talk_sync(model_of(cassette, api, retries=0), streamed=True)
    assert caught.value.status == 503


def test_a_mismatch_that_nobody_heard_of_is_raised_at_the_end_V2(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    recorded(path, "openai_chat")
    cassette = Cassette(path)
    session = Session()
    session.push_user("Something else.")
    turn = session.text_turn(model_of(cassette, "openai_chat"), tools=Atlas)
    with pytest.raises(CassetteMismatch) as caught:
        turn.collect_sync()
    assert not isinstance(caught.value, Exception)
    with pytest.raises(CassetteMismatch, match="/messages/0/content"), cassette:
        pass


def test_what_is_left_over_is_an_error_at_the_end_V7(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    recorded(path, "openai_chat")
    with pytest.raises(CassetteError, match=r"2 of 2 recordings of .* were left over: 1, 2"):
        Cassette(path).close()
    with pytest.raises(KeyError), Cassette(path):  # it says more than what is left over
        raise KeyError
    with Cassette(path) as cassette:
        assert cassette.unused == (1, 2)
        talk_sync(model_of(cassette, "openai_chat"))
        assert cassette.unused == ()
        with pytest.raises(CassetteMismatch, match=r"request 3 of .*: only 2 were recorded"):
            talk_sync(model_of(cassette, "openai_chat"))
        with pytest.raises(CassetteMismatch):
            cassette.close()
        cassette._tape._mismatch = None


def test_record_new_asks_for_what_is_behind_the_first_difference_V8(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with serve(SCRIPT) as server, Cassette(path, "record-new") as cassette:  # there is no file yet
        talk_sync(model_of(cassette, "openai_chat", server.url))
    before = lines(path)
    with serve([Reply(text="Many.")]) as server, Cassette(path, "record-new") as cassette:
        llm = model_of(cassette, "openai_chat", server.url)
        session = Session()
        session.push_user(QUESTION)
        outcome: Any = session.text_turn(llm, tools=Atlas).collect_sync()
        round = outcome.round
        round.commit(session, [call.complete(2) for call in round.calls])
        session.text_turn(llm, tools=Atlas).collect_sync()
        assert len(server.requests) == 1
        assert len(cassette) == 2
    after = lines(path)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert after[1]["response"]["choices"][0]["message"]["content"] == "Many."


def test_record_new_leaves_nothing_that_nobody_asks_for_V7_V8(tmp_path: Path) -> None:
    path, api = tmp_path / "shorter.jsonl", "openai_chat"

    def ask(mode: Any, questions: str, url: str | None = None) -> None:
        with Cassette(path, mode) as cassette:
            for question in questions.split():
                session = Session()
                session.push_user(question)
                session.text_turn(model_of(cassette, api, url)).collect_sync()

    with serve([Reply(text="1"), Reply(text="2"), Reply(text="3")]) as server:
        ask("record", "one two three", server.url)
    with pytest.raises(ZeroDivisionError), Cassette(path, "record-new"):
        raise ZeroDivisionError  # what was asked until then says nothing of the rest
    assert len(path.read_text().splitlines()) == 3
    with no_network():
        ask("record-new", "one two", "http://nobody.example")
        ask("replay", "one two")
    with serve([Reply(text="4")]) as server:
        ask("record-new", "one four", server.url)
    ask("replay", "one four")


def test_sessions_beside_each_other_match_in_any_order_V4(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    questions = ["one", "two", "three"]

    def ask(llm: Any, question: str) -> str:
        session = Session()
        session.push_user(question)
        return session.text_turn(llm).collect_sync().text

    script = [Reply(text=f"answer to {question}") for question in questions]
    with serve(script) as server, Cassette(path, "record") as cassette:
        llm = model_of(cassette, "openai_chat", server.url)
        answers = {question: ask(llm, question) for question in questions}
    with no_network(), Cassette(path, match="any") as cassette:
        llm = model_of(cassette, "openai_chat")
        assert {question: ask(llm, question) for question in reversed(questions)} == answers
    with pytest.raises(CassetteMismatch, match="2 more recordings differ, too"):
        ask(model_of(Cassette(path, match="any"), "openai_chat"), "four")
    with pytest.raises(CassetteMismatch, match='"one" was recorded, "three" is sent'):
        ask(model_of(Cassette(path), "openai_chat"), "three")
    cassette = Cassette(path, "record-new", match="any")
    with serve([Reply(text="answer to four")]) as server, cassette:
        llm = model_of(cassette, "openai_chat", server.url)
        assert [ask(llm, "three"), ask(llm, "four")] == ["answer to three", "answer to four"]
    assert len(lines(path)) == 4  # nothing can be said to be behind it


async def test_many_sessions_at_once_are_recorded_and_replayed_V4(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    questions = [f"question {number}" for number in range(8)]

    def answer(api: str, body: dict[str, Any]) -> Reply:
        return Reply(text=f"answer to {body['messages'][0]['content']}")

    async def ask_all(llm: Any, streamed: bool) -> list[str]:
        async def ask(question: str) -> str:
            session = Session()
            session.push_user(question)
            turn = session.text_turn(llm)
            if not streamed:
                return str((await turn.collect()).text)
            async with turn.stream() as stream:
                return str((await stream.collect()).text)

        return await asyncio.gather(*map(ask, questions))

    for streamed in (False, True):
        async with serve([answer] * 8) as server, Cassette(path, "record") as cassette:
            llm = model_of(cassette, "openai_chat", server.url, is_async=True)
            answers = await ask_all(llm, streamed)
        assert answers == [f"answer to {question}" for question in questions]
        questions.reverse()
        with no_network():
            async with Cassette(path, match="any") as cassette:
                llm = model_of(cassette, "openai_chat", is_async=True)
                assert await ask_all(llm, streamed) == answers[::-1]
        questions.reverse()


def test_what_is_ignored_isnt_compared(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    recorded(path, "openai_chat", extra={"metadata": {"run": "1"}})
    other = {"extra": {"metadata": {"run": "2"}}}
    with Cassette(path, ignore=["/metadata"]) as cassette:
        talk_sync(model_of(cassette, "openai_chat", **other))
    with Cassette(path, ignore="/*/run") as cassette:
        talk_sync(model_of(cassette, "openai_chat", **other))
    with pytest.raises(CassetteMismatch, match='/metadata/run: "1" was recorded, "2" is sent'):
        talk_sync(model_of(Cassette(path), "openai_chat", **other))


BROKEN = [
    ('{"request": {}, "resp', "isn't JSON, or was cut off"),
    ('{"request": {}}', "needs a request and a response"),
    ("[]", "needs a request and a response"),
    ('{"request": {}, "response": {}, "status": "x"}', "status is a number"),
    ('{"request": {}, "response": {}, "headers": 7}', "headers an object"),
    ('{"request": {}, "response": "", "chunks": [-1]}', "chunks are sizes"),
    ('{"request": {}, "response": "", "chunks": 7}', "chunks are sizes"),
]


@each("text, problem", BROKEN)
def test_a_file_that_cant_be_used_is_named_with_its_line(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"request": {{}}, "response": {{}}}}\n{text}')
    with pytest.raises(CassetteError, match=rf"a\.jsonl:2 .*{problem}"):
        Cassette(path)


def test_files_that_arent_there_and_words_that_arent_known(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match=r"there is no cassette .*: record it with"):
        Cassette(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff")
    with pytest.raises(CassetteError, match="can't be read"):
        Cassette(tmp_path / "bytes.jsonl")
    with pytest.raises(ValueError, match="no mode 'play': replay, record, record-new"):
        Cassette(tmp_path / "a", "play")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not 'all'"):
        Cassette(tmp_path / "a", "record", match="all")  # type: ignore[arg-type]
    assert repr(Cassette(tmp_path / "a", "record")).endswith("a', 'record')")


def test_a_line_of_the_fixtures_is_a_recording() -> None:
    """Recordings of others have neither an address nor headers nor the sizes of pieces."""
    path = Path(__file__).parent.parent / "fixtures" / "ollama_chat.jsonl"
    entry = lines(path)[0]
    cassette = Cassette(path)
    client: Any = model_of(cassette, "ollama_chat")._transport.client()
    answer = client.post("/api/chat", json=entry["request"])
    assert answer.json() == entry["response"]
