"""The ways in which open models write calls, by name.

Names and texts are those of the servers' own parsers and of the models' chat templates: vLLM and
SGLang (`--tool-call-parser`) and llama.cpp (`common_chat_format_name`).
"""

# One row says all of a format: its syntaxes, the texts around thinking, how its template lists
# tools and writes results, what servers call it, how a model's name or template tells that it is
# the one, and where all that is known from. The rows are in a module for each family. An alias
# may be in several rows: a server's parser that reads several formats is read as all of them.

from __future__ import annotations

from lutumpy.text_tools.element_formats import ELEMENT_FORMATS
from lutumpy.text_tools.json_formats import JSON_FORMATS
from lutumpy.text_tools.other_formats import OTHER_FORMATS
from lutumpy.text_tools.text_format import TextFormat

__all__ = ["FORMATS"]

FORMATS: tuple[TextFormat, ...] = (*JSON_FORMATS, *ELEMENT_FORMATS, *OTHER_FORMATS)
