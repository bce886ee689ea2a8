"""A JSON Schema put under the one property of an object: tools and answers need an object (D6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from lutumpy.plain.uri_references import read_address
from lutumpy.rules.schema_references import referring_parts

__all__ = ["wrap_schema"]

_STAY_AT_ROOT = ("$schema", "$defs", "definitions")
_PART = re.compile(r"(/(?!\$defs/|%24defs/|definitions/).*)?")


def wrap_schema(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object's schema whose one property, of this name, has this schema.

    Definitions stay at the root, so that references to them hold, and so does its address; other
    references into the document lead to where its parts are now.
    """
    root = {key: document[key] for key in _STAY_AT_ROOT if key in document}
    inner = {key: value for key, value in document.items() if key not in (*_STAY_AT_ROOT, "$id")}
    address = read_address("", str(document.get("$id", "")))
    if address:
        root["$id"] = address
    wrapped = {
        "type": "object",
        "properties": {name: inner},
        "required": [name],
        "additionalProperties": False,
        **root,
    }
    if not any(referring_parts(document)):
        return wrapped
    wrapped = deepcopy(wrapped)
    for base, keyword, part in referring_parts(wrapped):
        if isinstance(part, dict) and read_address(base, part[keyword]) == address:
            fragment = _move_fragment(part[keyword].partition("#")[2], name)
            # Inside a part with an address of its own, `#` alone would name that part.
            part[keyword] = f"#{fragment}" if base == address else f"{address}#{fragment}"
    return wrapped


def _move_fragment(fragment: str, name: str) -> str:
    """The end of a reference into the document: what isn't a definition is under the property."""
    return f"/properties/{name}{fragment}" if _PART.fullmatch(fragment) else fragment
