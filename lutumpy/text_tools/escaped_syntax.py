"""Calls with unquoted keys and a mark around texts: `call:weather{city:<escape>Oslo<escape>}`."""

# Gemma's models are trained on it. Between the marks is a text, whatever it holds; outside of
# them are names of keys, brackets, numbers and words. So the text becomes JSON piece by piece.

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.json_scanner import JsonScanner
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools

__all__ = ["EscapedSyntax"]

_HEAD = re.compile(r"\s*call:([\w.-]+)\s*(?=\{)")
_KEY = re.compile(r"([{,]\s*)([\w.-]+)(\s*:)")
_MOST_LEVELS = 60  # what is deeper is written as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class EscapedSyntax(BodySyntax):
    """One way to write calls with marks around texts.

    Attributes:
        mark: What comes before and behind a text.
    """

    mark: str

    @property
    def rule(self) -> str:
        """How an instruction says to write the arguments."""
        return (
            "in place of the argument shown those of the tool, which fit its JSON Schema: texts "
            f"between {self.mark}, other values as JSON"
        )

    def quotes(self, tools: KnownTools) -> Mapping[str, str]:
        """The mark."""
        return {self.mark: self.mark}

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        try:
            values = json_values.decode(arguments)
        except (ValueError, RecursionError):
            values = {}
        start, end = self.tags
        written = self._spell(values, 0) if isinstance(values, dict) else "{}"
        return f"{start}call:{name}{written}{end}"

    def _spell(self, value: Any, level: int) -> str:
        if isinstance(value, str):
            return f"{self.mark}{value}{self.mark}"
        if isinstance(value, dict) and level < _MOST_LEVELS:
            return (
                "{"
                + ",".join([f"{key}:{self._spell(one, level + 1)}" for key, one in value.items()])
                + "}"
            )
        if isinstance(value, list) and level < _MOST_LEVELS:
            return "[" + ",".join([self._spell(one, level + 1) for one in value]) + "]"
        return json_values.encode_text(value)

    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The one call in the text of a block."""
        head = _HEAD.match(body)
        if head is None:
            if not whole:
                return [self.cut("", body.strip())]
            return [self.unreadable("", body.strip(), "it has no name and arguments")]
        name, written = head.group(1), body[head.end() :].strip()
        pieces = written.split(self.mark)
        for index, piece in enumerate(pieces):
            if index % 2:
                pieces[index] = json_values.encode_text(piece)
            else:
                pieces[index] = _KEY.sub(r'\1"\2"\3', piece)
        arguments = "".join(pieces)
        scanner = JsonScanner(0, calls=False)
        stop = scanner.feed(arguments, 0)
        if len(pieces) % 2 and scanner.done and stop == len(arguments):
            return [ParsedCall(name, arguments)]
        if not whole and not scanner.done and scanner.broken is None:
            return [self.cut(name, written)]
        return [self.unreadable(name, written, "its arguments can't be read")]
