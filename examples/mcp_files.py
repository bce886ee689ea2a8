"""A chat about the files of a folder, through the MCP server for files from npm; a person is asked
before anything is written.

What a server says of its tools is not trusted: which of them only read is a list in this program,
and every other call waits for a yes. `lutumpy tools lock 'stdio:npx ...'` writes down what was
reviewed; `--lock FILE` then refuses to start when a word of it has changed.

Run:    python examples/mcp_files.py            a scripted model, no key; needs node and npx
        python examples/mcp_files.py --live     OpenAI, with OPENAI_API_KEY;
                                                --model NAME for another model,
                                                OPENAI_BASE_URL for any compatible host
        --folder DIR for a folder of yours, --server COMMAND for the server without npx
Prints: a question for each call that may write, each call with its result, and the answer.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TextIO

import anyio
from mcp import StdioServerParameters

from lutumpy import (
    AdapterError,
    DynamicInput,
    DynamicOutput,
    Finished,
    Model,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolCall,
    ToolDecision,
    ToolMetadata,
    Toolset,
    dynamic,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.errors import LockError
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.mcp import McpConnectionError, McpTools, SchemaChanged
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 10
NPX = "npx -y @modelcontextprotocol/server-filesystem"
# Decided here, and not by what the server says of itself.
READING = {"list_directory", "read_text_file", "search_files", "get_file_info"}
WRITING = {"write_file", "edit_file", "create_directory", "move_file"}


class App(Toolset[ToolCall[DynamicInput, DynamicOutput]]):
    files = dynamic()


hooks = App.hooks()


@hooks.on(App.files)
async def ask_before_writing(
    metadata: ToolMetadata, input: DynamicInput
) -> ToolDecision[DynamicInput, DynamicOutput]:
    if metadata.name in READING:
        return RunNormally()
    print(f"{metadata.name} {input.values.get('path', '')}")
    try:
        answer = await anyio.to_thread.run_sync(input_line, "  may it? [y/N] ")
    except EOFError:
        answer = ""
    return RunNormally() if answer.lower() in ("y", "yes") else Reject("the user said no")


def input_line(words: str) -> str:
    return input(words).strip()


async def talk(llm: Model, question: str, files: McpTools) -> str:
    offered = App.with_dynamic_tools({App.files: files.tools})
    executor = ToolExecutor()
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=offered).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                plan = await round.apply_hooks(hooks)
                for rejected in plan.rejected:
                    print(f"  {rejected.metadata.name}: rejected: {rejected.reason}")
                results = await executor.run(plan.pending, Dispatcher(offered))
                for done in results:
                    first_line = str(done.content).partition("\n")[0]
                    print(f"  {done.metadata.name}: {done.status}: {first_line[:200]}")
                plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


def script(folder: str) -> list[Reply]:
    note, plan = f"{folder}/note.txt", f"{folder}/plan.txt"
    return [
        Reply(calls=[Call("read_text_file", {"path": note})]),
        Reply(
            calls=[
                Call("write_file", {"path": plan, "content": "1. Buy milk.\n"}),
                Call("write_file", {"path": note, "content": ""}),
            ]
        ),
        Reply(text="plan.txt has the plan; note.txt stays as it was."),
    ]


async def main(options: argparse.Namespace, folder: str, log: TextIO) -> None:
    command, *arguments = shlex.split(options.server)
    server = StdioServerParameters(command=command, args=[*arguments, folder])
    async with McpTools(
        server,
        name="Files",
        allow=lambda listed: listed.name in READING | WRITING,
        lock=options.lock,
        timeout=60,
        closed=True,
        errlog=log,
    ) as files:
        llm: Model = ScriptedModel(script(folder))
        if options.live:
            llm = OpenAIChat(options.model)
        question = f"Make a plan of note.txt in {folder}, then empty the note."
        print(await talk(llm, question, files))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    parser.add_argument("--server", default=NPX, help="what starts the server (%(default)s)")
    parser.add_argument("--folder", help="the folder; one with a note if left out")
    parser.add_argument("--lock", help="a lock file that knows the server")
    given = parser.parse_args()
    if shutil.which(shlex.split(given.server)[0]) is None:
        parser.exit(2, "there is no npx on the PATH; --server names another command\n")
    try:
        with open(os.devnull, "w") as nowhere, tempfile.TemporaryDirectory() as made:
            Path(made, "note.txt").write_text("milk\n")
            anyio.run(main, given, str(Path(given.folder or made).resolve()), nowhere)
    except (AdapterError, LockError, McpConnectionError, SchemaChanged) as error:
        parser.exit(2, f"{error}\n")
