"""Repairs of Converse, one by one: what is proposed, and what becomes of the history."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest
from composed import PNG

from lutumpy import Transcript
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.bedrock import messages
from lutumpy.doctor.bedrock.spelling import ConverseSpelling
from lutumpy.doctor.writing import (
    INTERRUPTED,
    Editor,
    mend_calls_last_of,
    mend_order_of,
    mend_reasoning_first_of,
)
from lutumpy.errors import Problem
from lutumpy.models import Api
from lutumpy.rules.bedrock.catalogue import is_vendor_only
from lutumpy.rules.bedrock.wire import WIRE

API = "bedrock_converse"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"
Json = dict[str, Any]
ASK: Json = {"role": "user", "content": [{"text": "Weather?"}]}
TOLD: Json = {"role": "assistant", "content": [{"text": "Rain."}]}
MORE: Json = {"role": "user", "content": [{"text": "And now?"}]}
POINT: Json = {"cachePoint": {"type": "default"}}
HM: Json = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "S"}}}


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: Any, **more: Any) -> Json:
    return {"toolUse": {"toolUseId": call_id, "name": "f", "input": {}, **more}}


def result(call_id: Any, *content: Any, **more: Any) -> Json:
    shown = list(content) or [{"text": "ok"}]
    return {"toolResult": {"toolUseId": call_id, "content": shown, **more}}


def mended(history: list[Any], **options: Any) -> tuple[list[str], list[Any]]:
    """The kinds of the repairs, and the history after them."""
    before = copy.deepcopy(history)
    repairs = propose_repairs(API, history, **options)
    after = apply_repairs(history, repairs)
    assert history == before
    assert propose_repairs(API, after, **options) == []
    return [repair.kind for repair in repairs], after


def foreign(kind: str, media_type: str, data: str, form: str = "base64", **more: Any) -> Json:
    """A block of Messages that shows something."""
    return {"type": kind, "source": {"type": form, "media_type": media_type, "data": data}, **more}


# ------------------------------------------------------------------ blocks


@pytest.mark.parametrize(
    ("block", "written", "kind"),
    [
        ("x", [{"text": "x"}], "set_content"),
        (None, [], "drop_empty"),
        ({"text": "x", "extra": 1}, [{"text": "x"}], "set_content"),
        ({"text": "x", **POINT}, [{"text": "x"}, POINT], "set_content"),
        ({"type": "text", "text": "x"}, [{"text": "x"}], "set_content"),
        ({"type": "output_text", "text": "x"}, [{"text": "x"}], "set_content"),
        ({"type": "thinking", "thinking": "Hm.", "signature": "S"}, [], "drop_reasoning"),
        (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            [{"image": {"format": "png", "source": {"bytes": PNG}}}],
            "set_content",
        ),
        (
            foreign("document", "application/pdf", "JVBERi0=", title="a.b"),
            [{"document": {"format": "pdf", "name": "a b", "source": {"bytes": "JVBERi0="}}}],
            "set_content",
        ),
        (
            foreign("document", "text/plain", "hi", "text"),
            [{"document": {"format": "txt", "name": "document", "source": {"text": "hi"}}}],
            "set_content",
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}},
            [{"text": "[image left out: https://example.org/x.png]"}],
            "set_content",
        ),
        (
            foreign("document", "application/zip", "aaaa"),
            [{"text": "[file left out: application/zip, 3 bytes]"}],
            "set_content",
        ),
        (
            foreign("image", "image/tiff", "aaaa"),
            [{"text": "[image left out: image/tiff, 3 bytes]"}],
            "set_content",
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "aaaa", "format": "mp3"}},
            [{"text": "[audio left out]"}],
            "set_content",
        ),
    ],
)
def test_a_block_that_is_none_is_written_as_one(block: Any, written: list[Json], kind: str) -> None:
    kinds, after = mended([user({"text": "See:"}, block), TOLD, MORE])
    assert kind in kinds
    assert after[0]["content"] == [{"text": "See:"}, *written]


@pytest.mark.parametrize(
    "block", [{"banana": 1}, {"searchResult": {"source": 1, "title": "t", "content": []}}]
)
def test_what_nobody_can_read_is_left_for_you(block: Json) -> None:
    history = [user({"text": "?"}, block)]
    assert mended(history) == ([], history)
    assert check_messages(API, history) != []


def test_parts_of_results_are_mended_as_blocks_are() -> None:
    odd = ["x", {"type": "text", "text": "y"}, {"text": 7}, {"text": ""}, {"json": [1]}]
    history = [ASK, assistant(use("a")), user(result("a", *odd))]
    _, after = mended(history)
    assert after[2]["content"][0]["toolResult"]["content"] == [
        {"text": "x"},
        {"text": "y"},
        {"text": "7"},
        {"json": {"result": [1]}},
    ]


def test_one_bad_name_becomes_one_good_name() -> None:
    calls = [use("a", name="a.b"), use("b", name="a.b"), use("c", name="a_b"), use("d", name="")]
    answers = [result(call_id) for call_id in "abcd"]
    _, after = mended([ASK, assistant(*calls), user(*answers)])
    names = [block["toolUse"]["name"] for block in after[1]["content"]]
    assert names[0] == names[1] != names[2] == "a_b"


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("message", "kind", "content"),
    [
        ({"role": "user", "content": "x"}, "set_content", [{"text": "x"}]),
        ({"role": "user", "content": {"text": "x"}}, "set_content", [{"text": "x"}]),
        (
            {"role": "user", "content": {"type": "text", "text": "x"}},
            "set_content",
            [{"text": "x"}],
        ),
        ({"role": "user", "content": 7}, "set_content", [{"text": "7"}]),
        ({"role": "user", "content": None}, "drop_empty", None),
        ({"role": "user", "content": " "}, "drop_empty", None),
        ({"role": "user", "content": []}, "drop_empty", None),
        ({"role": "human", "content": [{"text": "x"}]}, "set_role", [{"text": "x"}]),
    ],
)
def test_a_message_is_put_into_its_form(message: Json, kind: str, content: Any) -> None:
    kinds, after = mended([ASK, TOLD, message])
    assert kind in kinds
    assert after[2:] == ([{"role": "user", "content": content}] if content else [])


def test_the_only_message_is_never_dropped() -> None:
    assert mended([{"role": "user", "content": []}])[0] == []


def test_a_role_is_read_from_the_blocks() -> None:
    history: list[Any] = [
        ASK,
        {"content": [use("a")]},
        {"content": [result("a")]},
        {"content": [HM]},
    ]
    _, after = mended(history)
    assert [message["role"] for message in after] == ["user", "assistant", "user", "assistant"]
    assert mended([{"content": [{"text": "x"}]}])[0] == []


def test_neighbours_become_one_and_what_stands_between_them_stays() -> None:
    history = [ASK, MORE, TOLD, {"role": "system", "content": [{"text": "s"}]}, TOLD, MORE]
    _, after = mended(history)
    assert [message["role"] for message in after] == ["user", "assistant", "system", "user"]
    assert [block["text"] for block in after[0]["content"]] == ["Weather?", "And now?"]


def test_three_in_a_row_become_one() -> None:
    kinds, after = mended([ASK, MORE, ASK, None, MORE, TOLD, MORE])
    assert set(kinds) == {"drop_empty", "move_content"}
    assert [len(message["content"]) for message in after] == [4, 1, 1]
    odd = [user({"text": "?"}), {"role": "user", "content": 7}]
    assert mended(odd)[1] == [user({"text": "?"}, {"text": "7"})]


def test_system_messages_are_written_as_the_users_when_asked_for() -> None:
    history = [ASK, TOLD, {"role": "system", "content": [{"text": "Be brief."}]}]
    assert mended(history)[0] == []
    kinds, after = mended(history, thorough=True)
    assert kinds == ["set_role"]
    assert after[2] == user({"text": "<system>\nBe brief.\n</system>"})


# ------------------------------------------------------------------- pairing


def test_a_call_that_nobody_answered_is_closed() -> None:
    kinds, after = mended([ASK, assistant(use("a"), use("b")), user(result("b"), {"text": "?"})])
    assert kinds == ["close_call"]
    closed = {"toolUseId": "a", "content": [{"text": INTERRUPTED}], "status": "error"}
    assert after[2] == user({"toolResult": closed}, result("b"), {"text": "?"})


def test_late_results_come_first() -> None:
    kinds, after = mended([ASK, assistant(use("a")), user({"text": "?"}, result("a"))])
    assert kinds == ["move_result"]
    assert after[2] == user(result("a"), {"text": "?"})


def test_parallel_calls_in_messages_of_their_own_keep_their_results() -> None:
    history = [ASK, assistant(use("a")), assistant(use("b")), user(result("a"), result("b"))]
    kinds, after = mended(history)
    assert set(kinds) == {"move_result"}
    assert after == [
        ASK,
        assistant(use("a")),
        user(result("a")),
        assistant(use("b")),
        user(result("b")),
    ]


def test_results_of_one_turn_are_gathered_in_one_message() -> None:
    history = [ASK, assistant(use("a"), use("b")), user(result("a")), user(result("b")), TOLD, MORE]
    _, after = mended(history)
    assert after == [ASK, assistant(use("a"), use("b")), user(result("a"), result("b")), TOLD, MORE]


def test_reasoning_and_calls_of_the_user_are_not_the_users() -> None:
    kinds, after = mended([ASK, assistant(use("a")), user(result("a"), HM)])
    assert kinds == ["drop_reasoning"]
    assert after[2] == user(result("a"))
    kinds, after = mended([ASK, TOLD, user(use("a")), user(result("a"))])
    assert kinds[0] == "set_role"
    assert after == [ASK, assistant({"text": "Rain."}, use("a")), user(result("a"))]
    kinds, after = mended([user({"text": "?"}, use("a")), assistant(use("a")), user(result("a"))])
    assert kinds == ["drop_duplicate"]
    assert after == [user({"text": "?"}), assistant(use("a")), user(result("a"))]


def test_results_without_an_id_go_by_their_place() -> None:
    nameless = result("x")
    del nameless["toolResult"]["toolUseId"]
    kinds, after = mended([ASK, assistant(use("a")), user(nameless)])
    assert kinds == ["match_result"]
    assert after[2] == user(result("a"))
    history = [ASK, assistant(use("a")), user(result("a"), copy.deepcopy(nameless))]
    assert mended(history)[0] == ["drop_result"]


def test_calls_with_numbers_and_without_ids_get_some() -> None:
    calls = assistant(use(7), use(None))
    _, after = mended([ASK, calls, user(result(7), result(None))])
    ids = [block["toolUse"]["toolUseId"] for block in after[1]["content"]]
    assert ids == [block["toolResult"]["toolUseId"] for block in after[2]["content"]]
    assert ids[0] == "7"


def test_an_id_of_two_calls_is_changed_with_its_own_result() -> None:
    twice = "not an id"
    calls, answers = assistant(use(twice), use(twice)), user(result(twice), result(twice))
    _, after = mended([ASK, calls, answers])
    ids = [block["toolUse"]["toolUseId"] for block in after[1]["content"]]
    assert len(set(ids)) == 2
    assert ids == [block["toolResult"]["toolUseId"] for block in after[2]["content"]]


# --------------------------------------------------------------------- order


def test_results_get_the_order_of_their_calls_when_asked_for() -> None:
    history = [ASK, assistant(use("a"), use("b"), use("c")), user(*map(result, "cab"))]
    assert mended(history)[0] == []
    kinds, after = mended(history, thorough=True)
    assert kinds == ["move_result"]
    assert after[2] == user(*map(result, "abc"))


def test_text_behind_calls_goes_before_them_when_asked_for() -> None:
    history = [ASK, assistant(use("a"), {"text": "x"}, use("b")), user(result("a"), result("b"))]
    kinds, after = mended(history, thorough=True)
    assert kinds == ["move_content"]
    assert after[1] == assistant({"text": "x"}, use("a"), use("b"))
    kept = [ASK, assistant(use("a"), HM), user(result("a"))]
    assert mended(kept, thorough=True)[0] == []


def test_reasoning_goes_to_the_start_of_a_turn_with_a_budget() -> None:
    history = [ASK, assistant({"text": "x"}, HM, use("a")), user(result("a"))]
    kinds, after = mended(history, thinking="enabled", model=CLAUDE)
    assert kinds == ["move_content"]
    assert after[1] == assistant(HM, {"text": "x"}, use("a"))
    lost = [ASK, assistant({"text": "x"}, use("a")), user(result("a"))]
    assert mended(lost, thinking="enabled", model=CLAUDE)[0] == []


def test_unsigned_reasoning_is_left_out_for_claude() -> None:
    unsigned = {"reasoningContent": {"reasoningText": {"text": "Hm."}}}
    history = [ASK, assistant(unsigned, {"text": "Rain."}), MORE]
    assert mended(history)[0] == []
    assert mended(history, model=CLAUDE) == (["drop_reasoning"], [ASK, TOLD, MORE])


# --------------------------------------------------------------------- media


@pytest.mark.parametrize(
    ("given", "data", "form"),
    [
        ("image/png", PNG, "png"),
        ("jpg", "aaaa", "jpeg"),
        ("tiff", base64.b64encode(b"\xff\xd8\xff" + b"x" * 20).decode(), "jpeg"),
        (None, PNG, "png"),
        ("tiff", "aaaa", None),
    ],
)
def test_an_image_gets_the_format_that_it_has(given: Any, data: str, form: str | None) -> None:
    history = [user({"text": "?"}, {"image": {"format": given, "source": {"bytes": data}}})]
    kinds, after = mended(history)
    assert kinds == ([] if form is None else ["set_field"])
    assert after[0]["content"][1]["image"]["format"] == (form or given)


@pytest.mark.parametrize(
    ("given", "form"),
    [
        ("application/pdf", "pdf"),
        ("text/plain; charset=utf-8", "txt"),
        ("htm", "html"),
        ("zip", ""),
    ],
)
def test_a_document_gets_the_apis_name_for_its_format(given: str, form: str) -> None:
    document = {"format": given, "name": "a", "source": {"bytes": "aaaa"}}
    kinds, after = mended([user({"text": "?"}, {"document": document})])
    assert kinds == (["set_field"] if form else [])
    assert after[0]["content"][1]["document"]["format"] == (form or given)


def test_a_document_stands_beside_a_text() -> None:
    document = {"document": {"format": "pdf", "name": "a", "source": {"bytes": "aaaa"}}}
    assert mended([user(document)])[1] == [user({"text": "[document]"}, document)]
    _, after = mended([ASK, assistant(use("a")), user(result("a"), document)])
    assert after[2] == user(result("a"), {"text": "[document]"}, document)


def test_files_go_behind_the_results_for_nova() -> None:
    place = {"s3Location": {"uri": "s3://bucket-a/x.pdf"}}
    document = {"document": {"format": "pdf", "name": "a", "source": place}}
    history = [ASK, assistant(use("a"), use("b")), user(result("a", document), result("b"))]
    kinds, after = mended(history, model=NOVA)
    assert kinds == ["move_content", "set_content"]
    moved = result("a", {"text": "What the tool gave stands behind the results."})
    assert after[2] == user(moved, result("b"), {"text": "[document]"}, document)


# ------------------------------------------------------------- other APIs


def test_what_it_shows_is_read_by_other_apis() -> None:
    """A history of Converse goes on with Messages."""
    shown = [
        {"text": "See:"},
        {"json": {"a": 1}},
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/x"}}}},
        {"document": {"format": "pdf", "name": "a", "source": {"bytes": "JVBERi0="}}},
        {"document": {"format": "txt", "name": "a", "source": {"text": "hi"}}},
        {"document": {"name": "a", "source": {}}},
        {"document": 7},
    ]
    history = [
        {"role": "user", "content": "Weather?"},
        assistant(HM, use("a", input={"x": 1})),
        user(result("a", *shown, status="error")),
        {"role": "user", "content": "Go on."},
    ]
    repairs = propose_repairs("anthropic_messages", history)
    after = apply_repairs(history, repairs)
    assert after[1]["content"] == [{"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]
    answer = after[2]["content"][0]
    assert (answer["type"], answer["is_error"]) == ("tool_result", True)
    words = str(after)
    for said in ("See:", '{"a":1}', "s3://b/x"):
        assert said in words
    assert propose_repairs("anthropic_messages", after) == []


def test_what_other_apis_say_is_written_as_it_does() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    history: list[Any] = [
        ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        TOLD,
        MORE,
        assistant({"type": "tool_use", "id": "b", "name": "f", "input": {}}),
        user({"type": "tool_result", "tool_use_id": "b", "is_error": True}),
    ]
    kinds, after = mended(history)
    assert set(kinds) == {"convert_message"}
    empty = {"toolResult": {"toolUseId": "a", "content": []}}
    said = [{"text": "The tool failed and said nothing."}]
    failed = {"toolResult": {"toolUseId": "b", "content": said, "status": "error"}}
    assert after == [
        ASK,
        assistant(use("a", input={"x": 1})),
        user(empty),
        TOLD,
        MORE,
        assistant(use("b")),
        user(failed),
    ]


# ------------------------------------------------------------------ solved meanwhile


def problem_at(*path: Any) -> Problem:
    return Problem("a.rule", "here", "wrong", "refused", path=path)


def test_a_problem_that_another_repair_has_solved_is_left() -> None:
    history = [ASK, assistant(use("a"), use("b")), user(result("a"), result("b"))]
    editor = Editor(copy.deepcopy(history))
    messages.mend_content(editor, problem_at(0, "content"))
    messages.join_neighbours(editor, [problem_at(1), problem_at(0), problem_at("x")])
    mend_order_of(WIRE)(editor, [problem_at(2), problem_at("x"), problem_at(7)])
    mend_reasoning_first_of(WIRE, ("reasoningContent",))(editor, [problem_at(1), problem_at("x")])
    assert (editor.repairs, editor.document) == ([], history)


def test_neighbours_without_blocks_are_left_for_the_next_pass() -> None:
    history = [ASK, {"role": "user", "content": "words"}]
    editor = Editor(copy.deepcopy(history))
    messages.join_neighbours(editor, [problem_at(1)])
    assert (editor.repairs, editor.document) == ([], history)


def test_blocks_that_stand_before_the_calls_stay() -> None:
    history = [ASK, assistant({"text": "I look."}, use("a"), {"image": {}})]
    editor = Editor(copy.deepcopy(history))
    mend_calls_last_of(WIRE)(editor, [problem_at(1), problem_at(0), problem_at("x")])
    assert editor.repairs == []


def test_a_group_of_nothing_is_no_message() -> None:
    assert ConverseSpelling().write_group("results", []) == []


def test_other_hosts_take_what_only_bedrock_refuses() -> None:
    unknown = Problem("converse.odd", "here", "Unknown parameter x", "refused")
    assert is_vendor_only(unknown)
    assert is_vendor_only(Problem("no.such.rule", "here", "wrong", "refused"))
    assert not is_vendor_only(Problem("converse.body", "", "wrong", "refused"))


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (5, [{"text": "5"}]),
        ("ok", [{"text": "ok"}]),
        ("", []),
        (None, []),
        ({"text": "ok"}, [{"text": "ok"}]),
        ({"found": 1}, [{"json": {"found": 1}}]),
    ],
)
def test_the_content_of_a_result_becomes_a_list(given: Any, written: list[Json]) -> None:
    told = {"toolResult": {"toolUseId": "a", "content": given}}
    kinds, after = mended([ASK, assistant(use("a")), user(told)])
    assert kinds == ["set_content"]
    assert after[2]["content"][0]["toolResult"]["content"] == written


@pytest.mark.parametrize("key", ["text", "image", "toolUse", "toolResult", "cachePoint", "json"])
def test_a_block_whose_keys_are_all_null_goes(key: str) -> None:
    null: Json = {key: None, "document": None}
    told_result = result("a", {"text": "ok"}, null)
    history = [ASK, assistant({"text": "Wait."}, null, use("a")), user(told_result, null)]
    mended = apply_repairs(history, propose_repairs(API, history))
    assert mended == [ASK, assistant({"text": "Wait."}, use("a")), user(result("a"))]
    assert propose_repairs(API, mended) == []


def test_a_block_keeps_the_one_key_that_is_not_null() -> None:
    history = [user({"text": "Weather?", "image": None, "toolUse": None})]
    assert propose_repairs(API, history) == []


# ---------------------------------------------------- bytes, as SDKs take them

PNG_SOURCE: Json = {"type": "base64", "media_type": "image/png"}
SHOWN_BYTES: list[Any] = [
    {"text": "Look."},
    {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n"}}},
]


def test_bytes_of_boto3_are_no_problem_and_stay_bytes() -> None:
    """In what no repair touches, and in what one moves; the messages go back to boto3."""
    sealed = {"reasoningContent": {"redactedContent": b"\xff\x01"}}
    history = [user(*SHOWN_BYTES), assistant(sealed, use("a")), user(result("a", SHOWN_BYTES[1]))]
    assert check_messages("bedrock_converse", history) == []
    assert propose_repairs("bedrock_converse", history, thorough=True) == []
    assert apply_repairs(history, []) == history

    repairs = propose_repairs("bedrock_converse", [user(*SHOWN_BYTES), *history])
    assert repairs[0].kind == "move_content"
    json.dumps([repair.patch for repair in repairs])
    (asked, *rest) = apply_repairs([user(*SHOWN_BYTES), *history], repairs)
    assert asked == user(*SHOWN_BYTES, *SHOWN_BYTES)
    assert rest == history[1:]
    ours = BedrockConverse.request(
        Transcript.from_messages("bedrock_converse", history), blobs="bytes"
    )
    assert check_messages("bedrock_converse", ours["messages"], before=ours) == []


def test_bytes_where_no_sdk_takes_them_are_refused() -> None:
    for blocks in (
        [{"text": b"x"}],
        [{"toolUse": {"toolUseId": "a", "name": "f", "input": {"bytes": b"x"}}}],
    ):
        found = check_messages("bedrock_converse", [ASK, assistant(*blocks)])
        assert found[0].rule == "converse.encoding"


@pytest.mark.parametrize(
    ("api", "message", "place"),
    [
        (
            "gemini_generate_content",
            {"parts": [{"inlineData": {"mimeType": "image/png", "data": b"\x89PNG"}}]},
            ("parts", 0, "inlineData", "data"),
        ),
        ("ollama_chat", {"role": "user", "content": "", "images": [b"\x89PNG"]}, ("images", 0)),
        (
            "anthropic_messages",
            user({"type": "image", "source": {**PNG_SOURCE, "data": b"\x89PNG"}}),
            ("content", 0, "source", "data"),
        ),
    ],
)
def test_bytes_become_base64_where_an_api_has_that(
    api: Api, message: Json, place: tuple[Any, ...]
) -> None:
    repairs = propose_repairs(api, [message])
    assert [repair.kind for repair in repairs] == ["replace_characters"]
    node: Any = apply_repairs([message], repairs)[0]
    for key in place:
        node = node[key]
    assert node == "iVBORw=="
