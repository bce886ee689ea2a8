"""What type-checks as a part or a result is committed, and what is committed is taken by every API
(rules K3b and K7).
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from every_api import ADAPTERS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import (
    CommitError,
    FilePart,
    FoundTool,
    ImagePart,
    NeedsTools,
    RawPart,
    Session,
    TextPart,
    ToolResult,
    Toolset,
    Transcript,
    TranscriptError,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.errors import CommitProblem
from lutumpy.models import Part, ResultBlock, ToolResults
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.limits import MAX_IMAGE_URL, MAX_TEXT_PART
from lutumpy.rules.openai.responses import items as responses

APIS: dict[str, tuple[Any, Any]] = {
    "openai_chat": (OpenAIChat, chat),
    "openai_responses": (OpenAIResponses, responses),
    "anthropic_messages": (AnthropicMessages, anthropic),
}
ORACLE = Path(__file__).resolve().parents[2] / "shared" / "tools" / "check_request.py"


@tool_fn
def look(x: Any = 0) -> Any:
    """Look at it."""
    return x


class Tools(Toolset):
    look = tool(look)


def vendors() -> Any:
    """The vendors' own schemas, where they are at hand."""
    if not ORACLE.exists() or importlib.util.find_spec("jsonschema") is None:
        return None
    if "check_request" not in sys.modules:
        found = importlib.util.spec_from_file_location("check_request", ORACLE)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules["check_request"] = module
        found.loader.exec_module(module)
    return sys.modules["check_request"]


def refused(api: str, transcript: Transcript) -> list[str]:
    """What the API would say of a request with this transcript; nothing where it takes it."""
    adapter, rules = APIS[api]
    options = {"call_ids": "openai"} if api == "openai_chat" else {}
    body = {"model": "m", **adapter.request(transcript, **options)}
    found = [
        f"{p.rule} {p.position}: {p.message[:200]}"
        for p in rules.check_request(body)
        if p.certainty != "discouraged"
    ]
    oracle = vendors()
    return found + (oracle.violations(api, body) if oracle is not None else [])


MEDIA_TYPES = [
    "image/png", "image/jpeg", "image/gif", "image/webp", "IMAGE/PNG", "image/png; q=1", "image/tiff", "image/svg+xml",
    "image/bmp", "image/heic", "audio/mpeg", "audio/wav", "video/mp4", "application/pdf", "application/zip",
    "application/json", "application/octet-stream", "text/plain", "text/plain; charset=utf-8", "text/csv", "text/html",
    "png", "/", ";", " ", "a,b", "image/png,x", "text/plain\n", "ü/ü", "\ud800",
]  # fmt: skip
URLS = [
    "https://x.org/a.png", "http://x.org", "HTTPS://X.ORG/b", "https://x.org/a.mp3?x=1", "https://x.org/a.PDF", "", "a.png",
    "ftp://x.org/a", "file:///etc/passwd", "https://", "https:///a", "https://x.org/a b", "data:image/png;base64,iVBORw==",
    "data:image/tiff;base64,AAAA", "data:application/pdf;base64,JVBERg==", "data:text/plain,hello", "data:;base64,AAAA",
    "data:image/png;base64,", "data:image/png;base64,***", "data:", "DATA:IMAGE/PNG;BASE64,AAAA", "gs://b/c", "\ud800",
]  # fmt: skip

