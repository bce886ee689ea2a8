"""What `lutumpy demo` runs: a small help desk, a loop over it, and a report of each round.

The tools and the loop are what a user of the library writes; `examples/quickstart_chat.py` is the
same without the report.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from lutumpy import (
    Complete,
    Finished,
    InvalidToolCallDelta,
    NeedsTools,
    ReasoningDelta,
    RunNormally,
    Session,
    Skip,
    TextDelta,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    Toolset,
    TurnResult,
    hook_impl,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.hooks import BaseToolCall
from lutumpy.models import ToolResults
from lutumpy.streaming import TurnStream
from lutumpy.testing.script import Call, Reply

__all__ = ["DemoError", "run"]

MOST_ROUNDS = 10
WIDTH = 100
MARGIN = 11


class DemoError(Exception):
    """The demo can't run as it was asked to; nothing was sent."""


# --- the tools ------------------------------------------------------------------------------------


class Order(BaseModel):
    item: str
    price: float
    carrier: str
    parcel: str


class Parcel(BaseModel):
    status: str
    place: str


Shop = Mapping[int, Order]

SHOP: Shop = {
    1042: Order(item="kettle", price=39.5, carrier="north", parcel="NP-77"),
    1043: Order(item="teapot", price=24.0, carrier="south", parcel="SX-12"),
}
PARCELS = {
    "NP-77": Parcel(status="delayed", place="sorting centre"),
    "SX-12": Parcel(status="out for delivery", place="your town"),
}


@tool_fn(effect="read")
async def get_order(order_id: int, *, shop: Skip[Shop]) -> Order:
    """Look an order up.

    Args:
        order_id: The number of the order.
    """
    return shop[order_id]


@tool_input(name="track_parcel", effect="read")
class TrackParcel(ToolInput[Parcel]):
    """Find out where a parcel is."""

    carrier: Literal["north", "south"]
    """Who carries it."""
    number: str
    """The parcel's number."""


@tool_input(name="refund")
class Refund(ToolInput[str]):
    """Pay a part of the price back."""

    order_id: int
    percent: Annotated[int, Field(ge=1, le=50, description="How much of the price, in percent.")]


@tool_input(name="cancel_order")
class CancelOrder(ToolInput[None]):
    """Cancel an order."""

    order_id: int


class _HelpDesk(Toolset):  # private: a published name would need its types written out
    get_order = tool(get_order)
    track_parcel = tool(TrackParcel)
    refund = tool(Refund)
    cancel_order = tool(CancelOrder, off=True)


# --- what the model says, where no real one is asked ----------------------------------------------

SYSTEM = (
    "You are the help desk of a shop. Look things up before you answer. You may refund at most 20 "
    "percent of a late order."
)
QUESTION = "Where are my orders 1042 and 1043? If one of them is late I want some of my money back."
SCRIPT = [
    Reply(
        text="Let me look at both orders.",
        calls=[
            Call("get_order", {"order_id": 1042}, id="call_1"),
            Call("get_order", '{"order_id": "1043"}', id="call_2"),
        ],
    ),
    Reply(
        calls=[
            Call("track_parcel", {"carrier": "North Post", "number": "NP-77"}, id="call_3"),
            Call("track_parcel", {"carrier": "south", "number": "SX-12"}, id="call_4"),
        ]
    ),
    Reply(calls=[Call("track_parcel", {"carrier": "north", "number": "NP-77"}, id="call_5")]),
    Reply(
        text="The kettle is late.",
        calls=[Call("refund", {"order_id": 1042, "percent": 20}, id="call_6")],
    ),
    Reply(
        text=(
            "The teapot comes today. The kettle is delayed, so I paid 7.90 of its price back. "
            "Sorry for the wait."
        )
    ),
]


# --- the loop -------------------------------------------------------------------------------------


async def execute(round: ToolRound | ToolRoundPlan) -> list[ToolResult]:
    """Run every call of a round, or those that hooks left; what can't be done is answered as
    failed.
    """
    results: list[ToolResult] = []
    for call in round.pending if isinstance(round, ToolRoundPlan) else round.calls:
        if _HelpDesk.get_order.matches(call):
            try:
                results.append(call.complete(await call.call(shop=SHOP)))
            except KeyError:
                results.append(call.fail("there is no such order"))
        elif _HelpDesk.track_parcel.matches(call):
            found = PARCELS.get(call.input.number)
            results.append(
                call.complete(found) if found is not None else call.fail("there is no such parcel")
            )
        elif _HelpDesk.refund.matches(call):
            order = SHOP.get(call.input.order_id)
            if order is None:
                results.append(call.fail("there is no such order"))
            elif call.input.percent > 20:
                results.append(call.reject("more than 20 percent needs a person's consent"))
            else:
                results.append(
                    call.complete(f"paid back {order.price * call.input.percent / 100:.2f}")
                )
        else:
            results.append(call.reject("not for this conversation"))
    return results


