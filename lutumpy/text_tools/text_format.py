"""What is known of one way in which models write calls: `TextFormat`."""

from __future__ import annotations

from dataclasses import field

from lutumpy.plain.values import dataclass
from lutumpy.text_tools.instruction import ToolListing
from lutumpy.text_tools.result_form import ResultForm
from lutumpy.text_tools.scan_tags import Syntax
from lutumpy.text_tools.thinking import THINK

__all__ = ["TextFormat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """One way in which models write calls.

    Attributes:
        name: Its name here.
        syntaxes: How calls are written; instructions show the first.
        source: Where that is known from.
        aliases: What vLLM, SGLang and llama.cpp call it.
        thinking: Pairs of texts around thinking.
        listing: How the template of its models lists tools; `None` where it is as instructions
            of `TagToolParser` do it.
        results: How that template writes results; `None` where it only gives them a role of their
            own, which no text has, so that they are written as `TextTools` does it.
        models: A regular expression that finds it in the name of a model; empty where no model
            is known to write it by default.
        marks: Texts that all are in a template of this format; empty where none are known.
    """

    name: str
    syntaxes: tuple[Syntax, ...]
    source: str
    aliases: tuple[str, ...] = ()
    thinking: tuple[tuple[str, str], ...] = field(default=THINK)
    listing: ToolListing | None = None
    results: ResultForm | None = None
    models: str = ""
    marks: tuple[str, ...] = ()
