"""A model of several, the one of the examples: it goes on with another model, host or vendor in the
middle of a round, and back, and every host takes what it gets (issue 27, point 6; OR2 to OR4, OR8).
"""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI
from profiles import examples

from lutumpy import AdapterError, Finished, NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.rules.host_facts import HOST_FACTS
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, WireServer, serve

Json = dict[str, Any]
KEY: Json = {"api_key": "k", "max_retries": 0}
PLACES = {
    "deepseek": ("openai_chat", "deepseek", "deepseek-reasoner"),
    "openrouter": ("openai_chat", "openrouter", "deepseek/deepseek-reasoner"),
    "groq": ("openai_chat", "groq", "openai/gpt-oss-120b"),
    "mistral": ("openai_chat", "mistral", "magistral-medium"),
    "gpt": ("openai_responses", "", "gpt-6.2"),
    "xai": ("openai_responses", "xai", "grok-5"),
    "claude": ("anthropic_messages", "", "claude-fable-5-2"),
    "older claude": ("anthropic_messages", "", "claude-opus-4-6"),
    "zai": ("anthropic_messages", "zai", "glm-5"),
}
"""API, host (empty for the vendor's own) and model."""

HOSTS = ("deepseek", "openrouter", "groq", "mistral", "xai", "zai")


@pytest.fixture(scope="module")
def fallback() -> Any:
    """The class of the example."""
    import importlib.util

    path = Path(__file__).parents[1] / "examples" / "fallback_model" / "model.py"
    spec = importlib.util.spec_from_file_location("fallback_model_of_the_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Fallback


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    look = tool(look)


class Hosts:
    """The test server for all places, whose answers fail as often as a test says."""

    def __init__(self, server: WireServer, stack: ExitStack) -> None:
        self.server, self._stack = server, stack
        self.draw = random.Random(0)
        self.failing = 0.0
        self.async_clients: list[Any] = []

    def at(self, name: str, *, is_async: bool = False) -> Any:
        api, host, model = PLACES[name]
        at = self.server.at(host) if host else self.server
        facts = HOST_FACTS[host] if host else None
        if api == "anthropic_messages":
            claude: Any = AsyncAnthropic if is_async else Anthropic
            client = self._opened(claude(base_url=at.anthropic_base_url, **KEY))
            return AnthropicMessages(model, client=client, host=facts)
        openai: Any = AsyncOpenAI if is_async else OpenAI
        client = self._opened(openai(base_url=at.openai_base_url, **KEY))
        kind: Any = OpenAIChat if api == "openai_chat" else OpenAIResponses
        return kind(model, client=client, host=facts)

    def _opened(self, client: Any) -> Any:
        if isinstance(client, (AsyncAnthropic, AsyncOpenAI)):
            self.async_clients.append(client)
        else:
            self._stack.callback(client.close)
        return client

    def answer(self, api: str, body: Json) -> Reply | Failure:
        number = len(self.server.requests)
        if self.draw.random() < self.failing:
            return Failure(self.draw.choice([429, 500, 503, 529]), "Not now")
        if self.draw.random() < 0.2 or not body.get("tools"):
            return Reply(f"Answer {number}.", reasoning=f"Thought {number}.")
        calls = [Call("look", {"key": f"k{number}"}), Call("look", {"key": "other"})]
        return Reply(reasoning=f"Thought {number}.", calls=calls[: 1 + number % 2])


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with ExitStack() as stack:
        server = stack.enter_context(serve((), hosts=HOSTS))
        made = Hosts(server, stack)
        server.play(*[made.answer] * 2000)
        yield made


def commit(session: Session, outcome: Any, runs: Counter[str]) -> None:
    """Runs the calls of a round, each once, and goes on."""
    if isinstance(outcome, NeedsTools):
        results = []
        for call in outcome.round.calls:
            runs[call.metadata.id] += 1
            results.append(call.complete(call.call_sync()))
        outcome.round.commit(session, results)
    else:
        assert isinstance(outcome, Finished)
        session.push_user("And now?")


def entries_of(body: Json) -> list[Any]:
    found: Any = body.get("messages") or body.get("input")
    return [without_marks(entry) for entry in found]


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in value.items() if k != "cache_control"}
    return [without_marks(v) for v in value] if isinstance(value, list) else value


def check(hosts: Hosts, failed: int) -> None:
    """No host has refused anything, and what each gets begins with what it got before."""
    by_place: dict[tuple[str, str], list[Any]] = {}
    statuses: Counter[int] = Counter()
    for request in hosts.server.requests:
        statuses[request.status] += 1
        assert request.status in (200, 429, 500, 503, 529), request.problems
        place = request.host, request.body["model"]
        sent, before = entries_of(request.body), by_place.get(place, [])
        assert sent[: len(before)] == before, place
        by_place[place] = sent
    assert statuses.total() - statuses[200] == failed
    assert failed > 5


