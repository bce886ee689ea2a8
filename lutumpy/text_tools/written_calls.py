"""What a model wrote as a call, taken apart: name and arguments, or what is wrong with it."""

# A call stays text here: name and arguments are cut out at the places that the scanner noted, and
# nothing is decoded. The arguments reach the round as the model wrote them, and are validated once.

from __future__ import annotations

from typing import Literal

from lutumpy.text_tools.json_scanner import Element, JsonScanner
from lutumpy.text_tools.protocol import ParsedCall

__all__ = [
    "ARGUMENT_KEYS",
    "broken_calls",
    "broken_detail",
    "cut_calls",
    "cut_detail",
    "element_call",
]

ARGUMENT_KEYS = ("args", "arguments", "parameters")
"""The keys under which arguments are read (rule T1)."""

_MOST_SHOWN = 30


def cut_detail(name: str) -> str:
    """What the model reads of a call that the text ends in."""
    call = f"The call of {name}" if name else "A tool call"
    return (
        f"{call} was cut off before it was complete, so it was not run. "
        "Write it again, complete and shorter."
    )


def broken_detail(raw: str, start: int, scanner: JsonScanner, form: str) -> str:
    """What the model reads where a call stopped being JSON."""
    before = raw[max(start, scanner.offset - _MOST_SHOWN) : scanner.offset]
    return (
        f"The tool call is not valid JSON: expected {scanner.broken} after {before!r}. "
        f"Write it again as {form}."
    )


def cut_calls(raw: str, scanner: JsonScanner, ends: tuple[str, ...], form: str) -> list[ParsedCall]:
    """The calls of a JSON text that the answer ended in: complete ones are kept (rule T2)."""
    calls, last = _split_last(raw, scanner, form)
    if last is not None:
        name, arguments = _read_incomplete(raw, last)
        # An end tag in an open string: the model forgot a quote, and the answer is whole.
        tail = raw[scanner.string_start :] if scanner.in_string else ""
        end = next((end for end in ends if end in tail), None)
        if end is None:
            calls.append(ParsedCall(name, arguments, "truncated", cut_detail(name)))
        else:
            detail = (
                f"A string in the tool call is not closed before {end}. Write it again as {form}."
            )
            calls.append(ParsedCall(name, raw[last.start :], "malformed", detail))
    elif scanner.awaits_element:
        calls.append(ParsedCall("", "", "truncated", cut_detail("")))
    return calls


def broken_calls(
    raw: str, scanner: JsonScanner, end: int, detail: str, form: str
) -> list[ParsedCall]:
    """The calls of a text that stopped being JSON: those before that place are kept (rule C1)."""
    calls, last = _split_last(raw, scanner, form)
    if last is None:
        calls.append(ParsedCall("", raw[scanner.offset : end].rstrip(), "malformed", detail))
    else:
        name, _ = _read_incomplete(raw, last)
        calls.append(ParsedCall(name, raw[last.start : end].rstrip(), "malformed", detail))
    return calls


def _split_last(
    raw: str, scanner: JsonScanner, form: str
) -> tuple[list[ParsedCall], Element | None]:
    """The complete calls, and the element behind them that is not complete."""
    calls = [element_call(raw, element, form) for element in scanner.elements if element.end >= 0]
    last = scanner.elements[-1] if scanner.elements else None
    return calls, last if last is not None and last.end < 0 else None


def element_call(raw: str, element: Element, form: str) -> ParsedCall:
    """A complete element as a call, or what is wrong with it."""
    written = raw[element.start : element.end]
    found: dict[Literal["name", "arguments"], str] = {}
    problem: str | None = None if element.is_object else "A tool call is a JSON object"
    for member in element.members:
        key = raw[member.key_start : member.key_end]
        if key != "name" and key not in ARGUMENT_KEYS:
            continue
        kind: Literal["name", "arguments"] = "name" if key == "name" else "arguments"
        if kind in found:
            problem = f"The tool call has more than one {kind}"
        found[kind] = raw[member.start : member.end]
    name = _unquote_name(found.get("name", ""))
    if problem is None and not name:
        problem = 'The tool call has no "name" with the name of a tool'
    if problem is not None:
        return ParsedCall(name, written, "malformed", f"{problem}. Write it again as {form}.")
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


def _unquote_name(written: str) -> str:
    """The text of a JSON string that stands for a name; no name of a tool needs an escape."""
    return written[1:-1] if len(written) > 2 and written[0] == '"' else ""
