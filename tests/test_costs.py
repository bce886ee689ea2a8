"""What requests without an answer cost (rule U1), and tokens that mean the same everywhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from lutumpy import (
    AdapterError,
    AssistantTurn,
    FilePart,
    FoundTool,
    ImagePart,
    NeedsTools,
    RawPart,
    Session,
    StaleRoundError,
    TextPart,
    Toolset,
    TranscriptError,
    Usage,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import ResultBlock, ToolResults, Unsettled, costs_nothing, estimate_of
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, render_stream, serve
from lutumpy.text_tools import TextTools

APIS = ("openai_chat", "openai_responses", "anthropic_messages")
every_api = pytest.mark.parametrize("api", APIS)
both_ways = pytest.mark.parametrize("way", ["async", "sync"])


@tool_fn
def look(word: str) -> str:
    """Look a word up."""
    return word


class Tools(Toolset):
    look = tool(look)


def asked() -> Session:
    session = Session()
    session.push_user("What is a cat?")
    return session


def turn_of(session: Session, llm: Any, kind: str) -> Any:
    if kind == "structured":
        return session.structured_turn(llm, list[str])
    return session.text_turn(llm, tools=Tools) if kind == "tools" else session.text_turn(llm)


async def collected(turn: Any, way: str) -> Any:
    return await turn.collect() if way == "async" else turn.collect_sync()


async def streamed(turn: Any, way: str, *, events: int | None = None) -> Any:
    """Read a stream to its end, or leave it after so many events."""
    if way == "async":
        async with turn.stream() as stream:
            read = 0
            async for _ in stream:
                read += 1
                if read == events:
                    return stream
    else:
        with turn.stream_sync() as stream:
            for read, _ in enumerate(stream, 1):
                if read == events:
                    return stream
    return stream


# --- streams that die -----------------------------------------------------------------------------


@every_api
@both_ways
@pytest.mark.parametrize("kind", ["text", "structured", "tools"])
async def test_a_stream_that_dies_at_any_event_costs_what_is_known_of_it_U1(
    api: Any, way: str, kind: str
) -> None:
    events = render_stream(Reply(text='["cat"]', usage=(20, 9)), api, number=1, model="m")
    for dead_at in range(len(events)):
        session = asked()
        llm = ScriptedModel([[*events[:dead_at], Failure(500, "gone")]], api=api)
        with pytest.raises(AdapterError) as caught:
            await streamed(turn_of(session, llm, kind), way)
        partial = caught.value.partial
        assert session.usage == (Usage() if partial is None else partial.usage)
        # The last counts come with the reason why the model stopped, or after it.
        settled = partial is not None and partial.usage.total_tokens == 29
        assert [request.api for request in session.unsettled] == ([] if settled else [api])
        assert session.turns() == []


@both_ways
async def test_the_figures_of_message_start_are_counted_and_the_unknown_output_is_listed_U1(
    way: str,
) -> None:
    start = {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "model": "claude-x",
            "role": "assistant",
            "content": [],
            "usage": {"input_tokens": 5000, "cache_read_input_tokens": 20000, "output_tokens": 1},
        },
    }
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    words = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "word " * 400},
    }
    session = asked()
    script = [[start, block, words, Failure(529, "overloaded")], Reply(text="Done.", usage=(10, 5))]
    llm = ScriptedModel(script, api="anthropic_messages")
    with pytest.raises(AdapterError):
        await streamed(session.text_turn(llm), way)
    assert session.usage.total_tokens == 25001
    assert session.usage.all_input_tokens == 25000
    (request,) = session.unsettled
    assert (request.api, request.model, request.response_id) == (
        "anthropic_messages",
        "claude-x",
        "msg_1",
    )
    assert request.estimate is not None
    assert request.estimate.all_input_tokens == 0  # known already
    assert 400 <= request.estimate.output_tokens <= 700
    # A second try is another request, and nothing of the first one is counted again.
    await streamed(session.text_turn(llm), way)
    assert session.usage.total_tokens == 25016
    assert session.unsettled == (request,)


@every_api
@both_ways
@pytest.mark.parametrize("kind", ["text", "structured", "tools"])
async def test_a_stream_that_is_left_early_is_counted_once_U1(
    api: Any, way: str, kind: str
) -> None:
    llm = ScriptedModel([Reply(text='["cat"]', usage=(20, 9))], api=api)
    session = asked()
    stream = await streamed(turn_of(session, llm, kind), way, events=1)
    assert len(session.unsettled) == 1
    assert session.usage == stream.partial.usage
    assert session.usage.input_tokens == (20 if api == "anthropic_messages" else 0)


@every_api
@both_ways
async def test_a_stream_that_was_read_to_its_end_is_counted_with_its_answer_alone_U1(
    api: Any, way: str
) -> None:
    for kind in ("text", "structured", "tools"):
        session = asked()
        await streamed(
            turn_of(session, ScriptedModel([Reply(text='["cat"]', usage=(20, 9))], api=api), kind),
            way,
        )
        assert (session.usage.total_tokens, session.unsettled) == (29, ())


@both_ways
async def test_collecting_the_rest_of_a_stream_that_dies_counts_it_U1(way: str) -> None:
    events = render_stream(Reply(text="Hello there"), "anthropic_messages", number=1, model="m")
    session = asked()
    llm = ScriptedModel([[*events[:4], Failure(500, "gone")]], api="anthropic_messages")
    if way == "async":
        async with session.text_turn(llm).stream() as stream:
            with pytest.raises(AdapterError):
                await stream.collect()
    else:
        with session.text_turn(llm).stream_sync() as sync_stream, pytest.raises(AdapterError):
            sync_stream.collect()
    assert session.usage.input_tokens == 20
    assert len(session.unsettled) == 1


async def test_a_stream_that_was_never_entered_costs_nothing_U1() -> None:
    session = asked()
    session.text_turn(ScriptedModel([Reply(text="x")])).stream()
    assert (session.usage, session.unsettled) == (Usage(), ())


@both_ways
async def test_an_answer_that_finds_no_place_is_counted_once_U1(way: str) -> None:
    """The session moved on: the answer was read, and isn't one that was left."""
    session = asked()
    llm = ScriptedModel([Reply(text="Hello", usage=(20, 9))])

    async def read() -> None:
        if way == "async":
            async with session.text_turn(llm).stream() as stream:
                session.push_user("more")
                async for _ in stream:
                    pass
        else:
            with session.text_turn(llm).stream_sync() as sync_stream:
                session.push_user("more")
                for _ in sync_stream:
                    pass

    with pytest.raises(StaleRoundError):
        await read()
    assert (session.usage.total_tokens, session.unsettled) == (29, ())


