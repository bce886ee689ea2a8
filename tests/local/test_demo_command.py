"""`lutumpy demo --local`, where it can't run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lutumpy.cli import main


def test_a_file_that_is_not_there_is_told(
    tmp_path: Path, pretended: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--local", "--model", str(tmp_path / "gone.gguf")]) == 2
    assert f"lutumpy: there is no file {tmp_path / 'gone.gguf'}" in capsys.readouterr().err


def test_without_the_extra_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["demo", "--local", "--model", str(tmp_path)]) == 2
    assert 'pip install ".[local]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "other", [["--live"], ["--hooks"], ["--stream"], ["--provider", "anthropic"]]
)
def test_options_of_the_other_demo_are_refused(
    other: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--local", *other]) == 2
    assert "only --model goes with it" in capsys.readouterr().err
