"""Valid histories, broken in every way that the rules know, are mended and then accepted."""

from __future__ import annotations

import copy
import http.client
import json
import random
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from composed import APIS, KEYS, History, composed, recorded
from mutations import MUTATIONS, THOROUGH
from profiles import examples

from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.models import Api
from lutumpy.testing import WireServer, serve

PLACES = 6
"""Random histories and places for each way of breaking, half of them recorded ones."""

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "bedrock_converse": "/model/some-model/converse",
    "gemini_generate_content": "/v1beta/models/some-model:generateContent",
}
HEADERS = {
    "authorization": "Bearer key",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "mid-conversation-tool-changes-2026-07-01",
    "content-type": "application/json",
}
RECORDED = {api: recorded(api) for api in APIS}
CASES = [(api, name) for api, mutations in MUTATIONS.items() for name in mutations]


class Client:
    """A plain HTTP client of the test server."""

    def __init__(self, server: WireServer) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)

    def send(self, api: str, history: History) -> tuple[int, str]:
        """Status, and the error's message."""
        body: dict[str, Any] = {"model": "some-model", KEYS[api]: history}
        if api == "anthropic_messages":
            body["max_tokens"] = 64
            # What a recorded change of tools refers to was declared.
            names = dict.fromkeys(
                re.findall(r'"tool_reference", "name": "(\w+)"', json.dumps(body))
            )
            names |= dict.fromkeys(
                re.findall(r'"name": "(\w+)", "type": "tool_ref', json.dumps(body))
            )
            if names:
                body["tools"] = [
                    {"name": name, "input_schema": {"type": "object"}} for name in names
                ]
        elif api == "bedrock_converse":
            tool = {"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}
            body = {"messages": history, "toolConfig": {"tools": [tool]}}
        self.connection.request("POST", PATHS[api], json.dumps(body), HEADERS)
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        error = answer.get("error", answer)
        return response.status, error["message"] if response.status != 200 else ""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serve(None) as server:
        made = Client(server)
        yield made
        made.connection.close()


def broken(api: str, name: str) -> Iterator[tuple[str, History]]:
    """The rule and the history, for some places drawn with a seed."""
    rng = random.Random(f"{api} {name}")
    made = tried = 0
    while made < PLACES:
        tried += 1
        assert tried < 400, f"{name} fits no history"
        history = (
            copy.deepcopy(rng.choice(RECORDED[api]))
            if made % 2 and tried < 200
            else composed(api, rng)
        )
        rule = MUTATIONS[api][name](rng, history)
        if rule is not None:
            made += 1
            yield rule, history


def refused(api: Api, history: Any) -> list[str]:
    return [p.message for p in check_messages(api, history) if p.certainty == "refused"]


def test_there_are_enough_ways_to_break_a_history() -> None:
    assert {api: len(mutations) >= 20 for api, mutations in MUTATIONS.items()} == dict.fromkeys(
        APIS, True
    )


@pytest.mark.pure
@pytest.mark.sweep
@pytest.mark.parametrize(("api", "name"), CASES)
def test_what_is_broken_is_found_mended_and_accepted(api: Api, name: str, client: Client) -> None:
    for rule, history in broken(api, name):
        before = json.dumps(history)
        found = check_messages(api, history)
        assert rule in [p.rule for p in found]
        status, message = client.send(api, history)
        certain = refused(api, history)
        assert (status, message) == ((400, certain[0]) if certain else (200, ""))

        thorough = name in THOROUGH[api]
        assert not thorough or all(repair.rule != rule for repair in propose_repairs(api, history))
        repairs = propose_repairs(api, history, thorough=thorough)
        assert repairs
        mended = apply_repairs(history, repairs)
        assert json.dumps(history) == before
        assert refused(api, mended) == []
        assert not thorough or rule not in [p.rule for p in check_messages(api, mended)]
        assert propose_repairs(api, mended, thorough=thorough) == []
        assert client.send(api, mended) == (200, "")


@pytest.mark.parametrize("api", APIS)
def test_a_history_broken_in_several_ways_is_mended_as_well(api: Api, client: Client) -> None:
    rng = random.Random(7)
    for _ in range(examples(30)):
        history = composed(api, rng, rounds=4)
        names = rng.sample(sorted(MUTATIONS[api]), 4)
        for name in names:
            try:
                MUTATIONS[api][name](rng, history)
            except (KeyError, TypeError, IndexError, AttributeError):
                continue  # what another one broke can't be found any more
        repairs = propose_repairs(api, history)
        mended = apply_repairs(history, repairs)
        assert refused(api, mended) == [], names
        assert propose_repairs(api, mended) == [], names
        assert client.send(api, mended) == (200, ""), names


@pytest.mark.parametrize("api", APIS)
def test_the_server_takes_the_histories_before_they_are_broken(api: Api, client: Client) -> None:
    rng = random.Random(3)
    for history in [*RECORDED[api][:20], *[composed(api, rng) for _ in range(20)]]:
        assert client.send(api, history) == (200, "")
        assert propose_repairs(api, history) == []
