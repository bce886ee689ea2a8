"""The tools of these tests, and how a text model writes calls of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from toolkit import Write

from lutumpy import Session, ToolResult, ToolRound, Toolset, tool, tool_fn
from lutumpy.hooks import BaseToolCall
from lutumpy.models import Api
from lutumpy.text_tools import ParsedCall, TagToolParser

APIS: tuple[Api, ...] = ("openai_chat", "openai_responses", "anthropic_messages")
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
    """Role and text of every message of a request's body."""
    found: list[tuple[str, str]] = []
    if isinstance(body.get("system"), str):
        found.append(("system", body["system"]))
    elif body.get("system"):
        found.append(("system", "".join([part["text"] for part in body["system"]])))
    for message in body.get("messages", body.get("input", ())):
        content = message.get("content")
        text = (
            content
            if isinstance(content, str)
            else "".join([part.get("text", "") for part in content or ()])
        )
        found.append((message.get("role", message.get("type")), text))
    return found
