"""What tools that are known at run time cost, beside typed ones, in one run."""

from __future__ import annotations

import gc
import importlib.util
import sys
import tracemalloc
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from counting import calls_made, profiled
from dynamic_toolkit import AppTools, weather_tool

from lutumpy import ToolMetadata, Toolset

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "bench_dynamic.py"


def load_benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("bench_dynamic", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_declaring_one_takes_a_part_of_what_a_typed_tool_takes() -> None:
    benchmark = load_benchmark()
    benchmark.declare_static("first")  # what the first one needs isn't counted
    benchmark.declare_dynamic("first")
    typed = calls_made(lambda: benchmark.declare_static("typed"))
    dynamic = calls_made(lambda: benchmark.declare_dynamic("dynamic"))
    assert dynamic < typed / 4  # 71 and 703 calls on Python 3.13


def test_a_good_call_enters_few_functions() -> None:
    entered: list[str] = []

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    tools = Toolset.of("One", [weather_tool()])
    metadata = ToolMetadata("c1", "get-weather", '{"city": "Oslo"}')
    tools.parse(metadata)
    profiled(partial(tools.parse, metadata), profile)
    assert entered == ["parse", "decode", "values_of_json", "input_of_values", "__init__"]


@pytest.mark.slow
def test_three_thousand_sets_leave_nothing_behind() -> None:
    tools = [weather_tool(f"weather-{number}") for number in range(10)]

    def use(count: int) -> None:
        for _ in range(count):
            filled = AppTools.with_dynamic_tools({AppTools.more: tools})
            filled.offer()
            filled.parse(ToolMetadata("c1", "weather-3", '{"city": "Oslo"}'))
            Toolset.of("Ten", tools).offer()
        gc.collect()

    use(100)  # caches fill
    tracemalloc.start()
    try:
        use(10)
        before = tracemalloc.get_traced_memory()[0]
        use(1490 if sys.gettrace() is None else 200)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 200_000