@both_ways
async def test_a_failed_response_says_what_it_cost_U1(way: str) -> None:
    failed = {
        "id": "resp_1",
        "model": "gpt-x",
        "status": "failed",
        "error": {"code": "server_error", "message": "broke"},
        "output": [],
        "usage": {"input_tokens": 70, "output_tokens": 5, "total_tokens": 75},
    }
    events = [
        {
            "type": "response.created",
            "response": {"id": "resp_1", "model": "gpt-x", "status": "in_progress"},
        },
        {"type": "response.failed", "response": failed},
    ]
    session = asked()
    with pytest.raises(AdapterError) as caught:
        await streamed(session.text_turn(ScriptedModel([events], api="openai_responses")), way)
    assert caught.value.response_id == "resp_1"
    assert (session.usage.total_tokens, session.unsettled) == (75, ())
    with serve([failed]) as server:
        clients: list[Any] = [AsyncOpenAI, OpenAI]
        client = clients[way == "sync"](base_url=server.openai_base_url, api_key="k", max_retries=0)
        whole = asked()
        with pytest.raises(AdapterError, match="broke"):
            await collected(whole.text_turn(OpenAIResponses("gpt-x", client)), way)
        assert (whole.usage.total_tokens, whole.unsettled) == (75, ())
        await close(client)


# --- requests that fail ---------------------------------------------------------------------------


REFUSED = [400, 401, 403, 404, 409, 413, 422, 429, 501, 503, 529]
UNKNOWN = [408, 499, 500, 502, 504, 520, 524]


@both_ways
@pytest.mark.parametrize("status", [*REFUSED, *UNKNOWN])
async def test_a_status_says_whether_a_request_can_have_cost_anything_U1(
    status: int, way: str
) -> None:
    for kind in ("text", "structured", "tools"):
        session = asked()
        with pytest.raises(AdapterError):
            await collected(turn_of(session, ScriptedModel([Failure(status, "no")]), kind), way)
        assert session.usage == Usage()
        assert len(session.unsettled) == (status in UNKNOWN)
        if session.unsettled:
            (request,) = session.unsettled
            assert (request.api, request.model) == ("openai_chat", "scripted")
            assert request.estimate is not None
            assert request.estimate.all_input_tokens >= 4


