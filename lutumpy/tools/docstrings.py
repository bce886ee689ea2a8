"""What docstrings say about a tool and its parameters (rule D3)."""

# What is hard here
# -----------------
# Reading is docstring-parser's work. Two things are ours.
#
# *Which style it is.* Nothing in a docstring says so. Each parser reads what it knows, and takes
# the rest for prose. So the text is read in every style whose marks it holds, and the reading that
# explains the most parameters is believed.
#
# *What was passed over.* The parsers skip a section for a small fault of layout, without a word,
# and a description that a developer wrote must never vanish silently. There is no way to ask a
# parser what it skipped, so three checks look for the traces:
#
#   trace                                                     check
#   --------------------------------------------------------  -------------------------------------
#   a section's title or a `:param` field in the description  _find_unread_sections
#   text at the margin behind the entries of a section        _find_stray_text
#   a line `name: ...` of a parameter without a description   _find_unread_entries
#
# They are heuristics, and only ever warn. A list of every title there is, and a search for sections
# that are there twice, were tried and dropped: the last check finds what such faults cost.

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from lutumpy.plain.preview import shorten
from lutumpy.plain.signatures import annotations_of
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    # Not at run time: a program whose tools have no docstrings doesn't pay for the parsers.
    from docstring_parser.common import Docstring

__all__ = ["Docs", "attribute_docstrings", "class_docstring", "read_docstring"]


@dataclass(frozen=True, slots=True)
class Docs:
    """What one docstring says.

    Attributes:
        description: The text before the sections, paragraphs kept; empty when there is none.
        params: Description by parameter name, for parameters that exist.
        problems: What could not be read or matched, as sentences for a warning.
    """

    description: str
    params: dict[str, str]
    problems: tuple[str, ...]


_PARAM_TITLES = (
    "Args",
    "Arguments",
    "Params",
    "Parameters",
    "Keyword Args",
    "Keyword Arguments",
    "Other Args",
    "Other Arguments",
    "Other Params",
    "Other Parameters",
    "Attributes",
)
_RESULT_TITLES = ("Returns", "Return", "Yields", "Yield", "Raises", "Raise")
_TITLES = (*_PARAM_TITLES, *_RESULT_TITLES)
_QUOTE_LENGTH = 80

# Patterns are compiled when the first docstring is read: all of them together are slow to make.
_compiled = functools.cache(re.compile)
_ANY_TITLE = "|".join((*_TITLES, "Parameter", "Argument", "Arg", "Param"))
_SECTION_LINE = rf"(?i)^[ \t]*(?P<title>(?:{_ANY_TITLE}))[ \t]*:?[ \t]*$"
_FIELD_LINE = (
    r"^[ \t]*(?P<title>[:@](?:param|parameter|arg|argument|key|keyword|type)[ \t]+[^\n]*)$"
)
_GOOGLE_TITLE = r"(?P<title>[A-Za-z][A-Za-z ]*):(?:[ \t]|$)"
_NUMPY_MARK = r"(?m)^[ \t]*(?:[-=~]{2,}[ \t]*$|\.\. )"
_SPHINX_MARK = r"(?m)^[ \t]*[:@]"
_UNDERLINE = r"^[ \t]*[-=~]{3,}[ \t]*$"


def read_docstring(text: str | None, names: Iterable[str], skipped: Iterable[str] = ()) -> Docs:
    """Read the docstring of a tool.

    Args:
        text: The docstring, if there is one.
        names: The tool's parameters.
        skipped: Names that may be documented, and are left out.
    """
    if not text or not text.strip():
        return Docs("", {}, ())
    text = _indent_first_section(inspect.cleandoc(text))
    known = dict.fromkeys(names)
    hidden = frozenset(skipped)
    readings, failures = _read_in_each_style(text)
    best = max(
        readings,
        key=lambda reading: (
            sum(name in known or name in hidden for name, _ in reading.entries),
            len(reading.entries),
            reading.sections,
        ),
    )
    params: dict[str, str] = {}
    strangers: list[str] = []
    for name, description in best.entries:
        if name in known:
            if description and name not in params:
                params[name] = description
        elif name not in hidden and name not in strangers:
            strangers.append(name)
    problems = [f"documents {name!r}, which is not a parameter" for name in strangers]
    if not best.entries:
        problems += failures
    problems += _find_unread_sections(best)
    if best.style == "google" and best.sections:
        problems += _find_stray_text(text.removeprefix(best.description))
    problems += _find_unread_entries(text, [name for name in known if name not in params])
    return Docs(best.description, params, tuple(dict.fromkeys(problems)))