texts = st.sampled_from(
    ["", " ", "\n", "text", "ä\U0001f600", "\ud800", "\x00", "[1]", "NaN"]
) | st.text(max_size=20)
data = st.sampled_from([b"", b"x", b" \n", b"\x89PNG", b"\xff\xfe", "ä".encode()])
media_types = st.sampled_from(MEDIA_TYPES) | st.text(min_size=1, max_size=8)
urls = st.sampled_from(URLS) | st.text(max_size=12)
names = st.none() | st.sampled_from(["", " ", "a.pdf", "x" * 600, "\ud800"])
# Values that some API takes somewhere, and ones that it takes nowhere.
citations = st.sampled_from(
    [{}, {"citations": {"enabled": True}}, {"citations": {"enabled": False}}]
)
marks = st.sampled_from([{}, {}, {"cache_control": {"type": "ephemeral"}}, {"cache_control": None}])
sources = st.sampled_from(
    [
        {"type": "url", "url": "https://x.org/a.pdf"},
        {"type": "url", "url": "a.pdf"},
        {"type": "text", "media_type": "text/plain", "data": "said"},
        {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
        {"type": "base64", "media_type": "application/pdf", "data": "***"},
        {
            "type": "content",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {"type": "content", "content": []},
        {"type": "file", "file_id": "file_1"},
        {"type": "x"},
        "a.pdf",
    ]
)
said = st.sampled_from(["", " ", "text", "[1]", "\ud800", "x" * 600])
messages_values = st.one_of(
    st.builds(
        lambda title, text, *more: dict(
            {"type": "search_result", "title": title, "source": "s", "content": text},
            **{k: v for one in more for k, v in one.items()},
        ),
        said,
        st.sampled_from(
            [[], "text", [{"type": "text", "text": "a"}], [{"type": "text", "text": ""}]]
        ),
        citations,
        marks,
    ),
    st.builds(
        lambda source, title, *more: dict(
            {"type": "document", "source": source, "title": title},
            **{k: v for one in more for k, v in one.items()},
        ),
        sources,
        st.none() | said,
        citations,
        marks,
        st.sampled_from([{}, {"context": "c"}, {"context": ""}, {"zzz": 1}]),
    ),
    st.builds(
        lambda name, mark: {"type": "tool_reference", "tool_name": name, **mark},
        st.sampled_from(["look", "other", "a.b", ""]),
        marks,
    ),
    st.sampled_from(
        [
            {"type": "text", "text": "x"},
            {"type": "container_upload", "file_id": "file_1"},
            {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
            {"type": "tool_result", "tool_use_id": "c1"},
            {"type": "thinking", "thinking": "x", "signature": "y"},
            {"type": "zzz"},
            {},
        ]
    ),
)
chat_values = st.sampled_from(
    [
        {"type": "text", "text": "x"},
        {"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "text", "text": ""},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "ogg"}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "file", "file": {}},
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "a.png"}},
        {"type": "refusal", "refusal": "no"},
        {},
    ]
)
responses_values = st.sampled_from(
    [
        {"type": "input_text", "text": "x"},
        {"type": "input_text"},
        {"type": "input_image", "file_id": "file_1", "detail": "original"},
        {"type": "input_image"},
        {"type": "input_file", "file_id": "file_1"},
        {"type": "input_file", "file_url": "https://x.org/a.pdf", "detail": "low"},
        {
            "type": "input_file",
            "file_data": "data:application/pdf;base64,JVBERg==",
            "filename": "a.pdf",
        },
        {"type": "input_file", "file_data": "JVBERg=="},
        {"type": "output_text", "text": "x"},
        {"type": "input_text", "text": "x", "zzz": 1},
    ]
)
raw_parts = st.one_of(
    st.builds(
        FoundTool,
        st.just("look") | st.text(min_size=1).filter(str.strip),
        texts,
        st.just({"type": "object"}),
    ),
    st.builds(RawPart, st.just("anthropic_messages"), messages_values, st.none() | texts),
    st.builds(RawPart, st.just("openai_chat"), chat_values, st.none() | texts),
    st.builds(RawPart, st.just("openai_responses"), responses_values, st.none() | texts),
)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, texts),
    st.builds(ImagePart, data, media_types, detail=st.sampled_from([None, "low", "high", "auto"])),
    st.builds(ImagePart, media_type=st.none() | media_types, url=urls),
    st.builds(FilePart, data, media_types, filename=names),
    st.builds(FilePart, media_type=st.none() | media_types, url=urls, filename=names),
)
contents = texts | st.lists(parts, max_size=4).map(tuple)
ids = st.sampled_from(["c1", "call_" + "a" * 24, "x" * 41, "y" * 65, "toolu_1", "a.b:c", "ü"])
results = st.tuples(ids, contents, st.sampled_from(["ok", "error", "rejected"]))
arguments = st.sampled_from(
    [
        "{}",
        "",
        '{"x": 1}',
        '{"x": NaN}',
        '{"x": 1e400}',
        '{"x": "\\ud800"}',
        "[1]",
        "nope",
        '{"x": ',
    ]
)


