"""Regular expressions that can't run in linear time: taken out of a schema, and told of."""

# What is hard here
# -----------------
# A `DynamicTool` refuses a pattern with look-around or back references, since a stranger's could
# run for hours. Thousands of operations have one, most of them of their authors' good will, and
# without it a tool still does all it could: the server checks what it checks anyway. So here such a
# pattern is left out, the model reads of it in the description, and a note says so.
#
# Which ones can't be used, the same validator says that would use them, one pattern at a time, and
# only where a whole schema was refused.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy import DeclarationError, DynamicTool
from lutumpy.openapi.identifiers import PLAIN_VALUES
from lutumpy.plain.preview import shorten

__all__ = ["PatternFence"]

_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_TOLD = 200  # characters of a pattern in a description


class PatternFence:
    """Takes patterns out of the schemas of a document. It remembers which can be used."""

    __slots__ = ("_usable",)

    def __init__(self) -> None:
        self._usable: dict[str, bool] = {}

    def take_out(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """A schema without the patterns that can't be used, and these.

        A name that only such a pattern described may be there with any value.
        """
        dropped: list[str] = []
        return self._clean(schema, dropped), list(dict.fromkeys(dropped))

    def _clean(self, value: Any, dropped: list[str]) -> Any:
        if isinstance(value, list):
            return [self._clean(inner, dropped) for inner in value]
        if not isinstance(value, Mapping):
            return value
        cleaned = {
            key: self._clean_word(key, inner, dropped)
            for key, inner in value.items()
            if key != "patternProperties"
        }
        self._clean_pattern(cleaned, dropped)
        self._clean_names(cleaned, value, dropped)
        return cleaned

    def _clean_word(self, key: str, value: Any, dropped: list[str]) -> Any:
        if key in PLAIN_VALUES:
            return value
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self._clean(inner, dropped) for name, inner in value.items()}
        return self._clean(value, dropped)

    def _clean_pattern(self, cleaned: dict[str, Any], dropped: list[str]) -> None:
        pattern = cleaned.get("pattern")
        if not isinstance(pattern, str) or self._can_be_used(pattern):
            return
        del cleaned["pattern"]
        dropped.append(pattern)
        note = f"Pattern, not checked here: {shorten(pattern, _TOLD)}"
        described = cleaned.get("description")
        cleaned["description"] = f"{described}\n{note}" if isinstance(described, str) else note

    def _clean_names(
        self, cleaned: dict[str, Any], value: Mapping[str, Any], dropped: list[str]
    ) -> None:
        named = value.get("patternProperties")
        if not isinstance(named, Mapping):
            return
        kept = {pattern: inner for pattern, inner in named.items() if self._can_be_used(pattern)}
        cleaned["patternProperties"] = {
            pattern: self._clean(inner, dropped) for pattern, inner in kept.items()
        }
        lost = [pattern for pattern in named if pattern not in kept]
        dropped += lost
        if lost:
            # Names that it would have taken would be refused, or held to something else.
            for key in ("additionalProperties", "unevaluatedProperties"):
                cleaned.pop(key, None)

    def _can_be_used(self, pattern: str) -> bool:
        if pattern not in self._usable:
            try:
                DynamicTool("pattern", "", {"properties": {"it": {"pattern": pattern}}})
            except DeclarationError:
                self._usable[pattern] = False
            else:
                self._usable[pattern] = True
        return self._usable[pattern]
