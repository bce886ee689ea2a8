"""A mender that is given a problem about something else than it expects leaves that as it is.

Rules and menders are written apart: a rule may come to name a place at which a mender finds another
value than it knows. It must then neither raise nor guess.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lutumpy.doctor import check_messages, propose_repairs
from lutumpy.doctor.anthropic import blocks, messages
from lutumpy.doctor.openai import media
from lutumpy.doctor.openai.chat import calls
from lutumpy.doctor.openai.chat import messages as chat_messages
from lutumpy.doctor.openai.responses import ids, order, reasoning
from lutumpy.doctor.pieces import Opaque
from lutumpy.doctor.writing import Editor, Media, Spelling
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.catalogue import is_vendor_only
from lutumpy.rules.openai.responses.law import check_request, check_tools

MENDERS: list[tuple[Callable[[Editor, Problem], None], Any, tuple[Any, ...]]] = [
    (blocks.drop_unknown_keys, [{"role": "user", "content": [1]}], (0, "content", 0)),
    (blocks.drop_unknown_keys, [{"role": "user", "content": [{"type": "new"}]}], (0, "content", 0)),
    (
        blocks.mend_text,
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        (0, "content", 0),
    ),
    (
        blocks.move_out_of_error,
        [{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}],
        (0, "content", 0),
    ),
    (
        blocks.set_toolset_name,
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
        ],
        (1, "content", 0),
    ),
    (
        blocks.set_toolset_name,
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b"}]}],
        (0, "content", 0),
    ),
    (messages.mend_content, ["text"], (0,)),
    (messages.mend_content, [{"role": "user", "content": "Hi"}], (0,)),
    (messages.write_system_as_user, ["text"], (0,)),
    (messages.cut_white_space, [{"role": "assistant", "content": "Hi"}], (0,)),
    (messages.cut_white_space, [{"role": "assistant", "content": None}], (0,)),
    (
        calls.mend_call,
        [{"role": "assistant", "tool_calls": [{"type": "function", "function": {}}]}],
        (0, "tool_calls"),
    ),
    (media.mend_responses_media, [{"role": "user", "content": ["text"]}], (0, "content", 0)),
    (
        media.mend_responses_media,
        [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]}],
        (0, "content", 0),
    ),
    (
        media.mend_chat_media,
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": 1}}]}],
        (0, "content", 0),
    ),
    (
        media.mend_chat_media,
        [{"role": "user", "content": [{"type": "file", "file": {"file_data": 1}}]}],
        (0, "content", 0),
    ),
]


@pytest.mark.parametrize(("mend", "document", "path"), MENDERS)
def test_a_mender_leaves_what_it_does_not_know(
    mend: Callable[[Editor, Problem], None], document: Any, path: tuple[Any, ...]
) -> None:
    editor = Editor(copy.deepcopy(document), [])
    mend(editor, Problem("a.rule", "here", "wrong", "refused", path=path, call_ids=("a",)))
    assert editor.document == document
    assert editor.repairs == []


ALL_AT_ONCE: list[tuple[Callable[[Editor, list[Problem]], None], Any]] = [
    (ids.mend_items, [{"type": "message", "role": "user", "content": "Hi"}]),
    (ids.mend_items, ["text"]),
    (
        ids.mend_repeats,
        [
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        ],
    ),
    (order.mend_interleaved, [{"role": "user", "content": "Hi"}]),
    (reasoning.mend_reasoning, [{"type": "reasoning", "id": "rs_1", "summary": []}]),
]


@pytest.mark.parametrize(("mend", "document"), ALL_AT_ONCE)
def test_a_mender_of_several_problems_leaves_what_it_does_not_know(
    mend: Callable[[Editor, list[Problem]], None], document: Any
) -> None:
    editor = Editor(copy.deepcopy(document), [])
    mend(editor, [Problem("a.rule", "here", "wrong", "refused", path=(0,), call_ids=("b",))])
    assert editor.document == document
    assert editor.repairs == []


def test_an_output_whose_id_is_refused_and_that_no_call_has_is_left_out() -> None:
    history = [
        {"role": "user", "content": "Hi"},
        {"type": "function_call_output", "call_id": "x" * 65, "output": "a"},
        {"type": "function_call_output", "call_id": 5, "output": "b"},
    ]
    kinds = [repair.kind for repair in propose_repairs("openai_responses", history)]
    assert kinds == ["drop_result", "drop_result"]
    assert not ids._is_refused(None)
    assert not ids._is_same_call("text", {})


def test_what_an_api_has_no_word_for_is_said_in_text() -> None:
    class Plain(Spelling):
        """A spelling of an API that shows nothing."""

    spelling = Plain()
    for piece, text in (
        (Media("image", "data:image/png;base64,iVBO", name="a.png"), "a.png"),
        (Media("file", "https://example.org/a.pdf"), "https://example.org/a.pdf"),
        (Opaque({"type": "sound"}), "sound"),
        (Opaque("words"), "words"),
    ):
        assert text in str(spelling.write_part(piece, by_model=False))
    assert media.write_audio(Media("image", "https://example.org/a.png")) is None
    with pytest.raises(NotImplementedError, match="Plain can't write messages"):
        spelling.write_group("user", [])


def test_the_check_takes_objects_and_tools_that_are_no_list() -> None:
    class Dumped:
        """An object of an SDK that stands for a whole list."""

        def model_dump(self, **options: Any) -> list[Any]:
            return [{"role": "user", "content": "Hi"}]

    assert check_messages("openai_chat", Dumped()) == []
    message = [{"role": "user", "content": "Hi"}]
    assert check_messages("openai_chat", message, tools="look") == []  # type: ignore[arg-type]


def test_rules_that_every_host_keeps_are_told_from_the_vendors_own() -> None:
    extra = Problem("anthropic.role", "", "messages.0.x: Extra inputs are not permitted", "refused")
    assert is_vendor_only(extra)
    assert not is_vendor_only(Problem("anthropic.body", "", "wrong", "refused"))


@pytest.mark.parametrize("tools", ["look", [1], [{}], [{"type": "new"}], [{"type": "function"}]])
def test_tools_that_are_none_are_refused(tools: Any) -> None:
    assert [problem.certainty for problem in check_tools(tools)][:1] == ["refused"]


@pytest.mark.parametrize(
    "choice",
    [1, {}, {"type": "new"}, {"type": "function"}, {"type": "function", "name": 1}],
)
def test_a_choice_that_names_no_tool_is_refused(choice: Any) -> None:
    body = {
        "model": "gpt-5.2",
        "input": "Hi",
        "tools": [{"type": "function", "name": "look", "parameters": {}}],
        "tool_choice": choice,
    }
    assert "responses.tool_choice" in {problem.rule for problem in check_request(body)}


def test_a_role_beside_content_of_a_user_is_the_users() -> None:
    editor = Editor([{"content": "Hi"}], [])
    chat_messages.set_user_role(editor, Problem("chat.role", "", "wrong", "refused", path=(0,)))
    assert editor.document == [{"content": "Hi", "role": "user"}]


def test_a_name_in_a_broken_list_of_calls_is_taken() -> None:
    history = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "tool_calls": [
                1,
                {"id": "a", "type": "function", "function": {"name": "", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    assert "rename_tool" in {r.kind for r in propose_repairs("openai_chat", history)}


@pytest.mark.parametrize("before", [[], [{"type": "function_call_output", "call_id": "a"}]])
def test_a_call_without_an_output_behind_it_stays_where_it_is(before: list[Any]) -> None:
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    document = [*before, call, {"role": "user", "content": "Hi"}]
    editor = Editor(copy.deepcopy(document), [])
    place = (len(document) - 1,)
    problem = Problem("a.rule", "here", "wrong", "refused", path=place, call_ids=("a",))
    order.mend_interleaved(editor, [problem])
    assert editor.document == document