def answer(api: str, calls: list[tuple[str, str]]) -> Any:
    """An answer of this API with these calls, each an id and its arguments."""
    if api == "openai_chat":
        entries = [
            {"id": i, "type": "function", "function": {"name": "look", "arguments": a}}
            for i, a in calls
        ]
        message = {"role": "assistant", "content": None, "tool_calls": entries}
        return OpenAIChat.response(
            {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
        )
    if api == "openai_responses":
        items = [
            {"type": "function_call", "call_id": i, "name": "look", "arguments": a}
            for i, a in calls
        ]
        return OpenAIResponses.response({"status": "completed", "output": items})
    blocks = [{"type": "tool_use", "id": i, "name": "look", "input": {"x": a}} for i, a in calls]
    return AnthropicMessages.response(
        {"role": "assistant", "stop_reason": "tool_use", "content": blocks}
    )


def committed(
    session: Session, api: str, calls: list[tuple[str, str]], given: list[tuple[Any, Any]]
) -> None:
    """A round of these calls, with these contents and statuses as its results."""
    outcome = Tools.offer().read(answer(api, calls), session)
    assert isinstance(outcome, NeedsTools)
    round = outcome.round
    metadata = [c.metadata for c in (*round.calls, *round.issues)]
    round.commit(session, [ToolResult(m, *said) for m, said in zip(metadata, given, strict=True)])


@pytest.mark.pure
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    source=st.sampled_from(sorted(APIS)),
    pushed=st.lists(parts, max_size=3),
    answered=st.lists(results, min_size=1, max_size=3, unique_by=lambda r: r[0]),
    wrote=arguments,
)
def test_k3b_whatever_type_checks_is_committed_and_taken_by_every_api(
    source: str, pushed: list[Part], answered: list[Any], wrote: str
) -> None:
    session = Session()
    session.push_user(["look", *pushed])
    committed(
        session,
        source,
        [(i, wrote) for i, *_ in answered],
        [(content, status) for _, content, status in answered],
    )
    for api in APIS:
        assert refused(api, session.transcript) == [], api
    again = Session.load(session.dump())
    for api, (adapter, _) in APIS.items():
        assert adapter.request(again.transcript) == adapter.request(session.transcript), api


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    source=st.sampled_from(sorted(APIS)),
    pushed=st.lists(raw_parts | parts, max_size=3),
    given_parts=st.lists(raw_parts | parts, min_size=1, max_size=6),
    status=st.sampled_from(["ok", "ok", "ok", "error", "rejected"]),
)
def test_k3b_parts_for_one_api_are_refused_when_committed_or_taken_by_every_api(
    source: str, pushed: list[Part], given_parts: list[Part], status: Any
) -> None:
    session = Session()
    session.push_user("look")
    for part in pushed:
        with contextlib.suppress(TranscriptError):
            session.push_user(["look", part])
    outcome = Tools.offer().read(answer(source, [("c1", "{}"), ("c2", "{}")]), session)
    assert isinstance(outcome, NeedsTools)
    calls = [c.metadata for c in (*outcome.round.calls, *outcome.round.issues)]
    problems: Sequence[CommitProblem] = ()
    try:
        outcome.round.commit(session, [ToolResult(m, tuple(given_parts), status) for m in calls])
    except CommitError as error:
        problems = error.problems
    assert {p.kind for p in problems} <= {"wrong_output"}
    if problems:
        kept = tuple([part for part in given_parts if not isinstance(part, RawPart)])
        outcome.round.commit(session, [ToolResult(m, kept, status) for m in calls])
    for api in APIS:
        assert refused(api, session.transcript) == [], api
    again = Session.load(session.dump())
    for api, (adapter, _) in APIS.items():
        assert adapter.request(again.transcript) == adapter.request(session.transcript), api


