"""What an adapter knows of tools: names, descriptions and schemas, never a user's classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from lutumpy.core.text_inputs import TextInput

ToolMode = Literal["auto", "required", "specific"]


class ToolSpec:
    """One tool as it is offered.

    Attributes:
        name: Its name, as the API sees it.
        description: Its description, with overrides applied.
        schema: The JSON Schema of its input (2020-12), an object at the root; never changed.
        strict: Whether the provider should enforce the schema: asked for, refused, or left open.
        text: What it says of its text, for a tool that takes one. An API that knows such tools is
            told this; any other gets the schema, an object with the one property `input`.
        rendered: A cache of JSON bytes, by each adapter's key: equal specs give equal bytes.
    """

    __slots__ = ("description", "name", "rendered", "schema", "strict", "text")

    def __init__(
        self,
        name: str,
        description: str,
        schema: Mapping[str, Any],
        strict: bool | None = None,
        text: TextInput | None = None,
    ) -> None:
        self.name: str = name
        self.description: str = description
        self.schema: Mapping[str, Any] = schema
        self.strict: bool | None = strict
        self.text: TextInput | None = text
        self.rendered: dict[str, bytes] = {}


class ToolOffering:
    """The tools of one turn, as an adapter sees them.

    Attributes:
        specs: The offered tools in order; empty when there are none.
        mode: `auto` (may call), `required` (must call something), `specific` (must call `forced`).
        forced: The name of the tool that must be called, with `specific`.
        parallel: `False` asks for at most one call; `True` leaves it to the provider.
        rendered: A cache of the offer's part of a request, as JSON bytes by each adapter's key.
    """

    __slots__ = ("forced", "mode", "parallel", "rendered", "specs")

    def __init__(
        self,
        specs: tuple[ToolSpec, ...] = (),
        mode: ToolMode = "auto",
        forced: str | None = None,
        parallel: bool = True,
    ) -> None:
        self.specs: tuple[ToolSpec, ...] = specs
        self.mode: ToolMode = mode
        self.forced: str | None = forced
        self.parallel: bool = parallel
        self.rendered: dict[str, bytes] = {}
