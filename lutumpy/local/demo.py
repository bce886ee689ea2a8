"""What `lutumpy demo --local` runs: a guided round of calls of a real model on this machine."""

from __future__ import annotations

import os
import random
import textwrap
import time
from collections.abc import Callable, Mapping
from typing import Any

from lutumpy import (
    Finished,
    NeedsTools,
    Session,
    ToolRequirement,
    Toolset,
    TurnResult,
    tool,
    tool_fn,
)
from lutumpy.local.server import serve
from lutumpy.text_tools import TextTools

__all__ = ["FORECAST", "run_local"]

# Which city is asked for is drawn anew each time, since no question is chosen for its answer. Two
# cities at once are too much for the smallest model in nearly half of the cases (docs/local.md).
QUESTION = "What is the weather in {}?"
FOLLOW_UP = "Answer my question in one sentence."
FORECAST: Mapping[str, str] = {
    "Berlin": "raining, at 9 degrees",
    "Cairo": "dry and windy, at 31 degrees",
    "Oslo": "snowing, at -3 degrees",
    "Rome": "sunny, at 18 degrees",
}
# The same words each time, and no answer that goes on for ever: small models may not find an end.
OPTIONS: Mapping[str, Any] = {"temperature": 0, "max_output_tokens": 200, "extra": {"seed": 1}}
WIDTH = 100
MARGIN = 11


@tool_fn(effect="read")
def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: Name of the city.
    """
    return f"In {city} it is {FORECAST[city]}."


class _Weather(Toolset):  # private: a published name would need its types written out
    get_weather = tool(get_weather)


async def run_local(
    *,
    model: str | os.PathLike[str] | None = None,
    city: str | None = None,
    write: Callable[[str], None] = print,
) -> TurnResult | None:
    """Ask a model on this machine about the weather, with a tool that it can call, and report what
    happens.

    Args:
        model: A GGUF file; SmolLM2-135M-Instruct when left out, fetched at the first time.
        city: Which city it is asked for; one of `FORECAST` at random when left out.
        write: Takes each line of the report.

    Returns:
        The final answer, or `None` when the model made no call.

    Raises:
        ImportError: a package of the `local` extra is missing.
        FetchError: the model can't be fetched.
        LocalServerError: the server can't be started.
        AdapterError: the server refused a request, or ended on its own.
    """

    def title(text: str) -> None:
        write("")
        write(f"-- {text} ".ljust(WIDTH, "-"))

    def field(name: str, text: str) -> None:
        for line in textwrap.wrap(text, WIDTH - MARGIN) or [""]:
            write(f"{name} ".ljust(MARGIN) + line)
            name = ""

    question = QUESTION.format(city or random.choice(sorted(FORECAST)))
    began = time.monotonic()
    async with serve(model) as server:
        title(f"{server.model} on this machine, no key and no network needed")
        field("server", f"{server.url}, ready after {time.monotonic() - began:.1f} s")
        plain = server.chat(**OPTIONS)
        guided = TextTools(plain, guided=True)
        session = Session()
        session.push_user(question)
        field("user", question)

        title("with a tool on offer, unguided: what it does by itself")
        match await session.fork().text_turn(plain, tools=_Weather, max_output_tokens=40).collect():
            case NeedsTools(round=round):
                field(
                    "calls",
                    ", ".join(call.metadata.name for call in round.calls)
                    or "none that can be read",
                )
                round.discard()
            case Finished(result=result):
                field("no call", f"{result.text} ...")

        title("the same, guided: the answer is held to a JSON schema made from the tools on offer")
        turn = session.text_turn(guided, tools=_Weather, require=ToolRequirement.at_least_one())
        match await turn.collect():
            case Finished(result=result):
                field("text", result.text)
                return None
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    field("call", f"{call.metadata.id}  {call.input!r}")
                    if _Weather.get_weather.matches(call):
                        try:
                            results.append(call.complete(await call.call()))
                        except KeyError:
                            results.append(call.fail("there is no forecast for this city"))
                for issue in round.issues:
                    field("issue", f"{issue.metadata.id}  {issue.reason}: {issue.detail}")
                for answered in results:
                    field(
                        "result", f"{answered.metadata.id}  {answered.status}: {answered.content}"
                    )
                round.commit(session, results)
                field(
                    "committed",
                    f"{len(session.transcript)} items; {session.usage.total_tokens} tokens so far",
                )

        title("what the model makes of the results")
        session.push_user(FOLLOW_UP)
        field("user", FOLLOW_UP)
        result = await session.text_turn(guided).collect()
        field("text", result.text)
        return result
