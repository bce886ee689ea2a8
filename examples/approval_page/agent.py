"""The tools, the hook that holds their calls, and the process that goes on with a conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from lutumpy import Hold, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.durable import Answered, DurableLoop, SqliteStore, Waiting
from lutumpy.execution import Dispatcher
from lutumpy.models import ToolResults

SCOPE = "conversation 1"


@tool_fn
async def wipe(volume: str, days: int = 0) -> str:
    """Wipe what is older than so many days."""
    return f"{volume} has nothing older than {days} days"


class Storage(Toolset):
    wipe = tool(wipe)


hooks = Storage.hooks()


@hooks.on(Storage.wipe)
def ask_first(metadata: ToolMetadata, volume: str, days: int = 0) -> Hold:
    return Hold(f"{volume} can't be brought back")


def make_loop(store: SqliteStore, model: str) -> DurableLoop[Storage, Any]:
    llm, dispatch = OpenAIChat(model), Dispatcher(Storage)
    return DurableLoop(store, llm, tools=Storage, dispatch=dispatch, hooks=hooks)


async def run_agent(file: Path, model: str) -> None:
    """Look again and again whether there is something to do, until the model has answered."""
    async with SqliteStore(file) as store:
        loop, is_told = make_loop(store, model), False
        while not isinstance(outcome := await loop.run(SCOPE), Answered):
            if isinstance(outcome, Waiting) and not is_told:
                print(f"the agent waits for {', '.join(outcome.held)}", flush=True)
                is_told = True
            await asyncio.sleep(0.1)
        for item in (await store.session(SCOPE)).transcript:
            for result in item.results if isinstance(item, ToolResults) else ():
                print(f"{result.call_id}: {result.text}")
        print(outcome.result.text)