def _indent_first_section(text: str) -> str:
    """A docstring that begins with a section, with the entries of that section indented again.

    The first line has no indentation to go by. Where nothing but the section's entries follows,
    their own indentation is what all lines have in common, and `cleandoc` takes it away; since
    Python 3.13 the compiler does so before.
    """
    first, _, rest = text.partition("\n")
    following = rest.lstrip("\n")
    if not _is_title(first) or not following or following[0].isspace():
        return text
    lines = rest.split("\n")
    end = next((index for index, line in enumerate(lines) if _is_title(line)), len(lines))
    entries = [f"    {line}" if line else "" for line in lines[:end]]
    return "\n".join([first, *entries, *lines[end:]])


def _is_title(line: str) -> bool:
    return line.endswith(":") and line[:-1].strip() in _TITLES


# --- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reading:
    """A docstring as one style reads it.

    Attributes:
        style: `google`, `numpy` or `sphinx`; `none` where no parser could read it.
        description: The text before the sections.
        entries: Names with their descriptions, in order; a name may come twice.
        sections: How many entries and sections there are, of any kind.
    """

    style: str
    description: str
    entries: tuple[tuple[str, str], ...]
    sections: int


def _read_in_each_style(text: str) -> tuple[list[_Reading], list[str]]:
    """`text` as each style reads it, and what the parsers complained about."""
    from docstring_parser.common import ParseError

    # A text without the marks of NumPy or Sphinx holds nothing for their parsers.
    styles = ["google"]
    if _compiled(_NUMPY_MARK).search(text):
        styles.append("numpy")
    if _compiled(_SPHINX_MARK).search(text):
        styles.append("sphinx")
    readings: list[_Reading] = []
    failures: list[str] = []
    for style in styles:
        try:
            # The parsers call `cleandoc` once more. Behind an empty line it changes nothing.
            parsed = _parsers()[style](f"\n{text}")
        except ParseError as error:
            # Sphinx' parser fails at any line that begins with a colon.
            if style != "sphinx" or _compiled(_FIELD_LINE).search(text):
                failures.append(f"has a section that can't be read: {_quote(str(error))}")
            continue
        readings.append(_collect_reading(style, parsed))
    if not readings:
        readings.append(_Reading("none", text, (), 0))
    return readings, failures


@functools.cache
def _parsers() -> dict[str, Callable[[str], Docstring]]:
    from docstring_parser import google, numpydoc, rest

    parser = google.GoogleParser()
    for title in _PARAM_TITLES:
        # As `add_section` does, which makes the parser's pattern anew for each title.
        parser.sections[title] = google.Section(title, "param", google.SectionType.MULTIPLE)
    parser.add_section(parser.sections[_PARAM_TITLES[-1]])
    return {"google": parser.parse, "numpy": numpydoc.parse, "sphinx": rest.parse}


def _collect_reading(style: str, parsed: Docstring) -> _Reading:
    from docstring_parser.common import DocstringMeta

    entries: list[tuple[str, str]] = []
    sections = 0
    for meta in parsed.meta:
        arg_name = getattr(meta, "arg_name", None)
        if arg_name is None and len(meta.args) >= 2 and meta.args[0] in ("ivar", "var", "cvar"):
            arg_name = meta.args[-1]
        # To Sphinx' parser any line that begins with `:word:` is a field, of no known kind.
        if style != "sphinx" or arg_name is not None or type(meta) is not DocstringMeta:
            sections += 1
        if arg_name is None:
            continue
        for name in str(arg_name).split(","):
            name = name.strip().replace("\\", "").lstrip("*")
            if name and not _compiled(_UNDERLINE).match(name):
                entries.append((name, (meta.description or "").strip()))
    description = parsed.short_description or ""
    if parsed.long_description:
        gap = "\n\n" if parsed.blank_after_short_description else "\n"
        description = f"{description}{gap}{parsed.long_description}".strip()
    return _Reading(style, description, tuple(entries), sections)


