"""What `lutumpy demo` runs: a small help desk, a loop over it, and a report of each round.

The tools and the loop are what a user of the library writes; `examples/quickstart_chat.py` is the
same without the report.
"""

# The conversation has a fixed script, and each of its answers shows one thing:
#
#   answer   the model                                  shows
#   -------------------------------------------------------------------------------------
#   1        asks for two orders, one id as a text      parallel calls; a text becomes an int
#   2        names a carrier that doesn't exist         an issue beside a good call
#   3        corrects itself                            the model reads what the issue said
#   4        refunds                                    a call with an effect (--hooks: edited)
#   5        answers                                    the end of the loop

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from lutumpy import (
    Complete,
    Finished,
    NeedsTools,
    RunNormally,
    Session,
    ToolDecision,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    TurnResult,
    hook_impl,
)
from lutumpy.demo.durable import DurableDemoError, run_durable
from lutumpy.demo.providers import DemoError, connect, providers
from lutumpy.demo.report import Report
from lutumpy.demo.shop import PARCELS, SHOP, Refund, _HelpDesk
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply

__all__ = ["DemoError", "DurableDemoError", "provider_names", "run", "run_durable"]

MOST_ROUNDS = 10


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
    """Run the calls of a round, or those that hooks left to run; what can't be done has failed."""
    results: list[ToolResult] = []
    for call in round.pending if isinstance(round, ToolRoundPlan) else round.calls:
        # `matches` tells type checkers which input and result this call has.
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


def provider_names() -> tuple[str, ...]:
    """Whom the demo can ask, as the command line takes it."""
    return tuple(providers())


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
        provider: One of `provider_names()`, as `openai-chat`.
        live: Ask the real API, with the key from the environment, in place of the test server.
        model: The model's name; a default of the provider when left out.
        hooks: Let a cache and a person decide about calls before they are run.
        stream: Take each answer as a stream, and report it as it arrives.
        write: Takes each line of the report.

    Returns:
        The final answer, or `None` when there was none after ten rounds.

    Raises:
        DemoError: a key, the SDK, or the `testing` extra is missing.
        AdapterError: the provider refused a request, or can't be reached.
    """
    async with AsyncExitStack() as stack:
        script = SCRIPT_FOR_HOOKS if hooks else SCRIPT
        api = providers()[provider]
        chosen, llm, where = await connect(stack, api, live, model, script)
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
            # The turn sends the same; it is made here only to be shown at the end.
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
