"""JSON calls with other keys than `name` and arguments, and JSON that is the whole answer."""

# `JsonScanner` gives the places of the members, so arguments stay the text that the model wrote.
# A text without a tag is a call only where it is at the start of the answer, nothing else
# is in the answer, and every name in it is offered: everything else is the answer itself.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lutumpy.plain.values import dataclass
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.json_scanner import Element, JsonScanner
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools

__all__ = ["KeyedSyntax"]

_BETWEEN = re.compile(r"[\s,;]*")
_FENCE_BEGIN = re.compile(r"\s*```[\w-]*[ \t]*\r?\n")
_FENCE_END = re.compile(r"\s*```\s*")
_BEGINS = re.compile(r"\s*(?:```[\w-]*[ \t]*\r?\n\s*)?(?:\[\s*)?\{\s*\"(\w+)\"")
_WRAPPERS = ("tool_calls", "tool_call", "function")


class _Members(NamedTuple):
    """What an object that should be a call holds."""

    name: str
    arguments: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSyntax(BodySyntax):
    """JSON calls with keys of their own.

    Attributes:
        name_key: The key of the name; empty where the name is the key of its arguments.
        arguments_keys: The keys under which arguments are read; the first is written.
        other_keys: Keys that say nothing about what the call does, as those of ids.
        in_list: Calls are written in a list.
        in_fence: The JSON is written in a Markdown fence.
        headed: The name of the tool may come before the start tag as well, and isn't shown.
    """

    name_key: str = "name"
    arguments_keys: tuple[str, ...] = ("arguments", "parameters", "args")
    other_keys: tuple[str, ...] = ("type", "id")
    in_list: bool = False
    in_fence: bool = False
    headed: bool = False
    escapes: bool = True

    def quotes(self, tools: KnownTools) -> Mapping[str, str]:
        """Those of JSON."""
        return {'"': '"'}

    def for_offer(self, tools: KnownTools) -> Sequence[BodySyntax]:
        """One syntax more for each tool, where its name may head a call."""
        if not self.headed:
            return [self]
        starts = [f"{name}{self.start}" for name in tools]
        return [self, *[replace(self, start=start, headed=False) for start in starts]]

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        if self.name_key:
            call = f'{{"{self.name_key}": "{name}", "{self.arguments_keys[0]}": {arguments}}}'
        else:
            call = f'{{"{name}": {arguments}}}'
        start, end = self.tags if self.start else ("", "")
        written = f"{start}{f'[{call}]' if self.in_list else call}{end}"
        return f"```json\n{written}\n```" if self.in_fence else written

    def begins(self, text: str, tools: KnownTools) -> bool:
        """Whether a call, or a list of calls, may begin here."""
        found = _BEGINS.match(text)
        if found is None:
            return False
        keys = (self.name_key, *self.arguments_keys, *self.other_keys, *_WRAPPERS)
        return found.group(1) in keys or (not self.name_key and found.group(1) in tools)

    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The calls in the text of a block, or in a whole answer."""
        text = _strip_fence(body if self.start else self._strip_ends(body))
        calls, pos = self._read_values(text)
        if self.start:
            return self._end_block(calls, text[pos:].strip(), whole=whole)
        names_known = bool(calls) and all(call.name in tools for call in calls)
        rest = text[pos:].strip()
        if not rest:
            return calls if names_known else None
        # Cut inside of a call: what is known of it says whether it is one.
        name = self._name_in(rest)
        if (names_known or not calls) and name in tools and not _is_complete(rest):
            return [*calls, self.cut(name, rest)]
        return None

    def _strip_ends(self, body: str) -> str:
        """A whole answer without the special token that ends it."""
        body = body.rstrip()
        for end in self.ends:
            body = body.removesuffix(end)
        return body

    def _end_block(self, calls: list[ParsedCall], rest: str, *, whole: bool) -> list[ParsedCall]:
        if rest or (not calls and not whole):
            name = self._name_in(rest) if rest[:1] == "{" else ""
            is_cut = not whole and not (rest and _is_broken(rest))
            if rest and not name and calls and not (is_cut and rest == "{"):
                return self.end_with_rest(calls, rest)
            if is_cut:
                calls.append(self.cut(name, rest))
            else:
                calls.append(self.unreadable(name, rest, "it is not valid JSON"))
        return calls

    def _name_in(self, rest: str) -> str:
        key = self.name_key
        pattern = rf'"{re.escape(key)}"\s*:\s*"([\w.-]+)"' if key else r'\{\s*"([\w.-]+)"\s*:'
        found = re.search(pattern, rest[:500])
        return "" if found is None else found.group(1)

    def _read_values(self, text: str, *, unwraps: bool = True) -> tuple[list[ParsedCall], int]:
        """The calls of the complete values of a text, and where the first other thing is."""
        calls: list[ParsedCall] = []
        pos = _skip_between(text, 0)
        while pos < len(text) and text[pos] in "{[":
            scanner = JsonScanner(pos)
            stop = scanner.feed(text, pos)
            if not scanner.done:
                complete = [one for one in scanner.elements if one.end >= 0]
                calls += [self._read_element(text, one) for one in complete]
                return calls, self._rest_from(text, complete[-1].end if complete else pos)
            for element in scanner.elements:
                inner = self._unwrap(text, element) if unwraps else ""
                if inner:
                    calls += self._read_values(inner, unwraps=False)[0]
                else:
                    calls.append(self._read_element(text, element))
            pos = _skip_between(text, stop)
        return calls, pos

    def _rest_from(self, text: str, pos: int) -> int:
        return _skip_between(text, pos) if pos < len(text) else pos

    def _unwrap(self, text: str, element: Element) -> str:
        """The calls that an element holds under a key of its own; empty where it is a call."""
        if len(element.members) != 1 or not element.is_object or not self.name_key:
            return ""
        (member,) = element.members
        value = text[member.start : member.end]
        key = text[member.key_start : member.key_end]
        return value if key in _WRAPPERS and value[:1] in ("{", "[") else ""

    def _read_element(self, text: str, element: Element) -> ParsedCall:
        written = text[element.start : element.end]
        members = self._read_members(text, element)
        if members.problem:
            return self.unreadable(members.name, written, members.problem)
        return ParsedCall(members.name, members.arguments)

    def _read_members(self, text: str, element: Element) -> _Members:
        name = arguments = problem = ""
        for member in element.members:
            key = text[member.key_start : member.key_end]
            value = text[member.start : member.end]
            if not self.name_key:
                if name:
                    problem = "it has more than one key"
                name, arguments = key, value
            elif key == self.name_key and not name:
                name = value[1:-1] if value[:1] == '"' else ""
            elif key in self.arguments_keys and not arguments:
                arguments = value
            elif key not in self.other_keys:
                problem = f"{key[:30]!r} stands beside its arguments, not among them"
        if not name:
            problem = "it has no name of a tool"
        return _Members(name, arguments or "{}", problem)


def _strip_fence(body: str) -> str:
    found = _FENCE_BEGIN.match(body)
    if found is None:
        return body
    end = body.rfind("```")
    if end < found.end():
        return body[found.end() :]
    return body[found.end() : end] if _FENCE_END.fullmatch(body, end) else body


def _skip_between(text: str, pos: int) -> int:
    found = _BETWEEN.match(text, pos)
    return pos if found is None else found.end()


def _is_complete(text: str) -> bool:
    scanner = JsonScanner(0)
    scanner.feed(text, 0)
    return scanner.done or scanner.broken is not None


def _is_broken(text: str) -> bool:
    if text[:1] not in ("{", "["):
        return True
    scanner = JsonScanner(0)
    scanner.feed(text, 0)
    return scanner.broken is not None