# --- what was passed over -----------------------------------------------------------------------


def _find_unread_sections(reading: _Reading) -> Iterator[str]:
    """Titles and fields that the parser took for prose."""
    parts = [reading.description]
    if reading.style != "google":
        # NumPy's and Sphinx' parsers add what they can't read to the entry before it.
        parts += [description for _, description in reading.entries]
    for part in parts:
        for line in part.splitlines():
            if found := _compiled(_SECTION_LINE).match(line) or _compiled(_FIELD_LINE).match(line):
                yield f"has a section that can't be read: {_quote(found['title'])!r}"


def _find_stray_text(text: str) -> Iterator[str]:
    """Text that Google's parser drops: it is at the margin, where only titles should be.

    Args:
        text: The docstring behind the description.
    """
    in_section = False
    for line in text.splitlines():
        if not line.strip() or line[0].isspace():
            continue
        if found := _compiled(_GOOGLE_TITLE).match(line):
            # "Note:" begins free text, and so does "Returns: the text", on one line.
            in_section = found["title"] in _TITLES and line.rstrip().endswith(":")
        elif in_section:
            yield (
                f"has text that no section holds, check its indentation: {_quote(line.strip())!r}"
            )


def _find_unread_entries(text: str, missing: Iterable[str]) -> Iterator[str]:
    """Parameters that have a line of their own in the docstring, and yet no description."""
    for name in missing:
        escaped = re.escape(name)
        # A bullet or a field's keyword and type; stars and backquotes; the name; a type in
        # brackets.
        pattern = (
            r"(?m)^[ \t]*(?:[-+*][ \t]+)?(?:[:@]\w+[ \t]+(?:[^\s:]+[ \t]+)?)?"
            rf"\**`{{0,2}}{escaped}`{{0,2}}[ \t]*(?:\([^)\n]*\))?[ \t]*:[ \t]*\S"
        )
        if not (found := re.search(pattern, text)):
            continue
        line = text[found.start() :].split("\n", 1)[0].strip()
        if re.match(rf":type[ \t]+{escaped}[ \t]*:|{escaped}[ \t]+:[ \t]", line):
            continue  # a type without a description, in Sphinx' and NumPy's way
        yield f"seems to document {name!r}, but its entry could not be read: {_quote(line)!r}"


def _quote(text: str) -> str:
    return shorten(" ".join(text.split()), _QUOTE_LENGTH)


# --- strings under attributes -------------------------------------------------------------------

# Reading source is slow, and a model is used by many tools. What a class says doesn't change, and
# an entry goes with its class.
_ATTRIBUTE_DOCSTRINGS: WeakKeyDictionary[type, dict[str, str]] = WeakKeyDictionary()


def class_docstring(cls: type) -> str | None:
    """The docstring that a user wrote into the body of `cls`; of `Page[int]`, that of `Page`.

    Pydantic makes a class of `Page[int]` that has none. The docstrings of bases aren't taken.
    """
    text: str | None = vars(cls).get("__doc__")
    origin = getattr(cls, "__pydantic_generic_metadata__", {}).get("origin")
    if text or origin is None or origin.__module__.partition(".")[0] in ("pydantic", "lutumpy"):
        return text
    return class_docstring(origin)


def attribute_docstrings(cls: type) -> dict[str, str]:
    """Strings right after annotated attributes in the source of `cls`, by attribute.

    Empty where there is no source. The result is kept for the next caller, so it isn't to be
    changed.
    """
    found = _ATTRIBUTE_DOCSTRINGS.get(cls)
    if found is None:
        found = _ATTRIBUTE_DOCSTRINGS[cls] = _read_attribute_docstrings(cls)
    return found


def _read_attribute_docstrings(cls: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError, ValueError, IndentationError):
        return {}
    statement = tree.body[0] if tree.body else None
    # `inspect` may find another class of the same name, or none at all.
    if not isinstance(statement, ast.ClassDef) or statement.name != cls.__name__:
        return {}
    own = annotations_of(cls)
    found: dict[str, str] = {}
    for here, after in zip(statement.body, statement.body[1:], strict=False):
        if (
            isinstance(here, ast.AnnAssign)
            and isinstance(here.target, ast.Name)
            and here.target.id in own
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            found[here.target.id] = inspect.cleandoc(after.value.value)
    return found
