"""This library as one side of a side-by-side benchmark of tool-calling libraries: the public API,
as a careful user has it.

The harness is not part of this project; it loads this file by its path. See `docs/benchmarks.md`.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from adapters import _sdk
from harness import provider
from harness.interface import Adapter, Mode, Provider, Runtime, Session
from harness.spec import MODEL_NAME, Functions, RawCall, Script, StreamWork, make_functions

import lutumpy
from lutumpy import (
    Finished,
    NeedsTools,
    RunNormally,
    ToolCallReady,
    ToolDecision,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.hooks import ToolHooks
from lutumpy.testing import ScriptedModel

ADAPTER_OF: dict[str, Any] = {"openai": OpenAIChat, "anthropic": AnthropicMessages}


def make_toolset(functions: Functions) -> type[Toolset[Any]]:
    return type("BenchTools", (Toolset,), {fn.__name__: tool(tool_fn(fn)) for fn in functions.fns})


def no_op(metadata: ToolMetadata, call: Any) -> ToolDecision[Any, Any]:
    return RunNormally(call.input)


class LutumpySession(Session):
    """A loop as the quick start has it; the calls of a round run at the same time."""

    def __init__(self, runtime: LutumpyRuntime, script: Script) -> None:
        self.runtime = runtime
        self.wire: Any = None
        self.session = lutumpy.Session()
        self.llm: Any
        if runtime.mode == "double":
            self.llm = ScriptedModel(
                provider.chat_replies(script), model=MODEL_NAME, check=False, keep=1
            )
        elif runtime.mode == "wire-openai":
            self.wire = _sdk.Wire(_sdk.encode(provider.chat_replies(script)))
            self.llm = OpenAIChat(MODEL_NAME, _sdk.openai_wire(self.wire))
        else:
            self.wire = _sdk.Wire(_sdk.encode(provider.anthropic_replies(script)))
            self.llm = AnthropicMessages(MODEL_NAME, _sdk.anthropic_wire(self.wire))

    async def run(self) -> None:
        session, llm, tools, hooks = self.session, self.llm, self.runtime.tools, self.runtime.hooks
        session.push_user("go")
        while True:
            match await session.text_turn(llm, tools=tools).collect():
                case NeedsTools(round=round):
                    plan = round if hooks is None else await round.apply_hooks(hooks)
                    calls = round.calls if hooks is None else plan.pending
                    outputs = (
                        [await calls[0].call()]
                        if len(calls) == 1
                        else await asyncio.gather(*[call.call() for call in calls])
                    )
                    plan.commit(
                        session, [c.complete(o) for c, o in zip(calls, outputs, strict=True)]
                    )
                case Finished(result=result):
                    self.final_text = result.text
                    break
        self.result = session
        self.requests = llm.requested if self.wire is None else self.wire.requests

    @property
    def last_body(self) -> Any:  # read by the harness when the clock has stopped
        return self.llm.requests[-1] if self.wire is None else self.wire.last_body

    def history(self) -> Any:
        return self.session.transcript


class LutumpyRuntime(Runtime):
    def __init__(self, functions: Functions, hook: bool, mode: Mode) -> None:
        self.mode = mode
        self.tools = make_toolset(functions)
        self.hooks: ToolHooks[Any] | None = None
        if hook:
            self.hooks = self.tools.hooks()
            for selector in self.tools.selectors():
                self.hooks.on(selector)(no_op_of(selector.name))

    def session(self, script: Script) -> Session:
        return LutumpySession(self, script)


def no_op_of(name: str) -> Any:
    async def keep(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, Any]:
        return RunNormally(input)

    return keep


class Lutumpy(Adapter):
    name = "lutumpy"
    kind = "candidate"
    distributions = ("lutumpy",)
    imports = {
        "entry": "import lutumpy",
        "entry+openai": "import lutumpy\nfrom lutumpy.adapters.openai import OpenAIChat",
    }
    providers = ("anthropic", "openai")
    modes = ("double", "wire-openai", "wire-anthropic")
    has_hook = True
    stream_paths = {
        "sdk events, told": (
            "offer.reader over ready Anthropic SDK objects, every event made and read"
        ),
        "sdk events, collected": "the same, reader.collect: nobody looks at the events",
        "sse bytes, told": (
            "a streamed turn of AnthropicMessages, the SDK's client over a transport in memory, "
            "every event read"
        ),
        "sse bytes, collected": "the same, stream.collect()",
        "chat sdk events, told": "as sdk events, for Chat Completions",
        "chat dicts, told": "the same from dicts",
        "responses sdk events, told": "as sdk events, for Responses",
    }
    notes = {
        "W3": "Toolset.parse: finds the tool, validates, and makes the typed call",
        "W4": (
            "double: ScriptedModel without its check of the provider's rules; one async hook for "
            "each tool"
        ),
    }

    def build_toolset(self, functions: Functions) -> Any:
        return make_toolset(functions)

    def schemas(self, toolset: Any, provider: Provider) -> list[dict[str, Any]]:
        return ADAPTER_OF[provider].tools(toolset.offer())

    def decoder(self, functions: Functions) -> Any:
        return make_toolset(functions)

    def native_calls(self, decoder: Any, calls: list[RawCall]) -> list[Any]:
        return [ToolMetadata(call.call_id, call.name, call.arguments) for call in calls]

    async def decode(self, decoder: Any, calls: list[Any]) -> list[Any]:
        parse = decoder.parse
        return [parse(call).input for call in calls]

    async def rejects(self, decoder: Any, call: Any) -> bool:
        try:
            decoder.parse(call)
        except lutumpy.InvalidArgumentsError:
            return True
        return False

    def runtime(self, functions: Functions, *, hook: bool, mode: Mode) -> Runtime:
        return LutumpyRuntime(functions, hook, mode)

    def prepare_stream(self, path: str, work: StreamWork) -> Any:
        tools = stream_tools()
        session = lutumpy.Session()
        session.push_user("go")
        if path.startswith("sse bytes"):
            body = provider.sse(provider.anthropic_events(work), named=True)
            client = _sdk.anthropic_wire(_sdk.Wire([body], "text/event-stream"))
            return session.text_turn(AnthropicMessages(MODEL_NAME, client), tools=tools)
        if path.startswith("chat dicts"):
            return tools, OpenAIChat, session, list(provider.chat_chunks(work))
        if path.startswith("chat"):
            return tools, OpenAIChat, session, _sdk.chat_chunk_objects(work)
        if path.startswith("responses"):
            return tools, OpenAIResponses, session, _sdk.responses_event_objects(work)
        return tools, AnthropicMessages, session, _sdk.anthropic_event_objects(work)

    async def run_stream(self, path: str, prepared: Any) -> Any:
        if path.startswith("sse bytes"):
            return await self.run_turn(prepared, told=path.endswith("told"))
        tools, adapter, session, events = prepared
        reader = tools.offer().reader(adapter.stream_decoder(), session)
        if path.endswith("collected"):
            return input_of(reader.collect(events))
        ready = None
        for event in events:
            for told in reader.feed(event):
                if isinstance(told, ToolCallReady):
                    ready = told.call
        assert ready is not None
        assert ready.input is input_of(reader.finish())
        return ready.input

    async def run_turn(self, turn: Any, *, told: bool) -> Any:
        async with turn.stream() as stream:
            if not told:
                return input_of(await stream.collect())
            ready = None
            async for event in stream:
                if isinstance(event, ToolCallReady):
                    ready = event.call
        assert ready is not None
        assert ready.input is input_of(stream.outcome)
        return ready.input


@cache
def stream_tools() -> type[Toolset[Any]]:
    """One toolset for all streams, as a program has it; what is made at first use is made while the
    harness warms up.
    """
    return make_toolset(make_functions(1))


def input_of(outcome: Any) -> Any:
    outcome.round.discard()
    return outcome.round.calls[0].input


ADAPTERS = [Lutumpy()]
