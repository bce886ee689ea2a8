"""Late results and processes that die: nothing lost, doubled or begun twice (LR8 to LR13, P3, P5).

A process dies at one of its writes, before it or after it; the deliverer brings each result one to
three times, sometimes before the round is recorded. The negative controls show that the harness
sees what it looks for.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import anyio
import pytest
from durable_toolkit import Crash, CrashingStore, end_lease
from every_api import ADAPTERS, messages_of
from profiles import some_of

from lutumpy import CallTicket, Later, Session, Skip, Toolset, tool, tool_fn
from lutumpy.doctor import check_messages
from lutumpy.durable import Answered, DurableLoop, InboxEntry, MemoryStore, Waiting
from lutumpy.execution import Dispatcher
from lutumpy.models import Message, ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel

SCOPE = "s"


class Farm:
    """What was begun, and how: a job that is begun twice is a fault."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.tickets: dict[str, CallTicket] = {}
        self.deliver_at_once: Any = None

    async def submit(self, scene: str, ticket: CallTicket) -> None:
        self.begun[scene] += 1
        self.tickets[ticket.call_id] = ticket
        if self.deliver_at_once is not None:
            await self.deliver_at_once(ticket)


@tool_fn(late=True, effect="once")
async def render(scene: str, *, ticket: Skip[CallTicket], farm: Skip[Farm]) -> str:
    """Render a scene."""
    await farm.submit(scene, ticket)
    raise Later("soon")


class Studio(Toolset):
    render = tool(render)


class Director:
    """A model that answers by what it sees: two scenes at once, and a third after a late result."""

    def __init__(self, api: str) -> None:
        self.api: Any = api
        self._plain = ScriptedModel([], api=self.api)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    async def respond(self, transcript: Any, offering: Any, options: Any) -> Any:
        called = {call.id for turn in transcript.turns() for call in turn.calls}
        if "c1" not in called:
            reply = Reply(calls=[scene("c1"), scene("c2")])
        elif "c3" not in called and values_in(transcript):
            reply = Reply(calls=[scene("c3")])
        else:
            reply = Reply(text="Let me see.")
        model = "gpt-6-astra" if self.api == "openai_responses" else "m"
        script = ScriptedModel([reply], api=self.api, model=model)
        return await script.respond(transcript, offering, options)


def scene(call_id: str) -> Call:
    return Call("render", {"scene": f"scene {call_id}"}, id=call_id)


def value_of(call_id: str) -> str:
    return f"the video of {call_id}."


def values_in(transcript: Any) -> list[str]:
    """The late values in a transcript, in order, wherever they stand."""
    found: list[str] = []
    for item in transcript:
        if isinstance(item, Message) and item.late is not None:
            found.append(item.text.rpartition("\n")[2])
        elif isinstance(item, ToolResults):
            found += [r.text for r in item.results if r.text.startswith("the video of")]
    return found


def loop_on(store: Any, farm: Farm, api: str, late: str) -> DurableLoop[Any, Any]:
    options: Any = {"late": late, "max_attempts": None, "max_rounds": 50}
    dispatch = Dispatcher(Studio, context={"farm": farm})
    return DurableLoop(store, Director(api), tools=Studio, dispatch=dispatch, **options)


async def trial(seed: int, api: str, late: str, make: Any = MemoryStore) -> tuple[list[str], Farm]:
    """One conversation with one to three deaths: the late values at its end, and what was begun."""
    chance = random.Random(seed)
    store, farm = make(), Farm()
    session = Session()
    session.push_user("Render three scenes.")
    await store.create(SCOPE, session)
    delivered: Counter[str] = Counter()

    async def deliver(ticket: CallTicket) -> None:
        times = chance.randint(1, 3)
        loop = loop_on(store, farm, api, late)
        for _ in range(times):
            taken = await loop.deliver(ticket, value_of(ticket.call_id))
            delivered[ticket.call_id] += taken

    deaths = chance.randint(1, 3)
    for _ in range(40):
        farm.deliver_at_once = deliver if chance.random() < 0.3 else None
        used: Any = store
        if deaths:
            used = CrashingStore(store, chance.randint(1, 9), after=chance.random() < 0.5)
            deaths -= 1
        try:
            ended = await loop_on(used, farm, api, late).run(SCOPE)
        except BaseException as error:
            if not is_crash(error):
                raise
            end_lease(store, SCOPE)
            continue
        open_calls = ended.open if isinstance(ended, Waiting) else ()
        if isinstance(ended, Answered):
            open_calls = ended.result.open_calls
            if not open_calls and not await store.inbox(SCOPE):
                break
        for call in open_calls:
            ticket = farm.tickets.get(call.call_id)
            if ticket is not None and not delivered[call.call_id]:  # `True` means kept
                if chance.random() < 0.7:
                    await deliver(ticket)
            elif ticket is None:  # its marker was written, and it never began
                loop = loop_on(store, farm, api, late)
                await loop.withdraw(SCOPE, call.call_id, reason="never began", by="test")
    else:
        raise AssertionError("stuck after 40 runs")
    final = (await store.session(SCOPE)).transcript
    final.push_user("End.")
    model = "gpt-6-astra" if api == "openai_responses" else None
    body = ADAPTERS[api].request(final, Studio.offer(), model=model)
    assert [
        p for p in check_messages(api, messages_of(api, body)) if p.certainty == "refused"
    ] == []
    return values_in(final), farm


