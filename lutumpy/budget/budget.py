"""`Budget`: how much may be spent, by any number of sessions and tasks together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from typing import Any, TypeVar, cast

from lutumpy import (
    Model,
    Reject,
    RunNormally,
    Selector,
    Session,
    ToolAvailability,
    ToolDecision,
    ToolError,
    ToolMetadata,
    Toolset,
    Usage,
    hook_impl,
)
from lutumpy.budget.account import Account
from lutumpy.budget.model import BudgetModel, Estimates
from lutumpy.budget.prices import ModelName, Prices, as_dollars
from lutumpy.budget.sessions import count_session, count_turn
from lutumpy.budget.spent import Left, Spent
from lutumpy.hooks import BaseToolCall
from lutumpy.models import AssistantTurn, StreamingModel, Unsettled
from lutumpy.tools import ByTool

__all__ = ["Budget"]

TS = TypeVar("TS", bound=Toolset[Any])


class Budget:
    """What may be spent. One of it serves any number of sessions, models, tasks and threads.

    What is paid counts, as far as it is known: every answer, what failed and abandoned requests
    had cost by then, and for the rest an estimate, also for what an SDK has repeated by itself.
    A limit is looked at before a request, and never in the middle of one, so requests that are
    under way may pass it.

    Args:
        usd: Dollars, as text or `Decimal`: `"0.50"`.
        tokens: Tokens, cached input included.
        requests: Requests, those that fail and those that only count tokens included.
        calls: How often single tools may be called, by selector.
        prices: What tokens cost; those of `Prices.genai()` if dollars are limited. With prices and
            no limit, dollars are counted all the same.
        estimate: Whether each request sets aside what it may cost, so that many at once don't pass
            a limit together. Tokens are counted by the provider where it does that
            (`count_tokens`), which is one more request; and estimated by their size where not.
        output_estimate: The tokens of an answer that are set aside where a turn has no limit.

    Raises:
        TypeError: a limit is of another type. Floats aren't amounts: write them as text.
        ValueError: a limit is out of range.
    """

    def __init__(
        self,
        *,
        usd: Decimal | str | int | None = None,
        tokens: int | None = None,
        requests: int | None = None,
        calls: ByTool[Selector[Any, Any, Any], int] | None = None,
        prices: Prices | None = None,
        estimate: bool = False,
        output_estimate: int = 4096,
    ) -> None:
        for name, value in (("tokens", tokens), ("requests", requests)):
            if value is not None:
                _check_count(name, value)
        limits = _read_call_limits(calls)
        amount = None if usd is None else as_dollars("usd", usd)
        if prices is None and amount is not None:
            prices = Prices.genai()
        if prices is not None and not isinstance(prices, Prices):
            raise TypeError(f"prices= takes Prices, not {type(prices).__name__}")
        self._account = Account(amount, tokens, requests, limits, prices)
        self._estimates = Estimates(estimate, _check_count("output_estimate", output_estimate))

    def model(self, llm: Model) -> StreamingModel:
        """The model, whose requests are paid from this.

        It raises `BudgetExceeded` before a request where a limit is used up, and
        `UnknownPriceError` where nobody knows what the model costs. A model that is paid from this
        already stays as it is.
        """
        if any(each.is_paid_from(self._account) for each in BudgetModel.around(llm)):
            return cast("StreamingModel", llm)
        return BudgetModel(llm, self._account, self._estimates)

    def hook(self) -> _CallLimits:
        """What rejects calls of tools whose limit is used up, for `hooks.register`.

        Each call that it lets pass counts, also where a later hook stops it.
        """
        return _CallLimits(self._account)

    def tool_call(self, call: BaseToolCall, attempt: int) -> AbstractAsyncContextManager[None]:
        """The same at the moment when a call begins, for `ToolExecutor(around=)`.

        A call whose limit is used up isn't started, and has failed. A retry isn't counted again.
        """
        return self._enter_call(call, attempt)

    @asynccontextmanager
    async def _enter_call(self, call: BaseToolCall, attempt: int) -> AsyncIterator[None]:
        if attempt == 1 and not self._account.count_call(call.metadata.name):
            raise ToolError(_refusal_of(call.metadata.name))
        yield

    def available(
        self, toolset: type[TS], available: ToolAvailability[TS] | None = None
    ) -> ToolAvailability[TS]:
        """What the model may be offered: without the tools whose limit is used up.

        Args:
            toolset: The toolset.
            available: What it would be offered otherwise; the toolset's default by default.
        """
        if available is None:
            available = ToolAvailability.default()
        used_up = self._account.used_up()
        return available.without(toolset, used_up) if used_up else available

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        return self._account.spent()

    @property
    def left(self) -> Left:
        """What is left of each limit; what is estimated or set aside isn't."""
        return self._account.left()

    @property
    def used_up(self) -> bool:
        """Whether the next request would be refused."""
        return self._account.refusal() is not None

    def check(self) -> None:
        """Raise `BudgetExceeded` if the next request would be refused."""
        refused = self._account.refusal()
        if refused is not None:
            raise refused

    def count(
        self,
        usage: Usage,
        *,
        api: str | None = None,
        model: str | None = None,
        host: str | None = None,
    ) -> None:
        """Count what was spent elsewhere: a request that went through no model of this budget.

        Args:
            usage: Its tokens.
            api: The API that it went over, as `openai_chat`.
            model: The model's name.
            host: The authority of the address that it went to, as `api.openai.com`.

        Raises:
            UnknownPriceError: dollars are counted, and nobody knows what the model costs.
        """
        price = self._account.price(usage, ModelName(api, model, host))
        self._account.count_requests(1)
        self._account.close(None, usage, price)

    def count_turn(self, turn: AssistantTurn, *, model: str | None = None) -> None:
        """Count what an answer has cost that came through no model of this budget.

        Args:
            turn: The answer.
            model: The model that is meant where the answer doesn't say it.

        Raises:
            UnknownPriceError: as `count`.
        """
        count_turn(self._account, turn, model)

    def count_session(self, session: Session, *, model: str | None = None) -> None:
        """Count what a session has cost before, and which tools it has called: one that was loaded,
        or goes on in another process.

        Args:
            session: The session.
            model: The model that is meant where the session doesn't say it.

        Raises:
            UnknownPriceError: as `count`.
        """
        count_session(self._account, session, model)

    def settle(self, request: Unsettled, usage: Usage) -> None:
        """Count what a request of `spent.unsettled` has cost, in place of its estimate.

        Args:
            request: The request.
            usage: Its cost, without what is counted already.

        Raises:
            ValueError: it is not on the list; nothing was counted.
        """
        self._account.settle(request, usage)

    def __repr__(self) -> str:
        spent = self.spent
        usd = "" if spent.usd is None else f"{spent.usd.normalize():f} dollars, "
        return f"<Budget {usd}{spent.usage.total_tokens} tokens, {spent.requests} requests spent>"


class _CallLimits:
    """Rejects calls of tools whose limit is used up."""

    def __init__(self, account: Account) -> None:
        self._account = account

    @hook_impl
    def any_tool_hook(self, metadata: ToolMetadata) -> ToolDecision[Any, Any]:
        if self._account.count_call(metadata.name):
            return RunNormally()
        return Reject(_refusal_of(metadata.name))


def _refusal_of(tool: str) -> str:
    return f"The tool {tool} has been called as often as it may be. Go on without it."


def _read_call_limits(calls: ByTool[Selector[Any, Any, Any], int] | None) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for selector, limit in calls.items() if calls else ():
        if not isinstance(selector, Selector):
            raise TypeError(f"calls= is by selector, as AppTools.search, not {selector!r:.100}")
        found[selector.name] = _check_count(f"the limit of {selector.name!r}", limit)
    return found


def _check_count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} takes a whole number, not {value!r:.100}")
    if value < 0:
        raise ValueError(f"{name}={value} is below 0")
    return value
