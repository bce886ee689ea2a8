"""How much the tests try: the profile `LUTUMPY_PROFILE`, which scales every number of examples.

    small       for the quick run: a tenth of the examples, and a third of the cases
    default     the same examples each time, so that a run fails for a change and never for its luck
    thorough    by hand: thirty times as many, other ones in each run

`tests/conftest.py` makes it the profile of hypothesis. A test that has a number of its own takes it
through `examples`; one that goes over a long list takes it through `some_of`, or has the mark
`sweep` if each case is a test. `nox` runs the small profile, and the session `sweeps` every example
and case that it leaves out, what starts many processes, and what has the mark `slow`: a test that
takes a core more than a fifth of a second, or waits for more than one. They are a fiftieth of the
tests, and were a third of the time.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

SCALES = {"small": 1 / 10, "default": 1.0, "thorough": 30.0}
PROFILE = os.environ.get("LUTUMPY_PROFILE") or "default"
if PROFILE not in SCALES:
    raise SystemExit(f"LUTUMPY_PROFILE is one of {', '.join(SCALES)}, not {PROFILE!r}")

IS_PART = SCALES[PROFILE] < 1
"""Whether this run leaves something out that the session `sweeps` tries."""

PROCESSES = frozenset(
    "adapters/test_event_loops.py cli/test_mcp.py cli/test_process.py durable/test_crashes.py "
    "durable/test_late_kills.py durable/test_store_limits.py mcp/test_death.py "
    "test_demo_durable.py test_demo_stream.py toolclad/test_process.py "
    "web/test_killed_servers.py".split()
)
"""Modules whose tests start many processes, kill them, and wait: `tests/conftest.py` marks them.
The quick run leaves them to the session `sweeps`.
"""

PURE = frozenset(
    "cli/test_mcp.py cli/test_process.py durable/test_crashes.py durable/test_late_kills.py "
    "durable/test_store_limits.py mcp/test_death.py "
    "openapi/test_openapi_work.py page/test_page_escaping.py test_architecture.py "
    "test_demo_durable.py test_demo_stream.py test_each_case.py test_profiles.py "
    "test_streams_linear.py text_tools/test_linear.py "
    "toolclad/test_process.py tools/test_dynamic_cost.py web/test_killed_servers.py".split()
)
"""Modules that find the same on every Python: the source, the tests' own tools, the work of parsers
that is counted, processes that are killed or write to a terminal. `tests/conftest.py` gives all
their tests the mark `pure`, which single tests have as well: the sessions `oldest` and `between`
leave it out.
"""

IS_FEWER = os.environ.get("LUTUMPY_CASES") == "fewer"
"""Whether it tries a fixed third of the cases of a test that combines several lists of them, each
API in each way: enough for an older Python, which either changes none of them or many.
"""

IS_REST = os.environ.get("LUTUMPY_CASES") == "rest"
"""Whether of the tests with the mark `sweep` it tries just the cases that a smaller profile leaves
out.
"""


def examples(count: int) -> int:
    """So many in the default profile, and in proportion in the others; never fewer than 3."""
    return max(min(count, 3), round(count * SCALES[PROFILE]))


def some_of(cases: Iterable[T], name_of: Callable[[T], str] = repr) -> list[T]:
    """All cases; in the smaller profiles a fixed third of them, and never fewer than one.

    `name_of` has to name a case alike in every run, and no two cases alike.
    """
    listed = list(cases)
    return third_of(listed, name_of) if IS_PART else listed


def cases_of(cases: Iterable[T], name_of: Callable[[T], str] = repr) -> list[T]:
    """What a run tries of the cases of a test with the mark `sweep`."""
    listed = list(cases)
    if not IS_REST:
        return some_of(listed, name_of)
    tried = {name_of(case) for case in third_of(listed, name_of)}
    return [case for case in listed if name_of(case) not in tried]


def third_of(cases: Iterable[T], name_of: Callable[[T], str] = repr) -> list[T]:
    """What `some_of` takes of cases in the smaller profiles."""
    listed = list(cases)
    return [case for case in listed if zlib.crc32(name_of(case).encode()) % 3 == 0] or listed[:1]
