"""The operations of a document: what a person says about them, and what a request needs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lutumpy.openapi.addresses import PathTemplate, read_template
from lutumpy.openapi.bodies import Body, read_body
from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.parameters import Parameter, read_parameters
from lutumpy.openapi.sendable import check_sendable
from lutumpy.plain.values import dataclass

__all__ = ["METHODS", "Listed", "Operation", "Taken", "list_operations", "read_taken"]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a document.

    Attributes:
        original_name: Its `operationId`; method and path, as `"GET /pets/{id}"`, where it has none
            or shares it with another operation.
        method: The HTTP method, in capitals.
        path: The path with the names of parameters in braces, as the document writes it. What
            follows a `#` is a name, and never sent.
        summary: The document's line about it.
        description: What the document says about it at length.
        tags: Its tags.
        deprecated: Whether the document advises against it.
        servers: The addresses at which the document offers it: those of the operation, else of the
            path, else of the document, with the default values of their variables.
        security: The names of the security schemes that it asks for: one of these sets, and all of
            the set. Empty where it asks for none.
        definition: The Operation Object itself. Not to be changed.
    """

    original_name: str
    method: str
    path: str
    summary: str
    description: str
    tags: tuple[str, ...]
    deprecated: bool
    servers: tuple[str, ...]
    security: tuple[tuple[str, ...], ...]
    definition: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Method and path: `"GET /pets/{id}"`."""
        return f"{self.method} {self.path}"


class Listed(NamedTuple):
    """An operation and the path item that it is in."""

    operation: Operation
    item: Mapping[str, Any]


class Taken(NamedTuple):
    """What an operation takes, and where it is sent."""

    template: PathTemplate
    parameters: tuple[Parameter, ...]
    body: Body | None


def list_operations(document: Document) -> tuple[list[Listed], dict[str, str]]:
    """All operations in the order of the document, and why a part of it has none that can be read.

    The reasons are by the path, or by method and path.
    """
    found: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = []
    skipped: dict[str, str] = {}
    for path, entry in document.paths.items():
        if not isinstance(path, str) or path.startswith("x-"):
            continue
        try:
            item = document.follow(entry, "the path item")
        except UnusableError as error:
            skipped[path] = str(error)
            continue
        for method in METHODS:
            definition = item.get(method)
            if isinstance(definition, Mapping):
                found.append((method.upper(), path, item, definition))
            elif definition is not None:
                skipped[f"{method.upper()} {path}"] = "the operation is not an object"
    names = _name_operations([(method, path, raw) for method, path, _, raw in found])
    listed = [
        Listed(_make_operation(document, name, method, path, item, raw), item)
        for name, (method, path, item, raw) in zip(names, found, strict=True)
    ]
    return listed, skipped


def _name_operations(found: Sequence[tuple[str, str, Mapping[str, Any]]]) -> Iterator[str]:
    ids = [raw.get("operationId") for _, _, raw in found]
    labels = [f"{method} {path}" for method, path, _ in found]
    counts: dict[str, int] = {}
    for text in [one for one in ids if isinstance(one, str)] + labels:
        counts[text] = counts.get(text, 0) + 1
    for own, label in zip(ids, labels, strict=True):
        # An id that two operations have names neither of them.
        yield own if isinstance(own, str) and own and counts[own] == 1 else label


def _make_operation(
    document: Document,
    name: str,
    method: str,
    path: str,
    item: Mapping[str, Any],
    raw: Mapping[str, Any],
) -> Operation:
    tags = raw.get("tags")
    servers = [raw.get("servers"), item.get("servers"), document.source.get("servers")]
    return Operation(
        name,
        method,
        path,
        _text(raw.get("summary")) or _text(item.get("summary")),
        _text(raw.get("description")) or _text(item.get("description")),
        tuple([tag for tag in tags if isinstance(tag, str)]) if isinstance(tags, list) else (),
        raw.get("deprecated") is True,
        tuple(_read_servers(next((one for one in servers if one), None))),
        _read_security(raw.get("security", document.source.get("security"))),
        raw,
    )


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _read_servers(servers: Any) -> Iterator[str]:
    for server in servers if isinstance(servers, list) else ():
        url = server.get("url") if isinstance(server, Mapping) else None
        if not isinstance(url, str):
            continue
        variables = server.get("variables")
        yield _fill_variables(url, variables if isinstance(variables, Mapping) else {})


def _fill_variables(url: str, variables: Mapping[str, Any]) -> str:
    """An address with the default values of its variables, none of which is looked at again."""

    def fill(found: re.Match[str]) -> str:
        variable = variables.get(found[1])
        if isinstance(variable, Mapping) and "default" in variable:
            return str(variable["default"])
        return found[0]

    return re.sub(r"\{([^{}]*)\}", fill, url)


def _read_security(security: Any) -> tuple[tuple[str, ...], ...]:
    listed = security if isinstance(security, list) else []
    return tuple([tuple(map(str, one)) for one in listed if isinstance(one, Mapping)])


def read_taken(document: Document, listed: Listed, segments: Collection[str]) -> Taken:
    """The parameters and the body of an operation.

    Raises:
        UnusableError: They can't all be sent, one that is required can never be, or the path leads
            out of a server's address.
    """
    template = read_template(listed.operation.path)
    raw = listed.operation.definition
    lists = [listed.item.get("parameters", []), raw.get("parameters", [])]
    parameters, template = read_parameters(document, template, lists, segments)
    body = read_body(document, raw.get("requestBody"))
    check_sendable(document, parameters, body)
    return Taken(template, parameters, body)
