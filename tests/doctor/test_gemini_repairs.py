"""Repairs of generateContent, one by one: what is mended how, and what is left."""

from __future__ import annotations

import json
from typing import Any

import pytest
from composed import PNG, ROWS, Json
from test_repairs import mended

from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.gemini import calls, contents, order
from lutumpy.doctor.gemini.spelling import SPELLING
from lutumpy.doctor.pieces import Opaque
from lutumpy.doctor.writing import Editor, Media, Text
from lutumpy.errors import Problem
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE

API = "gemini_generate_content"
USER: Json = {"role": "user", "parts": [{"text": "Weather?"}]}
PICTURE: Json = {"inlineData": {"mimeType": "image/png", "data": PNG}}
FLASH = "gemini-3-flash-preview"


def called(*names: str, **more: Any) -> Json:
    parts: list[Json] = [{"functionCall": {"name": name, "args": {}, **more}} for name in names]
    parts[0]["thoughtSignature"] = "AAAA"
    return {"role": "model", "parts": parts}


def told(*names: str, **more: Any) -> Json:
    return {
        "role": "user",
        "parts": [{"functionResponse": {"name": n, "response": {}, **more}} for n in names],
    }


def kinds_and_parts(*contents: Any, at: int = -1) -> tuple[list[str], Any]:
    kinds, after = mended(API, [USER, *contents])
    return kinds, after[at]["parts"]


def test_ids_that_are_no_texts_become_texts_or_go() -> None:
    kinds, after = mended(API, [USER, called("a", id=5), told("a", id=5)])
    assert kinds == ["replace_id", "replace_id"]
    assert after[1]["parts"][0]["functionCall"]["id"] == "5"
    kinds, after = mended(API, [USER, called("a", id=[]), told("a")])
    assert kinds == ["drop_id"]
    assert "id" not in after[1]["parts"][0]["functionCall"]


def test_names_are_those_of_the_other_side() -> None:
    kinds, after = mended(API, [USER, called("a", "b"), told("", "b")])
    assert kinds == ["rename_tool"]
    assert after[2]["parts"][0]["functionResponse"]["name"] == "a"
    kinds, after = mended(API, [USER, called(""), told("")])
    assert set(kinds) == {"rename_tool"}
    assert after[1]["parts"][0]["functionCall"]["name"] == "unknown_tool"
    assert after[2]["parts"][0]["functionResponse"]["name"] == "unknown_tool"


def test_what_a_result_shows_is_put_into_a_form_that_the_api_takes() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    _, parts = kinds_and_parts(called("a"), told("a", parts=image))
    assert parts[0]["functionResponse"]["parts"] == [image]
    for odd in ("x", ["x"], [{"inlineData": 5}]):
        _, parts = kinds_and_parts(called("a"), told("a", parts=odd))
        assert "x" not in str(parts[0]["functionResponse"].get("parts", ""))
    kinds, parts = kinds_and_parts(called("a"), told("a", parts=[{**image, "type": "image"}]))
    assert kinds == ["drop_key"]
    assert parts[0]["functionResponse"]["parts"] == [image]


def test_bytes_that_nobody_can_read_are_left() -> None:
    for data in ("no base64!", "data:image/png,no", 5):
        history = [{"role": "user", "parts": [{"inlineData": {"mimeType": "x/y", "data": data}}]}]
        assert mended(API, history, thorough=True) == ([], history)
    film = {"inlineData": {"mimeType": "application/zip", "data": "AAAA"}}
    history = [{"role": "user", "parts": [film]}]
    assert mended(API, history, thorough=True) == ([], history)


def test_a_lost_signature_is_marked_for_the_models_that_ask_for_it() -> None:
    history = [USER, called("a", "b"), told("a", "b")]
    del history[1]["parts"][0]["thoughtSignature"]
    assert propose_repairs(API, history) == []
    repairs = propose_repairs(API, history, model=FLASH)
    assert [repair.kind for repair in repairs] == ["set_field"]
    after = apply_repairs(history, repairs)
    assert after[1]["parts"][0]["thoughtSignature"] == FOREIGN_SIGNATURE
    assert check_messages(API, after, model=FLASH) == []


def test_a_result_without_an_id_for_a_call_with_one_gets_it() -> None:
    kinds, parts = kinds_and_parts(called("a", id="x"), told("a"))
    assert (kinds, parts[0]["functionResponse"]["id"]) == (["match_result"], "x")
    kinds, parts = kinds_and_parts(called("a"), told("a", id="x"))
    assert kinds == ["match_result"]
    assert "id" not in parts[0]["functionResponse"]


def test_a_result_is_named_as_its_call_is() -> None:
    history = [USER, called("a", "b"), told("a", "c")]
    for number, (call, result) in enumerate(
        zip(history[1]["parts"], history[2]["parts"], strict=True)
    ):
        call["functionCall"]["id"] = result["functionResponse"]["id"] = f"i{number}"
    kinds, after = mended(API, history)
    assert kinds == ["set_field"]
    assert after[2]["parts"][1]["functionResponse"]["name"] == "b"


