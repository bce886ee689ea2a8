"""A round beside the same work done by hand, and what a conversation of many rounds costs for each.

`double`: the scripted model, against a loop over plain dictionaries that validates arguments and
keeps the history in a list. `openai`, `anthropic`: the official SDK's client with a transport that
answers from memory, against a loop that encodes each message once and posts joined bytes through
the same client. Both sides take turns in one run; the best time of each counts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import TypeAdapter
from pydantic_core import from_json, to_json
from typing_extensions import TypedDict

from lutumpy import Finished, NeedsTools, RunNormally, Session, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel, render

if TYPE_CHECKING:  # earlier commits, which `speed.py` runs too, have it elsewhere
    from lutumpy.models import Api

ROUNDS = 10
WIDTHS = (1, 8, 64)
REPEATS = 25
LENGTHS = (100, 1000)


class Arguments(TypedDict):
    key: str
    tags: list[str]
    limit: int


@tool_fn
async def lookup(key: str, tags: list[str], limit: int = 10) -> str:
    """Look something up.

    Args:
        key: What to look for.
        tags: Which tags it has.
        limit: How many are wanted.
    """
    return f"{key}: nothing found"


class Tools(Toolset):
    lookup = tool(lookup)


HOOKS = Tools.hooks()


@HOOKS.on(Tools.lookup)
async def keep(metadata: ToolMetadata, input: Any) -> Any:
    return RunNormally(input)


VALIDATE = TypeAdapter(Arguments).validator
TOOLS: dict[str, Any] = {
    "openai_chat": OpenAIChat.tools(Tools.offer()),
    "anthropic_messages": AnthropicMessages.tools(Tools.offer()),
}


def script(width: int, rounds: int) -> list[Reply]:
    calls = [
        [
            Call("lookup", {"key": f"k{k}", "tags": ["a", "b"], "limit": k}, id=f"call_{r}_{k}")
            for k in range(width)
        ]
        for r in range(rounds)
    ]
    return [*[Reply(calls=c) for c in calls], Reply("done")]


def answers(api: Api, width: int, rounds: int) -> list[dict[str, Any]]:
    return [
        render(reply, api, number=k, model="m") for k, reply in enumerate(script(width, rounds), 1)
    ]


async def lutumpy_loop(llm: Any, *, pause: bool = False) -> Session:
    """A loop as the quick start has it; with `pause` each round gives the event loop a turn."""
    session = Session()
    session.push_user("go")
    while True:
        match await session.text_turn(llm, tools=Tools).collect():
            case NeedsTools(round=round):
                plan = await round.apply_hooks(HOOKS)
                outputs = await _all([call.call() for call in plan.pending])
                if pause:
                    await asyncio.sleep(0)
                plan.commit(
                    session, [c.complete(o) for c, o in zip(plan.pending, outputs, strict=True)]
                )
            case Finished():
                return session


async def _all(work: list[Any]) -> list[Any]:
    return [await work[0]] if len(work) == 1 else await asyncio.gather(*work)


async def pass_on(call: Any, arguments: Any) -> None:
    return None


async def by_hand(replies: list[dict[str, Any]], *, pause: bool = False) -> None:
    """The floor of the double: plain dictionaries, and a list of them as the next body."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for reply in replies:
        body = {"model": "m", "messages": [*history], "tools": TOOLS["openai_chat"]}
        message = reply["choices"][0]["message"]
        history.append(message)
        calls = message.get("tool_calls")
        if not calls:
            assert body["messages"]
            return
        work = []
        for call in calls:
            arguments: Any = VALIDATE.validate_json(call["function"]["arguments"])
            await pass_on(call, arguments)
            work.append(lookup(**arguments))
        outputs = await _all(work)
        if pause:
            await asyncio.sleep(0)
        for call, output in zip(calls, outputs, strict=True):
            history.append({"role": "tool", "tool_call_id": call["id"], "content": output})


