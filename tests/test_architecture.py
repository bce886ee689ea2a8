"""The table of who may import whom, held against the `ast` of every module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "lutumpy"
MODULES = {
    ".".join(["lutumpy", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# What each part may import of this package, beside itself and `errors`.
MAY_IMPORT = {
    "errors": set[str](),
    "rules": set[str](),
    "core": {"rules"},
    "doctor": {"core", "rules"},
    "adapters": {"core", "rules", "doctor"},
    "tools": {"core", "rules"},
    "hooks": {"core", "tools"},
    "rounds": {"core", "tools", "hooks"},
    "sendable": {"core", "adapters", "doctor"},
    "toolset": {"core", "tools", "hooks", "rounds"},
    "session": {"core", "tools", "hooks", "rounds", "toolset", "adapters", "sendable"},
    "": {"core", "tools", "hooks", "rounds", "toolset", "session", "doctor"},
}
# Convenience: these import what is public, and nothing of the above imports them.
OPT_IN = {
    "cli",
    "demo",
    "execution",
    "local",
    "loops",
    "page",
    "testing",
    "text_tools",
    "tool_doctor",
    "__main__",
}
# A transcript asks the adapter that reads a history.
INSIDE_METHODS = {
    "lutumpy.core.transcript": {"adapters"},
}
# Third-party packages, by the parts that may import them. SDKs only inside functions; see `test_import_cost`.
THIRD_PARTY = {
    "errors": set[str](),
    "rules": set[str](),
    "doctor": set[str](),
    "core": set[str](),
    "tools": {"docstring_parser", "pydantic", "pydantic_core", "typing_extensions"},
    "hooks": {"pluggy", "typing_extensions"},
    "rounds": {"pydantic", "typing_extensions"},
    "adapters": {"anthropic", "openai", "pydantic_core", "typing_extensions"},
    "sendable": set[str](),
    "toolset": {"typing_extensions"},
    "session": {"typing_extensions"},
    "": set[str](),
}
LONGEST_MODULE = 550


class Import:
    def __init__(self, module: str, line: int, *, inside: bool) -> None:
        self.module = module
        self.line = line
        self.inside = inside

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    @property
    def part(self) -> str:
        return part_of(self.module)


def part_of(module: str) -> str:
    """The part of the package that a module is in; `""` for the package's own `__init__`."""
    names = module.split(".")
    return names[1] if len(names) > 1 else ""


def imports(name: str) -> Iterator[Import]:
    """Every import of a module that happens at run time, and whether it happens inside a function."""
    yield from _imports(name, ast.parse(MODULES[name].read_text()), inside=False)


def _imports(name: str, node: ast.AST, *, inside: bool) -> Iterator[Import]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for child in node.orelse:
            yield from _imports(name, child, inside=inside)
        return
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, inside=inside)
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(name, node)
        for alias in node.names:
            full = f"{base}.{alias.name}"
            yield Import(full if full in MODULES else base, node.lineno, inside=inside)
    inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    for child in ast.iter_child_nodes(node):
        yield from _imports(name, child, inside=inside)


def _absolute(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = name.split(".") if MODULES[name].name == "__init__.py" else name.split(".")[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def test_every_part_of_the_package_is_in_the_table() -> None:
    assert {part_of(name) for name in MODULES} <= MAY_IMPORT.keys() | OPT_IN


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_what_its_part_may(name: str) -> None:
    part = part_of(name)
    if part in OPT_IN:
        return
    for found in imports(name):
        where = f"{name}, line {found.line}: {found.module}"
        if found.top != "lutumpy":
            known = (
                found.top in sys.stdlib_module_names
                or found.top == "__future__"
                or found.top in THIRD_PARTY[part]
            )
            assert known, f"{where}: not a package that {part or 'the root'} may import"
            continue
        exceptions = INSIDE_METHODS.get(name, set()) if found.inside else set()
        allowed = {part, "errors", *MAY_IMPORT[part], *exceptions}
        assert found.part in allowed, (
            f"{where}: {part or 'the root'} may not import {found.part or 'the root'}"
        )


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("lutumpy.adapters.")])
def test_one_provider_knows_nothing_of_another(name: str) -> None:
    provider = name.split(".")[2]
    for found in imports(name):
        if found.module.startswith("lutumpy.adapters."):
            assert found.module.split(".")[2] in {
                provider,
                "reading",
                "sdk",
                "sdk_body",
                "sdk_clients",
                "json_bytes",
                "sdk_events",
                "sdk_spans",
                "sdk_unsent",
                "sdk_model",
                "sdk_stream",
            }, f"{name} imports {found.module}"


def test_only_hooks_know_pluggy() -> None:
    users = {part_of(name) for name in MODULES for found in imports(name) if found.top == "pluggy"}
    assert users <= {"hooks"}


def test_nothing_imports_the_command_line_but_its_entry_points() -> None:
    for name in MODULES:
        for found in imports(name):
            if found.part == "demo":
                assert part_of(name) in {"cli", "demo"}
            if found.part == "cli":
                assert part_of(name) in {"__main__", "cli"}


def test_modules_do_not_import_each_other_in_circles() -> None:
    graph = {
        name: {f.module for f in imports(name) if not f.inside and f.module in MODULES}
        for name in MODULES
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for following in sorted(graph[name] - {name}):
                visit(following, (*trail, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_one_subject(name: str) -> None:
    lines = len(MODULES[name].read_text().splitlines())
    assert lines <= LONGEST_MODULE, f"{name} has {lines} lines: look for the seam"


def test_the_root_exports_what_it_names() -> None:
    import lutumpy

    names = list(lutumpy.__all__)
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(lutumpy, name)] == []