@pytest.mark.parametrize(
    ("code", "status", "nothing"),
    [
        ("content_filter", 400, False),
        ("tool_use_failed", 400, False),
        ("context_length_exceeded", 400, True),
        ("overloaded_error", None, True),
        ("rate_limit_exceeded", None, True),
        ("server_error", None, False),
        (None, None, False),
    ],
)
def test_a_refusal_after_work_and_one_without_a_status_are_told_by_their_code_U1(
    code: str | None, status: int | None, nothing: bool
) -> None:
    assert (
        costs_nothing(AdapterError("x", provider="openai_chat", status=status, code=code))
        is nothing
    )


def test_what_an_error_knows_survives_pickling() -> None:
    partial = AssistantTurn("openai_responses", (), b"", response_id="resp_1")
    error = AdapterError("x", provider="openai_responses", partial=partial, sent=False)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.response_id, copy.sent, copy.partial) == ("resp_1", False, None)


async def close(client: Any) -> None:
    closing = client.close()
    if closing is not None:
        await closing


MAKERS: dict[str, tuple[Any, Any, Any]] = {
    "openai_chat": (OpenAIChat, AsyncOpenAI, OpenAI),
    "openai_responses": (OpenAIResponses, AsyncOpenAI, OpenAI),
    "anthropic_messages": (AnthropicMessages, AsyncAnthropic, Anthropic),
}


def adapter(api: str, way: str, url: str, **options: Any) -> tuple[Any, Any]:
    make, make_async, make_sync = MAKERS[api]
    client = (make_async if way == "async" else make_sync)(
        base_url=url, api_key="k", max_retries=0, **options
    )
    return make("m", client), client


def read_request(connection: socket.socket) -> bool:
    """Read one HTTP request; whether it came whole."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return False
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            return False
        body += piece
    return True


@pytest.fixture
def rude() -> Iterator[Callable[[bytes | None], str]]:
    """A server that reads the request, sends so many bytes, and hangs up.

    With `None` it never says anything.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(answer: bytes | None) -> str:
        def run() -> None:
            try:
                connection, _ = listener.accept()
                kept.append(connection)
                was_read = read_request(connection)
                if was_read and answer is not None:
                    connection.sendall(answer)
                    connection.close()
            except OSError:
                return  # the client has hung up, or the test is over

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    yield start
    for connection in kept:
        connection.close()
    listener.close()
    for thread in threads:
        thread.join(5)


@every_api
@both_ways
async def test_a_connection_that_breaks_after_sending_is_unsettled_U1(
    api: str, way: str, rude: Any
) -> None:
    llm, client = adapter(api, way, rude(b""))
    session = asked()
    with pytest.raises(AdapterError) as caught:
        await collected(session.text_turn(llm), way)
    assert caught.value.sent
    assert [(request.api, request.model) for request in session.unsettled] == [(api, "m")]
    await close(client)


@both_ways
async def test_a_time_limit_after_sending_is_unsettled_U1(way: str, rude: Any) -> None:
    llm, client = adapter("openai_chat", way, rude(None), timeout=0.2)
    session = asked()
    with pytest.raises(AdapterError):
        await collected(session.text_turn(llm), way)
    assert len(session.unsettled) == 1
    await close(client)


@both_ways
async def test_an_answer_that_is_none_is_unsettled_with_its_request_id_U1(way: str) -> None:
    with serve([b"not JSON", {"id": "chatcmpl-1"}]) as server:
        llm, client = adapter("openai_chat", way, server.openai_base_url)
        session = asked()
        for _ in range(2):
            with pytest.raises(AdapterError):
                await collected(session.text_turn(llm), way)
        assert [request.request_id is not None for request in session.unsettled] == [True, True]
        await close(client)


