"""How much the tests try: the profile `LUTUMPY_PROFILE`, which scales every number of examples.

    small       for a second run of the suite, as that on the oldest Python: a third of the examples
    default     the same examples each time, so that a run fails for a change and never for its luck
    thorough    by hand: thirty times as many, other ones in each run

`tests/conftest.py` makes it the profile of hypothesis. A test that has a number of its own takes it
through `examples`.
"""

from __future__ import annotations

import os

SCALES = {"small": 1 / 3, "default": 1.0, "thorough": 30.0}
PROFILE = os.environ.get("LUTUMPY_PROFILE") or "default"
if PROFILE not in SCALES:
    raise SystemExit(f"LUTUMPY_PROFILE is one of {', '.join(SCALES)}, not {PROFILE!r}")


def examples(count: int) -> int:
    """So many in the default profile, and in proportion in the others; never fewer than 3."""
    return max(min(count, 3), round(count * SCALES[PROFILE]))
