"""Manifests are checked as a whole, once, and never change afterwards."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clad_toolkit import Workshop, call, run, run_all, told, toml

from lutumpy import DeclarationError, NeedsTools, Session
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.execution import ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.toolclad import load_manifests

FILE = {"file": {"type": "path", "required": True, "description": "Which one."}}


def problems(workshop: Workshop) -> list[str]:
    with pytest.raises(DeclarationError) as refused:
        workshop.load()
    first, *lines = str(refused.value).splitlines()
    assert first == "the manifests can't be used, and none was loaded:"
    return [line.removeprefix("- ") for line in lines]


def test_a_manifest_becomes_a_tool(workshop: Workshop) -> None:
    path = workshop.write(
        "count_lines",
        ["wc", "-l", "{file}"],
        {**FILE, "more": {"type": "integer", "min": 1, "max": 9, "position": -1, "default": 3}},
        tool={
            "binary": "wc",
            "timeout_seconds": 7,
            "risk_tier": "medium",
            "cedar": {"resource": "Files", "action": "read"},
        },
    )
    clad = workshop.load()
    (tool,) = clad.tools
    assert (tool.name, tool.definition.description) == ("count_lines", "Runs count_lines.")
    assert tool.schema == {
        "type": "object",
        "properties": {
            "more": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "file": {"type": "string", "minLength": 1, "description": "Which one."},
        },
        "additionalProperties": False,
        "required": ["file"],
    }
    manifest = clad.manifests["count_lines"]
    assert (manifest.name, manifest.version, manifest.risk_tier) == ("count_lines", "1.0", "medium")
    assert (manifest.timeout, manifest.human_approval, manifest.path) == (7.0, False, path)
    assert manifest.cedar == {"resource": "Files", "action": "read"}
    assert manifest.program == shutil.which("wc")
    assert manifest.schema == tool.schema
    assert repr(clad) == "<CladTools: count_lines>"


@pytest.mark.parametrize(
    ("risk", "effect"),
    [("info", "read"), ("low", "once"), ("medium", "once"), ("high", "once"), ("critical", "once")],
)
def test_the_risk_says_whether_running_again_does_harm(
    workshop: Workshop, risk: str, effect: str
) -> None:
    workshop.write("act", ["printf"], tool={"risk_tier": risk})
    (tool,) = workshop.load().tools
    options = tool.definition.options
    assert (options.effect, options.max_retries) == (effect, 0)


def test_custom_types_stand_beside_the_manifests_or_above_them(workshop: Workshop) -> None:
    types = '[types.level]\nbase = "enum"\nallowed = ["a", "b"]\n'
    types += '[types.id]\nbase = "string"\npattern = "[a-z]+"\n'
    args = {"level": {"type": "level"}, "id": {"type": "id"}}
    workshop.write("act", ["printf", "{level}", "{id}"], args)
    assert [problem.split(";")[0] for problem in problems(workshop)] == [
        "act.clad.toml: args.level: there is no type 'level'",
        "act.clad.toml: args.id: there is no type 'id'",
    ]
    above = workshop.tools.parent / "toolclad.toml"
    above.write_text(types)
    properties = workshop.load().tools[0].schema["properties"]
    assert properties["level"] == {"type": "string", "enum": ["a", "b"]}
    assert properties["id"] == {"type": "string", "pattern": "^(?:[a-z]+)$"}
    (workshop.tools / "toolclad.toml").write_text("[types")
    assert problems(workshop)[0].startswith("toolclad.toml: it can't be read: ")


# --- what is wrong --------------------------------------------------------------------------------


def test_every_problem_of_every_file_is_in_one_error(workshop: Workshop) -> None:
    workshop.write_text("a.clad.toml", "[tool")
    workshop.write(
        "b",
        ["no-such-program", "{file}", "{more}"],
        {"file": {"type": "pfad"}, "2nd": {"type": "string"}},
        output={"parser": "scripts/parse.py", "schema": {"type": 3}},
    )
    workshop.write("c", ["printf"], tool={"human_aproval": True, "timeout_seconds": "10"})
    workshop.write("d", ["printf"])
    workshop.write_text("e.clad.toml", toml("d", ["printf"]))
    workshop.write("f", ["printf"], tool={"name": "not a name"})
    (workshop.tools / "g.clad.toml").write_bytes(b"\xff")
    found = problems(workshop)
    starts = [
        "a.clad.toml: it can't be read: ",
        "b.clad.toml: args.file: there is no type 'pfad'",
        "b.clad.toml: args.2nd: a name has letters",
        "b.clad.toml: command.exec: {more} is not an argument",
        "b.clad.toml: output.parser: 'scripts/parse.py' is not one of builtin:text, ",
        "b.clad.toml: command.exec: there is no program 'no-such-program'",
        "c.clad.toml: tool.timeout_seconds: Input should be a valid integer",
        "c.clad.toml: tool.human_aproval: there is no such key",
        "e.clad.toml: d.clad.toml has a tool 'd', too",
        "f.clad.toml: 'not a name' is not a tool name",
        "g.clad.toml: it can't be read: ",
    ]
    assert len(found) == len(starts)
    for problem, start in zip(found, starts, strict=True):
        assert problem.startswith(start)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"exec": []}, "command.exec: List should have at least 1 item"),
        ({"exec": ["{file}"]}, "command.exec: the first element is the program"),
        ({"exec": [" "]}, "command.exec: the first element is the program"),
        ({"exec": ["printf", "a\0b"]}, "command.exec: a text in it has a NUL character"),
        ({"exec": ["printf", "{_output_file}"]}, "command.exec: {_output_file} is not an argument"),
        ({"tool": {"binary": "wc"}}, "tool.binary is 'wc', and command.exec runs 'printf'"),
        ({"tool": {"risk_tier": "huge"}}, "tool.risk_tier: Input should be 'info', 'low', "),
        ({"tool": {"mode": "session"}}, "tool.mode: Input should be 'oneshot'"),
        ({"tool": {"dispatch": "callback"}}, "tool.dispatch: a callback has nothing to run"),
        ({"tool": {"timeout_seconds": 0}}, "tool.timeout_seconds: Input should be greater than 0"),
        ({"tool": {"description": ""}}, "tool.description: String should have at least 1"),
        ({"output": {"schema": {"type": 3}}}, "output.schema: its schema is broken"),
        ({"output": {"format": "yaml"}}, "output.format: Input should be 'text', 'json'"),
        ({"command": {"mappings": {"x": {}}}}, "command.mappings.x: there is no argument"),
        ({"command": {"defaults": {"x": [1]}}}, "command.defaults.x: Input should be"),
        (
            {"command": {"conditionals": {"x": {"when": "file", "template": ""}}}},
            "command.conditionals.x: when is comparisons",
        ),
        (
            {
                "command": {
                    "conditionals": {
                        "x": {"when": "file == 1 and file == 2 or file == 3", "template": ""}
                    }
                }
            },
            "command.conditionals.x: when is comparisons",
        ),
        (
            {"command": {"conditionals": {"x": {"when": "y == 1", "template": "{_x}"}}}},
            "command.conditionals.x: {_x} is not an argument",
        ),
        ({"args": {"file": {"type": "enum"}}}, "args.file: the type enum needs allowed values"),
        ({"args": {"file": {"type": "regex_match"}}}, "args.file: the type regex_match needs a"),
        ({"args": {"file": {"pattern": "(?=a)"}}}, "args: its schema has a pattern"),
        ({"args": {"file": {"allowed": ["a"]}}}, "args.file: allowed has no effect on the type"),
        (
            {"args": {"file": {"type": "path", "max": 9}}},
            "args.file: max has no effect",
        ),
        (
            {"args": {"file": {"schemes": ["https"]}}},
            "args.file: schemes has no effect",
        ),
        (
            {"args": {"file": {"type": "duration", "pattern": "[0-9]s"}}},
            "args.file: pattern has no effect on the type",
        ),
        (
            {"args": {"file": {"type": "integer", "min": 1, "min_float": 0.5}}},
            "args.file: min_float has no effect on the type",
        ),
        ({"args": {"file": {"default": "a\0"}}}, "args.file: its default has a NUL character"),
        ({"args": {"file": "path"}}, "args.file: Input should be a valid dictionary"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(
    workshop: Workshop, more: dict[str, Any], problem: str
) -> None:
    settings = {"exec": ["printf", "{file}"], "args": FILE, **more}
    if isinstance(settings["args"]["file"], str):
        workshop.write_text(
            "a.clad.toml", toml("a", ["printf"]).replace('["args"]', '["args"]\nfile = "path"')
        )
    else:
        workshop.write("a", **settings)
    assert problems(workshop)[0].startswith(f"a.clad.toml: {problem}")


@pytest.mark.parametrize("section", ["session", "browser"])
def test_modes_that_nothing_runs_are_refused(workshop: Workshop, section: str) -> None:
    text = '[tool]\nname = "a"\ndescription = "A."\n[output]\n'
    workshop.write_text("a.clad.toml", f"{text}[{section}]\n")
    (problem,) = problems(workshop)
    assert problem.startswith(f"a.clad.toml: [{section}]: ")


def test_a_folder_without_manifests_is_an_error(workshop: Workshop, tmp_path: Path) -> None:
    assert problems(workshop) == [f"{workshop.tools}: there are no *.clad.toml files"]
    workshop.write("act", ["printf"])
    with pytest.raises(DeclarationError, match=r"missing: there are no \*.clad.toml files"):
        load_manifests(tmp_path / "missing")
    with pytest.raises(DeclarationError, match=r"cwd: .*missing is not a directory"):
        load_manifests(workshop.tools, cwd=tmp_path / "missing")


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": float("nan")}, {"max_output": 0}])
def test_numbers_that_make_no_sense_are_refused(workshop: Workshop, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be more than 0"):
        workshop.load(**wrong)
    with pytest.raises(ValueError, match="inherit takes names"):
        workshop.load(inherit="HOME")


def test_a_scope_that_nothing_checks_is_warned_of(workshop: Workshop) -> None:
    workshop.write("get", ["printf", "{u}"], {"u": {"type": "url", "scope_check": True}})
    with pytest.warns(UserWarning, match=r"get.clad.toml: scope_check of u has no effect"):
        workshop.load()


# --- once -----------------------------------------------------------------------------------------


@pytest.mark.pure
@pytest.mark.slow
def test_a_hundred_rounds_read_no_file(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.write("say", ["printf", "%s", "{text}"], {"text": {"type": "string"}})
    clad = workshop.load()
    shutil.rmtree(workshop.tools)
    import builtins
    import io

    def refuse(*args: Any, **more: Any) -> Any:
        raise AssertionError(f"a file was opened: {args}")

    session = Session()
    session.push_user("Go.")
    llm = ScriptedModel([Reply(calls=[Call("say", {"text": str(n)})]) for n in range(100)])
    opened: list[Any] = []
    real = io.open
    watched = lambda *args, **more: opened.append(args) or real(*args, **more)  # noqa: E731
    for n in range(100):
        turn = session.text_turn(llm, tools=clad.toolset)
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "open", refuse)
            outcome = turn.collect_sync()
        assert isinstance(outcome, NeedsTools)
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "open", watched)
            results = ToolExecutor().run_sync(outcome.round.calls, clad.dispatch)
        outcome.round.commit(session, results)
        assert told(results[0])["results"] == {"raw_output": str(n)}
    # Only the ends of pipes, by their numbers.
    assert [args for args in opened if not isinstance(args[0], int)] == []


def test_nothing_that_was_loaded_changes(workshop: Workshop) -> None:
    workshop.write("say", ["printf", "%s"])
    clad = workshop.load()
    with pytest.raises(TypeError):
        clad.manifests["say"] = clad.manifests["say"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        clad.manifests["say"].timeout = 1  # type: ignore[misc]
    with pytest.raises(DeclarationError, match="takes no more handlers"):
        clad.dispatch.on(clad.toolset.selector("say"))
    workshop.write("say", ["printf", "changed"])
    assert told(run(clad, "say", {}))["results"] == {"raw_output": ""}


def test_the_same_files_give_the_same_bytes_in_order_of_their_names(workshop: Workshop) -> None:
    for name in ("b", "c", "a"):
        workshop.write(name, ["printf", "{file}"], FILE)
    first, second = workshop.load(), workshop.load()
    rendered = [
        json.dumps(AnthropicMessages.tools(clad.toolset.offer())) for clad in (first, second)
    ]
    assert rendered[0] == rendered[1]
    assert list(first.manifests) == ["a", "b", "c"]


def test_the_tools_stand_in_other_toolsets(workshop: Workshop) -> None:
    workshop.write("say", ["printf", "%s", "{text}"], {"text": {"type": "string"}})
    clad = workshop.load()
    called = call(clad, "say", {"text": "hello"})
    (result,) = run_all(clad, [called])
    assert told(result)["results"] == {"raw_output": "hello"}


@pytest.mark.slow
def test_without_the_extra_the_error_names_it(workshop: Workshop) -> None:
    workshop.write("say", ["printf"])
    script = f"""
