"""Another commit and this one, timed in turns: `python speed.py FOLDER [NAME ...]`.

FOLDER is a checkout of the other commit. Both are run by this interpreter, with what is installed
for it, and the workloads of this checkout (`workloads.py`). Each process loads one side and times
all workloads beside their floors; the sides take turns, so that a slow minute of the machine hits
both. What counts is CPU time, the median over the processes. NAMEs choose workloads by a part of
their name.

The table has, for each side, the times of the floor where there is one, and the ratio of this
commit's time to the other's. The last column says where this commit is slower by more than 5 %.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
THIS = HERE.parents[1]
PROCESSES = 5
IMPORTS = 25
PYDANTIC = "from pydantic import BaseModel, TypeAdapter"
IMPORT = "import time; begun = time.process_time(); {}; print(time.process_time() - begun)"
SLOWER = 1.05

Times = dict[str, list[float | None]]
"""For each workload: microseconds of a unit, and of the floor's."""


def run(checkout: Path, *command: str) -> str:
    """What a fresh interpreter prints that imports this checkout."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(HERE)])}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an import is timed as users have it: compiled
    done = subprocess.run(
        [sys.executable, *command], env=env, cwd=HERE, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"the work failed in {checkout}")
    return done.stdout


def time_imports(sides: Sequence[Path]) -> list[Times]:
    """`import lutumpy` beside pydantic, in fresh interpreters that take turns."""
    samples: list[list[list[float]]] = [[[], []] for _ in sides]
    for side in sides:
        run(side, "-c", "import lutumpy")  # compiles it
    for _ in range(IMPORTS):
        for side, sample in zip(sides, samples, strict=True):
            for kept, statement in zip(sample, ("import lutumpy", PYDANTIC), strict=True):
                kept.append(1e6 * float(run(side, "-c", IMPORT.format(statement))))
    return [{"import lutumpy": [statistics.median(kept) for kept in one]} for one in samples]


def time_workloads(sides: Sequence[Path], names: Sequence[str]) -> list[Times]:
    """All workloads of both sides, in processes that take turns."""
    samples: list[list[Times]] = [[] for _ in sides]
    for _ in range(PROCESSES):
        for side, kept in zip(sides, samples, strict=True):
            kept.append(json.loads(run(side, str(HERE / "workloads.py"), *names)))
    return [
        {name: [_median(one[name][index] for one in kept) for index in (0, 1)] for name in kept[0]}
        for kept in samples
    ]


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def print_table(other: Times, this: Times) -> None:
    """One line for each workload."""
    print(f"{'':<40}{'us, other':>11}{'us, this':>11}{'floors':>15}{'this/other':>12}")
    for name, (ours, floor) in this.items():
        if name not in other:
            continue
        theirs, their_floor = other[name]
        assert ours is not None
        assert theirs is not None
        floors = f"{theirs / their_floor:.2f}, {ours / floor:.2f}" if floor and their_floor else ""
        slower = "  slower" if ours / theirs > SLOWER else ""
        print(f"{name:<40}{theirs:>11.2f}{ours:>11.2f}{floors:>15}{ours / theirs:>12.2f}{slower}")


def main(arguments: Sequence[str]) -> None:
    """See the top of this file."""
    sides = [Path(arguments[0]).resolve(), THIS]
    names = list(arguments[1:])
    found: list[Times] = [{}, {}]
    if not names or "import" in names:
        for times, more in zip(found, time_imports(sides), strict=True):
            times.update(more)
    if names != ["import"]:
        for times, more in zip(found, time_workloads(sides, names), strict=True):
            times.update(more)
    print_table(*found)


if __name__ == "__main__":
    main(sys.argv[1:])
