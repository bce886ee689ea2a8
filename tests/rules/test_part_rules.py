"""The parts that a program writes for one API: what each API takes of them, and its words for what
it refuses (rule K3b).
"""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.rules.anthropic.limits import MAX_TITLE
from lutumpy.rules.anthropic.parts import check_part as check_for_messages
from lutumpy.rules.openai.chat.parts import check_part as check_for_chat
from lutumpy.rules.openai.parts import check_fields
from lutumpy.rules.openai.responses.parts import check_part as check_for_responses
from lutumpy.rules.part_fields import find_misfit, holds_address, holds_base64, holds_text

PDF = "data:application/pdf;base64,JVBERi0="
PNG = "data:image/png;base64,iVBORw0KGgo="
PAGE = "https://example.org/a"
CHAT, RESPONSES, CLAUDE = "messages[0].content[0]", "input[0].content[0]", "content.0"
MARK = {"mode": "explicit", "ttl": "12h"}


def chat(part: dict[str, Any]) -> list[str]:
    return [problem.message for problem in check_for_chat(part, "message")]


def responses(part: dict[str, Any]) -> list[str]:
    return [problem.message for problem in check_for_responses(part, "message")]


def claude(part: dict[str, Any], place: Any = "message") -> list[str]:
    return [problem.message for problem in check_for_messages(part, place)]


def wrong(where: str, got: str) -> list[str]:
    return [f"Invalid type for '{where}': expected what the API describes, but got {got} instead."]


# --- what a field holds ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [PAGE, "HTTP://e.org:80/?q#f", "https://[::1]/", "http://x"])
def test_an_http_address_is_an_address(value: str) -> None:
    assert holds_address(value)


@pytest.mark.parametrize(
    "value",
    [None, 3, "", "e.org", "ftp://e.org", "https://", "https:///x", "http://?q", "http://a b"],
)
def test_anything_else_is_no_address(value: Any) -> None:
    assert not holds_address(value)


def test_base64_holds_at_least_one_byte_and_nothing_foreign() -> None:
    assert holds_base64("AA==")
    for value in (None, b"AA==", "", "A", "AA=", "!!!!", "A A=", "é"):
        assert not holds_base64(value)


def test_a_text_says_something() -> None:
    assert holds_text(" x ")
    assert not any(holds_text(value) for value in (None, 3, "", " \n"))


def test_the_first_field_that_does_not_fit_is_named() -> None:
    def fit(value: dict[str, Any]) -> Any:
        return find_misfit(value, {"a": holds_text}, {"b": holds_text})

    assert fit({"type": "x", "a": "1", "b": "2"}) is None
    assert fit({"b": "2"}) == ("a", "missing")
    assert fit({"a": "", "b": "2"}) == ("a", "wrong")
    assert fit({"a": "1", "b": None}) == ("b", "wrong")
    assert fit({"a": "1", "c": "2", "b": None}) == ("c", "unknown")


# --- OpenAI ---------------------------------------------------------------------------------------


def test_the_words_for_a_field_are_those_of_openai() -> None:
    fields = {"note": ({"text": holds_text}, {"by": holds_text})}

    def said(**part: Any) -> list[str]:
        found = check_fields("chat.parts", "here", {"type": "note", **part}, fields)
        assert {problem.certainty for problem in found} <= {"refused"}
        return [problem.message for problem in found]

    assert said(text="x", by="y") == []
    assert said(by="y") == ["Missing required parameter: 'here.text'."]
    assert said(text="x", at="y") == ["Unknown parameter: 'here.at'."]
    assert said(text="x", by=3) == wrong("here.by", "an integer")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "x", "prompt_cache_breakpoint": MARK},
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": PAGE}},
        {"type": "image_url", "image_url": {"url": PAGE, "detail": "original"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
    ],
    ids=lambda part: part["type"],
)
def test_chat_takes_what_its_description_lists(part: dict[str, Any]) -> None:
    assert chat(part) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("text", " "),
        ("image_url", {"url": PAGE, "detail": "huge"}),
        ("image_url", {"url": PAGE, "type": "url"}),
        ("input_audio", {"data": "", "format": "wav"}),
        ("input_audio", {"data": "UklGRg==", "format": "wav", "type": "wav"}),
        ("file", {"file_data": f"{PDF}!", "filename": "a.pdf"}),
        ("file", {"file_data": PDF, "filename": "a.pdf", "type": "pdf"}),
        ("file", {"file_id": ""}),
        ("file", {"file_id": "file-1", "filename": "a.pdf"}),
        ("file", {"file_id": "file-1", "type": "pdf"}),
    ],
)
def test_chat_refuses_a_body_that_is_not_as_described(key: str, value: Any) -> None:
    kinds = {str: "a string", dict: "an object", list: "an array"}
    assert chat({"type": key, key: value}) == wrong(f"{CHAT}.{key}", kinds[type(value)])


@pytest.mark.parametrize(
    "mark",
    [
        True,
        {},
        {"mode": "implicit"},
        {"mode": "explicit", "ttl": "5m"},
        {"mode": "explicit", "x": 1},
    ],
)
def test_a_breakpoint_of_another_form_is_refused_by_both_of_openais_apis(mark: Any) -> None:
    key = "prompt_cache_breakpoint"
    got = "a boolean" if mark is True else "an object"
    assert chat({"type": "text", "text": "x", key: mark}) == wrong(f"{CHAT}.{key}", got)
    part = {"type": "input_text", "text": "x", key: mark}
    assert responses(part) == wrong(f"{RESPONSES}.{key}", got)


