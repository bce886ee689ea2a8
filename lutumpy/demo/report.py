"""What the demo prints of each round."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lutumpy import (
    Finished,
    InvalidToolCallDelta,
    NeedsTools,
    ReasoningDelta,
    Session,
    TextDelta,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    TurnResult,
)
from lutumpy.demo.shop import _HelpDesk
from lutumpy.hooks import BaseToolCall
from lutumpy.models import ToolResults, Usage
from lutumpy.streaming import TurnStream

__all__ = ["Report"]

WIDTH = 100
MARGIN = 11


class Report:
    """Writes what happened, line by line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def title(self, text: str) -> None:
        self._write("")
        self._write(f"-- {text} ".ljust(WIDTH, "-"))

    def field(self, name: str, lines: Sequence[str], *, cut: bool = False) -> None:
        for line in lines:
            if cut:
                shown = [_cut_line(line, WIDTH - max(MARGIN, len(name) + 1))]
            else:
                shown = textwrap.wrap(line, WIDTH - MARGIN, subsequent_indent="    ")
            # Only the first line carries the name; the others are set under it.
            for piece in shown:
                self._write(f"{name} ".ljust(MARGIN) + piece)
                name = ""

    async def arriving(
        self, number: int, stream: TurnStream[BaseToolCall, NeedsTools | Finished]
    ) -> NeedsTools | Finished:
        """Every piece of a streamed answer when it comes; a call is there with its types before the
        answer has ended.
        """
        self.title(f"answer {number}, as it arrives")
        async with stream:
            async for event in stream:
                match event:
                    case TextDelta(text=text) | ReasoningDelta(text=text):
                        what = "text" if isinstance(event, TextDelta) else "thought"
                        self.field(what, [json.dumps(text, ensure_ascii=False)], cut=True)
                    case ToolCallDelta(id=id, name=name, arguments=piece):
                        self.field("piece", [f"{id}  {name} {piece}".rstrip()], cut=True)
                    case InvalidToolCallDelta(id=id, name=name, arguments=piece):
                        self.field(
                            "piece", [f"{id}  {name} (not offered) {piece}".rstrip()], cut=True
                        )
                    case ToolCallReady(call=call):
                        self.field("ready", [f"{call.metadata.id}  {call.input!r}"])
                    case ToolCallIssueFound(issue=issue):
                        self.field("issue", [f"{issue.metadata.id}  {issue.reason}"])
                    case _:
                        pass
        return stream.outcome

    def asked(self, number: int, round: ToolRound) -> None:
        """What was offered, what the model wrote, and what became of it."""
        self.title(f"round {number}")
        offered = [selector.name for selector in _HelpDesk.default_selectors()]
        hidden = [
            selector.name for selector in _HelpDesk.selectors() if selector.name not in offered
        ]
        self.field("offered", [f"{', '.join(offered)} (not offered: {', '.join(hidden)})"])
        if round.text:
            self.field("said", [round.text])
        self.field(
            "asked", [f"{call.id}  {call.name} {call.arguments}" for call in round.turn.calls]
        )
        self.field("decoded", [f"{call.metadata.id}  {call.input!r}" for call in round.calls])
        self.field(
            "issue",
            [f"{issue.metadata.id}  {issue.reason}: {issue.detail}" for issue in round.issues],
        )

    def decided(self, plan: ToolRoundPlan) -> None:
        """What hooks made of the calls."""
        lines: list[str] = []
        for entry in plan.decisions():
            line = f"{entry['call_id']}  {entry['tool']}: {entry['decision']}"
            if entry["decision"] == "edited":
                line += f", will run with {json.dumps(entry['input'])}"
            elif entry["decision"] != "pending" and "by" in entry:
                line += f" by {entry['by']}"
            lines.append(line)
        self.field("decided", lines)

    def executed(self, round: ToolRound | ToolRoundPlan, results: Sequence[ToolResult]) -> None:
        """Which calls the program's own code ran, and how that went."""
        lines = [
            f"{result.metadata.id}  {result.metadata.name}: {result.status}" for result in results
        ]
        self.field("executed", lines or ["nothing"])
        if round.continue_suggestion:
            self.field("next", [round.continue_suggestion])

    def committed(self, session: Session) -> None:
        """What the model is told, call by call in its own order, and what this round cost."""
        last = session.transcript[-1]
        results = last.results if isinstance(last, ToolResults) else ()
        self.field("told", [f"{result.call_id}  {result.text}" for result in results])
        usage = session.turns()[-1].usage
        self.field(
            "committed",
            [f"the turn and a result for each call; {len(session.transcript)} items so far"],
        )
        self.field("tokens", [_describe_tokens(usage)])

    def finished(
        self, number: int, result: TurnResult, session: Session, body: Mapping[str, Any]
    ) -> None:
        """The answer, what the conversation cost, and the request that led to the answer."""
        self.title(f"answer, to request {number}")
        self.field("said", [result.text])
        self.field("finish", [result.finish_reason])
        usage = session.usage
        self.field("tokens", [f"{_describe_tokens(usage)}, in {number} requests"])
        self.title("the last request, in outline")
        for name, value in body.items():
            if name in ("messages", "input", "contents"):
                lines = [
                    f"{k:>2}  {line}" for k, entry in enumerate(value) for line in outline(entry)
                ]
            elif names := list(_tool_names(value)) if name.startswith("tool") else []:
                lines = [", ".join(names)]
            else:
                lines = [str(value)]
            self.field(name, lines, cut=True)


