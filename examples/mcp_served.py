"""MCP, out and in: a toolset served with its hooks, called by a client that knows nothing of
lutumpy, and read back for a conversation.

`--serve` is the server, over stdio: it validates arguments, and its hook decides about every call,
whoever makes it. The first client is the bare SDK of the protocol. The second one is `McpTools`: to
the conversation the served tools are dynamic tools like any other.

Run:    python examples/mcp_served.py            a scripted model, no key
        python examples/mcp_served.py --live     OpenAI, with OPENAI_API_KEY;
                                                 --model NAME for another model,
                                                 OPENAI_BASE_URL for any compatible host
        python examples/mcp_served.py --serve    the server alone, for any client of MCP
Prints: what the server lists, what the bare client is answered, each call of the conversation with
its result, and the answer.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TextIO

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.server.stdio import stdio_server
from mcp.types import TextContent
from pydantic import BaseModel

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.mcp import McpConnectionError, McpTools, mcp_server
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 6
BOOKS = {"Emma": "on the shelf", "Dracula": "reserved for the school"}
LIBRARY = StdioServerParameters(command=sys.executable, args=[__file__, "--serve"])

# --- the server -----------------------------------------------------------------------------------


@tool_fn(effect="read")
def find_book(title: str) -> str:
    """Say where a book of the library is."""
    return BOOKS.get(title, "not in the library")


@tool_fn
def lend_book(title: str, reader: str) -> str:
    """Lend a book to a reader."""
    BOOKS[title] = f"lent to {reader}"
    return f"{title} is lent to {reader} for four weeks"


class Library(Toolset):
    find_book = tool(find_book)
    lend_book = tool(lend_book)


hooks = Library.hooks()


@hooks.on(Library.lend_book)
def only_what_is_there(metadata: ToolMetadata, input: BaseModel) -> ToolDecision[BaseModel, str]:
    state = find_book(input.model_dump()["title"])
    return RunNormally() if state == "on the shelf" else Reject(f"it is {state}")


async def serve() -> None:
    server = mcp_server(Library, hooks=hooks)
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


# --- its clients ----------------------------------------------------------------------------------


async def ask_by_the_bare_sdk(log: TextIO) -> None:
    calls = [
        ("find_book", {"title": "Dracula"}),
        ("find_book", {}),
        ("lend_book", {"title": "Dracula", "reader": "Ada"}),
    ]
    async with Client(stdio_client(LIBRARY, log)) as client:
        for listed in (await client.list_tools()).tools:
            reads = listed.annotations is not None and listed.annotations.read_only_hint
            print(f"{listed.name}: {listed.description}{' (reads)' if reads else ''}")
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            texts = [block.text for block in result.content if isinstance(block, TextContent)]
            print(f"  {name} {arguments} -> {'error: ' * result.is_error}{' '.join(texts)}")


async def talk(llm: Model, question: str) -> str:
    session = Session()
    session.push_user(question)
    executor = ToolExecutor()
    async with McpTools(LIBRARY, name="LibraryTools", prefix="library_") as library:
        print("on offer:", *library.toolset.selectors())
        for _ in range(MAX_ROUNDS):
            match await session.text_turn(llm, tools=library.toolset).collect():
                case Finished(result=result):
                    return result.refusal or result.text
                case NeedsTools(round=round):
                    results = await executor.run(round.calls, Dispatcher(library.toolset))
                    for done in results:
                        print(f"  {done.metadata.name}: {done.status}: {done.content}")
                    round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(calls=[Call("library_find_book", {"title": "Emma"})]),
    Reply(calls=[Call("library_lend_book", {"title": "Emma", "reader": "Ada"})]),
    Reply(text="Emma was on the shelf; it is yours for four weeks."),
]


async def main(llm: Model, log: TextIO) -> None:
    await ask_by_the_bare_sdk(log)
    print(await talk(llm, "I am Ada. Is Emma there? Then I would like to take it."))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--serve", action="store_true", help="be the server")
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    if options.serve:
        anyio.run(serve)
        raise SystemExit
    chosen: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    try:
        with open(os.devnull, "w") as nowhere:  # for what the server writes beside the protocol
            anyio.run(main, chosen, nowhere)
    except (AdapterError, McpConnectionError) as error:
        parser.exit(2, f"{error}\n")