@every_api
@both_ways
async def test_a_request_that_was_never_sent_costs_nothing_U1(api: str, way: str) -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    llm, client = adapter(api, way, f"http://127.0.0.1:{port}/v1")
    for kind in ("text", "tools"):
        session = asked()
        with pytest.raises(AdapterError) as caught:
            await collected(turn_of(session, llm, kind), way)
        assert not caught.value.sent
        with pytest.raises(AdapterError):
            await streamed(turn_of(session, llm, kind), way)
        assert (session.usage, session.unsettled) == (Usage(), ())
    await close(client)
    with pytest.raises(AdapterError):  # the client is closed now
        await collected(asked().text_turn(llm), way)
    session = asked()
    with pytest.raises(TypeError):
        await collected(session.text_turn(llm), "sync" if way == "async" else "async")
    empty = Session()
    with pytest.raises(TranscriptError):
        await collected(empty.text_turn(llm), way)
    assert (session.unsettled, empty.unsettled) == ((), ())


def test_a_client_without_a_key_sends_nothing_U1(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for llm in (OpenAIChat("m"), AnthropicMessages("m", base_url="http://127.0.0.1:1")):
        session = asked()
        with pytest.raises(AdapterError) as caught:
            session.text_turn(llm).collect_sync()
        assert not caught.value.sent
        assert session.unsettled == ()


async def test_a_request_that_is_cancelled_is_unsettled_U1(rude: Any) -> None:
    llm, client = adapter("anthropic_messages", "async", rude(None))
    for kind, way in (("text", "collect"), ("tools", "collect"), ("text", "stream")):
        session = asked()
        turn = turn_of(session, llm, kind)
        task = asyncio.ensure_future(
            turn.collect() if way == "collect" else streamed(turn, "async")
        )
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.1)
        assert [request.api for request in session.unsettled] == ["anthropic_messages"]
    await client.close()


class Interrupted:
    """A model whose request is interrupted."""

    api = "openai_chat"
    model = "m"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def respond_sync(self, *_: Any) -> AssistantTurn:
        raise self.error


@pytest.mark.parametrize(
    ("error", "listed"),
    [
        (KeyboardInterrupt(), 1),
        (RuntimeError("?"), 1),
        (TimeoutError(), 1),
        (ImportError("no SDK"), 0),
    ],
)
def test_an_interrupt_or_an_unknown_error_is_unsettled_and_passes_U1(
    error: BaseException, listed: int
) -> None:
    session = asked()
    with pytest.raises(type(error)):
        session.text_turn(Interrupted(error)).collect_sync()  # type: ignore[arg-type]
    assert len(session.unsettled) == listed


# --- wrappers and loops ---------------------------------------------------------------------------


@both_ways
async def test_text_tools_name_the_model_that_they_wrap_U1(way: str) -> None:
    events = render_stream(
        Reply(text="Hello there", usage=(20, 9)), "anthropic_messages", number=1, model="m"
    )
    script: list[Any] = [
        [*events[:4], Failure(500, "gone")],
        events,
        Failure(500, "gone"),
        Failure(400, "no"),
    ]
    llm = TextTools(ScriptedModel(script, api="anthropic_messages"))
    session = asked()
    with pytest.raises(AdapterError):
        await streamed(session.text_turn(llm, tools=Tools), way)
    assert session.usage.input_tokens == 20
    await streamed(session.text_turn(llm, tools=Tools), way, events=2)
    assert session.usage.input_tokens == 40
    for _ in range(2):
        with pytest.raises(AdapterError):
            await collected(session.text_turn(llm, tools=Tools), way)
    assert [(r.api, r.model) for r in session.unsettled[:2]] == [("anthropic_messages", "m")] * 2
    assert [(r.api, r.model) for r in session.unsettled[2:]] == [("anthropic_messages", "scripted")]


# --- what a session keeps -------------------------------------------------------------------------


def failed_session() -> Session:
    session = asked()
    with pytest.raises(AdapterError):
        session.text_turn(ScriptedModel([Failure(500, "gone")])).collect_sync()
    session.add_unsettled(Unsettled("anthropic_messages", None, "msg_1", "req_1"), Usage(1, 2, 3))
    return session


def test_unsettled_requests_are_part_of_a_dump_and_of_a_fork_U1_R4() -> None:
    session = failed_session()
    restored = Session.load(json.dumps(session.dump()))
    assert (restored.usage, restored.unsettled) == (session.usage, session.unsettled)
    assert len(restored.unsettled) == 2
    twin = session.fork()
    assert (twin.usage, twin.unsettled) == (session.usage, session.unsettled)
    twin.settle(twin.unsettled[0], Usage(10, 1, 11))
    assert (twin.usage.total_tokens, len(twin.unsettled)) == (14, 1)
    assert (session.usage.total_tokens, len(session.unsettled)) == (3, 2)


