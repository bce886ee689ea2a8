"""What a document is held against: the request before it, and who said its turns (PB19, OR7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import typer

from lutumpy.cli.documents import Document
from lutumpy.cli.inputs import Unreadable, documents
from lutumpy.cli.options import check_host
from lutumpy.cli.terminal import Output
from lutumpy.doctor import host_name
from lutumpy.models import TurnOrigin

__all__ = ["BeforeOption", "OriginModelOption", "OriginOption", "compared", "read_before"]

BeforeOption = Annotated[
    str | None,
    typer.Option(
        "--before",
        metavar="FILE",
        help="The request before this one, of the same conversation: finds signed reasoning that "
        "no longer stands behind what it was signed over, and where the prompt cache starts again.",
        show_default=False,
    ),
]
OriginOption = Annotated[
    str | None,
    typer.Option(
        "--origin",
        metavar="HOST",
        callback=check_host,
        help="The host whose model said the answers: finds what --host would not get of them.",
        show_default=False,
    ),
]
OriginModelOption = Annotated[
    str | None,
    typer.Option(
        "--origin-model",
        metavar="MODEL",
        help="The model that said the answers.",
        show_default=False,
    ),
]


class _Before(NamedTuple):
    """The request before.

    Attributes:
        file: The name of its file.
        api: Whose API it is for.
        body: It.
    """

    file: str
    api: str
    body: Mapping[str, Any]


def read_before(
    file: str | None, output: Output, api: str | None, host: str | None
) -> _Before | None:
    """The one request in a file; `None` without a file.

    Raises:
        typer.BadParameter: It can't be read, or holds another number of documents.
    """
    if file is None:
        return None
    found = list(documents([file], output, api, host))
    for entry in found:
        if isinstance(entry, Unreadable):
            raise typer.BadParameter(f"--before: {entry}")
    if len(found) != 1:
        raise typer.BadParameter(f"--before: {file} holds {len(found)} documents, and one is meant")
    (document,) = found
    assert isinstance(document, Document)
    return _Before(file, document.api, document.body)


def compared(
    entries: Iterable[Document | Unreadable],
    before: _Before | None,
    origin: str | None,
    origin_model: str | None,
) -> Iterator[Document | Unreadable]:
    """The documents, each with what it is held against. One for another API than the request before
    it can't be.
    """
    for entry in entries:
        if isinstance(entry, Unreadable):
            yield entry
        elif before is not None and before.api != entry.api:
            cause = f"it is for {entry.api}, and --before {before.file} for {before.api}"
            yield Unreadable(entry.place.file, entry.place.line, None, cause)
        else:
            turn_origin = None
            if origin is not None or origin_model is not None:
                host = None if origin is None else host_name(origin)
                turn_origin = TurnOrigin(entry.api, host, origin_model)
            body = None if before is None else before.body
            yield replace(entry, before=body, origin=turn_origin)
