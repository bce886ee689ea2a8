"""`prefix_stable=True`: the tools that are sent stay, and are narrowed beside them (A1, A2, A4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lutumpy import (
    InvalidToolConstraints,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolInput,
    ToolRequirement,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools_sync
from lutumpy.models import estimate_of
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.testing import Call, Reply, ScriptedModel, render, serve

RULES: dict[Any, Any] = {
    OpenAIChat: chat,
    OpenAIResponses: responses,
    AnthropicMessages: anthropic,
}
NARROWED = [OpenAIChat, OpenAIResponses]


@tool_fn
def find(words: str) -> str:
    """Find."""
    return words


@tool_fn
def lend(book: str) -> str:
    """Lend."""
    return book


@tool_input(name="burn")
class Burn(ToolInput[None]):
    """Burn."""

    book: str


@tool_fn
def count(shelf: int = 1) -> str:
    """Count."""
    return str(shelf)


class Loans(Toolset):
    lend = tool(lend)


class Desk(Toolset):
    find = tool(find)
    burn = tool(Burn, off=True)
    loans = nested(Loans)
    count = tool(count)


ALL = Desk.selectors()
DEFAULT = ("find", "lend", "count")
subsets = st.permutations(ALL).flatmap(
    lambda listed: st.integers(0, len(listed)).map(lambda n: tuple(listed[:n]))
)


def body(adapter: Any, offer: Any, **options: Any) -> dict[str, Any]:
    session = Session()
    session.push_user("Hello.")
    found: dict[str, Any] = adapter.request(session.transcript, offer, **options)
    more = {"max_tokens": 9} if adapter is AnthropicMessages else {}
    assert RULES[adapter].check_request({"model": "m", **more, **found}) == []
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [each.get("name") or each["function"]["name"] for each in found.get("tools", ())]


def allowed(found: dict[str, Any]) -> tuple[str, list[str]] | Any:
    """The mode and the names of an `allowed_tools` choice; any other choice as it is."""
    choice = found.get("tool_choice")
    if not isinstance(choice, dict) or choice["type"] != "allowed_tools":
        return choice
    inner = choice.get("allowed_tools", choice)
    return inner["mode"], [each.get("name") or each["function"]["name"] for each in inner["tools"]]


# --- what is sent --------------------------------------------------------------------------------


@given(subsets, subsets)
def test_the_bytes_of_the_tools_are_the_same_whatever_is_available_A4(
    one: Sequence[Any], other: Sequence[Any]
) -> None:
    # Tools that are off come last, so that the list begins alike with and without them.
    for adapter in NARROWED:
        first, second = (
            json.dumps(
                body(
                    adapter,
                    Desk.offer(available=ToolAvailability.only(*chosen), prefix_stable=True),
                )["tools"]
            )
            for chosen in (one, other)
        )
        short, long = sorted((first, second), key=len)
        assert long.startswith(short[:-1])
        if (Desk.burn in one) == (Desk.burn in other):
            assert first == second


@given(subsets)
def test_what_the_model_may_call_is_what_is_available_A2(chosen: Sequence[Any]) -> None:
    available: ToolAvailability[Desk] = ToolAvailability.only(*chosen)
    wanted = [selector.name for selector in chosen]
    offer = Desk.offer(available=available, prefix_stable=True)
    assert offer.offered == set(wanted)
    for adapter in NARROWED:
        found = body(adapter, offer)
        sent = names(found)
        assert sent == [*DEFAULT, *(["burn"] if "burn" in wanted else [])]
        if not wanted:
            assert allowed(found) == "none"
        elif set(wanted) == set(sent):
            assert "tool_choice" not in found
        else:
            assert allowed(found) == ("auto", wanted)
    assert names(body(AnthropicMessages, offer)) == wanted


@pytest.mark.parametrize("adapter", NARROWED)
def test_a_requirement_is_met_by_the_mode_or_by_the_one_tool_A2(adapter: Any) -> None:
    available: ToolAvailability[Desk] = ToolAvailability.only(Desk.count, Desk.find)
    some = Desk.offer(available, ToolRequirement.at_least_one(), prefix_stable=True)
    assert allowed(body(adapter, some)) == ("required", ["count", "find"])
    one = Desk.offer(available, ToolRequirement.specific(Desk.find), prefix_stable=True)
    assert body(adapter, one)["tool_choice"] == (
        {"type": "function", "name": "find"}
        if adapter is OpenAIResponses
        else {"type": "function", "function": {"name": "find"}}
    )
    every = Desk.offer(None, ToolRequirement.at_least_one(), prefix_stable=True)
    assert body(adapter, every)["tool_choice"] == "required"
    with pytest.raises(InvalidToolConstraints, match="not available"):
        Desk.offer(available, ToolRequirement.specific(Desk.burn), prefix_stable=True)


def test_the_choice_is_spelled_as_each_api_has_it() -> None:
    offer = Desk.offer(ToolAvailability.only(Desk.find), prefix_stable=True)
    assert body(OpenAIResponses, offer)["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "find"}],
    }
    assert body(OpenAIChat, offer)["tool_choice"] == {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "auto",
            "tools": [{"type": "function", "function": {"name": "find"}}],
        },
    }


def test_without_it_nothing_has_changed() -> None:
    available: ToolAvailability[Desk] = ToolAvailability.only(Desk.find)
    for adapter in RULES:
        found = body(adapter, Desk.offer(available))
        assert (names(found), "tool_choice" in found) == (["find"], False)


def test_the_providers_own_tools_beside_the_list_stay_allowed() -> None:
    wiki = {"type": "mcp", "server_label": "wiki", "server_url": "https://h/mcp"}
    hosted = [wiki, {"type": "web_search"}]
    offer = Desk.offer(ToolAvailability.only(Desk.find), prefix_stable=True)
    choice = body(OpenAIResponses, offer, extra={"tools": hosted})["tool_choice"]
    assert choice["tools"] == [
        {"type": "function", "name": "find"},
        {"type": "mcp", "server_label": "wiki"},
        {"type": "web_search"},
    ]
    nothing = Desk.offer(ToolAvailability.only(), prefix_stable=True)
    choice = body(OpenAIResponses, nothing, extra={"tools": hosted})["tool_choice"]
    assert [each["type"] for each in choice["tools"]] == ["mcp", "web_search"]
    custom = {"type": "custom", "custom": {"name": "sql"}}
    choice = body(OpenAIChat, offer, extra={"tools": [custom]})["tool_choice"]
    assert choice["allowed_tools"]["tools"][1:] == [{"type": "custom", "custom": {"name": "sql"}}]


def test_descriptions_for_the_turn_are_in_the_list_whatever_is_available_A3() -> None:
    texts = {Desk.find: "Search.", Desk.count: "Count all."}
    lists = [
        body(OpenAIResponses, Desk.offer(available, describe=texts, prefix_stable=True))["tools"]
        for available in (None, ToolAvailability.only(Desk.loans.lend))
    ]
    assert lists[0] == lists[1]
    assert [each["description"] for each in lists[0]] == ["Search.", "Lend.", "Count all."]


def test_only_true_and_false_are_taken() -> None:
    with pytest.raises(InvalidToolConstraints, match="prefix_stable= takes True or False"):
        Desk.offer(prefix_stable=1)  # type: ignore[arg-type]


# --- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", RULES)
def test_a_call_of_a_tool_that_is_in_the_list_alone_is_not_available_C2(adapter: Any) -> None:
    session = Session()
    session.push_user("Hello.")
    offer = Desk.offer(ToolAvailability.only(Desk.find), prefix_stable=True)
    reply = Reply(calls=[Call("count", {}), Call("find", {"words": "x"})])
    rendered = render(reply, adapter.api, number=1, model="m")
    outcome = offer.read(adapter.response(rendered), session)
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.issues
    assert (issue.reason, "Available tools: find." in issue.detail) == ("not_available", True)
    assert [call.metadata.name for call in outcome.round.calls] == ["find"]
    outcome.round.discard()


# --- turns and loops -----------------------------------------------------------------------------


class Answer(BaseModel):
    """The answer."""

    text: str


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("structured", ["native", "tool"])
def test_turns_of_one_conversation_send_one_list(api: str, structured: Any) -> None:
    llm = ScriptedModel([Reply(text="{}")] * 9, api=api, structured=structured)
    session = Session()
    availabilities: list[ToolAvailability[Desk]] = [
        ToolAvailability.default(),
        ToolAvailability.only(Desk.find),
        ToolAvailability.only(),
    ]
    requirements: list[ToolRequirement[Desk]] = [
        ToolRequirement.optional(),
        ToolRequirement.at_least_one(),
        ToolRequirement.specific(Desk.find),
    ]
    for available, require in chain(
        [(a, requirements[0]) for a in availabilities],
        [(availabilities[1], r) for r in requirements[1:]],
    ):
        session.push_user("Go on.")
        session.structured_turn(
            llm, Answer, tools=Desk, available=available, require=require, prefix_stable=True
        ).collect_sync()
    lists = [json.dumps(request["tools"]) for request in llm.requests]
    assert len(set(lists)) == 1
    wanted = [*DEFAULT, *(["answer"] if structured == "tool" else [])]
    assert names(llm.requests[0]) == wanted


def test_the_value_tool_is_allowed_beside_what_is_available() -> None:
    llm = ScriptedModel([Reply(text="{}")] * 3, api="openai_responses", structured="tool")
    session = Session()
    for available in (ToolAvailability.only(Desk.find), ToolAvailability.only()):
        session.push_user("Go on.")
        turn = session.structured_turn(
            llm, Answer, tools=Desk, available=available, prefix_stable=True
        )
        turn.collect_sync()
    first, second = llm.requests
    assert allowed(first) == ("required", ["find", "answer"])
    assert second["tool_choice"] == {"type": "function", "name": "answer"}


def test_a_loop_passes_it_on() -> None:
    llm = ScriptedModel([Reply(text="Done.")], api="openai_responses")
    session = Session()
    session.push_user("Go.")
    dispatch = Dispatcher(Desk)

    @dispatch.on(Desk.burn)
    def burn(input: Burn) -> None: ...

    run_tools_sync(
        session,
        llm,
        tools=Desk,
        dispatch=dispatch,
        available=ToolAvailability.only(Desk.find),
        prefix_stable=True,
    )
    assert (names(llm.requests[0]), allowed(llm.requests[0])) == (
        list(DEFAULT),
        ("auto", ["find"]),
    )


def test_the_test_server_takes_the_choice_and_refuses_one_of_an_unknown_tool() -> None:
    import openai

    session = Session()
    session.push_user("Go.")
    offer = Desk.offer(ToolAvailability.only(Desk.find), prefix_stable=True)
    with (
        serve([Reply("Done.")]) as server,
        openai.OpenAI(base_url=server.openai_base_url, api_key="any", max_retries=0) as client,
    ):
        request = OpenAIResponses.request(session.transcript, offer)
        reply = client.responses.create(model="m", **request)
        echoed: Any = reply.tool_choice
        assert (echoed.type, echoed.mode) == ("allowed_tools", "auto")
        request["tool_choice"]["tools"].append({"type": "function", "name": "nope"})
        with pytest.raises(openai.BadRequestError, match="not found in 'tools'"):
            client.responses.create(model="m", **request)


def test_an_estimate_of_cost_counts_all_that_is_sent_U1() -> None:
    session = Session()
    session.push_user("Go.")
    narrow: ToolAvailability[Desk] = ToolAvailability.only(Desk.find)
    sizes = [
        estimate_of(session.transcript, offer, None).input_tokens
        for offer in (Desk.offer(), Desk.offer(narrow, prefix_stable=True), Desk.offer(narrow))
    ]
    assert sizes[0] == sizes[1] > sizes[2]


def test_equal_constraints_give_equal_bytes_A4() -> None:
    for some in combinations(ALL, 2):
        offers = [Desk.offer(ToolAvailability.only(*some), prefix_stable=True) for _ in range(2)]
        for adapter in RULES:
            assert len({json.dumps(body(adapter, offer)) for offer in offers}) == 1