import sys
sys.modules["toolclad"] = None
from lutumpy.toolclad import load_manifests
try:
    load_manifests({str(workshop.tools)!r})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (
        "ToolClad manifests need toolclad, jsonschema-rs and anyio; install them with: "
        'python -m pip install ".[toolclad]" (in a clone)\n',
        "",
    )


@pytest.mark.slow
def test_the_import_alone_loads_neither_toolclad_nor_validators() -> None:
    script = "import lutumpy.toolclad, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert not {"toolclad", "jsonschema_rs", "urllib.request"} & loaded


NUMBERS = ["9" * 400, "-" + "9" * 400, "9" * 5000, "nan", "inf", "-inf", "1e400"]


@pytest.mark.parametrize("number", [*NUMBERS, "0", "-1", "1e9", "true", '"x"'])
def test_a_timeout_that_no_clock_takes_is_a_problem_of_its_file(
    workshop: Workshop, number: str
) -> None:
    text = toml("a", ["wc"]).replace('["tool"]', f'["tool"]\ntimeout_seconds = {number}')
    workshop.write_text("a.clad.toml", text)
    [problem] = problems(workshop)
    assert problem.startswith("a.clad.toml: tool.timeout_seconds: Input should be") or (
        len(number) == 5000 and "it can't be read" in problem
    )


