"""The instruction for a model that only writes text: how to call tools, and which there are."""

# The wording is behaviour: how well a small model calls tools depends on it. So it is not to be
# changed for its style.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lutumpy import ToolDef
from lutumpy.models import ToolOffering
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.text_tools.result_form import OWN_RESULTS, ResultForm

__all__ = [
    "FUNCTIONS",
    "FUNCTION_LIST",
    "OWN_LISTING",
    "ToolListing",
    "call_instruction",
    "demands",
    "tool_list",
]

_OBJECT_RULE = "in place of the object behind it a JSON object that fits the tool's JSON Schema"


@dataclass(frozen=True, slots=True)
class ToolListing:
    """How an instruction lists the tools, as the template of a model does.

    Attributes:
        before: The text before them.
        behind: The text behind them.
        noun: What the template calls a tool: `tool` or `function`.
        entry: How each is written: `function`, a JSON object `{"type": "function", "function":
            {...}}`; `schema`, the inner one alone; `line`, its name and description on a line, and
            the JSON Schema of its arguments on the next.
        tags: The texts around each.
        in_list: They are one JSON array; otherwise each stands on a line.
    """

    before: str = "Tools:\n"
    behind: str = ""
    noun: Literal["tool", "function"] = "tool"
    entry: Literal["function", "schema", "line"] = "function"
    tags: tuple[str, str] = ("", "")
    in_list: bool = False

    def write(self, definitions: Sequence[ToolDef]) -> str:
        """The tools, as this listing writes them."""
        if self.entry == "line":
            return f"{self.before}{tool_list(definitions)}{self.behind}"
        begin, end = self.tags
        entries = [f"{begin}{self._write_entry(one)}{end}" for one in definitions]
        written = f"[{', '.join(entries)}]" if self.in_list else "\n".join(entries)
        return f"{self.before}{written}{self.behind}"

    def _write_entry(self, definition: ToolDef) -> str:
        entry = {
            "name": definition.name,
            "description": definition.description,
            "parameters": definition.input_schema,
        }
        if self.entry == "schema":
            return json_values.encode_text(entry)
        return json_values.encode_text({"type": "function", "function": entry})


OWN_LISTING = ToolListing(entry="line")
FUNCTIONS = ToolListing("Functions:\n", noun="function")
FUNCTION_LIST = ToolListing("Functions:\n", noun="function", in_list=True)


def call_instruction(
    definitions: Sequence[ToolDef],
    spelled: str,
    tags: tuple[str, str],
    rule: str = "",
    listing: ToolListing = OWN_LISTING,
) -> str:
    """How to call tools, and which.

    Args:
        definitions: The tools.
        spelled: An example of a call, written as calls have to be.
        tags: The tags around it.
        rule: How to write the arguments, where they are not a JSON object.
        listing: How the tools are listed, and what they are called.
    """
    start, end = tags
    if not start:
        nothing_else = "Write nothing else in an answer that calls tools"
    elif end:
        nothing_else = f"Write nothing else between {start} and {end}"
    else:
        nothing_else = f"Write nothing else behind {start}"
    return (
        f"You can call {listing.noun}s. A call is written exactly like this:\n\n"
        f"{spelled}\n\n"
        f"Put the name of a {listing.noun} in place of tool_name, and {rule or _OBJECT_RULE}. "
        f"{nothing_else}. For several calls, write several of these, one after another.\n\n"
        f"{listing.write(definitions)}"
    )


def tool_list(definitions: Sequence[ToolDef]) -> str:
    """One line for each tool: its name, what it does, and the JSON Schema of its arguments."""
    lines: list[str] = []
    for definition in definitions:
        about = " ".join(definition.description.split())
        schema = json_values.encode_text(definition.input_schema)
        lines.append(f"- {definition.name}{': ' + about if about else ''}\n  JSON Schema: {schema}")
    return "\n".join(lines)


def demands(offering: ToolOffering, *, guided: bool, results: ResultForm = OWN_RESULTS) -> str:
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
        marked = (
            "marked with [TOOL_RESULT], its id and the tool's name"
            if results is OWN_RESULTS
            else f"in the order of the calls, marked with {results.told}"
        )
        sentences.append(
            "After your calls stop, and wait: the next message holds the result of each, "
            f"{marked}. Never write a result yourself."
        )
    return " ".join(sentences)
