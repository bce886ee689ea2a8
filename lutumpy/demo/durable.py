"""`lutumpy demo --durable`: a process that dies in the middle of a payment, and one that goes on.

Each process is `lutumpy.demo.durable_child`. What happened is read from outside: from the store,
from a ledger that no crash takes back, and from the requests that the test server got.
"""

# The conversation, and what each of its answers shows:
#
#   answer   the model                        shows
#   ---------------------------------------------------------------------------------------------
#   1        looks the order up               a result that was recorded isn't asked for again
#   2        sends a receipt, pays            the process dies here; an answer that was recorded
#                                             isn't asked for again, the receipt is sent again with
#                                             the same key, the payment isn't
#   3        looks whether it was paid        the model was told that nobody knows
#   4        answers

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lutumpy import Session
from lutumpy.demo.report import Report
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Reply

__all__ = ["DurableDemoError", "run_durable"]

QUESTION = "The kettle of order 1042 is late. I want some of my money back, and a receipt."
SCRIPT = [
    Reply(text="Let me look.", calls=[Call("get_order", {"order_id": 1042}, id="call_1")]),
    Reply(
        text="I pay 20 percent back.",
        calls=[
            Call("send_receipt", {"order_id": 1042}, id="call_2"),
            Call("refund", {"order_id": 1042, "percent": 20}, id="call_3"),
        ],
    ),
    Reply(
        text="Nobody knows whether that was paid. Let me look.",
        calls=[Call("list_refunds", {"order_id": 1042}, id="call_4")],
    ),
    Reply(text="You got 7.90 back, once, and the receipt is on its way."),
]
_SECONDS_FOR_A_PROCESS = 60


class DurableDemoError(Exception):
    """The demo can't run here, or one of its processes failed."""


def run_durable(write: Callable[[str], None] = print) -> None:
    """Have the conversation in two processes, and tell what was and wasn't done twice.

    Raises:
        DurableDemoError: an extra is missing, this system has no SIGKILL, or a process failed.
    """
    if not hasattr(signal, "SIGKILL"):
        raise DurableDemoError("--durable kills a process with SIGKILL, which this system hasn't")
    try:
        from lutumpy.demo.durable_child import LEDGER, SCOPE, STORE
        from lutumpy.durable import SqliteStore
        from lutumpy.testing.wire import serve
    except ImportError as error:
        raise DurableDemoError(str(error)) from error
    report = Report(write)
    session = Session()
    session.push_user(QUESTION)
    with tempfile.TemporaryDirectory(prefix="lutumpy-demo-") as name, serve(SCRIPT) as server:
        folder = Path(name)
        with SqliteStore(folder / STORE) as store:
            asyncio.run(store.create(SCOPE, session))
            report.title("first process")
            report.field("user", [QUESTION])
            code = _start(server.openai_base_url, folder, "die")
            report.field("ended", [f"by signal {-code}, in the middle of a payment"])
            ledger = (folder / LEDGER).read_text().splitlines()
            report.field("outside", [_shorten(line) for line in ledger])
            report.field("requests", [f"{len(server.requests)} answers were asked for"])
            before = len(server.requests)
            time.sleep(1.1)  # until the lease of the dead process has ended
            report.title("second process")
            _start(server.openai_base_url, folder)
            done = asyncio.run(store.session(SCOPE))
            for item in done.transcript:
                for result in item.results if isinstance(item, ToolResults) else ():
                    report.field("result", [f"{result.call_id}  {result.name}: {result.text}"])
            report.field("answer", [done.turns()[-1].text])
            after = (folder / LEDGER).read_text().splitlines()
            report.field("outside", [_shorten(line) for line in after[len(ledger) :]])
            report.field("requests", [f"{len(server.requests) - before} more answers"])
            report.title("what was done twice")
            for what, prefix in (
                ("the order was read", "read order"),
                ("the receipt was sent", "receipt"),
                ("the payment was made", "refund"),
            ):
                lines = [line for line in after if line.startswith(prefix)]
                report.field("outside", [_count(what, lines)])
            (call,) = asyncio.run(store.unresolved(SCOPE))
            report.field("unknown", [f"{call.metadata.id}  {call.metadata.name}, until you say so"])
            asyncio.run(store.resolve(SCOPE, call.metadata.id, "happened", by="the demo"))
            report.field("resolved", [f"{call.metadata.id}  it happened"])


def _start(url: str, folder: Path, *more: str) -> int:
    """Run one process of the demo; how it ended."""
    command = [sys.executable, "-m", "lutumpy.demo.durable_child", url, str(folder), *more]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS_FOR_A_PROCESS, check=False
    )
    if done.returncode > 0:
        raise DurableDemoError(f"a process of the demo failed:\n{done.stderr}")
    return done.returncode


def _shorten(line: str) -> str:
    """A line of the ledger, with the beginning of a key."""
    words = [word[:12] if len(word) > 40 else word for word in line.split()]
    return " ".join(words)


def _count(what: str, lines: list[str]) -> str:
    times = "once" if len(lines) == 1 else f"{len(lines)} times"
    same = ", with the same key" if len(lines) > 1 and len(set(lines)) == 1 else ""
    return f"{what} {times}{same}"