async def run(
    provider: str,
    *,
    live: bool = False,
    model: str | None = None,
    hooks: bool = False,
    stream: bool = False,
    write: Callable[[str], None] = print,
) -> TurnResult | None:
    """Have the conversation and report each round.

    Args:
        provider: `openai-chat`, `openai-responses` or `anthropic`.
        live: Ask the real API, with the key from the environment, in place of the test server.
        model: The model's name; a default of the provider when left out.
        hooks: Let a cache and a person decide about calls before they are run.
        stream: Take each answer as a stream, and report it as it arrives.
        write: Takes each line of the report.

    Returns:
        The final answer, or `None` when there was none after ten rounds.

    Raises:
        DemoError: a key or the `testing` extra is missing.
        AdapterError: the provider refused a request, or can't be reached.
    """
    chosen = PROVIDERS[provider]
    async with AsyncExitStack() as stack:
        script = SCRIPT_FOR_HOOKS if hooks else SCRIPT
        llm, where = await _connect(stack, chosen, live, model or chosen.model, script)
        policies = Policies() if hooks else None
        report = Report(write)
        report.title(
            f"{chosen.title} through {chosen.client}, {where}{', as streams' if stream else ''}"
        )
        session = Session()
        session.push_system(SYSTEM)
        session.push_user(QUESTION)
        report.field("system", [SYSTEM])
        report.field("user", [QUESTION])
        body: dict[str, Any] = {}
        for number in range(1, MOST_ROUNDS + 1):
            # What the turn sends.
            body = llm.request(
                session.transcript, _HelpDesk.offer(), model=llm.model, stream=stream
            )
            turn = session.text_turn(llm, tools=_HelpDesk)
            match await (report.arriving(number, turn.stream()) if stream else turn.collect()):
                case NeedsTools(round=round):
                    report.asked(number, round)
                    if policies is None:
                        results = await execute(round)
                        report.executed(round, results)
                        round.commit(session, results)
                    else:
                        plan = await policies.decide(round)
                        report.decided(plan)
                        results = await execute(plan)
                        report.executed(plan, results)
                        policies.cache.remember(plan.pending, results)
                        plan.commit(session, results)
                    report.committed(session)
                case Finished(result=result):
                    report.finished(number, result, session, body)
                    return result
        report.title(f"no final answer after {MOST_ROUNDS} rounds")
        return None


# --- who decides before anything runs (--hooks) ---------------------------------------------------

SCRIPT_FOR_HOOKS = [
    *SCRIPT[:3],
    Reply(
        text="The kettle is late. What did it cost again?",
        calls=[
            Call("get_order", {"order_id": 1042}, id="call_6"),
            Call("refund", {"order_id": 1042, "percent": 20}, id="call_7"),
        ],
    ),
    Reply(
        text=(
            "The teapot comes today. The kettle is delayed, so I paid 3.95 of its price back. "
            "Sorry for the wait."
        )
    ),
]


