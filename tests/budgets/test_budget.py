"""Budgets (rules B1 to B7): what is paid counts, and a limit is looked at before each request."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from every_api import APIS
from every_client import sync_model_at

from lutumpy import (
    AdapterError,
    NeedsTools,
    RejectedToolCall,
    Session,
    ToolAvailability,
    Toolset,
    TranscriptError,
    Usage,
    tool,
    tool_fn,
)
from lutumpy.budget import Budget, ModelName, Price, Prices, cost_of
from lutumpy.errors import BudgetExceeded, NotSupportedError, UnknownPriceError
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.loops import run_tools, run_tools_sync
from lutumpy.models import collect_retries
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, render_stream, serve
from lutumpy.text_tools import TagToolParser, TextTools


@tool_fn(effect="read")
async def search(query: str) -> str:
    """Search."""
    return f"found {query}"


@tool_fn(effect="read")
async def read(name: str) -> str:
    """Read."""
    return name


class App(Toolset):
    search = tool(search)
    read = tool(read)


# One dollar for a million tokens of input, ten for output.
ROUND = Prices.table({"m": Price(Decimal(1), Decimal(10))})
REPLY = Reply(text="hi", usage=(1000, 100))  # costs 0.002 dollars
TURN = Decimal("0.002")


def asked(text: str = "hi") -> Session:
    session = Session()
    session.push_user(text)
    return session


def scripted(*script: Any, api: str = "openai_chat") -> ScriptedModel:
    return ScriptedModel(script, api=api, model="m")


# --- what counts -----------------------------------------------------------------------------


def test_every_answer_is_counted_in_dollars_and_tokens_B1_B3() -> None:
    budget = Budget(usd="0.005", prices=ROUND)
    llm = budget.model(scripted(*[REPLY] * 4))
    session = asked()
    for _ in range(3):
        session.text_turn(llm).collect_sync()
        session.push_user("more")
    # The third was sent, since 0.004 of 0.005 dollars were spent: it may be passed by one answer.
    with pytest.raises(BudgetExceeded, match=r"0.006 of 0.005 dollars") as caught:
        session.text_turn(llm).collect_sync()
    assert caught.value.limit == "usd"
    assert budget.spent.usd == 3 * TURN
    assert isinstance(budget.spent.usd, Decimal)
    assert budget.spent.usage == session.usage == Usage(3000, 300, 3300)
    assert budget.left.usd == Decimal("-0.001")
    assert session.unsettled == ()
    assert len(session.transcript) == 7
    assert repr(budget) == "<Budget 0.006 dollars, 3300 tokens, 3 requests spent>"


def test_tokens_and_requests_have_limits_of_their_own() -> None:
    for options, limit in [({"tokens": 1100}, "tokens"), ({"requests": 1}, "requests")]:
        budget = Budget(**options)
        llm = budget.model(scripted(REPLY, REPLY))
        asked().text_turn(llm).collect_sync()
        assert budget.used_up
        with pytest.raises(BudgetExceeded) as caught:
            asked().text_turn(llm).collect_sync()
        assert caught.value.limit == limit
        assert budget.spent.usd is None
        with pytest.raises(BudgetExceeded):
            budget.check()
    assert Budget(tokens=5).left.tokens == 5
    assert not Budget(requests=1).used_up
    Budget().check()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.limit) == (str(caught.value), "requests")


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_streams_that_die_at_any_event_are_counted_as_the_session_counts_them_B1(api: str) -> None:
    made: Any = scripted(Reply(text="a long answer " * 10, usage=(50, 20)), api=api)
    events = made.events(asked().transcript, None, _options())
    for cut in range(len(events) + 1):
        budget = Budget(prices=ROUND)
        broken = [*events[:cut], Failure(500, "gone")] if cut < len(events) else events
        session = asked()
        llm = budget.model(scripted(broken, api=api))
        try:
            with session.text_turn(llm).stream_sync() as stream:
                stream.collect()
        except AdapterError:
            pass
        spent = budget.spent
        assert spent.usage == session.usage, cut
        assert spent.unsettled == session.unsettled, cut
        assert spent.estimated_tokens == sum(
            each.estimate.total_tokens for each in session.unsettled if each.estimate
        )
        assert spent.usd == ROUND.of(session.usage, ModelName(api, "m"))
        assert bool(spent.estimated_usd) == bool(spent.estimated_tokens)


@pytest.mark.parametrize("api", ["openai_chat", "anthropic_messages"])
async def test_a_stream_that_is_left_is_counted_B1(api: str) -> None:
    budget, session = Budget(prices=ROUND), asked()
    llm = budget.model(scripted(Reply(text="long " * 50, usage=(50, 20)), api=api))
    async with session.text_turn(llm).stream() as stream:
        async for _ in stream:
            break
    assert budget.spent.usage == session.usage
    assert budget.spent.unsettled == session.unsettled != ()


def test_what_was_refused_costs_nothing_and_what_may_have_run_an_estimate_B1() -> None:
    budget, session = Budget(tokens=10_000, prices=ROUND), asked("a question " * 100)
    llm = budget.model(scripted(Failure(429, "slow down"), Failure(500, "broken"), REPLY))
    for _ in range(2):
        with pytest.raises(AdapterError):
            session.text_turn(llm).collect_sync()
    spent = budget.spent
    assert (spent.requests, spent.usage) == (2, Usage())
    (unsettled,) = spent.unsettled
    assert (unsettled.api, unsettled.model) == ("openai_chat", "m")
    assert spent.estimated_tokens > 200
    assert spent.estimated_usd is not None
    assert budget.left.tokens == 10_000 - spent.estimated_tokens
    # What it has really cost takes the place of the estimate.
    budget.settle(unsettled, Usage(300, 0, 300))
    assert budget.spent.estimated_tokens == 0
    assert budget.spent.estimated_usd == 0
    assert budget.spent.usd == Decimal("0.0003")
    with pytest.raises(ValueError, match="not among the unsettled"):
        budget.settle(unsettled, Usage())


def test_a_bug_before_the_request_costs_nothing_and_a_cancelled_one_an_estimate() -> None:
    class Odd(ScriptedModel):
        def respond_sync(self, *arguments: Any) -> Any:
            raise error

    for error, count in [(TypeError("a bug"), 0), (KeyboardInterrupt(), 1)]:
        budget = Budget(tokens=1000)
        with pytest.raises(type(error)):
            asked().text_turn(budget.model(Odd([], model="m"))).collect_sync()
        assert len(budget.spent.unsettled) == count


@pytest.mark.parametrize("api", APIS)
def test_what_was_never_sent_is_no_request(api: Any) -> None:
    replies = [Reply(text="x", usage=(10, 5)), Reply(text="y", usage=(10, 5))]
    for ahead in (False, True):
        budget = Budget(requests=3, estimate=ahead)
        with serve(replies) as server, sync_model_at(api, server.url) as llm:
            url = server.url
            for _ in range(2):
                with pytest.raises(TranscriptError):
                    Session().text_turn(budget.model(llm)).collect_sync()
            assert budget.spent.requests == 0
            asked().text_turn(budget.model(llm)).collect_sync()
            sent = budget.spent.requests
            assert sent in ((1, 2) if ahead else (1,))  # not every API counts tokens
        # Nobody listens there any more.
        with sync_model_at(api, url) as llm, pytest.raises(AdapterError) as caught:
            asked().text_turn(budget.model(llm)).collect_sync()
        assert not caught.value.sent
        assert budget.spent.requests == sent
        assert budget.spent.unsettled == ()


def test_structured_turns_and_retries_of_values_are_counted_B7() -> None:
    budget = Budget(requests=2)
    llm = scripted(Reply(text="no json"), Reply(text="no json"), Reply(text="{}"))
    result = run_tools_sync(
        asked(), llm, tools=App, output=dict[str, int], value_retries=5, budget=budget
    )
    assert result.stopped_by in ("budget", "no_value")
    assert budget.spent.requests == 2


# --- prices ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_figures_of_two_providers_cost_what_the_list_says_with_and_without_cache_B3() -> None:
    """The sums are made by hand: dollars for a million tokens are 0.40/1.60/0.10 for one model,
    3/15/0.30/3.75 for the other."""
    prices = Prices.genai()
    mini = ModelName("openai_chat", "gpt-4.1-mini")
    sonnet = ModelName("anthropic_messages", "claude-sonnet-4-5")
    plain = Usage(10_000, 1_000, 11_000)
    assert prices.of(plain, mini) == Decimal("0.0056")
    assert prices.of(plain, sonnet) == Decimal("0.045")
    # OpenAI counts cached tokens in the input, Anthropic beside it; both were given 10,000.
    inside = Usage(10_000, 1_000, 11_000, cached_input_tokens=4_000)
    assert prices.of(inside, mini) == Decimal("0.0044")
    beside = Usage(4_000, 1_000, 11_000, 4_000, 2_000)
    assert prices.of(beside, sonnet) == Decimal("0.0357")
    # By the host, whatever the API.
    elsewhere = ModelName("openai_chat", "claude-sonnet-4-5", "api.anthropic.com")
    assert prices.of(plain, elsewhere) == Decimal("0.045")
    assert prices.of(plain, ModelName(None, "gpt-4.1-mini")) == Decimal("0.0056")
    assert prices.of(plain, ModelName("my_api", "gpt-4.1-mini")) == Decimal("0.0056")
    bedrock = ModelName("bedrock_converse", "amazon.nova-lite-v1:0")
    assert prices.of(plain, bedrock) == Decimal("0.00084")


def test_counts_that_do_not_fit_together_have_a_price_B1() -> None:
    # Some hosts say that more was cached than was sent.
    price = Price(Decimal("0.4"), Decimal("1.6"), Decimal("0.1"))
    for usage in (Usage(10, 5, 15, 100), Usage(10, 5, 15, 8), Usage(1000, 10, 1010, 1500)):
        budget = Budget(usd=1)
        budget.count(usage, api="openai_chat", model="gpt-4.1-mini")
        assert budget.spent.usd == price.of(usage), usage
    # Fewer than none are left where a transcript's own answers were never counted.
    assert Prices.genai().of(Usage(5, 5, 10, -3), ModelName(None, "gpt-4.1-mini")) > 0


def test_prices_that_raise_leave_nothing_set_aside() -> None:
    def find(usage: Usage, name: ModelName) -> Decimal:
        if usage.input_tokens == 1000:
            raise ValueError("no such price")
        return Decimal("0.1")

    budget = Budget(usd=1, prices=Prices(find), estimate=True)
    with pytest.raises(ValueError, match="no such price"):
        asked().text_turn(budget.model(scripted(REPLY))).collect_sync()
    assert budget.spent.reserved_usd == 0
    assert budget.spent.usage.output_tokens == 100


def test_a_table_of_ones_own() -> None:
    price = Price(Decimal(1), Decimal(10), Decimal("0.1"), Decimal(2))
    prices = Prices.table({"m": price})
    usage = Usage(1_000_000, 100_000, 1_500_000, 300_000, 100_000)
    expected = Decimal(1) + Decimal("0.03") + Decimal("0.2") + Decimal(1)
    assert prices.of(usage, ModelName(None, "m")) == expected
    simple = Price(Decimal(1), Decimal(10))
    assert simple.of(usage) == Decimal("1.4") + Decimal(1)


def test_an_unknown_model_is_refused_before_the_first_request_B4() -> None:
    model = scripted(REPLY, REPLY, REPLY)
    for prices in (None, Prices.table({})):
        budget = Budget(usd=1, prices=prices)
        with pytest.raises(UnknownPriceError, match="the model m costs"):
            asked().text_turn(budget.model(model)).collect_sync()
        assert budget.spent.requests == 0
    assert model.requested == 0
    free = Budget(usd=1, prices=Prices.genai(unknown="free"))
    asked().text_turn(free.model(model)).collect_sync()
    assert free.spent.usd == 0
    dear = Budget(usd=1, prices=Prices.table({}, unknown="20"))
    asked().text_turn(dear.model(model)).collect_sync()
    assert dear.spent.usd == Decimal("0.022")


def test_an_answer_of_a_model_with_another_name_has_the_price_of_the_one_that_was_asked() -> None:
    budget = Budget(usd=1, prices=ROUND)
    llm = scripted(Reply(text="x", usage=(1000, 100), model="m-2026-01-01"), REPLY)
    asked().text_turn(budget.model(llm)).collect_sync()
    assert budget.spent.usd == TURN
    # The turn may name another model, whose price is looked up first.
    with pytest.raises(UnknownPriceError):
        asked().text_turn(budget.model(llm), extra={"model": "other"}).collect_sync()


def _priced_at(host: str, *names: str) -> Prices:
    """A dollar for a million tokens of these models at this host, and at no other."""

    def find(usage: Usage, name: ModelName) -> Decimal:
        if name.host != host or name.model not in names:
            raise LookupError(name)
        return Price(Decimal(1), Decimal(1)).of(usage)

    return Prices(find)


@pytest.mark.parametrize("api", APIS)
def test_a_session_costs_later_what_its_requests_have_cost_B3(api: Any) -> None:
    replies = [
        Reply(text="x", usage=(1000, 100), model="dated-name"),
        Reply(text="y", usage=(500, 50), model="dated-name"),
        Failure(500, "broke"),
    ]
    with serve(replies) as server, sync_model_at(api, server.url) as llm:
        prices = _priced_at(llm.host, llm.model)
        live = Budget(usd=1, prices=prices)
        session = asked()
        for _ in range(2):
            session.text_turn(live.model(llm)).collect_sync()
            session.push_user("go on")
        with pytest.raises(AdapterError):
            session.text_turn(live.model(llm)).collect_sync()
    spent = live.spent
    assert spent.usd == cost_of(session, prices) > 0
    counted = Budget(usd=1, prices=prices)
    counted.count_session(Session.load(session.dump()))
    assert counted.spent.usd == spent.usd
    assert counted.spent.estimated_usd == spent.estimated_usd != 0
    elsewhere = Budget(usd=1, prices=prices)
    elsewhere.count(Usage(1000, 0, 1000), api=api, model=llm.model, host=llm.host)
    assert elsewhere.spent.usd == Decimal("0.001")
    for budget in (live, counted):
        (request,) = budget.spent.unsettled
        budget.settle(request, Usage(1000, 0, 1000))
        assert budget.spent.usd == spent.usd + Decimal("0.001")
        assert budget.spent.estimated_usd == 0


def test_each_answer_of_a_session_with_several_models_has_its_own_price() -> None:
    # Bedrock answers without a name: it was asked for by one.
    session, live = asked(), Budget(usd=1, prices=Prices.table({}, unknown="0"))
    for api in ("openai_chat", "bedrock_converse"):
        with (
            serve([Reply(text="x", usage=(1000, 0))]) as server,
            sync_model_at(api, server.url) as llm,  # type: ignore[arg-type]
        ):
            session.text_turn(live.model(llm)).collect_sync()
            session.push_user("go on")
    first, second = [turn.origin.model for turn in session.turns() if turn.origin is not None]
    assert first is not None
    assert second is not None
    dear = {first: Price(Decimal(1), Decimal(1)), second: Price(Decimal(100), Decimal(100))}
    assert cost_of(session, Prices.table(dear)) == Decimal("0.101")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "genai_prices.data_snapshot", None)
    with pytest.raises(ImportError, match=r'prices need genai-prices; .* install ".\[cost\]"'):
        Prices.genai().of(Usage(1, 1, 2), ModelName(None, "gpt-4.1-mini"))


def test_what_is_no_limit_is_refused() -> None:
    for options, kind, words in [
        ({"usd": 0.5}, TypeError, "as '0.50'"),
        ({"usd": "much"}, ValueError, "not an amount"),
        ({"usd": "-1"}, ValueError, "not an amount"),
        ({"usd": "NaN"}, ValueError, "not an amount"),
        ({"tokens": 1.5}, TypeError, "whole number"),
        ({"requests": -1}, ValueError, "below 0"),
        ({"calls": {"search": 1}}, TypeError, "by selector"),
        ({"calls": {App.search: "x"}}, TypeError, "the limit of 'search'"),
        ({"prices": 7}, TypeError, "prices= takes Prices"),
        ({"output_estimate": True}, TypeError, "whole number"),
    ]:
        with pytest.raises(kind, match=words):
            Budget(**options)


# --- shared ----------------------------------------------------------------------------------


class Slow(ScriptedModel):
    """Waits, so that others ask meanwhile."""

    def __init__(self, replies: int) -> None:
        super().__init__([REPLY] * replies, model="m", check=False)
        self.under_way = self.most = 0

    async def respond(self, *arguments: Any) -> Any:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return super().respond_sync(*arguments)


@pytest.mark.slow
async def test_a_hundred_tasks_pass_one_budget_by_what_is_under_way_at_most_B5() -> None:
    model = Slow(200)
    budget = Budget(usd="0.1", prices=ROUND)  # 50 answers
    llm, refused = budget.model(model), 0

    async def ask(number: int) -> None:
        nonlocal refused
        await asyncio.sleep(0.0001 * (number % 10))
        for _ in range(2):
            try:
                await asked().text_turn(llm).collect()
            except BudgetExceeded:
                refused += 1

    await asyncio.gather(*[ask(number) for number in range(100)])
    spent = budget.spent
    assert spent.requests == model.requested == 200 - refused
    assert refused > 0
    assert spent.usd == model.requested * TURN
    assert spent.usd <= Decimal("0.1") + model.most * TURN


async def test_with_reservations_a_hundred_tasks_stay_within_the_budget_B5() -> None:
    class Counting(Slow):
        counted = 0

        async def count_tokens(self, *arguments: Any) -> int:
            self.counted += 1
            return 1000

    model = Counting(200)
    budget = Budget(usd="0.1", prices=ROUND, estimate=True, output_estimate=100)
    llm = budget.model(model)

    async def ask() -> int:
        try:
            await asked().text_turn(llm).collect()
        except BudgetExceeded:
            return 0
        return 1

    answered = sum(await asyncio.gather(*[ask() for _ in range(100)]))
    assert answered == 50
    assert budget.spent.usd == Decimal("0.1")
    assert budget.spent.reserved_usd == 0
    # Counting tokens is a request as well (B7).
    assert budget.spent.requests == model.counted + answered


def test_tokens_are_counted_without_an_event_loop_too_B5() -> None:
    class Counting(ScriptedModel):
        error: Exception | None = None

        def count_tokens_sync(self, *arguments: Any) -> int:
            if self.error is not None:
                raise self.error
            return 1000

    model = Counting([REPLY, REPLY], model="m")
    budget = Budget(tokens=1050, estimate=True, output_estimate=100)
    with pytest.raises(BudgetExceeded, match="this may take 1100"):
        asked().text_turn(budget.model(model)).collect_sync()
    model.error = NotSupportedError("no such call")
    asked().text_turn(budget.model(model)).collect_sync()
    assert budget.spent.requests == 2


async def test_what_cannot_count_tokens_is_estimated_by_its_size() -> None:
    class Unable(ScriptedModel):
        error: Exception = NotSupportedError("no such call")

        async def count_tokens(self, *arguments: Any) -> int:
            raise self.error

    for error, requests in [
        (NotSupportedError("no such call"), 1),
        (AdapterError("it failed", provider="x"), 2),
    ]:
        model = Unable([REPLY], model="m")
        model.error = error
        budget = Budget(tokens=10_000, estimate=True)
        await asked().text_turn(budget.model(model)).collect()
        assert budget.spent.requests == requests
    small = Budget(tokens=100, estimate=True)
    with pytest.raises(BudgetExceeded, match="this may take 4"):
        asked().text_turn(small.model(scripted(REPLY))).collect_sync()
    # The limit of the turn is what its answer may take.
    asked().text_turn(small.model(scripted(REPLY)), max_output_tokens=50).collect_sync()


def test_threads_lose_nothing_B5() -> None:
    budget = Budget(prices=ROUND)

    def ask() -> None:
        llm = budget.model(scripted(*[REPLY] * 20))
        for _ in range(20):
            asked().text_turn(llm).collect_sync()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.spent.requests == 160
    assert budget.spent.usd == 160 * TURN


# --- retries of SDKs -------------------------------------------------------------------------


def test_what_an_sdk_repeats_counts_at_its_worst_until_it_is_known() -> None:
    from openai import OpenAI

    from lutumpy.adapters.openai import OpenAIChat
    from lutumpy.testing import serve

    script = [Failure(500, "slow"), Failure(503, "slow"), REPLY, REPLY]
    with serve(script) as server:
        options: dict[str, Any] = {"base_url": server.openai_base_url, "api_key": "k"}
        with OpenAI(**options, max_retries=2) as client:
            client._calculate_retry_timeout = lambda *a, **k: 0.0  # type: ignore[method-assign]
            budget = Budget(tokens=100_000, prices=Prices.table({}, unknown="1"))
            llm = budget.model(OpenAIChat("m", client))
            session = asked()
            session.text_turn(llm, max_output_tokens=500).collect_sync()
            spent = budget.spent
            assert session.unsettled == ()  # the session doesn't see them
            assert spent.usage == Usage(1000, 100, 1100)
            # Two tries that may have been paid: the same input, and all of the output.
            assert [each.estimate for each in spent.unsettled] == [Usage(1000, 500, 1500)] * 2
            assert spent.estimated_tokens == 3000
            assert budget.left.tokens == 100_000 - 1100 - 3000
            # Somebody has looked, and one of them had cost nothing.
            budget.settle(spent.unsettled[0], Usage())
            assert budget.spent.estimated_tokens == 1500
            session.push_user("more")
            session.text_turn(llm).collect_sync()
            assert len(budget.spent.unsettled) == 1


async def test_repeated_streams_and_requests_that_fail_in_the_end_are_noticed() -> None:
    from openai import AsyncOpenAI

    from lutumpy.adapters.openai import OpenAIResponses
    from lutumpy.testing import serve

    script = [Failure(500, "slow"), REPLY, Failure(500, "a"), Failure(500, "b")]
    with serve([*script, Failure(500, "c"), Failure(500, "d")]) as server:
        async with AsyncOpenAI(
            base_url=server.openai_base_url, api_key="k", max_retries=1
        ) as client:
            client._calculate_retry_timeout = lambda *a, **k: 0.0  # type: ignore[method-assign]
            llm = OpenAIResponses("m", client)
            with collect_retries() as outer, collect_retries() as retries:
                async with asked().text_turn(llm).stream() as stream:
                    await stream.collect()
            assert (outer, retries) == ([1], [1])
            for streams in (False, True):
                budget = Budget(tokens=100_000)
                turn = asked().text_turn(budget.model(llm))
                with pytest.raises(AdapterError):
                    await (turn.stream().__aenter__() if streams else turn.collect())
                # The last try and the one before it.
                assert len(budget.spent.unsettled) == 2, streams


# --- calls -----------------------------------------------------------------------------------


def ask_for(*names: str) -> Reply:
    arguments = {"search": "query", "read": "name"}
    return Reply(calls=[Call(name, {arguments[name]: str(k)}) for k, name in enumerate(names)])


def test_the_hook_rejects_calls_whose_limit_is_used_up() -> None:
    budget = Budget(calls={App.search: 2})
    hooks = App.hooks()
    hooks.register(budget.hook())
    with open_round(ask_for("search", "read", "search", "search")) as round:
        plan = round.apply_hooks_sync(hooks)
        assert [call.metadata.name for call in plan.pending] == ["search", "read", "search"]
        (rejected,) = plan.rejected
        assert isinstance(rejected, RejectedToolCall)
        assert rejected.reason.startswith("The tool search has been called as often as it may be.")
        assert budget.spent.calls == {"search": 2}
        assert budget.left.calls == {"search": 0}
        plan.discard()
    assert budget.available(App) == ToolAvailability.only(App.read)
    everything = ToolAvailability[App].all()
    assert budget.available(App, everything) == ToolAvailability.only(App.read)
    assert Budget(calls={App.search: 1}).available(App, everything) is everything


async def test_the_executor_starts_no_call_whose_limit_is_used_up() -> None:
    budget = Budget(calls={App.search: 1})
    executor = ToolExecutor(around=budget.tool_call, max_concurrency=1)
    with open_round(ask_for("search", "search", "read")) as round:
        got = await executor.run(round.calls, Dispatcher(App))
        assert [result.outcome for result in got] == ["ok", "failed", "ok"]
        assert "as often as it may be" in str(got[1].content)
        round.discard()


@contextmanager
def open_round(reply: Reply) -> Iterator[Any]:
    outcome = asked().text_turn(scripted(reply), tools=App).collect_sync()
    assert isinstance(outcome, NeedsTools)
    yield outcome.round


# --- in loops --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["async", "sync"])
def test_a_loop_stops_by_its_budget_with_the_last_round_committed_B2(form: str) -> None:
    budget = Budget(requests=2)
    llm, session = scripted(*[ask_for("search")] * 5), asked()
    options: dict[str, Any] = {"tools": App, "budget": budget}
    if form == "sync":
        result = run_tools_sync(session, llm, **options)
    else:
        result = asyncio.run(run_tools(session, llm, **options))
    assert (result.stopped_by, result.rounds, llm.requested) == ("budget", 2, 2)
    assert len(session.transcript) == 5
    # Another loop on the same budget sends nothing at all.
    again = run_tools_sync(asked(), llm, **options)
    assert (again.stopped_by, again.rounds, again.text, llm.requested) == ("budget", 0, "", 2)


@pytest.mark.parametrize("form", ["async", "sync"])
def test_who_is_paid_already_is_paid_once(form: str) -> None:
    budget = Budget(usd=1, prices=ROUND, calls={App.search: 5})
    script = [replace(REPLY, calls=[Call("search", {"query": "x"})]), REPLY]
    llm = scripted(*script)
    paid = TextTools(budget.model(llm), parser=TagToolParser())
    executor = ToolExecutor(around=budget.tool_call)
    for model in (budget.model(budget.model(llm)), paid):
        llm.play(*script)
        options: dict[str, Any] = {"tools": App, "budget": budget, "executor": executor}
        if form == "sync":
            run_tools_sync(asked(), model, **options)
        else:
            asyncio.run(run_tools(asked(), model, **options))
    spent = budget.spent
    assert (spent.usd, spent.requests, spent.calls) == (4 * TURN, llm.requested, {"search": 2})
    # Two budgets each pay for all of it.
    other = Budget(requests=5)
    asked().text_turn(other.model(paid)).collect_sync()
    assert (other.spent.requests, budget.spent.requests) == (1, 5)


def test_a_budget_that_others_use_up_meanwhile_stops_the_loop() -> None:
    budget = Budget(requests=2)
    llm = scripted(ask_for("search"), ask_for("search"))

    def spend(event: Any) -> None:
        if type(event).__name__ == "RequestStarted" and event.round == 2:
            budget.count(Usage(5, 5, 10), api="openai_chat", model="m")

    result = run_tools_sync(asked(), llm, tools=App, budget=budget, on_progress=spend)
    assert (result.stopped_by, result.rounds) == ("budget", 1)
    assert budget.spent.usage.total_tokens >= 10


def test_a_loop_offers_and_runs_no_tool_whose_limit_is_used_up() -> None:
    budget = Budget(calls={App.search: 2})
    first = ask_for("search", "search", "search")
    llm = scripted(first, ask_for("search", "read"), Reply(text="done"))
    session = asked()
    result = run_tools_sync(session, llm, tools=App, budget=budget)
    assert result.stopped_by == "answer"
    names = [[tool["function"]["name"] for tool in request["tools"]] for request in llm.requests]
    assert names == [["search", "read"], ["read"], ["read"]]
    assert budget.spent.calls == {"search": 2}
    with pytest.raises(TypeError, match="budget= takes a Budget, not int"):
        run_tools_sync(session, llm, tools=App, budget=3)  # type: ignore[arg-type]


async def test_a_budget_for_a_conversation_in_a_store_counts_what_other_processes_spent() -> None:
    from lutumpy import Hold
    from lutumpy.durable import DurableLoop, MemoryStore, Waiting

    store = MemoryStore()
    await store.create("c7", asked())
    made: list[Budget] = []

    def budget_for(scope: str) -> Budget:
        made.append(Budget(usd="0.005", prices=ROUND, calls={App.search: 1}))
        return made[-1]

    def hold(call: Any) -> Any:
        from lutumpy import RunNormally

        return Hold("ask") if call.metadata.name == "read" else RunNormally()

    first = replace(ask_for("search"), usage=(1000, 100))
    second = replace(ask_for("read"), usage=(1000, 100))
    llm = scripted(first, second, REPLY, REPLY)

    def loop() -> DurableLoop[Any, Any]:
        return DurableLoop(store, llm, tools=App, hooks=hold, budget_for=budget_for)

    waiting = await loop().run("c7")
    assert isinstance(waiting, Waiting)
    assert made[0].spent.usd == 2 * TURN
    await loop().decide("c7", waiting.digest, {_held(waiting): {"decision": "run"}}, by="me")
    answered: Any = await loop().run("c7")
    # The next process has what is in the store, and the open answer: one more request is made.
    assert (answered.result.stopped_by, llm.requested) == ("answer", 3)
    assert made[-1].spent.usd == 3 * TURN
    assert made[-1].spent.calls == {"search": 1}


@pytest.mark.parametrize("hooks_wait", [False, True])
async def test_a_shared_budget_counts_an_answer_once_whose_round_goes_on_later(
    hooks_wait: bool,
) -> None:
    from lutumpy import Hold
    from lutumpy.durable import DurableLoop, MemoryStore, Waiting

    def hold(call: Any) -> Any:
        return Hold("ask")

    async def hold_later(call: Any) -> Any:
        return Hold("ask")

    store = MemoryStore()
    await store.create("c7", asked())
    budget = Budget(usd=1, prices=ROUND)
    llm = scripted(replace(ask_for("search"), usage=(1000, 100)), REPLY)
    hooks: Any = hold_later if hooks_wait else hold
    loop: DurableLoop[Any, Any] = DurableLoop(store, llm, tools=App, hooks=hooks, budget=budget)
    waiting = await loop.run("c7")
    assert isinstance(waiting, Waiting)
    assert (budget.spent.usd, budget.spent.requests) == (TURN, 1)
    await loop.decide("c7", waiting.digest, {_held(waiting): {"decision": "run"}}, by="me")
    await loop.run("c7")
    assert llm.requested == 2
    assert (budget.spent.usd, budget.spent.requests) == (2 * TURN, 2)


def _held(waiting: Any) -> str:
    (call_id,) = waiting.held
    return str(call_id)


def test_a_session_that_was_loaded_is_counted_with_what_failed() -> None:
    session = asked()
    llm = scripted(replace(ask_for("search"), usage=(1000, 100)), Failure(500, "x"), REPLY)
    outcome = session.text_turn(llm, tools=App).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.complete("x") for call in outcome.round.calls])
    with pytest.raises(AdapterError):
        session.text_turn(llm, tools=App).collect_sync()
    session.add_usage(Usage(1000, 0, 1000))
    loaded = Session.load(session.dump())
    budget = Budget(usd=1, prices=ROUND, calls={App.search: 5})
    budget.count_session(loaded, model="m")
    spent = budget.spent
    assert spent.usage == loaded.usage
    assert spent.usd == TURN + Decimal("0.001")
    assert spent.unsettled == loaded.unsettled
    assert spent.calls == {"search": 1}


@pytest.mark.parametrize("api", ["anthropic_messages", "gemini_generate_content"])
def test_a_session_whose_only_request_broke_off_has_a_price_B1(api: Any) -> None:
    reply = replace(REPLY, text="more than one event")
    events = render_stream(reply, api, number=1, model="m")
    session = asked()
    turn = session.text_turn(scripted([events[0], Failure(500, "x")], api=api))
    with pytest.raises(AdapterError), turn.stream_sync() as stream:
        list(stream)
    assert session.usage.total_tokens > 0
    budget = Budget(usd=1, prices=ROUND)
    budget.count_session(Session.load(session.dump()))
    assert budget.spent.usd == ROUND.of(session.usage, ModelName(api, "m"))
    assert cost_of(session, prices=ROUND) == budget.spent.usd
    assert budget.spent.unsettled == session.unsettled


def test_wrappers_and_text_models_are_looked_through() -> None:
    budget = Budget(usd=1, prices=ROUND)
    inner = budget.model(scripted(REPLY))
    asked().text_turn(TextTools(inner, parser=TagToolParser())).collect_sync()
    outer = budget.model(TextTools(scripted(REPLY), parser=TagToolParser()))
    asked().text_turn(outer).collect_sync()
    assert budget.spent.usd == 2 * TURN

    class NoClient(ScriptedModel):
        @property
        def host(self) -> str:
            raise AdapterError("no key", provider="x", sent=False)

    asked().text_turn(budget.model(NoClient([REPLY], model="m"))).collect_sync()
    assert budget.spent.requests == 3


def test_an_inner_budget_that_refuses_costs_the_outer_one_nothing() -> None:
    inner, outer = Budget(requests=0), Budget(tokens=100)
    with pytest.raises(BudgetExceeded):
        asked().text_turn(outer.model(inner.model(scripted(REPLY)))).collect_sync()
    assert outer.spent.unsettled == ()


def _options() -> Any:
    from lutumpy.models import TurnOptions

    return TurnOptions()