def is_crash(error: BaseException) -> bool:
    inner: Any = getattr(error, "exceptions", ())
    return isinstance(error, Crash) or any(is_crash(each) for each in inner)


def faults(values: list[str], farm: Farm) -> list[str]:
    """What must not be."""
    counted = Counter(values)
    found = [f"begun twice: {scene}" for scene, count in farm.begun.items() if count > 1]
    for call_id in farm.tickets:
        count = counted[value_of(call_id)]
        if count != 1:
            found.append(f"{'lost' if not count else 'doubled'}: {call_id}")
    return found


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("late", ["wait", "go_on"])
@pytest.mark.parametrize("api", ["openai_responses", "anthropic_messages"])
def test_nothing_is_lost_doubled_or_begun_twice(api: str, late: str) -> None:
    async def main() -> None:
        for seed in some_of(range(20)):
            values, farm = await trial(seed, api, late)
            assert faults(values, farm) == [], seed

    anyio.run(main)


class WithoutKey(MemoryStore):
    """A store that keeps every delivery as one of its own."""

    async def deliver(self, scope: str, call_id: str, value: Any) -> bool:
        found = self._find(scope)
        found.add_entry(InboxEntry(f"message:{len(found.inbox)}", "message", dump_of(call_id)))
        if found.status in ("done", "waiting"):
            found.set_status("open")
        return True


def dump_of(call_id: str) -> Any:
    session = Session()
    session.push_user(f"Result.\n{value_of(call_id)}")
    return session.dump()["items"][0]


def test_without_the_unique_key_the_harness_reports_doubles() -> None:
    """Negative control: deliveries as pushed messages, each with a key of its own."""

    async def main() -> None:
        doubled = 0
        for seed in range(20):
            store, farm = WithoutKey(), Farm()
            session = Session()
            session.push_user("Render three scenes.")
            await store.create(SCOPE, session)
            loop = loop_on(store, farm, "anthropic_messages", "go_on")
            await loop.run(SCOPE)
            chance = random.Random(seed)
            for ticket in farm.tickets.copy().values():
                for _ in range(chance.randint(1, 3)):
                    await loop.deliver(ticket, value_of(ticket.call_id))
            await loop.run(SCOPE)
            final = (await store.session(SCOPE)).transcript
            said = [i.text.rpartition("\n")[2] for i in final if isinstance(i, Message)]
            doubled += any(count > 1 for count in Counter(said[1:]).values())
        assert doubled

    anyio.run(main)


class TakesBefore(MemoryStore):
    """A store that marks deliveries as taken when they are read, outside the transaction."""

    async def claim(self, scope: str, *, lease: float = 30.0) -> Any:
        claimed = await super().claim(scope, lease=lease)
        found = self._find(scope)
        found.inbox = [entry for entry in found.inbox if entry.kind != "late"]
        return claimed


@pytest.mark.pure
@pytest.mark.slow
def test_with_deliveries_outside_the_transaction_the_harness_reports_losses() -> None:
    """Negative control: what was read is gone when the process dies before its commit."""

    async def main() -> None:
        lost = 0
        for seed in range(30):
            try:
                values, farm = await trial(seed, "anthropic_messages", "go_on", TakesBefore)
            except AssertionError:
                lost += 1  # nobody delivers it again, so the call stays open
            else:
                lost += any(fault.startswith("lost") for fault in faults(values, farm))
        assert lost

    anyio.run(main)
