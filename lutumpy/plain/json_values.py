"""JSON as this library writes, reads and compares it, in one place for all.

There is one encoder, so that equal values give equal bytes everywhere.

A transcript must be sendable at any moment, and some values that Python accepts are refused by
every provider: lone surrogates (not encodable as UTF-8), NaN and infinities (not JSON). `encode`
replaces them, and never raises.
"""

# What is hard here
# -----------------
# pydantic's encoder and parser are written in Rust and several times as fast as the standard
# library's, but neither takes everything that models, providers and users bring. Each has a slow
# companion that takes the rest:
#
#   | value or text                       | fast way           | slow way                       |
#   |-------------------------------------|--------------------|--------------------------------|
#   | lone surrogates in a value          | raises             | U+FFFD for each                |
#   | a type that isn't JSON              | raises, or its own | its `str`                      |
#   | NaN and infinities in a value       | "NaN", "Infinity"  | the same                       |
#   | a whole number over 4,300 digits    | written            | a text: Python can't read it   |
#   | a value deeper than 254 levels      | raises             | whole up to 500, else cut      |
#   | a text with escaped lone surrogates | raises             | read as they are               |
#   | a text deeper than 201 levels       | raises             | as deep as Python's stack goes |
#   | a byte order mark before the text   | raises             | skipped                        |
#
# The slow way writes each scalar with the fast encoder, so a number has one spelling (`1e-7`, where
# the standard library writes `1e-07`), whatever is beside it.
#
# Tried and dropped: the C part of the standard library's encoder, made once and kept. It was half
# as fast as pydantic's and needed a private name of the `json` package.

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_core import from_json, to_json

from lutumpy.plain.safe_text import safe_str

if TYPE_CHECKING:
    import json

# Values that hold themselves have no end, so what is deeper than `_MOST_LEVELS` is cut below
# `_DEPTH`.
_DEPTH = 200
_MOST_LEVELS = 500
_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

# Python reads no whole number of more digits (`sys.int_info.default_max_str_digits`).
_MOST_DIGITS = 4300
_TOO_LARGE = 10**_MOST_DIGITS
_TOO_MANY_DIGITS = re.compile(rb"[0-9]{%d}" % _MOST_DIGITS)
_DIGITS = b"0123456789"

# How `to_json` spells NaN and infinities: as texts, or as bare words, which aren't JSON.
_NonFinite: TypeAlias = Literal["strings", "constants"]


# --- writing --------------------------------------------------------------------------------------


def encode(value: Any) -> bytes:
    """`value` as compact UTF-8 JSON; never raises, see the module's note on what is replaced."""
    try:
        data = to_json(value, inf_nan_mode="strings")
    except (ValueError, TypeError, RecursionError):
        return _encode_slowly(value, "strings")
    if len(data) >= _MOST_DIGITS and _may_hold_too_large_number(data):
        return _encode_slowly(value, "strings")
    return data


def encode_text(value: Any) -> str:
    """As `encode`, as text."""
    return encode(value).decode()


def _may_hold_too_large_number(data: bytes) -> bool:
    """Whether there are 4,300 digits in a row. Looks at one byte in 4,300 first: each such row
    holds one of these.
    """
    sample = data[_MOST_DIGITS - 1 :: _MOST_DIGITS]
    if len(sample.translate(None, _DIGITS)) == len(sample):
        return False
    return _TOO_MANY_DIGITS.search(data) is not None


def as_written(value: Any) -> str:
    """`value` as text with NaN and infinities as bare words, which show a reader what was there.
    This isn't JSON.
    """
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except (ValueError, TypeError, RecursionError):
        return _encode_slowly(value, "constants").decode()


def _encode_slowly(value: Any, non_finite: _NonFinite) -> bytes:
    try:
        return _write_levels(value, _MOST_LEVELS, non_finite, cut=False)
    except RecursionError:
        return _write_levels(value, _DEPTH, non_finite, cut=True)