def test_only_an_unsettled_request_can_be_settled() -> None:
    session = failed_session()
    other = Unsettled("openai_chat", "m")
    with pytest.raises(ValueError, match="nothing was counted"):
        session.settle(other, Usage(1, 1, 2))
    assert session.usage.total_tokens == 3


def test_dumps_of_earlier_releases_load_U1() -> None:
    data = failed_session().dump()
    del data["unsettled"]
    assert Session.load(data).unsettled == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        None,
        ["x"],
        [{"api": 5}],
        [{"api": "openai_chat", "estimate": 7}],
        [{"api": "openai_chat", "estimate": {"input_tokens": "many"}}],
    ],
)
def test_a_dump_with_wrong_unsettled_requests_is_refused_R4(wrong: Any) -> None:
    data = {**asked().dump(), "unsettled": wrong}
    with pytest.raises(TranscriptError):
        Session.load(data)


def interrupted_at_every_line(change: Callable[[Session], None]) -> Iterator[Session]:
    """The session after `change` was interrupted at its first line, its second, and so on."""
    at = 1
    while True:
        session = failed_session()
        left = at

        def tracer(frame: Any, event: str, arg: Any) -> Any:
            nonlocal left
            frame.f_trace_opcodes = True
            # What Python does of its own accord, as when a generator that nobody wants any more is
            # closed, has no line; an exception there would interrupt nobody.
            if event in ("line", "opcode") and frame.f_lineno is not None:
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return tracer

        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            change(session)
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
        finally:
            sys.settrace(before)
        if not interrupted:
            return
        yield session
        at += 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add_usage", "add_unsettled", "settle", "usage", "failed"])
def test_costs_change_wholly_or_not_at_all_K3a(name: str) -> None:
    request = Unsettled("openai_chat", "m")

    def change(session: Session) -> None:
        if name == "add_usage":
            session.add_usage(Usage(1, 1, 2))
        elif name == "add_unsettled":
            session.add_unsettled(request, Usage(1, 1, 2))
        elif name == "settle":
            session.settle(session.unsettled[1], Usage(1, 1, 2))
        else:
            session.usage = Usage(1, 1, 2)

    def failing(session: Session) -> None:
        with contextlib.suppress(RuntimeError):
            session.text_turn(Interrupted(RuntimeError("?"))).collect_sync()  # type: ignore[arg-type]

    done = failed_session()
    changed = failing if name == "failed" else change
    changed(done)
    before = failed_session()
    states = {(before.usage, before.unsettled), (done.usage, done.unsettled)}
    seen = 0
    for session in interrupted_at_every_line(changed):
        seen += 1
        # An interrupt in place of the model's own error is unsettled as that is.
        assert (session.usage, session.unsettled) in states
    assert seen > 5


def test_an_estimate_counts_texts_results_images_files_and_tools_U1() -> None:
    def estimate(session: Session, kind: str = "text") -> int:
        with pytest.raises(AdapterError):
            turn_of(session, ScriptedModel([Failure(500, "gone")]), kind).collect_sync()
        found = session.unsettled[-1].estimate
        assert found is not None
        return found.total_tokens

    session = asked()
    small = estimate(session)
    assert estimate(session, "tools") > small + 10
    session.push_user("word " * 800)
    assert estimate(session) == small + 1000
    session.push_user(
        [
            ImagePart(b"x", "image/png"),
            FilePart(b"x" * 400, "text/plain"),
            FilePart(url="https://x.y/a"),
        ]
    )
    assert estimate(session) == small + 3100
    outcome = session.text_turn(
        ScriptedModel([Reply(calls=[Call("look", {"word": "cat"})])]), tools=Tools
    ).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [outcome.round.calls[0].complete("cat " * 1000)])
    assert 1000 <= estimate(session) - small - 3100 <= 1100


