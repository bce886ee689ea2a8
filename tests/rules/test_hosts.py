"""Hosts: whose an address is, and what another host than the vendor is not known to refuse."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.doctor import apply_repairs, check_messages, host_name, is_compatible, propose_repairs
from lutumpy.models import Api
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.host_facts import HOST_FACTS

USER: dict[str, Any] = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("compatible", "compatible"),
        (" Groq ", "api.groq.com"),
        ("api.groq.com", "api.groq.com"),
        ("https://api.groq.com/openai/v1", "api.groq.com"),
        ("http://user:secret@localhost:11434/v1", "localhost:11434"),
        ("localhost", "localhost"),
        ("http://[::1]:8000/v1", "[::1]:8000"),
    ],
)
def test_a_name_and_an_address_mean_a_host(given: str, host: str) -> None:
    assert host_name(given) == host


@pytest.mark.parametrize("given", ["", "grok", "my host.example", "http://[", "https://"])
def test_what_is_no_host_is_told_with_those_that_are(given: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown host .* 'compatible', or one of openai, anthropic, "
    ):
        host_name(given)
    with pytest.raises(ValueError, match="unknown host"):
        check_messages("openai_chat", [USER], host=given)
    with pytest.raises(ValueError, match="unknown host"):
        propose_repairs("openai_chat", [USER], host=given)


@pytest.mark.parametrize(
    ("api", "host", "elsewhere"),
    [
        ("openai_chat", "openai", False),
        ("openai_responses", "https://us.api.openai.com/v1", False),
        ("openai_chat", "anthropic", True),
        ("openai_chat", "azure", True),
        ("openai_chat", "notapi.openai.com", True),
        ("anthropic_messages", "api.anthropic.com", False),
        ("anthropic_messages", "https://api.deepseek.com/anthropic", True),
        ("anthropic_messages", "openai", True),
    ],
)
def test_only_the_vendor_of_an_api_is_no_compatible_host(
    api: Api, host: str, elsewhere: bool
) -> None:
    assert is_compatible(api, host) is elsewhere


def test_every_known_name_means_an_address() -> None:
    assert all(host_name(name) == facts.address for name, facts in HOST_FACTS.items())
    assert all(host_name(facts.address) == facts.address for facts in HOST_FACTS.values())


def certainties(api: Api, messages: list[Any], **options: Any) -> dict[str, str]:
    return {problem.rule: problem.certainty for problem in check_messages(api, messages, **options)}


def test_what_the_vendor_alone_refuses_is_left_on_another_host() -> None:
    calls = [{"id": "c" * 50, "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    history = [
        USER,
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c" * 50, "content": ""},
    ]
    assert certainties("openai_chat", history) == {"chat.call_id": "refused"}
    assert certainties("openai_chat", history, host="groq") == {"chat.call_id": "some"}
    assert certainties("openai_chat", history, host="openai") == {"chat.call_id": "refused"}
    assert [repair.kind for repair in propose_repairs("openai_chat", history)] == ["replace_id"]
    assert propose_repairs("openai_chat", history, host="groq") == []


def test_the_pairing_of_calls_and_results_holds_on_every_host() -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    history = [USER, {"role": "assistant", "content": [use]}, USER]
    assert certainties("anthropic_messages", history, host="deepseek") == {
        "anthropic.results_after_uses": "refused"
    }
    mended = apply_repairs(history, propose_repairs("anthropic_messages", history, host="deepseek"))
    assert certainties("anthropic_messages", mended, host="deepseek") == {}


def test_rules_of_anthropics_own_are_not_sure_elsewhere() -> None:
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}, "own": 1}
    history = [{"role": "user", "content": [marked] * 5, "id": "msg_1"}]
    here, elsewhere = (
        certainties("anthropic_messages", history, compatible=value) for value in (False, True)
    )
    assert set(here.values()) == {"refused"}
    assert elsewhere == dict.fromkeys(here, "some")
    body = {"model": "m", "messages": [USER], "anthropic_version": "bedrock-2023-05-31"}
    found = anthropic.check_request(body, compatible=True)
    assert {problem.certainty for problem in found} == {"some"}
