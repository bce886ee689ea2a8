"""One streamed call in deltas of 8 bytes: 1 MB beside 100 kB, and beside what the official SDKs take for the same stream.

The times are of the processor, the best of several. Each side is given what it works on: the SDKs' accumulators their event
objects (whose making is not counted), lutumpy the plain objects that its adapters have the SDKs give.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from pydantic import TypeAdapter

from lutumpy import NeedsTools, ToolInput, Toolset, Transcript, tool, tool_input
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.testing import Call, Reply, render_stream
from lutumpy.testing.script import Api

ADAPTERS: dict[Api, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
SHORT, LONG = 100_000, 1_000_000
MOST = 12.0


@tool_input(name="write")
class Write(ToolInput[None]):
    """Write a file."""

    text: str


class Files(Toolset):
    write = tool(Write)


def stream(api: Api, size: int) -> list[dict[str, Any]]:
    return render_stream(Reply(calls=[Call("write", {"text": "x" * size})]), api, number=1, model="m")


def seconds(*runs: Callable[[], object], times: int = 5) -> list[float]:
    """The best processor time of several for each, taken in turns, without the garbage collector."""
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for k, run in enumerate(runs):
            gc.collect()
            gc.disable()
            begun = time.process_time()
            run()
            best[k] = min(best[k], time.process_time() - begun)
            gc.enable()
    return best


def read(api: Api, events: Sequence[Any]) -> Callable[[], object]:
    """What a program does: every event told, the call validated at the end."""

    def run() -> None:
        transcript = Transcript()
        transcript.push_user("go")
        reader = Files.offer().reader(ADAPTERS[api].stream_decoder(), transcript)
        for event in events:
            reader.feed(event)
        outcome = reader.finish()
        assert isinstance(outcome, NeedsTools)
        assert len(outcome.round.calls) == 1
        outcome.round.discard()

    return run


def sdk_messages(events: Sequence[Any]) -> Callable[[], object]:
    def run() -> None:
        message: Any = None
        buffers: dict[int, bytes] = {}
        for event in events:
            message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers)

    return run


def sdk_chat(events: Sequence[ChatCompletionChunk]) -> Callable[[], object]:
    def run() -> None:
        state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
        for event in events:
            state.handle_chunk(event)

    return run


def main() -> None:
    verdicts: list[str] = []
    print("one call in deltas of 8 bytes        100 kB         1 MB   1 MB : 100 kB")
    for api in ADAPTERS:
        short, long = seconds(read(api, stream(api, SHORT)), read(api, stream(api, LONG)))
        print(f"{api:<28} {1000 * short:11.1f} ms {1000 * long:9.1f} ms {long / short:12.1f}")
        verdicts.append(f"{api}: 1 MB takes {long / short:.1f} times as long; at most {MOST:.0f} is good")
    print()
    print("100 kB                              SDK      lutumpy   SDK : lutumpy   lutumpy, given the SDK's objects")
    beside: list[tuple[Api, TypeAdapter[Any], Callable[[Sequence[Any]], Callable[[], object]]]] = [
        ("openai_chat", TypeAdapter(ChatCompletionChunk), sdk_chat),
        ("anthropic_messages", TypeAdapter(RawMessageStreamEvent), sdk_messages),
    ]
    for api, typed, accumulate in beside:
        plain = [event for event in stream(api, SHORT) if event.get("type") != "ping"]
        objects = [typed.validate_python(event) for event in plain]
        theirs, ours, ours_objects = seconds(accumulate(objects), read(api, plain), read(api, objects))
        print(
            f"{api:<26} {1000 * theirs:9.1f} ms {1000 * ours:9.1f} ms {theirs / ours:12.1f} {1000 * ours_objects:21.1f} ms"
        )
        verdicts.append(f"{api}: the SDK takes {theirs / ours:.1f} times as long; more than 1 is good")
    print()
    print(*verdicts, sep="\n")


if __name__ == "__main__":
    main()
