"""Repairs applied to a copy, all or none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lutumpy.core import json_values
from lutumpy.doctor.check import plain_json
from lutumpy.doctor.editor import copied
from lutumpy.doctor.json_patch import PatchError, apply_operations, resolve
from lutumpy.doctor.repair import Operation, Repair
from lutumpy.errors import TranscriptError

__all__ = ["apply_repairs"]


def apply_repairs(messages: Any, repairs: Iterable[Repair]) -> list[Any]:
    """A new list: the messages with the repairs carried out, one after another. The messages given are not changed.

    Repairs may be left out from the end on. One from the middle may be left out if none after it builds on it; what doesn't
    fit any more is told. For messages that were repaired, propose anew: these repairs are for those they were proposed for.

    Args:
        messages: The list that the repairs were proposed for, as JSON values or objects of the SDKs.
        repairs: What `propose_repairs` gave, in that order.

    Raises:
        TranscriptError: a repair doesn't fit the messages: they are others than it was proposed for, or a repair that it
            builds on is missing. Nothing was changed.
    """
    document = copied(plain_json(messages))
    if not isinstance(document, list):
        raise TranscriptError("repairs are for a list of messages; nothing was changed")
    for number, repair in enumerate(repairs, 1):
        if not isinstance(repair, Repair):
            raise TranscriptError(
                f"repair {number} is none: {type(repair).__name__}; nothing was changed"
            )
        try:
            for operation in repair.patch:
                _refuse_twice(document, operation)
                document = apply_operations(document, [operation])
        except PatchError as error:
            raise TranscriptError(
                f"repair {number} ({repair.kind} at {repair.position or 'the whole'}) doesn't fit these messages: {error}; "
                "nothing was changed"
            ) from error
    if not isinstance(document, list):
        raise TranscriptError("a repair replaced the list of messages; nothing was changed")
    return document


def _refuse_twice(document: Any, operation: Operation) -> None:
    """Raises `PatchError` where a list has what is going to be put in there: a patch can't test that something is missing."""
    path = operation.get("path")
    if operation.get("op") != "add" or not isinstance(path, str) or not path:
        return
    where, _, last = path.rpartition("/")
    entries = resolve(document, where)
    there = int(last) if isinstance(entries, list) and last.isdecimal() else None
    if (
        there is not None
        and there < len(entries)
        and json_values.equal(entries[there], operation.get("value"))
    ):
        raise PatchError(f"what is to be added stands at {path} already")
