"""Half typed, half known at run time: a program's own tools, and those that a user has configured.

The typed tools are functions; what a user adds is a name, a description, a JSON Schema and a
command, as it might stand in a settings file. Both are offered in one list, go through the same
hooks and are committed in one round. What the model writes for a user's tool is validated by its
schema before anything runs; a tool of the settings that can't be used is left out, and said.

Run:    python examples/users_tools.py            a scripted model, no key
        python examples/users_tools.py --live     OpenAI, with OPENAI_API_KEY;
                                                  --model NAME for another model,
                                                  OPENAI_BASE_URL for any compatible host
Prints: the tools on offer, what was left out, each call with its result, what the model was told
about wrong arguments, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from typing_extensions import assert_never

from lutumpy import (
    AdapterError,
    DeclarationError,
    DynamicInput,
    DynamicOutput,
    DynamicTool,
    Finished,
    Model,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolCall,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    dynamic,
    tool,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 6

# What a user has written into the settings: plain data. The last one can't be used.
SETTINGS: list[dict[str, Any]] = [
    {
        "name": "set_light",
        "description": "Set a light of the flat.",
        "schema": {
            "type": "object",
            "properties": {
                "room": {"enum": ["kitchen", "hall"]},
                "percent": {"type": "integer", "minimum": 0, "maximum": 100},
            },
            "required": ["room", "percent"],
            "additionalProperties": False,
        },
    },
    {
        "name": "unlock_door",
        "description": "Unlock the front door.",
        "schema": {"type": "object", "additionalProperties": False},
    },
    {
        "name": "stranger",
        "description": "Its schema is somewhere else.",
        "schema": {"$ref": "https://example.com/schema.json"},
    },
]


@tool_input(name="note")
class Note(ToolInput[int]):
    """Write something down; gives the number of the note."""

    text: str


class Home(Toolset[ToolCall[Note, int] | ToolCall[DynamicInput, DynamicOutput]]):
    note = tool(Note)
    users = dynamic()


def users_tools() -> list[DynamicTool]:
    tools: list[DynamicTool] = []
    for entry in SETTINGS:
        try:
            tools.append(DynamicTool(entry["name"], entry["description"], entry["schema"]))
        except DeclarationError as error:
            print("  left out:", error)
    return tools


def no_doors(
    metadata: ToolMetadata, input: DynamicInput
) -> ToolDecision[DynamicInput, DynamicOutput]:
    """A policy for every tool of the place, whatever the settings hold."""
    if "door" in metadata.name:
        return Reject("doors are opened by people")
    return RunNormally()


async def talk(llm: Model, question: str) -> str:
    notes: list[str] = []
    hooks = Home.hooks()
    hooks.on(Home.users)(no_doors)
    offered = Home.with_dynamic_tools({Home.users: users_tools()})
    print("on offer:", *offered.selectors())
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=offered).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                for issue in round.issues:
                    print(f"  {issue.metadata.name}: {issue.detail}")
                plan = await round.apply_hooks(hooks)
                for rejected in plan.rejected:
                    print(f"  {rejected.metadata.name} rejected: {rejected.reason}")
                results: list[ToolResult] = []
                for call in plan.pending:
                    if Home.note.matches(call):
                        notes.append(call.input.text)
                        results.append(call.complete(len(notes)))
                    elif Home.users.matches(call):
                        results.append(call.complete({"done": True, **call.input.values}))
                    else:
                        assert_never(call)
                for done in results:
                    print(f"  {done.metadata.name}: {done.content}")
                plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        calls=[
            Call("set_light", {"room": "kitchen", "percent": 130}),
            Call("note", {"text": "milk"}),
            Call("unlock_door", {}),
        ]
    ),
    Reply(calls=[Call("set_light", {"room": "kitchen", "percent": 100})]),
    Reply(text="The kitchen is bright and milk is noted. I may not open the door."),
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
        print(await talk(llm, "Full light in the kitchen, note milk, and open the door."))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
