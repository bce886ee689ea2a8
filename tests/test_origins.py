"""A conversation goes from host to host: each gets what its API's schema knows and what it has said
itself, and nothing that another has sealed (OR1 to OR5, OR7).
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from every_api import ADAPTERS, APIS
from every_client import MODELS, bedrock_client, gemini_client
from openai import OpenAI
from profiles import examples

from lutumpy import AdapterError, Finished, NeedsTools, Session, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import Api
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE
from lutumpy.rules.host_facts import HOST_FACTS
from lutumpy.testing import Call, Reply, WireRequest, WireServer, serve

Json = dict[str, Any]
Place = tuple[str, str, str]
"""An API, a host (empty for the vendor's own) and a model."""

CHAT, RESPONSES, MESSAGES = "openai_chat", "openai_responses", "anthropic_messages"
GEMINI, CONVERSE = "gemini_generate_content", "bedrock_converse"
CHAT_HOSTS = ["", *[host for host in HOST_FACTS if host not in ("openai", "anthropic", "bedrock")]]
RESPONSES_HOSTS = ["", "azure", "xai", "groq", "openrouter"]
MESSAGES_HOSTS = ["", "vertex", "deepseek", "moonshot", "zai"]
PLACES: list[Place] = [
    *[(CHAT, host, model) for host in CHAT_HOSTS for model in ("gpt-5.4", "kimi-k2")],
    *[(RESPONSES, host, model) for host in RESPONSES_HOSTS for model in ("gpt-5.4", "gpt-6.2")],
    *[
        (MESSAGES, host, model)
        for host in MESSAGES_HOSTS
        for model in ("claude-sonnet-5", "claude-opus-4-6")
    ],
    *[
        (GEMINI, host, model)
        for host in ("", "vertex")
        for model in ("gemini-3-flash-preview", "gemini-3.1-pro", "gemini-2.5-flash")
    ],
    *[
        (CONVERSE, "", model)
        for model in (
            "us.anthropic.claude-sonnet-4-6-v1:0",
            "us.anthropic.claude-fable-5-2-v1:0",
            "us.amazon.nova-lite-v1:0",
        )
    ],
]
ALL_HOSTS = sorted({host for _, host, _ in PLACES if host})
KEY: Json = {"api_key": "k", "max_retries": 0}


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    look = tool(look)


class Models:
    """The adapters for places, with the real clients of their SDKs, each made once."""

    def __init__(self, server: WireServer, stack: ExitStack) -> None:
        self._server, self._stack = server, stack
        self._clients: dict[tuple[str, str], Any] = {}

    def at(self, api: str, host: str, model: str) -> Any:
        at = self._server.at(host) if host else self._server
        facts = HOST_FACTS[host] if host else None
        if api == MESSAGES:
            url = at.anthropic_base_url
            client = self._client(host, lambda: Anthropic(base_url=url, **KEY), "anthropic")
            return AnthropicMessages(model, client=client, host=facts)
        if api in (CHAT, RESPONSES):
            url = at.openai_base_url
            client = self._client(host, lambda: OpenAI(base_url=url, **KEY), "openai")
            kind = OpenAIChat if api == CHAT else OpenAIResponses
            return kind(model, client=client, host=facts)
        # These clients don't show where they go, as others behind a proxy.
        known = HOST_FACTS[host or ("gemini" if api == GEMINI else "bedrock")]
        make = gemini_client if api == GEMINI else bedrock_client
        client = self._client(host, lambda: closing(make(at.url)), api)
        kind = Gemini if api == GEMINI else BedrockConverse
        return kind(model, client, host=known)

    def _client(self, host: str, make: Callable[[], Any], sdk: str) -> Any:
        if (sdk, host) not in self._clients:
            self._clients[sdk, host] = self._stack.enter_context(make())
        return self._clients[sdk, host]


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    """One server that stands for every host."""
    with serve(None, hosts=ALL_HOSTS) as made:
        yield made


@pytest.fixture(scope="module")
def models(server: WireServer) -> Iterator[Models]:
    with ExitStack() as stack:
        yield Models(server, stack)


def answers(api: str, body: Json) -> Reply:
    """Reasoning, and one or two calls or a text."""
    number = len(json.dumps(body))
    if number % 4 == 0 or not (body.get("tools") or body.get("toolConfig")):
        return Reply(f"Answer {number}.", reasoning=f"Thought {number}.")
    calls = [Call("look", {"key": f"k{number}"}), Call("look", {"key": "other"})]
    return Reply(reasoning=f"Thought {number}.", calls=calls[: 1 + number % 2])


def ask(session: Session, llm: Any) -> None:
    """One turn; its calls get their results."""
    if is_answered(session):
        session.push_user("And now?")
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    if isinstance(outcome, NeedsTools):
        results = [call.complete("ok") for call in outcome.round.calls]
        outcome.round.commit(session, results)
    else:
        assert isinstance(outcome, Finished)


def is_answered(session: Session) -> bool:
    turns = session.turns()
    return bool(turns) and not turns[-1].calls


def entries_of(body: Json) -> list[Any]:
    found: Any = body.get("messages") or body.get("input") or body.get("contents")
    return [without_marks(entry) for entry in found]


def without_marks(value: Any) -> Any:
    """A copy without marks of the prompt cache, which move on with the conversation."""
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        kept = [v for v in value if not (isinstance(v, dict) and "cachePoint" in v)]
        return [without_marks(v) for v in kept]
    return value


def test_random_routes_are_refused_nowhere_and_come_back_to_their_own_bytes_OR7(
    server: WireServer, models: Models
) -> None:
    """Whatever the route, the stand-in of each host refuses nothing, among that what another has
    sealed; and each host's next request begins with its last one.
    """
    for seed in range(examples(30)):
        draw = random.Random(seed)
        before = len(server.requests)
        server.play(*[answers] * 12)
        session = Session()
        session.push_user("Go.")
        route = [draw.choice(PLACES) for _ in range(3)]
        route += [draw.choice([*route, draw.choice(PLACES)]) for _ in range(9)]
        for step, place in enumerate(route):
            ask(session, models.at(*place))
            if step % 4 == 3:
                session = Session.load(json.dumps(session.dump()))
        check_requests(server.requests[before:], route)
        said = [turn.origin for turn in session.turns()]
        assert [(origin.api, origin.model) for origin in said if origin] == [
            (api, model) for api, _, model in route
        ]


def check_requests(requests: list[WireRequest], route: list[Place]) -> None:
    assert {request.status for request in requests} == {200}, route
    last: dict[Place, list[Any]] = {}
    for place, request in zip(route, requests, strict=True):
        sent = entries_of(request.body)
        before = last.get(place, [])
        assert sent[: len(before)] == before, (place, route)
        last[place] = sent


def recorded() -> list[Json]:
    """Recorded answers of hosts that speak Chat Completions, with the host that gave each."""
    found: list[Json] = []
    path = Path(__file__).parent / "fixtures" / "compat_openai_chat.jsonl"
    for line in path.read_text().splitlines():
        row = json.loads(line)
        answer = row["response"]
        if row["status"] == 200 and (answer.get("choices") or [{}])[0].get("message"):
            found.append(row)
    return found


NAMED = {
    "openrouter.ai": "openrouter",
    "myorg-myaccount.snowflakecomputing.com": "snowflake",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "generativelanguage.googleapis.com": "gemini",
    "router.huggingface.co": "huggingface",
    "ollama.com": "ollama",
    "api.mistral.ai": "mistral",
    "api.cerebras.ai": "cerebras",
    "api.inference.crusoecloud.com": "together",
}
"""The recorded hosts as the server stands for them; one without a row by another one's name."""


@pytest.mark.pure
@pytest.mark.slow
def test_recorded_answers_of_every_host_go_to_every_other_OR2_OR3(
    server: WireServer, models: Models
) -> None:
    """Of each recorded answer its own host gets the bytes back, and every other host what it takes:
    0 requests are refused.
    """
    rows = recorded()
    assert {row["host"] for row in rows} == set(NAMED)
    moved = 0
    for row in rows:
        home, model = NAMED[row["host"]], row["response"]["model"]
        session = Session()
        session.push_user("Go.")
        server.play(row["response"])
        outcome = session.text_turn(models.at(CHAT, home, model), tools=Tools).collect_sync()
        if isinstance(outcome, NeedsTools):
            outcome.round.commit(session, [])
        if is_answered(session):
            session.push_user("And now?")
        native = json.loads(session.turns()[0].native)
        for host in CHAT_HOSTS:
            before = len(server.requests)
            session.fork().text_turn(models.at(CHAT, host, model)).collect_sync()
            request = server.requests[before]
            assert request.status == 200, (row["source"], host, request.problems)
            sent = request.body["messages"][1]
            if host == home:
                assert sent == native
            else:
                moved += 1
                assert_schema_only(sent, HOST_FACTS[host].reasoning_field if host else None)
    assert moved > 400


def assert_schema_only(message: Json, reasoning_field: str | None) -> None:
    known = {"role", "content", "refusal", "name", "tool_calls", "function_call"}
    assert {*message} <= {*known, reasoning_field}
    for call in message.get("tool_calls") or []:
        assert {*call} <= {"id", "type", "function", "custom"}


# ------------------------------------------------------------------ what is told


def told(session: Session) -> list[tuple[int, str]]:
    """What the last request left out: turn and name."""
    report = session.turns()[-1].prefix
    assert report is not None
    return [(one.turn, one.what) for one in report.left_out]


def test_what_is_left_out_is_told_and_comes_back_OR5(
    server: WireServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session()
    session.push_user("Go.")
    deepseek, groq = models.at(CHAT, "deepseek", "m"), models.at(CHAT, "xai", "m")
    server.play(Reply("Hm.", reasoning="Long thoughts."), Reply("Yes."), Reply("No."))
    ask(session, deepseek)
    with caplog.at_level(logging.INFO, "lutumpy.prefix"):
        ask(session, groq)
    assert told(session) == [(0, "reasoning_content")]
    assert "reasoning_content of turn 0 doesn't go to api.x.ai" in caplog.text
    assert "Long thoughts" not in caplog.text
    assert "Long thoughts" not in json.dumps(server.requests[-1].body)
    report = session.turns()[-1].prefix
    assert report
    assert not report.dropped
    ask(session, deepseek)
    assert told(session) == []
    assert server.requests[-1].body["messages"][1]["reasoning_content"] == "Long thoughts."


def test_readable_reasoning_goes_where_it_is_taken_OR4(server: WireServer, models: Models) -> None:
    session = Session()
    session.push_user("Go.")
    server.play(Reply(reasoning="From Claude.", calls=[Call("look", {"key": "k"})]))
    ask(session, models.at(MESSAGES, "", "claude-sonnet-5"))
    server.play(Reply(calls=[Call("look", {"key": "k"})]))
    ask(session, models.at(CHAT, "", "gpt-5.4"))
    server.play(Reply("Done.", reasoning="From DeepSeek."))
    ask(session, models.at(CHAT, "deepseek", "m"))
    sent = [m for m in server.requests[-1].body["messages"] if m["role"] == "assistant"]
    # An empty text will do where there is none, for a host that insists.
    assert [message["reasoning_content"] for message in sent] == ["From Claude.", ""]
    assert told(session) == []
    ask(session, models.at(CHAT, "groq", "m"))
    sent = [m for m in server.requests[-1].body["messages"] if m["role"] == "assistant"]
    assert [message.get("reasoning") for message in sent] == [
        "From Claude.",
        None,
        "From DeepSeek.",
    ]
    ask(session, models.at(CHAT, "mistral", "m"))
    assert "From" not in json.dumps(server.requests[-1].body)


@pytest.mark.parametrize("host", [h for h in HOST_FACTS if HOST_FACTS[h].missing_reasoning])
def test_calls_have_the_field_of_their_reasoning_where_a_host_insists_OR4_S4(
    server: WireServer, models: Models, host: str
) -> None:
    """Whoever said them: a model of the host that didn't think, another API's whose reasoning was
    dropped, or a history that was read; also where there are too many for one message.
    """
    field = HOST_FACTS[host].reasoning_field
    one, many = [Call("look", {"key": "k"})], [Call("look", {"key": f"{n}"}) for n in range(130)]
    claude, quick = models.at(MESSAGES, "", "claude-sonnet-4-6"), models.at(CHAT, host, "quick")

    def fields_sent(session: Session) -> list[Any]:
        server.play(Reply("Done."))
        ask(session, models.at(CHAT, host, "thinking"))
        sent = server.requests[-1].body["messages"]
        return [message.get(field) for message in sent if message.get("tool_calls")]

    for calls in (one, many):
        session = Session()
        session.push_user("Go.")
        server.play(Reply(calls=calls))
        ask(session, quick)
        assert set(fields_sent(session)) == {""}
    session = Session()
    session.push_user("Go.")
    session.push_ephemeral_user("It is late.")
    server.play(Reply(calls=one, reasoning="Hm."), Reply("Well."))
    for _ in range(2):
        ask(session, claude)
    assert [turn.reasoning_dropped for turn in session.turns()] == [True, False]
    assert fields_sent(session) == [""]
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history: list[Json] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "k"},
    ]
    origins: list[Json] = [{}, {"host": host}, {"host": "openai", "model": "gpt-5.4"}]
    for origin in origins:
        assert fields_sent(Session(Transcript.from_messages(CHAT, history, **origin))) == [""]
    history[1][field or ""] = "Hm."
    assert fields_sent(Session(Transcript.from_messages(CHAT, history, host=host))) == ["Hm."]


