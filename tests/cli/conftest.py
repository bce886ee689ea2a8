"""The command line as tests use it; lets them import what they share."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cli_toolkit import Ended, Run, Write

from lutumpy.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `lutumpy` with these arguments, and `stdin=` as its input."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write values as lines, or a text, into a file of the current directory, which is an empty
    one; gives its name.
    """
    monkeypatch.chdir(tmp_path)

    def write(name: str, *values: Any, text: str | None = None) -> str:
        lines = [json.dumps(value) for value in values]
        Path(name).write_text("\n".join(lines) + "\n" if text is None else text)
        return name

    return write