def _write_levels(value: Any, levels: int, non_finite: _NonFinite, *, cut: bool) -> bytes:
    """The JSON of `value`, scalar by scalar, with a stack of its own in place of recursion.

    Args:
        value: Anything.
        levels: How many levels of containers are written.
        non_finite: How NaN and infinities are spelled.
        cut: Put a text in place of what is deeper.

    Raises:
        RecursionError: it is deeper, and `cut` is false.
    """
    pieces: list[bytes] = []
    # What is still to be written, next one last: ready bytes, or a value and the level that it
    # stands on.
    waiting: list[bytes | tuple[Any, int]] = [(value, 0)]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, bytes):
            pieces.append(entry)
            continue
        found, level = entry
        is_object = isinstance(found, Mapping)
        if not is_object and not isinstance(found, (list, tuple)):
            pieces.append(_encode_scalar(found, non_finite))
        elif level > levels:
            if not cut:
                raise RecursionError
            pieces.append(b'"nested too deeply"')
        else:
            if is_object:
                # By key as it is written: two keys may become one when their surrogates are
                # replaced.
                inner = list({_encode_key(key): each for key, each in found.items()}.items())
            else:
                inner = [(b"", each) for each in found]
            waiting.append(b"}" if is_object else b"]")
            for index in range(len(inner) - 1, -1, -1):
                key, each = inner[index]
                waiting.append((each, level + 1))
                waiting.append(b"," + key if index else key)
            waiting.append(b"{" if is_object else b"[")
    return b"".join(pieces)


def _encode_scalar(value: Any, non_finite: _NonFinite) -> bytes:
    if not isinstance(value, int):
        try:
            return to_json(value, inf_nan_mode=non_finite)
        except (ValueError, TypeError, RecursionError):
            pass
    return to_json(clean(value))


def _encode_key(key: Any) -> bytes:
    """A key of an object with its colon."""
    try:
        member = to_json({clean_text(key) if isinstance(key, str) else key: 0})
    except (ValueError, TypeError, RecursionError):
        member = to_json({clean_text(safe_str(key)): 0})
    return member[1:-2]  # without what is around it in `{"key":0}`


# --- reading --------------------------------------------------------------------------------------


def decode(data: bytes | bytearray | str) -> Any:
    """The value of a JSON text, read as leniently as Python's own parser does.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested deeper than Python's stack allows.
    """
    try:
        return from_json(data, cache_strings="keys")
    except (ValueError, TypeError):
        pass
    # Slower, and takes what the first one refuses though models and providers send it: lone
    # surrogates, deep nesting, a byte order mark (of bytes; a text's is taken off here).
    import json  # rare, and slow to import

    return json.loads(data.removeprefix("\ufeff") if isinstance(data, str) else data)


# --- replacing ------------------------------------------------------------------------------------


def clean_text(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD; the same object when there is none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # A pair in two halves (from `json` or UTF-16 input) is one character, not two
        # replacements.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def hold_half(text: str) -> tuple[str, str]:
    """`text` without half a character at its end, and that half: the next piece of a stream may
    begin with the other one.
    """
    if text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1], text[-1]
    return text, ""


def clean(value: Any, depth: int = 0) -> Any:
    """`value` as something that every JSON parser takes: what can't be written is replaced."""
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < _TOO_LARGE else "integer too large to write"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NON_FINITE[str(value)]
    if depth > _DEPTH:
        return "nested too deeply"
    if isinstance(value, Mapping):
        return {clean_text(safe_str(k)): clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v, depth + 1) for v in value]
    return clean_text(safe_str(value))


# --- comparing and copying ------------------------------------------------------------------------


def equal(left: Any, right: Any) -> bool:
    """Whether two parsed JSON values are the same value: `1` is `1.0`, but `true` is not `1`."""
    stack = [(left, right)]
    while stack:  # no recursion: a value may be nested deeper than the stack
        one, other = stack.pop()
        if isinstance(one, bool) or isinstance(other, bool):
            same = one is other
        elif isinstance(one, dict):
            same = isinstance(other, dict) and one.keys() == other.keys()
            if same:
                stack += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list):
            same = isinstance(other, list) and len(one) == len(other)
            if same:
                stack += zip(one, other, strict=True)
        else:
            same = not isinstance(other, (dict, list)) and bool(one == other)
        if not same:
            return False
    return True


