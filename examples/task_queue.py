"""Calls on the workers of a plain task queue, with a runner of your own: huey, on SQLite.

Any queue will do: it carries tickets one way and outcomes the other, and may lose or repeat both.
What was begun stands in the store, where the workers write through the loop's journal. Here the
worker dies in the middle of a payment; another one is sent the call again, and doesn't pay twice.

Run:    python examples/task_queue.py            a scripted model, no key
        python examples/task_queue.py --live     OpenAI, with OPENAI_API_KEY;
                                                 --model NAME for another model,
                                                 OPENAI_BASE_URL for any compatible host
Prints: what became of the worker, each result, what was paid, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from huey import SqliteHuey  # type: ignore[import-untyped]  # pyright: ignore[reportMissingImports]

from lutumpy import (
    AdapterError,
    CallTicket,
    Model,
    Session,
    Skip,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.durable import Answered, DurableLoop, RoundJournal, SqliteStore, StoreJournal
from lutumpy.execution import Dispatcher, ToolExecutor, run_ticket
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn(effect="read")
async def open_bills() -> list[int]:
    """The bills that aren't paid."""
    return [40, 900]


@tool_fn(effect="once")
async def pay(amount: int, *, bank: Skip[Path]) -> str:
    """Pay a bill."""
    with bank.open("a") as ledger:
        ledger.write(f"{amount}\n")
    if amount == 900:
        os._exit(1)  # the power fails: the money is gone, and nobody has the receipt
    return f"paid {amount}"


class Office(Toolset):
    open_bills = tool(open_bills)
    pay = tool(pay)


# --- the queue, and the runner of your own --------------------------------------------------------


def make_queue(folder: Path) -> tuple[Any, Callable[[str, str], Callable[[], str | None]]]:
    huey = SqliteHuey("tools", filename=str(folder / "queue.db"))
    dispatch = Dispatcher(Office, context={"bank": folder / "bank"})

    async def work(ticket: CallTicket, token: Any) -> str:
        with SqliteStore(folder / "office.db") as store:
            executor = ToolExecutor(journal=StoreJournal.of_token(store, token))
            return json.dumps(await run_ticket(ticket, Office, dispatch, executor=executor))

    @huey.task()  # type: ignore[untyped-decorator]
    def run_call(ticket: str, token: str) -> str:
        return asyncio.run(work(CallTicket.load(json.loads(ticket)), json.loads(token)))

    return huey, run_call


class HueyRunner:
    def __init__(self, send: Callable[[str, str], Callable[[], str | None]]) -> None:
        self.send = send

    async def run(
        self, tickets: Sequence[CallTicket], journal: RoundJournal
    ) -> Sequence[ToolResult]:
        return await asyncio.gather(*[self.run_one(ticket, journal) for ticket in tickets])

    async def run_one(self, ticket: CallTicket, journal: RoundJournal) -> ToolResult:
        known = await journal.known(ticket)
        if known is not None:
            return known
        receive = self.send(json.dumps(ticket.dump()), json.dumps(journal.token()))
        while True:
            outcome = receive()
            if outcome is not None:
                return ToolResult.load(json.loads(outcome), ticket)
            await asyncio.sleep(0.05)


# --- the program ----------------------------------------------------------------------------------

SCRIPT = [
    Reply(calls=[Call("open_bills")]),
    Reply(calls=[Call("pay", {"amount": 40})]),
    Reply(calls=[Call("pay", {"amount": 900})]),
    Reply(text="The bill of 40 is paid. Please ask the bank about the one of 900."),
]


async def talk(llm: Model, folder: Path) -> None:
    huey, run_call = make_queue(folder)
    with SqliteStore(folder / "office.db") as store:
        session = Session()
        session.push_user("Pay the open bills.")
        await store.create("office", session)
        dispatch = Dispatcher(Office, context={"bank": folder / "bank"})
        loop = DurableLoop(store, llm, tools=Office, dispatch=dispatch, runner=HueyRunner(run_call))
        outcome: object = None
        while not isinstance(outcome, Answered):
            command = [sys.executable, __file__, "--worker", str(folder)]
            worker = await asyncio.create_subprocess_exec(*command)
            dies = asyncio.create_task(worker.wait())
            runs = asyncio.create_task(loop.run("office"))
            await asyncio.wait([dies, runs], return_when=asyncio.FIRST_COMPLETED)
            if not runs.done():
                print("The worker died. Another one takes over.")
                runs.cancel()
            else:
                worker.kill()
            outcome, _ = await asyncio.gather(runs, dies, return_exceptions=True)
            if isinstance(outcome, Exception):
                raise outcome
        for item in (await store.session("office")).transcript:
            for result in item.results if isinstance(item, ToolResults) else ():
                print(f"  {result.status}: {result.text}")
    huey.storage.close()
    print("paid:", *(folder / "bank").read_text().split())
    print(outcome.result.text)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
            await talk(llm, Path(folder))
        except AdapterError as error:
            parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        logging.basicConfig(filename=Path(sys.argv[2]) / "worker.log")
        make_queue(Path(sys.argv[2]))[0].create_consumer(workers=2, periodic=False).run()
    else:
        asyncio.run(main())
