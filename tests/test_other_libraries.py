"""Pages show code that isn't run as `py`: what needs another library, or a download."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


def test_few_pages_show_code_that_is_not_run() -> None:
    assert {page.name for page in DOCS.rglob("*.md") if blocks(page)} == {
        "cassettes.md",  # a test of a reader's own, with the plugin's fixture
        "engines.md",
        "evals.md",  # pydantic-evals; the session `evals` runs it
        "local.md",
        "migration.md",
        "telemetry.md",  # exporters
    }


@pytest.mark.parametrize("body", blocks(DOCS / "migration.md"))
def test_the_code_of_other_libraries_is_python_and_theirs(body: str) -> None:
    compile(body, "migration.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
    assert "lutumpy" not in body