def copied(value: Any, levels: int | None = None) -> Any:
    """A copy of JSON containers, tuples as lists, however deep.

    Args:
        value: JSON values.
        levels: How many levels are copied; what is nested deeper is shared. `None`: all.
    """
    root: list[Any] = [value]
    stack: list[tuple[Any, Any, int]] = [(root, 0, 0)]
    while stack:
        holder, key, level = stack.pop()
        inner = holder[key]
        if levels is not None and level >= levels:
            continue
        if isinstance(inner, dict):
            holder[key] = twin = dict(inner)
            stack += [
                (twin, k, level + 1) for k, v in twin.items() if isinstance(v, (dict, list, tuple))
            ]
        elif isinstance(inner, (list, tuple)):
            holder[key] = entries = list(inner)
            stack += [
                (entries, k, level + 1)
                for k, v in enumerate(entries)
                if isinstance(v, (dict, list, tuple))
            ]
    return root[0]


# --- arguments of calls ---------------------------------------------------------------------------


INVALID_JSON = "INVALID_JSON"
"""The key under which arguments go back that are no JSON object, where an API has one, as Anthropic
advises (fine-grained tool streaming).
"""


def parse_arguments(text: str) -> Any:
    """The JSON value of a call's arguments; nothing at all, white space and `null` are an empty
    object.

    Raises:
        ValueError: the text is not JSON (`NaN` and `Infinity` aren't, whatever Python's parser
            takes), or nested deeper than Python can follow.
    """
    if not text or text.isspace():
        return {}
    try:
        value = _strict_decoder().decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return {} if value is None else value


@cache
def _strict_decoder() -> json.JSONDecoder:
    """Made once: `json.loads` with an option makes a decoder for each text."""
    import json

    return json.JSONDecoder(parse_constant=refuse_constant)


def refuse_constant(name: str) -> Any:
    """For `json.loads(parse_constant=)`: Python's parser takes `NaN` and the infinities, and JSON
    has neither (rule C2b).
    """
    raise ValueError(f"{name} is not JSON")


def may_hold_constants(text: str) -> bool:
    """Whether a text might spell `NaN` or an infinity; one inside a string counts too."""
    return "NaN" in text or "Infinity" in text


def holds_non_finite(value: Any) -> bool:
    """Whether a parsed JSON value holds NaN or an infinity, which JSON can't write."""
    stack = [value]
    while stack:  # no recursion: a value may be nested deeper than the stack
        found = stack.pop()
        if isinstance(found, dict):
            stack += found.values()
        elif isinstance(found, (list, tuple)):
            stack += found
        elif isinstance(found, float) and not math.isfinite(found):
            return True
    return False


def equal_arguments(left: str, right: str) -> bool:
    """Whether two argument texts hold the same JSON value; texts that aren't JSON are compared as
    texts.
    """
    if left == right:
        return True
    try:
        return equal(parse_arguments(left), parse_arguments(right))
    except ValueError:
        return False


def canonical_arguments(text: str) -> str:
    """One text for all spellings of the same arguments: sorted keys, no white space; text that
    isn't JSON as it is.
    """
    # A round asks for the same call a dozen times: its place, its key, its ticket, its limits.
    if len(text) <= _LONGEST_KEPT:
        return _canonical_short(text)
    return _canonical_text(text)


def _canonical_text(text: str) -> str:
    try:
        value = parse_arguments(text)
        encode_sorted = _sorted_encoder(allow_nan=True).encode
        written = encode_sorted(value)
        # Whole numbers can only be written otherwise where there is one of these.
        if ".0" not in written and "e+" not in written:
            return written
        return encode_sorted(_canonical_numbers(value))
    except (ValueError, RecursionError):
        return text


_LONGEST_KEPT = 2_000  # characters; with 256 texts that is half a megabyte at most
_canonical_short = lru_cache(maxsize=256)(_canonical_text)


def canonical(value: Any) -> str:
    """One text for all spellings of the same JSON value: sorted keys, no white space, ASCII.

    Raises:
        ValueError: it holds NaN or an infinity. `RecursionError` where it is nested too deeply,
            `TypeError` where it is no JSON value.
    """
    text = _sorted_encoder(allow_nan=False).encode(value)
    # Whole numbers can only be written otherwise where there is one of these.
    if ".0" not in text and "e+" not in text:
        return text
    return _sorted_encoder(allow_nan=True).encode(_canonical_numbers(value))


@cache
def _sorted_encoder(*, allow_nan: bool) -> json.JSONEncoder:
    """Made once: `json.dumps` with options makes an encoder for each value."""
    import json

    return json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=allow_nan)


def _canonical_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: _canonical_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_canonical_numbers(v) for v in value]
    return value
