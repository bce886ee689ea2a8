"""Clients that a test has opened are closed behind it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `bound_toolkit`

from bound_toolkit import CLIENTS


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    yield
    CLIENTS.close()
