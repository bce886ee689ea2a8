"""A model whose requests are paid from a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

from lutumpy import AdapterError, LutumpyError, Model, Usage
from lutumpy.budget.account import Account, Reservation, Unknown, tokens_of
from lutumpy.budget.prices import ModelName, names_of_turn
from lutumpy.errors import NotSupportedError
from lutumpy.models import (
    AssistantTurn,
    ModelRequest,
    ModelWrapper,
    RequestWatch,
    Unsettled,
    collect_retries,
    costs_nothing,
    estimate_of,
    is_settled,
)

__all__ = ["BudgetModel", "Estimates"]

# Wrappers hold the model that they wrap as `model`; at most so many are looked into.
_DEEPEST_WRAPPING = 10

# What is raised before anything is sent.
_NEVER_SENT = (LutumpyError, TypeError, AttributeError, NotImplementedError, ImportError)

# Priced before the first request, so that an unknown model is noticed before it costs something.
_ONE_TOKEN = Usage(1, 1, 2, cached_beside_tokens=0)


class Estimates(NamedTuple):
    """How much is set aside before a request.

    Attributes:
        ahead: Whether anything is.
        output_tokens: The output, where the turn has no limit of its own.
    """

    ahead: bool
    output_tokens: int


class BudgetModel(ModelWrapper):
    """A model whose requests are paid from a budget; `Budget.model` makes it."""

    def __init__(self, model: Model, account: Account, estimates: Estimates) -> None:
        super().__init__(model)
        self._account = account
        self._estimates = estimates
        # Names that have a price.
        self._priced: set[ModelName] = set()

    def is_paid_from(self, account: Account) -> bool:
        """Whether this is the account that pays."""
        return self._account is account

    async def begin(self, request: ModelRequest) -> RequestWatch:
        """Raises `BudgetExceeded`, or `UnknownPriceError`, before anything is sent."""
        name = self._check_price(request)
        if not self._estimates.ahead:
            return self._open(request, name, None)
        expected = self._guess(request)
        count = getattr(self.model, "count_tokens", None)
        if count is not None:
            # Counting is a request as well (rule B7).
            self._account.open()
            try:
                tokens = await count(request.transcript, request.offering, request.options)
                expected = _counts(tokens, expected.output_tokens)
            except (NotSupportedError, AdapterError) as error:
                self._take_back(error)
            except BaseException as error:
                self._take_back(error)
                raise
        return self._open(request, name, expected)

    def begin_sync(self, request: ModelRequest) -> RequestWatch:
        """The same without an event loop."""
        name = self._check_price(request)
        if not self._estimates.ahead:
            return self._open(request, name, None)
        expected = self._guess(request)
        count = getattr(self.model, "count_tokens_sync", None)
        if count is not None:
            self._account.open()
            try:
                expected = _counts(
                    count(request.transcript, request.offering, request.options),
                    expected.output_tokens,
                )
            except (NotSupportedError, AdapterError) as error:
                self._take_back(error)
            except BaseException as error:
                self._take_back(error)
                raise
        return self._open(request, name, expected)

    def _check_price(self, request: ModelRequest) -> ModelName:
        name = _find_name(self.model)
        asked_for = request.options.extra.get("model")
        if isinstance(asked_for, str):
            name = name._replace(model=asked_for)
        if name not in self._priced:
            self._account.price(_ONE_TOKEN, name)
            self._priced.add(name)
        return name

    def _guess(self, request: ModelRequest) -> Usage:
        limit = request.options.max_output_tokens
        output = self._estimates.output_tokens if limit is None else limit
        guessed = estimate_of(request.transcript, request.offering, None)
        return _counts(guessed.input_tokens, output)

    def _take_back(self, error: BaseException) -> None:
        """Count no request where tokens could not be counted, and nothing was sent."""
        if not _was_sent(error):
            self._account.count_requests(-1)

    def _open(self, request: ModelRequest, name: ModelName, expected: Usage | None) -> RequestWatch:
        usd, tokens = Decimal(0), 0
        if expected is not None:
            usd, tokens = self._account.price(expected, name), tokens_of(expected)
        reservation = self._account.open(usd, tokens)
        return _PaidRequest(self._account, request, name, reservation, self._guess)


class _PaidRequest(RequestWatch):
    """One request."""

    __slots__ = ("_account", "_guess", "_name", "_request", "_reservation", "_retries")

    def __init__(
        self,
        account: Account,
        request: ModelRequest,
        name: ModelName,
        reservation: Reservation,
        guess: Any,
    ) -> None:
        self._account = account
        self._request = request
        self._name = name
        self._reservation = reservation
        self._guess = guess
        self._retries = 0

    def sending(self) -> AbstractContextManager[Any]:
        """Collects what the SDK repeats meanwhile."""
        return self._collect()

    @contextmanager
    def _collect(self) -> Iterator[None]:
        with collect_retries() as collected:
            try:
                yield
            finally:
                self._retries = sum(collected)

    def answered(self, turn: AssistantTurn) -> None:
        self._close(turn, [])

    def failed(self, error: BaseException) -> None:
        # A try before the last one, which the SDK gave up, was sent.
        if not self._retries and not _was_sent(error):
            self._account.count_requests(-1)
        if not isinstance(error, AdapterError):
            # A cancellation too: the provider may have worked until then.
            self._close_unfinished(None, nothing=not _was_sent(error))
            return
        partial = error.partial if isinstance(error.partial, AssistantTurn) else None
        ids = error.response_id, error.request_id
        self._close_unfinished(partial, *ids, nothing=costs_nothing(error))

    def left(self, partial: AssistantTurn | None, request_id: str | None) -> None:
        self._close_unfinished(partial, None, request_id, nothing=False)

    def _close_unfinished(
        self,
        partial: AssistantTurn | None,
        response_id: str | None = None,
        request_id: str | None = None,
        *,
        nothing: bool,
    ) -> None:
        """Count a request that came to no answer (rule B1)."""
        if nothing or (partial is not None and is_settled(partial)):
            self._close(partial, [])
            return
        model = None
        if partial is not None:
            model = partial.model
            response_id = response_id or partial.response_id
            request_id = request_id or partial.request_id
        request = self._request
        estimate = estimate_of(request.transcript, request.offering, partial)
        unknown = Unsettled(
            self._name.api, model or self._name.model, response_id, request_id, estimate
        )
        self._close(partial, [unknown])

    def _close(self, turn: AssistantTurn | None, unknown: list[Unsettled]) -> None:
        """Count what is known by an answer, or by what there is of it, and what isn't known."""
        usage = Usage() if turn is None else turn.usage
        names = [self._name] if turn is None else names_of_turn(turn, self._name)
        # Each try that the SDK gave up may have been paid for, at worst in full.
        if self._retries:
            worst = self._guess(self._request)
            if usage.all_input_tokens:
                worst = _counts(usage.all_input_tokens, worst.output_tokens)
            repeated = Unsettled(self._name.api, self._name.model, estimate=worst)
            unknown = [*unknown, *[repeated] * self._retries]
        account = self._account
        usd, priced = Decimal(0), [Unknown(each, Decimal(0), tuple(names)) for each in unknown]
        try:
            usd = account.price(usage, *names)
            priced = [account.unknown(each, *names) for each in unknown]
        finally:
            # Prices may raise: the tokens are spent all the same, and nothing is set aside longer.
            account.close(self._reservation, usage, usd, priced)


def _was_sent(error: BaseException) -> bool:
    """Whether a request that ended in this error may have reached the provider."""
    if isinstance(error, AdapterError):
        return error.sent
    return not isinstance(error, _NEVER_SENT)


def _counts(input_tokens: int, output_tokens: int) -> Usage:
    total = input_tokens + output_tokens
    return Usage(input_tokens, output_tokens, total, cached_beside_tokens=0)


def _find_name(model: Any) -> ModelName:
    """The model behind wrappers: its API, name and host."""
    api: Any = None
    for _ in range(_DEEPEST_WRAPPING):
        api = getattr(model, "api", api)
        inner = getattr(model, "model", None)
        if inner is None or isinstance(inner, str):
            break
        model = inner
    name = getattr(model, "model", None)
    try:
        host = getattr(model, "host", None)
    except LutumpyError:  # no client can be made: the request says so
        host = None
    return ModelName(
        api if isinstance(api, str) else None,
        name if isinstance(name, str) else None,
        host if isinstance(host, str) else None,
    )