def test_of_many_makers_one_opens_nothing_of_another_OR3(
    server: WireServer, models: Models
) -> None:
    details = [{"type": "reasoning.text", "text": "Hm.", "signature": "sealed", "index": 0}]
    message = {"role": "assistant", "content": "Yes.", "reasoning": "Hm."}
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "sealed"}]
    sealed = {**message, "reasoning_details": details, "thinking_blocks": blocks}
    answer = {"choices": [{"message": sealed}], "model": "a/b"}
    session = Session()
    session.push_user("Go.")
    server.play(answer)
    ask(session, models.at(CHAT, "openrouter", "a/b"))
    ask(session, models.at(CHAT, "openrouter", "a/b"))
    assert server.requests[-1].body["messages"][1] == sealed
    ask(session, models.at(CHAT, "openrouter", "c/d"))
    assert server.requests[-1].body["messages"][1] == message
    assert told(session) == [(0, "reasoning_details"), (0, "thinking_blocks")]


def test_what_is_sealed_in_a_part_goes_to_no_other_model_OR3(
    server: WireServer, models: Models
) -> None:
    summary = [{"type": "summary_text", "text": "Hm.", "signature": "sealed"}]
    thought, said = {"type": "reasoning", "summary": summary}, {"type": "text", "text": "Yes."}
    session = Session()
    session.push_user("Go.")
    for content in ([thought, said], [thought]):
        answer = {"choices": [{"message": {"role": "assistant", "content": content}}], "model": "a"}
        server.play(answer)
        ask(session, models.at(CHAT, "databricks", "a"))
    ask(session, models.at(CHAT, "databricks", "a"))
    sent = server.requests[-1].body["messages"]
    assert [sent[1]["content"], sent[3]["content"]] == [[thought, said], [thought]]
    ask(session, models.at(CHAT, "databricks", "c"))
    sent = server.requests[-1].body["messages"]
    assert [sent[1]["content"], sent[3]["content"]] == [[said], ""]