def test_an_estimate_counts_parts_of_one_api_found_tools_and_binary_files_U1() -> None:
    def tokens(*parts: Any) -> int:
        result = ResultBlock("c1", "look", parts)
        sent: Any = [ToolResults((result,))]
        return estimate_of(sent, None, None).total_tokens

    assert tokens(TextPart("word")) == 1
    assert tokens(FilePart(b"%PDF", "application/pdf")) == 1000
    found = FoundTool("look", "Looks a word up.", {"type": "object"})
    assert tokens(found) == -(-len(found.text) // 4) + -(-len(found.data) // 4)
    raw = RawPart("anthropic_messages", {"type": "x", "text": "word", "data": "A" * 4000})
    assert tokens(raw) == 1 + 1 + 1000


# --- tokens that mean the same --------------------------------------------------------------------


def anthropic_usage(**usage: int) -> Usage:
    reply = {"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": usage}
    return AnthropicMessages.response(reply).usage


def chat_usage(**usage: Any) -> Usage:
    choice = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    return OpenAIChat.response({"choices": [choice], "usage": usage}).usage


ANTHROPIC = {
    "input_tokens": 20,
    "output_tokens": 5,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 30,
}
OPENAI = {
    "prompt_tokens": 150,
    "completion_tokens": 5,
    "total_tokens": 155,
    "prompt_tokens_details": {"cached_tokens": 100},
}


def test_all_input_tokens_are_the_same_for_every_provider_U1() -> None:
    assert anthropic_usage(**ANTHROPIC).all_input_tokens == 150
    assert chat_usage(**OPENAI).all_input_tokens == 150
    reply = {
        "status": "completed",
        "output": [],
        "usage": {
            "input_tokens": 150,
            "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 100},
        },
    }
    assert OpenAIResponses.response(reply).usage.all_input_tokens == 150


def test_output_tokens_have_the_reasoning_that_a_host_counts_beside_them_U1() -> None:
    """xAI's figures, as its documentation has them: 32 + 9 + 94 = 135."""
    counted = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}
    found = chat_usage(**counted, completion_tokens_details={"reasoning_tokens": 94})
    assert (found.output_tokens, found.reasoning_tokens, found.total_tokens) == (103, 94, 135)
    # Included, as OpenAI counts: also in a total that has something else beyond.
    for total in (41, 60):
        counted = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": total}
        found = chat_usage(**counted, completion_tokens_details={"reasoning_tokens": 8})
        assert (found.output_tokens, found.reasoning_tokens) == (9, 8)


def test_sums_of_several_providers_stay_right_in_a_session_and_in_its_dump_U1() -> None:
    # Its total has reasoning that the output leaves out, as xAI's: no cached tokens are counted
    # beside its input.
    beyond = chat_usage(
        **{**OPENAI, "total_tokens": 255, "completion_tokens_details": {"reasoning_tokens": 100}}
    )
    assert beyond.all_input_tokens == 150
    # A host that passes on another provider's counts.
    beside = chat_usage(
        prompt_tokens=20,
        completion_tokens=5,
        total_tokens=125,
        prompt_tokens_details={"cached_tokens": 100},
    )
    assert beside.all_input_tokens == 120
    session = asked()
    for usage in (anthropic_usage(**ANTHROPIC), chat_usage(**OPENAI), beyond, beside):
        session.add_usage(usage)
    assert session.usage.all_input_tokens == 570
    assert Session.load(session.dump()).usage.all_input_tokens == 570
    assert (session.usage - anthropic_usage(**ANTHROPIC)).all_input_tokens == 420
    assert (session.usage - session.usage) == Usage()


def test_a_usage_of_an_old_dump_or_of_ones_own_finds_its_input_out_U1() -> None:
    old = {**asked().dump(), "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 155}}
    old["usage"] |= {"cached_input_tokens": 100, "cache_creation_tokens": 30, "reasoning_tokens": 0}
    assert Session.load(old).usage.all_input_tokens == 150
    assert Usage(input_tokens=7).all_input_tokens == 7
    assert Usage(10, 5, 15, 8).all_input_tokens == 10
    assert Usage(5, 7, 132, 100, 20) == anthropic_usage(
        input_tokens=5, output_tokens=7, cache_read_input_tokens=100, cache_creation_input_tokens=20
    )


def test_what_a_compaction_cost_is_counted_U1() -> None:
    """Anthropic leaves it out of the message's own figures; it stands in `iterations` alone."""
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "iterations": [
            {
                "type": "compaction",
                "input_tokens": 4000,
                "output_tokens": 300,
                "cache_read_input_tokens": 50,
            },
            {"type": "message", "input_tokens": 100, "output_tokens": 10},
            "odd",
        ],
    }
    counted = anthropic_usage(**usage)  # type: ignore[arg-type]
    assert (counted.all_input_tokens, counted.output_tokens, counted.total_tokens) == (
        4150,
        310,
        4460,
    )
