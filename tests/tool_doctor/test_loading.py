"""A toolset by its name, and what is said when there is none."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from lutumpy.tool_doctor import ToolsetNotLoadedError, check_tools, load_toolset

MODULE = '''
from lutumpy import Toolset, tool, tool_fn

@tool_fn
def look(where: str) -> str:
    """Look.

    Args:
        were: Where.
    """
    return where

class Tools(Toolset):
    look = tool(look)

class Outer:
    Inner = Tools

NUMBER = 1
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "some_tools.py").write_text(MODULE)
    (tmp_path / "some_package").mkdir()
    (tmp_path / "some_package" / "__init__.py").write_text("")
    (tmp_path / "some_package" / "tools.py").write_text(MODULE)
    (tmp_path / "needs_more.py").write_text("import not_there_at_all")
    (tmp_path / "breaks.py").write_text("1 / 0")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    (tmp_path / "not_python.py").write_text("def")
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name", ["some_tools:Tools", "some_package.tools:Tools", "some_tools:Outer.Inner"]
)
def test_it_is_found_in_the_directory_and_its_warnings_are_left_to_the_report(
    folder: Path, name: str
) -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        toolset = load_toolset(name, directory=folder)
    assert toolset.__name__ == "Tools"
    assert shown == []
    assert [f.rule for f in check_tools(toolset).warnings][:1] == ["tool.docstring"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("some_tools", "does not name a toolset"),
        ("some_tools:", "does not name a toolset"),
        (":Tools", "does not name a toolset"),
        ("no_such_module:Tools", "no module 'no_such_module'"),
        ("some_package.nothing:Tools", r"no module 'some_package.nothing'"),
        ("some_tools:Tool", "has no 'Tool'; its toolsets are Tools"),
        ("some_tools:Outer.Tools", "some_tools:Outer has no 'Tools'"),
        ("some_tools:NUMBER", "is an object of type int, not a Toolset"),
        ("some_tools:Outer", "is the class Outer, not a Toolset"),
        ("some_tools:Toolset", "is the class Toolset, not a Toolset"),
        ("needs_more:Tools", "it needs 'not_there_at_all'"),
        ("breaks:Tools", "ZeroDivisionError"),
        ("leaves:Tools", "it ends the program"),
        ("not_python:Tools", "SyntaxError"),
        (".relative:Tools", "can't be imported"),
        ("with space:Tools", "no module"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, name: str, reason: str) -> None:
    with pytest.raises(ToolsetNotLoadedError, match=reason):
        load_toolset(name, directory=folder)