# ------------------------------------------------------------------ hosts that aren't known


def thought(**more: Any) -> list[Json]:
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.", **more},
        {"role": "user", "content": "On."},
    ]


def sent_of(transcript: Transcript, **options: Any) -> Json:
    body: Json = OpenAIChat.request(transcript, **options)["messages"][1]
    return body


def test_a_history_says_whose_it_is_or_goes_to_the_same_model_OR1() -> None:
    groq, deepseek = HOST_FACTS["groq"], HOST_FACTS["deepseek"]
    history = thought(unknown=1)
    plain = {"role": "assistant", "content": "Yes."}
    known = Transcript.from_messages(CHAT, history, host="deepseek", model="m")
    (turn,) = known.turns()
    assert turn.origin is not None
    assert (turn.origin.host, turn.origin.model) == ("api.deepseek.com", "m")
    assert sent_of(known) == history[1]
    assert sent_of(known, host=deepseek, model="other") == history[1]
    assert sent_of(known, host=groq) == {**plain, "reasoning": "Hm."}
    # Nobody said whose it is: to the same model it goes as it came, and where no model is known.
    unknown = Transcript.from_messages(CHAT, history)
    assert sent_of(unknown, host=groq, model="m") == history[1]
    modelled = Transcript.from_messages(CHAT, history, model="m-2026-01-01")
    assert sent_of(modelled, host=groq, model="m") == history[1]
    assert sent_of(modelled, host=groq, model="n") == {**plain, "reasoning": "Hm."}
    with pytest.raises(ValueError, match="unknown host 'grok'"):
        Transcript.from_messages(CHAT, history, host="grok")


