"""The instruction for a model that only writes text: how to call tools, and which there are."""

# The wording is behaviour: how well a small model calls tools depends on it. So it is not to be
# changed for its style.

from __future__ import annotations

from collections.abc import Sequence

from lutumpy import ToolDef
from lutumpy.models import ToolOffering
from lutumpy.plain import json_values

__all__ = ["call_instruction", "demands", "tool_list"]

RESULT = "[TOOL_RESULT]"
_OBJECT_RULE = "in place of the object behind it a JSON object that fits the tool's JSON Schema"


def call_instruction(
    definitions: Sequence[ToolDef], spelled: str, tags: tuple[str, str], rule: str = ""
) -> str:
    """How to call tools, and which.

    Args:
        definitions: The tools.
        spelled: An example of a call, written as calls have to be.
        tags: The tags around it.
        rule: How to write the arguments, where they are not a JSON object.
    """
    start, end = tags
    if not start:
        nothing_else = "Write nothing else in an answer that calls tools"
    elif end:
        nothing_else = f"Write nothing else between {start} and {end}"
    else:
        nothing_else = f"Write nothing else behind {start}"
    return (
        "You can call tools. A call is written exactly like this:\n\n"
        f"{spelled}\n\n"
        f"Put the name of a tool in place of tool_name, and {rule or _OBJECT_RULE}. "
        f"{nothing_else}. For several calls, write several of these, one after another.\n\n"
        f"Tools:\n{tool_list(definitions)}"
    )


def tool_list(definitions: Sequence[ToolDef]) -> str:
    """One line for each tool: its name, what it does, and the JSON Schema of its arguments."""
    lines: list[str] = []
    for definition in definitions:
        about = " ".join(definition.description.split())
        schema = json_values.encode_text(definition.input_schema)
        lines.append(f"- {definition.name}{': ' + about if about else ''}\n  JSON Schema: {schema}")
    return "\n".join(lines)


def demands(offering: ToolOffering, *, guided: bool) -> str:
    """What this turn asks for beyond that.

    A guided answer can only hold calls or text, so little has to be said about it: small models
    lose the thread of long instructions.
    """
    sentences: list[str] = []
    if offering.mode == "specific":
        sentences.append(f"In this answer you must call the tool {offering.forced}.")
    elif offering.mode == "required":
        sentences.append("In this answer you must call at least one tool.")
    elif not guided:
        sentences.append("Call a tool only where it helps; otherwise answer in plain text.")
    if not offering.parallel:
        sentences.append("Write at most one call in an answer.")
    if not guided:
        sentences.append(
            "After your calls stop, and wait: the next message holds the result of each, marked "
            f"with {RESULT}, its id and the tool's name. Never write a result yourself."
        )
    return " ".join(sentences)
