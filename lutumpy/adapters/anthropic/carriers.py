"""How a change between turns is said behind the conversation: system messages of Messages that
change tools, set the effort, or hold for one turn (rules PB2, PB4, PB6, PB14).

Sources: the vendor's pages "Change tools or instructions" and "Mid-conversation system messages",
and the types of its SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lutumpy.adapters.anthropic.bound_form import bound_form
from lutumpy.adapters.anthropic.offer import can_be_brought, spell_tool
from lutumpy.adapters.encoded_settings import (
    NOTHING_TO_SAY,
    Carried,
    EncodedSettings,
)
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.core.turn_settings import KEPT, TurnSettings, new_description
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic import models as anthropic_models

__all__ = ["Carriers", "MessagesSpelling", "carriers_of", "carry_reminder"]


class Carriers(NamedTuple):
    """What a model takes at a host in the middle of a conversation.

    Attributes:
        system: Instructions, as messages of the role `system`.
        tools: Tools that are declared are withdrawn and offered again, by reference.
        definitions: A message defines tools, also in place of others.
        reminders: System texts for one turn, which stay where they are.
        effort: An effort, from there on.
    """

    system: bool = False
    tools: bool = False
    definitions: bool = False
    reminders: bool = False
    effort: bool = False


def carriers_of(model: str | None, host: str | None) -> Carriers:
    """What this model is known to take at this host; for unknown ones nothing."""
    return Carriers(
        anthropic_models.takes_system_messages(model),
        anthropic_models.takes_tool_changes(model, host),
        anthropic_models.takes_inline_tools(model, host),
        anthropic_models.takes_turn_scoped_system(model, host),
        anthropic_models.takes_effort_updates(model, host),
    )


class MessagesSpelling:
    """Messages' words for changes, as one model takes them at one host.

    Args:
        carriers: What may be said in the middle of a conversation.

    Attributes:
        says_effort: Whether an effort may be said there.
        default_effort: `high` is what a request without any has [documentation: "Effort"].
        says_output: Never: the format is a field, which binds nothing.
        keeps_withdrawn: Whether tools that aren't offered may stay declared.
        defers: Tools may be kept out of the prompt until a search has found them.
        appends_deferred: Deferred tools may be declared behind the others, for references.
        chooses_appended: Never: a choice of a tool that isn't in `tools` is refused, and nobody
            says that it may be one that is deferred there.
    """

    __slots__ = (
        "_carriers",
        "appends_deferred",
        "chooses_appended",
        "default_effort",
        "defers",
        "keeps_withdrawn",
        "says_effort",
        "says_output",
    )

    def __init__(self, carriers: Carriers) -> None:
        self._carriers = carriers
        self.says_effort: bool = carriers.effort
        self.default_effort: str | None = "high"
        self.says_output: bool = False
        self.keeps_withdrawn: bool = carriers.tools
        self.appends_deferred: bool = True
        self.defers: bool = True
        self.chooses_appended: bool = False

    def carry(self, settings: TurnSettings, state: EncodedSettings) -> Carried | None:
        """A change as a message; `None` where this model has no words for it at its host."""
        blocks: list[dict[str, Any]] = []
        declared: list[ToolSpec] = []
        headers: list[str] = []
        if settings.changes_tools:
            if not self._carriers.tools or settings.deferred:
                return None
            found = _tool_blocks(settings, state, self._carriers)
            if found is None:
                return None
            blocks, declared = found
            is_by_value = any(b.get("tool", {}).get("type") == "tool_definition" for b in blocks)
            headers.append(
                anthropic_models.INLINE_TOOLS if is_by_value else anthropic_models.TOOL_CHANGES
            )
        message: dict[str, Any] = {"role": "system", "content": blocks}
        if settings.effort is not KEPT:
            message["output_config"] = {"effort": settings.effort}
            headers.append(anthropic_models.EFFORT_UPDATES)
        if not headers:
            return NOTHING_TO_SAY
        return Carried(encode(message), tuple(declared), tuple(headers))

    def withdraw(self, names: tuple[str, ...]) -> Carried:
        """The message that withdraws tools which are declared only so that the list stays."""
        blocks = [{"type": "tool_removal", "tool": _reference(name)} for name in names]
        message = encode({"role": "system", "content": blocks})
        return Carried(message, (), (anthropic_models.TOOL_CHANGES,))

    def bound_form(self, entry: bytes) -> bytes:
        """A message without what no reasoning is bound to."""
        return bound_form(entry)

    def needs_record(self, model: str | None) -> bool:
        """Whether this model refuses reasoning of models that bind none."""
        return anthropic_models.needs_record(model)

    def may_read(self, model: str | None) -> bool:
        """Whether reasoning that this model signed may be sent: of models that bind none it is
        refused where a record is required.
        """
        return anthropic_models.version(model) is None or anthropic_models.binds_reasoning(model)


def _tool_blocks(
    settings: TurnSettings, state: EncodedSettings, carriers: Carriers
) -> tuple[list[dict[str, Any]], list[ToolSpec]] | None:
    """The blocks of a change of tools, and the tools that have to be declared for them: additions
    in the order of the offer, then removals in that of the base.
    """
    blocks: list[dict[str, Any]] = []
    declared: list[ToolSpec] = []
    known = state.in_force.tools
    new = {spec.name: spec for spec in state.undeclared(settings)}
    defined = {spec.name: spec for spec in settings.defined} | new
    # A tool that is only defined anew is offered already, so it isn't among the added ones.
    for name in [*[n for n in defined if n not in settings.added], *settings.added]:
        spec = defined.get(name)
        if spec is None:
            blocks.append(_addition(_reference(name)))
        elif carriers.definitions:
            if not can_be_brought(spec, deferred=False):
                return None
            blocks.append(_addition({"type": "tool_definition", "definition": spell_tool(spec)}))
        elif name in new:
            # A call of before would be a reference, so what was bound then would be something else;
            # and one tool of a request stays undeferred.
            if name in state.called or state.base is None or not state.base.specs:
                return None
            if not can_be_brought(spec, deferred=True):
                return None
            declared.append(spec)
            blocks.append(_addition(_reference(name)))
        else:
            text = new_description(known[name], spec)
            if text is None:
                return None
            if name in settings.added:
                blocks.append(_addition(_reference(name)))
            blocks.append({"type": "text", "text": text})
    blocks += [{"type": "tool_removal", "tool": _reference(name)} for name in settings.removed]
    return blocks, declared


def carry_reminder(text: str) -> bytes:
    """A system text for one turn: it stays in the request, and the model sees it until the user
    speaks again.
    """
    return encode(
        {
            "role": "system",
            "content": [{"type": "text", "text": text}],
            "clear_at": "next_user_message",
        }
    )


def _addition(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": tool}


def _reference(name: str) -> dict[str, str]:
    return {"type": "tool_reference", "name": name}
