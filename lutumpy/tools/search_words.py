"""The words by which a tool is found: those of its name, description and parameters."""

# What is particular here:
#
# - Names are code: `listPullRequests`, `gh-list_issues`. They are split where a new word begins,
#   and the whole name counts as a word too, so that whoever knows it finds it.
# - Questions and descriptions are sentences, and a word has other endings there ("converting",
#   "conversion"). So words are compared by a stem: plurals, and the endings of English that make
#   one word of another, are cut off, as in Porter's algorithm, of which this is a short form. Words
#   of other letters stay as they are.
# - A stem isn't a word, and needn't be one: it only has to be the same for words that belong
#   together.

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["FILLERS", "ToolWords", "find_words", "read_tool", "stem"]

# Words of nearly every sentence, which say nothing of a tool.
FILLERS = frozenset(
    "a about also am an and any are as at be been but by can could did do does for from had "
    "has have he hello help her hi him his how i if in into is it its just know let like "
    "looking may me might my need not now of okay on or our out please she should so some "
    "such sure tell than thanks that the their them then there these they think this those to "
    "tool us use used using want was we were what when where which who whom whose why will "
    "with would you your".split()
)
_COMPOUND = re.compile(r"[\w-]+")
_WORD = re.compile(r"[^\W_]+")
# Where a word begins inside one that is written `listPullRequests`, or `HTTPServer`.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VOWEL = re.compile("[aeiouy]")

# What an ending becomes, the longest first.
_ENDINGS = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("isation", "ize"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("ation", "ate"),
    ("ment", ""),
    ("ingly", ""),
    ("edly", ""),
    ("ing", ""),
    ("ion", ""),
    ("ed", ""),
    ("er", ""),
    ("or", ""),
    ("ly", ""),
    ("al", ""),
    ("e", ""),
)
_SHORTEST = 4  # letters of a word that has an ending
_SHORTEST_STEM = 3

_MOST_CHARACTERS = 20_000
"""Of the parameters of one tool that are read."""


class ToolWords(NamedTuple):
    """What of a tool is read, each as one text.

    Attributes:
        name: Its name.
        description: Its description.
        parameters: The names of its parameters, and of what they hold.
        explanations: Their descriptions.
        values: The texts that they may be.
    """

    name: str
    description: str
    parameters: str
    explanations: str
    values: str


def read_tool(name: str, description: str, schema: Mapping[str, Any]) -> ToolWords:
    """What of a tool is read."""
    found: dict[str, list[str]] = {"names": [], "explanations": [], "values": []}
    left = _MOST_CHARACTERS
    for kind, text in _list_texts(schema):
        left -= len(text) + 1
        if left < 0:
            break
        found[kind].append(text)
    texts = [" ".join(found[kind]) for kind in found]
    return ToolWords(name, description, *texts)


def _list_texts(schema: Any) -> Iterator[tuple[str, str]]:
    """The texts of a schema, each with what it is; in the order in which they are written."""
    stack: list[Any] = [schema]
    is_root = True
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            explanation = node.get("description")
            if isinstance(explanation, str) and not is_root:
                yield "explanations", explanation
            for value in (node.get("const"), *_list_of(node.get("enum"))):
                if isinstance(value, str):
                    yield "values", value
            named = node.get("properties")
            for name in named if isinstance(named, Mapping) else ():
                yield "names", str(name)
            inner = [value for key, value in node.items() if key not in _NO_SCHEMAS]
            stack += reversed(inner)
        elif isinstance(node, list):
            stack += reversed(node)
        is_root = False


_NO_SCHEMAS = frozenset({"enum", "const", "default", "examples", "example", "required"})


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def find_words(text: str) -> Iterator[str]:
    """The stems of the words of a text; a word made of several, and then each of them."""
    for found in _COMPOUND.finditer(text):
        compound = found.group()
        parts = [part for word in _WORD.findall(compound) for part in _HUMP.split(word)]
        if len(parts) > 1:
            yield stem(compound.casefold())
        for part in parts:
            yield stem(part.casefold())


def stem(word: str) -> str:
    """What a word has in common with its other forms; the word is in small letters."""
    if len(word) < _SHORTEST or not word.isascii():
        return word
    word = _drop_plural(word)
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            base = word[: -len(ending)]
            if len(base) >= _SHORTEST_STEM and _VOWEL.search(base):
                word = base if instead or not _is_doubled(base) else base[:-1]
                word += instead
                break
    return _drop_vowel(word)


def _drop_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _is_doubled(base: str) -> bool:
    """Whether an ending doubled the last letter: `running`, but not `calling`."""
    return len(base) > _SHORTEST_STEM and base[-1] == base[-2] and base[-1] not in "lsz"


def _drop_vowel(word: str) -> str:
    """The same without the ends that differ between forms which lost an ending and others."""
    if word.endswith("e") and len(word) > _SHORTEST:
        word = word[:-1]
    if word.endswith("y") and len(word) > _SHORTEST_STEM:
        word = word[:-1] + "i"
    if word.endswith("at") and len(word) > _SHORTEST + 1:
        word = word[:-2]
    return word
