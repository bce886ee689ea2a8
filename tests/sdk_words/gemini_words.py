"""The words of `google-genai`: generateContent and streamGenerateContent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from google import genai
from google.genai import errors, models, types
from sdk_words.read_types import fields_of, sample_of
from sdk_words.words import Word

__all__ = ["generate_words", "version"]

version: str = f"google-genai {genai.__version__}"


def _options() -> Iterator[Word]:
    """The fields of `GenerateContentConfig` where the SDK puts them in a body: at the top, or in
    the `generationConfig`; the rest is for the SDK itself.
    """
    source = "".join(
        inspect.getsource(getattr(models, f"_GenerateContentConfig_to_{host}"))
        for host in ("mldev", "vertex")
    )
    for name, annotation in fields_of(types.GenerateContentConfig).items():
        word = f"config.{name}"
        if re.search(rf"setv\(\s*parent_object,\s*\['{name}'", source):
            word = name
        elif re.search(rf"setv\(\s*to_object,\s*\['{name}'", source):
            word = f"generationConfig.{name}"
        where = f"GenerateContentConfig.{name}"
        yield Word("option", word, where, sample_of(annotation, full=True))


def _fields(kind: str, model: Any, prefix: str = "") -> Iterator[Word]:
    for name, annotation in fields_of(model).items():
        where = f"{model.__name__}.{name}"
        yield Word(kind, f"{prefix}{name}", where, sample_of(annotation, full=True))


def generate_words() -> Iterator[Word]:
    """The words of generateContent."""
    yield from _options()
    for name in ("model", "contents"):
        yield Word("option", name, f"models.generate_content: {name}")
    yield from _fields("option", types.GenerationConfig, "generationConfig.")
    yield from _fields("option", types.ToolConfig, "toolConfig.")
    yield from _fields("block", types.Part)
    for word in _fields("block", types.FunctionCall, "functionCall."):
        # These come in pieces of a stream alone.
        in_pieces = word.word.rpartition(".")[2] in ("partialArgs", "willContinue")
        yield replace(word, kind="delta") if in_pieces else word
    yield from _fields("input", types.FunctionResponse, "functionResponse.")
    yield from _fields("input", types.FunctionResponsePart, "functionResponse.parts.")
    yield from _fields("tool", types.Tool)
    yield from _fields("field", types.GenerateContentResponse)
    yield from _fields("field", types.Candidate, "candidate.")
    yield from _fields("field", types.GenerateContentResponseUsageMetadata, "usageMetadata.")
    for reason in types.FinishReason:
        yield Word("finish", reason.value, "FinishReason")
    for blocked in types.BlockedReason:
        yield Word("finish", f"blocked {blocked.value}", "BlockedReason")
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, Exception) and not name.startswith("_"):
            yield Word("error", name, f"google.genai.errors.{name}", kind)