def test_results_behind_a_text_go_where_their_calls_are_and_others_are_left_out() -> None:
    history = [USER, called("a", "b"), USER, told("a", "c")]
    repairs = propose_repairs(API, history)
    for repair in repairs:
        assert repair.kind in ROWS[repair.rule].mending.repairs, repair
    assert "drop_result" in {repair.kind for repair in repairs}
    assert check_messages(API, apply_repairs(history, repairs)) == []


def test_results_in_several_contents_keep_their_places() -> None:
    history = [USER, called("a", "b"), told("b"), told("a")]
    assert mended(API, history, thorough=True) == ([], history)


def test_calls_among_the_users_words_go_into_a_content_of_the_model() -> None:
    mixed = {"role": "user", "parts": [{"text": "x"}, *called("a")["parts"]]}
    kinds, after = mended(API, [mixed, told("a")])
    assert kinds == ["move_call"]
    assert [content["role"] for content in after] == ["user", "model", "user"]
    mixed = {"role": "model", "parts": [*called("a")["parts"], *told("a")["parts"]]}
    kinds, after = mended(API, [USER, mixed, USER])
    assert kinds[0] == "move_result"
    assert [content["role"] for content in after][:3] == ["user", "model", "user"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_become_marked_words_of_the_user(role: str) -> None:
    for said in ({"content": "Be brief."}, {"parts": [{"text": "Be brief."}]}):
        _, after = mended(API, [{"role": role, **said}, USER])
        assert after[0] == {
            "role": "user",
            "parts": [{"text": "<system>\nBe brief.\n</system>"}],
        }


def test_an_empty_message_of_another_api_is_left_out() -> None:
    for content in (None, "", []):
        kinds, after = mended(API, [USER, {"role": "assistant", "content": content}])
        assert after == [USER]
        assert kinds[-1] == "drop_empty"


# ----------------------------------------------- between the spellings of APIs

CHAT_CALL: Json = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}


def test_calls_and_results_of_chat_become_parts_with_a_mark() -> None:
    history = [
        USER,
        {"role": "assistant", "content": "I look.", "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}]},
    ]
    kinds, after = mended(API, history)
    assert set(kinds) == {"convert_message", "rename_tool"}
    assert after[1] == {
        "role": "model",
        "parts": [
            {"text": "I look."},
            {
                "functionCall": {"id": "c1", "name": "a", "args": {}},
                "thoughtSignature": FOREIGN_SIGNATURE,
            },
        ],
    }
    assert after[2]["parts"][0]["functionResponse"] == {
        "id": "c1",
        "name": "a",
        "response": {"output": "rain"},
    }
    assert check_messages(API, after, model=FLASH) == []


def test_images_and_errors_of_messages_are_kept() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    address = {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}
    gif = {**image, "source": {**image["source"], "media_type": "image/gif"}}
    use = {"type": "tool_use", "id": "c1", "name": "a", "input": {}}
    failed: Json = {"type": "tool_result", "tool_use_id": "c1", "is_error": True}
    history = [
        {"role": "user", "content": [{"type": "text", "text": "x"}, image, address]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
        {"role": "user", "content": [{**failed, "content": [image, gif]}]},
    ]
    _, after = mended(API, history)
    assert after[0]["parts"][1:] == [
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"fileData": {"fileUri": "https://x.test/a.png", "mimeType": "image/png"}},
    ]
    result = after[2]["parts"][0]["functionResponse"]
    assert list(result["response"]) == ["error"]
    assert result["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PNG}}]


def test_contents_become_messages_of_another_api() -> None:
    shown = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    film = {"fileData": {"fileUri": "https://x.test/y.pdf", "mimeType": "application/pdf"}}
    model = called("a", "b")
    model["parts"].insert(0, {"text": "Hm.", "thought": True})
    results = told("a", "b")
    results["parts"][0]["functionResponse"] |= {"response": {"error": "no"}, "parts": [shown]}
    results["parts"][1]["functionResponse"]["response"] = {"x": 1}
    results["parts"] += [film, {"executableCode": {"code": "1"}}]
    history = [{"role": "user", "content": "x"}, model, results]
    for api in ("openai_chat", "openai_responses", "anthropic_messages"):
        _, after = mended(api, history)
        assert not [p for p in check_messages(api, after) if p.certainty == "refused"]
        text = str(after)
        assert "no" in text
        assert PNG in text
        assert "Hm." not in text
        assert "call_1_0" in text
        assert "call_1_1" in text


def test_custom_calls_and_texts_without_ids_are_written() -> None:
    custom = {"type": "custom", "id": "c1", "custom": {"name": "sh", "input": "ls"}}
    history = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [custom]},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
    ]
    _, after = mended(API, history)
    assert after[1]["parts"][0]["functionCall"]["args"] == {"input": "ls"}
    assert after[2]["parts"][0]["functionResponse"]["response"] == {}


