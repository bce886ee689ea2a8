"""Offers (rules A1 to A4, C9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lutumpy import (
    DeclarationError,
    InvalidToolConstraints,
    NoTools,
    Selector,
    Session,
    ToolAvailability,
    ToolRequirement,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses

APIS: dict[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
every_api = pytest.mark.parametrize("api", APIS)


def named(name: str) -> Any:
    @tool_fn(name=name)
    def function(text: str = "x") -> str:
        """Do something."""
        return text

    return function


class Inner(Toolset):
    c = tool(named("c"))
    d = tool(named("d"), off=True)


class Tools(Toolset):
    a = tool(named("a"))
    b = tool(named("b"), off=True)
    inner = nested(Inner)
    hidden = nested(type("Hidden", (Toolset,), {"e": tool(named("e"))}), off=True)


class Other(Toolset):
    a = tool(named("a"))


def request(api: str, offer: Any, **options: Any) -> dict[str, Any]:
    session = Session()
    session.push_user("go")
    body: dict[str, Any] = APIS[api].request(session.transcript, offer, **options)
    return body


def offered(body: dict[str, Any]) -> list[str]:
    return [t.get("name") or t["function"]["name"] for t in body.get("tools", [])]


@every_api
def test_availability_in_order_A1(api: str) -> None:
    inner = Tools.inner[Inner.d]
    cases: list[tuple[ToolAvailability[Tools] | None, list[str]]] = [
        (None, ["a", "c"]),
        (ToolAvailability.default(), ["a", "c"]),
        (ToolAvailability.all(), ["a", "b", "c", "d", "e"]),
        (ToolAvailability.only(inner, Tools.a, inner), ["d", "a"]),
        (ToolAvailability.default_plus(inner, Tools.a, Tools.b), ["a", "c", "d", "b"]),
        (ToolAvailability.only(), []),
    ]
    for available, names in cases:
        body = request(api, Tools.offer(available=available))
        assert offered(body) == names
        assert ("tools" in body) is bool(names)


@pytest.mark.parametrize(
    "constraints",
    [
        {"require": ToolRequirement.specific(Tools.b)},
        {"require": ToolRequirement.specific(Other.a)},
        {"require": ToolRequirement.at_least_one(), "available": ToolAvailability.only()},
        {"available": ToolAvailability.only(Other.a)},
        {"available": ToolAvailability.default_plus(Inner.c)},
        {"available": Tools.a},
        {"require": "required"},
        {"describe": {Other.a: "x"}},
        {"describe": {Tools.a: None}},
        {"describe": {"a": "x"}},
    ],
)
def test_what_cannot_hold_is_refused_at_once_A2(constraints: Any) -> None:
    with pytest.raises(InvalidToolConstraints):
        Tools.offer(**constraints)


@every_api
def test_choice_and_parallel_A2(api: str) -> None:
    assert "tool_choice" not in request(api, Tools.offer())
    assert "tool_choice" not in request(api, NoTools.offer(parallel=False))
    specific = request(api, Tools.offer(require=ToolRequirement.specific(Tools.a), parallel=False))
    single = request(api, Tools.offer(parallel=False))
    if api == "anthropic_messages":
        assert specific["tool_choice"] == {
            "type": "tool",
            "name": "a",
            "disable_parallel_tool_use": True,
        }
        assert single["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    else:
        assert specific["parallel_tool_calls"] is False
        assert single["parallel_tool_calls"] is False
        assert "parallel_tool_calls" not in request(api, Tools.offer())


@every_api
def test_descriptions_A3(api: str) -> None:
    offer = Tools.offer(describe={Tools.a: "Mine.", Tools.b: "Not offered."})
    assert "Mine." in json.dumps(request(api, offer)["tools"][0])
    assert "Not offered." not in json.dumps(request(api, offer))
    assert Tools.a.definition.description == "Do something."
    assert "Do something." in json.dumps(request(api, Tools.offer())["tools"][0])


selectors = st.lists(st.sampled_from(Tools.selectors()), max_size=6)


@given(
    only=selectors,
    texts=st.dictionaries(st.sampled_from(Tools.selectors()), st.text(max_size=5), max_size=3),
)
def test_equal_offers_give_equal_bytes_A4(
    only: list[Selector[Any]], texts: dict[Selector[Any], str]
) -> None:
    for api in APIS:
        first, second = (
            json.dumps(
                request(api, Tools.offer(available=ToolAvailability.only(*only), describe=texts))
            )
            for _ in range(2)
        )
        assert first == second


@every_api
def test_the_providers_own_tools_stand_beside_the_offered_ones(api: str) -> None:
    own = {"type": "web_search"}
    assert request(api, Tools.offer(), extra={"tools": [own]})["tools"][-1] == own
    assert len(request(api, Tools.offer(), extra={"tools": [own]})["tools"]) == 3
    assert request(api, NoTools.offer(), extra={"tools": [own]})["tools"] == [own]
    assert len(request(api, Tools.offer(), extra={"tools": []})["tools"]) == 2


def test_strict_is_always_said_on_responses_C9() -> None:
    assert [t["strict"] for t in request("openai_responses", Tools.offer())["tools"]] == [
        False,
        False,
    ]
    strict = request("openai_responses", Tools.offer(), strict=True)["tools"][0]
    assert strict["strict"] is True
    assert strict["parameters"]["required"] == ["text"]


class Open(BaseModel):
    """Anything goes."""

    values: dict[str, int]


@every_api
def test_what_has_no_strict_form_is_sent_without_where_that_was_left_open_D5(api: str) -> None:
    @tool_input(name="open", output=None)
    class Left(Open):
        """Open."""

    class Left1(Toolset):
        t = tool(Left, output=None)

    sent = request(api, Left1.offer(), strict=True)["tools"][0]
    assert not {**sent, **sent.get("function", {})}.get("strict")
    with pytest.raises(DeclarationError, match="values"):

        @tool_input(name="open", output=None, strict=True)
        class Asked(Open):
            """Open."""


def test_a_model_that_takes_no_forced_choice_is_known_C9() -> None:
    offer = Tools.offer(require=ToolRequirement.at_least_one())
    for model in ("claude-sonnet-5-5", "claude-opus-5-5-20261001", "claude-fable-5"):
        with pytest.raises(InvalidToolConstraints, match=model):
            request("anthropic_messages", offer, model=model)
        assert "model" not in request("anthropic_messages", Tools.offer(), model=model)
    assert request("anthropic_messages", offer, model="claude-sonnet-4-5")["tool_choice"] == {
        "type": "any"
    }
    with pytest.raises(InvalidToolConstraints, match="thinking"):
        request("anthropic_messages", offer, thinking={"type": "enabled", "budget_tokens": 1024})


def test_strict_limits_of_one_request_C9() -> None:
    members = {f"t{n}": tool(strict_tool(f"t{n}")) for n in range(21)}
    many = type("Many", (Toolset,), members)
    with pytest.raises(InvalidToolConstraints, match="21 strict tools"):
        request("anthropic_messages", many.offer())
    assert len(request("openai_chat", many.offer())["tools"]) == 21


def strict_tool(name: str) -> Any:
    @tool_fn(name=name, strict=True)
    def function(text: str) -> str:
        """Do something."""
        return text

    return function


def test_offers_are_made_once_and_shown() -> None:
    assert Tools.offer() is Tools.offer()
    assert repr(Tools.offer()) == "<Offer of Tools: a, c; auto>"
    assert ToolAvailability.only(Tools.a) == ToolAvailability.only(Tools.a)
    assert len({ToolRequirement.specific(Tools.a), ToolRequirement.specific(Tools.a)}) == 1
