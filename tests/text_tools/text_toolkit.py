"""The tools of these tests, and how a text model writes calls of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from every_api import APIS
from toolkit import Write

from lutumpy import Session, ToolResult, ToolRound, Toolset, tool, tool_fn
from lutumpy.hooks import BaseToolCall
from lutumpy.text_tools import ParsedCall, TagToolParser, TextFormat
from lutumpy.text_tools.body_syntax import BodySyntax

every_api = pytest.mark.parametrize("api", APIS)


@tool_fn(effect="read")
async def weather(city: str, days: int = 1) -> str:
    """The weather of a city.

    Args:
        city: Its name.
        days: For how many days.
    """
    return f"sunny in {city}"


@tool_fn
def now() -> str:
    """The time."""
    return "noon"


class Tools(Toolset):
    weather = tool(weather)
    write = tool(Write)
    now = tool(now, off=True)


def call(name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
    """A call as the default parser wants it."""
    if arguments is None:
        return f'[TOOL_CALL]{{"name": "{name}"}}[/TOOL_CALL]'
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return f'[TOOL_CALL]{{"name": "{name}", "args": {written}}}[/TOOL_CALL]'


def asked(question: str = "What is the weather in Oslo?") -> Session:
    """A session with a question in it."""
    session = Session()
    session.push_system("Be brief.")
    session.push_user(question)
    return session


def answers(round: ToolRound[Any]) -> list[ToolResult]:
    """A result for every call."""
    return [_answer(one) for one in round.calls]


def _answer(one: BaseToolCall) -> ToolResult:
    return one.complete(None if one.metadata.name == "write" else f"{one.metadata.name} done")


def parsed(
    text: str, parser: TagToolParser | None = None
) -> tuple[str, list[tuple[str, str, str | None]]]:
    """What a text shows, and its calls."""
    found = (parser or TagToolParser()).parse(text)
    return found.text, [brief(one) for one in found.calls]


def brief(one: ParsedCall) -> tuple[str, str, str | None]:
    return one.name, one.arguments, one.problem


def contents(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Role and text of every message of a request's body, as most APIs call the roles."""
    found: list[tuple[str, str]] = []
    system = body.get("system") or body.get("systemInstruction")
    if system:
        found.append(("system", text_of(system)))
    for message in body.get("messages") or body.get("input") or body.get("contents") or ():
        role = message.get("role", message.get("type"))
        text = text_of(message.get("content") or message.get("parts"))
        found.append(("assistant" if role == "model" else role, text))
    return found


def text_of(content: Any) -> str:
    """The text of a content: a text, a list of parts, or an object with parts."""
    if isinstance(content, str):
        return content
    parts = content["parts"] if isinstance(content, Mapping) else content or ()
    return "".join([part.get("text", "") for part in parts])


# What a format wraps around all the calls of an answer.
AROUND = {
    "deepseek_v31": ("<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁calls▁end\uff5c>"),
    "deepseek_v3": ("<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁calls▁end\uff5c>"),
    "kimi_k2": ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    "step3": ("<\uff5ctool_calls_begin\uff5c>", "<\uff5ctool_calls_end\uff5c>"),
}


def spell(one: TextFormat, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Calls as the format writes them."""
    syntax = one.syntaxes[0]
    written = [syntax.spelled(name, json.dumps(arguments)) for name, arguments in calls]
    if isinstance(syntax, BodySyntax) and not syntax.start:
        return spell_whole_answer(one.name, syntax, calls)
    before, behind = AROUND.get(one.name, ("", ""))
    return f"{before}{chr(10).join(written)}{behind}"


def spell_whole_answer(
    name: str, syntax: BodySyntax, calls: Sequence[tuple[str, dict[str, Any]]]
) -> str:
    """An answer without tags: all its calls in one list, or one behind the other."""
    written = [syntax.spelled(one, json.dumps(arguments)) for one, arguments in calls]
    if name == "llama3_bare":
        return "; ".join(written)
    if name == "xlam_fence":
        inner = ", ".join(
            [one.removeprefix("```json\n[").removesuffix("]\n```") for one in written]
        )
        return f"```json\n[{inner}]\n```"
    return "[" + ", ".join([one[1:-1] for one in written]) + "]"
