"""What an adapter knows of tools: names, descriptions and schemas, never a user's classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

ToolMode = Literal["auto", "required", "specific"]

SEARCH_CALL = "tool_search_call"
"""The kind of a call by which a model searches for tools, where the API has a kind of its own."""


class ToolSpec:
    """One tool as it is offered.

    Attributes:
        name: Its name, as the API sees it.
        description: Its description, with overrides applied.
        schema: The JSON Schema of its input (2020-12), an object at the root; never changed.
        strict: Whether the provider should enforce the schema: asked for, refused, or left open.
        rendered: A cache of JSON bytes, by each adapter's key: equal specs give equal bytes.
    """

    __slots__ = ("description", "name", "rendered", "schema", "strict")

    def __init__(
        self, name: str, description: str, schema: Mapping[str, Any], strict: bool | None = None
    ) -> None:
        self.name: str = name
        self.description: str = description
        self.schema: Mapping[str, Any] = schema
        self.strict: bool | None = strict
        self.rendered: dict[str, bytes] = {}


class ToolOffering:
    """The tools of one turn, as an adapter sees them.

    Attributes:
        specs: The offered tools in order; empty when there are none.
        mode: `auto` (may call), `required` (must call something), `specific` (must call `forced`).
        forced: The name of the tool that must be called, with `specific`.
        parallel: `False` asks for at most one call; `True` leaves it to the provider.
        finder: The name of the tool among `specs` that finds others, if there is one.
        deferred: Tools that the API may keep out of the prompt until a search has found them, in
            an order that stays the same; some of them may stand in `specs` as well, since they
            were found. Empty unless the model says that its API can do this.
        rendered: A cache of the offer's part of a request, as JSON bytes by each adapter's key.
    """

    __slots__ = ("deferred", "finder", "forced", "mode", "parallel", "rendered", "specs")

    def __init__(
        self,
        specs: tuple[ToolSpec, ...] = (),
        mode: ToolMode = "auto",
        forced: str | None = None,
        parallel: bool = True,
        finder: str | None = None,
        deferred: tuple[ToolSpec, ...] = (),
    ) -> None:
        self.finder: str | None = finder
        self.deferred: tuple[ToolSpec, ...] = deferred
        self.specs: tuple[ToolSpec, ...] = specs
        self.mode: ToolMode = mode
        self.forced: str | None = forced
        self.parallel: bool = parallel
        self.rendered: dict[str, bytes] = {}
