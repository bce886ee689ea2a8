"""An audit log: every decision of a plan as data, and the decisions of single hooks as log records while they fall."""

from __future__ import annotations

import asyncio
import json
import logging
import posixpath
import sys
from typing import Any

from lutumpy import (
    Complete,
    Finished,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    Toolset,
    hook_impl,
    tool,
    tool_input,
)
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_input(name="read_file", effect="read")
class ReadFile(ToolInput[str]):
    """Read a file."""

    path: str


class Files(Toolset):
    read_file = tool(ReadFile)


class Paths:
    """Keeps the model inside the project, and knows one file by heart."""

    @hook_impl
    def read_file_hook(self, metadata: ToolMetadata, input: ReadFile) -> ToolDecision[ReadFile, str]:
        path = posixpath.normpath(input.path.strip())
        if path.startswith(("/", "..")):
            return Reject("outside the project")
        if path == "VERSION":
            return Complete("1.0")
        return RunNormally(ReadFile(path=path))


SCRIPT = [
    Reply(
        calls=[
            Call("read_file", {"path": " ./README.md"}, id="call_1"),
            Call("read_file", {"path": "/etc/passwd"}, id="call_2"),
            Call("read_file", {"path": "VERSION"}, id="call_3"),
            Call("read_file", {"file": "README.md"}, id="call_4"),
        ]
    ),
    Reply(text="It is version 1.0."),
]


async def main() -> list[dict[str, Any]]:
    """Returns the audit log."""
    llm = ScriptedModel(SCRIPT)
    hooks = Files.hooks().with_hooks(Paths())
    audit: list[dict[str, Any]] = []
    session = Session()
    session.push_user("Which version is this?")
    while True:
        match await session.text_turn(llm, tools=Files).collect():
            case NeedsTools(round=round):
                plan = await round.apply_hooks(hooks)
                audit += plan.decisions()  # JSON values: write them wherever audits go
                plan.commit(session, [call.complete(f"text of {call.input.path}") for call in plan.pending])
            case Finished():
                return audit


if __name__ == "__main__":
    # At DEBUG the arguments are logged too, cut to 500 bytes.
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    for entry in asyncio.run(main()):
        print(json.dumps(entry))
