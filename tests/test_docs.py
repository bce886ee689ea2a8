"""The documentation is true: its code runs, what it says is printed is printed, its links lead
somewhere.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib.util
import inspect
import io
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from each_case import each

import lutumpy

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    body: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(m["language"], m["body"], text.count("\n", 0, m.start()) + 2)
        for m in FENCE.finditer(text)
    ]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


PAGES_WITH_CODE = [
    page for page in PAGES if any(block.language == "python" for block in blocks(page))
]


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """A module that is being written: the page with its prose left out, so that line numbers are
    those of the page.
    """
    page: Path = request.param
    lines = [""] * (page.read_text().count("\n") + 1)
    for block in blocks(page):
        if block.language == "python":
            for k, line in enumerate(block.body.splitlines(), block.line - 1):
                lines[k] = line
    name = "page_" + re.sub(r"\W", "_", name_of(page))
    file = tmp_path / f"{name}.py"
    file.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    yield made
    del sys.modules[name]


@pytest.mark.parametrize(
    ("page", "module"), [(p, p) for p in PAGES_WITH_CODE], indirect=["module"], ids=name_of
)
async def test_the_code_of_a_page_runs_and_prints_what_the_page_says(
    page: Path, module: ModuleType
) -> None:
    printed = ""
    for block in blocks(page):
        where = f"{name_of(page)}, line {block.line}"
        if block.language == "text" and printed:
            assert printed == block.body, where
            printed = ""
        if block.language != "python":
            continue
        code = compile(
            "\n" * (block.line - 1) + block.body,
            str(module.__file__),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        with contextlib.redirect_stdout(io.StringIO()) as output:
            if code.co_flags & inspect.CO_COROUTINE:
                await eval(code, module.__dict__)
            else:
                await asyncio.to_thread(exec, code, module.__dict__)
        printed = output.getvalue()


COLUMNS = 79
"""What fits beside the navigation of the site. Output is folded there, so it may be wider."""
OUTPUT = {"text", "console"}


@each("page", PAGES, name_of)
def test_the_code_of_a_page_is_not_cut_on_a_screen(page: Path) -> None:
    wide = [
        f"line {block.line + k}: {line}"
        for block in blocks(page)
        if block.language not in OUTPUT
        for k, line in enumerate(block.body.splitlines())
        if len(line) > COLUMNS
    ]
    assert wide == []


@each("page", PAGES, name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)} links to {target}"
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", FENCE.sub("", file.read_text()), re.MULTILINE)
            slugs = {
                re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings
            }
            assert anchor in slugs, f"{name_of(page)} links to {target}"


def commands() -> list[str]:
    """The commands that the README shows first: one runs the demo, one passes the tests."""
    (shell,) = [block.body for block in blocks(ROOT / "README.md") if block.language == "sh"]
    return shell.splitlines()


def test_the_readme_shows_one_command_for_the_demo_and_one_for_the_tests() -> None:
    demo, tests = commands()
    assert demo.endswith("lutumpy demo")
    assert tests.endswith("nox")


def test_hints_name_what_can_be_installed() -> None:
    """The project is used from a clone: an index has no package of its name."""
    texts = [*(ROOT / "lutumpy").rglob("*.py"), *(ROOT / "examples").rglob("*.py"), *PAGES]
    assert [
        name_of(file) for file in texts if re.search(r"pip install \S*lutumpy", file.read_text())
    ] == []


def test_no_page_promises_that_a_payment_is_made_once() -> None:
    promises = re.compile(r"payment\s+isn't\s+made\s+twice")
    assert [name_of(page) for page in PAGES if promises.search(page.read_text())] == []


def test_ci_runs_the_very_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert commands()[1] in [line.strip() for line in script.splitlines()]


def test_the_example_of_the_readme_is_short() -> None:
    (example,) = [block.body for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert len(example.splitlines()) <= 25


def test_the_landing_page_shows_one_program_of_at_most_twenty_lines_and_what_it_prints() -> None:
    shown = [
        block for block in blocks(ROOT / "docs" / "index.md") if "toctree" not in block.language
    ]
    assert [block.language for block in shown] == ["python", "text"]
    assert len([line for line in shown[0].body.splitlines() if line.strip()]) <= 20
    assert len(re.findall("^- \\*\\*", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE)) == 4


def test_the_readme_names_tests_that_there_are() -> None:
    """Each point of what makes the library different has a test behind it: a file, and where it is
    named, a function of it.
    """
    text = (ROOT / "README.md").read_text()
    points = re.findall(
        r"^- .+?(?=^- |\Z)", sections(text)["What makes it different"], re.MULTILINE | re.DOTALL
    )
    assert len(points) > 5
    for point in points:
        shown_by = re.findall(r"\[([^\]]+)\]\((tests/[^)]+\.py)\)", point)
        assert shown_by, point
        for label, file in shown_by:
            code = (ROOT / file).read_text()
            if label.startswith("`"):
                assert re.search(rf"^(async )?def {label.strip('`')}\(", code, re.MULTILINE), (
                    f"{file} has no {label}"
                )


def sections(text: str) -> dict[str, str]:
    """The text under each heading of the second level."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_check_is_described() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    checks = {
        function.name
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        and any("nox.session" in ast.unparse(decorator) for decorator in function.decorator_list)
    }
    rows = re.findall(
        r"^\| `([a-z_]+)", (ROOT / "docs" / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    assert sorted(rows) == sorted(checks)


# Folders of the layers, and the command line, which has a page: what they hold is public where the
# root exports it.
NOT_FOR_USERS = {"cli", "core", "demo", "hooks", "rounds", "tools"}


DOORS = (
    "lutumpy.hooks",
    "lutumpy.tools",
    "lutumpy.doctor",
    "lutumpy.streaming",
    "lutumpy.models",
    "lutumpy.errors",
)


WRITING = tuple(f"lutumpy.{part}.writing" for part in ("adapters", "rules", "doctor"))
"""The doors for packages that add an API."""


def public_modules() -> list[str]:
    """The root, its doors, the adapters, and the opt-in packages."""
    package = ROOT / "lutumpy"
    folders = [
        file.parent
        for file in [*package.glob("*/__init__.py"), *package.glob("adapters/*/__init__.py")]
    ]
    names = [
        folder.relative_to(ROOT).as_posix().replace("/", ".")
        for folder in folders
        if folder.name not in NOT_FOR_USERS
    ]
    return [
        "lutumpy",
        *DOORS,
        "lutumpy.web.starlette",
        *WRITING,
        *sorted(
            name
            for name in {*names} - {*DOORS}
            if hasattr(importlib.import_module(name), "__all__")
        ),
    ]


def public_names() -> set[str]:
    """Every public name by its first home: a name of the root is public in a door as well."""
    homes: dict[str, str] = {}
    # The errors of opt-in parts stand in `lutumpy.errors`; readers look for them beside the part.
    for module in sorted(public_modules(), key="lutumpy.errors".__eq__):
        for name in importlib.import_module(module).__all__:
            if module == "lutumpy" or module in DOORS:
                homes.setdefault(name, f"{module}.{name}")
            else:
                homes[f"{module}.{name}"] = f"{module}.{name}"
                homes.setdefault(name, f"{module}.{name}")
    return {*homes.values()}


@pytest.mark.pure
@pytest.mark.slow
def test_a_test_imports_a_public_name_from_where_it_is_public() -> None:
    """So that the tests show how much of the library its public doors reach."""
    public = {module: importlib.import_module(module) for module in public_modules()}
    homes = {
        (name, id(getattr(module, name))): home
        for home, module in public.items()
        for name in module.__all__
    }
    found: list[str] = []
    # Benchmarks look inside, and run earlier commits.
    files = [file for file in (ROOT / "tests").rglob("*.py") if file.parent.name != "benchmarks"]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            source = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if not source.startswith("lutumpy.") or source in public:
                continue
            module = importlib.import_module(source)
            for alias in node.names:
                home = homes.get((alias.name, id(getattr(module, alias.name, None))))
                if home is not None:
                    found.append(f"{file.name}:{node.lineno}: {alias.name} is in {home}")
    assert found == []


def test_the_reference_has_every_public_name_once() -> None:
    listed = [
        name
        for page in sorted((ROOT / "docs" / "reference").glob("*.rst"))
        for name in re.findall(r"^\.\. auto\w+:: (\S+)$", page.read_text(), re.MULTILINE)
    ]
    public = public_names()
    assert sorted(name for name in listed if listed.count(name) > 1) == []
    assert sorted(public - set(listed)) == []
    # What else is there has no public name: the values that public methods give.
    assert sorted(set(listed) - public) == [
        "lutumpy.adapters.openai.model.OpenAIModel",
        "lutumpy.tools.arguments.ArgumentRepair",
    ]


def test_the_reference_misses_no_member_for_want_of_a_docstring() -> None:
    silent = [
        f"{cls.__module__}.{cls.__qualname__}.{name}"
        for module in public_modules()
        for public in importlib.import_module(module).__all__
        if inspect.isclass(cls := getattr(importlib.import_module(module), public))
        for base in cls.__mro__
        if base.__module__.startswith("lutumpy")
        for name, value in vars(base).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, (property, staticmethod, classmethod)))
        if not inspect.getdoc(getattr(cls, name))
    ]
    assert silent == []


