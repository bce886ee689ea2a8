"""What a history that was read says of tools, output format and effort (rule PB18)."""

# The request's `tools` are the base, and each entry of the history that changes something is a
# record. Both are kept with the original entries (`Verbatim.settings`): the API of the history gets
# its entries back, so nothing has to be said there; to any other API it is said in its own words.
# Either way the next request is held against what is in force, and says only what is different.
#
# A change may name a tool that nothing defines, since `tools` was left out. Then nobody knows what
# is in force, nothing is recorded, and the next request is the base.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lutumpy.adapters.reading import decoded
from lutumpy.core.items import Item, Message, Verbatim
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.core.turn_settings import KEPT, MaybeOutput, MaybeText, SettingsInForce, TurnSettings
from lutumpy.errors import DeclarationError, TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.schema_walk import with_items
from lutumpy.rules.strict import DIALECTS, strict_schema

__all__ = [
    "ChangeReading",
    "ReadTool",
    "SettingsReader",
    "is_spelt_alike",
    "no_changes",
    "read_settings",
]


class ReadTool(NamedTuple):
    """A tool of a request.

    Attributes:
        spec: The tool.
        is_deferred: It is kept out of the prompt until it is found, or referred to.
    """

    spec: ToolSpec
    is_deferred: bool = False


class SettingsReader(NamedTuple):
    """How histories of one API say settings.

    Attributes:
        read_tool: Reads one entry of `tools`; nothing for one that no program answers.
        marks: Which bytes an entry has that may change something; empty where none does.
        read_change: Reads such an entry.
    """

    read_tool: Callable[[Mapping[str, Any]], Sequence[ReadTool]]
    marks: tuple[bytes, ...]
    read_change: Callable[[Mapping[str, Any], ChangeReading], None]


class ChangeReading:
    """One entry of a history while its changes are being read.

    Args:
        known: What is in force before it.

    Attributes:
        output: The output format that it sets.
        effort: The effort that it sets.
        reminders: Its texts for one turn.
        is_known: Whether every tool that it names is defined.
    """

    __slots__ = (
        "_added",
        "_defined",
        "_known",
        "_removed",
        "effort",
        "is_known",
        "output",
        "reminders",
    )

    def __init__(self, known: SettingsInForce) -> None:
        self._known = known
        self._defined: dict[str, ToolSpec] = {}
        self._added: dict[str, None] = {}
        self._removed: dict[str, None] = {}
        self.output: MaybeOutput = KEPT
        self.effort: MaybeText = KEPT
        self.reminders: tuple[str, ...] = ()
        self.is_known: bool = True

    def define(self, spec: ToolSpec) -> None:
        """Note a tool that is defined, and offered from here on."""
        self._defined[spec.name] = spec
        self._offer(spec.name)

    def add(self, name: str) -> None:
        """Note a tool that is offered from here on, by its name alone."""
        spec = self._defined.get(name, self._known.tools.get(name))
        if spec is None:
            self.is_known = False
            return
        if name in self._known.deferred:
            self._defined[name] = spec  # no API without deferred tools has heard of it
        self._offer(name)

    def remove(self, name: str) -> None:
        """Note a tool that is withdrawn."""
        if name not in self._defined and name not in self._known.tools:
            self.is_known = False
            return
        self._defined.pop(name, None)
        self._added.pop(name, None)
        if name in self._known.offered:
            self._removed[name] = None

    def _offer(self, name: str) -> None:
        self._removed.pop(name, None)
        if name not in self._known.offered or name in self._known.deferred:
            self._added[name] = None

    def settings(self) -> TurnSettings | None:
        """What the entry changes; `None` for nothing."""
        settings = TurnSettings(
            defined=tuple(self._defined.values()),
            added=tuple(self._added),
            removed=tuple(self._removed),
            output=self.output,
            effort=self.effort,
            reminders=self.reminders,
        )
        return None if settings == TurnSettings() else settings


def no_changes(entry: Mapping[str, Any], found: ChangeReading) -> None:
    """Reads the entries of an API in which none changes anything."""


def read_settings(transcript: Transcript, tools: Any, reader: SettingsReader) -> Transcript:
    """Note what a history says of settings on the transcript that was just read from it.

    Args:
        transcript: The transcript, which nobody else has seen yet.
        tools: The request's `tools`, as JSON values; `None` where they aren't known.
        reader: How the API says settings.

    Returns:
        The same transcript.

    Raises:
        TranscriptError: `tools` isn't a list of objects.
    """
    items = list(transcript)
    base = _read_base(tools, reader)
    in_force = SettingsInForce()
    in_force.apply(base)
    read: list[tuple[Verbatim, int, TurnSettings]] = []
    for item, verbatim in _originals(items):
        if not reader.marks or verbatim.system:
            continue
        for place, entry in enumerate(verbatim.entries):
            if not any(mark in entry for mark in reader.marks):
                continue
            found = ChangeReading(in_force)
            reader.read_change(json_values.decode(entry), found)
            if not found.is_known:
                return transcript
            settings = found.settings()
            if settings is not None:
                in_force.apply(settings)
                read.append((verbatim, place, settings))
                if settings.reminders and _was_answered(items, item):
                    object.__setattr__(item, "parts", ())  # other APIs needn't know it any more
    if tools is None and not read:
        return transcript
    first = next((verbatim for _, verbatim in _originals(items)), None)
    if first is None:
        return transcript
    # Nobody else has seen these objects yet.
    object.__setattr__(first, "settings", ((-1, base),))
    for verbatim, place, settings in read:
        object.__setattr__(verbatim, "settings", (*verbatim.settings, (place, settings)))
    return transcript


def is_spelt_alike(offered: ToolSpec, read: ToolSpec) -> bool:
    """Whether an API was sent the same for a tool that was read as for one that is offered."""
    if offered.equals(read):
        return True
    schemas: list[Mapping[str, Any]] = [with_items(offered.schema)]
    if offered.strict:
        for dialect in DIALECTS:
            try:
                schemas.append(strict_schema(offered.schema, dialect))
            except DeclarationError:
                continue
    found = encode(read.schema)
    if not any(encode(schema) == found for schema in schemas):
        return False
    twin = ToolSpec(
        offered.name,
        offered.description,
        read.schema,
        offered.strict,
        offered.provider,
        offered.text,
        offered.late,
    )
    return twin.equals(read)


def _originals(items: Iterable[Item]) -> Iterable[tuple[Item, Verbatim]]:
    for item in items:
        if item.verbatim is not None:
            yield item, item.verbatim


def _was_answered(items: Sequence[Item], reminder: Item) -> bool:
    """Whether the user has spoken again after a text for one turn."""
    place = next(index for index, item in enumerate(items) if item is reminder)
    return any(isinstance(item, Message) and item.role == "user" for item in items[place + 1 :])


def _read_base(tools: Any, reader: SettingsReader) -> TurnSettings:
    if tools is None:
        tools = []
    if not isinstance(tools, (list, tuple)):
        raise TranscriptError(f"tools is {type(tools).__name__}, not a list; nothing was read")
    found: dict[str, ReadTool] = {}
    for index, value in enumerate(tools):
        _, entry = decoded(value, f"tools[{index}]")
        if not isinstance(entry, dict):
            raise TranscriptError(f"tools[{index}] is no object; nothing was read")
        for tool in reader.read_tool(entry):
            found[tool.spec.name] = tool
    late = tuple([name for name, tool in found.items() if tool.is_deferred])
    return TurnSettings(
        is_base=True,
        defined=tuple([tool.spec for tool in found.values()]),
        deferred=late,
        added=tuple(found),
        output=None,
        effort=None,
    )
