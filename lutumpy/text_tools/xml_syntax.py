"""Calls whose arguments are elements: `<parameter=city>Oslo</parameter>`, and their kin."""

# One value says how a family spells the elements. Two things are hard:
#
# - Nothing in a value is escaped, so it may hold its own end tag. An end tag ends a value only
#   where the next element follows it, or the end of the call; other text between two arguments
#   belongs to no format. So a value without its end tag goes on to the end of the next one, and
#   a value that quotes a call ends where an argument of the quoted one does. Either way an
#   argument begins in it and doesn't end there; such a call isn't run (`_check_values`).
# - A value has no type. It is read by the tool's schema (`schema_values`), but where the element
#   itself says that it is a text or JSON.

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import (
    KnownTools,
    Schema,
    WrittenValue,
    json_kind,
    write_arguments,
)
from lutumpy.text_tools.text_machine import SPACE

__all__ = ["XmlSyntax"]

_NAME = re.compile(r"[\w.:-]+")
_HEADER = re.compile(r"""\s*["']?([^\s"'<>]+)["']?((?:\s+\w+="[^"<>]*")*)\s*/?""")
_CDATA = ("<![CDATA[", "]]>")
_CDATA_TEXT = re.compile(r"\s*<!\[CDATA\[([\s\S]*)\]\]>\s*")


class _Unreadable(Exception):
    """What is wrong with a call, and its name as far as it is known.

    Attributes:
        name: The name; empty where it isn't known.
        problem: What is wrong, in words for the model.
        cut: The text ends inside of the call.
        begun: A call begins here at all.
    """

    def __init__(self, name: str, problem: str, *, cut: bool = False, begun: bool = True) -> None:
        super().__init__(problem)
        self.name: str = name
        self.problem: str = problem
        self.cut: bool = cut
        self.begun: bool = begun


