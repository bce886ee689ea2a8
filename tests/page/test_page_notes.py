"""Problems, repairs and decisions stand at what they are about."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import NeedsTools, Reject, RunNormally, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.apis import api_names
from lutumpy.doctor import check_messages, propose_repairs
from lutumpy.doctor.json_patch import apply_operations
from lutumpy.errors import Problem
from lutumpy.models import Api
from lutumpy.page import render
from lutumpy.page.positions import Origins
from lutumpy.plain.pointer import tokens


@dataclass(frozen=True)
class Edit:
    reason: str
    position: str
    patch: list[dict[str, Any]] = field(default_factory=list)
    call_ids: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("position", "anchor"),
    [
        ("messages[2]", "step-3"),
        ("messages[2].tool_calls[1].id", "at-2-tool_calls-1"),
        ("messages[2].content[7]", "step-3"),
        ("messages.2.tool_calls.3", "at-2-tool_calls-3"),
        ("messages[4].content", "at-4"),
        ("messages[99]", None),
        ("tools[0].name", None),
        ("", None),
    ],
)
def test_a_problem_stands_where_its_position_leads(
    chat: list[Any], safe: Callable[[str], Any], position: str, anchor: str | None
) -> None:
    problem = Problem("chat.some_rule", position, "Something's <wrong>.", "refused")
    page = safe(render(chat, api="openai_chat", problems=[problem]))
    assert "Something's <wrong>." in page.of("problem-1")
    links = [value for tag, name, value in page.attributes if tag == "a" and name == "href"]
    if anchor is None:
        assert "problem-1-here" not in page.texts
        assert f"#{anchor}" not in links
    else:
        assert "Something's <wrong>." in page.of(anchor)
        assert f"#{anchor}" in links


def test_a_problem_of_an_item_that_holds_a_call_stands_at_the_call(
    safe: Callable[[str], Any],
) -> None:
    items = [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}] * 2
    page = safe(
        render(
            items,
            api="openai_responses",
            problems=[Problem("r", "input[1].call_id", "Twice.", "refused")],
        )
    )
    assert "Twice." in page.of("at-1")


def test_a_problem_of_anthropic_stands_at_the_block(safe: Callable[[str], Any]) -> None:
    messages = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ""}]},
    ]
    problems = [
        Problem("r", "messages.1.content.0.tool_result.content", "Empty.", "some"),
        Problem("r", "messages.0.content.0.tool_use.input", "Odd.", "some"),
        Problem("r", "messages.1", "Whole.", "some"),
        Problem("r", "system", "Nothing there.", "some"),
    ]
    page = safe(render(messages, api="anthropic_messages", problems=problems))
    assert "Empty." in page.of("at-1-content-0")
    assert "Odd." in page.of("at-0-content-0")
    assert "Whole." in page.of("step-1")


def test_a_problem_without_a_position_stands_at_its_call(
    chat: list[Any], safe: Callable[[str], Any]
) -> None:
    page = safe(
        render(
            chat,
            api="openai_chat",
            problems=[Problem("r", "", "No result.", "refused", call_ids=("c2",))],
        )
    )
    assert "No result." in page.of("at-2-tool_calls-1")


def test_a_problem_at_the_system_text_stands_there(safe: Callable[[str], Any]) -> None:
    problem = Problem("r", "system.0.text", "Empty.", "refused")
    page = safe(
        render(
            [], api="anthropic_messages", system=[{"type": "text", "text": "x"}], problems=[problem]
        )
    )
    assert "Empty." in page.of("step-1")


def test_nothing_is_said_of_problems_where_nothing_was_checked(
    chat: list[Any], safe: Callable[[str], Any]
) -> None:
    assert "Problems" not in safe(render(chat, api="openai_chat")).text
    assert "No problem was found." in safe(render(chat, api="openai_chat", problems=[])).text


def test_every_problem_and_repair_is_listed_however_many(
    chat: list[Any], safe: Callable[[str], Any]
) -> None:
    problems = [
        Problem("r", f"messages[{k % 8}]", f"Problem number {k}.", "some") for k in range(60)
    ]
    repairs = [Edit(f"Repair number {k}.", f"messages[{k % 8}]") for k in range(60)]
    page = safe(render(chat, api="openai_chat", problems=problems, repairs=repairs))
    for k in range(60):
        assert f"Problem number {k}." in page.of(f"problem-{k + 1}")
        assert f"Repair number {k}." in page.of(f"repair-{k + 1}")


def test_a_repair_shows_what_it_takes_away_and_what_it_puts_there(
    chat: list[Any], safe: Callable[[str], Any]
) -> None:
    patch = [
        {"op": "test", "path": "/2/tool_calls/1/id", "value": "c2"},
        {"op": "replace", "path": "/2/tool_calls/1/id", "value": "c2-new"},
    ]
    moved = [
        {"op": "test", "path": "/2/tool_calls/0/id", "value": "c1"},
        {"op": "move", "from": "/6", "path": "/3"},
    ]
    repairs = [
        Edit("Renamed.", "messages[2].tool_calls[1].id", patch),
        Edit("Moved.", "messages[2]", moved),
    ]
    page = safe(render(chat, api="openai_chat", repairs=repairs))
    words = page.of("at-2-tool_calls-1").split()
    told = words[words.index("replace") :]
    assert told[:2] == ["replace", "/2/tool_calls/1/id"]
    assert told.index("Before") < told.index("c2") < told.index("After") < told.index("c2-new")
    assert "test" not in told
    words = page.of("at-6").split()
    assert words[words.index("move") :][:4] == ["move", "/6", "to", "/3"]


def test_a_repair_of_what_cannot_be_shown_has_its_edit_in_the_list(
    chat: list[Any], safe: Callable[[str], Any]
) -> None:
    page = safe(
        render(
            chat,
            api="openai_chat",
            repairs=[Edit("Odd.", "tools[0]", [{"op": "remove", "path": "/x"}])],
        )
    )
    assert "/x" in page.of("repair-1")


def test_repairs_stand_at_the_messages_as_they_are_before_all_of_them(
    safe: Callable[[str], Any],
) -> None:
    messages = [{"role": "user", "content": f"Message {k}"} for k in range(5)]
    repairs = [
        Edit("First.", "messages[0]", [{"op": "remove", "path": "/0"}]),
        Edit("Second.", "messages[1]", [{"op": "add", "path": "/1", "value": {}}]),
        Edit("Third.", "messages[4]", [{"op": "remove", "path": "/4"}]),
    ]
    page = safe(render(messages, api="openai_chat", repairs=repairs))
    assert "First." in page.of("step-1")
    assert "Second." in page.of("step-3")
    assert "Third." in page.of("step-5")


def test_a_repair_that_names_one_call_of_a_message_stands_there(
    chat: list[Any], safe: Callable[[str], Any]
) -> None:
    one, two = (
        Edit("One.", "messages[2]", call_ids=("c3",)),
        Edit("Two.", "messages[2]", call_ids=("c1", "c2")),
    )
    page = safe(render(chat, api="openai_chat", repairs=[one, two]))
    assert "One." in page.of("at-2-tool_calls-2")
    assert "Two." in page.of("step-3")
    assert not any("Two." in page.of(f"at-2-tool_calls-{k}") for k in range(4))


@pytest.mark.parametrize("api", [*api_names()])
def test_proposed_repairs_of_a_real_check_stand_with_the_problems_they_mend(
    api: Api, safe: Callable[[str], Any], chat_call: Callable[..., Any]
) -> None:
    """A call without a result and a result without a call: each has its problem and its repair in
    one place.
    """
    broken: dict[str, list[Any]] = {
        "openai_chat": [
            {"role": "user", "content": "Hello"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [chat_call("c1", "weather", "{}")],
            },
            {"role": "user", "content": "Well?"},
            {"role": "tool", "tool_call_id": "c9", "content": "who asked?"},
        ],
        "openai_responses": [
            {"role": "user", "content": "Hello"},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
            {"role": "user", "content": "Well?"},
            {"type": "function_call_output", "call_id": "c9", "output": "who asked?"},
        ],
        "anthropic_messages": [
            {"role": "user", "content": "Hello"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {}}],
            },
            {"role": "user", "content": "Well?"},
            {"role": "assistant", "content": "Hm."},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c9", "content": "who asked?"}],
            },
        ],
        "ollama_chat": [
            {"role": "user", "content": "Hello"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": {}}}],
            },
            {"role": "user", "content": "Well?"},
            {"role": "tool", "tool_call_id": "c9", "content": "who asked?"},
        ],
        "bedrock_converse": [
            {"role": "user", "content": [{"text": "Hello"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c1", "name": "weather", "input": {}}}],
            },
            {"role": "user", "content": [{"text": "Well?"}]},
            {"role": "assistant", "content": [{"text": "Hm."}]},
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c9", "content": [{"text": "who asked?"}]}}
                ],
            },
        ],
        "gemini_generate_content": [
            {"role": "user", "parts": [{"text": "Hello"}]},
            {
                "role": "model",
                "parts": [{"functionCall": {"id": "c1", "name": "weather", "args": {}}}],
            },
            {"role": "user", "parts": [{"text": "Well?"}]},
            {"role": "model", "parts": [{"text": "Hm."}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c9", "name": "x", "response": {}}}],
            },
        ],
    }
    messages = broken[api]
    repairs = propose_repairs(api, messages)
    assert {repair.kind for repair in repairs} >= {"close_call", "drop_result"}
    page = safe(render(messages, api=api, problems=check_messages(api, messages), repairs=repairs))
    for repair in [repair for repair in repairs if repair.kind in ("close_call", "drop_result")]:
        (call_id,) = repair.call_ids
        places = [
            anchor
            for anchor, pieces in page.texts.items()
            if anchor.startswith("at-") and call_id in "".join(pieces)
        ]
        assert any(repair.reason in page.of(anchor) for anchor in places), (repair.kind, places)
    assert page.text.count("Proposed repair") >= len(repairs)


@st.composite
def edits(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Edits of a list of messages with parts, each of which fits what those before it left."""
    document = [[k, [[k, n] for n in range(3)]] for k in range(4)]
    made: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["remove", "add", "move", "remove part", "add part"]))
        whole = [i for i, entry in enumerate(document) if entry[0] is not None]
        if kind == "add":
            index = draw(st.integers(0, len(document)))
            document.insert(index, [None, []])
            made.append({"op": "add", "path": f"/{index}", "value": {"content": []}})
        elif not document:
            continue
        elif kind == "remove":
            index = draw(st.integers(0, len(document) - 1))
            del document[index]
            made.append({"op": "remove", "path": f"/{index}"})
        elif kind == "move":
            start = draw(st.integers(0, len(document) - 1))
            end = draw(st.integers(0, len(document) - 1))
            document.insert(end, document.pop(start))
            made.append({"op": "move", "from": f"/{start}", "path": f"/{end}"})
        elif whole:
            index = draw(st.sampled_from(whole))
            parts = document[index][1]
            if kind == "add part":
                number = draw(st.integers(0, len(parts)))
                parts.insert(number, None)
                made.append({"op": "add", "path": f"/{index}/content/{number}", "value": "new"})
            elif parts:
                number = draw(st.integers(0, len(parts) - 1))
                del parts[number]
                made.append({"op": "remove", "path": f"/{index}/content/{number}"})
    return made


