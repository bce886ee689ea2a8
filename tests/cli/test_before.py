"""A history held against the request before it, and against who said its turns (PB19, OR7)."""

from __future__ import annotations

import json
from typing import Any

from cli_toolkit import Run, Write

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Go."}
THINKING: Json = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
TEXT: Json = {"type": "text", "text": "Yes."}
ANSWER: Json = {"role": "assistant", "content": [THINKING, TEXT]}


def request(*messages: Json, **fields: Any) -> Json:
    body = {"model": "claude-fable-5-2", "max_tokens": 10, "system": "Be brief.", **fields}
    return {**body, "messages": list(messages)}


def rules(ended: Any) -> list[tuple[str, str]]:
    return [(r["rule"], r["certainty"]) for r in ended.records if r["type"] == "problem"]


def test_what_was_signed_over_something_else_is_found_and_taken_out_PB19(
    run: Run, write: Write
) -> None:
    before = write("before.json", request(USER))
    same = write("same.json", request(USER, ANSWER, USER))
    changed = write("changed.json", request(USER, ANSWER, USER, system="Be kind."))
    ended = run("check", same, "--before", before, "--json")
    assert (ended.code, rules(ended)) == (0, [])
    assert run("check", changed).code == 0  # nothing is claimed of it
    ended = run("check", changed, "--before", before, "--json")
    assert ended.code == 1
    assert ("anthropic.reasoning_bound", "refused") in rules(ended)
    mended = run("repair", changed, "--before", before, "--out", "-")
    assert mended.code == 0
    assert json.loads(mended.out)["messages"][1]["content"] == [TEXT]
    ended = run("repair", changed, "--before", before, "--json")
    (found,) = [r for r in ended.records if r["type"] == "repair"]
    assert found["kind"] == "drop_reasoning"


def test_what_another_host_has_said_or_sealed_is_found_OR7(run: Run, write: Write) -> None:
    said = {"role": "assistant", "content": "Yes.", "reasoning_content": "hm"}
    history = write("history.json", [USER, said, USER])
    moved = ("--api", "openai_chat", "--host", "groq", "--origin", "deepseek")
    ended = run("check", history, *moved, "--origin-model", "deepseek-reasoner", "--json")
    assert [rule for rule, _ in rules(ended)] != []
    again = run(
        "check", history, "--api", "openai_chat", "--host", "deepseek", *moved[4:], "--json"
    )
    assert rules(again) == []
    mended = run("repair", history, *moved, "--out", "-")
    assert "reasoning_content" not in mended.out


def test_what_can_be_held_against_nothing_is_told_PB19(run: Run, write: Write) -> None:
    history = write("history.json", request(USER))
    chat = write("chat.json", {"model": "gpt-5.4", "messages": [USER]})
    several = write("several.jsonl", request(USER), request(USER))
    broken = write("broken.json", text="{")
    for given, words in ((several, "2 documents"), (broken, "broken.json"), ("none.json", "none")):
        ended = run("check", history, "--before", given)
        assert ended.code == 2
        assert words in " ".join(ended.err.split()), ended.err
    ended = run("check", history, "--before", chat)
    assert ended.code == 2
    assert "openai_chat" in ended.out + ended.err
    assert run("check", history, "--origin", "no host at all").code == 2
