"""A toolset together with the type of its calls, so that a turn knows what its rounds hold."""

# From the class `AppTools`, a checker infers the `C` of its base `Toolset[C]` only through the
# result of a method: a parameter of the type `type[Toolset[C]]` would lose it. So turns take
# anything with the method `__view__`, which toolsets have.

from __future__ import annotations

from typing import Generic, Protocol

from typing_extensions import TypeVar

from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.selectors import BaseToolset

__all__ = ["HasView", "View"]

TS = TypeVar("TS", bound=BaseToolset)
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
V_co = TypeVar("V_co", covariant=True)


class HasView(Protocol[V_co]):
    """What takes part in a turn as its tools: a toolset class."""

    def __view__(self) -> V_co: ...


class View(Generic[TS, C]):
    """A toolset together with the type of its calls."""

    __slots__ = ("toolset",)

    def __init__(self, toolset: type[TS]) -> None:
        self.toolset: type[TS] = toolset
