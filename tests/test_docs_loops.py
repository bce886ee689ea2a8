"""Every loop over the calls of a round that the pages and examples show runs the tool that was
called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from each_case import each
from test_docs import PAGES, ROOT, blocks, name_of

Loop = tuple[int, str, list[ast.AST]]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def loops(tree: ast.AST) -> Iterator[Loop]:
    """Line, variable and body of each loop over `.calls` or `.pending`, comprehensions included."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            if _of_calls(node.iter) and isinstance(node.target, ast.Name):
                yield node.lineno, node.target.id, [*node.body]
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            source = node.generators[0]
            if _of_calls(source.iter) and isinstance(source.target, ast.Name):
                yield node.lineno, source.target.id, [node.elt, *source.ifs]


def _of_calls(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("calls", "pending")


def completes(variable: str, body: list[ast.AST]) -> bool:
    return any(_is_method(node, variable, "complete") for part in body for node in ast.walk(part))


def dispatches(variable: str, body: list[ast.AST]) -> bool:
    """Whether the loop asks which tool was called: by running the call's own function, by
    `matches`, or by `match`.
    """
    for part in body:
        for node in ast.walk(part):
            if _is_method(node, variable, "call") or _is_method(node, variable, "call_sync"):
                return True
            if (
                isinstance(node, ast.Match)
                and isinstance(node.subject, ast.Name)
                and node.subject.id == variable
            ):
                return True
            if isinstance(node, ast.Call) and any(
                isinstance(a, ast.Name) and a.id == variable for a in node.args
            ):
                name = (
                    node.func.attr
                    if isinstance(node.func, ast.Attribute)
                    else getattr(node.func, "id", "")
                )
                if name == "matches":
                    return True
    return False


def _is_method(node: ast.AST, variable: str, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == variable
    )


def undispatched(source: str, line: int = 1) -> list[int]:
    """The lines of loops that complete calls without looking at which tool was called."""
    code = compile(source, "page", "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return [
        line - 1 + number
        for number, variable, body in loops(code)
        if completes(variable, body) and not dispatches(variable, body)
    ]


@each("page", PAGES, name_of)
def test_every_loop_of_a_page_dispatches_by_tool(page: Path) -> None:
    found = [
        line
        for block in blocks(page)
        if block.language in ("python", "py")
        for line in undispatched(block.body, block.line)
    ]
    assert found == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_loop_of_an_example_dispatches_by_tool(file: Path) -> None:
    assert undispatched(file.read_text()) == []


def test_the_first_example_has_two_tools() -> None:
    (example,) = [block.body for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert example.count("@tool_fn") == 2


@pytest.mark.parametrize(
    "loop",
    [
        "round.commit(s, [call.complete(f(**call.arguments)) for call in round.calls])",
        "for call in outcome.round.calls:\n    results.append(call.complete(f(**call.arguments)))",
        "for c in plan.pending:\n    print(c)\n    out = [c.complete(3)]",
    ],
)
def test_a_loop_that_does_not_dispatch_is_found(loop: str) -> None:
    assert undispatched(loop) == [1]


@pytest.mark.parametrize(
    "loop",
    [
        "[call.complete(await call.call()) for call in round.calls]",
        "[call.complete(call.call_sync(index=1)) for call in round.calls]",
        "[call.complete(1) if T.f.matches(call) else call.fail('') for call in round.calls]",
        "[call.complete(1) for call in round.calls if T.f.matches(call)]",
        "for call in round.calls:\n    match call:\n        case T(): call.complete(1)",
        "[call.fail('no') for call in round.calls]",
    ],
)
def test_a_loop_that_dispatches_is_not_found(loop: str) -> None:
    assert undispatched(loop) == []
