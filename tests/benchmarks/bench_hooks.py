"""What hooks add to a round: 64 calls with three trivial hooks each, beside the same round without.

A round is everything between two requests: decode the reply's bytes, read it, decide, run 64
trivial async tools, commit, and build the bytes of the next request. Both kinds take turns in one
run; the best time of each counts, since whatever else the machine does only makes a round slower.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from typing import Any

from lutumpy import NeedsTools, RunNormally, Session, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.hooks import ToolHooks
from lutumpy.models import TurnOptions
from lutumpy.testing import Call, Reply, render

CALLS = 64
HOOKS = 3
ROUNDS = 400


@tool_fn
async def lookup(key: str, limit: int = 10) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    lookup = tool(lookup)


def three_hooks() -> ToolHooks[Tools]:
    hooks = Tools.hooks()
    for _ in range(HOOKS):

        @hooks.on(Tools.lookup)
        def one(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
            return RunNormally(input)

    return hooks


async def one_round(reply: bytes, llm: OpenAIChat, hooks: ToolHooks[Tools] | None) -> float:
    """Seconds of one round in a new conversation."""
    session = Session()
    session.push_user("Look these up.")
    offer = Tools.offer()
    options = TurnOptions(None, None, {})
    begun = time.perf_counter()
    outcome = offer.read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    if hooks is None:
        round: Any = outcome.round
        calls = round.calls
    else:
        round = await outcome.round.apply_hooks(hooks)
        calls = round.pending
    outputs = await asyncio.gather(*[call.call() for call in calls])
    round.commit(
        session, [call.complete(output) for call, output in zip(calls, outputs, strict=True)]
    )
    body = llm._body(session.transcript, offer, options)
    ended = time.perf_counter()
    assert len(body) > CALLS * 100
    return ended - begun


async def measure() -> tuple[float, float]:
    """Best seconds of a round without and with hooks."""
    asked = [Call("lookup", {"key": f"key {n}", "limit": n}, id=f"call_{n}") for n in range(CALLS)]
    reply = json.dumps(render(Reply(calls=asked), "openai_chat", number=1, model="m")).encode()
    llm, hooks = OpenAIChat("m"), three_hooks()
    plain: list[float] = []
    hooked: list[float] = []
    for _ in range(ROUNDS):
        gc.collect(0)
        plain.append(await one_round(reply, llm, None))
        gc.collect(0)
        hooked.append(await one_round(reply, llm, hooks))
    return min(plain), min(hooked)


def main() -> None:
    plain, hooked = asyncio.run(measure())
    print(f"{CALLS} calls, {HOOKS} trivial sync hooks each, best of {ROUNDS} rounds")
    print(f"without hooks {plain * 1e6:8.0f} us")
    print(f"with hooks    {hooked * 1e6:8.0f} us")
    print(f"ratio         {hooked / plain:8.3f}")


if __name__ == "__main__":
    main()