@given(edits())
def test_origins_follow_every_edit_as_it_is_applied(patch: list[dict[str, Any]]) -> None:
    document: list[Any] = [{"is": k, "content": [f"{k}.{n}" for n in range(3)]} for k in range(4)]
    origins = Origins(4)
    for operation in copy.deepcopy(patch):
        document = apply_operations(document, [operation])
        origins.apply([operation])
    for index, message in enumerate(document):
        if "is" not in message:
            continue
        assert origins.steps([str(index), "role"]) == [str(message["is"]), "role"]
        for number, part in enumerate(message["content"]):
            found = origins.steps([str(index), "content", str(number), "text"])
            expected = part.split(".") if part != "new" else [str(message["is"])]
            assert found == (
                [expected[0], "content", expected[1], "text"] if part != "new" else expected
            )


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "remove", "path": "/99"}],
        [{"op": "move", "from": "/x", "path": "/0"}],
        [{"op": "add", "path": "", "value": 1}],
        [{"op": "add", "path": "/-", "value": 1}],
        [{"op": "replace", "path": "/0/content", "value": []}],
        [{}],
    ],
)
def test_edits_that_fit_nothing_are_followed_as_far_as_they_go(patch: list[dict[str, Any]]) -> None:
    origins = Origins(2)
    origins.apply(patch)
    assert origins.steps(["1", "role"])[0] in {"0", "1"}
    assert tokens("/a~1b/~0") == ["a/b", "~"]


