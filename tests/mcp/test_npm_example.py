"""The example about files, with the server from npm."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from mcp_toolkit import node

ROOT = Path(__file__).parent.parent.parent
SAID = """\
  read_text_file: ok: milk
write_file FOLDER/plan.txt
  may it? [y/N] write_file FOLDER/note.txt
  may it? [y/N]   write_file: rejected: the user said no
  write_file: ok: Successfully wrote to FOLDER/plan.txt
plan.txt has the plan; note.txt stays as it was.
"""


def run(server: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "examples" / "mcp_files.py")
    return subprocess.run(
        [sys.executable, "-W", "error", script, "--server", server, "--folder", folder, *options],
        input="y\nn\n",
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_person_is_asked_before_anything_is_written(npm_modules: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("milk\n")
    server = shlex.join([node(), str(npm_modules / "server-filesystem" / "dist" / "index.js")])
    done = run(server, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.replace(str(tmp_path), "FOLDER") == SAID
    assert (tmp_path / "plan.txt").read_text() == "1. Buy milk.\n"
    assert (tmp_path / "note.txt").read_text() == "milk\n"
    locked = run(server, tmp_path, "--lock", str(tmp_path / "none.json"))
    assert locked.returncode == 2
    assert re.search(r"there is no .*none\.json", locked.stderr)
