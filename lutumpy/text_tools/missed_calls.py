"""Texts that look like a call: what a model wrote in another form than it was asked for."""

# Models fall back into the way of calling that they were trained on, whatever their instruction
# says, and damage the tags that they were told. Such a call is never run: nothing tells it from a
# quoted one. But it isn't an answer either, so it becomes an issue that says how to write it.
#
# Where a call was required, every text that looks like one is taken for a lapse. Where none was,
# only what no answer holds: marks of a format with the name of an offered tool beside them, outside
# of quoted code; an answer that is nothing but a call; and the call alone, in an answer that holds
# other calls, or where the format that was asked for has no marks, so that this is how it looks.
# That is told once for each message of the user, since a model that meant it as text would be asked
# for ever.

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lutumpy import ToolDef
from lutumpy.text_tools.protocol import ParsedCall, ParsedText
from lutumpy.text_tools.python_syntax import BARE_PYTHON
from lutumpy.text_tools.schema_values import known_tools

__all__ = ["MissedCalls"]

# The marks around calls in the formats of other models, and in those of this library where a
# model spelled them wrong. Repetitions have a limit, so that no text can make the search slow.
_MARKS = (
    r"<\s{0,3}/?\s{0,3}(?:[a-z]{1,12}[:_])?"
    r"(?:tool_?calls?|function_?calls?|tool_use|tools|invoke|function)\b[^<>\n]{0,80}>"
    r"|<function\s*="
    r"|<\|[^|<>\n]{0,20}(?:tool|python_tag|action)[^|<>\n]{0,30}\|>"
    r"|<\uff5c[^<>\n]{0,10}(?:tool|function|invoke)[^<>\n]{0,40}>"  # DeepSeek's fullwidth bars
    r"|\[\s{0,3}/?\s{0,3}tool_?calls?\s{0,3}\]"
    r"|\bfunctools\s*\["
    r"|\bto=functions\."
    r"|\bAction Input\s*:"
)
_NAME_KEYS = "name|function|tool|tool_name|action|recipient_name"
_ARGUMENT_KEYS = "arguments|parameters|args|action_input|input"
_QUOTE = "(?:[\"'\u201c\u201d]|&quot;)"
# What of an answer may be a call in JSON or in Python.
# Code that is quoted in a sentence or in a block.
_QUOTED = re.compile(r"```[^`]*(?:```|\Z)|`[^`\n]*`")
_FENCED = re.compile(r"\s*```[\w-]*[ \t]*\r?\n(?P<code>[^`]*)(?:```\s*)?")
_BRACKET = re.compile(r"[<>\[\]|✿]")
_NEAR = 240  # characters between a mark and the name of the tool
_SHORTEST = 5  # characters that are left of a tag which lost one


