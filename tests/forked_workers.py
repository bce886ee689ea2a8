"""Forked workers (`--parallel=fork`) lose no test unnoticed.

A worker hands its results over when it has run its last test. One that leaves before that, as code
does that calls `os._exit`, takes them with it, and where it leaves with 0 nobody would notice.
"""

from __future__ import annotations

import pytest

__all__ = ["watch_workers"]


def watch_workers(config: pytest.Config) -> None:
    """Let the run fail where a test that was collected hasn't said how it ended."""
    if config.getoption("parallel_mode", None) == "fork" and not config.getoption("collectonly"):
        config.pluginmanager.register(_Endings())


class _Endings:
    def __init__(self) -> None:
        self._ended: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._ended.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        lost = [item.nodeid for item in session.items if item.nodeid not in self._ended]
        if lost and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            counts = f"{len(lost)} of {len(session.items)} tests"
            print(f"\nERROR a worker left without the results of {counts}, as {lost[0]}")
