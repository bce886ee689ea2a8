"""Coverage of the quick tests alone, for the session `oldest` (`LUTUMPY_COVERED=quick`).

To count lines makes all code slower, by half on Python 3.10. So it is counted only where a test
runs that says something of coverage: not while tests are collected, and not in what is slow or
starts many processes. The quick tests reach each module as far as its bound asks.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
from collections.abc import Generator, Iterator

import coverage
import pytest

import lutumpy


def count_quick_tests(config: pytest.Config) -> None:
    """Count in this process, and in those that are forked from it."""
    counter = coverage.Coverage.current()
    assert counter is not None, "to be run by `coverage run`"
    config.pluginmanager.register(_QuickCoverage(counter))


class _QuickCoverage:
    def __init__(self, counter: coverage.Coverage) -> None:
        self._counter = counter

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        _import_everything()
        with self._paused():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not (item.get_closest_marker("slow") or item.get_closest_marker("process")):
            return (yield)
        with self._paused():
            return (yield)

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        self._counter.stop()
        # By these variables the programs that a test starts are counted.
        named = {name: os.environ[name] for name in os.environ if name.startswith("COVERAGE_")}
        for name in named:
            del os.environ[name]
        try:
            yield
        finally:
            os.environ.update(named)
            self._counter.start()


def _import_everything() -> None:
    """Import every module while it is counted: otherwise the tests would do so as they are
    collected.
    """
    for module in pkgutil.walk_packages(lutumpy.__path__, "lutumpy."):
        if not module.name.endswith(".__main__"):
            with contextlib.suppress(ImportError):  # of an extra that isn't installed here
                importlib.import_module(module.name)
