"""JSON as this library writes and compares it: one encoder, so that equal values give equal bytes
everywhere.

A transcript must be sendable at any moment, and some values that Python accepts are refused by
every provider: lone surrogates (not encodable as UTF-8), NaN and infinities (not JSON). They are
replaced here, on the way in, only when met.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from json import encoder as json_encoder
from typing import Any

from lutumpy.core.safe_text import safe_str

_DEPTH = 200
_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _encoder() -> Callable[[Any], str]:
    """`JSONEncoder.encode`, but made once: the standard one builds its C part anew for each value,
    for most of the time.

    It watches for no circle; one ends in a `RecursionError`, as what is nested too deeply does.
    """
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
    )
    make: Any = json_encoder.c_make_encoder  # type: ignore[attr-defined]  # not in the stubs
    if make is None:  # an interpreter without it
        return encoder.encode
    quoted: Any = json_encoder.encode_basestring
    pieces: Any = make(None, encoder.default, quoted, None, ":", ",", False, False, False)

    def encode_one(value: Any) -> str:
        return "".join(pieces(value, 0))

    return encode_one


_encode = _encoder()


def encode(value: Any) -> bytes:
    """`value` as compact UTF-8 JSON; total for anything that `json` can hold, see the module's note
    on replacements.
    """
    try:
        return _encode(value).encode()
    except (ValueError, TypeError, RecursionError):
        return _encode(clean(value)).encode()


def encode_text(value: Any) -> str:
    """As `encode`, as text."""
    return encode(value).decode()


def decode(data: bytes | str) -> Any:
    """The value of a JSON text that `encode` wrote."""
    return json.loads(data)


def clean_text(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD; the same object when there is none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # A pair that stands as two halves (from `json` or UTF-16 input) is one character, not two
        # replacements.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean(value: Any, depth: int = 0) -> Any:
    """`value` as something that every JSON parser takes: the slow way, only for values that
    `encode` refused.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() < 10_000 else "integer too large to write"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NON_FINITE[str(value)]
    if depth > _DEPTH:
        return "nested too deeply"
    if isinstance(value, Mapping):
        return {clean_text(safe_str(k)): clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v, depth + 1) for v in value]
    return clean_text(safe_str(value))


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
            holder[key] = made = dict(inner)
            stack += [
                (made, k, level + 1) for k, v in made.items() if isinstance(v, (dict, list, tuple))
            ]
        elif isinstance(inner, (list, tuple)):
            holder[key] = entries = list(inner)
            stack += [
                (entries, k, level + 1)
                for k, v in enumerate(entries)
                if isinstance(v, (dict, list, tuple))
            ]
    return root[0]


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
        value = json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return {} if value is None else value


def refuse_constant(name: str) -> Any:
    """For `json.loads(parse_constant=)`: Python's parser takes `NaN` and the infinities, and JSON
    has neither (rule C2b).
    """
    raise ValueError(f"{name} is not JSON")


def may_hold_constants(text: str) -> bool:
    """Whether a text might spell `NaN` or an infinity; one where it stands in a string counts, too."""
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


def as_written(value: Any) -> str:
    """`value` as text with NaN and infinities by their names, so that a reader sees what stood
    there: this isn't JSON.
    """
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (ValueError, TypeError, RecursionError):
        return encode_text(value)


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
    try:
        return json.dumps(
            _canonical_numbers(parse_arguments(text)), sort_keys=True, separators=(",", ":")
        )
    except (ValueError, RecursionError):
        return text


def _canonical_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: _canonical_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_canonical_numbers(v) for v in value]
    return value
