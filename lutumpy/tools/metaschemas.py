"""The metaschemas of JSON Schema, which schemas may name and refer to: nothing is fetched."""

# What is hard here
# -----------------
# The validator knows the metaschema of every draft, but in one schema it finds only that of the
# schema's own draft. A tool whose parameter is itself a JSON Schema refers to a metaschema, and
# often to another draft's, or says of no draft at all that it is its own. Such a schema gets a
# registry with all of them; their texts are the validator's own.
#
# `$schema` is often misspelled: `https` for `http`, or without the `#` at its end. What becomes of
# that differs between versions of the validator, so it gets the right spelling. An unknown one is
# refused: what the keywords mean would be a guess.

from __future__ import annotations

from functools import cache
from typing import Any

from lutumpy.plain.preview import shorten

__all__ = ["metaschema_registry", "with_known_draft"]

_DRAFTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)


def _strip_scheme(uri: str) -> str:
    return uri.removeprefix("https://").removeprefix("http://").removesuffix("#")


_BY_ADDRESS = {_strip_scheme(uri): uri for uri in _DRAFTS}
_BY_ADDRESS["json-schema.org/schema"] = _DRAFTS[-1]  # "the latest"


def with_known_draft(document: Any) -> Any:
    """`document` with the right spelling of its draft; the same object where nothing is wrong.

    Raises:
        ValueError: It names a draft that isn't known.
    """
    named = document.get("$schema") if isinstance(document, dict) else None
    if not isinstance(named, str):
        return document
    known = _BY_ADDRESS.get(_strip_scheme(named))
    if known is None:
        raise ValueError(f"its $schema names a draft that isn't known, {shorten(named, 200)!r}")
    return document if known == named else {**document, "$schema": known}


@cache
def metaschema_registry() -> Any:
    """The metaschemas of all drafts, for the validator; made once, in a few milliseconds."""
    import jsonschema_rs

    resources: dict[str, Any] = {}
    for uri in _DRAFTS:
        # This copies what a schema refers to into it, under its address.
        bundled: Any = jsonschema_rs.bundle({"$schema": uri, "properties": {"_": {"$ref": uri}}})
        resources |= bundled.get("definitions") or bundled["$defs"]
    return jsonschema_rs.Registry(list(resources.items()))