class MissedCalls:
    """Finds what was meant as a call in an answer, and not written as one.

    Args:
        tools: The tools that may be called.
        spell: Writes calls, given as name and arguments, as the model has to write them.
        marks: The texts that the format which was asked for writes around calls.
        required: Whether the turn requires a call.
    """

    __slots__ = (
        "_any_call",
        "_attached",
        "_is_bare",
        "_marks",
        "_names",
        "_only",
        "_own",
        "_shapes",
        "_spell",
        "_tools",
        "required",
    )

    def __init__(
        self,
        tools: Sequence[ToolDef],
        spell: Callable[[Sequence[tuple[str, str]]], str],
        marks: Sequence[str] = (),
        *,
        required: bool = True,
    ) -> None:
        self.required: bool = required
        self._spell = spell
        self._tools = known_tools(tools)
        names = [tool.name for tool in tools]
        self._only = names[0] if len(names) == 1 else ""
        known = "|".join([re.escape(name) for name in sorted(names, key=len, reverse=True)])
        name = f"(?<![\\w-])(?P<{{}}>{known})(?![\\w-])"
        self._shapes = re.compile(
            # A JSON object, bare or in a code fence; Python, or a name before its arguments;
            # ReAct; an XML element.
            rf"{_keyed(_NAME_KEYS)}{_QUOTE}?{name.format('json')}"
            rf"|{name.format('python')}\s*[({{]"
            rf"|\bAction\s*:\s*{name.format('action')}"
            rf"|<{name.format('element')}\s*>"
        )
        # The call itself, without any mark: JSON with arguments behind the name, and Python.
        self._any_call = re.compile(
            rf"{_keyed(_NAME_KEYS)}{_QUOTE}?{name.format('json')}"
            rf"(?=[^`]{{0,{_NEAR}}}?{_keyed(_ARGUMENT_KEYS)})"
            rf"|{name.format('python')}\s*(?:\(\s*(?:\w+\s*=|\))|\{{\s*{_QUOTE})"
            rf"|\bAction\s*:\s*{name.format('action')}"
        )
        self._attached = re.compile(f"(?:{known})(?![\\w-])")
        clear = [mark for mark in marks if _BRACKET.search(mark) is not None]
        self._is_bare = all(len(mark) < _SHORTEST for mark in clear)
        own = "|".join([re.escape(tag) for tag in _damaged(clear)]) or "(?!)"
        self._own = re.compile(own, re.IGNORECASE)
        self._marks = re.compile(f"{_MARKS}|{own}", re.IGNORECASE)
        self._names = re.compile(name.format("name"))

    def find(self, parsed: ParsedText) -> ParsedCall | None:
        """The text that looks like a call, as a call that can't be run; `None` for an answer.

        An answer that holds calls as well may have lost another one.
        """
        text = parsed.text
        if parsed.calls:
            marks = self._marks if self._is_bare else self._own
            return self._find_marked(text, marks) or self._find_bare(text)
        if parsed.empty_blocks and (self.required or not text.strip()):
            asked = "A tool call was asked for, and yours" if self.required else "Your tool call"
            detail = f"{asked} holds none. Write it as {self._spell_example('tool_name')}."
            return ParsedCall("", "[]", "malformed", detail)
        if not self.required:
            found = self._find_whole(text) or self._find_marked(text, self._marks)
            return self._find_bare(text) if found is None and self._is_bare else found
        mark, shape = self._marks.search(text), self._shapes.search(text)
        if mark is None and shape is None:
            return None
        name = self._only if shape is None else next(found for found in shape.groups() if found)
        start = min([found.start() for found in (mark, shape) if found is not None])
        return self._explain(name, text[start:].strip())

    def _find_whole(self, text: str) -> ParsedCall | None:
        """The answer, where it is nothing but a call."""
        text = text.strip()
        if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
            keyed = self._shapes.search(text)
            has_arguments = re.search(_keyed(_ARGUMENT_KEYS), text) is not None
            if has_arguments and keyed is not None and keyed.group("json"):
                return self._explain(keyed.group("json"), text)
        if text[-1:] in (")", "]") and self._names.match(text.lstrip("[ \n")) is not None:
            calls = BARE_PYTHON.read(text, self._tools, whole=True)
            if calls:
                return self._explain(calls[0].name, text)
        return None

    def _find_marked(self, text: str, marks: re.Pattern[str]) -> ParsedCall | None:
        """The first mark of a format that has the name of a tool beside it, outside of code."""
        if marks.search(text) is None:
            return None
        spoken = _QUOTED.sub(lambda found: " " * len(found.group()), text)
        for mark in marks.finditer(spoken):
            begin = max(0, mark.start() - _NEAR)
            found = self._attached.match(spoken, mark.end())
            found = found or self._names.search(spoken, begin, mark.end() + _NEAR)
            if found is not None:
                start = min(mark.start(), found.start())
                return self._explain(found.group(), text[start:].strip())
        return None

    def _find_bare(self, text: str) -> ParsedCall | None:
        """The first call without any mark, outside of code that is quoted beside other text."""
        fence = _FENCED.fullmatch(text)
        text = text if fence is None else fence.group("code")
        spoken = _QUOTED.sub(lambda found: " " * len(found.group()), text)
        found = self._any_call.search(spoken)
        if found is None:
            return None
        name = next(group for group in found.groups() if group)
        return self._explain(name, text[found.start() :].strip())

    def _explain(self, name: str, written: str) -> ParsedCall:
        asked = "A tool call was asked for. " if self.required else ""
        otherwise = "" if self.required else " If it was none, answer without it."
        call = f"the call of {name}" if name else "a call"
        detail = (
            f"{asked}What looks like {call} is not written the way that was "
            "asked for, so it was not read and not run. "
            f"Write it exactly as {self._spell_example(name or 'tool_name')}.{otherwise}"
        )
        return ParsedCall(name, written, "malformed", detail)

    def _spell_example(self, name: str) -> str:
        return self._spell([(name, "{...}")])


def _keyed(keys: str) -> str:
    """A pattern for a key of JSON, of which a quote or the colon may be missing."""
    return rf"(?:{_QUOTE}(?:{keys}){_QUOTE}?|\b(?:{keys}){_QUOTE})\s{{0,9}}:?\s{{0,9}}"


def _damaged(marks: Sequence[str]) -> Sequence[str]:
    """The marks, and what is left of each where a character is missing."""
    texts = [text for mark in marks for text in (mark, *_without_one(mark))]
    return list(dict.fromkeys([text for text in texts if len(text) >= _SHORTEST]))


def _without_one(mark: str) -> Sequence[str]:
    return [mark[:index] + mark[index + 1 :] for index in range(len(mark))]
