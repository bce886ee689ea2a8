"""Lets the tests here import what they share, if there is an SDK that shows what is made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

sys.path.insert(0, str(Path(__file__).parent))

from otel_toolkit import Exported


@pytest.fixture
def exported() -> Iterator[Exported]:
    """Everything that leaves the process."""
    with Exported() as everything:
        yield everything
