"""The container in which the provider ran code, for a program that goes on in it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from toolkit import WeatherTools

from lutumpy import Session, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages, Container
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.models import AssistantTurn
from lutumpy.testing import Reply, render

EXPIRES = datetime(2026, 11, 21, tzinfo=timezone.utc)


def answer(container: Any) -> AssistantTurn:
    body = render(Reply("Done."), "anthropic_messages", number=1, model="m")
    return AnthropicMessages.response({**body, "container": container})


def told(*turns: AssistantTurn) -> Transcript:
    transcript = Transcript()
    for turn in turns:
        transcript.push_user("Go on.")
        transcript.append_turn(turn)
    return transcript


def test_the_latest_answer_that_names_one_is_asked() -> None:
    named = answer({"id": "container_2", "expires_at": "2026-11-21T00:00:00Z"})
    chat = OpenAIChat.response(render(Reply("Hi."), "openai_chat", number=1, model="m"))
    transcript = told(answer({"id": "container_1"}), named, answer(None), chat)
    assert AnthropicMessages.container(transcript) == Container("container_2", EXPIRES)
    assert AnthropicMessages.container(named) == Container("container_2", EXPIRES)
    assert AnthropicMessages.container(chat) is None
    assert AnthropicMessages.container(Transcript()) is None


@pytest.mark.parametrize(
    ("container", "wanted"),
    [
        ({"id": "c", "expires_at": None}, Container("c")),
        ({"id": "c", "expires_at": "soon"}, Container("c")),
        ({"id": "c", "expires_at": 7}, Container("c")),
        ("c", Container("c")),
        ({"id": ""}, None),
        ({"id": 7}, None),
        ({}, None),
        ([], None),
        ("", None),
        (7, None),
    ],
)
def test_whatever_stands_there_nothing_raises(container: Any, wanted: Container | None) -> None:
    assert AnthropicMessages.container(answer(container)) == wanted


def test_it_survives_a_dump_and_is_a_parameter_of_the_next_request_R4() -> None:
    session = Session(told(answer({"id": "container_1"})))
    loaded = Session.load(session.dump())
    found = AnthropicMessages.container(loaded.transcript)
    assert found is not None
    loaded.push_user("Read the file again.")
    offer = WeatherTools.offer()
    body = AnthropicMessages.request(loaded.transcript, offer, extra={"container": found.id})
    assert body["container"] == "container_1"


def test_a_session_is_not_a_transcript() -> None:
    with pytest.raises(TypeError, match=r"use session\.transcript"):
        AnthropicMessages.container(Session())  # type: ignore[arg-type]