def test_own_requests_tell_what_they_left_out_OR5() -> None:
    transcript = Transcript.from_messages(CHAT, thought(), host="moonshot")
    offer = Tools.offer()
    body = OpenAIChat.request(transcript, offer, model="m", host=HOST_FACTS["mistral"])
    assert body["messages"][1] == {"role": "assistant", "content": "Yes."}
    reply = {"choices": [{"message": {"role": "assistant", "content": "Done."}}]}
    outcome = offer.read(OpenAIChat.response(reply), transcript)
    assert isinstance(outcome, Finished)
    report = outcome.result.prefix
    assert [(one.turn, one.what) for one in report.left_out] == [(0, "reasoning_content")]


def test_customers_addresses_are_hosts_of_their_own_OR3() -> None:
    facts = HOST_FACTS["azure"]
    one = replace(facts, address="one.openai.azure.com")
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    said = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed"}
    part = {"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    history = [
        {"role": "user", "content": "Go."},
        item,
        searched,
        {**said, "content": [part]},
        {"role": "user", "content": "On."},
    ]
    transcript = Transcript.from_messages(RESPONSES, history, host="one.openai.azure.com")
    own = OpenAIResponses.request(transcript, host=one)["input"]
    assert own == history
    other = replace(facts, address="two.openai.azure.com")
    elsewhere = OpenAIResponses.request(transcript, host=other)["input"]
    assert elsewhere[1:-1] == [
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
        }
    ]


