"""Guided answers of a real, very small model. See `test_adapters_live` for when these tests run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from lutumpy import (
    Finished,
    NeedsTools,
    Session,
    ToolCallReady,
    ToolRequirement,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.cli import main
from lutumpy.local import LocalServer, serve
from lutumpy.local.demo import FORECAST, run_local
from lutumpy.text_tools import TextTools

pytestmark = pytest.mark.skipif(
    os.environ.get("LUTUMPY_NEED_LOCAL") != "1", reason="LUTUMPY_NEED_LOCAL is not set"
)


@tool_fn
def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: Name of the city.
    """
    return f"In {city} it is snowing."


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool_fn
def now() -> str:
    """Tell the time."""
    return "noon"


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Pizza(BaseModel):
    size: Size
    toppings: list[Literal["cheese", "ham", "olives"]]
    price: float | None = None


@tool_fn
def order(pizza: Pizza, table: int = 1, paid: bool = False) -> str:
    """Order a pizza.

    Args:
        pizza: What is wanted.
        table: Number of the table.
        paid: Whether it has been paid for.
    """
    return "soon"


class Weather(Toolset):
    get_weather = tool(get_weather)


class Several(Toolset):
    get_weather = tool(get_weather)
    add = tool(add)
    now = tool(now)
    order = tool(order)


class Restaurant(Toolset):
    order = tool(order)


CASES: list[tuple[type[Toolset], str]] = [
    (Weather, "What is the weather in Paris?"),
    (Weather, "Hello!"),
    (Several, "What is 17 plus 25?"),
    (Several, "What time is it?"),
    (Several, 'Write a poem about {"braces": ["and quotes"]}.'),
    (Restaurant, "I want a large pizza with cheese and ham at table 7."),
]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with serve() as running:
        yield running


def guided(server: LocalServer, temperature: float = 0, seed: int = 1) -> TextTools:
    options: dict[str, Any] = {
        "temperature": temperature,
        "max_output_tokens": 200,
        "extra": {"seed": seed},
    }
    return TextTools(server.chat(**options), guided=True)


def asking(text: str) -> Session:
    session = Session()
    session.push_user(text)
    return session


@pytest.mark.sweep
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    ("tools", "prompt"), CASES, ids=[f"{tools.__name__}: {text[:20]}" for tools, text in CASES]
)
def test_a_call_that_is_required_is_made_and_valid(
    server: LocalServer, tools: type[Toolset], prompt: str, temperature: float
) -> None:
    turn = asking(prompt).text_turn(
        guided(server, temperature),
        tools=tools,
        require=ToolRequirement.at_least_one(),
        parallel=False,
    )
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.issues == ()
    assert len(outcome.round.calls) == 1
    outcome.round.discard()


@pytest.mark.sweep
@pytest.mark.parametrize("selector", Several.selectors(), ids=str)
def test_the_tool_that_is_required_is_the_one_that_is_called(
    server: LocalServer, selector: Any
) -> None:
    turn = asking("What is 17 plus 25?").text_turn(
        guided(server), tools=Several, require=ToolRequirement.specific(selector), parallel=False
    )
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert [call.metadata.name for call in outcome.round.calls] == [selector.name]
    assert outcome.round.issues == ()
    outcome.round.discard()


@pytest.mark.parametrize("seed", range(2))
def test_an_answer_of_its_own_choice_is_calls_or_text(server: LocalServer, seed: int) -> None:
    """Nothing of the JSON is shown as text, and no call comes out of a text."""
    turn = asking("How are you?").text_turn(
        guided(server, 0.8, seed), tools=Weather, parallel=False
    )
    match turn.collect_sync():
        case NeedsTools(round=round):
            assert round.issues == ()
            round.discard()
        case Finished(result=result):
            assert not result.text.lstrip().startswith("{")


@pytest.mark.parametrize("seed", range(2))
def test_two_things_asked_for_are_two_calls_of_the_models_own(
    server: LocalServer, seed: int
) -> None:
    session = asking("What is the weather in Oslo and in Rome?")
    turn = session.text_turn(
        guided(server, seed=seed), tools=Weather, require=ToolRequirement.at_least_one()
    )
    with turn.stream_sync() as stream:
        ready = [event.call.input.city for event in stream if isinstance(event, ToolCallReady)]
    outcome = stream.outcome
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.issues == ()
    assert ready == [call.input.city for call in outcome.round.calls] == ["Oslo", "Rome"]
    outcome.round.commit(
        session, [call.complete(get_weather(**call.arguments)) for call in outcome.round.calls]
    )
    session.push_user("Answer my question in one sentence.")
    assert session.text_turn(guided(server, seed=seed)).collect_sync().text.strip()


@pytest.mark.parametrize("wire", ["responses", "messages"])
def test_a_wire_that_pays_no_attention_to_the_schema_gives_text(
    server: LocalServer, wire: str
) -> None:
    model = TextTools(getattr(server, wire)(temperature=0, max_output_tokens=60), guided=True)
    outcome = asking("What is the weather in Oslo?").text_turn(model, tools=Weather).collect_sync()
    match outcome:
        case NeedsTools(round=round):
            round.discard()
        case Finished(result=result):
            assert result.text.strip()


@pytest.mark.parametrize("seed", range(2))
def test_what_it_writes_unguided_never_raises(server: LocalServer, seed: int) -> None:
    model = TextTools(
        server.chat(
            temperature=1.5, max_output_tokens=60, extra={"seed": seed, "top_k": 0, "min_p": 0.0}
        )
    )
    session = asking("What is the weather in Oslo and in Rome?")
    for _ in range(3):
        match session.text_turn(model, tools=Several).collect_sync():
            case NeedsTools(round=round):
                round.commit(session, [call.fail("not now") for call in round.calls])
            case Finished():
                session.push_user("Call a tool.")


@pytest.mark.sweep
@pytest.mark.parametrize("city", FORECAST)
async def test_the_demo_has_a_call_and_an_answer_for_every_city_it_may_ask_for(city: str) -> None:
    lines: list[str] = []
    result = await run_local(city=city, write=lines.append)
    assert result is not None
    assert result.text.strip()
    shown = "\n".join(lines)
    assert f"call       call00001  GetWeatherInput(city='{city}')" in shown
    assert f"ok: In {city} it is {FORECAST[city]}." in shown
    assert "issue" not in shown
    assert lines[-1].split(maxsplit=1)[1] in result.text


def test_the_command_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--local"]) == 0
    shown = capsys.readouterr()
    assert "SmolLM2-135M-Instruct" in shown.out
    assert shown.err == ""
