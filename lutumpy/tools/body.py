"""What is in the body of a toolset and looks like a tool is one, or is refused (rule D11).

A forgotten decorator or `tool(...)` would otherwise be ignored, and the request would go out
without the tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from typing import Any

from lutumpy.errors import DeclarationError
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.dynamic_group import DynamicGroup
from lutumpy.tools.selectors import Selector
from lutumpy.tools.tool import MARK, Nested, NestedSelectors, Tool

__all__ = ["check_body"]


def check_body(body: type[Any], *, of_toolset: bool) -> None:
    """Refuse what looks like a tool in the body of a class and isn't made a member there.

    Args:
        body: The class; what it inherits isn't looked at.
        of_toolset: Whether the class is a toolset. A plain function of a mixin is a helper; a
            declared tool isn't.

    Raises:
        DeclarationError: The message says what to write.
    """
    values = vars(body).values()
    tools = [value.source for value in values if isinstance(value, Tool)]
    groups = [value.toolset for value in values if isinstance(value, Nested)]
    for name, value in vars(body).items():
        # The underscore says that it isn't a tool, whatever it looks like.
        if name.startswith("_"):
            continue
        if isinstance(value, (Tool, Nested)):
            continue
        place = f"{body.__name__}.{name}"
        if isinstance(value, (Selector, NestedSelectors, DynamicGroup)):
            raise DeclarationError(
                f"{place} names a tool or group of another toolset, {value!r}: write {name} = "
                f"tool(...) with what was declared, or {name} = nested(...) with that toolset"
            )
        is_method = isinstance(value, (staticmethod, classmethod))
        marked = value.__func__ if is_method else value
        if isinstance(value, type):
            _check_class(place, name, value, tools, groups)
        elif isinstance(declared := getattr(marked, MARK, None), CompiledTool):
            if declared not in tools:
                raise DeclarationError(
                    f"{place} is a tool without tool(): write {name} = tool(...)"
                )
        elif is_method or isinstance(value, property):
            continue
        # The function of a member may be beside it, under another name.
        elif of_toolset and _is_function(value) and not _is_wrapped(value, tools):
            raise DeclarationError(
                f"{place} is a plain function, which no model would be offered: declare it with "
                f"@tool_fn outside of the class and write {name} = tool(...); a helper's name "
                "begins with an underscore, or it is a @staticmethod"
            )


def _check_class(
    place: str,
    name: str,
    cls: type[Any],
    tools: Iterable[CompiledTool],
    groups: Iterable[type[Any]],
) -> None:
    if hasattr(cls, "__lutumpy_table__"):
        if cls not in groups:
            raise DeclarationError(
                f"{place} is a toolset without nested(): write {name} = nested(...)"
            )
        return
    is_declared = MARK in vars(cls)
    if not is_declared and not hasattr(cls, "__tool__"):
        return  # any other class, such as the type of an output
    input_types = [tool.input_type for tool in tools if tool.function is None]
    if any(issubclass(input_type, cls) for input_type in input_types):
        return  # the input class of a member, or a base of one
    first = "" if is_declared else "decorate it with @tool_input and "
    raise DeclarationError(
        f"{place} is a tool's input without tool(): {first}write {name.lower()} = "
        f"tool({cls.__name__})"
    )


def _is_function(value: Any) -> bool:
    return isinstance(value, partial) or (callable(value) and inspect.isroutine(value))


def _is_wrapped(function: Any, tools: Iterable[CompiledTool]) -> bool:
    return any(tool.function is function for tool in tools)
