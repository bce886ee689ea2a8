"""The program that docs/local.md shows for Ollama."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lutumpy.testing import Reply, serve

PAGE = Path(__file__).parents[3] / "docs" / "local.md"


def test_the_program_of_the_page_asks_where_ollama_listens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (program,) = [block for block in blocks if "OllamaChat" in block]
    with serve([Reply(text="In Norway.")]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        names: dict[str, Any] = {}
        exec(compile(program, str(PAGE), "exec"), names)
        names["llm"].close()
        (request,) = server.requests
    assert request.body["model"] == "qwen3:4b"
    assert capsys.readouterr().out == "In Norway.\n"
