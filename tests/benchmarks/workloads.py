"""What the library is used for most, each beside the same work done by hand.

`counts.py` counts what these do, `speed.py` times them. Only public names are used that have been
there for long, so that earlier commits can run them too. Run as a program, this file times each
workload once and prints JSON; `speed.py` reads it.

A workload is prepared first, and the work that is counted or timed is what `prepare` returns. Where
there is a floor, it is prepared by the same arguments.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import bench_round
from pydantic import BaseModel, ConfigDict, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from lutumpy import Session, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import ScriptedModel

Work = Callable[[], Awaitable[object]]
"""What is counted or timed."""

MODELS = {
    "openai_chat": ("openai", "OpenAIChat"),
    "openai_responses": ("openai", "OpenAIResponses"),
    "anthropic_messages": ("anthropic", "AnthropicMessages"),
    "gemini_generate_content": ("gemini", "Gemini"),
    "bedrock_converse": ("bedrock", "BedrockConverse"),
}
ADAPTERS: dict[str, Any] = {
    api: getattr(import_module(f"lutumpy.adapters.{maker}"), name)
    for api, (maker, name) in MODELS.items()
    if find_spec(f"lutumpy.adapters.{maker}") is not None  # earlier commits have fewer
}
TOOLS = 100
CALLS = 1000
CONVERSATIONS = 1000
REPEATS = 15


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of work.

    Attributes:
        name: What it is called in tables.
        unit: What its figures are divided by, as `tool` or `round`.
        units: How many of them one run is.
        prepare: Sets everything up and returns the work.
        floor: The same for the work by hand; `None` if nothing compares.
    """

    name: str
    unit: str
    units: int
    prepare: Callable[[], Work]
    floor: Callable[[], Work] | None = None


class Place(BaseModel):
    """A nested model."""

    street: str
    zip_code: int


class Arguments(TypedDict):
    """What the floor of decoding validates."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    query: str
    limit: int
    tags: list[str]
    place: Place
    note: NotRequired[str | None]


def make_function(number: int) -> Any:
    """A function of five parameters, one a nested model."""

    def find(query: str, limit: int, tags: list[str], place: Place, note: str | None = None) -> str:
        """Find orders.

        Args:
            query: What to look for.
            limit: How many at most.
            tags: Which tags they have.
            place: Where to look.
            note: For the protocol.
        """
        return query

    find.__name__ = f"find_{number}"
    return find


def declare(functions: list[Any]) -> Any:
    """A toolset of these functions."""
    return type("Tools", (Toolset,), {fn.__name__: tool(tool_fn(fn)) for fn in functions})


def make_functions(count: int) -> list[Any]:
    """So many functions."""
    return [make_function(number) for number in range(count)]


def make_calls(size: int) -> list[ToolMetadata]:
    """The calls to decode, of so many tools in turn."""
    place = {"street": "1 Elm Road", "zip_code": 10000}
    return [
        ToolMetadata(
            f"c{number}",
            f"find_{number % size}",
            json.dumps(
                {"query": f"q{number}", "limit": 10, "tags": ["a", "b"], "place": place, "note": ""}
            ),
        )
        for number in range(CALLS)
    ]


def _work(run: Callable[[], object]) -> Work:
    async def work() -> object:
        return run()

    return work


# --- declaring, rendering, decoding ------------------------------------------------------------


def prepare_declaring() -> Work:
    """Declare tools and render them for Chat."""
    functions = make_functions(TOOLS)
    return _work(lambda: OpenAIChat.tools(declare(functions).offer()))


def prepare_declaring_floor() -> Work:
    """Pydantic's own way from a function to a validator and a schema."""
    functions = make_functions(TOOLS)

    def build() -> list[Any]:
        return [(adapter := TypeAdapter(fn), adapter.json_schema()) for fn in functions]

    return _work(build)


def prepare_rendering(api: str) -> Work:
    """Render the tools of an offer again."""
    offer = declare(make_functions(TOOLS)).offer()
    render: Any = ADAPTERS[api].tools
    render(offer)
    return _work(lambda: render(offer))


