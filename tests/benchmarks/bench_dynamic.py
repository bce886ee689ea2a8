"""Tools that are known at run time, beside typed ones of the same parameters.

Declaring one, decoding a call, and a toolset class of ten for one turn with its offer. All are run
in turns; the times are the best of several.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

from lutumpy import DynamicTool, ToolMetadata, Toolset, tool, tool_fn

ROUNDS = 15
SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "limit": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"type": ["string", "null"]},
    },
    "required": ["query", "limit", "tags"],
    "additionalProperties": False,
}
ARGUMENTS = json.dumps({"query": "late orders", "limit": 10, "tags": ["open", "late"], "note": "2"})


def declare_static(name: str) -> Any:
    @tool_fn(name=name)
    def find(query: str, limit: int, tags: list[str], note: str | None = None) -> str:
        """Find orders.

        Args:
            query: What to look for.
        """
        return query

    return find


def declare_dynamic(name: str) -> DynamicTool:
    return DynamicTool(name, "Find orders.", SCHEMA)


def best_times(count: int, *runs: Callable[[], object]) -> list[float]:
    """Microseconds of each run, divided by `count`: the best of several, taken in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for index, run in enumerate(runs):
            gc.collect()
            begun = time.perf_counter()
            run()
            best[index] = min(best[index], time.perf_counter() - begun)
    return [seconds / count * 1e6 for seconds in best]


def measure_declaring(count: int = 50) -> tuple[float, float]:
    """Microseconds to declare a typed function, and a dynamic tool."""
    names = [f"find_{number}" for number in range(count)]
    static, dynamic = best_times(
        count,
        lambda: [declare_static(name) for name in names],
        lambda: [declare_dynamic(name) for name in names],
    )
    return static, dynamic


def measure_decoding(count: int = 1000) -> tuple[float, float]:
    """Microseconds to parse a call of a typed function, and of a dynamic tool."""
    typed: Any = type("Typed", (Toolset,), {"find": tool(declare_static("find"))})
    dynamic = Toolset.of("Dynamic", [declare_dynamic("find")])
    call = ToolMetadata("c1", "find", ARGUMENTS)
    assert typed.parse(call).arguments == dynamic.parse(call).arguments  # the first makes a model
    static_time, dynamic_time = best_times(
        count,
        lambda: [typed.parse(call) for _ in range(count)],
        lambda: [dynamic.parse(call) for _ in range(count)],
    )
    return static_time, dynamic_time


def measure_toolsets(count: int = 50) -> tuple[float, float]:
    """Microseconds for a toolset class of ten tools, and for the class with its offer."""
    tools = [declare_dynamic(f"find_{number}") for number in range(10)]
    alone, offered = best_times(
        count,
        lambda: [Toolset.of("Ten", tools) for _ in range(count)],
        lambda: [Toolset.of("Ten", tools).offer() for _ in range(count)],
    )
    return alone, offered


def main() -> None:
    static, dynamic = measure_declaring()
    print(
        f"declaring   typed {static:8.1f} us   dynamic {dynamic:8.1f} us   {dynamic / static:.2f}"
    )
    static, dynamic = measure_decoding()
    print(
        f"decoding    typed {static:8.2f} us   dynamic {dynamic:8.2f} us   {dynamic / static:.2f}"
    )
    alone, offered = measure_toolsets()
    print(f"ten tools   class {alone:8.1f} us   with its offer {offered:8.1f} us")


if __name__ == "__main__":
    main()