async def joined(client: Any, path: str, api: Api) -> None:
    """The floor of the wires: each message encoded once, the body joined from bytes."""
    chat = api == "openai_chat"
    head = b'{"model":"m","max_tokens":4096,"tools":' + to_json(TOOLS[api]) + b',"messages":['
    parts = [b'{"role":"user","content":"go"}']
    options = {"headers": {"content-type": "application/json"}}
    while True:
        content = head + b",".join(parts) + b"]}"
        reply = from_json(
            (
                await client.post(path, content=content, cast_to=httpx2.Response, options=options)
            ).content
        )
        said = (
            reply["choices"][0]["message"]
            if chat
            else {"role": "assistant", "content": reply["content"]}
        )
        parts.append(to_json(said))
        calls = (
            said.get("tool_calls")
            if chat
            else [b for b in said["content"] if b["type"] == "tool_use"]
        )
        if not calls:
            return
        work = []
        for call in calls:
            arguments: Any = (
                VALIDATE.validate_json(call["function"]["arguments"])
                if chat
                else VALIDATE.validate_python(call["input"])
            )
            await pass_on(call, arguments)
            work.append(lookup(**arguments))
        outputs = await _all(work)
        if chat:
            for call, output in zip(calls, outputs, strict=True):
                parts.append(
                    to_json({"role": "tool", "tool_call_id": call["id"], "content": output})
                )
        else:
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": output}
                for call, output in zip(calls, outputs, strict=True)
            ]
            parts.append(to_json({"role": "user", "content": results}))


def client(api: Api, replies: list[bytes]) -> Any:
    """A real client of the SDK over a transport that answers from memory."""
    left = iter(replies)

    def answer(request: Any) -> Any:
        return httpx2.Response(
            200, content=next(left), headers={"content-type": "application/json"}
        )

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    if api == "openai_chat":
        return AsyncOpenAI(
            api_key="none", base_url="http://localhost/v1", max_retries=0, http_client=http
        )
    return AsyncAnthropic(
        api_key="none", base_url="http://localhost", max_retries=0, http_client=http
    )


async def seconds(
    makes: list[Callable[[], Callable[[], Awaitable[object]]]], repeats: int
) -> list[float]:
    """The best time of several for each, taken in turns; what each needs is made beforehand, and
    not counted.
    """
    best = [float("inf")] * len(makes)
    for _ in range(repeats):
        for k, make in enumerate(makes):
            run = make()
            gc.collect()
            begun = time.perf_counter()
            await run()
            best[k] = min(best[k], time.perf_counter() - begun)
    return best


def sides(
    kind: str, width: int, rounds: int, *, pause: bool = False
) -> list[Callable[[], Callable[[], Awaitable[object]]]]:
    """Ours, and the floor."""
    if kind == "double":
        replies = answers("openai_chat", width, rounds)

        def ours() -> Callable[[], Awaitable[object]]:
            llm = ScriptedModel(replies, check=False, keep=1)
            return lambda: lutumpy_loop(llm, pause=pause)

        return [ours, lambda: lambda: by_hand(replies, pause=pause)]
    api: Api = "openai_chat" if kind == "openai" else "anthropic_messages"
    sent = [
        json.dumps(reply, separators=(",", ":")).encode() for reply in answers(api, width, rounds)
    ]
    adapter: Any = OpenAIChat if kind == "openai" else AnthropicMessages
    path = "/chat/completions" if kind == "openai" else "/v1/messages"

    def over_wire() -> Callable[[], Awaitable[object]]:
        llm = adapter("m", client(api, sent))
        return lambda: lutumpy_loop(llm)

    def floor() -> Callable[[], Awaitable[object]]:
        made = client(api, sent)
        return lambda: joined(made, path, api)

    return [over_wire, floor]


async def main() -> None:
    print(f"{'':<12}{'calls':>6}{'us a round':>13}{'floor':>9}{'ratio':>7}")
    for kind in ("double", "openai", "anthropic"):
        for width in WIDTHS:
            ours, floor = await seconds(sides(kind, width, ROUNDS), REPEATS)
            turns = (ROUNDS + 1) / 1e6
            print(
                f"{kind:<12}{width:>6}{ours / turns:>13.1f}{floor / turns:>9.1f}"
                f"{ours / floor:>7.2f}"
            )
    print()
    print(f"{'':<12}{'rounds':>7}{'us a round':>13}")
    for kind in ("double", "openai", "anthropic"):
        for length in LENGTHS:
            ours, _ = await seconds(sides(kind, 1, length), 3)
            print(f"{kind:<12}{length:>7}{1e6 * ours / length:>13.1f}")


if __name__ == "__main__":
    asyncio.run(main())
