"""A read-only mode: one policy for every tool there is and every tool to come, by what the declaration says of its effect."""

from __future__ import annotations

import asyncio

from lutumpy import (
    BaseToolCall,
    Finished,
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
from lutumpy.testing import Call, Reply, ScriptedModel


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
    llm = ScriptedModel(SCRIPT)
    session = Session()
    session.push_user("Clean up my notes.")
    while True:
        match await session.text_turn(llm, tools=Workspace).collect():
            case NeedsTools(round=round):
                plan = await round.apply_hooks(read_only)
                for rejected in plan.rejected:
                    print(f"{rejected.metadata.name}: rejected by the {rejected.source}: {rejected.reason}")
                results = [call.complete(await call.call()) for call in plan.pending]
                for result in results:
                    print(f"{result.metadata.name}: {result.content}")
                plan.commit(session, results)
            case Finished(result=result):
                print(result.text)
                return


if __name__ == "__main__":
    asyncio.run(main())
