"""The words of `anthropic`: the Messages API, its beta included."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import anthropic
from anthropic import types
from anthropic.lib.streaming import BetaMessageStreamEvent, MessageStreamEvent
from anthropic.types import beta, message_create_params
from anthropic.types.beta import message_create_params as beta_create
from anthropic.types.shared import error_object
from sdk_words.read_types import fields_of, sample_of, tags_of, words_of
from sdk_words.words import Word

__all__ = ["message_words", "version"]

version: str = f"anthropic {anthropic.__version__}"


def _tagged(kind: str, union: Any, where: str) -> Iterator[Word]:
    for word, member in tags_of(union).items():
        yield Word(kind, word, f"{where}: {member.__name__}", {**sample_of(member), "type": word})


def message_words() -> Iterator[Word]:
    """The words of the Messages API."""
    for module in (message_create_params, beta_create):
        for params in (
            module.MessageCreateParamsNonStreaming,
            module.MessageCreateParamsStreaming,
        ):
            for name, annotation in fields_of(params).items():
                yield Word("option", name, f"{params.__name__}.{name}", sample_of(annotation))
    for tools in (types.ToolUnionParam, beta.BetaToolUnionParam):
        yield from _tagged("tool", tools, "ToolUnionParam")
    answered: set[str] = set()
    for blocks, name in (
        (types.ContentBlock, "ContentBlock"),
        (beta.BetaContentBlock, "BetaContentBlock"),
    ):
        for word in _tagged("block", blocks, name):
            answered.add(word.word)
            yield word
    for blocks, name in (
        (types.ContentBlockParam, "ContentBlockParam"),
        (beta.BetaContentBlockParam, "BetaContentBlockParam"),
    ):
        yield from (word for word in _tagged("input", blocks, name) if word.word not in answered)
    for message in (types.Message, beta.BetaMessage):
        for name, annotation in fields_of(message).items():
            yield Word("field", name, f"{message.__name__}.{name}", sample_of(annotation))
    for delta in (types.raw_message_delta_event.Delta, beta.beta_raw_message_delta_event.Delta):
        for name, annotation in fields_of(delta).items():
            yield Word("field", name, f"message_delta: {name}", sample_of(annotation))
    for events, name in (
        (types.RawMessageStreamEvent, "RawMessageStreamEvent"),
        (beta.BetaRawMessageStreamEvent, "BetaRawMessageStreamEvent"),
        (MessageStreamEvent, "helper streams"),
        (BetaMessageStreamEvent, "helper streams, beta"),
    ):
        yield from _tagged("event", events, name)
    for deltas in (types.RawContentBlockDelta, beta.BetaRawContentBlockDelta):
        for word, member in tags_of(deltas).items():
            yield Word(
                "delta", word, member.__name__, {**sample_of(member, full=True), "type": word}
            )
    for reasons in (types.StopReason, beta.BetaStopReason):
        for word in words_of(reasons):
            yield Word("finish", word, "StopReason")
    for errors in (error_object.ErrorObject, types.BetaError):
        for word, member in tags_of(errors).items():
            yield Word("error", word, member.__name__)
    for name, kind in inspect.getmembers(anthropic, inspect.isclass):
        if issubclass(kind, Exception) and not name.startswith("_"):
            yield Word("error", name, f"anthropic.{name}", kind)
