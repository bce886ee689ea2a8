"""What of a run its watchers may see."""

# Every front end takes its events through here first, so what isn't shown can't be sent: neither by
# an encoder that forgets about it, nor by one that is written later (rule W22).

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from lutumpy.durable import DurableEvent, UnknownEvent
from lutumpy.durable.log import (
    CallAsked,
    CallDecided,
    CallDelivered,
    CallHeld,
    CallPromised,
    Completed,
    Delta,
    RunWaits,
    ShownCall,
    ShownIssue,
    ShownRejection,
    ShownResult,
)
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["Show", "ShowTool", "ShownLog"]

ShowTool: TypeAlias = Literal["all", "status", "nothing"]
"""What is shown of a tool's calls: everything, that they were made and how they ended, nothing."""


@dataclass(frozen=True, slots=True)
class Show:
    """What of a run is sent to those who watch it.

    Attributes:
        reasoning: Whether the model's readable reasoning is.
        inputs: Whether the inputs of calls are.
        outputs: Whether the results of calls are, with the reasons of what was refused.
        tools: What is shown of single tools, by name: `all`, `status` (that it was called and how
            that ended) or `nothing`.
        redact: Called last, with each event that would be sent. It returns the event, another one
            in its place, or `None` for none.

    Raises:
        ValueError: `tools` has another word.
    """

    reasoning: bool = False
    inputs: bool = True
    outputs: bool = True
    tools: Mapping[str, ShowTool] | None = None
    redact: Callable[[DurableEvent], DurableEvent | None] | None = None

    def __post_init__(self) -> None:
        for name, word in (self.tools or {}).items():
            if word not in ("all", "status", "nothing"):
                raise ValueError(f"tools[{name!r}] is 'all', 'status' or 'nothing', not {word!r}")

    def apply(self, event: DurableEvent) -> DurableEvent | None:
        """What is shown of an event; `None` where nothing is."""
        shown: DurableEvent | None
        if isinstance(event, UnknownEvent):
            return None  # nobody knows what of it may be shown
        if isinstance(event, Delta):
            shown = self._delta(event)
        elif isinstance(event, Completed):
            blocks = [self._block(block) for block in event.blocks]
            shown = Completed(tuple([block for block in blocks if block is not None]))
        else:
            shown = cast("DurableEvent | None", self._reduce(event))
        return shown if shown is None or self.redact is None else self.redact(shown)

    @property
    def hides_tools(self) -> bool:
        """Whether there are tools of which nothing is shown."""
        return "nothing" in (self.tools or {}).values()

    def hides(self, tool: str) -> bool:
        """Whether nothing of a tool is shown: nobody who watches may answer for its calls."""
        return self._of_tool(tool) == "nothing"

    def _of_tool(self, name: str) -> ShowTool:
        return (self.tools or {}).get(name, "all")

    def _shows_input(self, name: str) -> bool:
        return self.inputs and self._of_tool(name) == "all"

    def _shows_output(self, name: str) -> bool:
        return self.outputs and self._of_tool(name) == "all"

    # --- answers -----------------------------------------------------------------------------

    def _delta(self, event: Delta) -> Delta | None:
        if event.kind == "ReasoningDelta":
            return event if self.reasoning else None
        if event.kind in ("TextDelta", "RefusalDelta", "Started"):
            return event
        if event.kind not in ("ToolCallDelta", "InvalidToolCallDelta"):
            return None  # what else streams comes whole with the steps of the round
        name = str(event.values.get("name", ""))
        if self.hides(name):
            return None
        if self._shows_input(name):
            return event
        return Delta(event.kind, {**event.values, "arguments": ""})

    def _block(self, block: Mapping[str, JsonValue]) -> Mapping[str, JsonValue] | None:
        kind = block.get("block")
        if kind == "reasoning":
            return block if self.reasoning else None
        if kind in ("text", "refusal"):
            return block
        if kind != "call":
            return None
        name = str(block.get("tool", ""))
        if self.hides(name):
            return None
        return block if self._shows_input(name) else {**block, "arguments": ""}

    # --- steps -------------------------------------------------------------------------------

    def _reduce(self, value: Any) -> Any:
        """A value of the log with what is shown of it; `None` where nothing is."""
        if isinstance(value, ShownCall):
            return self._call(value)
        if isinstance(value, ShownIssue):
            return self._issue(value)
        if isinstance(value, CallDelivered):
            return self._delivery(value)
        if isinstance(value, tuple):
            reduced = [self._reduce(each) for each in value]
            return tuple([each for each in reduced if each is not None])
        if not is_dataclass(value) or isinstance(value, type):
            return value
        changed: dict[str, Any] = {}
        for each in fields(value):
            before = getattr(value, each.name)
            after = self._reduce(before)
            if after is None and isinstance(before, ShownCall):
                return None  # of a call that isn't shown, neither its result nor its approval is
            if after is not before:
                changed[each.name] = after
        shown: Any = replace(cast("Any", value), **changed) if changed else value
        if isinstance(shown, ShownResult) and not self._shows_output(shown.call.tool):
            return replace(shown, content=None, cut=False)
        if isinstance(shown, CallPromised) and not self._shows_output(shown.call.tool):
            return replace(shown, note="")  # it is the call's result, as far as there is one
        is_refusal = isinstance(shown, (ShownRejection, CallDecided))
        if is_refusal and not self._shows_output(shown.call.tool):
            return replace(shown, reason="")
        return shown

    def _delivery(self, event: CallDelivered) -> CallDelivered | None:
        if self.hides(event.tool):
            return None
        return event if self._shows_output(event.tool) else replace(event, content=None, cut=False)

    def _call(self, call: ShownCall) -> ShownCall | None:
        if self.hides(call.tool):
            return None
        if self._shows_input(call.tool):
            return call
        return replace(call, arguments="", input=None)

    def _issue(self, issue: ShownIssue) -> ShownIssue | None:
        if self.hides(issue.tool):
            return None
        # What is wrong with an input quotes it, and what is wrong with a name lists the tools.
        detail = "" if self.hides_tools else issue.detail
        if self._shows_input(issue.tool):
            return replace(issue, detail=detail)
        return replace(issue, arguments="", detail="")


class ShownLog:
    """What is shown of one log, event by event: `RunWaits` names calls by their ids alone, so that
    it has to be known which of them aren't shown.

    Args:
        show: What is shown.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self._tools: dict[str, str] = {}  # of the calls that may be waited for, by their ids

    def note(self, event: DurableEvent) -> None:
        """Take notice of an event that isn't to be sent, since it was."""
        if isinstance(event, (CallHeld, CallPromised, CallAsked)) and self._show.hides_tools:
            self._tools[event.call.call_id] = event.call.tool

    def apply(self, event: DurableEvent) -> DurableEvent | None:
        """As `Show.apply`."""
        self.note(event)
        if isinstance(event, RunWaits) and self._show.hides_tools:
            event = self._without_hidden(event)
        return self._show.apply(event)

    def _without_hidden(self, event: RunWaits) -> RunWaits:
        return replace(
            event,
            held=self._shown_of(event.held),
            promised=self._shown_of(event.promised),
            asked=self._shown_of(event.asked),
        )

    def _shown_of(self, call_ids: tuple[str, ...]) -> tuple[str, ...]:
        tools = {call_id: self._tools[call_id] for call_id in call_ids if call_id in self._tools}
        return tuple([call_id for call_id, tool in tools.items() if not self._show.hides(tool)])
