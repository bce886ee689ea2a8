"""Lets the tests here import what they share, and runs each with every form of the loop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from every_api import APIS
from loop_toolkit import FORMS, Runner


@pytest.fixture(params=FORMS)
def run(request: pytest.FixtureRequest) -> Runner:
    """`run_tools` under asyncio and trio, and `run_tools_sync`, all called alike."""
    return Runner(request.param)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """An async library."""
    name: str = request.param
    return name


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """One API of the table."""
    name: str = request.param
    return name
