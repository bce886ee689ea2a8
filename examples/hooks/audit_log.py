"""An audit log: every decision of a plan as data, and the decisions of single hooks as log records
while they fall.

Run:    python examples/hooks/audit_log.py            a scripted model, no key
        python examples/hooks/audit_log.py --live     OpenAI, with OPENAI_API_KEY;
                                                      --model NAME for another model,
                                                      OPENAI_BASE_URL for any compatible host
Prints: the log records, the answer, and a line of JSON for each decision.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import posixpath
import sys
from typing import Any

from lutumpy import (
    AdapterError,
    Complete,
    Finished,
    Model,
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
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8
FILES = {"README.md": "A program that does one thing."}


@tool_input(name="read_file", effect="read")
class ReadFile(ToolInput[str]):
    """Read a file of the project."""

    path: str


class Files(Toolset):
    read_file = tool(ReadFile)


class Paths:
    """Keeps the model inside the project, and knows one file by heart."""

    @hook_impl
    def read_file_hook(
        self, metadata: ToolMetadata, input: ReadFile
    ) -> ToolDecision[ReadFile, str]:
        path = posixpath.normpath(input.path.strip())
        if path.startswith(("/", "..")):
            return Reject("outside the project")
        if path == "VERSION":
            return Complete("1.0")
        return RunNormally(ReadFile(path=path))


async def talk(llm: Model, question: str, audit: list[dict[str, Any]]) -> str:
    """Ask until there is an answer; every decision goes into `audit`, in the order of the calls."""
    hooks = Files.hooks().with_hooks(Paths())
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Files).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                plan = await round.apply_hooks(hooks)
                audit += plan.decisions()  # JSON values: write them wherever audits go
                results = []
                for call in plan.pending:
                    if not Files.read_file.matches(call):
                        results.append(call.fail("nothing here runs this tool"))
                        continue
                    text = FILES.get(call.input.path)
                    results.append(
                        call.fail("there is no such file") if text is None else call.complete(text)
                    )
                plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


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


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    # At DEBUG the arguments are logged too, cut to 500 bytes.
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stdout)
    logging.getLogger("lutumpy.tool_hook").setLevel(logging.INFO)
    audit: list[dict[str, Any]] = []
    try:
        print(await talk(llm, "Which version is this? Read README.md and VERSION.", audit))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    for entry in audit:
        print(json.dumps(entry))


if __name__ == "__main__":
    asyncio.run(main())
