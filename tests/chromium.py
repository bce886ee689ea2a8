"""The browser of the tests that need one."""

from __future__ import annotations

import shutil

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
