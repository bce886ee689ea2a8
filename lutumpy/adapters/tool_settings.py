"""What a tool's settings for one API do to the tool as its adapter spells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core.tool_specs import ToolSpec
from lutumpy.errors import InvalidToolConstraints
from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = ["add_settings", "settings_of"]


def settings_of(spec: ToolSpec, api: str, rules: ToolSettingRules) -> Mapping[str, Any]:
    """The settings of a tool for `api`; empty where it has none.

    Raises:
        InvalidToolConstraints: They hold what the adapter writes, or a `type` that no tool can
            have. Declarations and turns are checked before; a spec made by hand is not.
    """
    settings = spec.provider.get(api)
    if not settings:
        return {}
    reasons = rules.refusals(spec.name, settings)
    if reasons:
        raise InvalidToolConstraints(
            f"provider= of the tool {spec.name!r}, {api}: {'; '.join(reasons)}"
        )
    return settings


def add_settings(
    tool: dict[str, Any], spec: ToolSpec, settings: Mapping[str, Any], *, nameless: bool = False
) -> dict[str, Any]:
    """The tool with its settings. A `type` among them takes the place of all but the name, and of
    that as well where the API knows such tools by their type alone.
    """
    if not settings:
        return tool
    if "type" in settings:
        if nameless:
            return dict(settings)
        return {"type": settings["type"], "name": spec.name, **settings}
    return {**tool, **settings}
