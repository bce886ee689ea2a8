"""Manifests and programs that tests write, and short ways to call their tools."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from lutumpy import ToolMetadata
from lutumpy.execution import ExecutionResult, ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.toolclad import CladTools, load_manifests

BACKENDS = ("asyncio", "trio")
_IDS = itertools.count()


def toml(
    name: str,
    exec: Sequence[str],
    args: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    tool: Mapping[str, Any] | None = None,
    command: Mapping[str, Any] | None = None,
    http: Mapping[str, Any] | None = None,
    output: Mapping[str, Any] | None = None,
) -> str:
    """The text of a manifest, of a program or a request. A string, number, list or boolean is
    spelled in TOML as in JSON.
    """
    way = {"http": http} if http else {"command": {"exec": list(exec), **(command or {})}}
    tables: dict[str, Any] = {
        "tool": {"name": name, "description": f"Runs {name}.", "version": "1.0", **(tool or {})},
        "args": dict(args or {}),
        **way,
        "output": {"format": "text", **(output or {})},
    }
    return "\n".join(_table_lines((), tables))


def _table_lines(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"[{'.'.join(map(json.dumps, path))}]"] if path else []
    lines += [f"{json.dumps(k)} = {_spell(v)}" for k, v in table.items() if k not in inner]
    for key, value in inner.items():
        lines += _table_lines((*path, key), value)
    return lines


def _spell(value: Any) -> str:
    # TOML has JSON's strings, but for DEL, which it wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class Workshop:
    """A folder with manifests, one with programs, and one where they run."""

    def __init__(self, folder: Path) -> None:
        self.tools = folder / "project" / "tools"
        self.place = folder / "place"
        self.tools.mkdir(parents=True)
        self.place.mkdir()

    def write(self, name: str, *args: Any, **more: Any) -> Path:
        """A manifest of this name; the rest is as for `toml`."""
        return self.write_text(f"{name}.clad.toml", toml(name, *args, **more))

    def write_text(self, file: str, text: str) -> Path:
        path = self.tools / file
        path.write_text(text)
        return path

    def program(self, name: str, script: str) -> str:
        """A program that runs a script; gives its name for `exec`."""
        path = self.place / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return f"./{name}"

    def load(self, **more: Any) -> CladTools:
        return load_manifests(self.tools, cwd=self.place, **more)


def call(clad: CladTools, name: str, arguments: Any, id: str | None = None) -> BaseToolCall:
    """A call as a model writes it; raises `InvalidArgumentsError`."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return clad.toolset.parse(ToolMetadata(id or f"call_{next(_IDS)}", name, text))


def run(clad: CladTools, name: str, arguments: Any, *, backend: str = "asyncio") -> ExecutionResult:
    """The result of one call."""
    (result,) = run_all(clad, [call(clad, name, arguments)], backend=backend)
    return result


def run_all(
    clad: CladTools, calls: Sequence[BaseToolCall], *, backend: str = "asyncio", **settings: Any
) -> list[ExecutionResult]:
    executor = ToolExecutor(**settings)

    async def execute() -> list[ExecutionResult]:
        return await executor.run(calls, clad.dispatch)

    return anyio.run(execute, backend=backend)


def told(result: ExecutionResult) -> dict[str, Any]:
    """What the model is told."""
    assert isinstance(result.content, str)
    found: dict[str, Any] = json.loads(result.content)
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    import time

    for _ in range(2000):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError("it never happened")
