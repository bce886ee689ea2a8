"""Every example runs as it stands, without a key, and says what it promises."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

OUTPUT = {
    "quickstart.py": "I ordered four cups for 22.00; they come by post.\nnumber=1 total=22.0\n",
    "own_client_sync.py": "A toolset is a class of tools.\n",
    "streaming.py": (
        "Let me see.\n  a so far: {}\n  a so far: {'city': 'Oslo'}\n  a runs\n  b so far: {}\n"
        "  b so far: {'city': 'Bergen'}\n  b so far: {'city': 'Bergen'}\n  b runs\nOslo is larger.\n"
    ),
    "own_client_anthropic.py": "7 / 2 is 3.5, and 1 / 0 has no value.\n",
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == OUTPUT.keys()


@pytest.mark.parametrize("name", OUTPUT)
def test_an_example_runs(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, OUTPUT[name], "")


@pytest.mark.parametrize("name", OUTPUT)
def test_an_example_says_what_it_is_for(name: str) -> None:
    assert ast.get_docstring(ast.parse((EXAMPLES / name).read_text()))