def test_a_field_that_openai_does_not_list_is_unknown() -> None:
    assert chat({"type": "text", "text": "x", "zzz": 1}) == [f"Unknown parameter: '{CHAT}.zzz'."]
    part = {"type": "input_text", "text": "x", "zzz": 1}
    assert responses(part) == [f"Unknown parameter: '{RESPONSES}.zzz'."]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_text", "text": "x", "prompt_cache_breakpoint": MARK},
        {"type": "input_image", "image_url": PNG, "detail": "original"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
        {"type": "input_file", "file_url": PAGE, "detail": "high"},
    ],
    ids=lambda part: part["type"],
)
def test_responses_takes_what_its_description_lists(part: dict[str, Any]) -> None:
    assert responses(part) == []


@pytest.mark.parametrize(
    ("part", "lacking"),
    [
        ({"type": "input_image"}, "image_url"),
        ({"type": "input_image", "image_url": PNG, "file_id": "file-1"}, "image_url"),
        ({"type": "input_file", "filename": "a.pdf"}, "file_data"),
        ({"type": "input_file", "file_id": "file-1", "file_url": PAGE}, "file_data"),
    ],
)
def test_responses_wants_one_source(part: dict[str, Any], lacking: str) -> None:
    assert responses(part) == [f"Missing required parameter: '{RESPONSES}.{lacking}'."]


def test_openai_wants_a_name_of_data() -> None:
    found = "Missing required parameter: '{}'."
    assert responses({"type": "input_file", "file_data": PDF}) == [found.format(RESPONSES)]
    assert chat({"type": "file", "file": {"file_data": PDF}}) == [
        found.format(f"{CHAT}.file.file_id")
    ]


def test_responses_refuses_addresses_and_details_of_another_form() -> None:
    image, file = {"type": "input_image"}, {"type": "input_file"}
    at = f"{RESPONSES}.image_url"
    assert responses({**image, "image_url": "https://e .org"}) == wrong(at, "a string")
    at = f"{RESPONSES}.detail"
    assert responses({**image, "file_id": "f", "detail": "huge"}) == wrong(at, "a string")
    assert responses({**file, "file_id": "f", "detail": "original"}) == wrong(at, "a string")


# --- Anthropic ------------------------------------------------------------------------------------

SHORT = {"type": "text", "media_type": "text/plain", "data": "All of it."}
DOCUMENT = {"type": "document", "source": SHORT}
FOUND = {
    "type": "search_result",
    "source": PAGE,
    "title": "Hours",
    "content": [{"type": "text", "text": "9 to 5."}],
}


def content(*blocks: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "content", "content": list(blocks)}}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "x", "citations": None, "cache_control": None},
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {
            "type": "image",
            "source": {"type": "file", "file_id": "file_1"},
            "transformations": {"oversized_image": "error"},
        },
        {"type": "container_upload", "file_id": "file_1"},
        {**DOCUMENT, "title": "x" * MAX_TITLE, "context": "c", "citations": {"enabled": True}},
        {**DOCUMENT, "title": None, "context": None, "citations": None},
        {"type": "document", "source": {"type": "content", "content": "All of it."}},
        content({"type": "image", "source": {"type": "url", "url": PAGE}}),
        {**FOUND, "citations": {"enabled": False}},
    ],
)
def test_messages_takes_what_its_description_lists(part: dict[str, Any]) -> None:
    assert claude(part) == []


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ({"type": "text", "text": "x", "citations": []}, "citations"),
        ({"type": "text", "text": "x", "cache_control": {"type": "lasting"}}, "cache_control"),
        ({"type": "image", "source": {"type": "url", "url": "e.org"}}, "source"),
        (
            {
                "type": "image",
                "source": {"type": "file", "file_id": "file_1"},
                "transformations": {"oversized_image": "crop"},
            },
            "transformations",
        ),
        (content(), "source"),
        (content("x"), "source"),
        (content(DOCUMENT), "source"),
        (content({"type": "text", "text": "x", "cache_control": None}), "source"),
        ({**DOCUMENT, "title": "x" * (MAX_TITLE + 1)}, "title"),
        ({**DOCUMENT, "title": ""}, "title"),
        ({**DOCUMENT, "context": " "}, "context"),
        ({**DOCUMENT, "citations": {"enabled": 1}}, "citations"),
        ({**FOUND, "content": [{"type": "text", "text": "x", "zzz": 1}]}, "content"),
        ({**FOUND, "citations": None}, "citations"),
        ({"type": "container_upload", "file_id": ""}, "file_id"),
    ],
)
def test_messages_refuses_a_field_that_is_not_as_described(part: dict[str, Any], key: str) -> None:
    where = f"{CLAUDE}.{part['type']}.{key}"
    assert claude(part) == [f"{where}: Input should be what the API describes"]


def test_messages_wants_a_reference_to_name_a_tool() -> None:
    part = {"type": "tool_reference", "tool_name": "look"}
    assert claude(part, "result") == []
    (said,) = claude({**part, "tool_name": "no name"}, "result")
    assert said.endswith("tool_name: Input should be what the API describes")


def test_a_kind_of_block_whose_fields_nobody_described_is_left_to_messages() -> None:
    part = {"type": "browser_state", "anything": [1]}
    assert claude(part, "result") == []
    assert "expected tags" in claude(part)[0]
