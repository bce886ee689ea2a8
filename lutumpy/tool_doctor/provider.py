"""Findings about what single APIs are told of a tool by `provider=`."""

from __future__ import annotations

from collections.abc import Iterator

from lutumpy import ToolDef
from lutumpy.apis import Api, api_names
from lutumpy.tool_doctor.report import Finding

__all__ = ["has_own_type", "settings_findings", "unknown_api_findings"]


def has_own_type(definition: ToolDef, api: Api) -> bool:
    """Whether `api` gets a tool of its own type in place of the declaration."""
    return "type" in (definition.options.provider or {}).get(api, {})


def unknown_api_findings(definition: ToolDef) -> Iterator[Finding]:
    """The names in `provider=` that no API has."""
    known = api_names()
    for api in definition.options.provider or {}:
        if api not in known:
            message = f"provider= names {api!r}, which is no API: one of {', '.join(known)}"
            yield Finding("error", "provider.api", message, definition.name)


def settings_findings(definition: ToolDef, api: Api) -> Iterator[Finding]:
    """What `api` is told, and what others are told and it is not."""
    name = definition.name
    provider = definition.options.provider or {}
    own = provider.get(api, {})
    if "type" in own:
        message = (
            f"it is a tool of the type {own['type']!r}: its description and schema are not sent, "
            "and the model's arguments are checked against its input all the same"
        )
        yield Finding("info", "provider.type", message, name)
        if definition.options.strict:
            message = "strict=True is not sent: a tool of the API's own type has no schema"
            yield Finding("warning", "provider.strict", message, name)
    elsewhere = sorted({key for other, keys in provider.items() if other != api for key in keys})
    lost = [key for key in elsewhere if key not in own]
    if lost:
        message = f"what other APIs are told of it is not said here: {', '.join(lost)}"
        yield Finding("info", "provider.elsewhere", message, name)
