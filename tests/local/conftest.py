"""Fixtures of the tests of `lutumpy.local`, and what lets them import what they share."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lutumpy.local import PackagedModel

sys.path.insert(0, str(Path(__file__).parent))

from local_toolkit import PRETENDED, described, make_wheel


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    return make_wheel(shelf)


@pytest.fixture
def tiny(wheel: Path) -> PackagedModel:
    """The model in `wheel`."""
    return described(wheel)


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the pretended xllamacpp, which comes first wherever modules are looked for."""
    folder = tmp_path / "pretended"
    folder.mkdir()
    (folder / "xllamacpp.py").write_text(PRETENDED)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def watcher() -> Iterator[socket.socket]:
    """A socket that the pretended server connects to: the connection ends with its process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        yield listener
