"""Calls whose arguments are elements within elements, each behind a mark that no text holds."""

# MiniMax-M3 writes `]<]minimax[>[` before every tag, so nothing in a value has to be escaped, and
# an object or array is written as elements of its own: `<item>` stands for each element of an
# array. What a leaf is, and whether an element holds an object or an array, is read by the tool's
# schema; without one, leaves are texts, and elements that are all called `item` are an array.

from __future__ import annotations

import dataclasses
import re
from dataclasses import field
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools, Schema

__all__ = ["NestedSyntax"]

_ITEM = "item"
_TAG = re.compile(r"\s*<(/?)([^<>]+)>")
_INVOKE = re.compile(r"""invoke\s+name=["']?([\w.:-]+)["']?\s*""")
_MOST_LEVELS = 60  # what is deeper is written again too often


class _Unreadable(Exception):
    """What is wrong with a block, in words for the model.

    Attributes:
        rest: The text of the piece in which it is wrong, behind a complete call.
    """

    def __init__(self, problem: str, *, rest: str = "") -> None:
        super().__init__(problem)
        self.rest: str = rest


@dataclasses.dataclass(slots=True)
class _Element:
    """An element that is open.

    Attributes:
        key: Its name; for a call, the name of the tool.
        path: Where it is, as `repairs` spell places.
        schema: What it may hold.
        text: What is in it outside of other elements.
        members: The JSON texts of the elements in it, with their names.
    """

    key: str
    path: str
    schema: Schema
    text: list[str] = field(default_factory=list)
    members: list[tuple[str, str]] = field(default_factory=list)

    def open_member(self, key: str) -> _Element:
        """An element in it."""
        if key == _ITEM and "array" in self.schema.kinds:
            schema = self.schema.of_items(len(self.members))
        else:
            schema = self.schema.of_property(key)
        place = f"[{len(self.members)}]" if key == _ITEM else f".{key}" if self.path else key
        return _Element(key, f"{self.path}{place}", schema)

    def read_leaf(self) -> str:
        """Its text as a JSON text."""
        text = "".join(self.text)
        kinds = self.schema.kinds
        if not text.strip() and "string" not in kinds:
            # The model's template writes an empty object or array as an empty element.
            empty = {"array": "[]", "object": "{}"}
            return next((empty[kind] for kind in empty if kind in kinds), '""')
        return self.schema.read(text)

    def read_members(self) -> str:
        """The elements in it as a JSON text."""
        keys = [key for key, _ in self.members]
        kinds = self.schema.kinds
        may_be_array = "array" in kinds or "object" not in kinds
        if may_be_array and all(key == _ITEM for key in keys):
            self._check_no_text()
            return f"[{', '.join([value for _, value in self.members])}]"
        return self.read_object()

    def read_object(self) -> str:
        """The elements in it as the members of a JSON object."""
        self._check_no_text()
        keys = [key for key, _ in self.members]
        if len(set(keys)) < len(keys):
            raise _Unreadable(f"{self.key!r} holds one element twice")
        members = [f"{json_values.encode_text(key)}: {value}" for key, value in self.members]
        return "{" + ", ".join(members) + "}"

    def _check_no_text(self) -> None:
        if "".join(self.text).strip():
            raise _Unreadable(f"text stands beside the elements of {self.key!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedSyntax(BodySyntax):
    """One way to write calls as elements within elements.

    Attributes:
        mark: What comes before every tag.
    """

    mark: str

    @property
    def rule(self) -> str:
        """How an instruction says to write the arguments."""
        return (
            "in place of the argument shown one for each argument of the tool, all of which fit "
            "its JSON Schema: texts as they are, each member of an object in an element of its "
            f"name, and each element of an array in one called {_ITEM}"
        )

    # --- writing -----------------------------------------------------------------------------

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        try:
            values = json_values.decode(arguments)
        except (ValueError, RecursionError):
            values = {}
        written = self._spell(values, 0) if isinstance(values, dict) else ""
        start, end = self.tags
        return f'{start}\n{self.mark}<invoke name="{name}">{written}{self.mark}</invoke>\n{end}'

    def _spell(self, value: Any, level: int) -> str:
        members: list[tuple[str, Any]] = []
        if isinstance(value, dict) and level < _MOST_LEVELS:
            members = [(str(key), one) for key, one in value.items()]
        elif isinstance(value, list) and level < _MOST_LEVELS:
            members = [(_ITEM, one) for one in value]
        else:
            return value if isinstance(value, str) else json_values.encode_text(value)
        return "".join(
            [
                f"{self.mark}<{key}>{self._spell(one, level + 1)}{self.mark}</{key}>"
                for key, one in members
            ]
        )

    # --- reading -----------------------------------------------------------------------------

    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The calls in the text of a block; the last may be one that can't be read."""
        reader = _BlockReader(tools)
        before, *pieces = body.split(self.mark)
        index = 0
        try:
            if before.strip():
                raise _Unreadable(f"{before.strip()[:30]!r} is no element")
            for index, piece in enumerate(pieces):
                tag = _TAG.match(piece)
                if tag is None and index + 1 == len(pieces) and not whole:
                    return [*reader.calls, self.cut(reader.name, body.strip())]
                reader.take(tag, piece)
        except _Unreadable as error:
            if reader.calls and not reader.name:
                rest = self.mark.join([error.rest or self.mark, *pieces[index + 1 :]])
                return self.end_with_rest(reader.calls, rest)
            return [*reader.calls, self.unreadable(reader.name, body.strip(), str(error))]
        if reader.name or not (whole or reader.calls):
            end = self.unreadable(reader.name, body.strip(), "its end is missing")
            return [*reader.calls, end if whole else self.cut(reader.name, body.strip())]
        return reader.calls


class _BlockReader:
    """Takes the elements of a block one by one.

    Attributes:
        calls: The calls that are complete.
        name: The tool of the call that is open; empty between calls.
    """

    def __init__(self, tools: KnownTools) -> None:
        self.calls: list[ParsedCall] = []
        self.name: str = ""
        self._tools = tools
        self._stack: list[_Element] = []
        self._by_schema: list[str] = []

    def take(self, tag: re.Match[str] | None, piece: str) -> None:
        """Take a tag and the text behind it.

        Raises:
            _Unreadable: it doesn't belong there.
        """
        if tag is None:
            raise _Unreadable(f"{piece[:30]!r} is no element")
        is_end, name = tag.groups()
        if not is_end:
            self._open(name.strip())
        else:
            self._close(name.strip())
        text = piece[tag.end() :]
        if self._stack:
            self._stack[-1].text.append(text)
        elif text.strip():
            raise _Unreadable(f"{text.strip()[:30]!r} stands between calls", rest=text)

    def _open(self, name: str) -> None:
        if len(self._stack) > _MOST_LEVELS:
            raise _Unreadable("it is nested too deep")
        if self._stack:
            self._stack.append(self._stack[-1].open_member(name))
            return
        found = _INVOKE.fullmatch(name)
        if found is None:
            raise _Unreadable(f"{name[:30]!r} is no call")
        self.name = found.group(1)
        schema = Schema.of_tool(self.name, self._tools)
        self._stack.append(_Element(self.name, "", schema))

    def _close(self, name: str) -> None:
        if not self._stack:
            raise _Unreadable(f"{name[:30]!r} ends nothing")
        element = self._stack.pop()
        if name != (element.key if self._stack else "invoke"):
            raise _Unreadable(f"{element.key[:30]!r} isn't ended before {name[:30]!r}")
        if not self._stack:
            call = ParsedCall(self.name, element.read_object(), by_schema=tuple(self._by_schema))
            self.calls.append(call)
            self._by_schema.clear()
            self.name = ""
            return
        written = element.read_members() if element.members else element.read_leaf()
        if not element.members and written[0] != '"':
            self._by_schema.append(element.path)
        self._stack[-1].members.append((element.key, written))
