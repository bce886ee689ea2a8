"""Processes that are killed or stopped at every point, and what holds afterwards (rules P1 to P7,
P10, P17). The rest is in `crash_worker.py` (the processes) and `crash_toolkit.py` (what must hold).
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_toolkit import (
    KILLED,
    Places,
    Trial,
    Workers,
    crash_and_finish,
    faults_of,
    sleeper_faults,
)

from lutumpy import Session
from tests.profiles import PROFILE, SCALES, examples