def test_every_page_is_in_the_site_once() -> None:
    docs = ROOT / "docs"
    found: list[str] = []
    for page in [*docs.rglob("*.md"), *docs.rglob("*.rst")]:
        for block in blocks(page):
            if block.language == "{toctree}":
                lines = [
                    line for line in block.body.splitlines() if line and not line.startswith(":")
                ]
                for entry in [re.sub(r".+<(.+)>", r"\1", line) for line in lines]:
                    files = sorted(page.parent.glob(f"{entry}.md")) + sorted(
                        page.parent.glob(f"{entry}.rst")
                    )
                    assert files, f"{name_of(page)} lists {entry}, which is no page"
                    found += [name_of(file) for file in files]
    pages = [
        name_of(page)
        for page in [*docs.rglob("*.md"), *docs.rglob("*.rst")]
        if page != docs / "index.md"
    ]
    assert sorted(found) == sorted(pages)


RULE = re.compile(r"(?<![\w.])([ACDEHKRST]\d{1,2}[a-z]?)(?!\w)")


def test_every_rule_that_is_named_is_written_down() -> None:
    written = re.findall(
        r"^- \*\*(\w+)\*\*", (ROOT / "docs" / "rules.md").read_text(), re.MULTILINE
    )
    named = {
        rule
        for file in (ROOT / "lutumpy").rglob("*.py")
        for text in re.findall(r"rules? (.{0,30})", file.read_text())
        for rule in RULE.findall(text)
    }
    named |= {
        rule
        for file in (ROOT / "tests").rglob("test_*.py")
        for text in re.findall(r"def test_\w+", file.read_text())
        for rule in re.findall(r"_([A-Z]\d{1,2}[a-z]?)(?=_|$)", text)
    }
    assert len(named) > 50
    assert sorted(named - set(written)) == []
    assert len(written) == len(set(written))


@each("page", PAGES, name_of)
def test_a_page_has_one_title_and_no_level_left_out(page: Path) -> None:
    levels = [
        len(marks) for marks in re.findall(r"^(#+) ", FENCE.sub("", page.read_text()), re.MULTILINE)
    ]
    assert levels[:1] == [1]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_changelog_knows_the_version() -> None:
    assert re.search(
        rf"^## {re.escape(lutumpy.__version__)}\b",
        (ROOT / "docs/CHANGELOG.md").read_text(),
        re.MULTILINE,
    )


def test_decisions_are_numbered_and_listed() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [page.name[:4] for page in pages] == [f"{k:04}" for k in range(1, len(pages) + 1)]
    listed = (ROOT / "docs" / "architecture.md").read_text()
    assert [page.name for page in pages if page.name not in listed] == []
