"""The plugin of pytest: a cassette for each test that asks for one.

It is installed a second time, as the module `pytest_lutumpy`, which is what pytest loads in every
run: from there, nothing of this library is imported until a test takes `llm_cassette`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lutumpy.testing import Cassette

__all__ = [
    "llm_cassette",
    "llm_cassette_options",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_makereport",
]

FIXTURE = "llm_cassette"
MODES = ("replay", "record", "record-new", "none")
HAS_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cassettes`."""
    parser.getgroup("lutumpy").addoption(
        "--cassettes",
        choices=MODES,
        default="replay",
        help="what tests with a cassette of lutumpy do: replay it (the default), record it anew, "
        "record what is behind the first request that differs, or none: they are skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the mark."""
    config.addinivalue_line(
        "markers",
        "cassette(path=..., match=..., ignore=..., redact=..., outputs=...): options of the "
        "test's llm_cassette",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests with a cassette where there are to be none."""
    if config.getoption("--cassettes") != "none":
        return
    skip = pytest.mark.skip(reason="--cassettes=none")
    for item in items:
        if FIXTURE in getattr(item, "fixturenames", ()) or item.get_closest_marker("cassette"):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test has failed."""
    report = yield
    if call.excinfo is not None:
        item.stash[HAS_FAILED] = True
    return report


@pytest.fixture
def llm_cassette_options() -> dict[str, Any]:
    """Options of every cassette, as `redact`: override it in a `conftest.py`. The mark of a test
    wins.
    """
    return {}


@pytest.fixture
def llm_cassette(
    request: pytest.FixtureRequest, llm_cassette_options: dict[str, Any]
) -> Iterator[Cassette]:
    """The cassette of one test: `cassettes/<module>/<test>.jsonl` beside the test's file.

    Where the test has passed, recordings that it left over fail it.
    """
    from lutumpy.testing import Cassette

    marks = [*request.node.iter_markers("cassette")]  # the closest one first
    options = dict(llm_cassette_options)
    for mark in reversed(marks):
        options.update(mark.kwargs)
    file = Path(str(request.path))
    name = _file_name(request.node.name)
    path = file.parent / options.pop("path", Path("cassettes", file.stem, name))
    mode: Any = request.config.getoption("--cassettes")
    cassette = Cassette(path, mode, **options)
    yield cassette
    # What has failed says more than what is left over because of it.
    cassette.close(check=not request.node.stash.get(HAS_FAILED, False))


def _file_name(test: str) -> str:
    """A name for the file of a test, which may have parameters."""
    plain = test.replace("[", "-").replace("]", "")
    name = re.sub(r"[^\w.-]+", "-", plain, flags=re.ASCII)
    # Two parameters may be alike but for what no file name should have.
    more = "" if name == plain else f"-{zlib.crc32(test.encode()):08x}"
    return f"{name}{more}.jsonl"
