"""What a history of Messages says of tools and effort: `tools`, and the system messages that change
something (rule PB18).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lutumpy.adapters.anthropic.decode import API
from lutumpy.adapters.anthropic.original import as_blocks
from lutumpy.adapters.encoded_settings import EncodedSettings
from lutumpy.adapters.read_settings import ChangeReading, ReadTool, SettingsReader
from lutumpy.core.items import Verbatim
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic.changes import CHANGES, needed_betas
from lutumpy.rules.anthropic.tool_settings import TOOL_SETTINGS

__all__ = ["SETTINGS", "note_headers", "take_read"]

_MARKS = (b'"tool_addition"', b'"tool_removal"', b'"output_config"', b'"clear_at"')

_WRITTEN = frozenset({"type", "name", "description", "input_schema", "strict"})
_OF_REQUESTS = frozenset({"cache_control", "defer_loading"})


def _read_tool(entry: Mapping[str, Any]) -> list[ReadTool]:
    """A tool that a program answers; none for one that the provider runs."""
    name, kind = entry.get("name"), entry.get("type")
    if not isinstance(name, str) or not name:
        return []
    schema, description = entry.get("input_schema"), entry.get("description")
    settings = {k: v for k, v in entry.items() if k not in _WRITTEN and k not in _OF_REQUESTS}
    if kind not in (None, "custom"):
        settings["type"] = kind
    if TOOL_SETTINGS.refusals(name, settings):
        return []
    spec = ToolSpec(
        name,
        description if isinstance(description, str) else "",
        schema if isinstance(schema, dict) else {"type": "object"},
        True if entry.get("strict") is True else None,
        {API: settings} if settings else None,
    )
    return [ReadTool(spec, entry.get("defer_loading") is True)]


def _read_change(message: Mapping[str, Any], found: ChangeReading) -> None:
    if message.get("role") != "system":
        return
    content = message.get("content")
    for block in _changes_in(content):
        tool = block["tool"]
        name, definition = tool.get("name"), tool.get("definition")
        if isinstance(definition, dict):
            for read in _read_tool(definition):
                found.define(read.spec)
        elif not isinstance(name, str):
            continue
        elif block["type"] == "tool_addition":
            found.add(name)
        else:
            found.remove(name)
    config = message.get("output_config")
    effort = config.get("effort") if isinstance(config, dict) else None
    if isinstance(effort, str):
        found.effort = effort
    if message.get("clear_at") == "next_user_message":
        blocks = [content] if isinstance(content, str) else content
        found.reminders = tuple(
            [
                text
                for block in (blocks if isinstance(blocks, list) else [])
                if isinstance(text := block.get("text") if isinstance(block, dict) else block, str)
            ]
        )


def _changes_in(content: Any) -> Iterator[dict[str, Any]]:
    """The blocks that change tools which programs answer."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") in CHANGES:
            tool = block.get("tool")
            if isinstance(tool, dict) and tool.get("type") in ("tool_reference", "tool_definition"):
                yield block


def note_headers(state: EncodedSettings, entries: Iterable[bytes]) -> None:
    """Note the beta names that entries of the system's need."""
    listed = [json_values.decode(entry) for entry in entries]
    state.headers.update(dict.fromkeys(needed_betas(listed)))


def take_read(
    state: EncodedSettings, original: Verbatim, entries: list[bytes], with_blocks: bool
) -> None:
    """Take what entries of a history say of settings; they are encoded next.

    Args:
        state: What is said so far.
        original: The entries.
        entries: What is encoded so far.
        with_blocks: A single text is a block too.
    """

    def remains(entry: bytes) -> bytes | None:
        rest = _remainder(entry)
        return as_blocks(rest) if rest and with_blocks else rest

    state.take_read(original, entries, remains if original.api == API else None)


def _remainder(entry: bytes) -> bytes | None:
    """What is left of a system message without the changes in it: `b""` for nothing; `None` if it
    has none.
    """
    message = json_values.decode(entry)
    content = message.get("content")
    changes = [id(block) for block in _changes_in(content)]
    if not changes and message.get("output_config") is None:
        return None
    kept = {name: value for name, value in message.items() if name != "output_config"}
    if isinstance(content, list):
        kept["content"] = [block for block in content if id(block) not in changes]
    return encode(kept) if kept.get("content") else b""


SETTINGS = SettingsReader(_read_tool, _MARKS, _read_change)
