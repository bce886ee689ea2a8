"""How results are written for a model that only knows text."""

# Each is between two texts of the form, in the order of the calls. What a tool gave must not
# look like the end of its block or like another one: a content that holds such a text becomes a
# JSON string in which it isn't there any more.

from __future__ import annotations

import re

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

__all__ = ["OWN_RESULTS", "ResultForm", "ResultHead"]

_PLACE = re.compile(r"\{(id|name|status|plain_id|plain_name|index|failed)\}")
_NOT_PLAIN = re.compile(r"[^\w.-]")
_SHORTEST_MARK = 4  # characters; shorter ones, as brackets, are in every text


@dataclass(frozen=True, slots=True)
class ResultHead:
    """What is said of a result.

    Attributes:
        call_id: The id of the call.
        name: The tool's name as the model wrote it.
        status: `ok`, `error`, `rejected` or `promised`.
        index: Its place among the results of the round, from 0 on.
    """

    call_id: str
    name: str
    status: str
    index: int


@dataclass(frozen=True, slots=True)
class ResultForm:
    """One way to write the results of a round.

    In `before` and `behind`, `{id}`, `{name}` and `{status}` stand for those of the result, as JSON
    strings; `{plain_id}` and `{plain_name}` without quotes, `{index}` for its place from 0 on, and
    `{failed}` for `true` or `null`.

    Attributes:
        before: The text before each result.
        behind: The text behind each result.
        start: The text before all of them.
        end: The text behind all of them.
        between: The text between two of them.
        as_json: A result is a JSON string.
    """

    before: str
    behind: str
    start: str = ""
    end: str = ""
    between: str = "\n"
    as_json: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts by which the model tells results from other text; none may be in a content."""
        texts = (self.start, self.before, self.behind, self.end)
        pieces = [piece.strip() for text in texts for piece in _PLACE.split(text)[::2]]
        return tuple(dict.fromkeys([one for one in pieces if len(one) >= _SHORTEST_MARK]))

    @property
    def told(self) -> str:
        """How an instruction calls it."""
        return (self.start or _PLACE.split(self.before)[0]).strip()

    def begins(self, text: str) -> bool:
        """Whether a text begins as the results of a round do."""
        pieces = _PLACE.split((self.start or self.before).rstrip())[::2]
        return re.match(r"[^\n]*?".join(map(re.escape, pieces)), text.lstrip()) is not None

    def fill(self, text: str, head: ResultHead) -> str:
        """`before` or `behind` with what is said of a result."""
        values = {
            "id": _quote_attribute(head.call_id),
            "name": _quote_attribute(head.name),
            "status": head.status,
            "plain_id": _NOT_PLAIN.sub("_", head.call_id),
            "plain_name": _NOT_PLAIN.sub("_", head.name),
            "index": str(head.index),
            "failed": "true" if head.status not in ("ok", "promised") else "null",
        }
        return _PLACE.sub(lambda found: values[found.group(1)], text)

    def quote(self, content: str) -> str:
        """A content in which none of the form's marks is."""
        found = [mark for mark in self.marks if mark in content]
        if not found and not self.as_json:
            return content
        quoted = json_values.encode_text(content)
        for mark in found:
            # A character that no escape of JSON has in it, so that replacing it changes nothing.
            char = next(one for one in mark if not one.isalnum() and one not in '"\\')
            quoted = quoted.replace(char, f"\\u{ord(char):04x}")
        return quoted


def _quote_attribute(text: str) -> str:
    return json_values.encode_text(text).replace("]", "\\u005d").replace(">", "\\u003e")


OWN_RESULTS = ResultForm(
    before="[TOOL_RESULT id={id} name={name} status={status}]\n", behind="\n[/TOOL_RESULT]"
)
