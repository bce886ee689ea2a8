"""How long `import lutumpy` takes, beside what it stands on and what it leaves out."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

STATEMENTS = (
    "pass",
    "from pydantic import BaseModel, TypeAdapter",
    "import lutumpy",
    "import openai",
    "import anthropic",
)
ROUNDS = 5


def seconds(statement: str) -> float:
    """The median time of a fresh interpreter that runs `statement`."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main() -> None:
    floor = seconds("pass")
    print("median of", ROUNDS, "fresh interpreters, less the interpreter itself")
    for statement in STATEMENTS[1:]:
        print(f"{statement:<45} {1000 * (seconds(statement) - floor):7.0f} ms")


if __name__ == "__main__":
    main()
