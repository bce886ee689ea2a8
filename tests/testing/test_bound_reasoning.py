"""The test server takes encrypted reasoning of another conversation away, or refuses a Claude's at
Bedrock, as the APIs do (PB21).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import boto3
import botocore.config
import botocore.exceptions
import openai
import pytest
from bound_toolkit import CLIENTS

from lutumpy.testing import Call, Reply, WireServer, serve

Json = dict[str, Any]
BINDS = "gpt-6.2-astra"
FREE = "gpt-6.1"
LOOK: Json = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
SEND: Json = {**LOOK, "name": "send"}
TEXT = {"type": "message", "role": "developer", "content": "Be short."}
FORMAT = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
MORE: Json = {"type": "additional_tools", "role": "developer", "tools": [SEND]}
UPDATE: Json = {"type": "configuration_update", "reasoning": {"effort": "low"}}


def thoughts() -> list[Any]:
    return [Reply(reasoning=f"Thought {n}.", calls=[Call("look")]) for n in range(60)]


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve(thoughts()) as made:
        yield made


class Talk:
    """A conversation through OpenAI's own client, whose requests are kept as they grow."""

    def __init__(self, server: WireServer, model: str = BINDS, turns: int = 0) -> None:
        client = openai.OpenAI(base_url=server.openai_base_url, api_key="k", max_retries=0)
        self.client = CLIENTS.enter_context(client)
        self.body: Json = {
            "model": model,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "instructions": "Help.",
            "tools": [LOOK],
            "input": [{"role": "user", "content": "Go."}],
        }
        for _ in range(turns):
            self.turn()

    def ask(self, body: Json | None = None) -> Json:
        return self.client.responses.create(**(body or self.body)).to_dict()

    def turn(self) -> Json:
        answer = self.ask()
        self.body["input"] += [*answer["output"], output_of(answer)]
        return answer

    def removed(self, body: Json) -> list[tuple[str, str]]:
        told = self.ask(body).get("input_transformations", [])
        assert all(one["action"] == "removed" and one["type"] == "reasoning" for one in told)
        return [(one["id"], one["reason"]) for one in told]

    def edited(self, edit: Callable[[Json], Any]) -> Json:
        body = copy.deepcopy(self.body)
        edit(body)
        return body

    @property
    def ids(self) -> list[str]:
        return [item["id"] for item in self.body["input"] if item.get("type") == "reasoning"]


def output_of(answer: Json) -> Json:
    call_id = answer["output"][-1]["call_id"]
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def without_ids(body: Json) -> None:
    for item in body["input"]:
        item.pop("id", None)
        item.pop("status", None)


def without_first_reasoning(body: Json) -> None:
    without_ids(body)  # a call with its id would ask for it
    del body["input"][1]


CHANGED: dict[str, Callable[[Json], Any]] = {
    "a tool more": lambda body: body["tools"].append(SEND),
    "no tools": lambda body: body.pop("tools"),
    "a description": lambda body: body["tools"][0].update(description="Looks."),
    "the format": lambda body: body.update(text={"format": FORMAT}),
    "the first message": lambda body: body["input"][0].update(content="Go on."),
    "a message before it": lambda body: body["input"].insert(0, TEXT),
}
SAME: dict[str, Callable[[Json], Any]] = {
    "nothing": lambda body: None,
    "instructions": lambda body: body.update(instructions="Be long."),
    "a choice among the tools": lambda body: body.update(tool_choice="none"),
    "effort and verbosity": lambda body: body.update(
        reasoning={"effort": "low"}, text={"verbosity": "low"}
    ),
    "tools behind it": lambda body: body["input"].append(MORE),
    "an update behind it": lambda body: body["input"].append(UPDATE),
    "ids": without_ids,
    "the oldest reasoning": without_first_reasoning,
}


@pytest.mark.pure
@pytest.mark.slow
def test_what_is_bound_is_removed_when_it_changes_and_told_PB21(server: WireServer) -> None:
    talk = Talk(server, turns=3)
    for name, edit in CHANGED.items():
        told = talk.removed(talk.edited(edit))
        assert told == [(one, "prefix_mismatch") for one in talk.ids], name
    for name, edit in SAME.items():
        assert talk.removed(talk.edited(edit)) == [], name
    # A message between two turns spoils what was thought behind it.
    assert talk.removed(talk.edited(lambda body: body["input"].insert(4, TEXT))) == [
        (one, "prefix_mismatch") for one in talk.ids[1:]
    ]


