"""What a model wrote as a call, taken apart: its name and the text of its arguments, or what is wrong with it."""

from __future__ import annotations

from typing import Literal

from lutumpy.text_tools.json_scanner import Element, JsonScanner
from lutumpy.text_tools.protocol import ParsedCall

__all__ = ["ARGUMENT_KEYS", "broken_detail", "cut_calls", "cut_detail", "element_call", "spoiled"]

ARGUMENT_KEYS = ("args", "arguments", "parameters")
"""The keys under which arguments are read (rule T1)."""

_SHOWN = 30


def cut_detail(name: str) -> str:
    """What the model is told of a call that the text ends in."""
    what = f"The call of {name}" if name else "A tool call"
    return f"{what} was cut off before it was complete, so it was not run. Write it again, complete and shorter."


def broken_detail(raw: str, start: int, scanner: JsonScanner, form: str) -> str:
    """What the model is told where a call stopped being JSON."""
    before = raw[max(start, scanner.offset - _SHOWN) : scanner.offset]
    return f"The tool call is not valid JSON: expected {scanner.broken} after {before!r}. Write it again as {form}."


def cut_calls(raw: str, scanner: JsonScanner, ends: tuple[str, ...], form: str) -> list[ParsedCall]:
    """The calls of a JSON text that the answer ended in: complete ones are kept (rule T2)."""
    calls = [element_call(raw, element, form) for element in scanner.elements if element.end >= 0]
    last = scanner.elements[-1] if scanner.elements else None
    if last is not None and last.end < 0:
        name, arguments = _as_far_as_read(raw, last)
        swallowed = next(
            (end for end in ends if scanner.in_string and end in raw[scanner.string_start :]), None
        )
        if swallowed is not None:
            detail = f"A string in the tool call is not closed before {swallowed}. Write it again as {form}."
            calls.append(ParsedCall(name, raw[last.start :], "malformed", detail))
        else:
            calls.append(ParsedCall(name, arguments, "truncated", cut_detail(name)))
    elif scanner.awaits_element:
        calls.append(ParsedCall("", "", "truncated", cut_detail("")))
    return calls


def spoiled(raw: str, scanner: JsonScanner, end: int, detail: str, form: str) -> list[ParsedCall]:
    """The calls of a text that stopped being JSON inside of it: the ones before are kept (rule C1)."""
    calls = [element_call(raw, element, form) for element in scanner.elements if element.end >= 0]
    last = scanner.elements[-1] if scanner.elements else None
    if last is not None and last.end < 0:
        name, _ = _as_far_as_read(raw, last)
        calls.append(ParsedCall(name, raw[last.start : end].rstrip(), "malformed", detail))
    else:
        calls.append(ParsedCall("", raw[scanner.offset : end].rstrip(), "malformed", detail))
    return calls


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
    name = _name(found.get("name", ""))
    if problem is None and not name:
        problem = 'The tool call has no "name" with the name of a tool'
    if problem is not None:
        return ParsedCall(name, written, "malformed", f"{problem}. Write it again as {form}.")
    return ParsedCall(name, found.get("arguments", "{}"))


def _as_far_as_read(raw: str, element: Element) -> tuple[str, str]:
    """Name and arguments of an element that isn't complete."""
    name = arguments = ""
    for member in element.members:
        key = raw[member.key_start : member.key_end]
        if key == "name" and member.end >= 0:
            name = _name(raw[member.start : member.end])
        elif key in ARGUMENT_KEYS:
            arguments = raw[member.start : member.end] if member.end >= 0 else raw[member.start :]
    return name, arguments


def _name(written: str) -> str:
    """The text of a JSON string that stands for a name; no name of a tool needs an escape."""
    return written[1:-1] if len(written) > 2 and written[0] == '"' else ""
