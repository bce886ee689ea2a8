"""What the decorators of functions give: the function, with its declaration beside it."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, cast

from typing_extensions import ParamSpec

from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef, ToolOptions

__all__ = ["DeclaredFunction"]

P = ParamSpec("P")


class DeclaredFunction(Generic[P]):
    """A declared function, plain or async. Calling it calls the function, unchanged."""

    __lutumpy_tool__: CompiledTool
    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], source: CompiledTool) -> None:
        update_wrapper(cast("Callable[..., Any]", self), function)
        self.__lutumpy_tool__ = source

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.__lutumpy_tool__.definition.name

    @property
    def definition(self) -> ToolDef:
        """Name, description, schemas and options."""
        return self.__lutumpy_tool__.definition

    @property
    def options(self) -> ToolOptions:
        """How the tool may be run and offered."""
        return self.__lutumpy_tool__.definition.options

    @property
    def output_type(self) -> Any:
        """The type that calling the function gives, once awaited; `NoneType` for nothing."""
        return self.__lutumpy_tool__.output_type

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function, unchanged."""
        return self.__wrapped__(*args, **kwargs)

    def __reduce__(self) -> str:
        # A module-level name: copied and pickled by reference, as functions are.
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"
