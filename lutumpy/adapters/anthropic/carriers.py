"""How a change between turns is said behind the conversation: system messages of Messages that
change tools, set the effort, or hold for one turn (rules PB2, PB4, PB6, PB14).

Sources: the vendor's pages "Change tools or instructions" and "Mid-conversation system messages",
and the types of its SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lutumpy.core.tool_specs import ToolSpec
from lutumpy.core.turn_settings import KEPT, SettingsInForce, TurnSettings
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic import models as anthropic_models

__all__ = [
    "Carried",
    "Carriers",
    "carriers_of",
    "carry_change",
    "carry_reminder",
    "carry_removals",
    "words_of",
]


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


class Carried(NamedTuple):
    """A change as a message.

    Attributes:
        message: The message, as JSON bytes; empty where nothing has to be said.
        declared: Tools that have to be declared behind the others, deferred, since a message can
            only refer to them.
        headers: The beta names that it needs.
    """

    message: bytes
    declared: tuple[ToolSpec, ...] = ()
    headers: tuple[str, ...] = ()


NOTHING_TO_SAY = Carried(b"")


def carriers_of(model: str | None, host: str | None) -> Carriers:
    """What this model is known to take at this host; for unknown ones nothing."""
    return Carriers(
        anthropic_models.takes_system_messages(model),
        anthropic_models.takes_tool_changes(model, host),
        anthropic_models.takes_inline_tools(model, host),
        anthropic_models.takes_turn_scoped_system(model, host),
        anthropic_models.takes_effort_updates(model, host),
    )


def carry_change(
    settings: TurnSettings,
    in_force: SettingsInForce,
    carriers: Carriers,
    render: Callable[[ToolSpec], Any],
) -> Carried | None:
    """A change of settings as a message; `None` if this host and model have no words for it.

    Args:
        settings: The change.
        in_force: What was in force before it.
        carriers: What may be said.
        render: Spells a tool as an entry of `tools`.
    """
    blocks: list[dict[str, Any]] = []
    declared: list[ToolSpec] = []
    headers: list[str] = []
    if settings.changes_tools:
        if not carriers.tools or settings.deferred:
            return None
        found = _tool_blocks(settings, in_force, carriers, render)
        if found is None:
            return None
        blocks, declared = found
        is_by_value = carriers.definitions and bool(settings.defined)
        headers.append(
            anthropic_models.INLINE_TOOLS if is_by_value else anthropic_models.TOOL_CHANGES
        )
    message: dict[str, Any] = {"role": "system", "content": blocks}
    if settings.effort is not KEPT:
        if settings.effort is None or not carriers.effort:
            return None
        message["output_config"] = {"effort": settings.effort}
        headers.append(anthropic_models.EFFORT_UPDATES)
    if not headers:
        return NOTHING_TO_SAY
    return Carried(encode(message), tuple(declared), tuple(headers))


def _tool_blocks(
    settings: TurnSettings,
    in_force: SettingsInForce,
    carriers: Carriers,
    render: Callable[[ToolSpec], Any],
) -> tuple[list[dict[str, Any]], list[ToolSpec]] | None:
    """The blocks of a change of tools, and the tools that have to be declared for them: additions
    in the order of the offer, then removals in that of the base.
    """
    blocks: list[dict[str, Any]] = []
    declared: list[ToolSpec] = []
    defined = {spec.name: spec for spec in settings.defined}
    # A tool that is only defined anew is offered already, so it isn't among the added ones.
    for name in [*[n for n in defined if n not in settings.added], *settings.added]:
        spec = defined.get(name)
        if spec is None:
            blocks.append(_addition(_reference(name)))
        elif carriers.definitions:
            blocks.append(_addition({"type": "tool_definition", "definition": render(spec)}))
        elif name not in in_force.tools:
            declared.append(spec)
            blocks.append(_addition(_reference(name)))
        else:
            text = _new_description(in_force.tools[name], spec)
            if text is None:
                return None
            if name in settings.added:
                blocks.append(_addition(_reference(name)))
            blocks.append({"type": "text", "text": text})
    blocks += [{"type": "tool_removal", "tool": _reference(name)} for name in settings.removed]
    return blocks, declared


def carry_removals(names: tuple[str, ...]) -> Carried:
    """The message that withdraws tools which are declared only so that the list stays the same."""
    blocks = [{"type": "tool_removal", "tool": _reference(name)} for name in names]
    message = encode({"role": "system", "content": blocks})
    return Carried(message, (), (anthropic_models.TOOL_CHANGES,))


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


def _new_description(before: ToolSpec, after: ToolSpec) -> str | None:
    """A text for a tool of which only the description is another one; `None` for other changes."""
    same = ToolSpec(
        after.name, before.description, after.schema, after.strict, after.provider, after.text
    )
    if not same.equals(before):
        return None
    return f"The tool `{after.name}` from here on: {after.description}"


def words_of(settings: TurnSettings) -> list[str]:
    """A change in words for a report, as `tool_removal send`."""
    words = [f"tool_addition {spec.name}" for spec in settings.defined]
    defined = {spec.name for spec in settings.defined}
    words += [f"tool_addition {name}" for name in settings.added if name not in defined]
    words += [f"tool_removal {name}" for name in settings.removed]
    if settings.effort is not KEPT:
        words.append(f"effort {settings.effort or 'default'}")
    return words
