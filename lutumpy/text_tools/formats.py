"""Finds formats of calls: by their names, by those of servers, and by what a model is called."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lutumpy.text_tools.format_table import FORMATS
from lutumpy.text_tools.text_format import TextFormat

__all__ = ["find_formats", "recognize_format", "text_formats"]


def text_formats() -> tuple[TextFormat, ...]:
    """All formats that `TagToolParser.named` knows."""
    return FORMATS


def find_formats(name: str) -> Sequence[TextFormat]:
    """The formats with this name, or all those that a server calls so.

    Raises:
        ValueError: there are none; the message lists the names.
    """
    own = [one for one in FORMATS if one.name == name]
    found = [one for one in FORMATS if name in one.aliases]
    if not own and not found:
        known = ", ".join([one.name for one in FORMATS])
        raise ValueError(f"no format of tool calls is called {name!r}; there are: {known}")
    return [*own, *[one for one in found if one not in own]]


def recognize_format(model: str = "", template: str = "") -> TextFormat | None:
    """The format that a model was trained on, by its chat template or else by its name.

    Args:
        model: The name of the model, as `Qwen3-Coder-30B-A3B-Instruct`.
        template: Its chat template, as llama.cpp's `/props` gives it and files of tokenizers do.

    Returns:
        The format whose marks are in the template, the one with the most text of several; or whose
        name comes first and is the longest there; `None` if none is found.
    """
    marked = [one for one in FORMATS if one.marks and all(mark in template for mark in one.marks)]
    if marked:
        return max(marked, key=lambda one: sum(map(len, one.marks)))
    # A model is called by its own name before those that it was made of: `Hermes-3-Llama-3.1`.
    name = model.rpartition("/")[2].lower()
    named = [
        (found.start(), -len(found.group()), index)
        for index, one in enumerate(FORMATS)
        if one.models and (found := re.search(one.models, name)) is not None
    ]
    return FORMATS[min(named)[2]] if named else None
