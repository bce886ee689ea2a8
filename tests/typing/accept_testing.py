"""Accepted: what a cassette makes has the type of the SDK's own client, and a call of a
conversation the input of its tool.
"""

from __future__ import annotations

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI, OpenAI
from typing_extensions import assert_type

from lutumpy import Session, ToolInput, Toolset, tool, tool_input
from lutumpy.testing import (
    Cassette,
    SessionCall,
    called,
    calls,
    expect,
    never_called,
)


@tool_input(name="refund")
class Refund(ToolInput[str]):
    """Pay a part of the price back."""

    percent: int


class Desk(Toolset):
    refund = tool(Refund)


def clients(cassette: Cassette) -> None:
    assert_type(cassette.client(AsyncOpenAI, base_url="http://host/v1"), AsyncOpenAI)
    assert_type(cassette.client(OpenAI), OpenAI)
    assert_type(cassette.client(AsyncAnthropic, max_retries=0), AsyncAnthropic)


def expectations(session: Session) -> None:
    assert_type(calls(session, Desk.refund), tuple[SessionCall[Refund], ...])
    for call in calls(session, Desk.refund):
        assert_type(call.input, Refund | None)
    expect(
        session,
        called(Desk.refund, times=1, where=lambda refund: refund.percent < 20),
        never_called(Desk.refund, where=lambda refund: refund.percent > 50),
    )
