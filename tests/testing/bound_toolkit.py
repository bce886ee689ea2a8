"""What the tests of bound reasoning share."""

from __future__ import annotations

from contextlib import ExitStack

CLIENTS = ExitStack()
"""Clients of the test that runs; one that is left to the collector warns in another test."""
