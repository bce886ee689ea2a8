"""The values that a program gives for the `Skip` parameters of a tool, checked before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from lutumpy.plain.type_checks import checked_classes, is_instance, type_name

__all__ = ["SkipValues"]


class SkipValues:
    """What the values for the `Skip` parameters of one tool have to be.

    Args:
        tool: The tool's name.
        function: Its function, which has the parameters.
        types: The parameters with their annotations.
    """

    __slots__ = ("_classes", "_function", "_tool", "_types")

    def __init__(self, tool: str, function: Callable[..., Any], types: Mapping[str, Any]) -> None:
        self._tool = tool
        self._function = function
        self._types = types
        self._classes = {name: checked_classes(annotation) for name, annotation in types.items()}

    def check_types(self, values: Mapping[str, Any]) -> None:
        """See that values are of the types of their parameters, as far as `isinstance` can tell.

        Raises:
            TypeError: Names every value that is of another type.
        """
        classes = self._classes
        for name, value in values.items():
            if not is_instance(value, classes[name]):
                self._refuse_wrong(values)

    def _refuse_wrong(self, values: Mapping[str, Any]) -> None:
        parameters = signature(self._function).parameters
        problems: list[str] = []
        for name, value in values.items():
            # A default may be none of the type's values, as `library: Skip[Library] = None` has it.
            if is_instance(value, self._classes[name]) or value is parameters[name].default:
                continue
            wanted, actual = type_name(self._types[name]), type_name(type(value))
            if actual == wanted:
                actual = f"{type(value).__module__}.{type(value).__qualname__}"
            problems.append(f"{wanted} as its Skip parameter {name!r}, not {actual}")
        if problems:
            raise TypeError(f"tool {self._tool!r} takes {', and '.join(problems)}; it was not run")
