"""What becomes of damaged calls in every text format: counts, the same on every machine.

Run it as `python tests/benchmarks/bench_text_formats.py`. Each kind of damage is done to an answer
with one call and one with two, in every format that is known by name.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "text_tools"), str(TESTS)]

from damage import DAMAGE, NOTHING_KNOWN, Outcome, outcomes  # noqa: E402

from lutumpy.text_tools import text_formats  # noqa: E402

COLUMNS: tuple[Outcome, ...] = ("right", "told", "silent", "part", "wrong")


def count(*, required: bool) -> Counter[tuple[str, Outcome]]:
    """How often each outcome comes for each kind of damage."""
    found: Counter[tuple[str, Outcome]] = Counter()
    for one in text_formats():
        for calls in (1, 2):
            found.update(outcomes(one, calls, required=required).items())
    return found


def main() -> None:
    """Print the tables."""
    for required in (False, True):
        counts = count(required=required)
        print(f"\ncalls required: {required}\n| damage | {' | '.join(COLUMNS)} |")
        print(f"|---|{'---|' * len(COLUMNS)}")
        for kind in DAMAGE:
            row = [str(counts[kind, column]) for column in COLUMNS]
            print(f"| {kind}{' *' if kind in NOTHING_KNOWN else ''} | {' | '.join(row)} |")
        for name, kinds in (("all", DAMAGE), ("without *", set(DAMAGE) - set(NOTHING_KNOWN))):
            sums = [str(sum([counts[kind, one] for kind in kinds])) for one in COLUMNS]
            print(f"| {name} | {' | '.join(sums)} |")


if __name__ == "__main__":
    main()
