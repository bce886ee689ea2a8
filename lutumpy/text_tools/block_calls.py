"""The calls of a block that has ended: whole, cut by the end of the text, or broken."""

# A block holds one JSON value or several. Each is a call or an array of calls, or the arguments of
# a bare name that comes before it. What can't be read reaches back to the last value that is a
# call for sure: behind one that closed too early, `, {"a": 2}]}}` isn't a call of its own.

from __future__ import annotations

from collections.abc import Sequence

from lutumpy.text_tools.json_scanner import JsonScanner
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.trailing_text import rest_detail
from lutumpy.text_tools.written_calls import (
    CallForm,
    broken_calls,
    broken_detail,
    cut_calls,
    cut_detail,
    element_call,
    may_become_call,
    read_name,
)

__all__ = ["BlockValue", "read_broken", "read_cut", "read_whole"]


class BlockValue:
    """A JSON value in a block, with the bare name before it where there is one."""

    __slots__ = ("name", "scanner", "start")

    def __init__(self, name: str | None, start: int) -> None:
        self.name: str | None = name
        self.start: int = start
        self.scanner: JsonScanner = JsonScanner(start, calls=name is None)


def read_whole(raw: str, values: Sequence[BlockValue], form: CallForm) -> list[ParsedCall]:
    """The calls of complete values.

    Args:
        raw: The text of the block, start tag included.
        values: Its values.
        form: How calls have to be written.
    """
    calls: list[ParsedCall] = []
    for value in values:
        scanner = value.scanner
        if value.name is not None:
            calls.append(ParsedCall(value.name, raw[value.start : scanner.offset]))
        else:
            calls += [element_call(raw, element, form) for element in scanner.elements]
    return calls


def read_cut(
    raw: str, values: Sequence[BlockValue], ends: tuple[str, ...], form: CallForm
) -> list[ParsedCall]:
    """The calls of values of which the last is cut by the end of the text (rule T2).

    Args:
        raw: The text of the block, start tag included.
        values: Its values, one at least.
        ends: The end tags of the block.
        form: How calls have to be written.
    """
    last = values[-1]
    if last.name is not None:
        cut = ParsedCall(last.name, raw[last.start :], "truncated", cut_detail(last.name))
        return [*read_whole(raw, values[:-1], form), cut]
    if all(may_become_call(raw, element) for element in last.scanner.elements):
        cut_ones = cut_calls(raw, last.scanner, ends, form)
        return [*read_whole(raw, values[:-1], form), *cut_ones]
    index = _last_named(raw, values)
    if values[index] is last:
        cut_ones = cut_calls(raw, last.scanner, ends, form)
    else:
        cut_ones = [
            ParsedCall(name, raw[values[index].start :], "truncated", cut_detail(name))
            for name in _names_in(raw, values[index], form)
        ]
    return [*read_whole(raw, values[:index], form), *cut_ones]


def read_broken(
    raw: str, values: Sequence[BlockValue], end: int, form: CallForm
) -> list[ParsedCall]:
    """The calls of values of which the last is broken, or has its possible rest behind it.

    Args:
        raw: The text of the block, start tag included.
        values: Its values, one at least.
        end: Where what belongs to the last value ends.
        form: How calls have to be written.
    """
    index = _last_named(raw, values)
    before, last = read_whole(raw, values[:index], form), values[index]
    if not last.scanner.done and last.name is None:
        detail = broken_detail(raw, last.start, last.scanner, form)
        return [*before, *broken_calls(raw, last.scanner, end, detail, form)]
    if last.scanner.done:
        detail = rest_detail(raw[last.scanner.offset : end], form.spelled)
    else:
        detail = broken_detail(raw, last.start, last.scanner, form)
    written = raw[last.start : end].rstrip()
    names = _names_in(raw, last, form)
    return [*before, *[ParsedCall(name, written, "malformed", detail) for name in names]]


def _last_named(raw: str, values: Sequence[BlockValue]) -> int:
    """The place of the last value that is a call for sure; 0 where none is."""
    for index in range(len(values) - 1, 0, -1):
        value = values[index]
        if value.name is not None:
            return index
        if any(read_name(raw, element) for element in value.scanner.elements):
            return index
    return 0


def _names_in(raw: str, value: BlockValue, form: CallForm) -> list[str]:
    """The names of its calls; one that is empty where it holds none."""
    if value.name is not None:
        return [value.name]
    return [element_call(raw, one, form).name for one in value.scanner.elements] or [""]
