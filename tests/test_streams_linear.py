"""The work of reading a stream is linear in what arrives (rule S3).

It is counted in function calls: no clock is asked.
"""

from __future__ import annotations

from typing import Any

import pytest
from counting import calls_made
from toolkit import Files

from lutumpy import NeedsTools, ToolCallDelta, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.testing import Call, Reply, render_stream

ADAPTERS: dict[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
every_api = pytest.mark.parametrize("api", ADAPTERS)


def read(api: str, reply: Reply, way: str = "told") -> tuple[int, int]:
    """Read the reply as a stream: how many events came, and how many functions that called."""
    events = render_stream(reply, api, number=1, model="m")  # type: ignore[arg-type]
    transcript = Transcript()
    transcript.push_user("go")
    reader = Files.offer().reader(ADAPTERS[api].stream_decoder(), transcript)

    def collect() -> None:
        outcome = reader.collect(events)
        assert isinstance(outcome, NeedsTools)
        outcome.round.discard()

    def run() -> None:
        told = [one for event in events for one in reader.feed(event)]
        outcome = reader.finish()
        if isinstance(outcome, NeedsTools):
            assert sum(
                [len(one.arguments) for one in told if isinstance(one, ToolCallDelta)]
            ) >= len(reply.calls)
            outcome.round.discard()

    return len(events), calls_made(run if way == "told" else collect)


LONG = {
    "one long call": lambda n: Reply(calls=[Call("write", {"text": "x" * 8 * n})]),
    "braces and quotes": lambda n: Reply(calls=[Call("write", {"text": '{"}' * 2 * n})]),
    "a long text": lambda n: Reply(text="eight ch" * n),
    "long reasoning": lambda n: Reply(text="So.", reasoning="eight ch" * n),
    "many calls": lambda n: Reply(calls=[Call("write", {"text": "x"})] * n),
    "calls of one size": lambda n: Reply(
        calls=[Call("write", {"text": "x" * 4 * n}), Call("write", {"text": "x"})]
    ),
}


@pytest.mark.slow
@every_api
@pytest.mark.parametrize("kind", LONG)
def test_ten_times_the_deltas_are_ten_times_the_work_S3(api: str, kind: str) -> None:
    read(api, LONG[kind](10))  # what is made once for each process, and kept
    events, calls = read(api, LONG[kind](200))
    more_events, more_calls = read(api, LONG[kind](2000))
    if events > 150:  # Chat Completions has no reasoning
        assert 9 < more_events / events < 11
    assert more_calls < 11 * calls


MOST_CALLS = {
    ("told", "openai_chat"): 18,
    ("told", "openai_responses"): 10,
    ("told", "anthropic_messages"): 10,
    ("collected", "openai_chat"): 12,
    ("collected", "openai_responses"): 4,
    ("collected", "anthropic_messages"): 2,
}


@pytest.mark.slow
@every_api
@pytest.mark.parametrize("way", ["told", "collected"])
@pytest.mark.parametrize("more", [2000, 20_000])
def test_a_delta_costs_a_few_calls_whatever_the_size_S3(api: str, way: str, more: int) -> None:
    """What each event more costs, with the calls of the test's own loop.

    What is made once for a stream doesn't count.
    """
    few_events, few = read(api, LONG["one long call"](1000), way)
    events, calls = read(api, LONG["one long call"](more), way)
    assert (calls - few) / (events - few_events) <= MOST_CALLS[way, api]