def test_numbers_that_json_cannot_hold_are_problems_of_their_file(workshop: Workshop) -> None:
    """In each place of an argument, and in a custom type, which toolclad itself doesn't check."""
    keys = [
        ("integer", "min"), ("integer", "max"), ("number", "min_float"), ("number", "max_float"),
        ("integer", "default"), ("number", "default"), ("integer", "position"),
    ]  # fmt: skip
    head = "[tool]\nname = 'a'\ndescription = 'd'\n[command]\nexec = ['echo', '{x}']\n[output]\n"
    types = workshop.tools / "toolclad.toml"
    for kind, key in keys:
        for number in NUMBERS:
            for clamp in ("true", "false"):
                limit = f"{key} = {number}\n"
                argument = f"[args.x]\nclamp = {clamp}\ntype = "
                workshop.write_text("a.clad.toml", f"{head}{argument}'{kind}'\n{limit}")
                [problem] = problems(workshop)
                assert f"args.x.{key}: Input should be" in problem or "can't be read" in problem
                if "_" in key or key in ("min", "max"):
                    workshop.write_text("a.clad.toml", f"{head}{argument}'mine'\n")
                    types.write_text(f"[types.mine]\nbase = '{kind}'\n{limit}")
                    assert any(
                        f"its type 'mine' can't be used: {key}: Input should be" in one
                        or "toolclad.toml: it can't be read" in one
                        for one in problems(workshop)
                    )
                    types.unlink()


def test_a_manifest_that_is_nested_without_end_is_a_problem_of_its_file(
    workshop: Workshop,
) -> None:
    deep = "[" * 5000 + "]" * 5000
    workshop.write_text(
        "a.clad.toml", toml("a", ["wc"]).replace('["tool"]', f'x = {deep}\n["tool"]')
    )
    assert problems(workshop) == ["a.clad.toml: it can't be read: it is nested too deeply"]
