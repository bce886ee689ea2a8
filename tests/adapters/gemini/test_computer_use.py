"""Functions that the API declares itself and the program runs: `computerUse`."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy import (
    DeclarationError,
    InvalidToolConstraints,
    NeedsTools,
    Session,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.gemini import Gemini

API = "gemini_generate_content"
BOUND = {API: {"type": "computerUse"}}


@tool_input(name="click_at", output=str, provider=BOUND)
class ClickAt(ToolInput[str]):
    """Click."""

    x: int
    y: int


@tool_input(name="navigate", output=str, provider=BOUND)
class Navigate(ToolInput[str]):
    """Open an address."""

    url: str


@tool_fn
def look_up(title: str) -> str:
    """Look a book up."""
    return title


class Browser(Toolset):
    click_at = tool(ClickAt)
    navigate = tool(Navigate)


class Both(Toolset):
    click_at = tool(ClickAt)
    look_up = tool(look_up)


def request(toolset: Any, **extra: Any) -> dict[str, Any]:
    session = Session()
    session.push_user("Go on.")
    return Gemini.request(session.transcript, toolset.offer(), model="gemini-3-pro", extra=extra)


def test_bound_functions_are_one_entry_and_none_is_declared() -> None:
    entry = {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}
    assert Gemini.tools(Browser.offer()) == [entry]
    assert request(Browser)["tools"] == [entry]
    listed = Gemini.tools(Both.offer())
    assert listed[0] == entry
    assert [declared["name"] for declared in listed[1]["functionDeclarations"]] == ["look_up"]
    assert request(Both)["tools"] == listed


def test_what_one_of_them_says_is_said_of_the_entry() -> None:
    screen = {"environment": "ENVIRONMENT_DESKTOP", "excludedPredefinedFunctions": ["drag"]}

    class Desk(Toolset):
        click_at = tool(ClickAt, provider={API: screen})
        navigate = tool(Navigate)

    assert Gemini.tools(Desk.offer()) == [{"computerUse": screen}]

    class Torn(Toolset):
        click_at = tool(ClickAt, provider={API: screen})
        navigate = tool(Navigate, provider={API: {"environment": "ENVIRONMENT_MOBILE"}})

    with pytest.raises(InvalidToolConstraints, match="different things of 'environment'"):
        Gemini.tools(Torn.offer())


def test_functions_of_the_request_stand_beside_them() -> None:
    own = {"functionDeclarations": [{"name": "mine"}]}
    sent = request(Browser, tools=[own])["tools"]
    assert sent == [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}, own]
    sent = request(Both, tools=[own])["tools"]
    assert [one["name"] for one in sent[1]["functionDeclarations"]] == ["look_up", "mine"]


def test_their_calls_are_typed_calls() -> None:
    session = Session()
    session.push_user("Go on.")
    call = {"functionCall": {"name": "click_at", "args": {"x": 3, "y": 4}}}
    content = {"role": "model", "parts": [call]}
    answer = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    outcome = Browser.offer().read(Gemini.response(answer), session)
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.issues == ()
    (found,) = outcome.round.calls
    assert found.input == ClickAt(x=3, y=4)
    outcome.round.commit(session, [found.complete("clicked")])
    again = Gemini.request(session.transcript, Browser.offer(), model="gemini-3-pro")
    assert again["contents"][-1]["parts"][0]["functionResponse"]["name"] == "click_at"


def test_no_other_type_takes_the_place_of_a_function() -> None:
    def search() -> None:
        """Search."""

    with pytest.raises(DeclarationError, match=r"no type but 'computerUse'.*'googleSearch'"):
        tool_fn(provider={API: {"type": "googleSearch"}})(search)
