"""Reading a guided answer, while it arrives: a JSON object that holds the calls, or the text."""

# The text for the user is in a JSON string, and is shown decoded while it arrives; an escape
# may be cut in two. An endpoint may also ignore the schema: a text that doesn't begin like a guided
# answer is text, all of it. So everything is held back until it is known what begins.
#
#     _begin --> _fence_line --> _begin   ``` before the object, where no schema forbids it
#     _begin --> _before_key --> _in_key --> _before_colon --> _before_value
#     _before_value --> _in_string      the text for the user: shown as it is decoded
#                   --> _in_json        an array is calls; other JSON is the value, shown as it is
#     _in_string, _in_json --> _behind_value --> _before_key   another key, which a schema forbids
#                                            --> _rest         what follows the object
#     _in_json --> _broken              the JSON broke: the rest belongs to it
#     anywhere behind calls: more JSON, which may be the rest of a call that closed too early
#                                            --> _continued    none of these calls can be read
#     anywhere before _before_value: it is not a guided answer --> _plain_text
#
# So calls are complete only when the text behind the object has begun, or the answer has ended.

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from lutumpy import ToolDef
from lutumpy.models import ToolOffering
from lutumpy.plain.json_values import clean_text
from lutumpy.text_tools.guided_schema import ANSWER
from lutumpy.text_tools.instruction import tool_list
from lutumpy.text_tools.json_scanner import JsonScanner
from lutumpy.text_tools.protocol import CallStreamFormatter, ParsedCall, ParsedText
from lutumpy.text_tools.tag_search import end_of
from lutumpy.text_tools.text_machine import SPACE, TextMachine
from lutumpy.text_tools.trailing_text import begins_rest, rest_detail
from lutumpy.text_tools.written_calls import (
    CallForm,
    broken_calls,
    broken_detail,
    cut_calls,
    element_call,
)

__all__ = ["GuidedAnswers", "GuidedScanner"]

_KEY = re.compile(r'[^"\\]*')
_FENCE_INFO = re.compile(r"[`\w ]*")
_STOP = re.compile(r'["\\]')
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_KEYS = frozenset({ANSWER, "calls", "text"})
# Behind an array of calls that can't be read to its end: the end of the answer's object.
_ANSWER_END = re.compile(r"(?<=\])\s*\}[\s`]*\Z")


class GuidedAnswers:
    """The instruction for guided answers, and how they are read.

    Args:
        arguments_key: The key of the arguments of a call.
    """

    def __init__(self, arguments_key: str = "args") -> None:
        self.arguments_key: str = arguments_key

    def instruction(
        self, definitions: Sequence[ToolDef], offering: ToolOffering, *, has_value: bool
    ) -> str:
        """How to answer, and the tools."""
        # In this order and at this length, because the smallest models follow it so.
        pieces = [
            "You can call tools. Answer with one JSON object and nothing else. "
            f"To call tools, write {self._spell_example()}"
        ]
        if offering.parallel:
            pieces.append(", with one entry for each call")
        pieces.append(". The arguments have to fit the tool's JSON Schema.")
        if offering.mode == "auto":
            other = "the JSON of the value that is asked for" if has_value else '"your text"'
            pieces.append(f' To answer without a tool, write {{"{ANSWER}": {other}}}.')
        return f"{''.join(pieces)}\n\nTools:\n{tool_list(definitions)}"

    def _spell_example(self) -> str:
        return self.spell_calls([("tool_name", "{...}")])

    def spell_calls(self, calls: Sequence[tuple[str, str]]) -> str:
        """Calls, given as name and JSON text of the arguments, as the model writes them."""
        written = [
            f'{{"name": "{name}", "{self.arguments_key}": {arguments}}}'
            for name, arguments in calls
        ]
        return f'{{"{ANSWER}": [{", ".join(written)}]}}'

    def parse(self, text: str) -> ParsedText:
        """The calls in a whole answer, or its text. Never raises, whatever the text."""
        scanner = GuidedScanner(self._spell_example())
        shown = scanner.feed(text) + scanner.flush()
        calls = tuple(scanner.calls)
        errors = tuple([call.detail for call in calls if call.detail is not None])
        return ParsedText(shown, calls, errors, empty_blocks=scanner.empty_blocks)

    def stream_formatter(self) -> CallStreamFormatter:
        """A new formatter for one answer, which also knows its calls."""
        return GuidedScanner(self._spell_example())


