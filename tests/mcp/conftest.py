"""Runs coroutine tests that ask for `backend` on asyncio and on trio; lets tests import what they
share.
"""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
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


@pytest.fixture(scope="session")
def npm_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that has the reference servers, packages of `npm/package.json`.

    `LUTUMPY_NPM_MCP` names the folder in whose `node_modules` they are; `nox -s mcp` makes one.
    With `LUTUMPY_NPM_MCP=install` they are fetched into a folder of their own. Without it, without
    node, and where they can't be had, nothing that needs them runs.
    """
    given = os.environ.get("LUTUMPY_NPM_MCP", "")
    if not given:
        pytest.skip("LUTUMPY_NPM_MCP names no folder with the servers")
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    scope = Path("node_modules") / "@modelcontextprotocol"
    if given != "install":
        return Path(given) / scope
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(Path(__file__).parent / "npm" / "package.json", folder)
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
    command = [shutil.which("npm") or "npm", "install", *options, "--prefix", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"the servers can't be had from npm: {error}")
    if done.returncode:
        pytest.skip(f"the servers can't be had from npm: {done.stderr.strip()[-300:]}")
    return folder / scope
