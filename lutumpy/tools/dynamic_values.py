"""What goes into a tool that is known at run time, and what comes out of it: JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic_core import SchemaValidator, core_schema, from_json
from typing_extensions import TypeAliasType

from lutumpy.core.items import FilePart, FoundTool, ImagePart, RawPart, TextPart

__all__ = [
    "DYNAMIC_OUTPUT",
    "DynamicInput",
    "DynamicOutput",
    "input_of_values",
    "values_of_json",
]


class DynamicInput(BaseModel):
    """The arguments of a call of a tool that is known at run time: JSON values by name.

    They were validated by the tool's JSON Schema. One that a program makes, `DynamicInput({"path":
    "x"})`, is validated where it is given to a call or passed on by a hook, and cleaned by the
    tool's `validate`. Names may be any: `self`, `class`, `user-id`.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", frozen=True)

    def __init__(self, values: Mapping[str, JsonValue] | None = None, /, **more: JsonValue) -> None:
        super().__init__(**{**(values or {}), **more})

    @property
    def values(self) -> Mapping[str, JsonValue]:
        """The arguments by name."""
        return cast("Mapping[str, JsonValue]", self.__pydantic_extra__)


# Pydantic takes three times as long to put values into a model one by one as to parse them, so an
# input of values that were validated is filled by the slots of its class. The validator is for
# texts that aren't JSON objects: its errors are those of other tools.
_VALIDATOR = SchemaValidator(
    core_schema.model_schema(
        DynamicInput,
        core_schema.model_fields_schema({}, extra_behavior="allow"),
        config=core_schema.CoreConfig(extra_fields_behavior="allow"),
        frozen=True,
    )
)
_SLOTS: Any = DynamicInput
_set_values: Any = _SLOTS.__pydantic_extra__.__set__
_set_names: Any = _SLOTS.__pydantic_fields_set__.__set__
_set_private: Any = _SLOTS.__pydantic_private__.__set__


def input_of_values(values: dict[str, Any]) -> DynamicInput:
    """The input of these values, which were validated and are nobody else's."""
    instance = object.__new__(DynamicInput)
    _set_values(instance, values)
    _set_names(instance, set(values))
    _set_private(instance, None)
    return instance


def values_of_json(text: str) -> dict[str, Any]:
    """The values of the text of a JSON object; raises `ValidationError` for other texts."""
    values: Any
    try:
        values = from_json(text)
    except ValueError:
        values = None
    if type(values) is not dict:
        values = _VALIDATOR.validate_json(text).__pydantic_extra__
    return values  # type: ignore[no-any-return]


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
