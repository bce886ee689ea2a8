"""How values of parameters are spelled: the styles of OpenAPI, which are those of RFC 6570."""

# The examples of the specification (OpenAPI 3.1.1, "Style Examples"), with `color` for the name,
# `["blue", "black"]` and `{"R": 100, "G": 200}` for the values:
#
#   style            explode  array                    object
#   ---------------  -------  -----------------------  -----------------------------
#   simple           false    blue,black               R,100,G,200
#   simple           true     blue,black               R=100,G=200
#   label            false    .blue,black              .R,100,G,200
#   label            true     .blue.black              .R=100.G=200
#   matrix           false    ;color=blue,black        ;color=R,100,G,200
#   matrix           true     ;color=blue;color=black  ;R=100;G=200
#   form             false    color=blue,black         color=R,100,G,200
#   form             true     color=blue&color=black   R=100&G=200
#   spaceDelimited   false    color=blue%20black       color=R%20100%20G%20200
#   pipeDelimited    false    color=blue%7Cblack       color=R%7C100%7CG%7C200
#   deepObject       true     see below                color%5BR%5D=100&color%5BG%5D=200
#
# What is in a deep object the specification leaves open. Lists in it are numbered, as in
# `items[0][price]`: that is how the makers' own libraries send them (Stripe's, for one), since only
# so a list of objects can be told from an object of lists.
#
# A query is spelled as pairs of texts that are already encoded, the names included. The separator
# between the values of a list is not encoded, but the same character inside a value is. So a comma
# in a value doesn't become two values, and an object's value doesn't become another property of it.
# Where nothing can be encoded (a header), or the mark between values never is (a dot), a value
# that holds the mark is refused.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten

__all__ = ["SpellingError", "encode", "spell_header", "spell_path", "spell_query", "spell_scalar"]

# What may be in a query by itself without ending the value or the query. A semicolon ends the
# value to some servers.
_RESERVED = ":/?@!$'()*,"
_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}

Spell = Callable[[str], str]
Pair = tuple[str, str]


class SpellingError(ValueError):
    """Why a value has no spelling in its place, in words for the model."""


def encode(text: str, *, reserved: bool = False) -> str:
    """`text` with everything percent-encoded but the unreserved characters of RFC 3986.

    Args:
        text: Any text; lone surrogates, which UTF-8 doesn't have, become U+FFFD.
        reserved: Whether reserved characters that don't end a query's value stay.
    """
    return quote(json_values.clean_text(text), safe=_RESERVED if reserved else "")


def spell_scalar(value: Any) -> str:
    """A text, a number, a boolean, as text; null becomes an empty text.

    Raises:
        SpellingError: It is a list or an object.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, float):
        # To JSON Schema 3.0 is an integer, and servers read none in it.
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    raise SpellingError("a list or an object can't stand inside of a list or an object here")


def spell_path(name: str, value: Any, style: str, explode: bool) -> str:
    """A value in the place of `{name}` in a path: `simple`, `label` or `matrix`."""
    start, between = {"simple": ("", ","), "label": (".", "."), "matrix": (";", ";")}[style]
    if style == "matrix":
        named = f"{encode(name)}="
        if isinstance(value, Mapping) and explode:
            return start + between.join(_assign(value, encode))
        values = _list_values(value, encode)
        if explode:
            return start + between.join([named + one for one in values])
        return start + named + ",".join(values)
    if style == "label" and explode:
        _refuse_marks(value, ".")
    return start + _join(value, explode, between if explode else ",", encode)


def spell_header(value: Any, explode: bool) -> str:
    """A value of a header, in the style `simple`. Nothing in it is percent-encoded."""
    _refuse_marks(value, ",")
    if isinstance(value, Mapping) and explode and any("=" in str(key) for key in value):
        raise SpellingError("a name can't hold '=' here, which ends names")
    return _join(value, explode, ",", str)


def spell_query(
    name: str, value: Any, style: str, explode: bool, *, reserved: bool = False
) -> list[Pair]:
    """The pairs of a query that a value makes, percent-encoded. Null makes none, as do lists and
    objects that are empty.

    Args:
        name: The parameter's name.
        value: The value.
        style: `form`, `spaceDelimited`, `pipeDelimited` or `deepObject`.
        explode: Whether each value of a list or an object has a pair of its own.
        reserved: Whether reserved characters in values stay as they are.

    Raises:
        SpellingError: The style has no spelling for it.
    """

    def spell(text: str) -> str:
        return encode(text, reserved=reserved)

    if value is None or value in ([], {}):
        return []
    own = encode(name)
    if not isinstance(value, (Mapping, list)):
        return [(own, spell(spell_scalar(value)))]
    if style == "deepObject":
        return [(encode(key), spell(text)) for key, text in _flatten(name, value)]
    if explode:
        if isinstance(value, Mapping):
            kept = {key: one for key, one in value.items() if one is not None}
            return [(encode(key), spell(spell_scalar(one))) for key, one in kept.items()]
        return [(own, text) for text in _list_values(value, spell)]
    delimiter = _DELIMITERS.get(style)
    if delimiter is None:
        texts = [text.replace(",", "%2C") for text in _list_values(value, spell)]
        return [(own, ",".join(texts))]
    _refuse_marks(value, delimiter)
    return [(own, encode(delimiter).join(_list_values(value, encode)))]


def _refuse_marks(value: Any, marks: str) -> None:
    """Refuse a list or an object whose texts hold a separator."""
    for text in _list_values(value, str) if isinstance(value, (Mapping, list)) else ():
        held = [mark for mark in marks if mark in text]
        if held:
            raise SpellingError(f"a value can't hold {held[0]!r} here, which separates values")


def _join(value: Any, explode: bool, between: str, spell: Spell) -> str:
    if isinstance(value, Mapping) and explode:
        return between.join(_assign(value, spell))
    return between.join(_list_values(value, spell))


def _list_values(value: Any, spell: Spell) -> list[str]:
    """The values of a list; the names and values of an object in turns; a single value. Null is
    left out.
    """
    if isinstance(value, Mapping):
        kept = [(key, one) for key, one in value.items() if one is not None]
        return [spell(text) for key, one in kept for text in (str(key), spell_scalar(one))]
    listed = value if isinstance(value, list) else [value]
    return [spell(spell_scalar(one)) for one in listed if one is not None]


def _assign(value: Mapping[str, Any], spell: Spell) -> list[str]:
    kept = {key: one for key, one in value.items() if one is not None}
    return [f"{spell(str(key))}={spell(spell_scalar(one))}" for key, one in kept.items()]


def _flatten(name: str, value: Any) -> Iterator[Pair]:
    """`name[key]` with the text of each value; deeper objects as servers read them, `a[b][c]`."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not key or "[" in key or "]" in key:
                raise SpellingError(
                    f"a name in this place can't be empty or hold brackets: {shorten(key, 100)!r}"
                )
            yield from _flatten(f"{name}[{key}]", inner)
    elif isinstance(value, list):
        for number, inner in enumerate([one for one in value if one is not None]):
            if isinstance(inner, list):
                raise SpellingError("a list in this place can't hold lists")
            yield from _flatten(f"{name}[{number}]", inner)
    elif value is not None:
        yield name, spell_scalar(value)
