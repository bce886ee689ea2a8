"""The test server refuses, drops or allows reasoning of another conversation as its model does
(PB21).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest
from bound_toolkit import CLIENTS

from lutumpy.rules.anthropic.models import BINDING_CONTROLS, TOOL_CHANGES
from lutumpy.testing import Call, Reply, WireServer, serve

Json = dict[str, Any]
ENFORCED = "claude-fable-5-2"
NEW_ACCOUNTS = "claude-opus-5-5"
FREE = "claude-opus-5"
LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
SEND: Json = {"name": "send", "description": "Sends.", "input_schema": {"type": "object"}}
LATER: Json = {**SEND, "name": "later", "defer_loading": True}
OFF: Json = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "send"}}
WORDS = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def started(model: str) -> Json:
    return {
        "model": model,
        "max_tokens": 100,
        "system": "Be brief.",
        "tools": [LOOK, SEND],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Go."}]}],
    }


class Talk:
    """A conversation through the vendor's own client, whose requests are kept as they grow."""

    def __init__(self, server: WireServer, model: str = ENFORCED) -> None:
        client = anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0)
        self.client = CLIENTS.enter_context(client)
        self.body = started(model)

    def ask(self, body: Json | None = None, betas: tuple[str, ...] = ()) -> Json:
        headers = {"anthropic-beta": ",".join(betas)} if betas else {}
        answer = self.client.post(
            "/v1/messages",
            body=self.body if body is None else body,
            options={"headers": headers},
            cast_to=object,
        )
        assert isinstance(answer, dict)
        return answer

    def turn(self) -> None:
        """One round of a call: the answer, and its result."""
        answer = self.ask(betas=(TOOL_CHANGES,))
        use = answer["content"][-1]
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}
        self.body["messages"] += [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [result]},
        ]

    def edited(self, edit: Callable[[Json], Any]) -> Json:
        body = copy.deepcopy(self.body)
        edit(body)
        return body


def think(number: int = 0) -> Reply:
    return Reply(reasoning=f"Thought {number}.", calls=[Call("look")])


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve(thoughts()) as made:
        yield made


def thoughts() -> list[Any]:
    return [think(number) for number in range(40)]


def talk_of(server: WireServer, model: str = ENFORCED, turns: int = 3) -> Talk:
    talk = Talk(server, model)
    for _ in range(turns):
        talk.turn()
    return talk


CHANGED: dict[str, Callable[[Json], Any]] = {
    "system": lambda body: body.update(system="Be long."),
    "a tool less": lambda body: body["tools"].pop(),
    "a tool more": lambda body: body["tools"].append({**LOOK, "name": "new"}),
    "a description": lambda body: body["tools"].__setitem__(0, {**LOOK, "description": "Sees."}),
    "the order of tools": lambda body: body["tools"].reverse(),
    "the first message": lambda body: body["messages"][0].update(content="Go on."),
    "a deferred tool that was referenced": lambda body: (
        body["tools"].append(LATER),
        body["messages"].insert(
            1,
            {
                "role": "system",
                "content": [
                    {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "later"}}
                ],
            },
        ),
    ),
}
SAME: dict[str, Callable[[Json], Any]] = {
    "nothing": lambda body: None,
    "marks for the cache": lambda body: (
        body["messages"][0]["content"][0].update(cache_control={"type": "ephemeral"}),
        body["tools"].__setitem__(1, {**SEND, "cache_control": {"type": "ephemeral"}}),
    ),
    "parameters": lambda body: body.update(
        max_tokens=200, tool_choice={"type": "auto"}, output_config={"effort": "low"}
    ),
    "a deferred tool": lambda body: body["tools"].append(LATER),
    "a tool withdrawn behind it": lambda body: body["messages"].append(
        {"role": "system", "content": [OFF]}
    ),
    "without the oldest block": lambda body: body["messages"][1]["content"].pop(0),
}


def test_what_is_bound_may_not_change_and_the_rest_may_PB21(server: WireServer) -> None:
    talk = talk_of(server)
    for name, edit in CHANGED.items():
        with pytest.raises(anthropic.BadRequestError) as refused:
            talk.ask(talk.edited(edit), betas=(TOOL_CHANGES,))
        assert WORDS in str(refused.value), name
        place = next(
            f"messages.{index}.content.0"
            for index, message in enumerate(talk.edited(edit)["messages"])
            if message["role"] == "assistant"
        )
        assert f"{place}: {WORDS}" in str(refused.value), name
    for name, edit in SAME.items():
        answer = talk.ask(talk.edited(edit), betas=(TOOL_CHANGES, BINDING_CONTROLS))
        assert answer["input_transformations"] == [], name
    assert "input_transformations" not in talk.ask()


