"""What a program printed, as the JSON value that its manifest declares."""

# toolclad gives the raw text where the output can't be read, and calls that a success. Here
# whatever doesn't fit raises `ValueError`: the model would take half of it for the whole.

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree

from lutumpy.plain.json_values import refuse_constant
from lutumpy.plain.preview import shorten
from lutumpy.tools.json_schema import JsonSchema

__all__ = ["PARSERS", "OutputReader"]

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
_MOST_LEVELS = 90
_MOST_TOLD = 3


class OutputReader:
    """Reads what one program prints.

    Args:
        parser: A key of `PARSERS`.
        schema: JSON Schema of what was read; empty where everything fits.

    Raises:
        ValueError: The schema can't be used.
    """

    __slots__ = ("_parse", "_schema", "parser")

    def __init__(self, parser: str, schema: Mapping[str, Any]) -> None:
        self.parser: str = parser
        self._parse = PARSERS[parser]
        self._schema = JsonSchema(dict(schema)) if schema else None

    @property
    def takes_beginnings(self) -> bool:
        """Whether the beginning of an output that is too long says anything."""
        return self.parser == "builtin:text"

    def read(self, text: str) -> dict[str, Any]:
        """The results; raises `ValueError` where the text isn't what the manifest declares."""
        try:
            value = _check_json(self._parse(text))
            misfits = [] if self._schema is None else self._schema.failures(value)
        except RecursionError:
            raise ValueError("the output is nested too deeply") from None
        if misfits:
            listed = "; ".join([_describe(path, words) for path, words in misfits[:_MOST_TOLD]])
            raise ValueError(f"the output doesn't fit its schema: {listed}")
        return value if isinstance(value, dict) else {"parsed_output": value}


def _check_json(value: Any) -> Any:
    """`value`, if it can be sent: `1e999` is read as an infinity, and nesting has an end."""
    waiting = [(value, 1)]
    while waiting:
        found, level = waiting.pop()
        if isinstance(found, (dict, list)):
            if level > _MOST_LEVELS:
                raise ValueError("the output is nested too deeply")
            inner = found.values() if isinstance(found, dict) else found
            waiting += [(one, level + 1) for one in inner]
        elif isinstance(found, float) and not math.isfinite(found):
            raise ValueError("the output has a number that is too large for JSON")
    return value


def _describe(path: tuple[str | int, ...], words: str) -> str:
    place = ".".join(map(str, path))
    return shorten(f"{place}: {words}" if place else words, 300)


def _parse_text(text: str) -> Any:
    return {"raw_output": text}


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except ValueError as error:
        raise ValueError(f"the output is not JSON: {error}") from None


def _parse_json_lines(text: str) -> Any:
    # JSON may hold other line ends in its strings, so only this one ends a line.
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [json.loads(line, parse_constant=refuse_constant) for line in lines]
    except ValueError as error:
        raise ValueError(f"the output is not JSON lines: {error}") from None


def _parse_csv(text: str) -> Any:
    """An object for each row, by the names in the first one."""
    header = text.split("\n", 1)[0]
    if "\t" in header:
        delimiter = "\t"
    else:
        delimiter = "|" if "|" in header and "," not in header else ","
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ValueError(f"the output is not CSV: {error}") from None
    rows = [row for row in rows if row]
    if not rows:
        return []
    names, *records = rows
    if len(set(names)) != len(names):
        raise ValueError("the output is not CSV: two columns have one name")
    for number, record in enumerate(records, 2):
        if len(record) != len(names):
            raise ValueError(
                f"the output is not CSV: row {number} has {len(record)} cells, not {len(names)}"
            )
    return [dict(zip(names, map(_read_cell, record), strict=True)) for record in records]


def _read_cell(cell: str) -> Any:
    """A cell as a number or boolean where it is spelled as JSON spells it, else as text.

    `007` stays a text: its zeros mean something.
    """
    cell = cell.strip()
    if cell.lower() in ("true", "false"):
        return cell.lower() == "true"
    return json.loads(cell) if _NUMBER.fullmatch(cell) else cell


def _parse_xml(text: str) -> Any:
    """The root element as an object: attributes under `@name`, text under `#text`."""
    if "<!ENTITY" in text:
        raise ValueError("the output is XML that defines entities, which are not expanded")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"the output is not XML: {error}") from None
    return {root.tag: _read_element(root)}


def _read_element(element: ElementTree.Element) -> dict[str, Any]:
    found: dict[str, Any] = {f"@{name}": value for name, value in element.attrib.items()}
    if element.text and element.text.strip():
        found["#text"] = element.text.strip()
    children: dict[str, list[Any]] = {}
    for child in element:
        children.setdefault(child.tag, []).append(_read_element(child))
    for tag, values in children.items():
        found[tag] = values[0] if len(values) == 1 else values
    return found


PARSERS: Mapping[str, Callable[[str], Any]] = {
    "builtin:text": _parse_text,
    "builtin:json": _parse_json,
    "builtin:jsonl": _parse_json_lines,
    "builtin:csv": _parse_csv,
    "builtin:xml": _parse_xml,
}
"""What reads an output, by the name that a manifest gives it."""
