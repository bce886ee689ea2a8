"""Kinds of damage that models do to the calls they write, and what became of each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from text_toolkit import spell
from toolkit import Write

from lutumpy import Finished, Session, ToolRequirement, Toolset, tool, tool_fn
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import TagToolParser, TextFormat, TextTools

Outcome = Literal["right", "told", "part", "silent", "wrong"]
"""What became of a damaged answer: exactly the calls, a hint for the model, a call that is lost
beside others, an answer without a hint, or a call that the model didn't write."""

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("weather", {"city": "Oslo", "days": 3}),
    ("weather", {"city": "Rome", "days": 4}),
]


@tool_fn
def weather(city: str, days: int) -> str:
    """The weather of a city.

    Args:
        city: Its name.
        days: For how many days.
    """
    return city


class Offered(Toolset):
    weather = tool(weather)
    write = tool(Write)


class Answer:
    """A whole answer in a format, and where its first tag begins and ends.

    Attributes:
        text: The answer.
        start: Its first start tag; empty where its calls have none.
        end: Its end tag; empty where it has none.
    """

    def __init__(self, one: TextFormat, calls: int) -> None:
        self.text: str = spell(one, CALLS[:calls])
        syntax = one.syntaxes[0]
        start, self.end = syntax.tags
        self.start: str = start if start in self.text else "<weather>"
        if self.start not in self.text:
            self.start = ""
        elif self.start == "<weather>":
            self.end = "</weather>"

    def change(self, pattern: str, new: str) -> str:
        """The text with the first place changed that comes after the start tag."""
        begin = self.text.find(self.start) + len(self.start)
        return self.text[:begin] + re.sub(pattern, new, self.text[begin:], count=1)

    def with_start(self, new: str) -> str:
        """The text with another text in place of its first start tag."""
        return self.text.replace(self.start, new, 1) if self.start else self.text

    def with_end(self, new: str) -> str:
        """The text with another text in place of its last end tag."""
        before, end, behind = self.text.rpartition(self.end) if self.end else (self.text, "", "")
        return f"{before}{new}{behind}" if end else self.text


DAMAGE: Mapping[str, Callable[[Answer], str]] = {
    "empty answer": lambda a: "",
    "cut in the middle": lambda a: a.text[: len(a.text) // 2],
    "cut behind the start tag": lambda a: a.text[: a.text.find(a.start) + len(a.start)],
    "cut before its last character": lambda a: a.text[:-1],
    "cut five characters before its end": lambda a: a.text[:-5],
    "first character lost": lambda a: a.text[1:],
    "first character of the tag lost": lambda a: a.with_start(a.start[1:]),
    "last character of the tag lost": lambda a: a.with_start(a.start[:-1]),
    "third character lost": lambda a: a.text[:2] + a.text[3:],
    "start tag in upper case": lambda a: a.with_start(a.start.upper()),
    "end tag in upper case": lambda a: a.with_end(a.end.upper()),
    "blank in the start tag": lambda a: a.with_start(f"{a.start[:-1]} {a.start[-1:]}"),
    "no start tag": lambda a: a.with_start(""),
    "no end tag": lambda a: a.with_end(""),
    "start tag twice": lambda a: a.with_start(a.start * 2),
    "end tag twice": lambda a: a.with_end(a.end * 2),
    "start tag as end tag": lambda a: a.with_end(a.start),
    "half an end tag": lambda a: a.with_end(a.end[: len(a.end) // 2]),
    "end tag of another format": lambda a: a.with_end("</function_calls>"),
    "start tag of another format": lambda a: a.with_start("<function_calls>"),
    "prose before": lambda a: f"I look. {a.text}",
    "prose behind": lambda a: f"{a.text} So be it.",
    "prose behind the start tag": lambda a: a.with_start(f"{a.start} here it is: "),
    "prose before the end tag": lambda a: a.with_end(f" that is all {a.end}"),
    "line breaks around": lambda a: f"\n\n{a.text}\n\n",
    "carriage returns": lambda a: a.text.replace("\n", "\r\n"),
    "in a fence": lambda a: f"```\n{a.text}\n```",
    "in a fence for JSON": lambda a: f"```json\n{a.text}\n```",
    "in a fence with a sentence": lambda a: f"```\nI would write\n{a.text}\n```",
    "behind an unclosed fence": lambda a: f"```python\nx = 1\n\n{a.text}",
    "in a code span": lambda a: f"I would write `{a.text}`.",
    "in thinking": lambda a: f"<think>{a.text}</think>\n",
    "in thinking that never ends": lambda a: f"<think>Hm. {a.text}",
    "behind thinking closed twice": lambda a: f"<think>a</think>b</think>{a.text}",
    "list item": lambda a: f"1. {a.text}",
    "block quote": lambda a: f"> {a.text}",
    "bold": lambda a: f"**{a.text}**",
    "zero width space behind the tag": lambda a: a.with_start(f"{a.start}\u200b"),
    "typographic quotes": lambda a: a.text.replace('"', "\u201d"),
    "single quotes": lambda a: a.text.replace('"', "'"),
    "a quote is missing": lambda a: a.change('"', ""),
    "a bracket too many": lambda a: a.change(r"\}", "}}"),
    "a bracket is missing": lambda a: a.change(r"\}", ""),
    "a comma too many": lambda a: a.change(r"\}", ",}"),
    "a comma is missing": lambda a: a.change(",", ""),
    "a colon is missing": lambda a: a.change(":", ""),
    "a comment": lambda a: a.change(",", ", // so\n"),
    "escaped as in XML": lambda a: a.text.replace('"', "&quot;").replace("<", "&lt;"),
}  # fmt: skip

# Nothing is left of a call, or what is there is a quote or a thought by the rules (T3).
NOTHING_KNOWN = (
    "empty answer",
    "cut in the middle",
    "cut behind the start tag",
    "in a fence with a sentence",
    "in a code span",
    "in thinking",
    "in thinking that never ends",
    "behind an unclosed fence",
)


def outcomes(one: TextFormat, calls: int, *, required: bool) -> Mapping[str, Outcome]:
    """What becomes of every kind of damage to an answer in this format."""
    answer = Answer(one, calls)
    texts = {kind: damage(answer) for kind, damage in DAMAGE.items()}
    inner = ScriptedModel([Reply(text=text) for text in texts.values()])
    llm = TextTools(inner, TagToolParser.named(one.name))
    require: Any = ToolRequirement.at_least_one() if required else None
    found: dict[str, Outcome] = {}
    for kind in texts:
        session = Session()
        session.push_user("How is the weather?")
        outcome = session.text_turn(llm, tools=Offered, require=require).collect_sync()
        if isinstance(outcome, Finished):
            found[kind] = "silent"
            continue
        calls_read = outcome.round.calls
        read = [(each.metadata.name, json.loads(each.metadata.arguments)) for each in calls_read]
        found[kind] = _judge(read, CALLS[:calls], len(outcome.round.issues))
        outcome.round.discard()
    return found


def _judge(
    read: Sequence[tuple[str, dict[str, Any]]],
    written: Sequence[tuple[str, dict[str, Any]]],
    issues: int,
) -> Outcome:
    if any(one not in written for one in read) or len(read) > len(written):
        return "wrong"
    if list(read) == list(written):
        return "told" if issues else "right"
    return "told" if issues else "part"
