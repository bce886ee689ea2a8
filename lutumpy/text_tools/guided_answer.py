"""Reading a guided answer: a JSON object that holds the calls, or the text for the user, while it arrives.

An endpoint may pay no attention to the schema. A text that doesn't begin like a guided answer is text, all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from lutumpy.core.json_values import clean_text
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.text_tools.guided_schema import ANSWER
from lutumpy.text_tools.instruction import tool_list
from lutumpy.text_tools.json_scanner import JsonScanner
from lutumpy.text_tools.protocol import CallStreamFormatter, ParsedText
from lutumpy.text_tools.tag_search import end_of
from lutumpy.text_tools.text_machine import SPACE, TextMachine
from lutumpy.text_tools.written_calls import broken_detail, cut_calls, element_call, spoiled
from lutumpy.tools.definition import ToolDef

__all__ = ["GuidedAnswers", "GuidedScanner"]

_KEY = re.compile(r'[^"\\]*')
_FENCE_LINE = re.compile(r"[`\w ]*")
_STOP = re.compile(r'["\\]')
_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_KEYS = frozenset({ANSWER, "calls", "text"})


class GuidedAnswers:
    """What a model is told of guided answers, and how they are read.

    Args:
        arguments_key: What the arguments of a call are called.
    """

    def __init__(self, arguments_key: str = "args") -> None:
        self.arguments_key: str = arguments_key

    def instruction(
        self, definitions: Sequence[ToolDef], offering: ToolOffering, *, has_value: bool
    ) -> str:
        """How to answer, and the tools."""
        # Said in this order and at this length, since the smallest models take it up so.
        said = [
            f"You can call tools. Answer with one JSON object and nothing else. To call tools, write {self._form()}"
        ]
        if offering.parallel:
            said.append(", with one entry for each call")
        said.append(". The arguments have to fit the tool's JSON Schema.")
        if offering.mode == "auto":
            other = "the JSON of the value that is asked for" if has_value else '"your text"'
            said.append(f' To answer without a tool, write {{"{ANSWER}": {other}}}.')
        return f"{''.join(said)}\n\nTools:\n{tool_list(definitions)}"

    def _form(self) -> str:
        return self.calls_text([("tool_name", "{...}")])

    def calls_text(self, calls: Sequence[tuple[str, str]]) -> str:
        """Calls, as name and JSON text of the arguments, the way the model writes them."""
        written = [
            f'{{"name": "{name}", "{self.arguments_key}": {arguments}}}'
            for name, arguments in calls
        ]
        return f'{{"{ANSWER}": [{", ".join(written)}]}}'

    def parse(self, text: str) -> ParsedText:
        """The calls in a whole answer, or its text. Never raises, whatever the text."""
        scanner = GuidedScanner(self._form())
        shown = scanner.feed(text) + scanner.flush()
        calls = tuple(scanner.calls)
        errors = tuple([call.detail for call in calls if call.detail is not None])
        return ParsedText(shown, calls, errors, empty_blocks=scanner.empty_blocks)

    def stream_formatter(self) -> CallStreamFormatter:
        """A new formatter for one answer, which knows its calls too."""
        return GuidedScanner(self._form())


class GuidedScanner(TextMachine):
    """A `StreamFormatter` for guided answers that knows the calls too.

    Args:
        form: How calls are to be written, for what the model is told of those that can't be read.
    """

    __slots__ = (
        "_fenced",
        "_form",
        "_held",
        "_json",
        "_key",
        "_raw",
        "_shows_json",
    )

    def __init__(self, form: str) -> None:
        super().__init__(self._begin)
        self._form = form
        # What came before it is known whether this is a guided answer.
        self._held: list[str] = []
        self._fenced = False
        self._key = ""
        self._json: JsonScanner | None = None
        self._raw: list[str] = []
        self._shows_json = False

    def flush(self) -> str:
        """The answer has ended."""
        self._run(self._carry, final=True)
        if self._json is not None and not self._shows_json:
            self._end_calls(self._json)
        elif self._state == self._value and self._key == "calls":
            self.calls.extend(cut_calls("", _awaiting(), (), self._form))
        elif self._state in (self._begin, self._fence):
            self._out += self._held
        return self._shown()

    # --- before the value ---------------------------------------------------------------------------------------------

    def _begin(self, text: str, pos: int, final: bool) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] == "{":
            self._state = self._key_begins
            return self._hold(text, pos, pos + 1)
        if text[pos] == "`" and not self._fenced:
            self._fenced = True
            self._state = self._fence
            return pos
        return self._is_text(pos)

    def _fence(self, text: str, pos: int, final: bool) -> int:
        """The line of an opening fence, which endpoints without constraints may give."""
        stop = self._hold(text, pos, end_of(_FENCE_LINE, text, pos))
        if stop < len(text):
            if text[stop] not in "\r\n{":
                return self._is_text(stop)
            self._state = self._begin
        return stop

    def _key_begins(self, text: str, pos: int, final: bool) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != '"':
            return self._is_text(pos)
        self._key = ""
        self._state = self._key_goes_on
        return self._hold(text, pos, pos + 1)

    def _key_goes_on(self, text: str, pos: int, final: bool) -> int:
        stop = end_of(_KEY, text, pos)
        self._key += text[pos : min(stop, pos + 10)]
        self._hold(text, pos, stop)
        if stop == len(text) and len(self._key) < 10:
            return stop
        if stop == len(text) or text[stop] != '"' or self._key not in _KEYS:
            return self._is_text(stop)
        self._state = self._colon
        return self._hold(text, stop, stop + 1)

    def _colon(self, text: str, pos: int, final: bool) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != ":":
            return self._is_text(pos)
        self._state = self._value
        return self._hold(text, pos, pos + 1)

    def _is_text(self, pos: int) -> int:
        """This is no guided answer."""
        self._out += self._held
        self._held.clear()
        self._state = self._text
        return pos

    def _text(self, text: str, pos: int, final: bool) -> int:
        self._out.append(text[pos:])
        return len(text)

    # --- the value ----------------------------------------------------------------------------------------------------

    def _value(self, text: str, pos: int, final: bool) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        self._held.clear()
        if text[pos] == '"':
            self._state = self._string
            return pos + 1
        self._shows_json = text[pos] != "["
        self._json = JsonScanner(calls=not self._shows_json)
        self._raw.clear()
        self._state = self._in_json
        return pos

    def _string(self, text: str, pos: int, final: bool) -> int:
        stop = _STOP.search(text, pos)
        if stop is None:
            self._out.append(text[pos:])
            return len(text)
        self._out.append(text[pos : stop.start()])
        pos = stop.start()
        if text[pos] == '"':
            self._state = self._behind
            return pos + 1
        length = _escape_length(text, pos)
        if pos + length > len(text):
            if final:
                return len(text)
            self._waiting = True
            return pos
        self._out.append(_unescaped(text[pos : pos + length]))
        return pos + length

    def _in_json(self, text: str, pos: int, final: bool) -> int:
        scanner = self._json
        assert scanner is not None
        stop = scanner.feed(text, pos)
        (self._out if self._shows_json else self._raw).append(text[pos:stop])
        if scanner.done:
            if not self._shows_json:
                raw = "".join(self._raw)
                self.calls.extend(
                    [element_call(raw, element, self._form) for element in scanner.elements]
                )
                self._count_empty(not scanner.elements)
            self._json = None
            self._state = self._behind
        elif scanner.broken is not None:
            self._state = self._broken
        return stop

    def _broken(self, text: str, pos: int, final: bool) -> int:
        (self._out if self._shows_json else self._raw).append(text[pos:])
        return len(text)

    def _end_calls(self, scanner: JsonScanner) -> None:
        raw = "".join(self._raw)
        if scanner.broken is None:
            self.calls.extend(cut_calls(raw, scanner, (), self._form))
        else:
            self.calls.extend(
                spoiled(
                    raw, scanner, len(raw), broken_detail(raw, 0, scanner, self._form), self._form
                )
            )

    # --- behind the value ---------------------------------------------------------------------------------------------

    def _behind(self, text: str, pos: int, final: bool) -> int:
        pos = end_of(SPACE, text, pos)
        if pos == len(text):
            return pos
        if text[pos] == ",":
            self._state = (
                self._key_begins
            )  # endpoints that hold the model to the schema never get here
            return self._hold(text, pos, pos + 1)
        self._state = self._rest
        return pos + 1 if text[pos] == "}" else pos

    def _rest(self, text: str, pos: int, final: bool) -> int:
        """What a model that isn't held to the schema writes behind its answer."""
        if self._fenced:
            pos = end_of(SPACE, text, pos)
            if text.startswith("`", pos):
                return pos + 1
        if pos < len(text):
            pos = self._space(text, pos)
        if pos < len(text):
            self._is_text(pos)
        return pos

    def _space(self, text: str, pos: int) -> int:
        return self._hold(text, pos, end_of(SPACE, text, pos))

    def _hold(self, text: str, pos: int, stop: int) -> int:
        if stop > pos:
            self._held.append(text[pos:stop])
        return stop


def _awaiting() -> JsonScanner:
    scanner = JsonScanner()
    scanner.feed("[", 0)
    return scanner


def _escape_length(text: str, pos: int) -> int:
    """How long the escape at `pos` is; more than there is while more is needed to tell."""
    if pos + 1 >= len(text):
        return 2
    if text[pos + 1] != "u":
        return 2
    if pos + 6 > len(text):
        return 6
    if _HIGH.match(text, pos) is None:
        return 6
    following = text[pos + 6 : pos + 8]
    if following == "\\u"[: len(following)]:
        return 12
    return 6


def _unescaped(escape: str) -> str:
    """The character of an escape; one that JSON doesn't know stays as it is."""
    if escape[1] == "u" and not all(_HEX.fullmatch(digits) for digits in escape.split("\\u")[1:]):
        return escape
    try:
        return clean_text(json.loads(f'"{escape}"'))
    except ValueError:
        return escape
