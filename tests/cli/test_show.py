"""`lutumpy show`: everything that was said, with problems and decisions where they belong, and
nothing that harms.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import BROKEN, FIXTURES, SYSTEM, WHOLE, Run, Write, calls, result, user

from lutumpy import NeedsTools, Reject, RunNormally, Session, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn
def look(where: str) -> str:
    """Look."""
    return where


class Tools(Toolset):
    look = tool(look)


async def dump_with_decisions() -> dict[str, Any]:
    session = Session()
    session.push_user("Look here and there.")
    llm: Any = ScriptedModel(
        [Reply(calls=[Call("look", {"where": w}, id=w) for w in ("here", "there")])]
    )
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    hooks = Tools.hooks()

    @hooks.on(Tools.look)
    def careful(metadata: ToolMetadata, input: Any) -> Any:
        return (
            Reject("not there")
            if input.where == "there"
            else RunNormally(type(input)(where="behind"))
        )

    plan = await outcome.round.apply_hooks(hooks)
    plan.commit(session, [call.complete("seen") for call in plan.pending])
    return {**session.dump(), "decisions": plan.decisions()}


def test_turns_calls_results_and_problems_are_shown_in_place(run: Run, write: Write) -> None:
    ended = run("show", write("a.json", SYSTEM + BROKEN))
    assert ended.code == 0
    lines = [line.strip() for line in ended.out.splitlines()]
    wanted = [
        "1 System",
        "Be kind.",
        "2 User",
        "3 Assistant",
        "! refused",
        "call look",
        '{"where": "here"}',
        "result ok",
        "seen",
    ]
    wanted += ["call look", "4 User", "And?"]
    places = []
    for word in wanted:
        start = places[-1] + 1 if places else 0
        places.append(next(i for i in range(start, len(lines)) if lines[i].startswith(word)))


async def test_decisions_of_hooks_are_shown_against_what_was_asked(run: Run, write: Write) -> None:
    ended = run("show", write("a.json", await dump_with_decisions()))
    assert ended.code == 0
    assert "decided: edited" in ended.out
    assert '"here" -> "behind"' in ended.out
    assert "decided: rejected by hook" in ended.out
    assert "not there" in ended.out
    assert "result rejected" in ended.out


def test_long_values_are_cut_with_a_note_unless_asked_for(run: Run, write: Write) -> None:
    file = write("a.json", [*WHOLE[:2], result("c1", "y" * 50_000), result("c2"), user()])
    short = run("show", file)
    assert "more characters, --full shows them" in short.out
    assert len(short.out) < 10_000
    assert "y" * 50_000 in run("show", file, "--full").out


def test_one_of_many_documents_can_be_chosen(run: Run, write: Write) -> None:
    file = write("a.jsonl", [*WHOLE, user("first")], [*WHOLE, user("second")])
    ended = run("show", file, "--number", "2")
    assert "second" in ended.out
    assert "first" not in ended.out
    ended = run("show", file, "--number", "3")
    assert (ended.code, "no such document" in ended.err) == (2, True)


def test_an_answer_beside_its_request_is_shown(run: Run, write: Write) -> None:
    answer = {
        "choices": [
            {"message": {"role": "assistant", "content": "I see."}, "finish_reason": "stop"}
        ]
    }
    file = write(
        "a.json", {"request": {"model": "m", "messages": WHOLE}, "response": answer, "status": 200}
    )
    assert "I see." in run("show", file).out


@pytest.mark.parametrize("name", ["anthropic_messages", "openai_chat", "openai_responses"])
def test_recorded_streams_are_shown_as_their_answer(run: Run, write: Write, name: str) -> None:
    seen = 0
    for line in (FIXTURES / f"{name}_sse.jsonl").read_text().splitlines()[:4]:
        entry = json.loads(line)
        key = "input" if name == "openai_responses" else "messages"
        entry["request"] = {"model": "m", key: [user()]}
        records = run("show", write("a.json", entry), "--json").records
        seen += any(
            r["type"] == "step" and r["position"].startswith("answer") for r in records
        ) or any(r["type"] == "step" and r["role"] == "assistant" for r in records)
    assert seen == 4


def test_json_lines_have_the_documented_fields(run: Run, write: Write) -> None:
    ended = run("show", write("a.json", {"model": "m", "messages": BROKEN}), "--json")
    *steps, document = ended.records
    assert {tuple(step) for step in steps} == {
        (
            "type",
            "file",
            "line",
            "number",
            "api",
            "step",
            "role",
            "position",
            "pieces",
            "calls",
            "results",
            "problems",
        )
    }
    assert tuple(document) == (
        *(
            "type",
            "file",
            "line",
            "number",
            "api",
            "kind",
            "model",
            "status",
            "tools",
            "steps",
            "problems",
        ),
    )
    (call, other) = steps[1]["calls"]
    assert tuple(call) == (
        "call_id",
        "name",
        "kind",
        "position",
        "arguments",
        "decision",
        "results",
        "problems",
    )
    assert (call["name"], json.loads(call["arguments"]), other["results"]) == (
        "look",
        {"where": "here"},
        [],
    )
    assert [r["text"] for r in call["results"]] == ["seen"]
    assert steps[1]["problems"][0]["rule"] == "chat.results_after_calls"


def test_a_page_is_written_whole(run: Run, write: Write) -> None:
    ended = run("show", write("a.json", BROKEN), "--html", "a.html")
    assert ended.code == 0
    page = Path("a.html").read_text()
    assert page.startswith("<!DOCTYPE html>") or page.lower().startswith("<!doctype html>")
    assert "chat.results_after_calls" in page
    assert "close" in page  # the proposed repair


def test_a_page_is_of_one_document(run: Run, write: Write) -> None:
    file = write("a.jsonl", WHOLE, BROKEN)
    assert run("show", file, "--html", "a.html").code == 2
    assert run("show", file, "--html", "b.html", "-n", "2").code == 0
    assert run("show", file, "-n", "1", "--html", "none/a.html").code == 2


def test_a_page_is_not_written_for_two_documents(run: Run, write: Write) -> None:
    assert (
        run("show", write("a.json", WHOLE), write("b.json", BROKEN), "--html", "two.html").code == 2
    )
    assert not Path("two.html").exists()


def test_a_page_never_takes_the_place_of_what_it_shows(run: Run, write: Write) -> None:
    file = write("a.json", BROKEN)
    before = Path(file).read_text()
    Path("link.json").symlink_to(file)
    for out in (file, "./a.json", "link.json"):
        ended = run("show", file, "--html", out)
        assert (ended.code, "name another one" in ended.err) == (2, True)
    assert Path(file).read_text() == before


async def test_a_dump_has_a_page_too(run: Run, write: Write) -> None:
    assert run("show", write("a.json", await dump_with_decisions()), "--html", "a.html").code == 0
    assert "behind" in run("show", "a.json", "--html", "-").out


@pytest.mark.sweep
@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.jsonl")), ids=lambda file: file.name)
def test_every_recorded_file_is_shown_without_a_crash(run: Run, file: Path) -> None:
    ended = run("show", file)
    assert ended.code in (0, 2)
    assert (ended.out + ended.err).replace("\n", "").replace("\t", "").isprintable()


def test_styles_of_hidden_characters_and_markup_are_shown_as_text(run: Run, write: Write) -> None:
    text = "<b>&amp;</b> [bold]x[/bold] \u202e"
    ended = run("show", write("a.json", [user(text), calls("c1"), result("c1", text), user()]))
    assert ended.out.count("<b>&amp;</b> [bold]x[/bold] ") == 2


def test_rich_markup_in_names_is_text(run: Run, write: Write) -> None:
    assert "[red]x[/red]" in run("show", write("a.json", [user(), calls("[red]x[/red]")])).out


def test_all_the_same_calls_are_told_apart(run: Run, write: Write) -> None:
    records = run("show", write("a.json", WHOLE), "--json").records
    assert [[r["call_id"] for r in c["results"]] for s in records[:-1] for c in s["calls"]] == [
        ["c1"],
        ["c2"],
    ]


def test_a_pager_is_given_the_same_text(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pydoc

    paged: list[str] = []
    monkeypatch.setattr(pydoc, "pager", paged.append)
    file = write("a.json", WHOLE)
    ended = run("show", file, "--pager")
    assert (ended.code, ended.out) == (0, "")
    assert "".join(paged) == run("show", file).out