@pytest.mark.parametrize("name", ["image/jpg", "IMAGE/PJPEG; q=1"])
def test_k7_an_image_under_another_name_of_its_kind_is_shown_under_the_right_one(name: str) -> None:
    transcript = Transcript()
    transcript.push_user(["see", ImagePart(b"\xff\xd8\xff", name)])
    shown = {
        api: str(
            adapter.request(transcript)[
                "messages" if "chat" in api or "anthropic" in api else "input"
            ]
        )
        for api, (adapter, _) in APIS.items()
    }
    assert all(
        "image/jpeg" in request and "left out" not in request for request in shown.values()
    ), shown


@pytest.mark.parametrize("as_url", [False, True], ids=["bytes", "data URL"])
@pytest.mark.parametrize("stated", ["image/png", "image/tiff", "application/octet-stream"])
def test_k7_an_image_is_shown_under_the_type_of_its_bytes(stated: str, as_url: bool) -> None:
    """Anthropic refuses an image that isn't of the media type that it states [reported]."""
    jpeg = b"\xff\xd8\xff\xe0"
    part = ImagePart(jpeg, stated)
    if as_url:
        part = ImagePart(url=f"data:{stated};base64,{base64.b64encode(jpeg).decode()}")
    transcript = with_result("openai_chat", (part,))
    transcript.push_user(["see", part])
    for api, adapter in ADAPTERS.items():
        request = str(adapter.request(transcript))
        assert stated not in request, api
        assert "left out" not in request, api
        assert "jpeg" in request or api == "ollama_chat", api


# --- sizes: one of each, since they are large -----------------------------------------------------


def with_result(source: str, content: Any, wrote: str = "{}") -> Transcript:
    session = Session()
    session.push_user("look")
    committed(session, source, [("c1", wrote)], [(content, "ok")])
    return session.transcript


@pytest.mark.parametrize("api", sorted(APIS))
@pytest.mark.parametrize("source", ["openai_chat", "openai_responses"])
def test_k7_arguments_that_are_too_long_are_sent_as_far_as_they_may_be(
    source: str, api: str
) -> None:
    wrote = '{"x": "' + '"\\n'.replace('"', '\\"') * 300_000 + '"}'
    assert len(wrote) > 1_048_576
    assert refused(api, with_result(source, "x", wrote)) == []


def test_k7_what_was_left_out_of_long_arguments_is_named() -> None:
    wrote = '{"x": "' + "a" * 1_100_000 + '"}'
    item = OpenAIResponses.request(with_result("openai_responses", "x", wrote))["input"][1]
    assert item["arguments"].startswith('{"TRUNCATED":"{\\"x\\": \\"aaa')
    assert 500_000 < len(item["arguments"]) <= 1_048_576


@pytest.mark.parametrize("api", sorted(APIS))
@pytest.mark.parametrize("content", ["text", "part", "message"])
def test_k7_a_text_that_is_too_long_is_cut_and_says_so(content: str, api: str) -> None:
    long = "a" * (MAX_TEXT_PART + 1)
    transcript = with_result(
        "openai_responses",
        long if content == "text" else (TextPart(long),) if content == "part" else "",
    )
    if content == "message":
        transcript.push_user(long)
    assert refused(api, transcript) == []
    if api == "openai_responses":
        assert (
            "10485761 characters are more than the 10485760"
            in str(OpenAIResponses.request(transcript))[-1000:]
        )


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("api", sorted(APIS))
@pytest.mark.parametrize(
    "part",
    [
        ImagePart(b"x" * 16_000_000, "image/png"),
        ImagePart(url="https://x.org/" + "a" * MAX_IMAGE_URL),
        FilePart(b"x" * 56_000_000, "application/pdf", filename="big.pdf"),
        FilePart(b"x" * 34_000_000, "text/plain", filename="big.txt"),
    ],
    ids=["image", "url", "pdf", "text"],
)
def test_k7_an_image_or_a_file_that_is_too_big_is_said_in_text(part: Part, api: str) -> None:
    transcript = with_result("openai_chat", (part,))
    transcript.push_user(["see", part])
    assert refused(api, transcript) == []


