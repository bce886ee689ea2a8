"""The words of `openai`: Chat Completions and Responses, its beta included."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_args

import openai
from openai.types import beta, chat, responses
from openai.types.beta import beta_response
from openai.types.beta import response_create_params as beta_create
from openai.types.beta.beta_response_input_item_param import BetaResponseInputItemParam
from openai.types.beta.beta_response_stream_event import BetaResponseStreamEvent
from openai.types.beta.beta_responses_server_event import BetaResponsesServerEvent
from openai.types.beta.beta_tool_param import BetaToolParam
from openai.types.chat import chat_completion_chunk, completion_create_params
from openai.types.responses import response as response_module
from openai.types.responses import response_create_params
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from openai.types.responses.response_stream_event import ResponseStreamEvent
from openai.types.responses.responses_server_event import ResponsesServerEvent
from openai.types.responses.tool_param import ToolParam
from sdk_words.read_types import fields_of, sample_of, tags_of, words_of
from sdk_words.words import Word

__all__ = ["chat_words", "response_words", "version"]

version: str = f"openai {openai.__version__}"


def _exceptions() -> Iterator[Word]:
    for name, kind in inspect.getmembers(openai, inspect.isclass):
        if issubclass(kind, Exception) and not name.startswith("_"):
            yield Word("error", name, f"openai.{name}", kind)


def _fields(kind: str, model: Any) -> Iterator[Word]:
    for name, annotation in fields_of(model).items():
        sample = sample_of(annotation, full=kind == "field")
        yield Word(kind, name, f"{model.__name__}.{name}", sample)


def _tagged(kind: str, union: Any, where: str, tag: str = "type") -> Iterator[Word]:
    for word, member in tags_of(union, tag).items():
        yield Word(kind, word, f"{where}: {member.__name__}", {**sample_of(member), tag: word})


def chat_words() -> Iterator[Word]:
    """The words of Chat Completions."""
    yield from _fields("option", completion_create_params.CompletionCreateParamsNonStreaming)
    yield from _fields("option", completion_create_params.CompletionCreateParamsStreaming)
    yield from _tagged("tool", chat.ChatCompletionToolUnionParam, "ChatCompletionToolUnionParam")
    yield from _tagged(
        "input", chat.ChatCompletionMessageParam, "ChatCompletionMessageParam", "role"
    )
    for union in (
        chat.ChatCompletionContentPartParam,
        chat.chat_completion_assistant_message_param.ContentArrayOfContentPart,
    ):
        yield from _tagged("input", union, "content of a message")
    for name, annotation in fields_of(chat.ChatCompletionMessage).items():
        sample = sample_of(annotation)
        yield Word("block", name, f"ChatCompletionMessage.{name}", sample)
    yield from _tagged("item", chat.ChatCompletionMessageToolCallUnion, "tool_calls of a message")
    yield from _fields("field", chat.ChatCompletion)
    choice = fields_of(chat.chat_completion.Choice)
    for name in choice:
        sample = sample_of(choice[name], full=True)
        yield Word("field", f"choice.{name}", f"Choice.{name}", sample)
    for word in words_of(choice["finish_reason"]):
        yield Word("finish", word, "Choice.finish_reason")
    chunk_choice = fields_of(chat_completion_chunk.Choice)
    for word in words_of(chunk_choice["finish_reason"]):
        yield Word("finish", word, "chat_completion_chunk.Choice.finish_reason")
    for name in fields_of(chat.ChatCompletionChunk):
        yield Word("event", name, f"ChatCompletionChunk.{name}")
    for name, annotation in fields_of(chat_completion_chunk.ChoiceDelta).items():
        yield Word("delta", name, f"ChoiceDelta.{name}", sample_of(annotation))
    yield from _exceptions()


def response_words() -> Iterator[Word]:
    """The words of Responses."""
    for module in (response_create_params, beta_create):
        yield from _fields("option", module.ResponseCreateParamsNonStreaming)
        yield from _fields("option", module.ResponseCreateParamsStreaming)
    for union, name in ((ToolParam, "ToolParam"), (BetaToolParam, "BetaToolParam")):
        yield from _tagged("tool", union, name)
    outputs: set[str] = set()
    for output, name in (
        (responses.ResponseOutputItem, "ResponseOutputItem"),
        (beta.BetaResponseOutputItem, "BetaResponseOutputItem"),
    ):
        for word in _tagged("item", output, name):
            outputs.add(word.word)
            yield word
    for inputs, name in (
        (ResponseInputItemParam, "ResponseInputItemParam"),
        (BetaResponseInputItemParam, "BetaResponseInputItemParam"),
    ):
        yield from (word for word in _tagged("input", inputs, name) if word.word not in outputs)
    for union in (responses.ResponseInputContentParam, beta.BetaResponseInputContentParam):
        yield from _tagged("input", union, "content of an input message")
    for message in (responses.ResponseOutputMessage, beta.BetaResponseOutputMessage):
        (part,) = get_args(fields_of(message)["content"])
        yield from _tagged("block", part, f"{message.__name__}.content")
    for events, name in (
        (ResponseStreamEvent, "ResponseStreamEvent"),
        (BetaResponseStreamEvent, "BetaResponseStreamEvent"),
        (ResponsesServerEvent, "ResponsesServerEvent"),
        (BetaResponsesServerEvent, "BetaResponsesServerEvent"),
    ):
        yield from _tagged("event", events, name)
    for module, model in (
        (response_module, responses.Response),
        (beta_response, beta.BetaResponse),
    ):
        yield from _fields("field", model)
        for word in words_of(fields_of(model)["status"]):
            yield Word("finish", f"status {word}", f"{model.__name__}.status")
        for word in words_of(fields_of(module.IncompleteDetails)["reason"]):
            yield Word("finish", word, f"{model.__name__}.incomplete_details.reason")
    for error in (responses.ResponseError, beta.BetaResponseError):
        for word in words_of(fields_of(error)["code"]):
            yield Word("error", word, f"{error.__name__}.code")
    yield from _exceptions()
