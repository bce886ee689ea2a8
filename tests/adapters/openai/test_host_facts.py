"""Requests are spelt as the host takes them: by its address, or by facts that a program gives."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from lutumpy import Session
from lutumpy.adapters.openai import HostFacts, OpenAIChat, OpenAIResponses, facts_of
from lutumpy.models import TurnOptions
from lutumpy.rules.host_facts import HOST_FACTS, UNKNOWN_HOST

OPTIONS = TurnOptions(max_output_tokens=9)


def talk() -> Any:
    session = Session()
    session.push_user("hi")
    return session.transcript


def sent(llm: Any) -> dict[str, Any]:
    # What goes out, without a host.
    body: dict[str, Any] = json.loads(llm._body(talk(), None, OPTIONS, stream=True))
    return body


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("https://api.mistral.ai/v1", {"max_tokens"}),
        ("https://API.mistral.ai:443/v1/", {"max_tokens"}),
        ("http://localhost:11434/v1", {"max_tokens", "stream_options"}),
        ("http://127.0.0.1:11434/v1", {"max_tokens", "stream_options"}),
        ("https://ollama.com/v1", {"max_tokens", "stream_options"}),
        ("https://api.openai.com/v1", {"max_completion_tokens", "stream_options"}),
        ("https://notmistral.ai/v1", {"max_completion_tokens", "stream_options"}),
        ("http://[::1]:9/v1", {"max_completion_tokens", "stream_options"}),
        ("http://localhost:8000/v1", {"max_completion_tokens", "stream_options"}),
    ],
)
def test_parameters_are_spelt_as_the_host_of_the_address_takes_them_OR6(
    url: str, names: set[str]
) -> None:
    given = {"base_url": url, "api_key": "k"}
    for llm in (
        OpenAIChat("m", **given),
        OpenAIChat("m", OpenAI(**given)),
        OpenAIChat("m", AsyncOpenAI(**given)),
    ):
        assert set(sent(llm)) == {"model", "messages", "stream", *names}
    host = facts_of(url.partition("://")[2].partition("/")[0])
    request = OpenAIChat.request(talk(), stream=True, max_output_tokens=9, host=host)
    assert set(request) == {"messages", "stream", *names}


def test_a_program_can_say_what_it_knows_of_its_host_OR6() -> None:
    mistral = facts_of("api.mistral.ai")
    proxied = OpenAIChat("m", base_url="https://proxy.example/v1", api_key="k", host=mistral)
    assert {"max_tokens", "stream_options"} & set(sent(proxied)) == {"max_tokens"}
    changed = replace(mistral, stream_options=True)
    llm = OpenAIChat("m", base_url="https://api.mistral.ai/v1", api_key="k", host=changed)
    assert {"max_tokens", "stream_options"} <= set(sent(llm))
    plain = HostFacts()
    assert "max_output_tokens" in sent(OpenAIResponses("m", api_key="k", host=plain))
    assert OpenAIResponses.request(talk(), host=plain) == OpenAIResponses.request(talk())


def test_what_is_no_fact_is_told() -> None:
    wrong: Any = "mistral"
    with pytest.raises(TypeError, match="host takes HostFacts, not 'mistral'"):
        OpenAIChat("m", api_key="k", host=wrong)
    with pytest.raises(TypeError, match="host takes HostFacts"):
        OpenAIChat.request(talk(), host=wrong)
    with pytest.raises(ValueError, match="limit_name is one of"):
        HostFacts(limit_name=wrong + "_tokens")
    with pytest.raises(ValueError, match="call_ids is None or one of"):
        HostFacts(call_ids=wrong + "_ids")


def test_each_row_is_found_by_its_address_and_by_a_customers() -> None:
    for name, facts in HOST_FACTS.items():
        assert facts_of(facts.address) is facts, name
        assert facts_of(f"eu.{facts.address.upper()}") is facts, name
        assert facts_of(f"{facts.address}.example.org") is UNKNOWN_HOST, name
    assert facts_of("x.openai.azure.us") is HOST_FACTS["azure"]
    for unknown in (None, "", "example.org", "localhost", "[::1]:1"):
        assert facts_of(unknown) is UNKNOWN_HOST
