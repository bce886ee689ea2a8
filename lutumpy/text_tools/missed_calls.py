"""Texts that look like a call, in answers that had to call a tool and hold no readable call."""

# Models fall back into the way of calling that they were trained on, whatever their instruction
# says. Such a call is never run: nothing tells it from a quoted one. But where a call was required,
# a text that looks like one is not an answer either; it becomes an issue that says how to write it.

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lutumpy.text_tools.protocol import ParsedCall, ParsedText

__all__ = ["MissedCalls"]

# The marks around calls in the formats of other models, and in those of this library where a
# model spelled them wrong. Repetitions have a limit, so that no text can make the search slow.
_MARKS = re.compile(
    r"<\s{0,3}/?\s{0,3}(?:tool_?calls?|function_?calls?|tool_use|tools|invoke|function)\b"
    r"[^<>\n]{0,80}>"
    r"|<function\s*="
    r"|<\|[^|<>\n]{0,20}(?:tool|python_tag)[^|<>\n]{0,30}\|>"
    r"|<\uff5ctool[^<>\n]{0,40}>"  # DeepSeek writes a fullwidth bar
    r"|\[\s{0,3}/?\s{0,3}tool_?calls?\s{0,3}\]"
    r"|\bfunctools\s*\[",
    re.IGNORECASE,
)
_NAME_KEYS = "name|function|tool|tool_name|action|recipient_name"


class MissedCalls:
    """Finds what was meant as a call in an answer to a turn that requires one.

    Args:
        names: The tools that may be called.
        spell: Writes calls, given as name and arguments, as the model has to write them.
    """

    __slots__ = ("_only", "_shapes", "_spell")

    def __init__(
        self, names: Sequence[str], spell: Callable[[Sequence[tuple[str, str]]], str]
    ) -> None:
        self._spell = spell
        self._only = names[0] if len(names) == 1 else ""
        known = "|".join([re.escape(name) for name in sorted(names, key=len, reverse=True)])
        name = f"(?<![\\w-])(?P<{{}}>{known})(?![\\w-])"
        self._shapes = re.compile(
            # A JSON object, bare or in a code fence; Python, or a name before its arguments;
            # ReAct; an XML element.
            rf'"(?:{_NAME_KEYS})"\s*:\s*"{name.format("json")}"'
            rf"|{name.format('python')}\s*[({{]"
            rf"|\bAction\s*:\s*{name.format('action')}"
            rf"|<{name.format('element')}\s*>"
        )

    def find(self, parsed: ParsedText) -> ParsedCall | None:
        """The text that looks like a call, as a call that can't be run; `None` for an answer."""
        if parsed.empty_blocks:
            detail = (
                "A tool call was asked for, and yours holds none. "
                f"Write it as {self._spell_example('tool_name')}."
            )
            return ParsedCall("", "[]", "malformed", detail)
        text = parsed.text
        mark, shape = _MARKS.search(text), self._shapes.search(text)
        if mark is None and shape is None:
            return None
        name = self._only if shape is None else next(found for found in shape.groups() if found)
        start = min([found.start() for found in (mark, shape) if found is not None])
        call = f"the call of {name}" if name else "a call"
        detail = (
            f"A tool call was asked for. What looks like {call} is not written the way that was "
            "asked for, so it was not read and not run. "
            f"Write it exactly as {self._spell_example(name or 'tool_name')}."
        )
        return ParsedCall(name, text[start:].strip(), "malformed", detail)

    def _spell_example(self, name: str) -> str:
        return self._spell([(name, "{...}")])
