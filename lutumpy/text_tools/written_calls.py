"""What a model wrote as a call, taken apart: name and arguments, or what is wrong with it."""

# A call stays text here: name and arguments are cut out at the places that the scanner noted, and
# nothing is decoded. The arguments reach the round as the model wrote them, and are validated once.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from lutumpy.plain.values import dataclass
from lutumpy.text_tools.json_scanner import Element, JsonScanner
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.trailing_text import is_separate

__all__ = [
    "ARGUMENT_KEYS",
    "CallForm",
    "broken_calls",
    "broken_detail",
    "cut_calls",
    "cut_detail",
    "element_call",
    "may_become_call",
    "read_name",
]

ARGUMENT_KEYS = ("args", "arguments", "parameters")
"""The keys under which arguments are read (rule T1)."""

# Members that say nothing about what the call does, by key. Llama's models write the first, and
# Mistral's the second, whose templates refuse ids of any other form. Every other member beside name
# and arguments is an argument that is in the wrong place.
_TYPE: Mapping[str, re.Pattern[str]] = {"type": re.compile(r'"function"')}
_TYPE_AND_ID: Mapping[str, re.Pattern[str]] = {**_TYPE, "id": re.compile(r'"[A-Za-z0-9]{9}"')}
_CALL_KEYS = frozenset({"name", *ARGUMENT_KEYS, *_TYPE_AND_ID})

_MOST_SHOWN = 30


@dataclass(frozen=True, slots=True)
class CallForm:
    """How calls have to be written.

    Attributes:
        spelled: An example, for the text about a call that can't be read.
        has_ids: Whether a model writes ids of its own into its calls; they aren't used.
    """

    spelled: str
    has_ids: bool = False


def cut_detail(name: str) -> str:
    """What the model reads of a call that the text ends in."""
    call = f"The call of {name}" if name else "A tool call"
    return (
        f"{call} was cut off before it was complete, so it was not run. "
        "Write it again, complete and shorter."
    )


def broken_detail(raw: str, start: int, scanner: JsonScanner, form: CallForm) -> str:
    """What the model reads where a call stopped being JSON."""
    before = raw[max(start, scanner.offset - _MOST_SHOWN) : scanner.offset]
    return (
        f"The tool call is not valid JSON: expected {scanner.broken} after {before!r}. "
        f"Write it again as {form.spelled}."
    )


def cut_calls(
    raw: str, scanner: JsonScanner, ends: tuple[str, ...], form: CallForm
) -> list[ParsedCall]:
    """The calls of a JSON text that the answer ended in: complete ones are kept (rule T2)."""
    calls, last = _split_last(raw, scanner, len(raw), form)
    if last is not None:
        name, arguments = _read_incomplete(raw, last)
        # An end tag in an open string: the model forgot a quote, and the answer is whole.
        tail = raw[scanner.string_start :] if scanner.in_string else ""
        end = next((end for end in ends if end in tail), None)
        if end is None:
            calls.append(ParsedCall(name, arguments, "truncated", cut_detail(name)))
        else:
            detail = (
                f"A string in the tool call is not closed before {end}. "
                f"Write it again as {form.spelled}."
            )
            calls.append(ParsedCall(name, raw[last.start :], "malformed", detail))
    elif scanner.awaits_element:
        calls.append(ParsedCall("", "", "truncated", cut_detail("")))
    return calls


def broken_calls(
    raw: str, scanner: JsonScanner, end: int, detail: str, form: CallForm
) -> list[ParsedCall]:
    """The calls of a text that stopped being JSON: those before that place are kept (rule C1)."""
    calls, last = _split_last(raw, scanner, end, form)
    if last is None:
        calls.append(ParsedCall("", raw[scanner.offset : end].rstrip(), "malformed", detail))
    else:
        name, _ = _read_incomplete(raw, last)
        calls.append(ParsedCall(name, raw[last.start : end].rstrip(), "malformed", detail))
    return calls


def _split_last(
    raw: str, scanner: JsonScanner, end: int, form: CallForm
) -> tuple[list[ParsedCall], Element | None]:
    """The calls that are complete for sure, and the element behind them that is not.

    In `[{...}, "dry_run": true}]` the text stops being JSON, or is cut, behind a call and not
    inside of one. It may be the rest of that call, which a bracket too many has closed.
    """
    elements = scanner.elements
    if not elements:
        return [], None
    index = len(elements) - 1
    while index > 0 and not read_name(raw, elements[index]):
        index -= 1
    named, last = elements[index], elements[-1]
    if named.end >= 0 and read_name(raw, named):
        if scanner.broken is None:
            is_continued = named is not last and not may_become_call(raw, last)
        else:
            is_continued = not is_separate(raw[named.end : end])
        if is_continued:
            return _read_elements(raw, elements[:index], form), named
    if last.end >= 0:
        return _read_elements(raw, elements, form), None
    return _read_elements(raw, elements[:-1], form), last


def may_become_call(raw: str, element: Element) -> bool:
    """Whether an element in which the text was cut may be the beginning of a call."""
    return element.is_object and all(
        raw[member.key_start : member.key_end] in _CALL_KEYS for member in element.members
    )


def _read_elements(raw: str, elements: Sequence[Element], form: CallForm) -> list[ParsedCall]:
    return [element_call(raw, element, form) for element in elements]


def element_call(raw: str, element: Element, form: CallForm) -> ParsedCall:
    """A complete element as a call, or what is wrong with it."""
    written = raw[element.start : element.end]
    found: dict[Literal["name", "arguments"], str] = {}
    ignored = _TYPE_AND_ID if form.has_ids else _TYPE
    problem: str | None = None if element.is_object else "A tool call is a JSON object"
    misplaced: str | None = None
    for member in element.members:
        key = raw[member.key_start : member.key_end]
        value = raw[member.start : member.end]
        if key != "name" and key not in ARGUMENT_KEYS:
            if key not in ignored or ignored[key].fullmatch(value) is None:
                misplaced = key
            continue
        kind: Literal["name", "arguments"] = "name" if key == "name" else "arguments"
        if kind in found:
            problem = f"The tool call has more than one {kind}"
        found[kind] = value
    name = _unquote_name(found.get("name", ""))
    if problem is None and not name:
        problem = 'The tool call has no "name" with the name of a tool'
    if problem is None and misplaced is not None:
        problem = (
            f"{misplaced[:_MOST_SHOWN]!r} stands beside the arguments of the tool call, "
            "not among them"
        )
    if problem is not None:
        detail = f"{problem}. Write it again as {form.spelled}."
        return ParsedCall(name, written, "malformed", detail)
    return ParsedCall(name, found.get("arguments", "{}"))


def _read_incomplete(raw: str, element: Element) -> tuple[str, str]:
    """Name and arguments of an element that isn't complete, as far as they were written."""
    name = arguments = ""
    for member in element.members:
        key = raw[member.key_start : member.key_end]
        if key == "name" and member.end >= 0:
            name = _unquote_name(raw[member.start : member.end])
        elif key in ARGUMENT_KEYS:
            arguments = raw[member.start : member.end] if member.end >= 0 else raw[member.start :]
    return name, arguments


def read_name(raw: str, element: Element) -> str:
    """The name in an element, complete or not; empty where none is known."""
    return _read_incomplete(raw, element)[0]


def _unquote_name(written: str) -> str:
    """The text of a JSON string that stands for a name; no name of a tool needs an escape."""
    return written[1:-1] if len(written) > 2 and written[0] == '"' else ""
