"""This library as one side of a side-by-side benchmark of tool-calling libraries: the public API, as a careful user has it.

The harness is not part of this project; it loads this file by its path. See `docs/benchmarks.md`.
"""

from __future__ import annotations

import asyncio
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
    ToolHooks,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
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
            self.llm = ScriptedModel(provider.chat_replies(script), model=MODEL_NAME, check=False, keep=1)
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
                    plan.commit(session, [c.complete(o) for c, o in zip(calls, outputs, strict=True)])
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
        "openai sdk events": "offer.reader over ready SDK objects, every event made and read",
        "anthropic sdk events": "the same for Anthropic",
        "openai dicts": "the same from dicts",
    }
    notes = {
        "W3": "Toolset.parse: finds the tool, validates, and makes the typed call",
        "W4": "double: ScriptedModel without its check of the provider's rules; one async hook for each tool",
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
        tools = make_toolset(make_functions(1))
        session = lutumpy.Session()
        session.push_user("go")
        if path == "anthropic sdk events":
            return tools, AnthropicMessages, session, _sdk.anthropic_event_objects(work)
        if path == "openai sdk events":
            return tools, OpenAIChat, session, _sdk.chat_chunk_objects(work)
        return tools, OpenAIChat, session, list(provider.chat_chunks(work))

    async def run_stream(self, path: str, prepared: Any) -> Any:
        tools, adapter, session, events = prepared
        reader = tools.offer().reader(adapter.stream_decoder(), session)
        ready = None
        for event in events:
            for told in reader.feed(event):
                if isinstance(told, ToolCallReady):
                    ready = told.call
        reader.finish().round.discard()
        assert ready is not None
        return ready.input


ADAPTERS = [Lutumpy()]
