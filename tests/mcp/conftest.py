"""Runs coroutine tests that ask for `backend` on asyncio and on trio; lets tests import what they
share.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import anyio
import pytest

pytest.importorskip("mcp", reason="the extra mcp isn't installed")
sys.path.insert(0, str(Path(__file__).parent))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", ["asyncio", "trio"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    given = [pyfuncitem.funcargs[name] for name in names]
    backend = pyfuncitem.funcargs.get("backend", "asyncio")
    anyio.run(lambda: pyfuncitem.obj(*given), backend=str(backend))
    return True
