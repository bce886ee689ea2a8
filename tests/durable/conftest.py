"""Lets the tests here import what they share, and runs each with every form of the loop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from durable_toolkit import APIS, FORMS, Form


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    """`run` under asyncio and trio, and `run_sync`, all called alike."""
    return Form(request.param)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """An async library."""
    name: str = request.param
    return name


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """One of the three APIs."""
    name: str = request.param
    return name
