"""One streamed call in deltas of 8 bytes, as ratios to a floor of the same input: its events made
and read, and collected.

A floor is the shortest code that gets the arguments out of these very events: read the piece,
append it to a list, join, one `validate_json`; `join` does the same with ready strings. The times
are of the processor, the best of several.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from lutumpy import NeedsTools, ToolCallReady, ToolInput, Toolset, Transcript, tool, tool_input
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import Api
from lutumpy.testing import Call, Reply, render_stream

ADAPTERS: dict[Api, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
KINDS: dict[Api, TypeAdapter[Any]] = {
    "openai_chat": TypeAdapter(ChatCompletionChunk),
    "openai_responses": TypeAdapter(ResponseStreamEvent),
    "anthropic_messages": TypeAdapter(RawMessageStreamEvent),
}
SIZES = (10_000, 100_000, 1_000_000)
MOST_TOLD, MOST_COLLECTED, MOST_GROWTH = 5.0, 1.5, 1.1


@tool_input(name="write")
class Write(ToolInput[None]):
    """Write a file."""

    text: str


class Files(Toolset):
    write = tool(Write)


VALIDATE = TypeAdapter(Write).validator.validate_json


def join(pieces: Sequence[str]) -> object:
    parts: list[str] = []
    for piece in pieces:
        parts.append(piece)  # noqa: PERF402  # as a program does to which they come one by one
    return VALIDATE("".join(parts))


def chat_floor(events: Sequence[Any]) -> object:
    parts: list[str] = []
    for event in events:
        if event.choices and (calls := event.choices[0].delta.tool_calls):
            parts.append(calls[0].function.arguments)  # noqa: PERF401  # written as a program reads a stream
    return VALIDATE("".join(parts))


def responses_floor(events: Sequence[Any]) -> object:
    return VALIDATE(
        "".join([e.delta for e in events if e.type == "response.function_call_arguments.delta"])
    )


def messages_floor(events: Sequence[Any]) -> object:
    parts: list[str] = []
    for event in events:
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            parts.append(event.delta.partial_json)  # noqa: PERF401
    return VALIDATE("".join(parts))


FLOORS: dict[Api, Callable[[Sequence[Any]], object]] = {
    "openai_chat": chat_floor,
    "openai_responses": responses_floor,
    "anthropic_messages": messages_floor,
}


def told(api: Api, events: Sequence[Any]) -> object:
    transcript = Transcript()
    transcript.push_user("go")
    reader = Files.offer().reader(ADAPTERS[api].stream_decoder(), transcript)
    ready = None
    for event in events:
        for one in reader.feed(event):
            if isinstance(one, ToolCallReady):
                ready = one.call
    return checked(reader.finish(), ready)


def collected(api: Api, events: Sequence[Any]) -> object:
    transcript = Transcript()
    transcript.push_user("go")
    return checked(
        Files.offer().reader(ADAPTERS[api].stream_decoder(), transcript).collect(events), None
    )


def checked(outcome: object, ready: object) -> object:
    assert isinstance(outcome, NeedsTools)
    (call,) = outcome.round.calls
    assert ready is None or ready is call
    outcome.round.discard()
    return call.input


def milliseconds(*runs: Callable[[], object], times: int = 5) -> list[float]:
    """The best processor time of several for each, in turns, without the garbage collector."""
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for k, run in enumerate(runs):
            gc.collect()
            gc.disable()
            begun = time.process_time()
            run()
            best[k] = min(best[k], 1000 * (time.process_time() - begun))
            gc.enable()
    return best


def main() -> None:
    verdicts: list[str] = []
    print(
        "one call in deltas of 8 bytes, objects of the SDK; milliseconds, and times the floor of "
        "the same events"
    )
    print(f"{'':<20}{'size':>8}{'join':>9}{'floor':>9}{'told':>9}{'':>8}{'collected':>11}")
    for api, kind in KINDS.items():
        costs: list[tuple[float, float]] = []
        for size in SIZES:
            plain = render_stream(
                Reply(calls=[Call("write", {"text": "x" * size})]), api, number=1, model="m"
            )
            events = [kind.validate_python(event) for event in plain if event.get("type") != "ping"]
            text = '{"text":"' + "x" * size + '"}'
            pieces = [text[k : k + 8] for k in range(0, len(text), 8)]
            strings, floor, each, quiet = milliseconds(
                lambda pieces=pieces: join(pieces),
                lambda api=api, events=events: FLOORS[api](events),
                lambda api=api, events=events: told(api, events),
                lambda api=api, events=events: collected(api, events),
            )
            print(
                f"{api:<20}{size // 1000:>5} "
                f"kB{strings:>9.2f}{floor:>9.2f}{each:>9.2f}{each / floor:>7.1f}x"
                f"{quiet:>11.2f}{quiet / floor:>7.2f}x"
            )
            costs.append((each, quiet))
            if api == "anthropic_messages":
                verdicts.append(
                    f"{api} {size // 1000} kB: told {each / floor:.1f}, at most {MOST_TOLD:.0f} is "
                    "good"
                )
                verdicts.append(
                    f"{api} {size // 1000} kB: collected {quiet / floor:.2f}, at most "
                    f"{MOST_COLLECTED} is good"
                )
        for way, k in (("told", 0), ("collected", 1)):
            growth = costs[2][k] / costs[1][k] / (SIZES[2] / SIZES[1])
            verdicts.append(
                f"{api} {way}: 1 MB takes {growth:.2f} times ten of 100 kB, at most {MOST_GROWTH} "
                "is linear"
            )
    print()
    print(*verdicts, sep="\n")


if __name__ == "__main__":
    main()
