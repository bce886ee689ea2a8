"""The conformance suite of the Model Context Protocol, from npm, against server and client.

`nox -s mcp_conformance` installs and runs it; what fails for a reason is in `expected.yml`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "conformance"
FOLDER = os.environ.get("LUTUMPY_MCP_CONFORMANCE", "")
NODE = os.environ.get("LUTUMPY_NODE", "")
SUITE = Path(FOLDER) / "node_modules/@modelcontextprotocol/conformance/dist/index.js"

pytestmark = pytest.mark.skipif(not FOLDER, reason="nox -s mcp_conformance runs these")


def run_suite(*arguments: str) -> tuple[int, int, str]:
    """How many checks passed and failed; and the summary, where it isn't as expected."""
    command = [NODE, str(SUITE), *arguments, "--expected-failures", str(HERE / "expected.yml")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=500, check=False)
    summary = done.stdout.partition("SUMMARY")[2]
    total = re.search(r"Total: (\d+) passed, (\d+) failed", summary)
    assert total is not None, done.stdout[-2000:] + done.stderr[-2000:]
    print(summary)
    return int(total[1]), int(total[2]), "" if done.returncode == 0 else summary


@pytest.fixture
def address() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(HERE / "served.py")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def test_a_served_toolset_passes_every_check_of_a_server_MCP7(address: str) -> None:
    passed, failed, unlike = run_suite("server", "--url", address, "--suite", "all")
    assert (failed, unlike) == (0, "")
    assert passed >= 44


def test_mcp_tools_passes_what_a_client_is_checked_for() -> None:
    command = f"{sys.executable} {HERE / 'client.py'}"
    passed, failed, unlike = run_suite(
        "client", "--command", command, "--suite", "all", "--timeout", "120000"
    )
    assert unlike == ""
    assert passed >= 299
    assert failed <= 5