def outline(entry: Mapping[str, Any]) -> Iterator[str]:
    """A message or item of a request body in a few words: who, and what."""
    who = f"{entry.get('role') or entry.get('type'):<21}"
    content = entry.get("content", entry.get("output", entry.get("parts")))
    # Ollama's API writes the content of a turn that only calls as an empty text.
    if isinstance(content, str) and (content or not entry.get("tool_calls")):
        answered = entry.get("tool_call_id") or entry.get("call_id")
        yield f"{who}{f'{answered}  ' if answered else ''}{content}"
    for part in content if isinstance(content, list) else ():
        yield f"{who}{_describe_part(part)}"
    for call in entry.get("tool_calls") or ():
        yield f"{who}{call['id']}  {call['function']['name']} {call['function']['arguments']}"
    if "arguments" in entry:
        yield f"{who}{entry['call_id']}  {entry['name']} {entry['arguments']}"


def _describe_part(part: Mapping[str, Any]) -> str:
    if "type" not in part and "text" not in part:
        return _describe_member(part)
    kind = part.get("type", "text")
    if kind == "tool_use":
        return (
            f"{kind} {part['id']}  {part['name']} {json.dumps(part['input'], ensure_ascii=False)}"
        )
    if kind == "tool_result":
        return f"{kind} {part['tool_use_id']}  {part['content']}"
    return str(part.get("text", kind))


def _describe_member(part: Mapping[str, Any]) -> str:
    """A part that is called by its only member: its texts, then what it holds."""
    for kind, held in part.items():
        if isinstance(held, Mapping):
            texts = [value for value in held.values() if isinstance(value, str)]
            rest = [value for value in held.values() if not isinstance(value, str)]
            written = [json.dumps(value, ensure_ascii=False) for value in rest]
            return " ".join([kind, *texts, *written])
    return ", ".join(part)


def _tool_names(value: Any) -> Iterator[str]:
    """The names of tools, however deep an API puts them."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        yield value["name"]
        return
    held = value.values() if isinstance(value, Mapping) else value
    for each in held if isinstance(value, Mapping | list) else ():
        yield from _tool_names(each)


def _cut_line(text: str, width: int) -> str:
    text = " ".join(text.split("\n"))
    return text if len(text) <= width else text[: width - 3] + "..."


def _describe_tokens(usage: Usage) -> str:
    # Messages counts what a cache has read or kept beside its input.
    return f"{usage.total_tokens - usage.output_tokens} in, {usage.output_tokens} out"