@pytest.mark.pure
@pytest.mark.slow
def test_reasoning_is_bound_from_the_version_on_that_binds_it_PB21(server: WireServer) -> None:
    talk = Talk(server, FREE, turns=1)
    assert talk.removed(talk.edited(CHANGED["a tool more"])) == []
    own = talk.ids
    talk.body["model"] = BINDS
    assert talk.removed(talk.body) == [(own[0], "model_mismatch")]
    talk.turn()
    assert talk.removed(talk.edited(CHANGED["a tool more"])) == [
        (own[0], "model_mismatch"),
        (talk.ids[1], "prefix_mismatch"),
    ]


def test_what_the_api_holds_is_a_part_of_the_beginning_PB21(server: WireServer) -> None:
    talk = Talk(server)
    del talk.body["store"]
    first = talk.ask()
    short = {**talk.body, "previous_response_id": first["id"], "input": [output_of(first)]}
    assert talk.removed(short) == []
    first_thought = first["output"][0]["id"]
    assert talk.removed({**short, "tools": [SEND, LOOK]}) == [(first_thought, "prefix_mismatch")]
    talk.body["input"] += [*first["output"], output_of(first)]
    assert talk.removed(talk.body) == []


def test_a_compaction_begins_anew_PB21() -> None:
    compaction: Json = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABcmp"}
    with serve(thoughts()) as server:
        talk = Talk(server)
        talk.body["input"].append(compaction)
        talk.turn()
        assert talk.removed(talk.edited(CHANGED["the first message"])) == []
        assert talk.removed(talk.edited(lambda body: body["input"].pop(0))) == []
        assert len(talk.removed(talk.edited(CHANGED["a tool more"]))) == 1


def test_a_stream_and_a_stored_response_tell_the_same_PB21(server: WireServer) -> None:
    talk = Talk(server, turns=1)
    body = talk.edited(CHANGED["a tool more"])
    del body["store"]
    with talk.client.responses.create(**body, stream=True) as stream:
        last = [event.to_dict() for event in stream][-1]["response"]
    told = [{"id": talk.ids[0], "action": "removed", "reason": "prefix_mismatch"}]
    assert isinstance(last, dict)
    assert last["input_transformations"] == [{**told[0], "type": "reasoning"}]
    stored = talk.client.responses.retrieve(last["id"]).to_dict()
    assert stored["input_transformations"] == last["input_transformations"]


CLAUDE = "us.anthropic.claude-fable-5-2-v1:0"
CLAUDE_NEW = "us.anthropic.claude-opus-5-5-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"


class Converse:
    """A conversation through boto3."""

    def __init__(self, server: WireServer, model: str) -> None:
        client = boto3.client(
            "bedrock-runtime",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="s",
            config=botocore.config.Config(retries={"max_attempts": 0}),
        )
        self.client: Any = CLIENTS.enter_context(closing(client))
        spec = {"name": "look", "inputSchema": {"json": {"type": "object"}}}
        self.body: Json = {
            "modelId": model,
            "system": [{"text": "Be brief."}],
            "toolConfig": {"tools": [{"toolSpec": spec}]},
            "messages": [{"role": "user", "content": [{"text": "Go."}]}],
        }
        for _ in range(2):
            message = self.client.converse(**self.body)["output"]["message"]
            use = message["content"][-1]["toolUse"]
            use.pop("type", None)
            result = {"toolUseId": use["toolUseId"], "content": [{"text": "ok"}]}
            self.body["messages"] += [
                message,
                {"role": "user", "content": [{"toolResult": result}]},
            ]

    def is_refused(self, **changed: Any) -> bool:
        try:
            self.client.converse(**{**self.body, **changed})
        except botocore.exceptions.ClientError as error:
            words = str(error)
        else:
            return False
        assert "(ValidationException)" in words
        assert "messages.1.content.0: Invalid `signature` in `thinking` block" in words
        return True


def test_a_claude_at_bedrock_binds_as_elsewhere_PB21() -> None:
    changed: Json = {"system": [{"text": "Be long."}]}
    cached: Json = {"system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]}
    drop = {"thinking": {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    for model, new_account, is_refused in [
        (CLAUDE, False, True),
        (CLAUDE_NEW, True, True),
        (CLAUDE_NEW, False, False),
        (NOVA, True, False),
    ]:
        with serve(thoughts(), new_account=new_account) as server:
            talk = Converse(server, model)
            assert talk.is_refused(**changed) is is_refused, model
            assert not talk.is_refused(**cached)
            assert not talk.is_refused()
            if is_refused:
                assert not talk.is_refused(**changed, additionalModelRequestFields=drop)
