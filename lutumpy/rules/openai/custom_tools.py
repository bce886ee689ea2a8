"""Text tools, which OpenAI calls "custom": who takes them, and what a grammar must not have.

Sources: OpenAI's cookbook "GPT-5 new params and tools" (models, both APIs); the documentation of
pydantic-ai (other models are offered a function); llguidance, which enforces the grammars, on its
dialect of Lark (`parser/src/lark/README.md`); refusals of compatible hosts, which implement
function tools alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.shapes import missing, wrong_type, wrong_value
from lutumpy.rules.problem import Certainty, Problem

__all__ = ["check_format", "takes_custom_tools"]

FORMATS = ("text", "grammar")
SYNTAXES = ("lark", "regex")

# The models before gpt-5, fine-tuned ones included. An unknown name forbids nothing.
_FUNCTIONS_ONLY = re.compile(r"(?:ft:)?(?:gpt-3\.5|gpt-4|chatgpt-4o|o[134](?=[-:]|\Z)|codex-mini)")

# What llguidance documents as missing, in grammars and in their terminals.
_LOOK_AROUND = re.compile(r"(?<!\\)\(\?<?[=!]")
_LAZY = re.compile(r"(?<!\\)[*+?}]\?")
_FOREIGN_IMPORT = re.compile(r"^\s*%import\s+(?!common\b)(\S+)", re.MULTILINE)
_TEMPLATE = re.compile(r"^\s*[a-z_]\w*\s*\{[^}]*\}\s*:", re.MULTILINE)
_PRIORITY = re.compile(r"^\s*\w+\s*\.\s*-?\d+\s*:", re.MULTILINE)
_MISSING_IN_LARK = (
    (_FOREIGN_IMPORT, "an %import of something else than common"),
    (_TEMPLATE, "templates"),
    (_PRIORITY, "priorities"),
)
_MISSING_IN_PATTERNS = ((_LOOK_AROUND, "look-around"), (_LAZY, "lazy quantifiers"))


def takes_custom_tools(asked: bool | None, model: str | None) -> bool:
    """Whether text tools are sent as such; otherwise they go as functions.

    Args:
        asked: What the application says; `None` leaves it to the model.
        model: The model's name, where it is known.
    """
    if asked is not None:
        return asked
    return model is None or _FUNCTIONS_ONLY.match(model) is None


def check_format(rule: str, where: str, value: Any, grammar_key: str | None) -> list[Problem]:
    """The problems of a text tool's `format`.

    Args:
        rule: Id of the rule.
        where: The position of the format.
        value: The format.
        grammar_key: The key under which an API nests the grammar; `None` where it doesn't.
    """
    if value is None:
        return []
    if not isinstance(value, Mapping):
        return [wrong_type(rule, where, "an object", value)]
    kind = value.get("type")
    if kind is None:
        return [missing(rule, f"{where}.type")]
    if kind not in FORMATS:
        return [wrong_value(rule, f"{where}.type", kind, FORMATS)]
    if kind == "text":
        return []
    grammar: Any = value
    if grammar_key is not None:
        where = f"{where}.{grammar_key}"
        grammar = value.get(grammar_key)
        if grammar is None:
            return [missing(rule, where)]
        if not isinstance(grammar, Mapping):
            return [wrong_type(rule, where, "an object", grammar)]
    found: list[Problem] = []
    syntax, definition = grammar.get("syntax"), grammar.get("definition")
    if syntax is None:
        found.append(missing(rule, f"{where}.syntax"))
    elif syntax not in SYNTAXES:
        found.append(wrong_value(rule, f"{where}.syntax", syntax, SYNTAXES))
    where = f"{where}.definition"
    if definition is None:
        found.append(missing(rule, where))
    elif not isinstance(definition, str):
        found.append(wrong_type(rule, where, "a string", definition))
    elif syntax in SYNTAXES:
        found += _check_dialect(rule, where, syntax, definition)
    return found


def _check_dialect(rule: str, where: str, syntax: str, definition: str) -> list[Problem]:
    """What the engine behind grammars documents as missing, as far as the text shows it."""
    # It looks like it, and a string of the grammar may hold the same characters.
    certainty: Certainty = "some"
    tables = _MISSING_IN_PATTERNS if syntax == "regex" else _MISSING_IN_LARK + _MISSING_IN_PATTERNS
    return [
        Problem(rule, where, f"Grammars of OpenAI have no {what}.", certainty, param=where)
        for pattern, what in tables
        if pattern.search(definition)
    ]
