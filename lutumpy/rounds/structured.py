"""Structured answers: the schema that is asked for, and the value in what the model wrote."""

from __future__ import annotations

import functools
import re
from types import NoneType
from typing import Any, Generic, cast

from pydantic import BaseModel, TypeAdapter, create_model
from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import OutputSpec
from lutumpy.rounds.outcome import TurnResult
from lutumpy.tools.arguments import Refused, decode_arguments
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef, ToolOptions
from lutumpy.tools.schema import input_schema

V = TypeVar("V")

WRAPPED = "value"


class ValueReader(Generic[V]):
    """Reads values of one type out of answers.

    A pydantic model is asked for as it is; any other type as the property `value` of an object, since every API wants an
    object at the root.

    Args:
        value_type: The type: a pydantic model, or anything that pydantic has a JSON Schema for.

    Raises:
        DeclarationError: the type has no JSON Schema.
    """

    __slots__ = ("_tool", "_wrapped", "spec")

    def __init__(self, value_type: type[V]) -> None:
        name = (
            re.sub(r"[^a-zA-Z0-9_-]+", "_", getattr(value_type, "__name__", "") or "answer")[:64].strip("_") or "answer"
        )
        self._wrapped = not (isinstance(value_type, type) and issubclass(value_type, BaseModel))
        fields: Any = {WRAPPED: (value_type, ...)}
        made: Any = create_model(name, **fields) if self._wrapped else value_type
        schema, wrapped = input_schema(made)
        self.spec: OutputSpec = OutputSpec(name, schema)
        self._tool = CompiledTool(
            definition=ToolDef(name, "", schema, None, ToolOptions()),
            input_type=made,
            output_type=NoneType,
            adapter=TypeAdapter(None),
            wrapped=wrapped,
        )

    def __call__(self, turn: AssistantTurn) -> TurnResult[V]:
        """The result of an answer: with the value, or with the reason why there is none. Never raises."""
        if turn.refusal is not None or turn.finish_reason == "refusal":
            return TurnResult(turn, None, "the model refused to answer")
        text = turn.text
        if not text.strip():
            return TurnResult(turn, None, "the answer has no text")
        decoded = decode_arguments(self._tool, text)
        if isinstance(decoded, Refused):
            cut = "the answer was cut off: " if turn.cut else ""
            return TurnResult(turn, None, cut + decoded.detail)
        value: Any = decoded.input
        return TurnResult(turn, cast("V", getattr(value, WRAPPED) if self._wrapped else value))


def value_reader(value_type: Any) -> ValueReader[Any]:
    """The reader of a type; kept, as applications ask for the same few again and again."""
    try:
        return _kept_reader(value_type)
    except TypeError:
        if _hashable(value_type):
            raise
        return ValueReader(value_type)


def _hashable(value_type: Any) -> bool:
    try:
        hash(value_type)
    except TypeError:  # `Annotated` with unhashable metadata
        return False
    return True


@functools.lru_cache(maxsize=128)
def _kept_reader(value_type: Any) -> ValueReader[Any]:
    return ValueReader(value_type)
