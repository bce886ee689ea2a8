"""Text tools as OpenAI's custom tools: the bodies, who gets them, and the real clients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from lutumpy import (
    AdapterError,
    Lark,
    NeedsTools,
    Regex,
    Session,
    ToolCallDelta,
    ToolRequirement,
    Toolset,
    text_tool,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses, facts_of
from lutumpy.doctor import check_messages
from lutumpy.testing import Call, Reply, WireServer, serve

# Some rounds are left open here: what becomes of them is told elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

GRAMMAR = 'start: "go" " " /[a-z]+/'


@text_tool(format=Lark(GRAMMAR))
def go(where: str) -> str:
    """Go.

    Args:
        where: `go` and a name.
    """
    return where


@text_tool(format=Regex("[0-9]+"), description="Dial.")
def dial(number: str) -> str:
    return number


@text_tool
def say(text: str) -> str:
    """Say."""
    return text


@tool_fn
def look() -> str:
    """Look."""
    return ""


class Tools(Toolset):
    go_there = tool(go)
    dial_it = tool(dial)
    say_it = tool(say)
    look_up = tool(look)


def test_the_tools_of_responses_are_flat() -> None:
    assert OpenAIResponses.tools(Tools.offer())[:3] == [
        {
            "type": "custom",
            "name": "go",
            "description": "Go.\n\n`go` and a name.",
            "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR},
        },
        {
            "type": "custom",
            "name": "dial",
            "description": "Dial.",
            "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"},
        },
        {"type": "custom", "name": "say", "description": "Say.", "format": {"type": "text"}},
    ]


def test_the_tools_of_chat_are_nested() -> None:
    assert OpenAIChat.tools(Tools.offer())[1:3] == [
        {
            "type": "custom",
            "custom": {
                "name": "dial",
                "description": "Dial.",
                "format": {
                    "type": "grammar",
                    "grammar": {"syntax": "regex", "definition": "[0-9]+"},
                },
            },
        },
        {
            "type": "custom",
            "custom": {"name": "say", "description": "Say.", "format": {"type": "text"}},
        },
    ]


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
def test_the_description_of_a_turn_replaces_that_of_the_tool(adapter: Any) -> None:
    offer = Tools.offer(describe={Tools.go_there: "Walk."})
    tool = adapter.tools(offer)[0]
    assert tool.get("custom", tool)["description"] == "Walk.\n\n`go` and a name."


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
def test_one_offer_serves_hosts_with_and_without_custom_tools(adapter: Any) -> None:
    offer = Tools.offer()
    session = Session()
    session.push_user("Go.")

    def kinds(**options: Any) -> list[str]:
        body = adapter.request(session.transcript, offer, **options)
        return [entry["type"] for entry in body["tools"]]

    known, functions = ["custom"] * 3 + ["function"], ["function"] * 4
    for _ in range(2):  # what was rendered for one isn't sent to the other
        assert kinds() == known
        assert kinds(custom_tools=False) == functions
        assert kinds(model="gpt-5-mini") == known
        assert kinds(model="some-other-model") == known
        assert kinds(model="gpt-4.1-mini") == functions
        assert kinds(model="ft:gpt-4o:me::1") == functions
        assert kinds(model="o3") == functions
        assert kinds(model="o3", custom_tools=True) == known
        assert kinds(strict=True) == known
    assert [t["type"] for t in adapter.tools(offer, custom_tools=False)] == functions
    with pytest.raises(TypeError, match="custom_tools takes True, False or None, not 'yes'"):
        adapter.request(session.transcript, offer, custom_tools="yes")
    with pytest.raises(TypeError, match="custom_tools takes"):
        adapter("m", custom_tools=1)


def test_the_hosts_that_are_known_to_take_them() -> None:
    assert facts_of("api.openai.com").custom_tools
    assert facts_of("me.openai.azure.com").custom_tools
    for host in ("api.groq.com", "localhost", "openai.example.com", None):
        assert not facts_of(host).custom_tools


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        ({"type": "yaml"}, ".format.type"),
        ({}, ".format.type"),
        ("text", ".format"),
        ({"type": "grammar"}, "."),
        ({"type": "grammar", "syntax": "ebnf", "definition": "a"}, ".syntax"),
        ({"type": "grammar", "syntax": "lark"}, ".definition"),
        ({"type": "grammar", "syntax": "lark", "definition": 3}, ".definition"),
    ],
)
def test_a_format_of_another_shape_is_a_problem_of_the_rules(
    adapter: Any, wanted: Any, part: str
) -> None:
    from lutumpy.apis import serving

    nested = adapter is OpenAIChat
    if nested and isinstance(wanted, dict) and "syntax" in wanted:
        inner = {key: value for key, value in wanted.items() if key != "type"}
        wanted = {"type": "grammar", "grammar": inner}
    body = {"name": "a", "format": wanted}
    tool = {"type": "custom", "custom": body} if nested else {"type": "custom", **body}
    problems = serving(adapter.api, "rules").check_tools([tool])
    assert [p.certainty for p in problems if part in p.position] != []
    assert {p.certainty for p in problems} == {"refused"}


# --- the real clients ----------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[WireServer]:
    calls = [Call.of_text("go", "go home"), Call("look"), Call.of_text("dial", "12a")]
    with serve([Reply(calls=calls), Reply("Done.")] * 2) as running:
        yield running


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize("custom_tools", [True, None])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_conversation_through_the_sdk(
    server: WireServer, adapter: Any, custom_tools: bool | None, streamed: bool
) -> None:
    client = openai.AsyncOpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0)
    llm = adapter("gpt-5-mini", client, custom_tools=custom_tools)
    session = Session()
    session.push_user("Go.")
    pieces: list[str] = []

    async def take_turn() -> Any:
        turn = session.text_turn(llm, tools=Tools)
        if not streamed:
            return await turn.collect()
        async with turn.stream() as stream:
            events = [event async for event in stream]
        pieces.extend([e.arguments for e in events if isinstance(e, ToolCallDelta)])
        return stream.outcome

    async def talk() -> Any:
        outcome = await take_turn()
        assert isinstance(outcome, NeedsTools)
        round = outcome.round
        assert [call.input if call.metadata.name == "go" else None for call in round.calls] == [
            "go home",
            None,
        ]
        assert [issue.reason for issue in round.issues] == ["invalid_arguments"]
        round.commit(session, [call.complete("ok") for call in round.calls])
        return await take_turn()

    async def main() -> Any:
        async with client:
            return await talk()

    assert asyncio.run(main()).result.text == "Done."
    if streamed:
        assert "".join(pieces).startswith("go home")
    body = server.requests[-1].body
    # The server is on this machine, so it is not known to take custom tools.
    kind = "custom" if custom_tools else "function"
    assert [entry["type"] for entry in body["tools"]] == [kind] * 3 + ["function"]
    assert check_messages(adapter.api, adapter.messages(session.transcript)) == []


def test_the_server_refuses_an_output_of_another_kind(server: WireServer) -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "go", "input": "go home"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    tools: Any = OpenAIResponses.tools(Tools.offer())
    question = {"role": "user", "content": "Go."}
    items: Any = [question, call, output]
    with openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0) as client:
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model="gpt-5-mini", input=items, tools=tools)
        items = [question, call, {**output, "type": "custom_tool_call_output"}]
        client.responses.create(model="gpt-5-mini", input=items, tools=tools)


def test_the_server_refuses_a_grammar_in_no_language(server: WireServer) -> None:
    llm = OpenAIResponses(
        "gpt-5-mini",
        openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0),
        extra={
            "tools": [
                {
                    "type": "custom",
                    "name": "a",
                    "format": {"type": "grammar", "syntax": "ebnf", "definition": "a"},
                }
            ]
        },
    )
    session = Session()
    session.push_user("Go.")
    with pytest.raises(AdapterError, match="'ebnf'"):
        session.text_turn(llm).collect_sync()


def test_a_required_custom_tool_is_declared_and_chosen_for_the_same_kind(
    server: WireServer,
) -> None:
    client = openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0)
    for adapter in (OpenAIChat, OpenAIResponses):
        for custom_tools in (True, False):
            llm = adapter("gpt-5-mini", client, custom_tools=custom_tools)
            session = Session()
            session.push_user("Go.")
            require = ToolRequirement.specific(Tools.go_there)
            session.text_turn(llm, tools=Tools, require=require).collect_sync()
            choice = server.requests[-1].body["tool_choice"]
            assert choice["type"] == ("custom" if custom_tools else "function")