@pytest.mark.parametrize("source", sorted(APIS))
def test_k7_more_calls_than_a_message_of_chat_takes_are_sent_in_several(source: str) -> None:
    session = Session()
    session.push_user("look")
    calls = [(f"c{n}", "{}") for n in range(300)]
    committed(session, source, calls, [(f"seen {n}", "ok") for n in range(300)])
    for api in APIS:
        assert refused(api, session.transcript) == []
    messages = OpenAIChat.request(session.transcript)["messages"]
    assert [len(m["tool_calls"]) for m in messages if m["role"] == "assistant"] == [128, 128, 44]
    assert [m["content"] for m in messages if m["role"] == "tool"] == [
        f"seen {n}" for n in range(300)
    ]


# --- what is said instead -------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", [a for a, _ in APIS.values()], ids=list(APIS))
@pytest.mark.parametrize(
    "part",
    [
        ImagePart(b"II*", "image/tiff"),
        FilePart(b"ID3", "audio/mpeg", filename="a.mp3"),
        FilePart(b"mp4", "video/mp4"),
        FilePart(url="https://x.org/a.mp3"),
        ImagePart(url="ftp://x.org/a.png"),
        ImagePart(b"", "image/png"),
    ],
    ids=repr,
)
def test_k7_what_no_api_takes_is_named_in_results_and_messages(adapter: Any, part: Any) -> None:
    transcript = with_result("openai_chat", (TextPart("here"), part))
    transcript.push_user(["see", part])
    body = str(adapter.request(transcript))
    assert body.count("left out") == 2
    assert (part.media_type or part.url) in body


LONG = "A" * 100_000


@pytest.mark.parametrize("api", sorted(ADAPTERS))
@pytest.mark.parametrize(
    "part",
    [
        ImagePart(url=f"ftp://x.org/{LONG}"),
        FilePart(url=f"data:application/x-sqlite3;base64,{LONG}"),
        FilePart(b"x", f"application/{LONG}", filename=LONG),
    ],
    ids=["address", "data URL", "name"],
)
def test_k7_what_is_left_out_is_named_in_a_few_words(part: Part, api: str) -> None:
    transcript = with_result("openai_chat", (part,))
    transcript.push_user(["see", part])
    body = json.dumps(ADAPTERS[api].request(transcript))
    assert body.count("left out: ") == 2
    assert len(body) < 2_500


def test_k7_a_data_url_is_read_where_the_api_takes_no_such_address() -> None:
    pixel = base64.b64encode(b"\x89PNG").decode()
    transcript = Transcript()
    transcript.push_user([ImagePart(url=f"data:image/png;base64,{pixel}")])
    source = AnthropicMessages.request(transcript)["messages"][0]["content"][0]["source"]
    assert source == {"type": "base64", "media_type": "image/png", "data": pixel}


def test_k7_a_file_of_text_is_written_out_on_chat_which_takes_pdf_alone() -> None:
    transcript = Transcript()
    transcript.push_user([FilePart(b"a,b\n1,2", "text/csv", filename="t.csv")])
    assert OpenAIChat.request(transcript)["messages"][0]["content"] == [
        {"type": "text", "text": "[file t.csv, text/csv]\na,b\n1,2"}
    ]
    item = OpenAIResponses.request(transcript)["input"][0]["content"][0]
    assert item == {
        "type": "input_file",
        "filename": "t.csv",
        "file_data": "data:text/csv;base64,YSxiCjEsMg==",
    }


def test_k7_results_without_parts_are_empty_texts() -> None:
    transcript = Transcript()
    transcript.push_user("look")
    transcript.append_turn(
        answer("openai_responses", [("c1", "{}")]), ToolResults((ResultBlock("c1", "look", ()),))
    )
    assert OpenAIResponses.request(transcript)["input"][2]["output"] == ""
