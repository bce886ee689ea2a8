"""A streaming terminal UI: forms fill while the model writes, and calls run before it has ended.

On a terminal the line of a call is redrawn in place; elsewhere each state is a line of its own.
Each look-up starts as soon as its call is whole: reading is safe even if the answer fails after
all. Ctrl-C closes the connection and leaves the session as it was before the answer.

Run:    python examples/streaming_ui.py            a scripted model, no key
        python examples/streaming_ui.py --live     Anthropic, with ANTHROPIC_API_KEY;
                                                   --model NAME, and your own question
Prints: the text, the arguments of each call as far as they are there, when it runs, its result, and
how the answer ended.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time

from anthropic import AsyncAnthropic

from lutumpy import (
    AdapterError,
    InvalidToolCallDelta,
    NeedsTools,
    RefusalDelta,
    Session,
    TextDelta,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
    ToolError,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.hooks import BaseToolCall
from lutumpy.streaming import StreamingModel
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8
PACE = 0.05  # seconds between two drawings of a line; the arguments so far are parsed for each


@tool_fn(effect="read")
async def population(city: str) -> int:
    """Look the number of inhabitants of a city up."""
    known = {"Oslo": 724_290, "Bergen": 294_029}
    if city not in known:
        raise ToolError(f"no city is called {city!r}")
    return known[city]


class Cities(Toolset):
    population = tool(population)


class Screen:
    """Text that flows, lines that are finished, and at the bottom one line that grows."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._growing = ""  # the words of the line that grows
        self._in_text = False
        self._drawn = 0.0

    def text(self, piece: str) -> None:
        print("\r\x1b[2K" * (self._terminal and bool(self._growing)), end="")
        self._growing, self._in_text = "", True
        print(piece, end="", flush=True)

    def due(self) -> bool:
        """Whether the growing line may be drawn again."""
        return not self._terminal or time.monotonic() - self._drawn >= PACE

    def grow(self, words: str) -> None:
        """Draw the growing line."""
        self.end_text()
        if self._terminal:
            width = (shutil.get_terminal_size().columns or 80) - 1
            print(f"\r\x1b[2K{words[:width]}", end="", flush=True)
        elif words != self._growing:
            print(words, flush=True)
        self._growing, self._drawn = words, time.monotonic()

    def line(self, words: str) -> None:
        """A finished line; on a terminal it takes the place of the one that grew."""
        self.end_text()
        print(f"\r\x1b[2K{words}" if self._terminal and self._growing else words, flush=True)
        self._growing, self._drawn = "", 0.0

    def end_text(self) -> None:
        if self._in_text:
            print(flush=True)
        self._in_text = False


async def answer(call: BaseToolCall) -> ToolResult:
    """Run the function that was called, whichever it is."""
    try:
        return call.complete(await call.call())
    except ToolError as error:
        return call.fail(str(error))


async def talk(llm: StreamingModel, session: Session, screen: Screen) -> None:
    """Stream answers until one calls no tool."""
    for _ in range(MAX_ROUNDS):
        running: dict[str, asyncio.Task[ToolResult]] = {}
        try:
            async with session.text_turn(llm, tools=Cities).stream() as stream:
                async for event in stream:
                    match event:
                        case TextDelta(text=text) | RefusalDelta(text=text):
                            screen.text(text)
                        case ToolCallDelta() | InvalidToolCallDelta() if screen.due():
                            screen.grow(f"  {event.name} {stream.partial_input(event.id)} ...")
                        case ToolCallReady(call=call):
                            screen.line(f"  {call.metadata.name} {call.arguments} runs")
                            running[call.metadata.id] = asyncio.create_task(answer(call))
                        case ToolCallIssueFound(issue=issue):
                            detail = "; ".join(issue.detail.splitlines())
                            screen.line(f"  {issue.metadata.name}: {detail}")
            outcome = stream.outcome
            if not isinstance(outcome, NeedsTools):
                screen.line(f"({outcome.result.finish_reason})")
                return
            results: list[ToolResult] = []
            try:
                for called in outcome.round.calls:
                    results.append(await running[called.metadata.id])
                    screen.line(f"  {called.metadata.name} -> {results[-1].content}")
            except BaseException:  # Ctrl-C: an answer whose results are missing is dropped
                outcome.round.discard()
                raise
            outcome.round.commit(session, results)
        finally:
            for task in running.values():
                task.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)
    screen.line(f"No answer after {MAX_ROUNDS} rounds.")


ASKED = [{"city": "Oslo"}, {"town": "Bergen"}, {"city": "Narvik"}]
SCRIPT = [
    Reply(text="Let me see.", calls=[Call("population", arguments) for arguments in ASKED]),
    Reply(text="Oslo has 724,290 inhabitants; of the others I know nothing."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="claude-haiku-4-5", help="which one (%(default)s)")
    parser.add_argument("question", nargs="?", default="Which is larger: Oslo, Bergen, or Narvik?")
    options = parser.parse_args()
    session = Session()
    session.push_user(options.question)
    try:
        if options.live:
            async with AsyncAnthropic() as client:
                await talk(AnthropicMessages(options.model, client=client), session, Screen())
        else:
            await talk(ScriptedModel(SCRIPT, api="anthropic_messages"), session, Screen())
    except AdapterError as error:
        parser.exit(2, f"\n{error}\n")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        raise SystemExit("\nStopped; nothing of the unfinished answer was kept.") from None