def test_a_block_left_out_in_the_middle_spoils_all_later_ones_PB21(server: WireServer) -> None:
    talk = talk_of(server, turns=4)
    body = talk.edited(lambda body: body["messages"][3]["content"].pop(0))
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.5\.content\.0: Invalid"):
        talk.ask(body)
    body["thinking"] = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    told = talk.ask(body, betas=(BINDING_CONTROLS,))["input_transformations"]
    assert told == [
        {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"}
        for path in ("messages.5.content.0", "messages.7.content.0")
    ]


def test_who_is_refused_depends_on_model_and_account_PB21() -> None:
    for model, new_account, is_refused in [
        (ENFORCED, False, True),
        (NEW_ACCOUNTS, True, True),
        (NEW_ACCOUNTS, False, False),
        (FREE, True, False),
    ]:
        with serve(thoughts(), new_account=new_account) as server:
            talk = talk_of(server, model, turns=1)
            body = talk.edited(CHANGED["system"])
            if is_refused:
                with pytest.raises(anthropic.BadRequestError, match="different conversation"):
                    talk.ask(body, betas=(BINDING_CONTROLS,))
                continue
            told = talk.ask(body, betas=(BINDING_CONTROLS,))["input_transformations"]
            allowed = {
                "type": "thinking_mismatch_allowed",
                "path": "messages.1.content.0",
                "reason": "prefix_binding_mismatch",
            }
            assert told == ([allowed] if model == NEW_ACCOUNTS else [])


def test_reasoning_of_another_model_is_hidden_and_comes_back_PB21(server: WireServer) -> None:
    talk = talk_of(server, turns=2)
    talk.body["model"] = NEW_ACCOUNTS
    hidden = [
        {"type": "thinking_dropped", "path": path, "reason": "model_binding_mismatch"}
        for path in ("messages.1.content.0", "messages.3.content.0")
    ]
    assert talk.ask(betas=(BINDING_CONTROLS,))["input_transformations"] == hidden
    talk.turn()
    talk.body["model"] = ENFORCED
    told = talk.ask(betas=(BINDING_CONTROLS,))["input_transformations"]
    assert [entry["path"] for entry in told] == ["messages.5.content.0"]
    talk.turn()
    talk.turn()


def test_dropping_needs_its_header_and_thinking_PB21(server: WireServer) -> None:
    talk = talk_of(server, turns=1)
    drop = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    for thinking, betas, words in [
        ({"type": "adaptive", **drop}, (), "Extra inputs are not permitted"),
        ({"type": "disabled", **drop}, (BINDING_CONTROLS,), "thinking is disabled"),
        (
            {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "keep"}},
            (BINDING_CONTROLS,),
            "Input should be 'error' or 'drop_block'",
        ),
    ]:
        with pytest.raises(anthropic.BadRequestError, match=words):
            talk.ask({**talk.body, "thinking": thinking}, betas=betas)


def test_a_stream_tells_at_its_start_PB21(server: WireServer) -> None:
    talk = talk_of(server, turns=1)
    body = talk.edited(CHANGED["system"])
    body["thinking"] = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    with talk.client.beta.messages.stream(**body, betas=[BINDING_CONTROLS]) as stream:
        start = next(event for event in stream if event.type == "message_start")
        message = start.to_dict()["message"]
    assert isinstance(message, dict)
    assert message["input_transformations"] == [
        {
            "type": "thinking_dropped",
            "path": "messages.1.content.0",
            "reason": "prefix_binding_mismatch",
        }
    ]


def test_a_thread_is_bound_to_all_of_it_PB21(server: WireServer) -> None:
    talk = Talk(server)
    body = {**talk.body, "thread": {"type": "create"}}
    first = talk.ask(body)
    result = {"type": "tool_result", "tool_use_id": first["content"][-1]["id"], "content": "ok"}
    later: Json = {"role": "user", "content": [result]}
    going_on = {"type": "continue", "previous_message_id": first["id"]}
    short = {"model": ENFORCED, "max_tokens": 100, "messages": [later], "thread": going_on}
    second = talk.ask(short)
    whole = [
        *talk.body["messages"],
        {"role": "assistant", "content": first["content"]},
        later,
        {"role": "assistant", "content": second["content"]},
        {"role": "user", "content": [{**result, "tool_use_id": second["content"][-1]["id"]}]},
    ]
    told = talk.ask({**talk.body, "messages": whole}, betas=(BINDING_CONTROLS,))
    assert told["input_transformations"] == []
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.1\.content\.0: Invalid"):
        talk.ask({**talk.body, "messages": whole, "system": "Be long."})
