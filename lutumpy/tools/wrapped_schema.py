"""A JSON Schema put under the one property of an object: tools and answers need an object (D6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from lutumpy.rules.schema_walk import walk

__all__ = ["wrap_schema"]

_STAY_AT_ROOT = ("$schema", "$defs", "definitions")
_TO_PARTS = re.compile(r"#(/(?!\$defs/|%24defs/|definitions/).*)?")


def wrap_schema(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object's schema whose one property, of this name, has this schema.

    Definitions stay at the root, so that references to them hold; other references into the
    document lead to where its parts are now.
    """
    root = {key: document[key] for key in _STAY_AT_ROOT if key in document}
    inner = {key: value for key, value in document.items() if key not in (*_STAY_AT_ROOT, "$id")}
    wrapped = {
        "type": "object",
        "properties": {name: inner},
        "required": [name],
        "additionalProperties": False,
        **root,
    }
    if "$ref" not in repr(document):
        return wrapped
    own_uri = str(document.get("$id", "")).partition("#")[0]
    wrapped = deepcopy(wrapped)
    for _, _, node in walk(wrapped):
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            node["$ref"] = _move_reference(node["$ref"], own_uri, name)
    return wrapped


def _move_reference(reference: str, own_uri: str, name: str) -> str:
    if own_uri and reference.startswith(f"{own_uri}#"):
        reference = reference.removeprefix(own_uri)
    if _TO_PARTS.fullmatch(reference):
        return f"#/properties/{name}{reference[1:]}"
    return reference
