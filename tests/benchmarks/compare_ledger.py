"""The same sessions through three libraries: what is refused when something changes between turns,
how much reasoning is kept, how often the prompt cache starts again. The test server is the judge.

It needs the other libraries, in an environment of its own so that nothing of theirs gets into this
one:

    uv venv peers
    uv pip install --python peers/bin/python -e '.[testing]' 'pydantic-ai-slim[anthropic,openai]' \\
        openai-agents
    peers/bin/python -W ignore tests/benchmarks/compare_ledger.py [SESSIONS [REQUESTS [CHANGES]]]

A session asks a model so many times. At a third of the requests (CHANGES) something is another than
before: a tool less, a tool more, one that is new, a description in other words, a reminder for this
request alone. With 0 nothing is, and each library keeps everything. Each library is told of it in
its own way, with its defaults but for what makes it send the reasoning back: what is offered to the
model, and its instructions. A request that a library repeats by itself counts as it is. A session
goes on after an error, with the conversation as the library left it.

Counted are the requests that the server got; those that it refused; of the reasoning that the model
had written before each request that was answered, how much the model saw again; and the requests
that didn't begin with the one before, so that the cache ended there. openai-agents speaks the
Responses API alone.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from lutumpy import NeedsTools, Session, ToolAvailability, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIResponses, facts_of
from lutumpy.doctor import check_messages
from lutumpy.testing import Call, Reply, WireRequest, WireServer, serve

Json = dict[str, Any]
MESSAGES, RESPONSES = "anthropic_messages", "openai_responses"
MODELS = {
    "claude-fable-5-2": MESSAGES,
    "claude-opus-5-5": MESSAGES,
    "gpt-6.2-astra": RESPONSES,
}
NAMES = ("look", "find", "send", "late")
SCHEMA: Json = {
    "type": "object",
    "properties": {"key": {"type": "string"}},
    "required": ["key"],
    "additionalProperties": False,
}
SYSTEM = "You help."
KEY: Json = {"api_key": "k", "max_retries": 0}


@dataclass(frozen=True)
class Step:
    """One request of a session.

    Attributes:
        offered: The tools of the request.
        reworded: The tool with another description, if there is one.
        reminder: What is said for this request alone.
        call: The tool that the model calls; it answers in words if there is none.
    """

    offered: tuple[str, ...]
    reworded: str | None
    reminder: str | None
    call: str | None

    def description(self, name: str) -> str:
        return f"{'Quickly ' if name == self.reworded else ''}{name} something."


def plan(seed: int, length: int, changes: float) -> list[Step]:
    """What changes in a session; the same for every library."""
    draw = random.Random(seed)
    offered, reworded = NAMES[:3], None
    steps: list[Step] = []
    for _ in range(length):
        reminder = None
        if draw.random() < changes:
            change = draw.choice(["offer", "offer", "words", "reminder"])
            if change == "offer":
                chosen = draw.sample(NAMES, draw.randint(1, 4))
                offered = tuple([name for name in NAMES if name in chosen])
            elif change == "words":
                reworded = draw.choice([None, *NAMES])
            else:
                reminder = f"Mind the number {draw.randrange(100)}."
        call = draw.choice(offered) if draw.random() < 0.7 else None
        steps.append(Step(offered, reworded, reminder, call))
    return steps


@dataclass
class Talks:
    """The server with what it is to answer next."""

    server: WireServer
    step: Step | None = None
    number: int = 0
    refusals: list[str] = field(default_factory=list[str])

    def answer(self, api: str, body: Json) -> Reply:
        self.number += 1
        thought, step = f"Thought {self.number}.", self.step
        if step is None or step.call is None:
            return Reply(f"Answer {self.number}.", reasoning=thought)
        return Reply(reasoning=thought, calls=[Call(step.call, {"key": f"k{self.number}"})])


# ------------------------------------------------------------------ the libraries


@tool_fn
def look(key: str) -> str:
    """look something."""
    return "ok"


@tool_fn
def find(key: str) -> str:
    """find something."""
    return "ok"


@tool_fn
def send(key: str) -> str:
    """send something."""
    return "ok"


@tool_fn
def late(key: str) -> str:
    """late something."""
    return "ok"


class Tools(Toolset):
    look, find, send = tool(look), tool(find), tool(send)
    late = tool(late, off=True)


class WithLutumpy:
    """A session of this library."""

    name = "lutumpy"
    apis = (MESSAGES, RESPONSES)

    def __init__(self, api: str, model: str, clients: Mapping[str, Any]) -> None:
        # The server stands for the vendors, which its address doesn't say.
        kind: Any = AnthropicMessages if api == MESSAGES else OpenAIResponses
        vendor = facts_of("api.anthropic.com" if api == MESSAGES else "api.openai.com")
        self.llm = kind(model, client=clients[api], host=vendor)
        self.session = Session()
        self.session.push_system(SYSTEM)
        self.session.push_user("Go.")

    async def ask(self, step: Step) -> None:
        selectors: Any = {name: getattr(Tools, name) for name in NAMES}
        if step.reminder is not None:
            self.session.push_ephemeral_system(step.reminder)
        described = (
            {}
            if step.reworded is None
            else {selectors[step.reworded]: step.description(step.reworded)}
        )
        outcome: Any = await self.session.text_turn(
            self.llm,
            tools=Tools,
            available=ToolAvailability.only(*[selectors[name] for name in step.offered]),
            describe=described,
        ).collect()
        if isinstance(outcome, NeedsTools):
            results = [call.complete("ok") for call in outcome.round.calls]
            outcome.round.commit(self.session, results)
        else:
            self.session.push_user("And now?")


class WithPydanticAI:
    """The messages of pydantic-ai, through its models."""

    name = "pydantic-ai"
    apis = (MESSAGES, RESPONSES)

    def __init__(self, api: str, model: str, clients: Mapping[str, Any]) -> None:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        if api == MESSAGES:
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            provider: Any = AnthropicProvider(anthropic_client=clients[api])
            self.model: Any = AnthropicModel(model, provider=provider)
            self.settings: Any = None
        else:
            from pydantic_ai.models.openai import OpenAIResponsesModel
            from pydantic_ai.profiles.openai import openai_model_profile
            from pydantic_ai.providers.openai import OpenAIProvider

            provider = OpenAIProvider(openai_client=clients[api])
            # What it knows of the model's sister: of a name that it doesn't know it sends no
            # reasoning back.
            profile = openai_model_profile("gpt-6-astra")
            self.model = OpenAIResponsesModel(model, provider=provider, profile=profile)
            self.settings = {"openai_store": False, "openai_reasoning_effort": "medium"}
        self.messages: list[Any] = [ModelRequest([UserPromptPart("Go.")], instructions=SYSTEM)]

    async def ask(self, step: Step) -> None:
        from dataclasses import replace

        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        said = SYSTEM if step.reminder is None else f"{SYSTEM}\n\n{step.reminder}"
        self.messages[-1] = replace(self.messages[-1], instructions=said)
        tools = [
            ToolDefinition(
                name=name, description=step.description(name), parameters_json_schema=SCHEMA
            )
            for name in step.offered
        ]
        answer = await model_request(
            self.model,
            self.messages,
            model_settings=self.settings,
            model_request_parameters=ModelRequestParameters(function_tools=tools),
        )
        parts: list[Any] = [
            ToolReturnPart(tool_name=call.tool_name, content="ok", tool_call_id=call.tool_call_id)
            for call in answer.tool_calls
        ]
        self.messages += [answer, ModelRequest(parts or [UserPromptPart("And now?")])]


class WithOpenAIAgents:
    """The input list of openai-agents, through its runner."""

    name = "openai-agents"
    apis = (RESPONSES,)

    def __init__(self, api: str, model: str, clients: Mapping[str, Any]) -> None:
        from agents import OpenAIResponsesModel

        self.model = OpenAIResponsesModel(model, clients[api])
        self.items: list[Any] = [{"role": "user", "content": "Go."}]

    async def ask(self, step: Step) -> None:
        from agents import Agent, FunctionTool, ModelSettings, RunConfig, Runner

        async def run_tool(context: Any, arguments: str) -> str:
            return "ok"

        said = SYSTEM if step.reminder is None else f"{SYSTEM}\n\n{step.reminder}"
        agent: Any = Agent(
            name="helper",
            instructions=said,
            model=self.model,
            model_settings=ModelSettings(
                store=False, response_include=["reasoning.encrypted_content"]
            ),
            tools=[
                FunctionTool(name, step.description(name), SCHEMA, run_tool)
                for name in step.offered
            ],
            tool_use_behavior="stop_on_first_tool",
        )
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, self.items, max_turns=1, run_config=config)
        self.items = result.to_input_list()
        if step.call is None:
            self.items.append({"role": "user", "content": "And now?"})


LIBRARIES: tuple[Any, ...] = (WithLutumpy, WithPydanticAI, WithOpenAIAgents)


# ------------------------------------------------------------------ counting


@dataclass
class Counts:
    """What came of the sessions of a library with a model."""

    tried: int = 0
    refused: int = 0
    written: int = 0
    seen: int = 0
    restarts: int = 0
    failed: int = 0
    words: str = ""

    def row(self, library: str, model: str) -> str:
        kept = f"{100 * self.seen / self.written:.0f} %" if self.written else "-"
        cells = [library, f"`{model}`", self.tried, self.refused, kept, self.restarts]
        return f"| {' | '.join(map(str, cells))} |"


def count(requests: list[WireRequest], memory: Any, api: str, counts: Counts) -> None:
    """Count the requests of one session."""
    key = "input" if api == RESPONSES else "messages"
    answered = 0
    before: Json | None = None
    for request in requests:
        counts.tried += 1
        body = request.body
        if request.status != 200:
            counts.refused += 1
            refusals = [p.message for p in request.problems if p.certainty == "refused"]
            counts.words = counts.words or (refusals[0] if refusals else "")
        else:
            counts.written += answered
            counts.seen += len(memory.judge(body).shown)
            answered += 1
        if before is not None:
            found = check_messages(
                api,
                body[key],
                tools=body.get("tools") or [],
                system=body.get("system" if api == MESSAGES else "instructions") or "",
                model=body["model"],
                before=before,
            )
            changed = ("cached_prefix", "reasoning_bound")
            counts.restarts += any(problem.rule.endswith(changed) for problem in found)
        before = body


async def run(sessions: int, length: int, changes: float) -> None:
    print("| library | model | requests | refused | reasoning kept | cache restarts |")
    print("|---|---|---|---|---|---|")
    notes: list[str] = []
    for model, api in MODELS.items():
        for library in LIBRARIES:
            if api not in library.apis:
                continue
            counts = Counts()
            with serve((), new_account=True) as server:
                talks = Talks(server)
                server.play(*[talks.answer] * (3 * sessions * length))
                async with (
                    AsyncAnthropic(base_url=server.anthropic_base_url, **KEY) as claude,
                    AsyncOpenAI(base_url=server.openai_base_url, **KEY) as gpt,
                ):
                    clients = {MESSAGES: claude, RESPONSES: gpt}
                    for seed in range(sessions):
                        begun = len(server.requests)
                        talk = library(api, model, clients)
                        for step in plan(seed, length, changes):
                            talks.step = step
                            try:
                                await talk.ask(step)
                            except Exception as error:
                                counts.failed += 1
                                counts.words = counts.words or f"{type(error).__name__}: {error}"
                        # The part of the server that has signed; no public name leads to it.
                        (judge,) = [one for one in server._apis[""] if one.api == api]
                        count(server.requests[begun:], judge.reasoning, api, counts)
            print(counts.row(library.name, model), flush=True)
            if counts.words:
                notes.append(
                    f"{library.name}, {model}: {counts.failed} errors; {counts.words[:300]}"
                )
    print("\n".join(["", *notes]))


if __name__ == "__main__":
    given = sys.argv[1:]
    sessions, length = [int(word) for word in [*given[:2], *["20", "25"][len(given[:2]) :]]]
    asyncio.run(run(sessions, length, float(given[2]) if given[2:] else 1 / 3))
