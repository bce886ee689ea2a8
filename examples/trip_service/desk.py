"""The tools, the hook that holds a payment, and the loop that all processes make alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from lutumpy import CallTicket, Hold, Later, Skip, ToolMetadata, Toolset, dynamic, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.durable import DurableLoop, SqliteStore
from lutumpy.execution import Dispatcher
from lutumpy.mcp import McpTools


@tool_fn(effect="once")
async def pay(amount: int) -> str:
    """Pay for the trip."""
    return f"paid {amount}"


@tool_fn(effect="once", late=True)
async def visa(country: str, *, ticket: Skip[CallTicket], office: Skip[str]) -> str:
    """Apply for a visa. The office takes its time, and calls our webhook."""
    async with httpx2.AsyncClient() as client:
        job = {"country": country, "ticket": ticket.dump()}
        await client.post(f"{office}/office", json=job)
    raise Later("the office needs some days")


class Trip(Toolset):
    pay = tool(pay)
    visa = tool(visa)
    hotel = dynamic()


hooks = Trip.hooks()


@hooks.on(Trip.pay)
def ask_first(metadata: ToolMetadata, amount: int) -> Hold:
    return Hold(f"{amount} is a lot of money")


@asynccontextmanager
async def opened(
    file: Path, model: str, hotel: str, office: str
) -> AsyncIterator[tuple[SqliteStore, DurableLoop[Any, Any]]]:
    """The store and the loop, in whichever process."""
    async with SqliteStore(file) as store, McpTools(hotel, ask="hold") as source:
        tools = Trip.with_dynamic_tools({Trip.hotel: source.tools})
        dispatch = Dispatcher(Trip, context={"office": office})
        # A killed worker's conversation is free after ten seconds; thirty are the default. Fewer
        # would take it from a worker that a busy machine lets wait.
        yield (
            store,
            DurableLoop(
                store, OpenAIChat(model), tools=tools, dispatch=dispatch, hooks=hooks, lease=10.0
            ),
        )
