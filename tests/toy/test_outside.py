"""A package from outside can write the adapter, the rules and the repairs of an API with public
names alone: those of Ollama's API, which needs no SDK and has calls without ids, find all that they
import behind a door.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import lutumpy

PACKAGE = Path(lutumpy.__file__).parent
FOLDERS = [PACKAGE / part / "ollama" for part in ("adapters", "rules", "doctor")]
DOORS = [
    "lutumpy.adapters.writing",
    "lutumpy.doctor.writing",
    "lutumpy.errors",
    "lutumpy.models",
    "lutumpy.rules.shape",
    "lutumpy.rules.writing",
    "lutumpy.streaming",
]


def imported() -> Iterator[tuple[str, str]]:
    """The modules and names that Ollama's files import from the rest of the library."""
    for file in [file for folder in FOLDERS for file in sorted(folder.glob("*.py"))]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "json_values":
                yield "lutumpy.plain.json_values", node.attr
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            # Of this plain tool single functions are taken, as seen above.
            if node.module == "lutumpy.plain":
                continue
            if node.module.startswith("lutumpy") and ".ollama" not in node.module:
                yield from ((node.module, alias.name) for alias in node.names)


def is_behind_a_door(module: str, name: str) -> bool:
    value = getattr(importlib.import_module(module), name)
    doors = [importlib.import_module(door) for door in DOORS]
    return any(name in door.__all__ and getattr(door, name) is value for door in doors)


def test_all_that_an_api_without_an_sdk_imports_is_behind_a_door() -> None:
    wanted = {*imported()}
    assert len(wanted) > 80
    assert [found for found in sorted(wanted) if not is_behind_a_door(*found)] == []
