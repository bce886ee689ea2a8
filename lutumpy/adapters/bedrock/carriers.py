"""How a change between turns is said in the messages of Converse: system messages that withdraw
declared tools and offer them again, by reference (rules PB2, PB4, PB6).

Sources: `toolAddition`, `toolRemoval` and the role `system` in the service model of botocore
1.44.5; a tool is referred to by the name under which `toolConfig` declares it. A new tool has no
words: `toolSpec` knows no deferring.
"""

from __future__ import annotations

from typing import Any

from lutumpy.adapters.bedrock.decode import REASONING
from lutumpy.adapters.encoded_settings import (
    NOTHING_TO_SAY,
    Carried,
    EncodedSettings,
)
from lutumpy.core.turn_settings import SettingsInForce, TurnSettings, new_description
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.bedrock import models as bedrock_models
from lutumpy.rules.claude import version

__all__ = ["ConverseSpelling", "without_reasoning"]

_NOTHING_SAID = "(Nothing was said.)"
"""Stands for an answer that has nothing left to send: two messages of the user can't follow each
other."""


class ConverseSpelling:
    """Converse's words for changes, as one model takes them.

    Args:
        changes: The model takes changes of tools in system messages.

    Attributes:
        says_effort: Never: it is a field of the model's maker, which binds nothing.
        default_effort: None, since no effort is said.
        says_output: Never: the format is a field, too.
        keeps_withdrawn: Whether tools that aren't offered may stay declared.
        defers: Never: the API knows no deferred tools.
        appends_deferred: Never, for the same reason.
        chooses_appended: Never: no message brings a tool.
    """

    __slots__ = (
        "appends_deferred",
        "chooses_appended",
        "default_effort",
        "defers",
        "keeps_withdrawn",
        "says_effort",
        "says_output",
    )

    def __init__(self, changes: bool) -> None:
        self.says_effort: bool = False
        self.default_effort: str | None = None
        self.says_output: bool = False
        self.keeps_withdrawn: bool = changes
        self.appends_deferred: bool = False
        self.defers: bool = False
        self.chooses_appended: bool = False

    def carry(self, settings: TurnSettings, state: EncodedSettings) -> Carried | None:
        """A change as a system message; `None` where there are no words for it."""
        if not settings.changes_tools:
            return NOTHING_TO_SAY
        declared: set[str] = set()
        if state.base is not None:
            declared = {spec.name for spec in state.base.specs}
        if not self.keeps_withdrawn or not declared.issuperset(settings.added):
            return None
        blocks = _tool_blocks(settings, state.in_force)
        return None if blocks is None else Carried(_system_message(blocks))

    def withdraw(self, names: tuple[str, ...]) -> Carried:
        """The message that withdraws tools which are declared only so that the list stays."""
        return Carried(_system_message([_change("toolRemoval", name) for name in names]))

    def bound_form(self, entry: bytes) -> bytes:
        """A message without reasoning and cache points, which no reasoning is bound to."""
        if b'"reasoningContent"' not in entry and b'"cachePoint"' not in entry:
            return entry
        message = json_values.decode(entry)
        content = message.get("content")
        if isinstance(content, list):
            message["content"] = [
                block
                for block in content
                if not (isinstance(block, dict) and (REASONING in block or "cachePoint" in block))
            ]
        return encode(message)

    def needs_record(self, model: str | None) -> bool:
        """Whether this model refuses reasoning of Claudes that bind none."""
        return bedrock_models.needs_record(model)

    def may_read(self, model: str | None) -> bool:
        """Whether reasoning that this model signed may be sent: of Claudes that bind none it is
        refused where a record is required.
        """
        return version(model) is None or bedrock_models.binds_reasoning(model)


def _tool_blocks(settings: TurnSettings, in_force: SettingsInForce) -> list[dict[str, Any]] | None:
    """The blocks of a change of tools: additions in the order of the offer, then removals in that
    of the base; `None` for a tool that is new or has another schema.
    """
    blocks: list[dict[str, Any]] = []
    for spec in settings.defined:
        before = in_force.tools.get(spec.name)
        text = None if before is None else new_description(before, spec)
        if text is None:
            return None
        blocks.append({"text": text})
    additions = [_change("toolAddition", name) for name in settings.added]
    removals = [_change("toolRemoval", name) for name in settings.removed]
    return [*additions, *blocks, *removals]


def _change(kind: str, name: str) -> dict[str, Any]:
    return {kind: {"tool": {"name": name}}}


def _system_message(blocks: list[dict[str, Any]]) -> bytes:
    return encode({"role": "system", "content": blocks})


def without_reasoning(entry: bytes) -> bytes:
    """A message of the assistant's without its reasoning."""
    message = json_values.decode(entry)
    content = message.get("content")
    if not isinstance(content, list):
        return entry
    kept = [block for block in content if not (isinstance(block, dict) and REASONING in block)]
    return encode({**message, "content": kept or [{"text": _NOTHING_SAID}]})
