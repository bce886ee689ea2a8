"""A reply that is made in the background is no answer: through both clients, whole and streamed."""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from lutumpy import AdapterError, Session
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.testing import serve

QUEUED = {
    "id": "resp_7",
    "model": "m",
    "status": "queued",
    "background": True,
    "output": [],
    "usage": None,
}
EVENTS = (
    b"event: response.created\n"
    b'data: {"type": "response.created", "response": {"id": "resp_7", "model": "m", '
    b'"status": "queued", "background": true, "output": [], "usage": null}}\n\n'
)


def asked() -> Session:
    session = Session()
    session.push_user("Hi")
    return session


def check(session: Session, error: AdapterError) -> None:
    assert "resp_7 is queued" in str(error)
    assert (error.response_id, error.code, error.retryable) == ("resp_7", "queued", False)
    assert error.request_id is not None
    assert len(session.transcript) == 1
    assert [(request.response_id, request.request_id) for request in session.unsettled] == [
        ("resp_7", error.request_id)
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_through_an_async_client(stream: bool) -> None:
    answer: Any = EVENTS if stream else QUEUED
    with serve([answer]) as server:
        async with AsyncOpenAI(base_url=server.openai_base_url, api_key="k") as client:
            session = asked()
            turn = session.text_turn(OpenAIResponses("m", client), extra={"background": True})

            async def read() -> None:
                if stream:
                    async with turn.stream() as events:
                        await events.collect()
                else:
                    await turn.collect()

            with pytest.raises(AdapterError) as caught:
                await read()
    check(session, caught.value)


@pytest.mark.parametrize("stream", [False, True])
def test_through_a_sync_client(stream: bool) -> None:
    answer: Any = EVENTS if stream else QUEUED
    with serve([answer]) as server, OpenAI(base_url=server.openai_base_url, api_key="k") as client:
        session = asked()
        turn = session.text_turn(OpenAIResponses("m", client), extra={"background": True})

        def read() -> None:
            if stream:
                with turn.stream_sync() as events:
                    events.collect()
            else:
                turn.collect_sync()

        with pytest.raises(AdapterError) as caught:
            read()
    check(session, caught.value)
