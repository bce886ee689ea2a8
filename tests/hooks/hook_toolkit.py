"""The toolset that the tests of hooks share, and rounds of it without a model."""

from __future__ import annotations

from typing import Any

from every_api import ADAPTERS
from pydantic import BaseModel

from lutumpy import (
    NeedsTools,
    Session,
    ToolInput,
    ToolRound,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.testing import Call, Reply, render


class Forecast(BaseModel):
    text: str


class User(BaseModel):
    name: str


@tool_input(name="weather")
class Weather(ToolInput[Forecast]):
    """Tell the weather."""

    city: str
    days: list[int] = []


@tool_input(name="delete-file")
class DeleteFile(ToolInput[None]):
    """Delete a file."""

    path: str


@tool_fn(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool_input(name="get_user")
class GetUser(ToolInput[User]):
    """Look a user up."""

    user_id: str


@tool_input(name="count_users")
class CountUsers(ToolInput[int]):
    """Count the users."""


class CountTools(Toolset):
    count_users = tool(CountUsers)


class DataTools(Toolset):
    get_user = tool(GetUser)
    counts = nested(CountTools)


class AppTools(Toolset):
    weather = tool(Weather)
    delete_file = tool(DeleteFile)
    add = tool(add)
    data = nested(DataTools)


class OtherTools(Toolset):
    weather = tool(Weather)


WEATHER = Call("weather", '{"city": " Oslo "}', id="call_1")
DELETE = Call("delete-file", '{"path": "/tmp/x"}', id="call_2")
USER = Call("get_user", '{"user_id": "ann"}', id="call_3")
ADD = Call("add", '{"a": 1, "b": 2}', id="call_4")
UNKNOWN = Call("no_such_tool", "{}", id="call_5")


def start(
    *calls: Call, toolset: Any = AppTools, api: Any = "openai_chat"
) -> tuple[Session, ToolRound]:
    """A session with one answer that calls tools, and its round."""
    session = Session()
    session.push_user("go")
    turn = ADAPTERS[api].response(render(Reply(calls=calls), api, number=1, model="m"))
    outcome = toolset.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def results(session: Session) -> list[tuple[str, str, str]]:
    """(call id, status, text) of the results that were committed last."""
    return [(r.call_id, r.status, r.text) for r in session.transcript[-1].results]  # type: ignore[union-attr]