class Cache:
    """Answers a tool that only reads from what it gave for the same input before."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Any] = {}

    def remember(self, calls: Sequence[BaseToolCall], results: Sequence[ToolResult]) -> None:
        for call, result in zip(calls, results, strict=True):
            if result.status == "ok" and call.selector.definition.options.effect == "read":
                self._known[self._key(call)] = result.output

    @hook_impl
    def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> ToolDecision:
        key = self._key(call)
        return Complete(self._known[key]) if key in self._known else RunNormally(call.input)

    @staticmethod
    def _key(call: BaseToolCall) -> tuple[str, str]:
        return call.metadata.name, call.input.model_dump_json()


async def ask_a_person(call: BaseToolCall) -> ToolDecision:
    """The gate: a person, played here by one line, who allows refunds of at most 10 percent."""
    if _HelpDesk.refund.matches(call) and call.input.percent > 10:
        return RunNormally(Refund(order_id=call.input.order_id, percent=10))
    return RunNormally(call.input)


class Policies:
    """The cache, then the gate in a pass of its own, which sees what is really going to run."""

    def __init__(self) -> None:
        self.cache: Cache = Cache()
        self._hooks = _HelpDesk.hooks().with_hooks(self.cache)

    async def decide(self, round: ToolRound) -> ToolRoundPlan:
        plan = await round.apply_hooks(self._hooks)
        return await plan.apply_hooks(ask_a_person)


# --- who answers ----------------------------------------------------------------------------------

Adapter = OpenAIChat | OpenAIResponses | AnthropicMessages


@dataclass(frozen=True, slots=True)
class Provider:
    title: str
    adapter: Callable[..., Adapter]
    client: Literal["AsyncOpenAI", "AsyncAnthropic"]
    key: str
    model: str


PROVIDERS: Mapping[str, Provider] = {
    "openai-chat": Provider(
        "Chat Completions", OpenAIChat, "AsyncOpenAI", "OPENAI_API_KEY", "gpt-4.1-mini"
    ),
    "openai-responses": Provider(
        "Responses", OpenAIResponses, "AsyncOpenAI", "OPENAI_API_KEY", "gpt-4.1-mini"
    ),
    "anthropic": Provider(
        "Messages", AnthropicMessages, "AsyncAnthropic", "ANTHROPIC_API_KEY", "claude-haiku-4-5"
    ),
}


async def _connect(
    stack: AsyncExitStack, provider: Provider, live: bool, model: str, script: Sequence[Reply]
) -> tuple[Adapter, str]:
    """The adapter with a client of the provider's SDK, and where that sends its requests."""
    if live and not os.environ.get(provider.key):
        raise DemoError(f"--live needs a key: set {provider.key}, or leave --live out")
    options: dict[str, Any] = {}
    where = "live"
    if not live:
        try:
            from lutumpy.testing.wire import serve
        except ImportError as error:
            raise DemoError(str(error)) from error
        server = await stack.enter_async_context(serve(script))
        url = (
            server.anthropic_base_url
            if provider.client == "AsyncAnthropic"
            else server.openai_base_url
        )
        options = {"base_url": url, "api_key": "no-key-needed"}
        where = "answered by a test server on this machine"
    if provider.client == "AsyncAnthropic":
        from anthropic import AsyncAnthropic

        return provider.adapter(
            model, client=await stack.enter_async_context(AsyncAnthropic(**options))
        ), where
    from openai import AsyncOpenAI

    return provider.adapter(
        model, client=await stack.enter_async_context(AsyncOpenAI(**options))
    ), where


# --- the report -----------------------------------------------------------------------------------


