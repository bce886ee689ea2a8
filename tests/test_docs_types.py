"""The Python blocks of the pages pass mypy --strict and pyright: each page is one program."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from checkers import CHECKERS, errors_of
from each_case import each
from test_docs import PAGES_WITH_CODE, blocks, name_of

# A page awaits at its top level, as `python -m asyncio` does; a module can't.
TOP_LEVEL = re.compile(
    r'"await" (?:outside|allowed only)|'
    r'"?async"? (?:with|for|comprehension)?"? ?(?:outside|not allowed outside)|'
    r'Use of "async" not allowed|top-level-await|'
    r"asynchronous comprehension outside|outside async function"
)


def module_of(page: Path) -> str:
    return "page_" + re.sub(r"\W", "_", name_of(page))


@functools.cache
def modules() -> dict[str, str]:
    """The code of each page with its prose left out, so that line numbers are those of the page."""
    return {module_of(page): _code(page) for page in PAGES_WITH_CODE}


def _code(page: Path) -> str:
    lines = [""] * (page.read_text().count("\n") + 1)
    for block in blocks(page):
        if block.language == "python":
            for k, line in enumerate(block.body.splitlines(), block.line - 1):
                lines[k] = line
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("checker", CHECKERS)
@each("page", PAGES_WITH_CODE, name_of)
def test_the_code_of_a_page_is_typed(checker: str, page: Path) -> None:
    errors = errors_of(checker, modules()).get(Path(module_of(page)), {})
    assert [
        f"line {line}: {message}"
        for line, messages in errors.items()
        for message in messages
        if not TOP_LEVEL.search(message)
    ] == []
