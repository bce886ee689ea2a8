"""Runs each coroutine test of this folder on asyncio and trio, in virtual time.

It also lets the tests import what they share.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from virtual_time import BACKENDS, run


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function) and "backend" not in metafunc.fixturenames:
        metafunc.fixturenames.append("backend")
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", BACKENDS)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    backend = pyfuncitem.callspec.params["backend"]
    run(backend, pyfuncitem.obj, *[pyfuncitem.funcargs[name] for name in names])
    return True
