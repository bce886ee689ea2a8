"""Open calls on the command line: counted, and closed when that is asked for (LR18)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli_toolkit import Run, Write

CALL: Any = {"type": "function_call", "call_id": "c1", "name": "render", "arguments": "{}"}
HISTORY: Any = {"input": [{"role": "user", "content": "Go."}, {**CALL, "async": True}]}
API = ("--api", "openai_responses")


def test_a_note_counts_open_calls_and_repairs_leave_them(run: Run, write: Write) -> None:
    file = write("a.json", text=json.dumps(HISTORY["input"]))
    ended = run("check", file, *API)
    assert ended.code == 0
    assert "note: 1 call may stay open" in ended.out
    records = run("check", "--json", file, *API).records
    assert [r["open_calls"] for r in records if "open_calls" in r] == [1]
    assert run("repair", file, "--apply", *API).code == 0
    assert json.loads(Path(file).read_text()) == HISTORY["input"]
    assert run("repair", file, "--apply", "--close-open", *API).code == 0
    assert json.loads(Path(file).read_text())[-1]["type"] == "function_call_output"
    assert "note" not in run("check", file, *API).out
