"""What a history of Responses says of tools, output format and effort: `tools`, and the items that
bring tools or set something (rule PB18).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.openai.read_tools import read_function, read_text_tool
from lutumpy.adapters.openai.responses.carriers import API
from lutumpy.adapters.read_settings import ChangeReading, ReadTool, SettingsReader
from lutumpy.core.output_spec import OutputSpec
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode

__all__ = ["SETTINGS", "remainder"]

_BRINGS, _SETS = "additional_tools", "configuration_update"
_WRITTEN = frozenset(
    {"type", "name", "description", "parameters", "strict", "async", "defer_loading"}
)


def _read_tool(entry: Mapping[str, Any]) -> list[ReadTool]:
    """A tool that a program answers; none for one that the provider runs."""
    spec = None
    if entry.get("type") == "function":
        spec = read_function(entry, API, _WRITTEN)
    elif entry.get("type") == "custom":
        spec = read_text_tool(entry, entry.get("format"))
    if spec is None:
        return []
    return [ReadTool(spec, entry.get("defer_loading") is True)]


def _read_change(item: Mapping[str, Any], found: ChangeReading) -> None:
    if item.get("type") == _BRINGS:
        listed = item.get("tools")
        for entry in listed if isinstance(listed, list) else ():
            for read in _read_tool(entry) if isinstance(entry, dict) else ():
                found.define(read.spec)
    elif item.get("type") == _SETS:
        reasoning, text = item.get("reasoning"), item.get("text")
        effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
        if isinstance(effort, str):
            found.effort = effort
        wanted = text.get("format") if isinstance(text, dict) else None
        if isinstance(wanted, dict) and wanted.get("type") == "text":
            found.output = None
        elif isinstance(wanted, dict) and isinstance(wanted.get("schema"), dict):
            described, strict = wanted.get("description"), wanted.get("strict")
            found.output = OutputSpec(
                str(wanted.get("name")),
                wanted["schema"],
                described if isinstance(described, str) else "",
                None if strict is True else False,
            )


def remainder(entry: bytes) -> bytes | None:
    """What is left of an item without its changes: `b""` for nothing; `None` if it has none."""
    item = json_values.decode(entry)
    if item.get("type") == _SETS:
        return b""
    if item.get("type") != _BRINGS:
        return None
    listed = item.get("tools")
    kept = [
        tool
        for tool in (listed if isinstance(listed, list) else [])
        if isinstance(tool, dict) and not _read_tool(tool)
    ]
    return encode({**item, "tools": kept}) if kept else b""


SETTINGS = SettingsReader(
    _read_tool, tuple([b'"%b"' % kind.encode() for kind in (_BRINGS, _SETS)]), _read_change
)
