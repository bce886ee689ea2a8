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
    "loop.py": (
        '  round 1: find_trains ok: {"night train to Rome":79.0,"slow train to Rome":39.0}\n'
        "  round 1: find_trains ok: {}\n"
        "  round 2: book rejected: more than 50 needs a signature\n"
        "  round 3: book ok: seat 12 in slow train to Rome\n"
        "You have seat 12 in the slow train to Rome. (answer after 3 rounds)\n"
        "True\n"
    ),
    "execution.py": (
        "  call_1 count: ok after 1 attempt\n  call_2 count: ok after 2 attempts\n  call_3 count: failed after 1 attempt\n"
        "  call_4 order: ok after 1 attempt\n  call_5 count: rejected after 0 attempts\n"
        "2 counts ran at once; 2 of Dune, 7 of Emma\nI ordered two of Dune; of Emma there are enough.\n"
    ),
    "text_only_model.py": (
        "  says  '<think>[TOOL_CALL] is the way.</think>'\n"
        "  wrong malformed_arguments\n"
        '  calls departures {"station": "Oslo"}\n'
        "  says  ''\n"
        "  says  'Take the 14:02.'\n"
        "Take the 14:02.\n"
        "It was told: Tool call rejected: The tool call is not valid JSON: expected a name in double quotes\n"
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
