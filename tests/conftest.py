"""What every test runs under: coroutine tests, profiles, Ctrl-C, no keys, no network but the
loopback.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import none

sys.path.insert(0, str(Path(__file__).parent))  # for what tests of several folders share

from forked_workers import watch_workers
from profiles import IS_FEWER, IS_REST, PROCESSES, PROFILE, PURE, cases_of, examples
from provider_environment import leave_out_providers

# Modules, SDKs and tests stay until the end. While they are loaded nobody looks for garbage, and
# afterwards (`pytest_collection_finish`) no collection of a test goes through them again. What is
# garbage by then stays as well: some 50 MB, which would take a second to find.
gc.disable()

# No test depends on a developer's own keys, or spends them. It is done first: modules of tests read
# the environment when they are collected, and the programs that tests start inherit it.
leave_out_providers(os.environ)

# Each client of an SDK reads who may sign certificates, for 25 ms, and no test needs one of them:
# servers on this machine speak plain HTTP. A model that is downloaded comes from an index.
if not os.environ.get("LUTUMPY_NEED_LOCAL"):
    os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "fixtures" / "no_authority.pem")

# No deadline, and no complaint about slow data: time says more of the machine than of the code.
settings.register_profile(
    PROFILE,
    max_examples=examples(100),
    deadline=None,
    derandomize=PROFILE != "thorough",
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(PROFILE)


@given(none())
def _use_hypothesis(_: None) -> None:
    """Let hypothesis make its generator of random numbers. It goes through everything in memory for
    that, which is little as yet.
    """


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    _use_hypothesis()


# What a shell starts in the background ignores Ctrl-C, and so would every program that a test
# starts or interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# A function that calls one of these tries as many cases as the profile says.
_SCALED = {"examples", "some_of"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the profile scales, and leave out the cases that it doesn't try."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        module = item.nodeid.partition("::")[0].removeprefix("tests/")
        starts_processes = module in PROCESSES
        if starts_processes:
            item.add_marker("process")
        if module in PURE:
            item.add_marker("pure")
        if IS_REST and (starts_processes or item.get_closest_marker("slow")):
            continue  # the quick run has tried none of its cases
        if hasattr(item, "callspec") and (
            item.get_closest_marker("sweep") or (IS_FEWER and _lists_of_cases(item) > 1)
        ):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        elif _is_scaled(item.obj):
            item.add_marker("scaled")
    tried = {item for rows in cases.values() for item in cases_of(rows, _node_id)}
    left_out = {item for rows in cases.values() for item in rows if item not in tried}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _lists_of_cases(item: pytest.Function) -> int:
    """How many lists of cases a test combines: those that it names, and those of fixtures."""
    named = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = {
        name.strip()
        for each in named
        for name in (each.split(",") if isinstance(each, str) else each)
    }
    return len(named) + len(item.callspec.params.keys() - names)


def _node_id(item: pytest.Item) -> str:
    return item.nodeid


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # a twentieth of a run would go into looking for garbage
    gc.enable()


def _is_scaled(function: Any) -> bool:
    """Whether it is a property, or says itself how many cases it tries."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = set(code.co_names) if code is not None else set()
    return getattr(function, "is_hypothesis_test", False) or bool(names & _SCALED)


def pytest_configure(config: pytest.Config) -> None:
    watch_workers(config)
    if os.environ.get("LUTUMPY_COVERED") == "quick":
        from quick_coverage import count_quick_tests

        count_quick_tests(config)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in an event loop of its own, or in that of the fixture `event_loop`
    where it uses one; no plugin is needed for that.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    loop = pyfuncitem.funcargs.get("event_loop")
    run = asyncio.run if loop is None else loop.run_until_complete
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


_LOOPBACK = ("localhost", "::1", "127.")


def _check(address: Any) -> None:
    host = address[0] if isinstance(address, tuple) else None
    if isinstance(host, str) and not host.startswith(_LOOPBACK):
        raise RuntimeError(f"a test tried to reach {host}: tests stay on this machine")


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

        def guarded(self: socket.socket, address: Any) -> None:
            _check(address)
            connect(self, address)

        def guarded_ex(self: socket.socket, address: Any) -> int:
            _check(address)
            return connect_ex(self, address)

        patch.setattr(socket.socket, "connect", guarded)
        patch.setattr(socket.socket, "connect_ex", guarded_ex)
        yield
