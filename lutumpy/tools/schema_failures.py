"""Values that a JSON Schema refused: edited where the schema allows it, or explained (C5, D5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json

from lutumpy.tools.argument_edits import ArgumentRepair, Edits, SchemaLookup, find_edits
from lutumpy.tools.argument_report import Path, join_messages, spell_place, write_lines
from lutumpy.tools.json_schema import JsonSchema, SchemaFailure

__all__ = ["Mended", "mend_values", "read_value", "write_report"]

_MOST_EDITED = 1000
"""Up to how many failing places of one value are looked at for edits."""


class Mended(NamedTuple):
    """A value that fits its schema once it was edited.

    Attributes:
        value: The edited value.
        repairs: The edits that are reported.
    """

    value: Any
    repairs: tuple[ArgumentRepair, ...]


def read_value(text: str) -> Any:
    """The value of a JSON text, nested no deeper than a validator can follow.

    Raises:
        ValueError: It isn't JSON, is nested too deeply, or holds half of a surrogate pair.
    """
    try:
        return from_json(text.encode(), allow_inf_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def mend_values(schema: JsonSchema, value: Any) -> Mended | list[SchemaFailure]:
    """The value with the edits that its schema allows, or what is wrong if it doesn't fit even so.

    A null that is read as left out isn't among what is wrong.

    Args:
        schema: The schema.
        value: What doesn't fit it: JSON values. It is edited in place.
    """
    edits = _find_edits(schema, value)
    if edits.left_out:
        edits.leave_out(value)
        if schema.is_valid(value):
            return Mended(value, ())
    failures = schema.failures(value)
    if edits.decoded:
        edits.decode_texts(value)
        if schema.is_valid(value):
            return Mended(value, edits.repairs)
    return failures


def _find_edits(schema: JsonSchema, value: Any) -> Edits:
    failed = schema.failing_paths(value)
    root: Any = schema.document
    if len(failed) > _MOST_EDITED:
        return Edits()
    try:
        return find_edits(value, failed, SchemaLookup(root, root, value))
    except RecursionError:  # unions of unions of unions; the schema may be a stranger's
        return Edits()


def write_report(failures: Sequence[SchemaFailure]) -> str:
    """What is wrong, a line for each field."""
    by_path: dict[Path, list[str]] = {}
    for path, words in failures:
        by_path.setdefault(path, []).append(words)
    return write_lines(
        [*by_path], lambda path: f"{spell_place(path)}: {join_messages(by_path[path])}"
    )
