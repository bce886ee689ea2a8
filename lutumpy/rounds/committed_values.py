"""The typed value of an answer that is in a transcript already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn, ToolResults
from lutumpy.core.transcript import Transcript
from lutumpy.core.value_calls import received_value
from lutumpy.errors import TranscriptError
from lutumpy.rounds.outcome import TurnResult
from lutumpy.rounds.structured import value_reader

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.rounds.output_schema import OutputSchema

__all__ = ["read_value"]

V = TypeVar("V")


@overload
def read_value(transcript: Transcript, value: OutputSchema) -> TurnResult[JsonValue]: ...
@overload
def read_value(transcript: Transcript, value: type[V]) -> TurnResult[V]: ...
@overload
def read_value(transcript: Transcript, value: Any) -> TurnResult[Any]: ...
def read_value(transcript: Transcript, value: Any) -> TurnResult[Any]:
    """The last answer of a transcript, with its value, as a structured turn reads it.

    For programs that load a session and want the value that was given before: it is validated
    again, so that a type which has changed since is told as `value_error`.

    Args:
        transcript: The conversation.
        value: The type, or the `OutputSchema`.

    Raises:
        DeclarationError: the type has no JSON Schema.
        TranscriptError: the transcript has no answer of a model.
    """
    reader = value_reader(value)
    items = list(transcript)
    for position in range(len(items) - 1, -1, -1):
        turn = items[position]
        if not isinstance(turn, AssistantTurn):
            continue
        results = items[position + 1] if position + 1 < len(items) else None
        call = received_value(turn, results) if isinstance(results, ToolResults) else None
        if call is None:
            return reader(turn)
        read = reader.read_arguments(call.arguments)
        return TurnResult(turn, read.value, read.error)
    raise TranscriptError("the transcript has no answer of a model whose value could be read")
