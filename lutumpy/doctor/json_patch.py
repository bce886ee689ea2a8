"""JSON Patch (RFC 6902): exact edits of JSON values, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.pointer import tokens

__all__ = ["PatchError", "apply_operations", "resolve"]


class PatchError(ValueError):
    """An operation doesn't fit the document.

    What it names isn't there, or isn't what a `test` expects, or the operation is malformed.
    """


def _steps_of(pointer: Any) -> list[str]:
    """The steps of a JSON Pointer.

    Raises:
        PatchError: it is not a pointer.
    """
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f"{pointer!r} is not a JSON Pointer")
    return tokens(pointer)


def resolve(document: Any, text: str) -> Any:
    """The value that a pointer names.

    Raises:
        PatchError: there is none.
    """
    node = document
    for step in _steps_of(text):
        node = _find_child(node, step, text)
    return node


def apply_operations(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Carry out operations one after another, in place.

    A failure leaves the operations before it carried out: work on a copy.

    Returns:
        The document; another object than before if an operation replaced the root.

    Raises:
        PatchError: an operation is malformed or doesn't fit; the message says which one and why.
    """
    for number, operation in enumerate(operations):
        try:
            document = _apply_one(document, operation)
        except PatchError as error:
            raise PatchError(f"operation {number + 1} of {len(operations)}: {error}") from None
    return document


def _apply_one(document: Any, operation: Mapping[str, Any]) -> Any:
    if not isinstance(operation, Mapping):
        raise PatchError(f"{operation!r} is not an operation")
    kind = operation.get("op")
    path = operation.get("path")
    if not isinstance(path, str):
        raise PatchError(f"the operation {kind!r} has no path")
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise PatchError(f"{kind} {path} has no value")
    if kind == "test":
        if not json_values.equal(resolve(document, path), operation["value"]):
            raise PatchError(
                f"the value at {path or 'the root'} is not the one that the patch was made for"
            )
        return document
    if kind == "add":
        return _add(document, path, json_values.copied(operation["value"]))
    if kind == "remove":
        _remove(document, path)
        return document
    if kind == "replace":
        return _replace(document, path, json_values.copied(operation["value"]))
    if kind in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise PatchError(f"{kind} to {path} has no from")
        if kind == "move":
            if path.startswith(f"{source}/"):
                raise PatchError(f"{source} can't be moved into itself")
            return _add(document, path, _remove(document, source))
        return _add(document, path, json_values.copied(resolve(document, source)))
    raise PatchError(f"{kind!r} is not an operation of JSON Patch")


def _add(document: Any, path: str, value: Any) -> Any:
    steps = _steps_of(path)
    if not steps:
        return value
    parent = _find_parent(document, steps, path)
    last = steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    else:
        parent.insert(len(parent) if last == "-" else _read_index(last, len(parent), path), value)
    return document


def _replace(document: Any, path: str, value: Any) -> Any:
    """In place, so that the keys of an object keep their order."""
    steps = _steps_of(path)
    if not steps:
        return value
    parent = _find_parent(document, steps, path)
    _find_child(parent, steps[-1], path)
    parent[steps[-1] if isinstance(parent, dict) else int(steps[-1])] = value
    return document


def _remove(document: Any, path: str) -> Any:
    steps = _steps_of(path)
    if not steps:
        raise PatchError("the whole document can't be removed")
    parent = _find_parent(document, steps, path)
    _find_child(parent, steps[-1], path)
    return parent.pop(steps[-1] if isinstance(parent, dict) else int(steps[-1]))


def _find_parent(document: Any, steps: list[str], path: str) -> Any:
    node = document
    for step in steps[:-1]:
        node = _find_child(node, step, path)
    if not isinstance(node, (dict, list)):
        raise PatchError(f"{path} leads into a value without entries")
    return node


def _find_child(node: Any, step: str, path: str) -> Any:
    if isinstance(node, dict):
        if step not in node:
            raise PatchError(f"there is nothing at {path}")
        return node[step]
    if isinstance(node, list):
        return node[_read_index(step, len(node) - 1, path)]
    raise PatchError(f"{path} leads into a value without entries")


def _read_index(step: str, most: int, path: str) -> int:
    is_number = step.isascii() and step.isdigit()
    has_leading_zero = step.startswith("0") and step != "0"
    # Python refuses to read thousands of digits as a number; ten are more than any list has.
    if not is_number or has_leading_zero or int(step[:10]) > most:
        raise PatchError(f"there is nothing at {path}")
    return int(step)
