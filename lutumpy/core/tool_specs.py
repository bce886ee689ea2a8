"""What an adapter knows of tools: names, descriptions and schemas, never a user's classes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from lutumpy.plain.json_values import encode

if TYPE_CHECKING:
    from lutumpy.core.text_inputs import TextInput

O = TypeVar("O", bound="ToolOffering")

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
        provider: What one API alone is told of it, by the API's name; each adapter puts its part
            into the tool. Not to be changed.
        text: What it says of its text, for a tool that takes one. An API that knows such tools is
            told this; any other gets the schema, an object with the one property `input`.
        late: Whether its result may come later; an API is told that knows open calls.
        rendered: A cache of JSON bytes, by each adapter's key: equal specs give equal bytes.
    """

    __slots__ = ("description", "late", "name", "provider", "rendered", "schema", "strict", "text")

    def __init__(
        self,
        name: str,
        description: str,
        schema: Mapping[str, Any],
        strict: bool | None = None,
        provider: Mapping[str, Mapping[str, Any]] | None = None,
        text: TextInput | None = None,
        late: bool = False,
    ) -> None:
        self.late: bool = late
        self.name: str = name
        self.description: str = description
        self.schema: Mapping[str, Any] = schema
        self.strict: bool | None = strict
        self.provider: Mapping[str, Mapping[str, Any]] = {} if provider is None else provider
        self.text: TextInput | None = text
        self.rendered: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<ToolSpec {self.name}>"

    def equals(self, other: ToolSpec) -> bool:
        """Whether the other one says the same: any API would be sent the same bytes for it."""
        return self is other or (
            self.name == other.name
            and self.description == other.description
            and self.strict == other.strict
            and self.late == other.late
            and self.text == other.text
            # As JSON, in which 1 is not true and the order of keys is seen.
            and encode(self.schema) == encode(other.schema)
            and encode(self.provider) == encode(other.provider)
        )

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, ToolSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)


class ToolOffering:
    """The tools of one turn, as an adapter sees them.

    Attributes:
        specs: The offered tools in order; empty when there are none.
        mode: `auto` (may call), `required` (must call something), `specific` (must call `forced`).
        forced: The name of the tool that must be called, with `specific`.
        parallel: `False` asks for at most one call; `True` leaves it to the provider.
        stable_specs: The tools to send in place of `specs`, where the API can say beside them which
            the model may call: they are the same whatever `specs` is narrowed to, so that the
            provider's cache of the prompt holds. They include all of `specs`. `None` where
            `specs` is sent; an API that can't say it sends `specs` in any case.
        finder: The name of the tool among `specs` that finds others, if there is one.
        deferred: Tools that the API may keep out of the prompt until a search has found them, in
            an order that stays the same; some of them may be in `specs` as well, since they
            were found. Empty unless the model says that its API can do this.
        has_text_tools: Whether a tool among these takes a text.
        has_late_tools: Whether the result of one of these may come later.
        is_unconstrained: Whether the model may call any of the tools that are sent, several at
            once, or none: then the list of tools says all there is to say.
        rendered: A cache of the offer's part of a request, as JSON bytes by each adapter's key.
        listed: A cache of the tools as values, by each adapter's key; nobody else gets these lists.
    """

    __slots__ = (
        "_waiting",
        "deferred",
        "finder",
        "forced",
        "has_late_tools",
        "has_text_tools",
        "is_unconstrained",
        "listed",
        "mode",
        "parallel",
        "rendered",
        "specs",
        "stable_specs",
    )

    def __init__(
        self,
        specs: tuple[ToolSpec, ...] = (),
        mode: ToolMode = "auto",
        forced: str | None = None,
        parallel: bool = True,
        stable_specs: tuple[ToolSpec, ...] | None = None,
        finder: str | None = None,
        deferred: tuple[ToolSpec, ...] = (),
    ) -> None:
        self.finder: str | None = finder
        self.deferred: tuple[ToolSpec, ...] = deferred
        self.specs: tuple[ToolSpec, ...] = specs
        self.mode: ToolMode = mode
        self.forced: str | None = forced
        self.parallel: bool = parallel
        self.stable_specs: tuple[ToolSpec, ...] | None = stable_specs
        listed = specs if stable_specs is None else stable_specs
        self.has_text_tools: bool = any(spec.text is not None for spec in (*listed, *deferred))
        self._waiting: Any = None
        self.has_late_tools: bool = False
        for spec in (*listed, *deferred):
            if spec.late:
                self.has_late_tools = True
        self.is_unconstrained: bool = mode == "auto" and parallel and len(specs) == len(listed)
        self.rendered: dict[str, bytes] = {}
        self.listed: dict[str, list[dict[str, Any]]] = {}

    def equals(self, other: ToolOffering) -> bool:
        """Whether the other one offers the same: any API would be sent the same bytes for it."""
        return self is other or (
            (self.mode, self.forced, self.parallel, self.finder)
            == (other.mode, other.forced, other.parallel, other.finder)
            and self.specs == other.specs
            and self.stable_specs == other.stable_specs
            and self.deferred == other.deferred
        )

    def has_tools_of(self, base: ToolOffering) -> bool:
        """Whether it sends the very tools of a base, in their order."""
        if self.stable_specs is not None or self.deferred or base.deferred:
            return False
        one, other = self.specs, base.specs
        return one is other or (len(one) == len(other) and all(map(is_, one, other)))

    def deferring(self) -> ToolOffering:
        """The same tools for an API that loads tools on demand; this one where none is deferred."""
        return self

    def waiting(self: O) -> O:
        """The same tools for who waits for every result: none is said to be late.

        Where none is, it is this one. It is made once.
        """
        if not self.has_late_tools:
            return self
        kept: O | None = self._waiting
        if kept is None:
            kept = copy(self)
            kept.has_late_tools = False
            kept.specs = _without_late(self.specs)
            if self.stable_specs is not None:
                kept.stable_specs = _without_late(self.stable_specs)
            kept.deferred = _without_late(self.deferred)
            kept.rendered, kept.listed = {}, {}
            self._waiting = kept
        return kept

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief_list

        names = brief_list([spec.name for spec in self.specs], 70) or "no tools"
        return f"<ToolOffering {self.mode}: {names}>"


def _without_late(specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    return tuple(
        [
            ToolSpec(s.name, s.description, s.schema, s.strict, s.provider, s.text) if s.late else s
            for s in specs
        ]
    )