# --- decisions of hooks ---------------------------------------------------------------------------


def test_an_edit_by_a_hook_is_shown_against_what_the_model_asked(
    chat: list[Any], decisions: list[Any], safe: Callable[[str], Any]
) -> None:
    page = safe(render(chat, api="openai_chat", decisions=decisions))
    words = page.of("at-2-tool_calls-1").split()
    assert "Asked" in words
    changed = words[words.index("changed") :]
    assert changed[changed.index("unit") :][:3] == ["unit", '"F"', '"C"']
    assert changed[changed.index("days") :][:4] == ["days", "not", "there", "null"]
    assert "Input after the hooks" in page.of("at-2-tool_calls-1")


def test_answers_and_rejections_by_hooks_name_who_and_why(
    chat: list[Any], decisions: list[Any], safe: Callable[[str], Any]
) -> None:
    page = safe(render(chat, api="openai_chat", decisions=[decisions]))
    handled = " ".join(page.of("at-2-tool_calls-2").split())
    assert "Answered by a hook by hook Cache.trains_hook" in handled
    assert "What was changed" not in handled
    rejected = " ".join(page.of("at-2-tool_calls-3").split())
    assert "Rejected by a hook outside the project by policy gate" in rejected
    assert "3 decisions by hooks" in page.text
    assert "by a hook" not in page.of("at-2-tool_calls-0")


