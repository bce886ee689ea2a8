"""A chat server that kills itself at a numbered write of its store: `test_killed_servers.py`.

Arguments: the file of the store, the trail of effects, and the number of the write; 0 for none.
The port is written to standard output.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from web_toolkit import Answering, policy

import lutumpy.durable.events
from lutumpy import Toolset, tool_fn
from lutumpy.durable import DurableLoop, SqliteStore
from lutumpy.execution import Dispatcher
from lutumpy.testing import Call, Reply
from lutumpy.web.starlette import chat_routes

TRAIL = sys.argv[2]
WRITES = ("create", "push", "claim", "add_events", "begin", "record", "commit", "decide", "release")
SCRIPT = (
    Reply(
        text="Let me see what there is.",
        calls=[
            Call("look", {"word": "cat"}, id="l1"),
            Call("pay", {"amount": 7}, id="p1"),
        ],
    ),
    Reply(text="It is done, and this is a longer answer."),
)


def note(what: str) -> None:
    file = os.open(TRAIL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, f"{what}\n".encode())
    os.close(file)


@tool_fn(effect="read")
def look(word: str) -> str:
    """Look a word up."""
    note("look")
    return f"{word} means {word[::-1]}"


@tool_fn(effect="idempotent")
def pay(amount: int) -> str:
    """Pay somebody."""
    note("pay")
    return f"paid {amount}"


class Desk(Toolset, tools=[look, pay]):
    """What the model can do."""


class DyingStore:
    """A store whose process is killed before or after its nth write."""

    def __init__(self, store: SqliteStore, at: int) -> None:
        self.store = store
        self.at = at
        self.points = 0

    def reach(self) -> None:
        self.points += 1
        if self.points == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        if name not in WRITES:
            return method

        async def write(*args: Any, **options: Any) -> Any:
            self.reach()
            value = await method(*args, **options)
            self.reach()
            return value

        return write


async def who(request: Request, scope: str) -> str:
    return "ann"


def main() -> None:
    lutumpy.durable.events._SECONDS_BETWEEN_WRITES = 0.0  # every piece is written by itself
    store: Any = DyingStore(SqliteStore(sys.argv[1]), int(sys.argv[3]))
    loop = DurableLoop(
        store,
        Answering(SCRIPT),
        tools=Desk,
        dispatch=Dispatcher(Desk),
        hooks=policy,
        lease=1.0,
        events=True,
    )
    app = Starlette(routes=chat_routes(loop, store, who=who, heartbeat=0.5))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # who reads the port may connect at once
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
    uvicorn.Server(config).run(sockets=[listener])


main()
