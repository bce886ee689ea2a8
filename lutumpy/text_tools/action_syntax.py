"""`Action: weather` and `Action Input: Oslo`, where the input may be a bare text."""

from __future__ import annotations

import re

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.json_scanner import JsonScanner
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools, only_text_property

__all__ = ["ActionSyntax"]

_ACTION = re.compile(r"\s*([\w.-]+)[ \t]*\r?\n\s*Action Input:[ \t]*")
_NEXT = re.compile(r"\n\s*Action:")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSyntax(BodySyntax):
    """The calls of ReAct prompts.

    A bare text is the one argument of a tool that takes one text; for other tools it can't be read.
    """

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        return f"Action: {name}\nAction Input: {arguments}"

    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The calls up to the end of the block or of the answer, which ends the last of them."""
        return [self._read_one(one, tools) for one in _NEXT.split(body)]

    def _read_one(self, body: str, tools: KnownTools) -> ParsedCall:
        head = _ACTION.match(body)
        if head is None:
            return self.cut("", body.strip())
        name, written = head.group(1), body[head.end() :].strip()
        if written.startswith("{"):
            scanner = JsonScanner(0, calls=False)
            stop = scanner.feed(written, 0)
            if scanner.done and not written[stop:].strip():
                return ParsedCall(name, written)
            if not scanner.done and scanner.broken is None:
                return self.cut(name, written)
            return self.unreadable(name, written, "its input is not valid JSON")
        key = only_text_property(name, tools)
        if key is None:
            return self.unreadable(name, written, "its input is not a JSON object")
        if not written:
            return self.cut(name, written)
        arguments = json_values.encode_text({key: written})
        return ParsedCall(name, arguments, open_ended=True, by_schema=(key,))
