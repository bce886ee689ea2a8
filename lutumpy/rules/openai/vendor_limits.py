"""Limits that OpenAI alone sets, whichever of its APIs they are checked for."""

from __future__ import annotations

from lutumpy.errors import Problem

__all__ = ["is_limit_of_openai"]

_TOO_LONG = ("string_above_max_length", "array_above_max_length")
_SCHEMA_RULES = ("strict_", "schema_")


def is_limit_of_openai(problem: Problem) -> bool:
    """Whether a problem is about a length, or a form of schemas, that other hosts don't check.

    A message with an empty `tool_calls` belongs here too: several hosts write such messages.
    """
    rule = problem.rule.partition(".")[2]
    has_no_calls = rule == "tool_calls" and problem.code == "empty_array"
    return rule.startswith(_SCHEMA_RULES) or problem.code in _TOO_LONG or has_no_calls
