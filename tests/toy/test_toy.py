"""A made-up API goes through everything that serves APIs, without a change anywhere else."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy_api

from lutumpy import AdapterError, NeedsTools, RawPart, Session, Toolset, Transcript, tool, tool_fn
from lutumpy.apis import api_names, api_row, serving
from lutumpy.cli import main
from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, serve
from lutumpy.tool_doctor import check_tools

Run = Callable[..., tuple[int, str]]
OTHERS = (
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini_generate_content",
    "bedrock_converse",
    "ollama_chat",
)
PAGE = Path(__file__).parent.parent.parent / "docs" / "adding_an_api.md"

TALK: list[dict[str, Any]] = [
    {"role": "system", "text": "Be brief."},
    {"role": "user", "text": "How far is it?"},
    {
        "role": "bot",
        "text": "I look.",
        "calls": [{"id": "c1", "name": "distance", "arguments": '{"to": "Rome"}'}],
    },
    {"role": "result", "call": "c1", "text": "12 km"},
    {"role": "bot", "text": "12 km."},
    {"role": "user", "text": "Thanks."},
]
BROKEN = [*TALK, {"role": "user", "text": ""}]
TOOL = {
    "tool": "distance",
    "about": "How far a place is.",
    "takes": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
}
REQUEST = {"model": "t-1", "talk": TALK, "tools": [TOOL]}


@tool_fn
def distance(to: str) -> str:
    """How far a place is.

    Args:
        to: The place.
    """
    return "12 km"


class AppTools(Toolset):
    distance = tool(distance)


@pytest.fixture
def run(
    toy: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """Run a command on a value, which is its standard input; gives the exit code and what it
    printed.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, value: Any = None) -> tuple[int, str]:
        data = json.dumps(value).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsys.readouterr()
        code = main(arguments)
        return code, capsys.readouterr().out

    return run


# --- The library ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_tool_round_goes_through_its_adapter(toy: str, is_streamed: bool) -> None:
    llm = ScriptedModel(
        [Reply("I look.", calls=[Call("distance", {"to": "Rome"})]), Reply("12 km.")], api=toy
    )
    session = Session()
    session.push_user("How far is it?")
    turn = session.text_turn(llm, tools=AppTools)
    if is_streamed:
        async with turn.stream() as stream:
            events = [type(event).__name__ async for event in stream]
        outcome = stream.outcome
        assert {"TextDelta", "ToolCallReady", "Completed"} <= set(events)
    else:
        outcome = await turn.collect()
    assert isinstance(outcome, NeedsTools)
    (call,) = outcome.round.calls
    outcome.round.commit(session, [call.complete(call.call_sync())])
    answer = await session.text_turn(llm).collect()
    assert answer.text == "12 km."
    assert [entry["role"] for entry in llm.requests[1]["talk"]] == ["user", "bot", "result"]
    assert llm.requests[0]["tools"][0]["tool"] == "distance"
    assert Session.load(session.dump()).transcript.turns()[0].api == toy


async def test_its_refusals_and_failures_are_adapter_errors(toy: str) -> None:
    session = Session()
    session.push_user("Hello.")
    llm = ScriptedModel([Failure(429, "Slow down.")], api=toy)
    with pytest.raises(AdapterError, match="Slow down") as caught:
        await session.text_turn(llm).collect()
    assert (caught.value.provider, caught.value.status) == (toy, 429)


def test_a_history_is_checked_and_mended(toy: str) -> None:
    assert check_messages(toy, TALK) == []
    (problem,) = check_messages(toy, BROKEN)
    assert (problem.rule, problem.position) == ("toy.text", "talk[6]")
    (repair,) = propose_repairs(toy, BROKEN)
    assert apply_repairs(BROKEN, [repair]) == TALK


def test_a_history_is_read_and_written_again(toy: str) -> None:
    transcript = Transcript.from_messages(toy, TALK)
    assert toy_api.Toy.messages(transcript) == TALK


def test_its_tools_are_compiled_and_counted(toy: str) -> None:
    report = check_tools(AppTools)
    assert toy in {size.api for size in report.sizes}
    assert [finding for finding in report.findings if finding.severity == "error"] == []


# --- The command line -----------------------------------------------------------------------------


def test_check_recognises_it(run: Run) -> None:
    code, out = run("check", "-", value=REQUEST)
    assert (code, "toy, 6 messages: no problem" in out) == (0, True)
    code, out = run("check", "-", value=TALK)
    assert (code, "toy, 6 messages: no problem" in out) == (0, True)
    code, out = run("check", "-", value=BROKEN)
    assert (code, "toy.text" in out) == (1, True)
    code, out = run("check", "-", "--host", "compatible", value=BROKEN)
    assert (code, "toy.text" in out) == (1, True)


def test_repair_mends_it(run: Run) -> None:
    code, out = run("repair", "-", "-o", "mended.json", value={**REQUEST, "talk": BROKEN})
    assert (code, "drop_empty" in out) == (0, True)
    assert json.loads(Path("mended.json").read_text()) == REQUEST


