"""What goes into a tool that is known at run time, and what comes out of it: JSON values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic_core import SchemaValidator, core_schema
from typing_extensions import TypeAliasType

from lutumpy.core.items import FilePart, FoundTool, ImagePart, RawPart, TextPart

__all__ = [
    "DYNAMIC_OUTPUT",
    "DynamicInput",
    "DynamicOutput",
    "input_of_json",
    "input_of_values",
]


class DynamicInput(BaseModel):
    """The arguments of a call of a tool that is known at run time: JSON values by name.

    They were validated by the tool's JSON Schema. One that a program makes, `DynamicInput({"path":
    "x"})`, is validated where it is given to a call or passed on by a hook. Names may be any:
    `self`, `class`, `user-id`.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    def __init__(self, values: Mapping[str, JsonValue] | None = None, /, **more: JsonValue) -> None:
        super().__init__(**{**(values or {}), **more})

    @property
    def values(self) -> Mapping[str, JsonValue]:
        """The arguments by name."""
        return cast("Mapping[str, JsonValue]", self.__pydantic_extra__)


# Pydantic would enter our `__init__` for every input that it makes of arguments. This validator of
# the same class doesn't, which halves the time.
_VALIDATOR = SchemaValidator(
    core_schema.model_schema(
        DynamicInput,
        core_schema.model_fields_schema({}, extra_behavior="allow"),
        config=core_schema.CoreConfig(extra_fields_behavior="allow"),
        frozen=True,
    )
)
input_of_json: Callable[[str], DynamicInput] = _VALIDATOR.validate_json
"""The input that the text of a JSON object makes; raises `ValidationError` for other texts."""

input_of_values: Callable[[dict[str, Any]], DynamicInput] = _VALIDATOR.validate_python
"""The input of these values, which were validated."""

DynamicOutput = TypeAliasType(
    "DynamicOutput",
    JsonValue
    | TextPart
    | ImagePart
    | FilePart
    | RawPart
    | FoundTool
    | Sequence[TextPart | ImagePart | FilePart | RawPart | FoundTool],
)
"""What a tool that is known at run time gives: a JSON value, or content parts (rule Y7)."""

DYNAMIC_OUTPUT: Any = DynamicOutput
