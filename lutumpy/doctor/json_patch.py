"""JSON Patch (RFC 6902) and JSON Pointer (RFC 6901): exact edits of JSON values, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lutumpy.core import json_values

__all__ = ["PatchError", "apply_operations", "pointer", "resolve", "tokens"]


class PatchError(ValueError):
    """An operation doesn't fit the document: what it names isn't there, or isn't what a `test` expects."""


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer of a path: `/2/content/0`."""
    return "".join([f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path])


def tokens(text: str) -> list[str]:
    """The steps of a JSON Pointer.

    Raises:
        PatchError: it is no pointer.
    """
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{text!r} is no JSON Pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def resolve(document: Any, text: str) -> Any:
    """The value that a pointer names.

    Raises:
        PatchError: there is none.
    """
    node = document
    for step in tokens(text):
        node = _child(node, step, text)
    return node


def apply_operations(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Carry out operations one after another, in place; gives the document, which is another one if the root was replaced.

    A failure leaves the operations before it carried out: work on a copy.

    Raises:
        PatchError: an operation is malformed or doesn't fit; the message says which one and why.
    """
    for number, operation in enumerate(operations):
        try:
            document = _apply(document, operation)
        except PatchError as error:
            raise PatchError(f"operation {number + 1} of {len(operations)}: {error}") from None
    return document


def _apply(document: Any, operation: Mapping[str, Any]) -> Any:
    if not isinstance(operation, Mapping):
        raise PatchError(f"{operation!r} is no operation")
    kind = operation.get("op")
    path = operation.get("path")
    if not isinstance(path, str):
        raise PatchError(f"{kind!r} without a path")
    if kind in ("add", "replace", "test") and "value" not in operation:
        raise PatchError(f"{kind} {path} without a value")
    if kind == "test":
        if not json_values.equal(resolve(document, path), operation["value"]):
            raise PatchError(
                f"the value at {path or 'the root'} is another than the patch was made for"
            )
        return document
    if kind == "add":
        return _add(document, path, json_values.copied(operation["value"]))
    if kind == "remove":
        _take(document, path)
        return document
    if kind == "replace":
        return _replace(document, path, json_values.copied(operation["value"]))
    if kind in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise PatchError(f"{kind} to {path} without a from")
        if kind == "move":
            if path.startswith(f"{source}/"):
                raise PatchError(f"{source} can't be moved into itself")
            return _add(document, path, _take(document, source))
        return _add(document, path, json_values.copied(resolve(document, source)))
    raise PatchError(f"{kind!r} is no operation of JSON Patch")


def _add(document: Any, path: str, value: Any) -> Any:
    steps = tokens(path)
    if not steps:
        return value
    parent = _parent(document, steps, path)
    last = steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    else:
        parent.insert(len(parent) if last == "-" else _index(last, len(parent), path), value)
    return document


def _replace(document: Any, path: str, value: Any) -> Any:
    """In place, so that the keys of an object keep their order."""
    steps = tokens(path)
    if not steps:
        return value
    parent = _parent(document, steps, path)
    _child(parent, steps[-1], path)
    parent[steps[-1] if isinstance(parent, dict) else int(steps[-1])] = value
    return document


def _take(document: Any, path: str) -> Any:
    steps = tokens(path)
    if not steps:
        raise PatchError("the whole document can't be removed")
    parent = _parent(document, steps, path)
    _child(parent, steps[-1], path)
    return parent.pop(steps[-1] if isinstance(parent, dict) else int(steps[-1]))


def _parent(document: Any, steps: list[str], path: str) -> Any:
    node = document
    for step in steps[:-1]:
        node = _child(node, step, path)
    if not isinstance(node, (dict, list)):
        raise PatchError(f"{path} leads into a value that holds no others")
    return node


def _child(node: Any, step: str, path: str) -> Any:
    if isinstance(node, dict):
        if step not in node:
            raise PatchError(f"there is nothing at {path}")
        return node[step]
    if isinstance(node, list):
        return node[_index(step, len(node) - 1, path)]
    raise PatchError(f"{path} leads into a value that holds no others")


def _index(step: str, most: int, path: str) -> int:
    if (
        not (step.isascii() and step.isdigit())
        or (step[0] == "0" and step != "0")
        or int(step[:10]) > most
    ):
        raise PatchError(f"there is nothing at {path}")
    return int(step)
