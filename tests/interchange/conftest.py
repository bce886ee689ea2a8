"""Lets the tests of this folder import what they share, and the conversations that stand above it."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
