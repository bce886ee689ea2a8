"""The page about errors has an entry for each error and each kind of problem that the code knows,
and for no other.
"""

from __future__ import annotations

import builtins
import importlib
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from lutumpy import LutumpyError
from lutumpy.errors import ProblemKind
from lutumpy.models import FinishReason
from lutumpy.text_tools import ParsedCall
from lutumpy.tools.calls import IssueReason

PAGE = (Path(__file__).parent.parent / "docs" / "errors.md").read_text()
PUBLIC = [
    "lutumpy",
    "lutumpy.adapters.anthropic",
    "lutumpy.adapters.openai",
    "lutumpy.durable",
    "lutumpy.execution",
    "lutumpy.local",
    "lutumpy.loops",
    "lutumpy.mcp",
    "lutumpy.openapi",
    "lutumpy.page",
    "lutumpy.testing",
    "lutumpy.text_tools",
    "lutumpy.tool_doctor",
    "lutumpy.errors",  # those that no other package names
]


def section(title: str, level: int = 2) -> str:
    """What stands under a heading, up to the next one of its level."""
    (found,) = re.findall(
        rf"^{'#' * level} {re.escape(title)}\n(.*?)(?=^#{{2,{level}}} |\Z)", PAGE, re.M | re.S
    )
    return str(found)


def rows(title: str) -> list[str]:
    """The first column of the first table under a heading, without its head."""
    table = re.search(r"^\|.*\n\|(?:-+\|)+\n((?:\|.*\n)+)", section(title), re.M)
    assert table is not None, title
    return re.findall(r"^\| `([^`]+)` \|", table[1], re.M)


def entries() -> dict[str, str]:
    """The entries of single errors by name."""
    names = re.findall(r"^### `(\w+)`$", section("Exceptions"), re.M)
    assert len(set(names)) == len(names)
    return {name: section(f"`{name}`", 3) for name in names}


def public_errors() -> dict[str, type[BaseException]]:
    """The exceptions that a public package names, and every other one below `LutumpyError` without
    a leading `_`.
    """
    found: dict[str, type[BaseException]] = {}
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, BaseException):
                found[name] = value
    waiting: list[type[LutumpyError]] = [LutumpyError]
    while waiting:
        kind = waiting.pop()
        waiting += [
            below for below in kind.__subclasses__() if below.__module__.startswith("lutumpy.")
        ]
        if not kind.__name__.startswith("_"):
            found[kind.__name__] = kind
    return found


def test_every_public_error_has_its_entry_and_no_other_has_one() -> None:
    assert set(entries()) == set(public_errors())


# What no `except Exception` of an SDK or of a program may hide, as the failures of pytest.
UNHIDDEN = {"CassetteMismatch"}


@pytest.mark.parametrize("name", sorted(set(public_errors()) - UNHIDDEN))
def test_every_public_error_is_one_of_the_library(name: str) -> None:
    assert issubclass(public_errors()[name], LutumpyError)


@pytest.mark.parametrize("name", sorted(set(public_errors()) - {"LutumpyError"}))
def test_every_entry_says_when_in_which_state_and_what_to_do(name: str) -> None:
    assert re.findall(r"^- \*\*(\w+)\.\*\* \S", entries()[name], re.M) == ["When", "State", "Do"]


@pytest.mark.parametrize("name", sorted(public_errors()))
def test_an_entry_names_the_error_of_python_that_it_is_too(name: str) -> None:
    kind = public_errors()[name]
    plain = [base for base in kind.__mro__ if base.__module__ == builtins.__name__]
    also = plain[0].__name__ if plain[0] is not Exception else None
    said = re.search(r"[aA]lso an? `(\w+)`", entries()[name])
    assert (said[1] if said else None) == also


@pytest.mark.parametrize("name", sorted(public_errors()))
def test_an_entry_says_which_package_has_the_error(name: str) -> None:
    home = next((p for p in PUBLIC if name in importlib.import_module(p).__all__), None)
    said = re.search(r"^Of `([\w.]+)`", entries()[name], re.M)
    assert (said[1] if said else "lutumpy") == home


@pytest.mark.parametrize(
    ("title", "kinds"),
    [
        ("Issues", IssueReason),
        ("Finished, but not as you hoped", FinishReason),
        ("Problems of a commit", ProblemKind),
    ],
)
def test_the_tables_have_every_kind_in_the_order_of_the_code(title: str, kinds: Any) -> None:
    assert rows(title) == list(get_args(kinds))


def test_the_problems_of_a_text_protocol_are_told_as_issues() -> None:
    problem = get_type_hints(ParsedCall)["problem"]
    assert "problem" in {field.name for field in fields(ParsedCall)}
    literal, _ = get_args(problem)
    assert set(re.findall(r'problem="(\w+)"', section("Issues"))) == set(get_args(literal))
