"""The code of docs/local.md, which needs the model to run.

See `test_adapters_live` for when these tests run.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("LUTUMPY_NEED_LOCAL") != "1", reason="LUTUMPY_NEED_LOCAL is not set"
)

PAGE = Path(__file__).parents[2] / "docs" / "local.md"


async def test_the_code_of_the_page_runs_and_calls_what_it_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    # That of Ollama is run against the test server (`tests/adapters/ollama/test_page.py`).
    blocks = [block for block in blocks if "OllamaChat" not in block]
    assert len(blocks) == 4
    page = ModuleType("page_local")
    for block in blocks:
        code = compile(
            block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
        running = eval(code, page.__dict__)
        if inspect.isawaitable(running):
            await running
    assert "['Oslo', 'Rome']\n" in capsys.readouterr().out
