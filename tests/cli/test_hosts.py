"""Hosts on the command line: named by the user, or by the address beside a recorded request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cli_toolkit import BROKEN, FIXTURES, WHOLE, Run, Write, user

from lutumpy.cli.documents import DocumentError, Place, open_document
from lutumpy.cli.findings import problems_of

HERE = Place("file.json")
STRICTLY: dict[str, Any] = {"model": "some-model", "messages": [user()], "min_p": 0.1}
"""A request with a parameter that OpenAI doesn't know."""


def accepted() -> Iterator[dict[str, Any]]:
    """What compatible hosts took, without the host's name."""
    for file in sorted(FIXTURES.glob("compat_*.jsonl")):
        for line in file.read_text().splitlines():
            entry = json.loads(line)
            if entry.get("status", 200) == 200 and "request" in entry:
                yield entry


ACCEPTED = list(accepted())


def refused(value: Any, **options: Any) -> list[str]:
    return [
        p.rule
        for p in problems_of(open_document(value, HERE, **options))
        if p.certainty == "refused"
    ]


def test_nothing_that_a_compatible_host_accepted_is_refused_when_the_host_is_told() -> None:
    anonymous = [
        {key: value for key, value in entry.items() if key != "host"} for entry in ACCEPTED
    ]
    assert sum(bool(refused(entry)) for entry in anonymous) >= 3  # as if OpenAI had been asked
    assert [entry["source"] for entry in anonymous if refused(entry, host="compatible")] == []


def test_hosts_are_known_by_the_address_that_was_recorded() -> None:
    for entry in ACCEPTED:
        bare = {key: value for key, value in entry.items() if key != "host"}
        host = f"https://{entry['host']}"
        assert refused(entry) == []
        assert refused({**bare, "base_url": f"{host}/v1"}) == []
        http = {"method": "POST", "url": f"{host}/v1", "body": entry["request"]}
        assert refused({**bare, "request": http}) == []


@pytest.mark.parametrize(
    "beside",
    [
        {"base_url": "https://api.groq.com/openai/v1"},
        {"url": "http://localhost:11434/v1/chat/completions"},
        {"host": "openrouter.ai"},
    ],
)
def test_an_address_in_a_request_names_its_host_and_is_no_parameter(beside: dict[str, str]) -> None:
    assert refused(STRICTLY) == ["chat.unknown_parameter"]
    assert refused({**STRICTLY, **beside}) == []
    assert [p.rule for p in problems_of(open_document({**STRICTLY, **beside}, HERE))] == [
        "chat.unknown_parameter"
    ]


@pytest.mark.parametrize(
    "address", ["https://api.openai.com/v1", "https://eu.api.openai.com/v1", "not an address"]
)
def test_the_vendors_own_address_changes_nothing(address: str) -> None:
    assert refused({**STRICTLY, "base_url": address}) == ["chat.unknown_parameter"]


def test_the_path_of_an_address_says_whose_api_it_is() -> None:
    ambiguous = {"model": "m", "max_tokens": 5, "messages": [user()]}
    with pytest.raises(DocumentError):
        open_document(ambiguous, HERE)
    for url, api in {
        "/v1/messages": "anthropic_messages",
        "/v1/chat/completions?x=1": "openai_chat",
    }.items():
        assert open_document({**ambiguous, "url": f"https://host.example{url}"}, HERE).api == api
        exchange = {"request": {"url": f"https://host.example{url}", "body": ambiguous}}
        assert open_document(exchange, HERE).api == api
        line = {"custom_id": "1", "method": "POST", "url": url, "body": ambiguous}
        assert open_document(line, HERE).api == api


@pytest.mark.parametrize(
    "host", ["compatible", "groq", "api.groq.com", "https://api.groq.com/openai/v1", "localhost"]
)
def test_check_and_repair_are_told_the_host(run: Run, write: Write, host: str) -> None:
    file = write("a.json", {**STRICTLY, "messages": WHOLE})
    assert run("check", file).code == 1
    assert run("check", "--host", host, file).code == 0
    assert run("repair", "--host", host, file).code == 0
    assert run("check", "--host", "openai", file).code == 1


def test_the_host_that_is_told_counts_more_than_the_recorded_one(run: Run, write: Write) -> None:
    file = write("a.json", {"request": STRICTLY, "host": "openrouter.ai", "api": "openai_chat"})
    assert run("check", file).code == 0
    assert run("check", "--host", "openai", file).code == 1


def test_a_bare_history_of_another_host_is_checked_as_such(run: Run, write: Write) -> None:
    long = json.loads(json.dumps(WHOLE).replace('"c1"', json.dumps("c" * 50)))
    file = write("a.json", long)
    assert run("check", file).code == 1
    assert run("check", "--host", "compatible", file).code == 0


@pytest.mark.parametrize("command", ["check", "repair"])
def test_an_unknown_host_is_a_wrong_command_line(run: Run, write: Write, command: str) -> None:
    ended = run(command, "--host", "grok", write("a.json", WHOLE))
    assert ended.code == 2
    assert "unknown host" in ended.err


@pytest.mark.parametrize(
    "value",
    [
        {
            "request": {
                "url": "https://openrouter.ai/api/v1/chat/completions",
                "body": {"model": "m", "messages": BROKEN},
            }
        },
        {
            "url": "https://openrouter.ai/api/v1/chat/completions",
            "body": {"model": "m", "messages": BROKEN},
        },
        {"base_url": "https://openrouter.ai/api/v1", "model": "m", "messages": BROKEN},
        {"request": {"base_url": "https://openrouter.ai/api/v1", "model": "m", "messages": BROKEN}},
    ],
)
def test_what_stands_around_a_request_stays_when_it_is_mended(
    run: Run, write: Write, value: dict[str, Any]
) -> None:
    file = write("a.json", value)
    assert run("repair", "--apply", file).code == 0
    with open(file) as stream:
        after = json.load(stream)
    before = json.dumps(BROKEN)
    assert json.dumps(after) != json.dumps(value)
    mended = after.get("request", after)
    messages = mended.get("body", mended)["messages"]
    assert json.dumps(after).replace(json.dumps(messages), before) == json.dumps(value)
