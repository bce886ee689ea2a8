"""The tests of front ends share `web_toolkit`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