@pytest.mark.parametrize(
    ("mend", "path"),
    [
        (calls.mend_id, (1, "parts", 0, "functionCall", "id")),
        (calls.mend_signature, (0, "parts", 0)),
        (contents.mend_role, (7, "role")),
        (contents.mend_text, (0, "parts", 0, "text")),
        (contents.mend_signature_bytes, (1, "parts", 0, "thoughtSignature", "odd")),
        (contents.drop_sealed, (2, "parts", 0, "thoughtSignature")),
        (order.move_beside_results, (1, "parts", 7)),
    ],
)
def test_a_problem_that_another_repair_has_solved_is_left(mend: Any, path: Any) -> None:
    editor = Editor([USER, called("a"), told("a")])
    mend(editor, Problem("a.rule", "here", "wrong", "refused", path=path))
    assert (editor.repairs, editor.document) == ([], [USER, called("a"), told("a")])


@pytest.mark.parametrize(
    ("mend", "path"),
    [
        (calls.mend_names, ("system", "parts", 0, "functionCall")),
        (calls.mend_result_ids, (0, "parts", 0, "functionResponse")),
        (calls.mend_result_names, (0, "parts", 0, "functionResponse")),
        (order.mend_order, (2,)),
        (order.mend_repeated_ids, (1, "parts", 0, "functionCall", "id")),
    ],
)
def test_problems_that_other_repairs_have_solved_are_left(mend: Any, path: Any) -> None:
    editor = Editor([USER, called("a"), told("a")])
    mend(editor, [Problem("a.rule", "here", "wrong", "refused", path=path)])
    assert (editor.repairs, editor.document) == ([], [USER, called("a"), told("a")])


def test_a_repeated_id_is_renamed_with_its_result() -> None:
    kinds, after = mended(API, [USER, called("a", "b", id="c"), told("a", "b", id="c")])
    assert set(kinds) == {"rename_id"}
    ids = [part["functionCall"]["id"] for part in after[1]["parts"]]
    assert len(set(ids)) == 2
    assert [part["functionResponse"]["id"] for part in after[2]["parts"]] == ids


def test_a_field_that_another_repair_has_moved_is_left() -> None:
    editor = Editor([{"role": "user", "parts": [{"text": "a"}]}])
    problem = Problem("a.rule", "here", "wrong", "refused", path=(0, "parts", 0, "inlineData"))
    contents.mend_part(editor, problem)
    assert editor.repairs == []


def test_what_only_this_api_has_is_kept_where_it_came_from() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    assert SPELLING.write_group("assistant", [Opaque(code)]) == [{"role": "model", "parts": [code]}]
    odd = {"noPart": 1}
    (message,) = SPELLING.write_group("assistant", [Opaque(odd)])
    assert json.loads(message["parts"][0]["text"]) == odd


def test_nothing_is_no_content_and_instructions_are_marked() -> None:
    assert SPELLING.write_group("user", []) == []
    (message,) = SPELLING.write_group("system", [Text("Be brief."), Opaque(PICTURE)])
    assert message["parts"] == [{"text": "<system>\nBe brief.\n</system>"}, PICTURE]
    assert message["role"] == "user"


def test_an_address_gets_the_type_that_its_name_tells() -> None:
    shown = [
        Media("image", url="https://x.test/a.png?b"),
        Media("file", url="https://x.test/a"),
        Media("file", url="data:,x"),
    ]
    assert [SPELLING.write_media(media) for media in shown] == [
        {"fileData": {"fileUri": "https://x.test/a.png?b", "mimeType": "image/png"}},
        {"fileData": {"fileUri": "https://x.test/a"}},
        None,
    ]


def test_a_signature_that_is_no_bytes_goes_and_a_call_gets_the_mark() -> None:
    thought = {"text": "Hm.", "thought": True, "thoughtSignature": 5}
    answer = {"role": "model", "parts": [thought, *called("a")["parts"]]}
    answer["parts"][1]["thoughtSignature"] = "no bytes!"
    kinds, after = mended(API, [USER, answer, told("a")])
    assert kinds == ["drop_key", "set_field"]
    assert "thoughtSignature" not in after[1]["parts"][0]
    assert after[1]["parts"][1]["thoughtSignature"] == FOREIGN_SIGNATURE


def test_what_other_apis_call_arguments_and_results_gets_its_name_here() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "a", "arguments": '{"x":1}'}}]}
    kinds, after = mended(API, [USER, call, told("a")])
    assert kinds == ["wrap_arguments"]
    assert after[1]["parts"][0]["functionCall"] == {"name": "a", "args": {"x": 1}}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "a", "content": "rain"}}]}
    kinds, after = mended(API, [USER, called("a"), result])
    assert kinds == ["set_content"]
    assert after[2]["parts"][0]["functionResponse"]["response"] == {"output": "rain"}
