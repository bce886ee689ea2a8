"""What docstrings say about a tool and its parameters (rule D3).

The reading is docstring-parser's; this module picks the style, and notices what the parser passed over in silence: it
skips sections for small faults of layout, and a description that a developer wrote must never vanish unsaid.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lutumpy.core.values import dataclass

if TYPE_CHECKING:
    from docstring_parser.common import Docstring

__all__ = ["Docs", "attribute_docstrings", "read_docstring"]


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
# Free text: part of the description before the first section, of no use to a model after it.
_TEXT_TITLES = (
    *(
        "Example",
        "Examples",
        "Note",
        "Notes",
        "Warning",
        "Warnings",
        "Warns",
        "Caution",
        "Danger",
        "Important",
    ),
    *(
        "Hint",
        "Tip",
        "Todo",
        "References",
        "See Also",
        "Side Effects",
        "Usage",
        "Exceptions",
        "Except",
        "Version",
    ),
)

_TITLE_WORDS = "|".join((*_PARAM_TITLES, "Parameter", "Argument", "Arg", "Param", *_RESULT_TITLES))
_compiled = functools.cache(re.compile)  # when the first docstring is read: slow to make
_SECTION_LINE = rf"(?i)^[ \t]*(?P<title>(?:{_TITLE_WORDS}))[ \t]*:?[ \t]*$"
_FIELD_LINE = (
    r"^[ \t]*(?P<title>[:@](?:param|parameter|arg|argument|key|keyword|type)[ \t]+[^\n]*)$"
)
_NUMPY_MARK = r"(?m)^[ \t]*(?:[-=~]{2,}[ \t]*$|\.\. )"
_SPHINX_MARK = r"(?m)^[ \t]*[:@]"
_UNDERLINE = r"^[ \t]*[-=~]{3,}[ \t]*$"
_SPHINX_KINDS = frozenset(
    {
        *(
            "param",
            "parameter",
            "arg",
            "argument",
            "attribute",
            "key",
            "keyword",
            "ivar",
            "var",
            "cvar",
            "type",
        ),
        *(
            "return",
            "returns",
            "rtype",
            "raise",
            "raises",
            "except",
            "exception",
            "yield",
            "yields",
        ),
    }
)


def read_docstring(text: str | None, names: Iterable[str], skipped: Iterable[str] = ()) -> Docs:
    """What `text` says about a tool with the parameters `names`; `skipped` may be documented and is left out."""
    if not text or not text.strip():
        return Docs("", {}, ())
    text = _with_indented_start(inspect.cleandoc(text))
    known = dict.fromkeys(names)
    hidden = frozenset(skipped)
    readings, failures = _readings(text)
    # The style that explains most wins; with nothing to read in any of them the whole text is the description.
    best = max(
        readings,
        key=lambda r: (
            sum(n in known or n in hidden for n, _ in r.entries),
            len(r.entries),
            r.sections,
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
    problems = [f"documents {name!r}, which is no parameter" for name in strangers]
    if not best.entries:
        problems += failures
    problems += _left_over(text, best)
    problems += _unread(text, [name for name in known if name not in params])
    return Docs(best.description, params, tuple(dict.fromkeys(problems)))


def _with_indented_start(text: str) -> str:
    """A docstring that begins with a section, with the entries of that indented again.

    The first line has no indentation to go by, so where nothing but the section's entries follows, they are what the margin
    is measured at; the compiler of Python 3.13 takes it away, and `cleandoc` before that.
    """
    first, _, rest = text.partition("\n")
    if not _is_section(first) or not (follows := rest.lstrip("\n")) or follows[0].isspace():
        return text
    lines = rest.split("\n")
    end = next((k for k, line in enumerate(lines) if _is_section(line)), len(lines))
    return "\n".join(
        [first, *[f"    {line}" if line else "" for line in lines[:end]], *lines[end:]]
    )


def _is_section(line: str) -> bool:
    return line.endswith(":") and line[:-1].strip() in (*_PARAM_TITLES, *_RESULT_TITLES)


@dataclass(frozen=True, slots=True)
class _Reading:
    style: str
    description: str
    entries: tuple[tuple[str, str], ...]
    sections: int


def _readings(text: str) -> tuple[list[_Reading], list[str]]:
    """`text` as each style reads it, and what the parsers complained about."""
    # Imported here: a program whose tools have no docstrings doesn't pay for it.
    from docstring_parser.common import ParseError

    # A text without the marks of a style holds nothing for its parser, and the description is what Google's finds.
    styles = ["google"]
    if _compiled(_NUMPY_MARK).search(text):
        styles.append("numpy")
    if _compiled(_SPHINX_MARK).search(text):
        styles.append("sphinx")
    readings: list[_Reading] = []
    failures: list[str] = []
    for style in styles:
        try:
            # The parsers clean the text once more. After an empty line that leaves the indentation as it is.
            parsed = _parsers()[style](f"\n{text}")
        except ParseError as error:
            if style != "sphinx" or _compiled(_FIELD_LINE).search(text):
                failures.append(f"has a section that can't be read: {_short(str(error))}")
            continue
        readings.append(_reading(style, parsed))
    if not readings:
        readings.append(_Reading("none", text, (), 0))
    return readings, failures


@functools.cache
def _parsers() -> dict[str, Callable[[str], Docstring]]:
    from docstring_parser import google, numpydoc, rest

    parser = google.GoogleParser()
    for title in _PARAM_TITLES:
        # As `add_section` does, which makes its pattern anew for each title.
        parser.sections[title] = google.Section(title, "param", google.SectionType.MULTIPLE)
    parser.add_section(parser.sections[_PARAM_TITLES[-1]])
    return {"google": parser.parse, "numpy": numpydoc.parse, "sphinx": rest.parse}


def _reading(style: str, parsed: Docstring) -> _Reading:
    entries: list[tuple[str, str]] = []
    sections = 0
    for meta in parsed.meta:
        arg_name = getattr(meta, "arg_name", None)
        if arg_name is None and len(meta.args) >= 2 and meta.args[0] in ("ivar", "var", "cvar"):
            arg_name = meta.args[-1]
        if style != "sphinx" or (meta.args and meta.args[0] in _SPHINX_KINDS) or not meta.args:
            sections += 1
        if arg_name is None:
            continue
        for name in str(arg_name).split(","):
            name = name.strip().replace("\\", "").lstrip("*")
            if name and not _compiled(_UNDERLINE).match(name):
                entries.append((name, (meta.description or "").strip()))
    short, long = parsed.short_description or "", parsed.long_description or ""
    gap = "\n\n" if parsed.blank_after_short_description else "\n"
    return _Reading(
        style, f"{short}{gap}{long}".strip() if long else short, tuple(entries), sections
    )


def _left_over(text: str, best: _Reading) -> Iterator[str]:
    """Section headers that the parser took for prose, and text that it dropped between the sections."""
    parts = [best.description]
    if (
        best.style != "google"
    ):  # NumPy and Sphinx swallow what follows into the entry before; Google drops it
        parts += [description for _, description in best.entries]
    for part in parts:
        for line in part.splitlines():
            if found := _compiled(_SECTION_LINE).match(line) or _compiled(_FIELD_LINE).match(line):
                yield f"has a section that can't be read: {_short(found['title'])!r}"
    if best.style != "google" or not best.sections:
        return
    titles = {f"{title}:" for title in (*_PARAM_TITLES, *_TEXT_TITLES, *_RESULT_TITLES)}
    rest = text.removeprefix(best.description)
    seen: set[str] = set()
    reading = False
    for line in rest.splitlines():
        if not line.strip() or line[0].isspace():
            continue
        title = line.strip()
        if title.removesuffix(":") in _PARAM_TITLES and title.endswith(":"):
            if title in seen:
                yield f"has the section {title!r} twice"
            seen.add(title)
            reading = True
        elif title in titles:
            reading = title.removesuffix(":") in (*_PARAM_TITLES, *_RESULT_TITLES)
        elif title.split(":")[0] in (*_TEXT_TITLES, *_RESULT_TITLES):
            reading = False  # "Returns: the text", on one line
        elif reading:
            yield f"has text that no section holds, check its indentation: {_short(title)!r}"


def _unread(text: str, missing: Iterable[str]) -> Iterator[str]:
    """Parameters that have a line of their own in the docstring, and no description all the same."""
    for name in missing:
        pattern = (
            rf"(?m)^[ \t]*(?:[-+*][ \t]+)?(?:[:@]\w+[ \t]+(?:[^\s:]+[ \t]+)?)?\**`{{0,2}}{re.escape(name)}`{{0,2}}"
            r"[ \t]*(?:\([^)\n]*\))?[ \t]*:[ \t]*\S"
        )
        if not (found := re.search(pattern, text)):
            continue
        line = text[found.start() :].split("\n", 1)[0].strip()
        if re.match(rf":type[ \t]+{re.escape(name)}[ \t]*:|{re.escape(name)}[ \t]+:[ \t]", line):
            continue  # a type without a description, in Sphinx' and NumPy's way
        yield f"seems to document {name!r}, but its entry could not be read: {_short(line)!r}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


# Reading source is slow, and a model is used by many tools. What a class says doesn't change; the entry goes with the class.
_SAID: WeakKeyDictionary[type, dict[str, str]] = WeakKeyDictionary()


def attribute_docstrings(cls: type) -> dict[str, str]:
    """Strings right after annotated attributes in the source of `cls`; nothing where there is no source. Not to be changed."""
    said = _SAID.get(cls)
    if said is None:
        said = _SAID[cls] = _read_attributes(cls)
    return said


def _read_attributes(cls: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError, ValueError, IndentationError):
        return {}
    statement = tree.body[0] if tree.body else None
    if not isinstance(statement, ast.ClassDef) or statement.name != cls.__name__:
        return {}
    own: dict[str, Any] = getattr(cls, "__annotations__", {})
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
