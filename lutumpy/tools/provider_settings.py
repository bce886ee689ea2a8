"""What one API alone is told about a tool: `provider=` of declarations, of members and of turns."""

# Settings come from three places, the later ones winning key by key:
#
#   | where                       | for           | checked when made, raises |
#   |-----------------------------|---------------|---------------------------|
#   | `tool_fn`, `tool_input`     | every toolset | `DeclarationError`        |
#   | `tool(X, provider=)`        | this member   | `DeclarationError`        |
#   | `text_turn(provider=)` etc. | this turn     | `InvalidToolConstraints`  |
#
# Three things are looked at: the form (names of APIs, keys, JSON), what the rules of each API say
# of the settings alone (`ToolSettingRules`), and whether examples fit the tool's input. What an API
# says of the whole list of tools, its adapter asks when it renders the offer.
#
# A name that the table of APIs lacks is not refused before the tool is offered: a program may add
# its API after the declaration was imported. An offer with such a name is refused. In that moment
# nothing could use the settings, so they are a slip of the pen, and nobody would notice otherwise.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lutumpy.apis import api_row, serving
from lutumpy.errors import (
    DeclarationError,
    InvalidToolConstraints,
    LutumpyError,
    UnknownApiError,
)
from lutumpy.plain import json_values
from lutumpy.tools.arguments import Refused, repair_or_explain
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef, copy_settings
from lutumpy.tools.failures import field_messages

if TYPE_CHECKING:
    from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = [
    "check_declared",
    "copy_turn_settings",
    "offered_settings",
    "with_settings",
]

Settings = dict[str, dict[str, Any]]


def check_declared(tool: CompiledTool, definition: ToolDef) -> None:
    """Refuse settings that no request could carry.

    Args:
        tool: Reads the examples.
        definition: The definition with the settings: the tool's own, or a member's.

    Raises:
        DeclarationError: An API that is known refuses them.
    """
    for api, settings in (definition.options.provider or {}).items():
        rules = _find_rules(api)
        if rules is not None:
            _refuse(api, rules, tool, settings, DeclarationError)


def with_settings(tool: CompiledTool, value: Any, late: bool | None = None) -> ToolDef:
    """The definition of a tool with further settings, checked.

    Raises:
        DeclarationError: They have another form, or an API that is known refuses them.
    """
    definition = tool.definition
    options = definition.options
    try:
        copied = copy_settings(value)
    except ValueError as error:
        raise DeclarationError(f"the tool {definition.name!r}: {error}") from error
    if late is not None and late != options.late:
        options = replace(options, late=late)
        definition = replace(definition, options=options)
    if copied is None:
        return definition
    merged = _merge(options.provider, copied)
    changed = replace(definition, options=replace(options, provider=merged))
    check_declared(tool, changed)
    return changed


def copy_turn_settings(name: str, value: Any) -> Settings | None:
    """The settings of a turn for the tool `name`, copied.

    Raises:
        InvalidToolConstraints: They have another form.
    """
    try:
        return copy_settings(value)
    except ValueError as error:
        raise InvalidToolConstraints(f"the tool {name!r}: {error}") from error


def offered_settings(
    tool: CompiledTool, definition: ToolDef, turn: Settings | None
) -> Mapping[str, Mapping[str, Any]] | None:
    """The settings that a tool is offered with, those of the turn over its own.

    Raises:
        InvalidToolConstraints: A name is not the name of an API, or an API refuses its settings.
    """
    declared = definition.options.provider
    merged = declared if turn is None else _merge(declared, turn)
    for api, settings in (merged or {}).items():
        try:
            api_row(api)
        except UnknownApiError as error:
            raise InvalidToolConstraints(
                f"provider= of the tool {definition.name!r}: {error}; nothing was sent"
            ) from error
        rules = _find_rules(api)
        if rules is not None:
            _refuse(api, rules, tool, settings, InvalidToolConstraints)
    return merged


def _merge(
    first: Mapping[str, Mapping[str, Any]] | None, second: Mapping[str, Mapping[str, Any]]
) -> Settings:
    """Both, `second` winning key by key within each API."""
    merged = {api: dict(settings) for api, settings in (first or {}).items()}
    for api, settings in second.items():
        merged[api] = {**merged.get(api, {}), **settings}
    return merged


def _find_rules(api: str) -> ToolSettingRules | None:
    """The rules of an API; `None` where it isn't known, or says nothing of settings."""
    try:
        rules: ToolSettingRules | None = getattr(serving(api, "rules"), "TOOL_SETTINGS", None)
    except UnknownApiError:
        return None
    return rules


def _refuse(
    api: str,
    rules: ToolSettingRules,
    tool: CompiledTool,
    settings: Mapping[str, Any],
    error: type[LutumpyError],
) -> None:
    name = tool.definition.name
    reasons = rules.refusals(name, settings)
    if not reasons and rules.examples is not None and "type" not in settings:
        examples = settings.get(rules.examples) or []
        for index, example in enumerate(examples):
            misfit = _find_misfit(tool, example)
            if misfit is not None:
                reasons.append(f"{rules.examples}[{index}] is not an input of it: {misfit}")
    if reasons:
        raise error(f"provider= of the tool {name!r}, {api}: {'; '.join(reasons)}")


def _find_misfit(tool: CompiledTool, example: Any) -> str | None:
    """Why an example is not an input of the tool, as the schema has it; `None` if it is one."""
    if not isinstance(example, Mapping):
        return "it is not an object"
    text = json_values.encode_text(example)
    try:
        tool.decode(text)
        # Calls are read more leniently than a schema is: "3" is taken for a whole number. What a
        # wrapped input holds was looked at by its own validator.
        if not tool.wrapped:
            tool.input_type.__pydantic_validator__.validate_json(text, strict=True)
    except ValidationError as error:
        return "; ".join(field_messages(error))
    except Exception as error:  # not pydantic's: what the model would be told
        reread = repair_or_explain(tool, text, error)
        return reread.detail if isinstance(reread, Refused) else "it is read only with a repair"
    return None
