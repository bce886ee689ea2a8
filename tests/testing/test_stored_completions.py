"""Stored chat completions and compactions at the test server, through OpenAI's client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from lutumpy.testing import Call, Reply, serve

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "How many?"}]}


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    script = [Reply("One."), Reply("Two."), Reply("Three.")]
    with (
        serve(script) as server,
        openai.OpenAI(base_url=server.openai_base_url, api_key="k", max_retries=0) as made,
    ):
        yield made


def test_a_stored_completion_can_be_found_changed_and_deleted(client: openai.OpenAI) -> None:
    chat = client.chat.completions
    first = chat.create(**ASK, store=True, metadata={"a": "1"})
    chat.create(**ASK)
    last = chat.create(**{**ASK, "model": "n"}, store=True)
    assert [one.id for one in chat.list()] == [first.id, last.id]
    assert [one.id for one in chat.list(order="desc", limit=1)] == [last.id, first.id]
    assert [one.id for one in chat.list(model="n")] == [last.id]
    found = chat.retrieve(first.id)
    assert found.choices[0].message.content == "One."
    assert found.to_dict()["metadata"] == {"a": "1"}
    assert chat.update(first.id, metadata={"b": "2"}).to_dict()["metadata"] == {"b": "2"}
    (message,) = chat.messages.list(first.id)
    assert message.content == "How many?"
    assert chat.delete(first.id).deleted
    for ask in (chat.retrieve, chat.delete):
        with pytest.raises(openai.NotFoundError, match="No chat completion found"):
            ask(first.id)
    with pytest.raises(openai.BadRequestError, match="'metadata'"):
        client.post(f"/chat/completions/{last.id}", body={}, cast_to=object)


def test_what_was_compacted_goes_on_with_less_PB21() -> None:
    with serve([Reply(reasoning="Hm.", calls=[Call("look")]), Reply("Done.")]) as server:
        client = openai.OpenAI(base_url=server.openai_base_url, api_key="k", max_retries=0)
        tool: Any = {"type": "function", "name": "look", "parameters": {"type": "object"}}
        ask: Any = {"model": "gpt-6.2-astra", "tools": [{**tool, "strict": False}]}
        first = client.responses.create(**ask, input="Go.")
        result: Any = {
            "type": "function_call_output",
            "call_id": first.to_dict()["output"][-1]["call_id"],  # type: ignore[index]
            "output": "ok",
        }
        compacted = client.responses.compact(
            model="gpt-6.2-astra", previous_response_id=first.id, input=[result]
        )
        output: Any = compacted.to_dict(warnings=False)["output"]
        assert compacted.object == "response.compaction"
        assert [item["type"] for item in output] == ["message", "compaction"]
        assert output[0]["content"] == [{"type": "input_text", "text": "Go."}]
        on: Any = [*output, {"role": "user", "content": "And now?"}]
        assert client.responses.create(**ask, input=on).output_text == "Done."
        with pytest.raises(openai.BadRequestError):
            client.responses.compact(model="gpt-6.2-astra", previous_response_id="resp_x")
        client.close()
