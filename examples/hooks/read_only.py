"""A read-only mode: one policy for every tool there is and every tool to come, by what the
declaration says of its effect.

Run:    python examples/hooks/read_only.py            a scripted model, no key
        python examples/hooks/read_only.py --live     OpenAI, with OPENAI_API_KEY;
                                                      --model NAME for another model,
                                                      OPENAI_BASE_URL for any compatible host
Prints: what was rejected and why, what was run, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    Toolset,
    nested,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8


@tool_fn(effect="read")
async def read_file(path: str) -> str:
    """Read a file."""
    return f"the text of {path}"


@tool_fn(idempotent=True)
async def write_file(path: str, text: str) -> None:
    """Write a file."""
    raise AssertionError("never in read-only mode")


@tool_fn
async def commit(message: str) -> str:
    """Commit the working tree."""
    raise AssertionError("never in read-only mode")


class Git(Toolset):
    commit_tree = tool(commit)


class Workspace(Toolset):
    read_file = tool(read_file)
    write_file = tool(write_file)
    git = nested(Git)


def read_only(call: BaseToolCall) -> ToolDecision:
    """A policy can be a plain function: it sees each pending call, nested tools included."""
    if call.selector.definition.options.effect == "read":
        return RunNormally(call.input)
    return Reject("the workspace is read-only now; describe the change instead of making it")


async def talk(llm: Model, question: str) -> str:
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Workspace).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                plan = await round.apply_hooks(read_only)
                for rejected in plan.rejected:
                    print(
                        f"{rejected.metadata.name}: rejected by the {rejected.source}: "
                        f"{rejected.reason}"
                    )
                results = [call.complete(await call.call()) for call in plan.pending]
                for ran in results:
                    print(f"{ran.metadata.name}: {ran.content}")
                plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        calls=[
            Call("read_file", {"path": "notes.md"}),
            Call("write_file", {"path": "notes.md", "text": ""}),
            Call("commit", {"message": "empty the notes"}),
        ]
    ),
    Reply(text="I would empty notes.md and commit that."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    try:
        print(await talk(llm, "Read notes.md, empty it, and commit that."))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