def test_what_only_one_host_knows_is_told_in_words_elsewhere_OR2(
    server: WireServer, models: Models
) -> None:
    """Calls of a text tool are a function's where no text tools are known; a refusal is a text for
    a host that doesn't know it.
    """
    call = {"id": "c1", "type": "custom", "custom": {"name": "look", "input": "k"}, "index": 0}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    session = Session()
    session.push_user("Go.")
    server.play({"choices": [{"message": message}]})
    ask(session, models.at(CHAT, "", "gpt-5.4"))
    ask(session, models.at(CHAT, "groq", "m"))
    (sent,) = server.requests[-1].body["messages"][1]["tool_calls"]
    assert sent["function"] == {"name": "look", "arguments": '{"input":"k"}'}
    assert sent["type"] == "function"
    refused = thought(content=None, refusal="No.")
    transcript = Transcript.from_messages(CHAT, refused, host="openai")
    assert sent_of(transcript, host=HOST_FACTS["mistral"])["content"] == "No."


def test_parts_and_calls_of_one_host_are_told_in_the_schema_of_all_OR2(
    server: WireServer, models: Models
) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    call = {
        "id": "abcdefghi",
        "function": {"name": "look", "arguments": '{"key":"k"}'},
        "extra_content": {"google": {"thought_signature": "sealed"}},
        "index": 0,
    }
    parts = [thinking, {"type": "text", "text": "Yes.", "own": 1}]
    session = Session()
    session.push_user("Go.")
    server.play({"choices": [{"message": {"role": "assistant", "content": parts}}]})
    ask(session, models.at(CHAT, "mistral", "m"))
    ask(session, models.at(CHAT, "mistral", "m"))
    assert server.requests[-1].body["messages"][1]["content"] == parts
    ask(session, models.at(CHAT, "xai", "m"))
    assert server.requests[-1].body["messages"][1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Yes."}],
    }
    assert told(session) == [(0, "thinking")]

    session = Session()
    session.push_user("Go.")
    server.play({"choices": [{"message": {"content": None, "tool_calls": [call, "broken"]}}]})
    ask(session, models.at(CHAT, "openrouter", "a/b"))
    ask(session, models.at(CHAT, "openrouter", "c/d"))
    plain = {"type": "function", "id": "abcdefghi", "function": call["function"]}
    sent = server.requests[-1].body["messages"][1]["tool_calls"]
    assert sent[0] == {**plain, "index": 0}
    assert told(session) == [(0, "extra_content")]
    ask(session, models.at(CHAT, "groq", "m"))
    assert server.requests[-1].body["messages"][1]["tool_calls"][0] == plain