class Report:
    """Says what happened, line by line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def title(self, text: str) -> None:
        self._write("")
        self._write(f"-- {text} ".ljust(WIDTH, "-"))

    def field(self, name: str, lines: Sequence[str], *, cut: bool = False) -> None:
        for line in lines:
            shown = (
                [_cut(line)]
                if cut
                else textwrap.wrap(line, WIDTH - MARGIN, subsequent_indent="    ")
            )
            for piece in shown:
                self._write(f"{name} ".ljust(MARGIN) + piece)
                name = ""

    async def arriving(
        self, number: int, stream: TurnStream[BaseToolCall, NeedsTools | Finished]
    ) -> NeedsTools | Finished:
        """Every piece of a streamed answer when it comes; a call is there with its types before the
        answer has ended.
        """
        self.title(f"answer {number}, as it arrives")
        async with stream:
            async for event in stream:
                match event:
                    case TextDelta(text=text) | ReasoningDelta(text=text):
                        what = "text" if isinstance(event, TextDelta) else "thought"
                        self.field(what, [json.dumps(text, ensure_ascii=False)], cut=True)
                    case ToolCallDelta(id=id, name=name, arguments=piece):
                        self.field("piece", [f"{id}  {name} {piece}".rstrip()], cut=True)
                    case InvalidToolCallDelta(id=id, name=name, arguments=piece):
                        self.field(
                            "piece", [f"{id}  {name} (not offered) {piece}".rstrip()], cut=True
                        )
                    case ToolCallReady(call=call):
                        self.field("ready", [f"{call.metadata.id}  {call.input!r}"])
                    case ToolCallIssueFound(issue=issue):
                        self.field("issue", [f"{issue.metadata.id}  {issue.reason}"])
                    case _:
                        pass
        return stream.outcome

    def asked(self, number: int, round: ToolRound) -> None:
        """What was offered, what the model wrote, and what became of it."""
        self.title(f"round {number}")
        offered = [selector.name for selector in _HelpDesk.default_selectors()]
        hidden = [
            selector.name for selector in _HelpDesk.selectors() if selector.name not in offered
        ]
        self.field("offered", [f"{', '.join(offered)} (not offered: {', '.join(hidden)})"])
        if round.text:
            self.field("said", [round.text])
        self.field(
            "asked", [f"{call.id}  {call.name} {call.arguments}" for call in round.turn.calls]
        )
        self.field("decoded", [f"{call.metadata.id}  {call.input!r}" for call in round.calls])
        self.field(
            "issue",
            [f"{issue.metadata.id}  {issue.reason}: {issue.detail}" for issue in round.issues],
        )

    def decided(self, plan: ToolRoundPlan) -> None:
        """What hooks made of the calls."""
        lines: list[str] = []
        for entry in plan.decisions():
            line = f"{entry['call_id']}  {entry['tool']}: {entry['decision']}"
            if entry["decision"] == "edited":
                line += f", will run with {json.dumps(entry['input'])}"
            elif entry["decision"] != "pending" and "by" in entry:
                line += f" by {entry['by']}"
            lines.append(line)
        self.field("decided", lines)

    def executed(self, round: ToolRound | ToolRoundPlan, results: Sequence[ToolResult]) -> None:
        """Which calls the program's own code ran, and how that went."""
        lines = [
            f"{result.metadata.id}  {result.metadata.name}: {result.status}" for result in results
        ]
        self.field("executed", lines or ["nothing"])
        if round.continue_suggestion:
            self.field("next", [round.continue_suggestion])

    def committed(self, session: Session) -> None:
        """What the model is told, call by call in its own order, and what this round cost."""
        last = session.transcript[-1]
        told = last.results if isinstance(last, ToolResults) else ()
        self.field("told", [f"{result.call_id}  {result.text}" for result in told])
        usage = session.turns()[-1].usage
        self.field(
            "committed",
            [f"the turn and a result for each call; {len(session.transcript)} items so far"],
        )
        self.field("tokens", [f"{usage.input_tokens} in, {usage.output_tokens} out"])

    def finished(
        self, number: int, result: TurnResult, session: Session, body: Mapping[str, Any]
    ) -> None:
        """The answer, what the conversation cost, and the request that led to the answer."""
        self.title(f"answer, to request {number}")
        self.field("said", [result.text])
        self.field("finish", [result.finish_reason])
        usage = session.usage
        self.field(
            "tokens", [f"{usage.input_tokens} in, {usage.output_tokens} out, in {number} requests"]
        )
        self.title("the last request, in outline")
        for name, value in body.items():
            if name in ("messages", "input"):
                lines = [
                    f"{k:>2}  {line}" for k, entry in enumerate(value) for line in outline(entry)
                ]
            elif name == "tools":
                lines = [
                    ", ".join([entry.get("name") or entry["function"]["name"] for entry in value])
                ]
            else:
                lines = [str(value)]
            self.field(name, lines, cut=True)


def outline(entry: Mapping[str, Any]) -> Iterator[str]:
    """A message or item of a request body in a few words: who, and what."""
    who = f"{entry.get('role') or entry.get('type'):<21}"
    content = entry.get("content", entry.get("output"))
    if isinstance(content, str):
        answered = entry.get("tool_call_id") or entry.get("call_id")
        yield f"{who}{f'{answered}  ' if answered else ''}{content}"
    for part in content if isinstance(content, list) else ():
        yield f"{who}{_part(part)}"
    for call in entry.get("tool_calls") or ():
        yield f"{who}{call['id']}  {call['function']['name']} {call['function']['arguments']}"
    if "arguments" in entry:
        yield f"{who}{entry['call_id']}  {entry['name']} {entry['arguments']}"


def _part(part: Mapping[str, Any]) -> str:
    kind = part["type"]
    if kind == "tool_use":
        return (
            f"{kind} {part['id']}  {part['name']} {json.dumps(part['input'], ensure_ascii=False)}"
        )
    if kind == "tool_result":
        return f"{kind} {part['tool_use_id']}  {part['content']}"
    return str(part.get("text", kind))


def _cut(text: str) -> str:
    text = " ".join(text.split("\n"))
    return text if len(text) <= WIDTH - MARGIN else text[: WIDTH - MARGIN - 3] + "..."
