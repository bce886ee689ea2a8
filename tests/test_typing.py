"""Type checkers accept good code and refuse bad code, without a plugin."""

from __future__ import annotations

import pytest
from checkers import CHECKERS, ROOT, TYPING, errors_of
from each_case import each
from test_docs_types import modules

ACCEPTED = sorted(path.name for path in TYPING.glob("accept*.py"))
REFUSED = sorted(path.name for path in TYPING.glob("refuse*.py"))

every_checker = pytest.mark.parametrize("checker", CHECKERS)


def errors(checker: str, file: str) -> dict[int, list[str]]:
    """The errors of a file of `tests/typing`, by line."""
    return errors_of(checker, modules()).get(TYPING / file, {})


def marked(file: str) -> set[int]:
    """The lines of a file that are to be refused."""
    return {
        k
        for k, line in enumerate((TYPING / file).read_text().splitlines(), 1)
        if line.endswith("# refused")
    }


@every_checker
@each("file", ACCEPTED)
def test_good_code_is_accepted(checker: str, file: str) -> None:
    assert errors(checker, file) == {}


@every_checker
@each("file", REFUSED)
def test_every_marked_line_is_refused(checker: str, file: str) -> None:
    lines = (TYPING / file).read_text().splitlines()
    assert marked(file)
    missed = sorted(marked(file) - errors(checker, file).keys())
    assert [lines[k - 1].strip() for k in missed] == []


@every_checker
@each("file", REFUSED)
def test_no_other_line_is_refused(checker: str, file: str) -> None:
    found = errors(checker, file)
    assert {k: messages for k, messages in found.items() if k not in marked(file)} == {}


@every_checker
def test_the_package_and_the_examples_have_no_errors(checker: str) -> None:
    found = errors_of(checker, modules())
    assert {
        str(file.relative_to(ROOT)): lines
        for file, lines in found.items()
        if (ROOT / "lutumpy") in file.parents or (ROOT / "examples") in file.parents
    } == {}
    elsewhere = [file for file in found if file.is_absolute() and ROOT not in file.parents]
    assert elsewhere == []