def test_plans_are_taken_as_they_are(chat: list[Any], decisions: list[Any]) -> None:
    class Plan:
        def decisions(self) -> list[Any]:
            return decisions

    expected = render(chat, api="openai_chat", decisions=decisions)
    assert render(chat, api="openai_chat", decisions=[Plan()]) == expected


@tool_fn
def read_file(path: str, lines: int = 10) -> str:
    """Read a file."""
    return path


@tool_fn
def delete_file(path: str) -> None:
    """Delete a file."""


class Files(Toolset):
    read_file = tool(read_file)
    delete_file = tool(delete_file)


def test_a_round_that_hooks_have_decided_is_shown_before_its_commit(
    safe: Callable[[str], Any], chat_call: Callable[..., Any]
) -> None:
    transcript = Transcript()
    transcript.push_user("Read and delete it.")
    calls = [
        chat_call("c1", "read_file", '{"path": "a/../b"}'),
        chat_call("c2", "delete_file", '{"path": "b"}'),
        chat_call("c3", "delete_fiel", '{"path": "b"}'),
    ]
    reply = {
        "choices": [
            {"message": {"role": "assistant", "tool_calls": calls}, "finish_reason": "tool_calls"}
        ]
    }
    outcome = Files.offer().read(OpenAIChat.response(reply), transcript)
    assert isinstance(outcome, NeedsTools)

    def gate(call: Any) -> Any:
        if Files.delete_file.matches(call):
            return Reject("ask first")
        return RunNormally(call.input.model_copy(update={"path": "b"}))

    plan = outcome.round.apply_hooks_sync(gate)
    page = safe(render(transcript, answer=plan.turn, decisions=[plan]))
    plan.discard()
    assert page.tags.count("article") == 2
    told = " ".join(page.of("step-2").split())
    assert re.search(r'Edited by a hook.* path "a/../b" "b" .* lines not there 10 ', told)
    assert re.search(r"Rejected by a hook ask first by policy \S*gate", told)
    assert "Could not be run unknown_tool" in told


def test_decisions_of_an_open_round_make_a_step_of_their_own(
    chat: list[Any], decisions: list[Any], safe: Callable[[str], Any]
) -> None:
    page = safe(render(chat[:2], api="openai_chat", decisions=decisions))
    last = page.of("step-3")
    assert "a round that is not in the transcript" in last
    assert "Bergen" in last
    assert "delete_file" in last


def test_what_could_not_be_run_says_why(broken: list[Any], safe: Callable[[str], Any]) -> None:
    issue = {
        "call_id": "c1",
        "tool": "look",
        "decision": "issue",
        "reason": "malformed_arguments",
        "detail": "cut",
    }
    page = safe(render(broken, api="openai_chat", decisions=[issue]))
    assert "Could not be run malformed_arguments: cut" in " ".join(
        page.of("at-1-tool_calls-0").split()
    )


def test_a_decision_of_another_kind_of_object_is_an_error(chat: list[Any]) -> None:
    with pytest.raises(TypeError, match="not int"):
        render(chat, api="openai_chat", decisions=[1])
