"""Decoding one call, beside what `validate_json` takes for the same text alone, with 1 and with 100
tools.

Two floors: the validator of the very model that is the call's input, and one that gives a plain
dictionary, which no model can reach. All are run in turns; the times are the best of several.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from lutumpy import ToolMetadata, Toolset, tool, tool_fn
from lutumpy.tools.tool import compiled_tool

CALLS = 1000
ROUNDS = 40


class Place(BaseModel):
    street: str
    zip_code: int


class Arguments(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    query: str
    limit: int
    tags: list[str]
    place: Place
    note: NotRequired[str | None]


def function(number: int) -> Any:
    @tool_fn(name=f"find_{number}")
    def find(query: str, limit: int, tags: list[str], place: Place, note: str | None = None) -> str:
        """Find."""
        return query

    return find


def arguments(number: int) -> str:
    place = {"street": f"{number} Elm Road", "zip_code": 10000 + number}
    values = {
        "query": f"late orders {number}",
        "limit": 10,
        "tags": ["open", "late"],
        "place": place,
        "note": "twice",
    }
    return json.dumps(values)


def microseconds(*runs: Callable[[], object]) -> list[float]:
    """The best time of one call for each run, taken in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for k, run in enumerate(runs):
            gc.collect()
            begun = time.perf_counter()
            run()
            best[k] = min(best[k], time.perf_counter() - begun)
    return [seconds / CALLS * 1e6 for seconds in best]


def main() -> None:
    to_dict = TypeAdapter(Arguments).validator.validate_json
    print(
        "one call                  validate_json (dict)   validate_json (model)   Toolset.parse    "
        ": dict   : model"
    )
    for size in (1, 100):
        functions = [function(n) for n in range(size)]
        tools: Any = type(
            "Tools", (Toolset,), {f"find_{n}": tool(made) for n, made in enumerate(functions)}
        )
        calls = [ToolMetadata(f"c{n}", f"find_{n % size}", arguments(n)) for n in range(CALLS)]
        for call in calls[:size]:
            tools.parse(call)  # the first call of a tool makes its model
        dicts: Any = {f"find_{n}": to_dict for n in range(size)}
        models: Any = {
            f"find_{n}": compiled_tool(made).input_type.__pydantic_validator__.validate_json
            for n, made in enumerate(functions)
        }
        parse = tools.parse
        plain, model, ours = microseconds(
            lambda: [dicts[call.name](call.arguments) for call in calls],  # noqa: B023
            lambda: [models[call.name](call.arguments) for call in calls],  # noqa: B023
            lambda: [parse(call).input for call in calls],  # noqa: B023
        )
        print(
            f"{size:3} tools {plain:31.2f} us {model:20.2f} us {ours:12.2f} us {ours / plain:9.2f} "
            f"{ours / model:9.2f}"
        )


if __name__ == "__main__":
    main()
