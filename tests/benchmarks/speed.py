"""Other commits and this one, timed in turns: `python speed.py FOLDER[,FOLDER] [NAME ...]`.

Each FOLDER is a checkout of another commit. All are run by this interpreter, with what is installed
for it, and the workloads of this checkout (`workloads.py`). Each process loads one side and times
all workloads beside their floors; the sides take turns, so that a slow minute of the machine hits
all of them. What counts is CPU time, the least of the processes: what else runs on the machine can
only add to it. NAMEs choose workloads by a part of their name.

The table has microseconds for each side, and in brackets the times of the floor where there is one,
then the ratio of this commit's time to that of the last one given. The last column says where this
commit is slower by more than 5 %.
"""

from __future__ import annotations

import json
import os
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
    return [{"import lutumpy": [min(kept) for kept in one]} for one in samples]


def time_workloads(sides: Sequence[Path], names: Sequence[str]) -> list[Times]:
    """All workloads of all sides, in processes that take turns."""
    samples: list[list[Times]] = [[] for _ in sides]
    for _ in range(PROCESSES):
        for side, kept in zip(sides, samples, strict=True):
            kept.append(json.loads(run(side, str(HERE / "workloads.py"), *names)))
    return [
        {name: [_least(one[name][index] for one in kept) for index in (0, 1)] for name in kept[0]}
        for kept in samples
    ]


def _least(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return min(known) if known else None


def print_table(names: Sequence[str], sides: Sequence[Times]) -> None:
    """One line for each workload."""
    print(f"{'':<40}" + "".join(f"{name[:16]:>18}" for name in names) + f"{'ratio':>8}")
    for workload in sides[-1]:
        cells = [_show(side.get(workload)) for side in sides]
        other, this = [side.get(workload, [None])[0] for side in sides[-2:]]
        ratio = this / other if this and other else 1.0
        slower = "  slower" if ratio > SLOWER else ""
        print(
            f"{workload:<40}" + "".join(f"{cell:>18}" for cell in cells) + f"{ratio:>8.2f}{slower}"
        )


def _show(times: list[float | None] | None) -> str:
    """Microseconds, and the times of the floor."""
    if times is None or times[0] is None:
        return ""
    ours, floor = times
    return f"{ours:.2f}" + (f" ({ours / floor:.2f})" if floor else "")


def main(arguments: Sequence[str]) -> None:
    """See the top of this file."""
    sides = [*[Path(folder).resolve() for folder in arguments[0].split(",")], THIS]
    names = list(arguments[1:])
    found: list[Times] = [{} for _ in sides]
    if not names or "import" in names:
        for times, more in zip(found, time_imports(sides), strict=True):
            times.update(more)
    if names != ["import"]:
        for times, more in zip(found, time_workloads(sides, names), strict=True):
            times.update(more)
    print_table([side.name for side in sides], found)


if __name__ == "__main__":
    main(sys.argv[1:])