class _Begun(NamedTuple):
    """An argument that begins in a value and doesn't end there.

    Attributes:
        key: Its key.
        holder: The key of the value that it is in.
        in_call: Whether a call begins or ends before it in the value.
    """

    key: str
    holder: str
    in_call: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlSyntax(BodySyntax):
    """One way to write calls as elements.

    Attributes:
        call: The texts before and behind a name; `None` where the start tag comes before it.
        call_attributes: What comes after the name, as the call's place. It is written and isn't
            read.
        name_end: The text behind the name where `call` is `None`; empty where the first element
            or white space ends it.
        call_end: The text behind the arguments of a call; empty where the end tag of the block is.
        key: The texts before and behind the key of an argument.
        value_start: The text between `key` and the value, where there is one.
        value_end: The text behind a value; `{key}` in it stands for the key.
        lines: A value stands on lines of its own, so one line break at each end isn't part of it.
        typed: The attribute by which an argument says of what type it is: `string`, which is
            `true` or `false`, or `type`, a type of JSON Schema; empty where it says nothing.
        cdata: A value with marks of XML may be in a CDATA section.
        tool: The start tag is the element of this tool, so that no name follows.
        of_each_tool: The start tags are made of the names that are offered: `<name>`.
    """

    call: tuple[str, str] | None = None
    name_end: str = ""
    call_attributes: str = ""
    call_end: str = ""
    key: tuple[str, str] = ("<parameter=", ">")
    value_start: str = ""
    value_end: str = "</parameter>"
    lines: bool = True
    typed: Literal["", "string", "type"] = ""
    cdata: bool = False
    tool: str = ""
    of_each_tool: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """The tags, and those of the elements."""
        calls = (*(self.call or ())[:1], self.call_end)
        texts = (self.start, *self.ends, *calls, self.key[0], self.value_end)
        return tuple([text for text in texts if text and "{key}" not in text])

    @property
    def rule(self) -> str:
        """How an instruction says to write the arguments."""
        return (
            "in place of the argument shown one for each argument of the tool, all of which fit "
            "its JSON Schema: texts as they are, other values as JSON"
        )

    def quotes(self, tools: KnownTools) -> Mapping[str, str]:
        """A value is a quoted text, from its key or its own mark on."""
        if "{key}" not in self.value_end:
            return {self.value_start or self.key[0]: self.value_end}
        schema: Mapping[str, Any] = tools[self.tool].input_schema if self.tool in tools else {}
        return {
            f"{self.key[0]}{key}{self.key[1]}": self.value_end.replace("{key}", key)
            for key in schema.get("properties") or ()
        }

    def behind_quotes(self) -> tuple[str, ...]:
        """The next element, or an end."""
        tags = [self.key[0], *([self.call_end] if self.call_end else []), *self.ends]
        # `<` alone begins all the others.
        return ("<",) if "<" in tags else tuple(dict.fromkeys(tags))

    def for_offer(self, tools: KnownTools) -> Sequence[BodySyntax]:
        """One syntax for each tool, where the tools' names are the tags."""
        if not self.of_each_tool:
            return [self]
        return [
            replace(self, start=f"<{name}>", ends=(f"</{name}>",), tool=name, of_each_tool=False)
            for name in tools
        ]

    # --- writing -----------------------------------------------------------------------------

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        try:
            values = json_values.decode(arguments)
        except (ValueError, RecursionError):
            values = {}
        if not isinstance(values, dict):
            values = {}
        line = "\n" if self.lines else ""
        written = "".join([self._spell_value(str(key), value) for key, value in values.items()])
        if self.of_each_tool or self.tool:
            return f"<{name}>\n{written}</{name}>"
        start, end = self.tags
        if self.call is None:
            return f"{start}{name}{self.name_end}\n{written}{end}"
        before, behind = self.call
        head = f"{before}{name}{self.call_attributes}{behind}"
        return f"{start}\n{head}{line}{written}{self.call_end}\n{end}"

    def _spell_value(self, key: str, value: Any) -> str:
        is_text = isinstance(value, str)
        text = value if is_text else json_values.encode_text(value)
        before, behind = self.key
        if self.typed:
            kind = json_kind(value) if self.typed == "type" else str(is_text).lower()
            behind = f'" {self.typed}="{kind}"{behind}'
        if self.cdata and is_text and any(mark in text for mark in "<&\n"):
            text = text.join(_CDATA)
        line = "\n" if self.lines else ""
        end = self.value_end.replace("{key}", key)
        return f"{before}{key}{behind}{self.value_start}{line}{text}{line}{end}\n"

    # --- reading -----------------------------------------------------------------------------

    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The calls in the text of a block; the last may be one that can't be read."""
        calls: list[ParsedCall] = []
        pos = _skip_space(body, 0)
        while pos < len(body) or (self.call is None and not calls):
            begin = pos
            try:
                call, pos = self._read_call(body, pos, tools, whole=whole)
            except _Unreadable as error:
                written = body[begin:].strip()
                if error.cut and not whole:
                    calls.append(self.cut(error.name, written))
                elif calls and not error.begun:
                    calls = self.end_with_rest(calls, written)
                else:
                    calls.append(self.unreadable(error.name, written, error.problem))
                break
            calls.append(call)
            pos = _skip_space(body, pos)
        if not calls and not whole:
            return [self.cut("", "")]
        return calls

    def _read_call(
        self, body: str, pos: int, tools: KnownTools, *, whole: bool
    ) -> tuple[ParsedCall, int]:
        begin = pos
        name, pos = self._read_name(body, pos)
        values: dict[str, WrittenValue] = {}
        begun: list[_Begun] = []
        ended_by_block = not self.call_end
        while True:
            pos = _skip_space(body, pos)
            if self.call_end and body.startswith(self.call_end, pos):
                pos += len(self.call_end)
                break
            if pos == len(body):
                if whole:
                    break
                raise _Unreadable(name, "its end is missing", cut=True)
            if not body.startswith(self.key[0], pos):
                is_cut = self._is_beginning(body[pos:])
                raise _Unreadable(name, f"{body[pos : pos + 30]!r} is no argument", cut=is_cut)
            key, value, pos = self._read_argument(body, pos, name, begun)
            if key in values:
                raise _Unreadable(name, f"it has more than one argument {key!r}")
            values[key] = value
        if ended_by_block and not whole:
            raise _Unreadable(name, "its end is missing", cut=True)
        if problem := self._check_values(name, values, begun, tools):
            return self.unreadable(name, body[begin:pos].strip(), problem), pos
        arguments, by_schema = write_arguments(name, values, tools)
        return ParsedCall(name, arguments, by_schema=by_schema), pos

    def _is_beginning(self, rest: str) -> bool:
        """Whether a text is the beginning of what may be between two arguments."""
        return any(tag.startswith(rest) for tag in (self.key[0], self.call_end) if tag)

    def _read_name(self, body: str, pos: int) -> tuple[str, int]:
        if self.tool:
            return self.tool, pos
        if self.call is None:
            found = _NAME.match(body, pos)
            if found is None:
                raise _Unreadable("", "it has no name", cut=pos == len(body))
            name, pos = found.group(), found.end()
            if not body.startswith(self.name_end, pos):
                raise _Unreadable(name, f"{self.name_end!r} is missing", cut=pos == len(body))
            return name, pos + len(self.name_end)
        before, behind = self.call
        if not body.startswith(before, pos):
            is_cut = before.startswith(body[pos:])
            raise _Unreadable("", f"expected {before!r}", cut=is_cut, begun=False)
        end = body.find(behind, pos + len(before))
        if end < 0:
            raise _Unreadable("", f"{behind!r} is missing", cut=True)
        header = _HEADER.fullmatch(body[pos + len(before) : end])
        if header is None:
            raise _Unreadable("", "its name can't be read")
        return header.group(1), end + len(behind)

    def _check_values(
        self,
        name: str,
        values: Mapping[str, WrittenValue],
        begun: Sequence[_Begun],
        tools: KnownTools,
    ) -> str:
        """What is wrong with values that hold more than was meant, or less; empty for nothing.

        An argument that begins in a value is one of this call where its tool has it and the call
        hasn't, and one of another call where that begins or ends in the value. Any other is taken
        for a text about arguments.
        """
        schema = Schema.of_tool(name, tools)
        for one in begun:
            is_missing = one.key not in values and schema.of_property(one.key).node is not None
            if one.in_call or is_missing:
                return f"the argument {one.holder!r} isn't ended before {one.key!r} begins in it"
        return ""

    def _read_argument(
        self, body: str, pos: int, name: str, begun: list[_Begun]
    ) -> tuple[str, WrittenValue, int]:
        """The key of an argument, its value, and the place behind it.

        What begins in the value is added to `begun`.
        """
        before, behind = self.key
        end = body.find(behind, pos + len(before))
        if end < 0:
            raise _Unreadable(name, f"{behind!r} is missing", cut=True)
        header = _HEADER.fullmatch(body[pos + len(before) : end])
        if header is None:
            raise _Unreadable(name, "the key of an argument can't be read")
        pos = end + len(behind)
        if self.value_start:
            pos = _skip_space(body, pos)
            if not body.startswith(self.value_start, pos):
                is_cut = self.value_start.startswith(body[pos:])
                raise _Unreadable(name, f"{self.value_start!r} is missing", cut=is_cut)
            pos += len(self.value_start)
        key = header.group(1)
        stop, behind_value = self._find_value_end(body, pos, key)
        if stop < 0:
            raise _Unreadable(name, f"the end of the argument {key!r} is missing", cut=True)
        written = body[pos:stop]
        begun += self._find_begun(key, written)
        value = WrittenValue(self._trim(written), self._says_text(header.group(2)))
        return key, value, behind_value

    def _find_begun(self, holder: str, value: str) -> Iterator[_Begun]:
        """The arguments that begin in a value and don't end there. Each begins a line, or stands
        behind the name of a call, or before the start of its value: texts mention tags elsewhere.
        """
        before, behind = self.key
        if before not in value or "{key}" in self.value_end:
            return  # an end tag with a key ends no other argument
        section = _CDATA_TEXT.match(value) if self.cdata else None
        unended = max(value.rfind(self.value_end), section.end() if section is not None else 0)
        header = f"{re.escape(before)}{_HEADER.pattern}{re.escape(behind)}"
        if self.value_start:
            start = rf"{header}\s*{re.escape(self.value_start)}"
        else:
            behind_name = f"|(?<={re.escape(self.call[1])})" if self.call is not None else ""
            start = rf"(?:(?<=\n){behind_name})[ \t]*{header}"
        marks = [*(self.call or ())[:1], self.call_end, self.start, *self.ends]
        places = [value.find(mark) for mark in marks if mark]
        call = min([place for place in places if place >= 0], default=len(value))
        for found in re.compile(start).finditer(value, max(unended, 0)):
            yield _Begun(found.group(1), holder, in_call=call < found.start())

    def _says_text(self, attributes: str) -> bool | None:
        found = re.search(rf'{self.typed}="([^"]*)"', attributes) if self.typed else None
        return None if found is None else found.group(1) in ("true", "string")

    def _find_value_end(self, body: str, pos: int, key: str) -> tuple[int, int]:
        end_tag = self.value_end.replace("{key}", key)
        if self.cdata and body.startswith(_CDATA[0], _skip_space(body, pos)):
            stop = body.find(_CDATA[1], pos)
            pos = pos if stop < 0 else stop
        stop = body.find(end_tag, pos)
        while stop >= 0:
            behind = stop + len(end_tag)
            next_pos = _skip_space(body, behind)
            if next_pos == len(body) or body.startswith(self.key[0], next_pos):
                return stop, behind
            if self.call_end and body.startswith(self.call_end, next_pos):
                return stop, behind
            if self._is_beginning(body[next_pos : next_pos + 60]) and len(body) - next_pos < 60:
                return stop, behind
            stop = body.find(end_tag, behind)
        return -1, -1

    def _trim(self, value: str) -> str:
        if self.cdata and (found := _CDATA_TEXT.fullmatch(value)) is not None:
            return found.group(1)
        if not self.lines:
            return value
        return value.removeprefix("\r").removeprefix("\n").removesuffix("\n").removesuffix("\r")


def _skip_space(text: str, pos: int) -> int:
    found = SPACE.match(text, pos)
    return pos if found is None else found.end()
