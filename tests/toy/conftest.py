"""Lets the tests here import the toy API, and puts it into the table for the time of a test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from toy_api import ROW

from lutumpy.apis import add_api, remove_api


@pytest.fixture
def toy() -> Iterator[str]:
    """The name of the toy API, which is in the table."""
    add_api(ROW)
    yield ROW.name
    remove_api(ROW.name)
