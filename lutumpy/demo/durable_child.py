"""The program of `lutumpy demo --durable`: one process that goes on with a conversation.

It is started as `python -m lutumpy.demo.durable_child URL FOLDER`; with `die` behind that it kills
itself in the middle of a payment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from lutumpy import Skip, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.demo.shop import SHOP, Order
from lutumpy.durable import DurableLoop, SqliteStore
from lutumpy.execution import Dispatcher, IdempotencyKey

__all__: list[str] = []

SCOPE = "conversation 1"
STORE = "agent.db"
LEDGER = "ledger.txt"


class World:
    """What is outside: a ledger that no crash takes back.

    Args:
        folder: Where it is.
        dies: Whether this process ends in the middle of its first payment.
    """

    def __init__(self, folder: Path, *, dies: bool) -> None:
        self.path: Path = folder / LEDGER
        self.dies = dies
        self.sending: asyncio.Event = asyncio.Event()

    def note(self, line: str) -> None:
        with self.path.open("a") as ledger:
            ledger.write(f"{line}\n")
            ledger.flush()
            os.fsync(ledger.fileno())

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


@tool_fn(effect="read")
async def get_order(order_id: int, *, world: Skip[World]) -> Order:
    """Look an order up."""
    world.note(f"read order {order_id}")
    return SHOP[order_id]


@tool_fn(effect="read")
async def list_refunds(order_id: int, *, world: Skip[World]) -> list[str]:
    """List what was paid back for an order."""
    world.note(f"read refunds of {order_id}")
    paid = f"refund {order_id} "
    return [line.removeprefix(paid) for line in world.lines() if line.startswith(paid)]


@tool_fn(effect="idempotent")
async def send_receipt(order_id: int, *, world: Skip[World], key: Skip[IdempotencyKey]) -> str:
    """Send a receipt."""
    world.note(f"receipt {order_id} {key}")
    world.sending.set()
    if world.dies:
        await asyncio.sleep(60)  # still sending when the process dies
    return "sent"


@tool_fn
async def refund(
    order_id: int,
    percent: Annotated[int, Field(ge=1, le=50, description="How much of the price, in percent.")],
    *,
    world: Skip[World],
) -> str:
    """Pay a part of the price back."""
    if world.dies:
        await world.sending.wait()
    amount = f"{SHOP[order_id].price * percent / 100:.2f}"
    world.note(f"refund {order_id} {amount}")
    if world.dies:
        os.kill(os.getpid(), signal.SIGKILL)  # after the payment, before anybody knows
    return f"paid back {amount}"


class _Desk(Toolset):  # private: a published name would need its types written out
    get_order = tool(get_order)
    list_refunds = tool(list_refunds)
    send_receipt = tool(send_receipt)
    refund = tool(refund)


async def go_on(url: str, folder: Path, *, dies: bool) -> None:
    """Go on with the conversation until the model has answered, or this process is dead."""
    from openai import AsyncOpenAI

    dispatch = Dispatcher(_Desk, context={"world": World(folder, dies=dies)})
    async with (
        SqliteStore(folder / STORE) as store,
        AsyncOpenAI(base_url=url, api_key="no-key-needed") as client,
    ):
        llm = OpenAIChat("gpt-4.1-mini", client=client)
        # In a real program nobody waits for a lease: the next one comes minutes later.
        loop = DurableLoop(store, llm, tools=_Desk, dispatch=dispatch, lease=1.0)
        await loop.run(SCOPE)


def main(arguments: Sequence[str]) -> None:
    """Run one process of the demo."""
    url, folder, *more = arguments
    asyncio.run(go_on(url, Path(folder), dies=more == ["die"]))


if __name__ == "__main__":
    main(sys.argv[1:])