@pytest.mark.parametrize("other", OTHERS)
def test_convert_goes_to_the_other_apis_and_back(run: Run, other: str) -> None:
    code, out = run("convert", "-", "--to", other, value=REQUEST)
    assert code == 0
    there = json.loads(out)
    assert run("check", "-", "--api", other, value=there)[0] == 0
    code, out = run("convert", "-", "--to", "toy", "--api", other, value=there)
    assert code == 0
    assert json.loads(out)["tools"] == [TOOL]
    back = json.loads(out)["talk"]
    assert [entry["role"] for entry in back] == [entry["role"] for entry in TALK]
    assert [entry["text"] for entry in back] == [entry["text"] for entry in TALK]


def test_show_prints_its_turns_and_its_answer(run: Run) -> None:
    answer = {"model": "t-1", "bot": {"role": "bot", "text": "Welcome."}, "usage": [5, 2]}
    code, out = run("show", "-", value={"request": REQUEST, "response": answer, "status": 200})
    assert code == 0
    for text in ("How far is it?", "distance", "c1", "12 km", "Welcome."):
        assert text in out


def test_show_makes_a_page_of_it(run: Run) -> None:
    assert run("show", "-", "--html", "page.html", value=REQUEST)[0] == 0
    page = Path("page.html").read_text()
    for text in ("How far is it?", "distance", "12 km"):
        assert text in page


def test_an_unknown_name_is_refused_with_those_that_are_known(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", "-", "--api", "nothing", value=TALK)[0] == 2
    assert run("check", "-", "--api", "toy", value=TALK)[0] == 0


# --- The test server ------------------------------------------------------------------------------


def _post(url: str, body: Any) -> tuple[int, bytes]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:  # it is a response as well
            return error.code, error.read()


def test_the_test_server_answers_and_refuses_for_it(toy: str) -> None:
    with serve([Reply("Hello there."), Reply("Hello there."), Failure(503, "Asleep.")]) as server:
        url = f"{server.url}/v1/talk"
        status, data = _post(url, REQUEST)
        assert (status, toy_api.Toy.response(data).text) == (200, "Hello there.")

        status, data = _post(url, {**REQUEST, "stream": True})
        decoder = toy_api.Toy.stream_decoder()
        for line in data.decode().splitlines():
            if line.startswith("data: "):
                decoder.feed(json.loads(line.removeprefix("data: ")))
        assert (status, decoder.finish().text) == (200, "Hello there.")

        status, data = _post(url, {**REQUEST, "talk": BROKEN})
        assert (status, json.loads(data)["error"]["message"]) == (400, "Nothing is said.")
        status, data = _post(url, REQUEST)
        assert (status, json.loads(data)["error"]["message"]) == (503, "Asleep.")
        assert [request.api for request in server.requests] == [toy] * 4
        assert server.requests[2].problems[0].rule == "toy.text"


# --- The table ------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which a distribution is installed that brings the toy API."""
    info = tmp_path / "toy_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lutumpy.apis]\ntoy = toy_api:ROW\n")
    (tmp_path / "toy_api.py").write_text(Path(toy_api.__file__).read_text())
    root = str(Path(__file__).parent.parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])}


@pytest.mark.slow
def test_an_installed_package_brings_its_api(installed: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lutumpy", "check", "-", "--json"],
        input=json.dumps(BROKEN),
        capture_output=True,
        text=True,
        env=installed,
        timeout=120,
    )
    first = json.loads(done.stdout.splitlines()[0])
    assert (done.returncode, first["api"], first["rule"]) == (1, "toy", "toy.text"), done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "lutumpy", "check", "--help"],
        capture_output=True,
        text=True,
        env={**installed, "COLUMNS": "200"},
        timeout=120,
    )
    assert "|toy" in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", [["check", "-"], ["demo"]])
def test_a_row_that_cannot_be_loaded_is_named_by_the_command(
    command: list[str], installed: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "toy_api.py").write_text("ROW = 5\n")
    done = subprocess.run(
        [sys.executable, "-m", "lutumpy", *command],
        input="[]",
        capture_output=True,
        text=True,
        env=installed,
        timeout=120,
    )
    assert done.returncode == 2
    assert "the API 'toy' of an installed package" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_leaves_the_table_as_it_was(toy: str) -> None:
    assert api_names() == (*OTHERS, toy)
    assert api_row(toy).title == "Toy"


def test_the_page_about_adding_an_api_shows_this_very_code() -> None:
    shown = "\n".join(
        [part.split("```", 1)[0].strip() for part in PAGE.read_text().split("```python\n")[1:]]
    )
    code = Path(toy_api.__file__).read_text().partition('"""\n')[2]
    # The page is narrower than a module, so its lines are broken elsewhere.
    assert ast.unparse(ast.parse(shown)) == ast.unparse(ast.parse(code))
    assert _comments(shown) == _comments(code)


def _comments(code: str) -> str:
    lines = [line.strip() for line in code.splitlines()]
    return " ".join(
        line.removeprefix("# ")
        for line in lines
        if line.startswith("# ") and not line.startswith("# ---")
    )


def test_k7_a_part_for_another_api_is_its_text_and_one_for_this_is_what_the_adapter_makes_of_it(
    toy: str,
) -> None:
    session = Session()
    session.push_user(
        [
            RawPart("anthropic_messages", {"type": "container_upload", "file_id": "f"}, "a file"),
            RawPart(toy, {"anything": ["goes"]}, "a toy"),
        ]
    )
    adapter = serving(toy, "adapter")
    talk = adapter.request(session.transcript)["talk"]
    assert talk == [{"role": "user", "text": "a file\na toy"}]
    assert Session.load(session.dump()).transcript[0] == session.transcript[0]
