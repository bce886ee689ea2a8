"""Text behind the JSON of a call: nothing to the call, or the rest of one that closed too early."""

# Models write a sentence behind a call now and then, before its end tag. That is dropped, and the
# call is run. But in `{"name": "delete", "args": {"path": "x"}}, "dry_run": true}}` a bracket too
# many closed the call, and the text behind it is the rest of its arguments: run without it, the
# call would do something that the model never wrote. So whatever may be a piece of JSON makes the
# call one that can't be read. In doubt the model is asked again, which costs a request; a call that
# was run can't be taken back.

from __future__ import annotations

import re

from lutumpy.plain.preview import shorten

__all__ = [
    "JSON_MARK",
    "begins_rest",
    "begins_value",
    "ends_key",
    "is_separate",
    "may_be_rest",
    "rest_detail",
    "shown_rest",
]

JSON_MARK = re.compile(r'["{}:=]')
"""What members of an object are written with; sentences of prose rarely need it."""

# What may follow a value in JSON, or follows it where a comma was forgotten.
_REST_BEGINNINGS = ("}", "]", ",", ":", '"', "{")
# A bracket that is neither a text's own, as in `[end]`, nor that of a footnote.
_ARRAY = re.compile(r"\[[^\w/]")
# Behind white space and the end of a fence: a value that is neither a string nor an object, or
# brackets of arrays.
_VALUE = re.compile(r"[\s`~\[]*(?:-?[0-9]|\]|(?:true|false|null)\b)|[\s`~]*\[(?:[^\w/]|\Z)")
# What elements and calls in Python are written with.
_OTHER_MARK = re.compile(r"[<>()']")
# Behind an element of an array: a single word in the place of the next one.
_WORD_ELEMENT = re.compile(r"\s*,\s*[\w.+-]+\s*(?:\]\s*)?")
_MOST_SHOWN = 30


def begins_rest(text: str, pos: int = 0) -> bool:
    """Whether text directly behind a call's JSON begins like more of that JSON."""
    return text.startswith(_REST_BEGINNINGS, pos) or _ARRAY.match(text, pos) is not None


def ends_key(char: str, *, attached: bool) -> bool:
    """Whether words behind a call's JSON with `char` behind them may be the rest of a key or value.

    Args:
        char: The character.
        attached: No white space is between the JSON and the words, so they aren't a sentence.
    """
    return char in '"{}]' or (attached and char in ":=,")


def begins_value(text: str) -> bool:
    """Whether text without any `JSON_MARK` begins like a JSON value or the end of an array."""
    return _VALUE.match(text) is not None


def may_be_rest(text: str) -> bool:
    """Whether text behind a call that isn't written as JSON alone may be the rest of it.

    That is what may be a piece of JSON, of an element, or of a call in Python.
    """
    text = text.strip()
    is_json = JSON_MARK.search(text) is not None or begins_rest(text) or begins_value(text)
    return is_json or _OTHER_MARK.search(text) is not None


def is_separate(text: str) -> bool:
    """Whether text behind a call in an array that is no JSON can't be a piece of that call.

    That is so for a bare word where the next call has to be, as in `[{...}, oops]`.
    """
    return _WORD_ELEMENT.fullmatch(text) is not None


def shown_rest(rest: str) -> str:
    """The beginning of such a text, in quotes."""
    return repr(shorten(rest.strip(), _MOST_SHOWN))


def rest_detail(rest: str, form: str) -> str:
    """What the model reads of a call with such a text behind it."""
    return (
        f"Behind the JSON of the tool call stands {shown_rest(rest)}, so a bracket may close it "
        f"too early, and it was not run. Write it again as {form}, with nothing behind its JSON."
    )
