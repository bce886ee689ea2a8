"""Do the tests of the quick run notice the mutants that all examples and cases notice?

    python tests/benchmarks/mutants.py [--most 20] MODULE.py [MODULE.py ...] -- TESTS [TESTS ...]

A mutant is one small change in one function: another comparison, `or` for `and`, no `not`, another
number, another text, a branch the other way. Which are tried is drawn by a stable hash. The tests
are collected once for each profile; each mutant gets a process that is forked from there, puts the
changed code into the living function, and stops at the first test that fails. Printed are how many
each profile notices, and those that only one of them does; these also make the exit code 1.

It needs `fork`, and functions that a mutant leaves in place: what only runs while modules are
imported isn't changed.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import signal
import subprocess
import sys
import types
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROFILES = ("default", "small")
LEFT_OUT = {"default": "", "small": "not process and not slow"}
"""What the quick run leaves out, as pytest's `-m` takes it."""
SECONDS = 300
"""How long the tests of one mutant may take; one that hangs is noticed."""

COMPARED = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    """The functions of a module and the methods of its classes, without those inside of them."""
    stack: list[ast.AST] = [tree]
    while stack:
        for node in ast.iter_child_nodes(stack.pop()):
            if isinstance(node, Function):
                yield node
            else:
                stack.append(node)


def changed(node: ast.AST) -> bool:
    """Change a node in place; False where there is nothing to change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        node.ops[0] = COMPARED[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        ast.fix_missing_locations(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        node.value = node.value + "x"
    else:
        return False
    return True


def places(function: Function) -> list[int]:
    """Numbers of the nodes that can be changed, as `ast.walk` counts them; docstrings aren't."""
    texts = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Expr)}
    parts = {
        id(part)
        for node in ast.walk(function)
        if isinstance(node, ast.JoinedStr) or node in (function.returns,)
        for part in ast.walk(node)
    }
    return [
        number
        for number, node in enumerate(ast.walk(function))
        if id(node) not in texts | parts and changed(node)
    ]


def mutants(module: Path, most: int) -> list[tuple[str, int, str]]:
    """The function's name and line of each mutant, and which of its nodes is changed."""
    found = [
        (function.name, function.lineno, number)
        for function in functions(ast.parse(module.read_text()))
        for number in places(function)
    ]
    found.sort(key=lambda mutant: zlib.crc32(repr(mutant).encode()))
    return [(str(module), line, f"{name} {number}") for name, line, number in found[:most]]


def mutated(module: Path, line: int, number: int) -> tuple[types.CodeType, str]:
    """The code of the changed function, and what was changed."""
    tree = ast.parse(module.read_text())
    (function,) = [node for node in functions(tree) if node.lineno == line]
    node = list(ast.walk(function))[number]
    where = getattr(node, "lineno", line)
    before = ast.unparse(node).split("\n")[0]
    changed(node)
    what = f"{module.relative_to(ROOT)}:{where}: {before} -> {ast.unparse(node).split(chr(10))[0]}"
    return code_of(compile(tree, str(module), "exec"), function), what


def code_of(code: types.CodeType, function: Function) -> types.CodeType:
    """The code of a function in that of its module."""
    stack = [code]
    while stack:
        for part in stack.pop().co_consts:
            if isinstance(part, types.CodeType):
                lines = (function.lineno, *(d.lineno for d in function.decorator_list))
                if part.co_name == function.name and part.co_firstlineno in lines:
                    return part
                stack.append(part)
    raise LookupError(function.name)


def put(code: types.CodeType) -> bool:
    """Give the code to the living functions that have it unchanged."""
    found = False
    for value in gc.get_objects():
        if isinstance(value, types.FunctionType):
            old = value.__code__
            same = old.co_filename == code.co_filename and old.co_name == code.co_name
            if same and old.co_firstlineno == code.co_firstlineno:
                value.__code__ = code
                found = True
    return found


class Mutants:
    """Runs the collected tests once for each mutant, each time in a process of its own."""

    def __init__(self, tried: list[tuple[str, int, str]]) -> None:
        self.tried = tried
        self.noticed: dict[str, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()
        if self._status(session, None) != 0:
            raise pytest.UsageError("a test fails without any change")
        for module, line, name in self.tried:
            code, what = mutated(Path(module), line, int(name.split()[1]))
            status = self._status(session, code)
            if status != 2:  # nothing that lives has the function
                self.noticed[what] = status != 0
        return True

    def _status(self, session: pytest.Session, code: types.CodeType | None) -> int:
        child = os.fork()
        if not child:
            self._run(session, code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _run(self, session: pytest.Session, code: types.CodeType | None) -> None:
        signal.alarm(SECONDS)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        status = 1
        try:
            if code is not None and not put(code):
                status = 2
                return
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    return
            status = 0
        finally:
            os._exit(status)


def noticed(profile: str, options: argparse.Namespace) -> dict[str, bool]:
    """Whether each mutant is noticed in a profile, by what was changed."""
    command = [sys.executable, __file__, "--most", str(options.most), "--here", *options.modules]
    environment = {**os.environ, "LUTUMPY_PROFILE": profile}
    done = subprocess.run(
        [*command, "--", *options.tests], env=environment, cwd=ROOT, stdout=subprocess.PIPE
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("modules", nargs="+")
    at = sys.argv.index("--")
    options = parser.parse_args(sys.argv[1:at])
    options.tests = sys.argv[at + 1 :]
    if options.here:
        tried = [m for module in options.modules for m in mutants(ROOT / module, options.most)]
        plugin = Mutants(tried)
        marks = LEFT_OUT[os.environ["LUTUMPY_PROFILE"]]
        pytest.main(["-q", "-p", "no:cacheprovider", "-m", marks, *options.tests], plugins=[plugin])
        print("\n" + json.dumps(plugin.noticed))
        return 0
    results = {profile: noticed(profile, options) for profile in PROFILES}
    for profile, result in results.items():
        print(f"{profile}: {sum(result.values())} of {len(result)} mutants are noticed")
    whole, part = (results[profile] for profile in PROFILES)
    if whole.keys() != part.keys():
        raise SystemExit("the two runs tried other mutants: was the source changed meanwhile?")
    unlike = [what for what in whole if whole[what] != part[what]]
    for what in unlike:
        print(f"only with {PROFILES[part[what]]}: {what}")
    for what in whole:
        if not whole[what] and not part[what]:
            print(f"noticed by neither: {what}")
    return bool(unlike)


if __name__ == "__main__":
    raise SystemExit(main())
