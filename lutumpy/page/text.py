"""Text of a transcript made harmless for a page, and JSON made readable.

Whatever a model or a tool wrote may try to look like something else: characters that turn the
direction of writing, that can't be seen, or that no file can hold. Each of them is shown by its
code, so that what the reader sees is what is there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from lutumpy.plain import json_values

__all__ = ["LIMIT", "Prose", "Value", "data_value", "plain", "prose", "shown", "text_value"]

LIMIT = 1_000_000
"""Characters of one text that a page shows unless told otherwise."""

_PRETTY = 200_000  # characters of JSON that are set out on lines; more is shown as it came
_COLOURED = 20_000  # characters whose tokens are coloured
_OPEN_LINES, _OPEN_CHARACTERS = 16, 1_000  # what may be unfolded
_PROSE = 3_000  # characters of a message before the rest goes into a fold
_BRIEF = 160
_INLINE = 64  # characters of an object or array that stays on one line
_DEEPEST = 40  # levels of indentation

# Controls but tab and line feed, invisible and format characters, direction controls, tags,
# noncharacters, lone surrogates. Joiners and the first variation selectors stay: scripts and emoji
# need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164"
    "\ufdd0-\ufdef\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
    "|[\U0001fffe\U0001ffff"
    + "".join(
        f"{chr((plane << 16) + 0xFFFE)}{chr((plane << 16) + 0xFFFF)}" for plane in range(2, 17)
    )
    + "]"
)
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _join_halves(text: str) -> str:
    """`text` with LF for CR LF, and two halves of one character joined."""
    text = text.replace("\r\n", "\n")
    return _HALVES.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def plain(text: str) -> str:
    """`text` for a place that takes no markup, such as an attribute: hidden characters as
    `⟦U+202E⟧`.
    """
    return _HIDDEN.sub(lambda m: f"⟦U+{ord(m[0]):04X}⟧", _join_halves(text))


def shown(text: str) -> Markup:
    """`text` escaped for the page, hidden characters as small marks that hold their code
    (`U+202E`).
    """
    return Markup(
        _HIDDEN.sub(
            lambda m: f'<b class="hidden-character">U+{ord(m[0]):04X}</b>',
            str(escape(_join_halves(text))),
        )
    )


@dataclass(frozen=True, slots=True)
class Value:
    """A text or JSON value in a fold.

    Attributes:
        kind: `json`, `text`, or `empty`.
        brief: Its beginning on one line, for a closed fold.
        body: What the fold holds, ready for the page.
        raw: The text as it came, where `body` sets it out otherwise; else `None`.
        characters: How long the whole text is.
        left_out: How many characters the page's limit kept out.
        short: It may be open.
        remark: What is odd about it; empty when nothing is.
    """

    kind: Literal["json", "text", "empty"]
    brief: str
    body: Markup
    raw: str | None
    characters: int
    left_out: int
    short: bool
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Prose:
    """A text to read: what is shown at once, and the rest that is in a fold.

    Attributes:
        head: The text, or its beginning.
        rest: What follows; empty when `head` is everything.
        left_out: How many characters the page's limit kept out.
    """

    head: str
    rest: str
    left_out: int


def prose(text: str, limit: int = LIMIT) -> Prose:
    """`text` as a message shows it."""
    kept = text[:limit]
    if len(kept) <= _PROSE + _PROSE // 4:
        return Prose(kept, "", len(text) - len(kept))
    # A cut between two lines or words reads better than one inside.
    cut = (
        max(kept.rfind("\n", _PROSE // 2, _PROSE), kept.rfind(" ", _PROSE // 2, _PROSE)) + 1
        or _PROSE
    )
    return Prose(kept[:cut], kept[cut:], len(text) - len(kept))


def text_value(text: str, limit: int = LIMIT, *, json_expected: bool = False) -> Value:
    """A text that may be JSON: set out on lines when it is an object or array, else as it came.

    Args:
        text: What a model or a tool wrote.
        limit: Characters to show at most.
        json_expected: Say so when it is no JSON.
    """
    if not text:
        return Value("empty", "", Markup(), None, 0, 0, True)
    kept = text[:limit]
    left_out = len(text) - len(kept)
    head = text[:64].lstrip()
    brief = " ".join(text[: _BRIEF * 2].split())
    brief = brief[:_BRIEF] + ("…" if len(brief) > _BRIEF or len(text) > _BRIEF * 2 else "")
    remark = ""
    if json_expected or head.startswith(("{", "[")):
        problem = _find_json_problem(text)
        if problem is None and len(text) <= _PRETTY:
            return _set_out(text, brief)
        if problem is not None and json_expected:
            remark = f"no valid JSON: {problem}"
        elif problem is None:
            remark = "shown as it came: too long to set out"
    short = len(text) <= _OPEN_CHARACTERS and text.count("\n") < _OPEN_LINES
    return Value("text", brief, shown(kept), None, len(text), left_out, short, remark)


def data_value(value: object, limit: int = LIMIT) -> Value:
    """A JSON value (or whatever is in its place) as text."""
    return text_value(value if isinstance(value, str) else json_values.encode_text(value), limit)


def _find_json_problem(text: str) -> str | None:
    try:
        json.loads(text)
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return str(error)[:200]
    return None


def _set_out(text: str, brief: str) -> Value:
    pieces = list(_lay_out(text))
    pretty = "".join([piece for _, piece in pieces])
    body = _colour_tokens(pieces) if len(pretty) <= _COLOURED else shown(pretty)
    short = len(pretty) <= _OPEN_CHARACTERS and pretty.count("\n") < _OPEN_LINES
    return Value("json", brief, body, None if pretty == text else text, len(text), 0, short)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def _lay_out(text: str) -> list[tuple[str, str]]:
    """The tokens of a JSON text with the white space of a set-out one, each with its kind.

    It works on the text, not on the parsed value, so that repeated keys and the spelling of numbers
    stay.
    """
    tokens = _TOKEN.findall(text)
    laid: list[tuple[str, str]] = []
    depth = 0
    inline_until = -1
    for index, token in enumerate(tokens):
        inline = index <= inline_until
        if token in "{[":
            if not inline:
                inline_until = max(inline_until, _find_inline_end(tokens, index))
                inline = index < inline_until
            laid.append(("", token))
            depth += 1
            if not inline:
                laid.append(("", _break_line(depth)))
        elif token in "}]":
            depth -= 1
            if not inline:
                laid.append(("", _break_line(depth)))
            laid.append(("", token))
        elif token == ",":
            laid.append(("", ", " if index < inline_until else "," + _break_line(depth)))
        elif token == ":":
            laid.append(("", ": "))
        elif token[0] == '"':
            key = index + 1 < len(tokens) and tokens[index + 1] == ":"
            laid.append(("key" if key else "string", _unescape_string(token)))
        else:
            laid.append(("literal" if token in ("true", "false", "null") else "number", token))
    return laid


def _break_line(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST)


def _find_inline_end(tokens: list[str], start: int) -> int:
    """Where the object or array that begins at `start` ends, if it is short and holds no other;
    else -1.
    """
    length = 0
    for index in range(start + 1, min(start + _INLINE, len(tokens))):
        token = tokens[index]
        if token in "}]":
            return index
        length += len(token) + 1
        if token in "{[" or length > _INLINE:
            return -1
    return -1


def _unescape_string(token: str) -> str:
    return (
        json.dumps(json.loads(token, strict=False), ensure_ascii=False) if "\\u" in token else token
    )


def _colour_tokens(pieces: list[tuple[str, str]]) -> Markup:
    return Markup("").join(
        [
            Markup('<span class="{}">{}</span>').format(kind, shown(text)) if kind else shown(text)
            for kind, text in pieces
        ]
    )
