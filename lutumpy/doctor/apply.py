"""Repairs applied to a copy, all or none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lutumpy.doctor.check import plain_json
from lutumpy.doctor.editor import copied
from lutumpy.doctor.json_patch import PatchError, apply_operations, resolve
from lutumpy.doctor.repair import Operation, Repair
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.sdk_bytes import with_bytes

__all__ = ["apply_repairs"]


def apply_repairs(messages: Any, repairs: Iterable[Repair]) -> list[Any]:
    """A new list: the messages with the repairs carried out, one after another.

    The messages themselves are not changed. The last repairs may be left out; one from the middle
    only if no later one builds on it, which is an error otherwise. Repairs fit only the messages
    that they were proposed for: when those have changed, propose anew.

    Args:
        messages: The list that the repairs were proposed for: JSON values, or objects of the SDKs.
        repairs: What `propose_repairs` gave, in that order.

    Raises:
        TranscriptError: a repair doesn't fit: it was proposed for other messages, or one that it
            builds on is missing. Nothing was changed.
    """
    # Repairs were made for base64 texts in the place of bytes; the program gets bytes back.
    document = copied(plain_json(messages, None))
    if not isinstance(document, list):
        raise TranscriptError("repairs are for a list of messages; nothing was changed")
    for number, repair in enumerate(repairs, 1):
        if not isinstance(repair, Repair):
            raise TranscriptError(
                f"repair {number} is not a Repair but {type(repair).__name__}; nothing was changed"
            )
        # `document` is a copy of its own, so a repair that fails halfway leaves nothing behind.
        try:
            for operation in repair.patch:
                _refuse_twice(document, operation)
                document = apply_operations(document, [operation])
        except PatchError as error:
            raise TranscriptError(
                f"repair {number} ({repair.kind} at {repair.position or 'the whole'}) "
                f"doesn't fit these messages: {error}; nothing was changed"
            ) from error
    if not isinstance(document, list):
        raise TranscriptError("a repair replaced the list of messages; nothing was changed")
    mended: list[Any] = with_bytes(document)
    return mended


def _refuse_twice(document: Any, operation: Operation) -> None:
    """Refuse an addition that was made already: a patch can't test that something is missing.

    Raises:
        PatchError: the list has the new entry in its place.
    """
    path = operation.get("path")
    if operation.get("op") != "add" or not isinstance(path, str) or not path:
        return
    where, _, last = path.rpartition("/")
    entries = resolve(document, where)
    if not isinstance(entries, list) or not last.isdecimal() or int(last) >= len(entries):
        return
    if json_values.equal(entries[int(last)], operation.get("value")):
        raise PatchError(f"the entry to be added stands at {path} already")
