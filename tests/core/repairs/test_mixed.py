"""Histories that mix APIs, as a switch of the provider leaves them: what another API spelled is kept, paired and accepted."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from composed import APIS, PNG, History, composed
from test_mutations import Client
from test_repairs import USER, Json, mended, output, tool

from lutumpy import apply_repairs, check_messages, propose_repairs
from lutumpy.core.check import Api
from lutumpy.core.repairs.written import FAILED
from lutumpy.testing.wire import serve

DIRECTIONS = [(other, api) for api in APIS for other in APIS if api != other]
MORE: Json = {"role": "user", "content": "And now?"}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serve(None) as server:
        made = Client(server)
        yield made
        made.connection.close()


def walk(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


def calls_of(history: History) -> dict[str, tuple[str, Any]]:
    """Name and arguments of each call, by id, whichever API spelled it."""
    found: dict[str, tuple[str, Any]] = {}
    for node in walk(history):
        if isinstance(node.get("function"), dict):
            found[node["id"]] = node["function"]["name"], json.loads(node["function"]["arguments"])
        elif isinstance(node.get("custom"), dict):
            found[node["id"]] = node["custom"]["name"], {"input": node["custom"]["input"]}
        elif node.get("type") == "function_call":
            found[node["call_id"]] = node["name"], json.loads(node["arguments"])
        elif node.get("type") == "custom_tool_call":
            found[node["call_id"]] = node["name"], {"input": node["input"]}
        elif node.get("type") == "shell_call":
            found[node["call_id"]] = "shell", {"action": node["action"]}
        elif node.get("type") == "apply_patch_call":
            found[node["call_id"]] = "apply_patch", {"operation": node["operation"]}
        elif node.get("type") == "tool_use":
            found[node["id"]] = node["name"], node["input"]
    return found


def results_of(history: History) -> dict[str, tuple[str, bool]]:
    """The text of each result, by id, and whether it shows something too; marks of errors are words of the text."""
    found: dict[str, tuple[str, bool]] = {}
    for node in walk(history):
        call_id = node.get("tool_call_id", node.get("tool_use_id"))
        content = node.get("content", "")
        if str(node.get("type")).endswith("_call_output"):
            call_id, content = node["call_id"], node.get("output", "")
            if node["type"] not in ("function_call_output", "custom_tool_call_output"):
                content = "" if node.get("output") == [] else f"status {node['status']}"
        if call_id is not None:
            parts = [{"text": content}] if isinstance(content, str) else content
            words = " ".join(part["text"] for part in parts if "text" in part)
            words = words.removeprefix(FAILED.rstrip()).replace('{"status":"completed"}', "status completed").strip()
            found[call_id] = words.partition("[image")[0].strip().replace("[]", ""), len(parts) > 1
    return found


def numbered(history: History, mark: str) -> History:
    """The same with ids of its own."""
    found: History = json.loads(re.sub(r'"(call|toolu|rs|fc|msg)_(\d)', rf'"\1_{mark}_\2', json.dumps(history)))
    return found


@pytest.mark.parametrize(("other", "api"), DIRECTIONS)
def test_a_history_that_goes_on_with_another_api_keeps_every_call_with_its_result(
    other: Api, api: Api, client: Client
) -> None:
    rng = random.Random(f"{other} {api}")
    for _ in range(40):
        before = numbered(composed(other, rng, rounds=2), "a")
        history = [*before, *composed(api, rng, rounds=2), *numbered(composed(other, rng, rounds=1), "b")]
        repairs = propose_repairs(api, history)
        after = apply_repairs(history, repairs)
        assert not [p for p in check_messages(api, after) if p.certainty == "refused"]
        assert propose_repairs(api, after) == []
        assert client.send(api, after) == (200, "")
        assert {repair.kind for repair in repairs} & {"close_call", "drop_result", "drop_call"} == set()
        assert same(calls_of(after)) == same(calls_of(history))
        assert {k: w for k, (w, _) in results_of(after).items()} == {k: w for k, (w, _) in results_of(history).items()}


def same(calls: Mapping[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    """Free text and an object that holds it are the same arguments."""
    return {key: (name, json.dumps(value, sort_keys=True)) for key, (name, value) in calls.items()}
