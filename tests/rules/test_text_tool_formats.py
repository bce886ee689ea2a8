"""The `format` of a text tool as OpenAI takes it, nested or flat, and its words for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.rules.openai.custom_tools import check_format

GRAMMAR = {"syntax": "lark", "definition": 'start: "go"'}


def said(value: Any, key: str | None = None) -> list[str]:
    return [problem.message for problem in check_format("r", "tool.format", value, key)]


def test_a_format_may_be_absent_a_text_or_a_grammar() -> None:
    assert said(None) == said({"type": "text"}) == []
    assert said({"type": "grammar", **GRAMMAR}) == []
    assert said({"type": "grammar", "grammar": GRAMMAR}, "grammar") == []


@pytest.mark.parametrize(
    ("value", "key", "messages"),
    [
        ("text", None, ["'tool.format': expected an object, but got a string"]),
        ({}, None, ["Missing required parameter: 'tool.format.type'"]),
        (
            {"type": "xml"},
            None,
            ["Invalid value: 'xml'. Supported values are: 'text' and 'grammar'"],
        ),
        (
            {"type": "grammar"},
            None,
            ["parameter: 'tool.format.syntax'", "parameter: 'tool.format.definition'"],
        ),
        ({"type": "grammar"}, "grammar", ["Missing required parameter: 'tool.format.grammar'"]),
        (
            {"type": "grammar", "grammar": "x"},
            "grammar",
            ["'tool.format.grammar': expected an object, but got a string"],
        ),
        (
            {"type": "grammar", "syntax": "ebnf", "definition": "(?=x)"},
            None,
            ["Invalid value: 'ebnf'. Supported values are: 'lark' and 'regex'"],
        ),
        (
            {"type": "grammar", "syntax": "regex", "definition": 3},
            None,
            ["'tool.format.definition': expected a string, but got an integer"],
        ),
        (
            {"type": "grammar", "syntax": "regex", "definition": "(?=x)a+?"},
            None,
            ["Grammars of OpenAI have no look-around.", "Grammars of OpenAI have no lazy"],
        ),
    ],
)
def test_what_is_no_format_is_named(value: Any, key: str | None, messages: list[str]) -> None:
    found = said(value, key)
    assert len(found) == len(messages)
    assert all(part in message for part, message in zip(messages, found, strict=True)), found