def test_results_of_a_hosts_own_tools_stay_there_OR3(server: WireServer, models: Models) -> None:
    found = {"type": "web_search_result", "url": "https://a.example", "encrypted_content": "sealed"}
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sealed"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]},
        {"type": "text", "text": "Found."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"key": "k"}},
    ]
    usage = {"input_tokens": 1, "output_tokens": 1}
    answer = {"role": "assistant", "content": content, "stop_reason": "tool_use", "usage": usage}
    session = Session()
    session.push_user("Go.")
    server.play({"id": "msg_1", "type": "message", "model": "claude-opus-4-6", **answer})
    ask(session, models.at(MESSAGES, "vertex", "claude-opus-4-6"))
    ask(session, models.at(MESSAGES, "deepseek", "m"))
    sent = server.requests[-1].body["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["text", "tool_use"]
    assert told(session) == [(0, "reasoning and results of the host's own tools")]
    history = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [content[0], content[3]]},
        {"role": "user", "content": "On."},
    ]
    transcript = Transcript.from_messages(MESSAGES, history, host="zai")
    own = AnthropicMessages.request(transcript, host=HOST_FACTS["zai"])["messages"]
    assert own[1]["content"][0]["type"] == "thinking"
    elsewhere = AnthropicMessages.request(transcript, host=HOST_FACTS["anthropic"])["messages"]
    assert [block["type"] for block in elsewhere[1]["content"]] == ["text"]


def test_a_signature_of_gemini_is_refused_where_it_wasnt_issued_OR7(
    server: WireServer, models: Models
) -> None:
    """The control for the routes above: an adapter that takes one host for the other sends it."""
    session = Session()
    session.push_user("Go.")
    server.play(Reply(reasoning="Hm.", calls=[Call("look", {"key": "k"})]))
    ask(session, models.at(GEMINI, "", "gemini-3-flash-preview"))
    wrong = models.at(GEMINI, "vertex", "gemini-3-flash-preview")
    mistaken = Gemini(wrong.model, wrong._transport.client(), host=HOST_FACTS["gemini"])
    with pytest.raises(AdapterError, match="Corrupted thought signature"):
        session.text_turn(mistaken, tools=Tools).collect_sync()
    server.play(Reply("Yes."))
    ask(session, wrong)
    assert server.requests[-1].host == "vertex"
    (model_turn,) = [one for one in server.requests[-1].body["contents"] if one["role"] == "model"]
    kept = [part.get("thoughtSignature") for part in model_turn["parts"] if "functionCall" in part]
    assert kept == [FOREIGN_SIGNATURE]


@pytest.mark.parametrize("api", APIS)
def test_a_client_that_is_made_here_has_its_host_from_the_first_turn_on_OR1(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve([Reply("Yes.")] * 4) as place:
        addresses = {
            "OPENAI_BASE_URL": f"{place.url}/v1",
            "ANTHROPIC_BASE_URL": place.url,
            "GOOGLE_GEMINI_BASE_URL": place.url,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": place.url,
            "OLLAMA_HOST": place.url,
        }
        keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_ACCESS_KEY_ID")
        for name in (*keys, "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "any-key")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setattr("boto3.DEFAULT_SESSION", None)  # it keeps what it has found
        base = f"{place.url}/v1" if api.startswith("openai") else place.url
        for given in (True, False):
            for name, address in addresses.items():
                if not given:
                    monkeypatch.setenv(name, address)
            options = {"base_url": base} if given else {}
            with closing(ADAPTERS[api](MODELS.get(api, "any-model"), **options)) as llm:
                assert llm.host == place.url.removeprefix("http://")
                session = Session()
                for _ in range(2):
                    session.push_user("Go.")
                    session.text_turn(llm).collect_sync()
                origins = [turn.origin for turn in session.turns()]
                assert [each.host for each in origins if each is not None] == [llm.host] * 2
