"""How a change between turns is said in the input of Responses: items that bring tools, and set the
effort and the output format; withdrawing and offering is the choice of the request (rule PB7).

Sources: the vendor's pages "Keep the prefix unchanged" and "Using GPT-6.2", and the types of its
SDK.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from lutumpy.adapters.encoded_settings import (
    NOTHING_TO_SAY,
    Carried,
    EncodedSettings,
)
from lutumpy.adapters.openai.model import output_format
from lutumpy.adapters.tool_lists import are_refused
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.core.turn_settings import KEPT, TurnSettings, new_description
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.openai import models as openai_models
from lutumpy.rules.openai.responses.tools import check_tools

__all__ = ["API", "Carriers", "ResponsesSpelling", "carriers_of", "format_of", "without_reasoning"]

API = "openai_responses"
_UNBOUND = ("id", "status")  # what the API puts on items


class Carriers(NamedTuple):
    """What a model takes at a host in the middle of a conversation.

    Attributes:
        tools: Items that bring tools; and the choice of a request may name some of its tools.
        names_brought: That choice may name brought tools, too.
        updates: Items that set the effort and the output format.
        instructions: `instructions` come after the input, for one turn.
        binds: Its reasoning is bound to what was sent before.
        open_calls: Calls of tools that say `async` may stay open.
    """

    tools: bool = False
    names_brought: bool = False
    updates: bool = False
    instructions: bool = False
    binds: bool = False
    open_calls: bool = False


@lru_cache(maxsize=256)
def carriers_of(model: str | None, host: str | None) -> Carriers:
    """What this model is known to take at this host; for unknown ones nothing."""
    return Carriers(
        openai_models.takes_additional_tools(model, host),
        openai_models.allowed_tools_may_name_appended(model, host),
        openai_models.takes_configuration_update(model, host),
        openai_models.takes_instructions_per_turn(model, host),
        openai_models.binds_reasoning(model),
        openai_models.takes_async_tools(model, host),
    )


class ResponsesSpelling:
    """The words of Responses for changes, as one model takes them at one host.

    Args:
        carriers: What may be said in the middle of a conversation.
        render: Spells a tool as an entry of `tools`, as JSON bytes; `None` where no item
            brings any.

    Attributes:
        says_effort: Whether an item sets the effort.
        default_effort: Nobody says what a request without any has.
        says_output: Whether an item sets the output format.
        keeps_withdrawn: Tools that aren't offered stay declared: the choice leaves them out.
        defers: Tools may be kept out of the prompt until a search has found them.
        appends_deferred: Never: items bring what is new.
        chooses_appended: A choice may name a tool that an item brings.
    """

    __slots__ = (
        "_carriers",
        "_render",
        "appends_deferred",
        "chooses_appended",
        "default_effort",
        "defers",
        "keeps_withdrawn",
        "says_effort",
        "says_output",
    )

    def __init__(
        self, carriers: Carriers, render: Callable[[ToolSpec], bytes] | None = None
    ) -> None:
        self._carriers = carriers
        self._render = render
        self.says_effort: bool = carriers.updates
        self.default_effort: str | None = None
        self.says_output: bool = carriers.updates
        self.keeps_withdrawn: bool = carriers.tools
        self.appends_deferred: bool = False
        self.defers: bool = True
        self.chooses_appended: bool = True

    def carry(self, settings: TurnSettings, state: EncodedSettings) -> Carried | None:
        """A change as items; `None` where this model has no words for it at its host."""
        items: list[bytes] = []
        if settings.changes_tools:
            found = self._carry_tools(settings, state)
            if found is None:
                return None
            items += found
        update: dict[str, Any] = {"type": "configuration_update"}
        if settings.effort is not KEPT:
            update["reasoning"] = {"effort": settings.effort}
        if settings.output is not KEPT:
            update["text"] = {"format": format_of(settings.output)}
        if len(update) > 1:
            items.append(encode(update))
        return Carried(b",".join(items)) if items else NOTHING_TO_SAY

    def _carry_tools(self, settings: TurnSettings, state: EncodedSettings) -> list[bytes] | None:
        """The items of a change of tools; none where the choice of the request says it."""
        render = self._render
        if render is None or not self._carriers.tools or settings.deferred:
            return None
        known = state.in_force.tools
        items: list[bytes] = []
        new = state.undeclared(settings)
        brought = {spec.name for spec in new}
        if new:
            listed = b",".join([render(spec) for spec in new])
            if are_refused(check_tools({"tools": json_values.decode(b"[%b]" % listed)})):
                return None  # the tools of a request begin anew, and an error says what is wrong
            items.append(
                b'{"type":"additional_tools","role":"developer","tools":[%b]}' % listed,
            )
        for spec in settings.defined:
            if spec.name in brought:
                continue
            text = new_description(known[spec.name], spec)
            if text is None:
                return None
            items.append(encode({"role": "developer", "content": text}))
        if not self._carriers.names_brought and (new or state.appended):
            offered = {*state.in_force.offered, *settings.added} - {*settings.removed}
            declared = {*state.appended, *[spec.name for spec in new]}
            if state.base is not None:
                declared |= {spec.name for spec in state.base.specs}
            if declared - offered:
                return None  # the choice would have to name a tool that an item has brought
        return items

    def withdraw(self, names: tuple[str, ...]) -> Carried:
        """Nothing has to be said: the choice of the request leaves them out."""
        return NOTHING_TO_SAY

    def bound_form(self, entry: bytes) -> bytes:
        """Items without reasoning, and without what the API has put on them."""
        if b'"reasoning"' not in entry and b'"id":' not in entry and b'"status":' not in entry:
            return entry
        items: list[dict[str, Any]] = json_values.decode(b"[%b]" % entry)
        kept = [
            {name: value for name, value in item.items() if name not in _UNBOUND}
            for item in items
            if item.get("type") != "reasoning"
        ]
        return encode(kept)[1:-1]

    def needs_record(self, model: str | None) -> bool:
        """None is known to."""
        return False

    def may_read(self, model: str | None) -> bool:
        """Nothing is known to be refused: what a model can't read, the API takes away."""
        return True


def format_of(output: OutputSpec | None) -> dict[str, Any]:
    """An output format as the API spells it."""
    return {"type": "text"} if output is None else {"type": "json_schema", **output_format(output)}


def without_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items without reasoning; those after it lose their ids, which would ask for it."""
    kept: list[dict[str, Any]] = []
    has_left_out = False
    for item in items:
        if item.get("type") == "reasoning":
            has_left_out = True
        elif has_left_out and item.get("type") != "mcp_approval_request":
            kept.append({name: value for name, value in item.items() if name != "id"})
        else:
            kept.append(item)
    return kept
