"""What a history of Converse says of tools: those of `toolConfig`, and the system messages that
withdraw some and offer them again (rule PB18).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.adapters.bedrock.decode import API
from lutumpy.adapters.read_settings import ChangeReading, ReadTool, SettingsReader
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.bedrock.limits import CHANGES

__all__ = ["SETTINGS", "remainder"]

_WRITTEN = frozenset({"name", "description", "inputSchema", "strict"})


def _read_tool(entry: Mapping[str, Any]) -> list[ReadTool]:
    """A tool; none for a cache point, or a tool that the provider runs."""
    fields = entry.get("toolSpec")
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        return []
    described, holder = fields.get("description"), fields.get("inputSchema")
    schema = holder.get("json") if isinstance(holder, dict) else None
    settings = {key: value for key, value in fields.items() if key not in _WRITTEN}
    spec = ToolSpec(
        fields["name"],
        described if isinstance(described, str) else "",
        schema if isinstance(schema, dict) else {"type": "object"},
        True if fields.get("strict") is True else None,
        {API: settings} if settings else None,
    )
    return [ReadTool(spec)]


def _read_change(message: Mapping[str, Any], found: ChangeReading) -> None:
    for kind, name in _changes_in(message):
        if kind == "toolAddition":
            found.add(name)
        else:
            found.remove(name)


def _changes_in(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = message.get("content")
    if message.get("role") != "system" or not isinstance(content, list):
        return
    for block in content:
        for kind in CHANGES:
            change = block.get(kind) if isinstance(block, dict) else None
            tool = change.get("tool") if isinstance(change, dict) else None
            name = tool.get("name") if isinstance(tool, dict) else None
            if isinstance(name, str):
                yield kind, name


def remainder(entry: bytes) -> bytes | None:
    """What is left of a system message without the changes in it: `b""` for nothing; `None` if it
    has none.
    """
    message = json_values.decode(entry)
    if not any(True for _ in _changes_in(message)):
        return None
    kept = [block for block in message["content"] if not any(kind in block for kind in CHANGES)]
    return encode({**message, "content": kept}) if kept else b""


SETTINGS = SettingsReader(
    _read_tool, tuple([b'"%b"' % kind.encode() for kind in CHANGES]), _read_change
)
