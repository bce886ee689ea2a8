"""The tools that were offered, as the readers of an answer know them.

`Offer` is built on this and reads answers itself, so it needs the readers. What the readers need of
an offer is here, so that they don't need `Offer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic

from typing_extensions import TypeVar

from lutumpy.core.tool_names import names_by_digest, replaced_digest
from lutumpy.core.tool_specs import ToolMode, ToolOffering, ToolSpec
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.selectors import Selector

__all__ = ["NO_TOOLS", "OfferedTools"]

C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)


class OfferedTools(ToolOffering, Generic[C_co]):
    """The tools of one turn, and how their calls are read.

    Attributes:
        selectors: The offered tools, in order.
        offered: Their names.
        by_name: Every tool of the toolset by name, offered or not: a call of one that wasn't
            offered has another issue than a call of an unknown one.
    """

    __slots__ = ("_by_digest", "by_name", "offered", "selectors")

    def __init__(
        self,
        selectors: tuple[Selector[Any, Any, Any], ...] = (),
        by_name: Mapping[str, Selector[Any, Any, Any]] | None = None,
        specs: tuple[ToolSpec, ...] = (),
        mode: ToolMode = "auto",
        forced: str | None = None,
        parallel: bool = True,
        stable_specs: tuple[ToolSpec, ...] | None = None,
        finder: str | None = None,
    ) -> None:
        # For adapters it is names, texts and schemas; the selectors are for the way back.
        super().__init__(specs, mode, forced, parallel, stable_specs, finder)
        self.selectors: tuple[Selector[Any, Any, Any], ...] = selectors
        self.offered: frozenset[str] = frozenset([s.name for s in selectors])
        self.by_name: Mapping[str, Selector[Any, Any, Any]] = by_name or {}
        # Made when the first call with a replaced name comes.
        self._by_digest: dict[str, str] | None = None

    def takes_kind(self, name: str, kind: str) -> bool:
        """Whether a tool takes calls of a kind that one API has for it, such as `shell_call`: it
        has the name that the kind says, and takes the place of a tool that the API has typed.
        """
        if kind != f"{name}_call" or name not in self.offered:
            return False
        spec = next((spec for spec in self.specs if spec.name == name), None)
        return spec is not None and any("type" in settings for settings in spec.provider.values())

    def own_name(self, name: str) -> str:
        """The tool's own name for one that an API was told in its place (rule R2); any other name
        is its own.
        """
        digest = replaced_digest(name)
        if digest is None:
            return name
        if self._by_digest is None:
            self._by_digest = names_by_digest([*self.by_name, *[spec.name for spec in self.specs]])
        return self._by_digest.get(digest, name)


NO_TOOLS: OfferedTools[Any] = OfferedTools()
"""What a turn without tools reads its answer with: every call is unknown."""