@contextlib.contextmanager
def told(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], int]]:
    capsys.readouterr()
    yield lambda: capsys.readouterr().out.count(" fails (")


@pytest.mark.pure
@pytest.mark.slow
def test_whoever_fails_the_session_goes_on_and_no_host_refuses_anything(
    hosts: Hosts, fallback: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random places, half of whose requests fail; each call is run once."""
    hosts.failing = 0.4
    runs: Counter[str] = Counter()
    failed = 0
    with told(capsys) as count:
        for seed in range(examples(3)):
            hosts.draw = random.Random(seed)
            names = hosts.draw.sample([*PLACES], 4)
            llm = fallback({name: hosts.at(name) for name in names}, rest=seed % 3)
            session = Session()
            session.push_user("Go.")
            for step in range(14):
                turn = session.text_turn(llm, tools=Tools)
                try:
                    if step % 2:
                        with turn.stream_sync() as events:
                            outcome: Any = events.collect()
                    else:
                        outcome = turn.collect_sync()
                except AdapterError:  # all four have failed: the session is as it was
                    failed += 1
                    continue
                commit(session, outcome, runs)
            begun = session.turns()
            assert len({turn.origin and turn.origin.model for turn in begun}) > 1
        failed += count()
    assert runs
    assert set(runs.values()) == {1}
    assert {request.status for request in hosts.server.requests} <= {200, 429, 500, 503, 529}
    assert sum(request.status != 200 for request in hosts.server.requests) == failed
    assert failed > 8


@pytest.mark.pure
@pytest.mark.slow
def test_back_at_a_host_each_request_begins_with_its_last_one(
    hosts: Hosts, fallback: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.failing, hosts.draw = 0.3, random.Random(5)
    llm = fallback({name: hosts.at(name) for name in ("claude", "gpt", "deepseek", "groq")}, rest=1)
    session = Session()
    session.push_user("Go.")
    runs: Counter[str] = Counter()
    for _ in range(30):
        commit(session, session.text_turn(llm, tools=Tools).collect_sync(), runs)
    check(hosts, capsys.readouterr().out.count(" fails ("))
    origins = [turn.origin.host for turn in session.turns() if turn.origin is not None]
    moves = [(one, other) for one, other in itertools.pairwise(origins) if one != other]
    assert len(set(moves)) > 3
    assert set(runs.values()) == {1}


async def test_async_and_streamed_it_is_the_same(
    hosts: Hosts, fallback: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.failing, hosts.draw = 0.3, random.Random(5)
    made: Json = {}
    async with contextlib.AsyncExitStack() as stack:
        for name in ("claude", "gpt", "deepseek", "groq"):
            made[name] = hosts.at(name, is_async=True)
        llm = fallback(made, rest=1)
        session = Session()
        session.push_user("Go.")
        runs: Counter[str] = Counter()
        for step in range(20):
            turn = session.text_turn(llm, tools=Tools)
            if step % 2:
                events = await stack.enter_async_context(turn.stream())
                outcome: Any = await events.collect()
            else:
                outcome = await turn.collect()
            commit(session, outcome, runs)
    check(hosts, capsys.readouterr().out.count(" fails ("))
    for client in hosts.async_clients:
        await client.close()


def test_what_was_never_connected_costs_nothing_and_the_next_one_answers_OR8(
    hosts: Hosts, fallback: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with OpenAI(base_url=f"http://127.0.0.1:{port}", **KEY) as nobody:
        llm = fallback({"nobody": OpenAIChat("m", nobody), "gpt": hosts.at("gpt")})
        session = Session()
        session.push_user("Go.")
        assert session.text_turn(llm).collect_sync().text == "Answer 0."
    assert session.unsettled == ()
    assert "nobody fails (no connection), gpt goes on" in capsys.readouterr().out


def test_a_refused_request_goes_to_nobody_else(fallback: Any) -> None:
    first = ScriptedModel([Failure(400, "Wrong"), Failure(401, "No key")])
    second = ScriptedModel([Reply("Yes.")])
    llm = fallback({"first": first, "second": second})
    session = Session()
    session.push_user("Go.")
    with pytest.raises(AdapterError, match="Wrong"):
        session.text_turn(llm).collect_sync()
    assert session.text_turn(llm).collect_sync().text == "Yes."  # another key may do


def test_what_all_of_them_can_do_is_offered(fallback: Any) -> None:
    native, by_tool = ScriptedModel([]), ScriptedModel([], structured="tool")
    assert fallback({"a": native}).structured == "native"
    assert fallback({"a": native, "b": by_tool}).structured == "tool"
    assert fallback({"a": native}).takes_forced_choice({})
    chat = OpenAIChat("m", api_key="k")
    responses = OpenAIResponses("gpt-5.4", api_key="k")
    assert not fallback({"a": chat, "b": responses}).defers_tools
    assert fallback({"b": responses}).defers_tools
