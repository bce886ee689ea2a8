"""`lutumpy tools check` and `lutumpy tools lock` on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_toolkit import Run, Write

CLEAN = '''
from lutumpy import Toolset, tool, tool_fn

@tool_fn
def look(where: str) -> str:
    """Look around.

    Args:
        where: Where to look.
    """
    return where

class Tools(Toolset):
    look = tool(look)
'''
OPEN = CLEAN.replace("where: str)", "where: str, how: dict[str, str])")
REFUSED = (
    OPEN.replace("class Tools", "class Part").replace("look = tool(look)", "pass")
    + '''
from lutumpy import ToolInput, tool_input
from typing import Annotated
from pydantic import Field

@tool_input(strict=True)
class Node(ToolInput[None]):
    """Go."""
    inner: "Annotated[Node | None, Field(description='Deeper.')]" = None

class Tools(Toolset):
    node = tool(Node)
'''
)


@pytest.fixture(autouse=True)
def _fresh_modules() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("my_tools"):
            del sys.modules[name]


def again(text: str) -> None:
    """Other tools in the same module, as after an edit."""
    Path("my_tools.py").write_text(text)
    sys.modules.pop("my_tools", None)
    import importlib

    importlib.invalidate_caches()


@pytest.fixture(autouse=True)
def _no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def test_a_clean_toolset_ends_with_0_and_says_its_size(run: Run, write: Write) -> None:
    write("my_tools.py", text=CLEAN)
    ended = run("tools", "check", "my_tools:Tools", "--strict")
    assert (ended.code, ended.err) == (0, "")
    for piece in (
        "my_tools:Tools  1 tool",
        "openai_chat",
        "about tokens",
        "nothing to say",
        "there is no lutumpy.lock.json",
    ):
        assert piece in ended.out


def test_warnings_count_only_when_strict(run: Run, write: Write) -> None:
    write("my_tools.py", text=OPEN)
    ended = run("tools", "check", "my_tools:Tools")
    assert ended.code == 0
    assert "/properties/how an object that takes any property has no strict form" in ended.out
    assert run("tools", "check", "my_tools:Tools", "--strict").code == 1
    # An application whose adapters are not strict loses nothing by it.
    assert "strict form" not in run("tools", "check", "my_tools:Tools", "--no-adapter-strict").out


def test_what_will_be_refused_ends_with_1(run: Run, write: Write) -> None:
    write("my_tools.py", text=REFUSED)
    ended = run("tools", "check", "my_tools:Tools")
    assert ended.code == 1
    assert "refers to itself" in ended.out
    assert run("tools", "check", "my_tools:Tools", "--api", "openai_chat").code == 0


def test_a_lock_is_kept_until_a_tool_changes_and_says_what_did(run: Run, write: Write) -> None:
    write("my_tools.py", text=CLEAN)
    assert run("tools", "lock", "my_tools:Tools").code == 0
    text = Path("lutumpy.lock.json").read_text()
    assert "every tool is as it was locked" in run("tools", "check", "my_tools:Tools").out
    assert run("tools", "lock", "my_tools:Tools").code == 0
    assert Path("lutumpy.lock.json").read_text() == text
    again(CLEAN.replace("Where to look", "The place"))
    ended = run("tools", "check", "my_tools:Tools")
    assert ended.code == 1
    for piece in (
        "has drifted",
        "~ look changed",
        "/input_schema/properties/where/description",
        '- "Where to look."',
        '+ "The place."',
    ):
        assert piece in ended.out
    assert "look changed" in run("tools", "lock", "my_tools:Tools").out
    assert run("tools", "check", "my_tools:Tools").code == 0


def test_formatting_and_order_of_a_module_make_no_drift(run: Run, write: Write) -> None:
    write("my_tools.py", text=CLEAN)
    run("tools", "lock", "my_tools:Tools", "--lock", "l.json")
    data = json.loads(Path("l.json").read_text())
    Path("l.json").write_text(json.dumps(data))
    again(CLEAN.replace("where: Where to look.", "where:\n            Where to look."))
    assert run("tools", "check", "my_tools:Tools", "--lock", "l.json").code == 0


def test_new_and_missing_tools_are_drift(run: Run, write: Write) -> None:
    write("my_tools.py", text=CLEAN)
    run("tools", "lock", "my_tools:Tools")
    again(CLEAN.replace("@tool_fn", "@tool_fn(name='gaze')"))
    ended = run("tools", "check", "my_tools:Tools")
    assert ended.code == 1
    assert "+ gaze is new" in ended.out
    assert "- look is gone" in ended.out


def test_a_lock_of_other_toolsets_says_nothing_of_this_one(run: Run, write: Write) -> None:
    write("my_tools.py", text=CLEAN + "\nclass Other(Toolset):\n    look = tool(look)\n")
    run("tools", "lock", "my_tools:Other")
    ended = run("tools", "check", "my_tools:Tools")
    assert ended.code == 0
    assert "knows nothing of my_tools:Tools" in ended.out


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("my_tools", "does not name a toolset"),
        ("none:T", "no module 'none'"),
        ("my_tools:T", "has no 'T'; its toolsets are Tools"),
    ],
)
@pytest.mark.parametrize("command", ["check", "lock"])
def test_a_toolset_that_is_not_there_ends_with_2(
    run: Run, write: Write, command: str, name: str, reason: str
) -> None:
    write("my_tools.py", text=CLEAN)
    ended = run("tools", command, name)
    assert (ended.code, ended.out) == (2, "")
    assert reason in ended.err
    (record,) = run("tools", command, name, "--json").records
    assert (record["type"], reason in record["message"]) == ("failed", True)


@pytest.mark.parametrize("command", ["check", "lock"])
def test_a_lock_file_that_cannot_be_used_ends_with_2_and_stays(
    run: Run, write: Write, command: str
) -> None:
    write("my_tools.py", text=CLEAN)
    write("l.json", text="{}")
    ended = run("tools", command, "my_tools:Tools", "--lock", "l.json")
    assert ended.code == 2
    assert "l.json is not a lock file" in ended.err
    assert Path("l.json").read_text() == "{}"
    assert run("tools", "lock", "my_tools:Tools", "--lock", "none/l.json").code == 2


def test_modules_are_found_where_the_option_says(run: Run, write: Write) -> None:
    Path(write("x", text="")).unlink()
    Path("inside").mkdir()
    Path("inside/my_tools_there.py").write_text(CLEAN)
    assert run("tools", "check", "my_tools_there:Tools").code == 2
    assert run("tools", "check", "my_tools_there:Tools", "--app-dir", "inside").code == 0


FIELDS = {
    "finding": ["type", "toolset", "severity", "rule", "tool", "apis", "path", "strict", "message"],
    "size": [
        *("type", "toolset", "api", "strict", "offer", "tools", "bytes", "tokens"),
        *("strict_tools", "optional_parameters", "union_parameters"),
    ],
    "lock": ["type", "toolset", "file", "state", "added", "removed", "changed"],
    "summary": ["type", "toolset", "tools", "findings", "lock", "exit_code"],
}


def test_json_lines_have_the_documented_fields(run: Run, write: Write) -> None:
    write("my_tools.py", text=CLEAN)
    (locked,) = run("tools", "lock", "my_tools:Tools", "--json").records
    assert list(locked) == [
        "type",
        "file",
        "toolset",
        "tools",
        "written",
        "added",
        "removed",
        "changed",
    ]
    again(OPEN)
    ended = run("tools", "check", "my_tools:Tools", "--json")
    assert {record["type"] for record in ended.records} == set(FIELDS)
    for record in ended.records:
        assert list(record) == FIELDS[record["type"]]
    lock, summary = ended.records[-2:]
    assert (lock["state"], summary["lock"], summary["exit_code"], ended.code) == (
        "drifted",
        "drifted",
        1,
        1,
    )
    assert lock["changed"]["look"][0]["path"] == "/input_schema/properties/how"
