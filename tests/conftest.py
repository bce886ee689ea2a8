"""What every test runs under: coroutine tests, profiles, Ctrl-C, no keys, no network but the
loopback.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # for what tests of several folders share

from profiles import PROFILE, examples
from provider_environment import leave_out_providers

# No test depends on a developer's own keys, or spends them. It is done first: modules of tests read
# the environment when they are collected, and the programs that tests start inherit it.
leave_out_providers(os.environ)

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


# What a shell starts in the background ignores Ctrl-C, and so would every program that a test
# starts or interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in an event loop of its own; no plugin is needed for that."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
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
