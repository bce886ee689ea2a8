"""An OpenAPI document and the references inside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from lutumpy.errors import DeclarationError
from lutumpy.openapi.identifiers import place_references
from lutumpy.plain.pointer import tokens
from lutumpy.plain.preview import shorten
from lutumpy.plain.safe_text import safe_repr

__all__ = ["Document", "UnusableError"]

_VERSION = re.compile(r"3\.([01])(\.\d+)?([-+.].*)?")
_DIALECTS = re.compile(
    r"https?://(spec\.openapis\.org/oas/3\.1/.*|json-schema\.org/draft/2020-12/schema)#?"
)


class UnusableError(Exception):
    """Why an operation can't be a tool, in words for the person who imports the document."""


class Document:
    """A document that was recognised.

    Args:
        source: The document as JSON values. It is kept, and never changed.

    Attributes:
        source: The document; with its references written as places, where schemas of it have an
            address (`$id`) or a name (`$anchor`).
        is_3_0: Whether its schemas are those of OpenAPI 3.0, a dialect of its own; those of 3.1
            are JSON Schema 2020-12.
        property_names: The names of properties that were looked up, by reference or by the identity
            of a schema.

    Raises:
        DeclarationError: It isn't a document of OpenAPI 3.0 or 3.1.
    """

    __slots__ = ("is_3_0", "property_names", "source")

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.property_names: dict[str | int, frozenset[str]] = {}
        self.is_3_0: bool = _read_version(source) == "0"
        # In 3.0 these words have no meaning.
        self.source: Mapping[str, Any] = source if self.is_3_0 else place_references(source)
        paths = source.get("paths", {})
        if not isinstance(paths, Mapping):
            raise DeclarationError(f"the document's `paths` is {safe_repr(paths)}, not an object")
        dialect = source.get("jsonSchemaDialect")
        if dialect is not None and not _DIALECTS.fullmatch(str(dialect)):
            raise DeclarationError(
                f"the document's schemas are of the dialect {dialect!r:.100}; JSON Schema 2020-12 "
                "is read, and that of OpenAPI"
            )

    @property
    def paths(self) -> Mapping[str, Any]:
        """The path items by their templates."""
        paths: Mapping[str, Any] = self.source.get("paths", {})
        return paths

    def find(self, reference: Any) -> Any:
        """What a reference inside the document names.

        Raises:
            UnusableError: It leads out of the document, or nowhere.
        """
        if not isinstance(reference, str):
            raise UnusableError(f"a reference must be a text, not {safe_repr(reference)}")
        shown = shorten(reference, 200)
        if reference != "#" and not reference.startswith("#/"):
            raise UnusableError(
                f"it refers to {shown!r}; only references to a place in the document, such as "
                "'#/components/schemas/Pet', are followed, and nothing is fetched"
            )
        found: Any = self.source
        for step in tokens(unquote(reference[1:])):
            if isinstance(found, Mapping) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isascii() and step.isdigit() and len(step) < 9:
                if int(step) >= len(found):
                    raise UnusableError(f"the reference {shown!r} leads nowhere")
                found = found[int(step)]
            else:
                raise UnusableError(f"the reference {shown!r} leads nowhere")
        return found

    def follow(self, value: Any, what: str) -> Mapping[str, Any]:
        """An object of the document: itself, or what the `$ref` in its place names.

        Args:
            value: The value in its place. Not a schema: references between schemas stay references.
            what: How to name it in a message.

        Raises:
            UnusableError: It isn't an object, or its reference can't be followed.
        """
        seen: set[str] = set()
        while isinstance(value, Mapping) and "$ref" in value:
            reference = value["$ref"]
            value = self.find(reference)
            if reference in seen:
                raise UnusableError(f"the reference {shorten(reference, 200)!r} leads to itself")
            seen.add(reference)
        if not isinstance(value, Mapping):
            raise UnusableError(f"{what} is {safe_repr(value)}, not an object")
        return value


def _read_version(source: Any) -> str:
    """The second number of the version: "0" or "1"."""
    if not isinstance(source, Mapping):
        raise DeclarationError(
            f"an OpenAPI document is a mapping, not {type(source).__name__}; read JSON with "
            "json.loads, and YAML with a library for it"
        )
    version = source.get("openapi")
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is not None:
        return found[1]
    if "swagger" in source:
        raise DeclarationError(
            f"the document is Swagger {source['swagger']!r:.20}; OpenAPI 3.0 and 3.1 are read, and "
            "converters exist, such as swagger2openapi"
        )
    raise DeclarationError(
        f"the document's version is openapi: {safe_repr(version)}; 3.0 and 3.1 are read"
    )
