"""The browser of the tests that need one.

The noxfile reads this too, where there is no pytest.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

CHROMIUM: str | None = next(
    filter(
        None,
        map(
            shutil.which,
            # The first is the engine without the parts of a desktop: it takes half the time.
            ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
        ),
    ),
    None,
)
"""The program, where there is one."""

FLAGS: tuple[str, ...] = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def need_browser() -> None:
    """Skip the module of tests that calls this where there is no Chromium or no playwright.

    Raises:
        RuntimeError: One isn't there, and `LUTUMPY_NEED_BROWSER=1` says that both must be.
    """
    if find_spec("playwright") is None:
        missing = "playwright is not installed"
    elif CHROMIUM is None:
        missing = "there is no chromium on the path"
    else:
        return
    if os.environ.get("LUTUMPY_NEED_BROWSER") == "1":
        raise RuntimeError(f"LUTUMPY_NEED_BROWSER=1, and {missing}")
    import pytest

    pytest.skip(missing, allow_module_level=True)
