"""What the pages of the command line show is what the commands print."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_toolkit import Run

DOCS = Path(__file__).parent.parent.parent / "docs"
BLOCK = re.compile(
    r"(?:`(?P<file>[\w.]+)`:\n\n)?^```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LONGEST = 400  # characters of a line that a page shows


def written(page: Path, folder: Path, run: Run) -> str:
    """The page with the output of its commands as it is now."""
    code = 0

    def outcome(match: re.Match[str]) -> str:
        nonlocal code
        if match["file"]:
            (folder / match["file"]).write_text(match["body"])
        if match["language"] != "console":
            return match[0]
        lines: list[str] = []
        for command in re.findall(r"^\$ (.*)$", match["body"], re.MULTILINE):
            lines.append(f"$ {command}")
            words = shlex.split(command)
            if words[0] == "echo":
                lines.append(str(code))
            elif words[0] == "sed":
                _, old, new, _ = words[2].split("/")
                file = folder / words[3]
                file.write_text(file.read_text().replace(old, new))
            else:
                for name in [name for name in sys.modules if name == "shop"]:
                    del sys.modules[name]
                ended = run(*words[1:])
                code = ended.code
                lines += (ended.out + ended.err).rstrip("\n").split("\n")
        shown = [
            line.rstrip() if len(line) <= LONGEST else f"{line[:LONGEST]}..." for line in lines
        ]
        return f"```console\n{chr(10).join(shown)}\n```"

    return BLOCK.sub(outcome, page.read_text())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("shop", None)


@pytest.mark.parametrize("name", ["command_line.md", "tool_doctor.md"])
def test_a_page_shows_what_the_commands_print(name: str, folder: Path, run: Run) -> None:
    page = DOCS / name
    assert written(page, folder, run) == page.read_text()
