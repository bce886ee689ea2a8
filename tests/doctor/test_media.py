"""Media types, cache marks, status of items, what an assistant shows: mended, or left for you."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from composed import PNG
from test_mixed import IMAGE, IMAGE_URL, PDF, TEXT, call, said, use
from test_mutations import Client
from test_repairs import MORE, USER, Json, mended, output, result

from lutumpy.doctor import check_messages, propose_repairs
from lutumpy.errors import Problem
from lutumpy.models import Api
from lutumpy.rules.media import data_type
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.writing import image_type, type_of_bytes
from lutumpy.testing import serve

WORDS = "aGVsbG8="  # hello


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serve(None) as server:
        made = Client(server)
        yield made
        made.connection.close()


def image(media_type: Any, data: str = PNG) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def document(media_type: Any, data: str, form: str = "base64") -> Json:
    return {"type": "document", "source": {"type": form, "media_type": media_type, "data": data}}


def file(media_type: str, data: str) -> Json:
    return {
        "type": "file",
        "file": {"filename": "a", "file_data": f"data:{media_type};base64,{data}"},
    }


def shown(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def seen(url: str) -> Json:
    return {"type": "input_image", "image_url": url}


PLAIN = document("text/plain", "hello", "text")
JPEG = "/9j/AAAA"
DATA_URL = f"data:image/png;base64,{PNG}"
MENDED: list[tuple[Api, str, Json, Json]] = [
    ("anthropic_messages", "set_field", image("image/jpg", JPEG), image("image/jpeg", JPEG)),
    ("anthropic_messages", "set_field", image("image/tiff"), IMAGE),
    ("anthropic_messages", "set_field", image(None), IMAGE),
    ("anthropic_messages", "set_field", image("image/pjpeg", "AAAA"), image("image/jpeg", "AAAA")),
    (
        "anthropic_messages",
        "set_field",
        document("application/octet-stream", "JVBERi0="),
        document("application/pdf", "JVBERi0="),
    ),
    ("anthropic_messages", "set_field", document("text/html", "hello", "text"), PLAIN),
    ("anthropic_messages", "set_content", document("text/markdown; charset=utf-8", WORDS), PLAIN),
    ("anthropic_messages", "set_content", document("application/json", WORDS), PLAIN),
    (
        "openai_chat",
        "set_content",
        shown("data:application/pdf;base64,JVBERi0="),
        {
            "type": "file",
            "file": {"filename": "file.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        },
    ),
    ("openai_chat", "set_content", file("image/png", PNG), shown(f"data:image/png;base64,{PNG}")),
    (
        "openai_chat",
        "set_content",
        file("image/tiff", JPEG),
        shown(f"data:image/jpeg;base64,{JPEG}"),
    ),
    (
        "openai_responses",
        "set_content",
        seen("data:application/pdf;base64,JVBERi0="),
        {
            "type": "input_file",
            "filename": "file.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0=",
        },
    ),
    (
        "openai_responses",
        "set_content",
        seen(f"data:text/plain;base64,{WORDS}"),
        {"type": "input_text", "text": "hello"},
    ),
    (
        "openai_responses",
        "set_content",
        {"type": "input_file", "filename": "a.jpg", "file_data": f"data:image/jpg;base64,{JPEG}"},
        seen(f"data:image/jpeg;base64,{JPEG}"),
    ),
    # An image of another type than it states, and bytes in a data URL [reported].
    ("anthropic_messages", "set_field", image("image/png", JPEG), image("image/jpeg", JPEG)),
    (
        "anthropic_messages",
        "set_content",
        image("image/png", f"data:image/png;base64,{PNG}"),
        IMAGE,
    ),
    (
        "anthropic_messages",
        "set_content",
        document("application/pdf", "data:application/pdf;base64,JVBERi0="),
        document("application/pdf", "JVBERi0="),
    ),
    # Keys of another API.
    (
        "anthropic_messages",
        "drop_key",
        {"type": "image", "source": {"type": "url", "url": "https://x/a.png", "detail": "low"}},
        {"type": "image", "source": {"type": "url", "url": "https://x/a.png"}},
    ),
    # Each of OpenAI's APIs in the spelling of the other [reported].
    (
        "openai_chat",
        "set_content",
        {"type": "image_url", "image_url": "https://x/a.png"},
        shown("https://x/a.png"),
    ),
    (
        "openai_responses",
        "set_content",
        {"type": "input_image", "image_url": {"url": "https://x/a.png", "detail": "low"}},
        {"type": "input_image", "image_url": "https://x/a.png", "detail": "low"},
    ),
    (
        "openai_responses",
        "set_content",
        {"type": "input_image", "image_url": {"url": "https://x/a.png"}, "detail": "high"},
        {"type": "input_image", "image_url": "https://x/a.png", "detail": "high"},
    ),
    # A file without its name, or with an address for its data [reported].
    (
        "openai_chat",
        "set_content",
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}},
        {
            "type": "file",
            "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "file.pdf"},
        },
    ),
    (
        "openai_chat",
        "set_content",
        {"type": "file", "file": {"file_data": "JVBERi0=", "filename": "a.pdf"}},
        {
            "type": "file",
            "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
        },
    ),
    (
        "openai_responses",
        "set_content",
        {"type": "input_file", "file_data": "JVBERi0="},
        {
            "type": "input_file",
            "file_data": "data:application/pdf;base64,JVBERi0=",
            "filename": "file.pdf",
        },
    ),
    (
        "openai_responses",
        "set_content",
        {"type": "input_file", "file_data": f"data:text/plain;base64,{WORDS}"},
        {"type": "input_file", "file_data": f"data:text/plain;base64,{WORDS}", "filename": "file"},
    ),
    (
        "openai_responses",
        "set_content",
        {"type": "input_file", "file_data": "https://x/a.pdf", "filename": "a.pdf"},
        {"type": "input_file", "file_url": "https://x/a.pdf", "filename": "a.pdf"},
    ),
    # Bytes without `data:` before them [reported].
    ("openai_chat", "set_content", shown(PNG), shown(f"data:image/png;base64,{PNG}")),
    ("openai_responses", "set_content", seen(JPEG), seen(f"data:image/jpeg;base64,{JPEG}")),
]


@pytest.mark.parametrize(("api", "kind", "part", "wanted"), MENDED)
def test_a_type_that_the_name_or_the_bytes_show_is_set(
    api: Api, kind: str, part: Json, wanted: Json, client: Client
) -> None:
    history = [
        said(
            "user",
            TEXT if api != "openai_responses" else {"type": "input_text", "text": "See"},
            part,
        )
    ]
    status, message = client.send(api, history)
    assert status == 400
    assert message in [p.message for p in check_messages(api, history) if p.certainty == "refused"]
    kinds, after = mended(api, history)
    assert kinds == [kind]
    assert after[0]["content"][1] == wanted
    assert client.send(api, after) == (200, "")


@pytest.mark.parametrize(
    ("api", "rule", "part"),
    [
        ("anthropic_messages", "anthropic.image_type", image("image/tiff", "SUkqAA==")),
        ("anthropic_messages", "anthropic.image_type", image("text/plain", WORDS)),
        (
            "anthropic_messages",
            "anthropic.media_source",
            image("image/tiff") | {"source": {"type": "base64"}},
        ),
        ("anthropic_messages", "anthropic.document_type", document("application/zip", "UEsDBA==")),
        ("anthropic_messages", "anthropic.media_source", document("text/plain", "no base64!")),
        ("anthropic_messages", "anthropic.media_source", document("text/plain", "")),
        ("anthropic_messages", "anthropic.media_source", {"type": "image"}),
        ("anthropic_messages", "anthropic.media_source", {"type": "image", "source": "x"}),
        *[
            ("anthropic_messages", "anthropic.media_source", {"type": "image", "source": source})
            for source in (
                {"url": "https://x/a.png"},
                {"type": "text", "media_type": "text/plain", "data": "x"},
                {"type": "url", "url": None},
                {"type": "file", "file_id": 5},
                {"type": "base64", "media_type": "image/png", "data": "[image was removed]"},
                {"type": "base64", "media_type": "image/png", "data": "data:image/png;base64,"},
            )
        ],
        ("anthropic_messages", "anthropic.media_source", document("text/plain", [TEXT], "text")),
        (
            "anthropic_messages",
            "anthropic.media_source",
            {"type": "document", "source": {"type": "content", "content": 5}},
        ),
        ("anthropic_messages", "anthropic.block", {"type": "container_upload"}),
        ("openai_chat", "chat.media_source", {"type": "image_url", "image_url": 5}),
        ("openai_chat", "chat.media_source", {"type": "image_url", "image_url": {}}),
        ("openai_chat", "chat.media_source", shown("file:///a.png")),
        ("openai_chat", "chat.media_source", {"type": "image_url", "image_url": {"url": 5}}),
        ("openai_chat", "chat.media_source", {"type": "file", "file": "x"}),
        ("openai_chat", "chat.media_source", {"type": "file", "file": {"file_data": {}}}),
        ("openai_chat", "chat.media_source", {"type": "file", "file": {}}),
        ("openai_chat", "chat.media_source", {"type": "file", "file": {"filename": "a.pdf"}}),
        (
            "openai_chat",
            "chat.media_source",
            {"type": "file", "file": {"file_data": "https://x/a.pdf", "filename": "a.pdf"}},
        ),
        (
            "openai_responses",
            "responses.media_source",
            {"type": "input_file", "file_data": "[file was removed]", "filename": "a.pdf"},
        ),
        ("openai_responses", "responses.media_source", seen("[image was removed]")),
        ("openai_responses", "responses.media_source", {"type": "input_image", "image_url": {}}),
        ("openai_responses", "responses.media_source", {"type": "input_image", "file_id": {}}),
        (
            "openai_responses",
            "responses.media_source",
            {"type": "input_image", "file_id": "f" * 65},
        ),
        (
            "openai_responses",
            "responses.media_source",
            {"type": "input_file", "file_url": {"url": "https://x/a.pdf"}},
        ),
        ("openai_chat", "chat.image_type", shown("data:image/tiff;base64,SUkqAA==")),
        ("openai_chat", "chat.file_data", file("video/mp4", "AAAA")),
        (
            "openai_chat",
            "chat.audio_format",
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "ogg"}},
        ),
        ("openai_responses", "responses.image_type", seen("data:image/tiff;base64,SUkqAA==")),
        (
            "openai_responses",
            "responses.file_data",
            {"type": "input_file", "filename": "a.mp3", "file_data": "data:audio/mpeg;base64,AAAA"},
        ),
    ],
)
def test_what_has_to_be_converted_first_is_left_for_you(api: Api, rule: str, part: Json) -> None:
    history = [said("user", part)]
    assert [(p.rule, p.certainty) for p in check_messages(api, history)] == [(rule, "refused")]
    assert propose_repairs(api, history) == []


@pytest.mark.parametrize(
    ("api", "part"),
    [
        ("openai_chat", shown("https://x/a.tiff")),
        ("openai_chat", shown(f"data:image/jpg;base64,{JPEG}")),
        ("openai_chat", shown(f"data:image/tiff;base64,{PNG}")),
        ("openai_chat", {"type": "file", "file": {"file_id": "file-1"}}),
        ("openai_responses", seen(f"data:image/webp;base64,{PNG}")),
        ("anthropic_messages", PDF),
    ],
)
def test_what_openai_may_look_into_and_what_is_elsewhere_is_not_refused(
    api: Api, part: Json
) -> None:
    assert check_messages(api, [said("user", part)]) == []


@pytest.mark.parametrize(
    ("api", "part"),
    [
        ("openai_chat", shown("data:image/png;base64,")),
        ("openai_responses", seen("data:image/png;base64,")),
    ],
)
def test_an_image_without_a_byte_is_left_out(api: Api, part: Json, client: Client) -> None:
    kind = "text" if api == "openai_chat" else "input_text"
    history = [said("user", {"type": kind, "text": "See"}, part)]
    status, message = client.send(api, history)
    assert (status, "got empty base64-encoded bytes" in message) == (400, True)
    kinds, after = mended(api, history)
    assert (kinds, after[0]["content"]) == (["drop_empty"], history[0]["content"][:1])
    assert client.send(api, after) == (200, "")


def test_an_image_of_nothing_is_refused_by_some() -> None:
    history = [said("user", {"type": "input_image", "detail": "low"})]
    assert [(p.rule, p.certainty) for p in check_messages("openai_responses", history)] == [
        ("responses.media_source", "some")
    ]


def test_a_host_that_may_take_an_address_in_place_of_an_object_keeps_it() -> None:
    """Mistral does."""
    history = [said("user", {"type": "image_url", "image_url": "https://x/a.png"})]
    found = check_messages("openai_chat", history, compatible=True)
    assert [(p.rule, p.certainty) for p in found] == [("chat.media_source", "some")]
    assert propose_repairs("openai_chat", history, compatible=True) == []


def test_the_bytes_of_an_image_are_taken_out_of_a_data_url_before_their_type_is_set() -> None:
    history = [said("user", TEXT, image("image/png", f"data:image/png;base64,{JPEG}"))]
    kinds, after = mended("anthropic_messages", history)
    assert kinds == ["set_content", "set_field"]
    assert after[0]["content"][1] == image("image/jpeg", JPEG)


def test_a_text_that_openai_may_take_as_a_file_is_written_out_by_a_thorough_repair_only() -> None:
    history = [said("user", file("text/markdown", WORDS))]
    assert [(p.rule, p.certainty) for p in check_messages("openai_chat", history)] == [
        ("chat.file_data", "some")
    ]
    assert propose_repairs("openai_chat", history) == []
    _, after = mended("openai_chat", history, thorough=True)
    assert after == [said("user", {"type": "text", "text": "hello"})]
    unreadable = [said("user", file("text/markdown", "no base64!"))]
    assert propose_repairs("openai_chat", unreadable, thorough=True) == []
    data = f"data:application/x-yaml;base64,{WORDS}"
    history = [said("user", {"type": "input_file", "filename": "a.yaml", "file_data": data})]
    assert propose_repairs("openai_responses", history) == []
    _, after = mended("openai_responses", history, thorough=True)
    assert after == [said("user", {"type": "input_text", "text": "hello"})]


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
@pytest.mark.parametrize("kind", [[], {}, 5, None])
def test_a_type_that_is_no_text_is_left(api: Api, kind: Any) -> None:
    for role in ("user", "assistant"):
        history = [
            said(
                role, {"type": kind, "image_url": "x", "source": {"type": kind, "media_type": kind}}
            )
        ]
        assert propose_repairs(api, history) == []
    assert (
        propose_repairs(api, [said("user", {"type": kind}), {"type": kind, "tool_call_id": kind}])
        is not None
    )


def test_images_are_told_by_their_first_bytes() -> None:
    known = {
        PNG: "image/png",
        JPEG: "image/jpeg",
        "R0lGODlhAQ": "image/gif",
        "UklGRiQAAABXRUJQ": "image/webp",
    }
    assert {data: type_of_bytes(data) for data in known} == known
    assert type_of_bytes("UklGRiQAAABXQVZF") is None  # the same container, with sound in it
    assert data_type("data:Image/PNG;base64,") == "image/png"
    assert data_type(None) is None
    assert image_type("image/jpg") == "image/jpeg"


def test_an_image_inside_a_result_gets_its_type_as_well() -> None:
    history = [
        USER,
        said("assistant", use("a")),
        said("user", result("a", content=[image("image/jpg", JPEG)])),
    ]
    kinds, after = mended("anthropic_messages", history)
    assert kinds == ["set_field"]
    assert after[2]["content"][0]["content"] == [image("image/jpeg", JPEG)]


# ------------------------------------------------------- what an assistant shows

NOTE: Json = {"type": "text", "text": "[shown by the assistant's message]"}


@pytest.mark.parametrize(
    ("history", "wanted"),
    [
        (
            [USER, said("assistant", TEXT, IMAGE, PDF), MORE],
            [USER, said("assistant", TEXT), MORE, said("user", NOTE, IMAGE, PDF)],
        ),
        ([USER, said("assistant", IMAGE), MORE], [USER, MORE, said("user", NOTE, IMAGE)]),
        (
            [USER, said("assistant", IMAGE, use("a")), said("user", result("a"))],
            [
                USER,
                said("assistant", use("a")),
                said("user", result("a")),
                said("user", NOTE, IMAGE),
            ],
        ),
        (
            [USER, said("assistant", IMAGE), said("assistant", TEXT, PDF)],
            [USER, said("assistant", TEXT), said("user", NOTE, IMAGE, PDF)],
        ),
    ],
)
def test_images_of_an_assistants_message_become_the_users(
    history: list[Any], wanted: list[Any], client: Client
) -> None:
    assert client.send("anthropic_messages", history)[0] == 400
    kinds, after = mended("anthropic_messages", history)
    assert kinds == ["move_content"]
    assert after == wanted
    assert client.send("anthropic_messages", after) == (200, "")


def test_an_image_of_an_assistants_message_in_chat_is_shown_behind_the_results(
    client: Client,
) -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    history = [
        USER,
        said("assistant", IMAGE_URL) | {"tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": ""},
    ]
    kinds, after = mended("openai_chat", history)
    assert kinds == ["move_content"]
    assert [message["role"] for message in after] == ["user", "assistant", "tool", "user"]
    assert after[3]["content"][1] == IMAGE_URL
    assert client.send("openai_chat", after) == (200, "")


# ---------------------------------------------------------------- marks, status


def marked(**mark: Any) -> Json:
    return {**TEXT, "cache_control": mark}


SHORT = marked(type="ephemeral")


@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ([marked(type="persistent")], [TEXT]),
        ([{**TEXT, "cache_control": "ephemeral"}], [TEXT]),
        ([SHORT, marked(type="ephemeral", ttl="1h")], [SHORT, SHORT]),
        ([marked(type="ephemeral", ttl="1h"), SHORT], None),
        ([marked(type="ephemeral", ttl="2h")], [SHORT]),
        ([marked(type="ephemeral", ttl=None)], None),
        ([marked(type="ephemeral", until=1)], [TEXT]),
        ([marked(type="ephemeral", scope="global")], None),
    ],
)
def test_marks_that_the_api_does_not_know_go(
    blocks: list[Json], wanted: list[Json] | None, client: Client
) -> None:
    history = [said("user", *blocks)]
    assert client.send("anthropic_messages", history)[0] == (200 if wanted is None else 400)
    kinds, after = mended("anthropic_messages", history)
    assert after == [said("user", *(blocks if wanted is None else wanted))]
    assert set(kinds) <= {"drop_key"}
    assert client.send("anthropic_messages", after) == (200, "")


def test_a_mark_inside_a_result_is_looked_at_before_that_of_the_result(client: Client) -> None:
    inner = result("a", content=[SHORT]) | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    history = [USER, said("assistant", use("a")), said("user", inner)]
    (problem,) = check_messages("anthropic_messages", history)
    assert problem.path == (2, "content", 0, "cache_control", "ttl")
    _, after = mended("anthropic_messages", history)
    assert client.send("anthropic_messages", after) == (200, "")


def test_a_wrong_mark_in_system_is_told_and_left() -> None:
    options: dict[str, Any] = {
        "system": [marked(type="x")],
        "tools": [{"name": "f", "cache_control": 5}, "g"],
    }
    found = check_messages("anthropic_messages", [USER], **options)
    assert [p.path for p in found] == [
        ("tools", 0, "cache_control"),
        ("system", 0, "cache_control"),
    ]
    assert propose_repairs("anthropic_messages", [USER], **options) == []


@pytest.mark.parametrize("status", ["done", 5, ""])
def test_a_status_that_is_none_goes(status: Any, client: Client) -> None:
    history = [USER, {**call("a"), "status": status}, {**output("a"), "status": "completed"}]
    assert client.send("openai_responses", history)[0] == 400
    kinds, after = mended("openai_responses", history)
    assert (kinds, after) == (
        ["drop_key"],
        [USER, call("a"), {**output("a"), "status": "completed"}],
    )
    assert client.send("openai_responses", after) == (200, "")


SUMMARY = {"type": "summary_text", "text": "Hm."}


@pytest.mark.parametrize(
    ("summary", "wanted"),
    [
        ("Hm.", [SUMMARY]),
        (["Hm.", SUMMARY, 5, None, {"type": "summary_text"}], [SUMMARY, SUMMARY]),
        ([{"type": "text", "text": "Hm."}], [SUMMARY]),
        ([{"type": "summary_text", "text": ["Hm."]}], []),
    ],
)
def test_summaries_of_reasoning_are_texts(summary: Any, wanted: list[Json], client: Client) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": summary}
    history = [USER, reasoning, {**call("a"), "id": "fc_1"}, output("a")]
    assert client.send("openai_responses", history)[0] == 400
    kinds, after = mended("openai_responses", history)
    assert (kinds, after[1]["summary"]) == (["set_field"], wanted)
    assert client.send("openai_responses", after) == (200, "")


def test_a_status_of_reasoning_is_refused_by_some_and_null_by_none() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "status": "completed"}
    history = [USER, reasoning, {**call("a"), "id": "fc_1", "status": None}, output("a")]
    assert [(p.rule, p.certainty) for p in check_messages("openai_responses", history)] == [
        ("responses.status", "some")
    ]


# ------------------------------------------------------------------ parameters


def of_parameters(found: list[Problem]) -> dict[str, str]:
    return {p.position: p.certainty for p in found if p.rule.endswith("parameter_for_model")}


@pytest.mark.parametrize(
    ("model", "parameters", "expected"),
    [
        ("gpt-5-mini", {"stop": "x", "temperature": 1, "top_p": 1}, {"stop": "refused"}),
        ("gpt-5.2", {"stop": "x", "temperature": 0.5}, {"stop": "refused", "temperature": "some"}),
        ("gpt-5.2", {"temperature": 0.5, "reasoning_effort": "none"}, {}),
        ("gpt-5.4", {"stop": ["x"], "max_tokens": 5}, {"stop": "some", "max_tokens": "refused"}),
        ("gpt-5.5", {"stop": ["x"]}, {}),
        ("o3", {"stop": "x", "logprobs": True}, {"stop": "refused", "logprobs": "some"}),
        ("o3-mini", {"stop": "x"}, {"stop": "some"}),
        (
            "o4-mini-2025-04-16",
            {"stop": "x", "top_p": 0.5},
            {"stop": "refused", "top_p": "refused"},
        ),
        ("o1", {"max_tokens": 5}, {"max_tokens": "refused"}),
        ("gpt-5-chat-latest", {"stop": "x", "temperature": 0.5, "max_tokens": 5}, {}),
        ("gpt-5.1-chat-latest", {"temperature": 0.5}, {}),
        ("gpt-4o", {"stop": "x", "temperature": 0.5, "max_tokens": 5}, {}),
        ("openai/gpt-5", {"stop": "x"}, {}),
        (None, {"stop": "x"}, {}),
    ],
)
def test_reasoning_models_take_fewer_parameters(
    model: str | None, parameters: Json, expected: dict[str, str]
) -> None:
    body = {"model": model, "messages": [USER], **parameters}
    assert of_parameters(chat.check_request(body)) == expected
    elsewhere = of_parameters(chat.check_request(body, compatible=True))
    assert elsewhere == dict.fromkeys(expected, "some")


def test_responses_of_a_model_that_does_not_reason_take_a_temperature() -> None:
    body = {"model": "gpt-5.1", "input": "x", "temperature": 0.5, "reasoning": {"effort": "none"}}
    assert of_parameters(responses.check_request(body)) == {}
    assert of_parameters(responses.check_request({**body, "reasoning": {"effort": "low"}})) == {
        "temperature": "some"
    }