class GuidedScanner(TextMachine):
    """A `StreamFormatter` for guided answers that also knows the calls.

    Args:
        form: How calls are to be written, for the text about calls that can't be read.
    """

    __slots__ = (
        "_fenced",
        "_form",
        "_held",
        "_json",
        "_key",
        "_keys",
        "_raw",
        "_rest_start",
        "_shows_json",
        "_whole",
    )

    def __init__(self, form: str) -> None:
        super().__init__(self._begin)
        self._form = CallForm(form)
        # What comes before it is known whether this is a guided answer, or what comes after calls.
        self._held: list[str] = []
        self._fenced = False
        self._key = ""
        self._keys: set[str] = set()
        self._json: JsonScanner | None = None
        self._raw: list[str] = []
        self._shows_json = False
        # Calls that were read, until it is known that nothing follows that belongs to them; and
        # where that begins in `_raw`.
        self._whole: list[ParsedCall] = []
        self._rest_start = 0

    def flush(self) -> str:
        """The answer has ended."""
        self._run(self._carry, final=True)
        if self._whole and self._state in (self._before_key, self._in_key):
            self._hold_against_calls(0)
        if self._state == self._continued:
            self._refuse_whole()
        self._release_whole()
        if self._json is not None and not self._shows_json:
            self._end_calls(self._json)
        elif self._state == self._before_value and self._key == "calls":
            self.calls.extend(cut_calls("", _begin_array(), (), self._form))
        elif self._state in (self._begin, self._fence_line):
            self._out += self._held
        return self._take_shown()

    # --- before the value --------------------------------------------------------------------

    def _begin(self, text: str, pos: int, final: bool) -> int:
        pos = self._hold_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] == "{":
            self._state = self._before_key
            return self._hold_back(text, pos, pos + 1)
        if text[pos] == "`" and not self._fenced:
            self._fenced = True
            self._state = self._fence_line
            return pos
        return self._treat_as_text(pos)

    def _fence_line(self, text: str, pos: int, final: bool) -> int:
        """The line of an opening fence, which endpoints without constraints may give."""
        stop = self._hold_back(text, pos, end_of(_FENCE_INFO, text, pos))
        if stop < len(text):
            if text[stop] not in "\r\n{":
                return self._treat_as_text(stop)
            self._state = self._begin
        return stop

    def _before_key(self, text: str, pos: int, final: bool) -> int:
        pos = self._hold_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != '"':
            return self._refuse_key(pos)
        self._key = ""
        self._state = self._in_key
        return self._hold_back(text, pos, pos + 1)

    def _in_key(self, text: str, pos: int, final: bool) -> int:
        stop = end_of(_KEY, text, pos)
        self._key += text[pos : min(stop, pos + 10)]
        self._hold_back(text, pos, stop)
        if stop == len(text) and len(self._key) < 10:
            return stop
        is_read = self._key in _KEYS and self._key not in self._keys
        if stop == len(text) or text[stop] != '"' or not is_read:
            return self._refuse_key(stop)
        self._keys.add(self._key)
        self._state = self._before_colon
        return self._hold_back(text, stop, stop + 1)

    def _before_colon(self, text: str, pos: int, final: bool) -> int:
        pos = self._hold_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] != ":":
            return self._refuse_key(pos)
        self._state = self._before_value
        return self._hold_back(text, pos, pos + 1)

    def _refuse_key(self, pos: int) -> int:
        """This is not a key of a guided answer."""
        return self._hold_against_calls(pos) if self._whole else self._treat_as_text(pos)

    def _treat_as_text(self, pos: int) -> int:
        """This is not a guided answer."""
        self._out += self._held
        self._held.clear()
        self._state = self._plain_text
        return pos

    def _plain_text(self, text: str, pos: int, final: bool) -> int:
        self._out.append(text[pos:])
        return len(text)

    # --- the value ---------------------------------------------------------------------------

    def _before_value(self, text: str, pos: int, final: bool) -> int:
        pos = self._hold_space(text, pos)
        if pos == len(text):
            return pos
        self._held.clear()
        if text[pos] == '"':
            self._state = self._in_string
            return pos + 1
        self._shows_json = text[pos] != "["
        self._json = JsonScanner(calls=not self._shows_json)
        self._raw.clear()
        self._state = self._in_json
        return pos

    def _in_string(self, text: str, pos: int, final: bool) -> int:
        stop = _STOP.search(text, pos)
        if stop is None:
            self._out.append(text[pos:])
            return len(text)
        self._out.append(text[pos : stop.start()])
        pos = stop.start()
        if text[pos] == '"':
            self._state = self._behind_value
            return pos + 1
        length = _escape_length(text, pos)
        if pos + length > len(text):
            if final:
                return len(text)
            self._waiting = True
            return pos
        self._out.append(_decode_escape(text[pos : pos + length]))
        return pos + length

    def _in_json(self, text: str, pos: int, final: bool) -> int:
        scanner = self._json
        assert scanner is not None
        stop = scanner.feed(text, pos)
        (self._out if self._shows_json else self._raw).append(text[pos:stop])
        if scanner.done:
            if not self._shows_json:
                raw = "".join(self._raw)
                self._rest_start = len(raw)
                for element in scanner.elements:
                    self._whole.append(element_call(raw, element, self._form))
                self._count_empty(not scanner.elements)
            self._json = None
            self._state = self._behind_value
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
            detail = broken_detail(raw, 0, scanner, self._form)
            answer_end = _ANSWER_END.search(raw)
            end = len(raw) if answer_end is None else answer_end.start()
            self.calls.extend(broken_calls(raw, scanner, end, detail, self._form))

    # --- behind the value --------------------------------------------------------------------

    def _hold_against_calls(self, pos: int) -> int:
        """What is held back, and all behind it, may be the rest of a call."""
        self._raw += self._held
        self._held.clear()
        self._state = self._continued
        return pos

    def _continued(self, text: str, pos: int, final: bool) -> int:
        self._raw.append(text[pos:])
        return len(text)

    def _refuse_whole(self) -> None:
        raw = "".join(self._raw)
        detail = rest_detail(raw[self._rest_start :], self._form.spelled)
        written = raw.strip()
        self._whole = [ParsedCall(one.name, written, "malformed", detail) for one in self._whole]

    def _release_whole(self) -> None:
        self.calls.extend(self._whole)
        self._whole.clear()

    def _behind_value(self, text: str, pos: int, final: bool) -> int:
        pos = end_of(SPACE, text, pos)
        if pos == len(text):
            return pos
        if text[pos] == ",":
            # Endpoints that hold the model to the schema never get here.
            self._state = self._before_key
            return self._hold_back(text, pos, pos + 1)
        in_fence_end = self._fenced and text[pos] == "`"
        if self._whole and text[pos] != "}" and not in_fence_end:
            return self._hold_against_calls(pos)
        self._state = self._rest
        if text[pos] != "}":
            return pos
        self._raw.append("}")
        self._rest_start += 1
        return pos + 1

    def _rest(self, text: str, pos: int, final: bool) -> int:
        """Behind the object; only models that aren't held to the schema write anything here."""
        if self._fenced:
            pos = end_of(SPACE, text, pos)
            if text.startswith("`", pos):
                return pos + 1
        if pos < len(text):
            pos = self._hold_space(text, pos)
        if pos == len(text):
            return pos
        if self._whole and begins_rest(text[pos]):
            return self._hold_against_calls(pos)
        self._release_whole()
        return self._treat_as_text(pos)

    def _hold_space(self, text: str, pos: int) -> int:
        return self._hold_back(text, pos, end_of(SPACE, text, pos))

    def _hold_back(self, text: str, pos: int, stop: int) -> int:
        if stop > pos:
            self._held.append(text[pos:stop])
        return stop


def _begin_array() -> JsonScanner:
    """A scanner for which the answer ended just as the array of calls was to begin."""
    scanner = JsonScanner()
    scanner.feed("[", 0)
    return scanner


def _escape_length(text: str, pos: int) -> int:
    """The length of the escape at `pos`; more than there is while more is needed to tell."""
    if pos + 1 >= len(text):
        return 2
    if text[pos + 1] != "u":
        return 2
    if pos + 6 > len(text):
        return 6
    if _HIGH_SURROGATE.match(text, pos) is None:
        return 6
    following = text[pos + 6 : pos + 8]
    if following == "\\u"[: len(following)]:
        return 12
    return 6


def _decode_escape(escape: str) -> str:
    """The character of an escape; an escape that JSON doesn't have stays as it is."""
    if escape[1] == "u" and not all(_HEX.fullmatch(digits) for digits in escape.split("\\u")[1:]):
        return escape
    try:
        return clean_text(json.loads(f'"{escape}"'))
    except ValueError:
        return escape
