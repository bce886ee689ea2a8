"""The example of a text-only model, with the real one.

See `test_adapters_live` for when these tests run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("LUTUMPY_NEED_LOCAL") != "1", reason="LUTUMPY_NEED_LOCAL is not set"
)

ROOT = Path(__file__).parents[2]


def test_the_text_only_example_calls_its_tool_and_answers() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "text_only_model.py"), "--local"],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "  calls get_weather {'city': 'Oslo'}"
    assert lines[-1].strip()
    assert "wrong" not in done.stdout
