"""Options of a turn that reach the request through HTTP: a typed value, and what is taken away."""

from __future__ import annotations

from pydantic import BaseModel

from lutumpy import UNSET, Session
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.testing import Reply, serve


class Contact(BaseModel):
    name: str


async def test_a_value_is_asked_for_and_a_parameter_taken_away_OR8() -> None:
    session = Session()
    session.push_user("Who?")
    with serve([Reply(text='{"name": "Ada"}')]) as server:
        async with OllamaChat("m", base_url=server.url) as llm:
            extra = {"keep_alive": "5m", "think": UNSET}
            result = await session.structured_turn(llm, Contact, extra=extra).collect()
        assert result.value == Contact(name="Ada")
        (request,) = server.requests
    assert request.body["format"]["type"] == "object"
    assert request.body["keep_alive"] == "5m"
    assert "think" not in request.body