def prepare_decoding(size: int) -> Work:
    """Decode calls of so many tools."""
    parse: Any = declare(make_functions(size)).parse
    calls = make_calls(size)
    for call in calls[:size]:
        parse(call)  # the first call of a tool builds its model
    return _work(lambda: [parse(call).input for call in calls])


def prepare_decoding_floor(size: int) -> Work:
    """The validators alone, one for each tool, that return dictionaries."""
    calls = make_calls(size)
    validators: Any = {
        f"find_{number}": TypeAdapter(Arguments).validator.validate_json for number in range(size)
    }
    return _work(lambda: [validators[call.name](call.arguments) for call in calls])


# --- rounds ------------------------------------------------------------------------------------


def prepare_rounds(kind: str, width: int, rounds: int, side: int) -> Work:
    """Rounds on the double or over an SDK's client (side 0), or by hand (side 1)."""
    return bench_round.sides(kind, width, rounds)[side]()


def prepare_conversations(side: int) -> Work:
    """Many conversations at once, of five rounds each."""
    sides = bench_round.sides("double", 1, 5, pause=True)
    works = [sides[side]() for _ in range(CONVERSATIONS)]

    async def play() -> None:
        await asyncio.gather(*[work() for work in works])

    return play


# --- sessions ----------------------------------------------------------------------------------


async def long_session(rounds: int) -> Session:
    """A session of so many rounds."""
    replies = bench_round.answers("openai_chat", 1, rounds)
    llm = ScriptedModel(replies, check=False, keep=1)
    return await bench_round.lutumpy_loop(llm)


def prepare_dump(rounds: int) -> Work:
    """Dump a long session."""
    session = asyncio.run(long_session(rounds))
    return _work(session.dump)


def prepare_load(rounds: int) -> Work:
    """Load a long session."""
    dump = asyncio.run(long_session(rounds)).dump()
    return _work(lambda: Session.load(dump))


def workloads() -> Iterator[Workload]:
    """All of them."""
    yield Workload(
        "declare and render for Chat", "tool", TOOLS, prepare_declaring, prepare_declaring_floor
    )
    for api in ADAPTERS:
        yield Workload(f"render again, {api}", "tool", TOOLS, partial(prepare_rendering, api))
    for size in (1, TOOLS):
        yield Workload(
            f"decode, {size} tools",
            "call",
            CALLS,
            partial(prepare_decoding, size),
            partial(prepare_decoding_floor, size),
        )
    for kind in ("double", "openai", "anthropic"):
        for width, rounds in ((1, 10), (8, 10), (64, 5)):
            prepare = partial(prepare_rounds, kind, width, rounds)
            yield Workload(
                f"round, {kind}, {width} calls",
                "round",
                rounds + 1,
                partial(prepare, 0),
                partial(prepare, 1),
            )
    yield Workload(
        f"{CONVERSATIONS} conversations at once",
        "round",
        CONVERSATIONS * 6,
        partial(prepare_conversations, 0),
        partial(prepare_conversations, 1),
    )
    for name, prepare_session in (("dump", prepare_dump), ("load", prepare_load)):
        yield Workload(f"{name} 200 rounds", "round", 200, partial(prepare_session, 200))


def time_of(workload: Workload) -> list[float | None]:
    """Microseconds of CPU for a unit of the work and of its floor, the best of several in turns."""
    sides = [workload.prepare, workload.floor]
    best: list[float | None] = [None, None]
    for _ in range(REPEATS):
        for index, prepare in enumerate(sides):
            if prepare is not None:
                spent = 1e6 * _seconds_of(prepare()) / workload.units
                best[index] = min(spent, best[index] or spent)
    return best


def _seconds_of(work: Work) -> float:
    async def run() -> float:
        gc.collect()
        begun = time.process_time()
        await work()
        return time.process_time() - begun

    return asyncio.run(run())


if __name__ == "__main__":
    wanted = sys.argv[1:]
    chosen = [one for one in workloads() if not wanted or any(w in one.name for w in wanted)]
    print(json.dumps({one.name: time_of(one) for one in chosen}))
