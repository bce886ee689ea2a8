"""The program that docs/local.md shows for Ollama."""

from __future__ import annotations

from typing import Any

import pytest
from test_docs import ROOT, blocks

from lutumpy.testing import Reply, serve

PAGE = ROOT / "docs" / "local.md"


def test_the_program_of_the_page_asks_where_ollama_listens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = [block.body for block in blocks(PAGE) if block.language == "py"]
    (program,) = [body for body in shown if "OllamaChat" in body]
    with serve([Reply(text="In Norway.")]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        names: dict[str, Any] = {}
        exec(compile(program, str(PAGE), "exec"), names)
        names["llm"].close()
        (request,) = server.requests
    assert request.body["model"] == "qwen3:4b"
    assert capsys.readouterr().out == "In Norway.\n"
