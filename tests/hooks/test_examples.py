"""The applications under `examples/hooks` run as they stand and do what they promise."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "hooks"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))


def run(name: str, *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_application_is_tested() -> None:
    tested = {"approval_gate.py", "audit_log.py", "budget.py", "cache.py", "read_only.py", "redaction.py"}
    assert set(NAMES) == tested


@pytest.mark.parametrize("name", NAMES)
def test_an_application_says_what_it_is_for(name: str) -> None:
    assert ast.get_docstring(ast.parse((EXAMPLES / name).read_text()))


def test_the_approval_gate_accepts_edits_and_rejects() -> None:
    assert run("approval_gate.py").splitlines() == [
        'ran: ["A-1: 120.00","A-2: 90.00","A-3: 4000.00"]',
        "pay {'invoice': 'A-1', 'amount': 120.0} -> yes",  # what will be run, not what the model wrote
        "pay {'invoice': 'A-2', 'amount': 900.0} -> {\"amount\": 90}",
        "pay {'invoice': 'A-3', 'amount': 4000.0} -> too much, ask my boss",
        "ran: paid 120.00 for A-1",
        "ran: paid 90.00 for A-2",
        'rejected: {"invoice":"A-3","amount":4000}: a person said: too much, ask my boss',
        "A-1 and A-2 are paid; A-3 waits for your boss.",
    ]


def test_the_approval_gate_asks_on_the_terminal() -> None:
    out = run("approval_gate.py", "--ask", given='no idea\nyes\n{"amount": "40"}\n')
    assert "a person said: no idea" in out
    assert re.findall("ran: paid .*", out) == ["ran: paid 900.00 for A-2", "ran: paid 40.00 for A-3"]


def test_the_cache_completes() -> None:
    assert run("cache.py").splitlines() == [
        "2 to run, 0 from the cache",
        "  looking USD up",
        "  looking JPY up",
        "1 to run, 1 from the cache",
        "  ordering 100 USD",
        "1 to run, 0 from the cache",
        "  ordering 100 USD",
        "Done.",
    ]


def test_the_budget_rejects_rewords_and_withdraws() -> None:
    assert run("budget.py").splitlines() == [
        "offered: {'search': 'Search the web. At most 2 more times.', 'read_page': 'Read a page.'}",
        '  ran search {"query":"otters"}',
        "offered: {'search': 'Search the web. At most 1 more times.', 'read_page': 'Read a page.'}",
        '  ran search {"query":"sea otters"}',
        '  rejected {"query":"river otters"}: the budget for search is used up; go on with what you have',
        "offered: {'read_page': 'Read a page.'}",
        '  ran read_page {"url":"https://otters.example"}',
        "  not_available: The tool search is not available in this turn. Available tools: read_page.",
        "offered: {'read_page': 'Read a page.'}",
        "Otters hold hands.",
    ]


def test_read_only_mode_goes_by_the_effect_nested_tools_included() -> None:
    why = "rejected by the policy: the workspace is read-only now; describe the change instead of making it"
    assert run("read_only.py").splitlines() == [
        f"write_file: {why}",
        f"commit: {why}",
        "read_file: the text of notes.md",
        "I would empty notes.md and commit that.",
    ]


def test_the_audit_log_has_every_decision() -> None:
    lines = run("audit_log.py").splitlines()
    assert lines[:3] == [
        "lutumpy.tool_hook: call_1 of read_file: run_normally by Paths.read_file_hook",
        "lutumpy.tool_hook: call_2 of read_file: reject by Paths.read_file_hook",
        "lutumpy.tool_hook: call_3 of read_file: complete by Paths.read_file_hook",
    ]
    entries = [json.loads(line) for line in lines[3:]]
    assert [(e["call_id"], e["decision"]) for e in entries] == [
        ("call_1", "edited"),
        ("call_2", "rejected"),
        ("call_3", "handled"),
        ("call_4", "issue"),
    ]
    assert entries[0]["input"] == {"path": "README.md"}
    assert (entries[1]["reason"], entries[1]["by"]) == ("outside the project", "Paths.read_file_hook")


def test_redaction_reaches_failed_tools_too() -> None:
    out = run("redaction.py")
    assert "sk-live" not in out
    assert "ann@" not in out
    assert "LookupError: no such file for the key [key]" in out
