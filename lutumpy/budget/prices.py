"""What tokens cost, in dollars: from a list that is kept by others, or a table of one's own."""

# Amounts are `Decimal` (rule B3). The list is asked for its data once, when the first price is
# needed: what a budget has counted stays comparable, also where a thread updates the list.

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from lutumpy import LutumpyError, Usage
from lutumpy.apis import api_row
from lutumpy.errors import UnknownPriceError
from lutumpy.models import AssistantTurn
from lutumpy.plain.values import dataclass

__all__ = ["ModelName", "Price", "Prices", "as_dollars", "names_of_turn"]

_MILLION = Decimal(1_000_000)


class ModelName(NamedTuple):
    """Which model, and where.

    Attributes:
        api: The API that it is asked over, as `openai_chat`; `None` where that isn't known.
        model: Its name, as it was asked for or answered; `None` where that isn't known.
        host: The authority of the address that requests go to; `None` where that isn't known.
    """

    api: str | None
    model: str | None
    host: str | None = None


def names_of_turn(turn: AssistantTurn, default: ModelName) -> list[ModelName]:
    """The names that an answer may have a price under, best first: the one that was answered, the
    one that was asked for, both where they were asked, and `default`.

    Args:
        turn: The answer. Bedrock's have no name of their own.
        default: What is meant where the answer doesn't say it.
    """
    origin = turn.origin
    asked = default if origin is None else ModelName(origin.api, origin.model, origin.host)
    answered = asked._replace(model=turn.model)
    named = [name for name in dict.fromkeys((answered, asked, default)) if name.model]
    return named or [default]


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost, in dollars.

    Attributes:
        input: Input that was not cached.
        output: Output, reasoning included.
        cached: Input that was read from the cache; as `input`, if it is `None`.
        cache_write: Input that was written to it; as `input`, if it is `None`.
    """

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    cache_write: Decimal | None = None

    def of(self, usage: Usage) -> Decimal:
        """What this usage costs."""
        cached, written = usage.cached_input_tokens, usage.cache_creation_tokens
        fresh = max(0, usage.all_input_tokens - cached - written)
        sums = (
            fresh * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + written * (self.input if self.cache_write is None else self.cache_write)
            + usage.output_tokens * self.output
        )
        return sums / _MILLION


class Prices:
    """Says what a usage costs. `Prices.genai()` and `Prices.table(...)` make one.

    Args:
        find: Gives what a usage of a model costs; `LookupError` for a model that it doesn't know.
        unknown: What a model costs that nobody knows: `refuse` raises, `free` counts nothing, and
            an amount is what a million of its tokens cost.
    """

    def __init__(
        self,
        find: Callable[[Usage, ModelName], Decimal],
        *,
        unknown: Literal["refuse", "free"] | Decimal | str = "refuse",
    ) -> None:
        self._find = find
        self._unknown: Decimal | None = None
        if unknown == "free":
            self._unknown = Decimal(0)
        elif unknown != "refuse":
            self._unknown = as_dollars("unknown", unknown)

    @staticmethod
    def genai(*, unknown: Literal["refuse", "free"] | Decimal | str = "refuse") -> Prices:
        """The prices of `genai-prices` (extra `cost`), imported when the first price is asked for.

        Fine-tuned and local models, and dated names that it hasn't seen, are unknown to it.
        """
        return Prices(_GenaiPrices().find, unknown=unknown)

    @staticmethod
    def table(
        prices: Mapping[str, Price],
        *,
        unknown: Literal["refuse", "free"] | Decimal | str = "refuse",
    ) -> Prices:
        """A table of your own, by the names of models as they are asked for or answered."""
        known = dict(prices)

        def find(usage: Usage, name: ModelName) -> Decimal:
            return known[name.model or ""].of(usage)

        return Prices(find, unknown=unknown)

    def of(self, usage: Usage, *names: ModelName) -> Decimal:
        """What a usage costs, in dollars.

        Args:
            usage: The tokens.
            names: The model; several are tried in order, as the name that was answered and the one
                that was asked for.

        Raises:
            UnknownPriceError: none of them is known, and such models are refused.
            ImportError: the prices are those of a package that isn't installed.
        """
        for name in names:
            try:
                return self._find(usage, name)
            except LookupError:
                continue
        if self._unknown is None:
            known = dict.fromkeys([name.model for name in names if name.model])
            shown = " or ".join(known) or "(its name isn't known)"
            raise UnknownPriceError(
                f"nobody knows what the model {shown} costs; say what unknown models cost, as "
                'Prices.genai(unknown="free"), or give its price by Prices.table; nothing was sent'
            )
        return self._unknown * (usage.all_input_tokens + usage.output_tokens) / _MILLION


class _GenaiPrices:
    """One snapshot of the data of `genai-prices`."""

    def __init__(self) -> None:
        self._snapshot: Any = None

    def find(self, usage: Usage, name: ModelName) -> Decimal:
        if not name.model:
            raise LookupError("no name")
        if self._snapshot is None:
            self._snapshot = _load_snapshot()
        from genai_prices import Usage as Counts

        # It counts cached input as a part of the input, whatever the provider does, and refuses
        # counts that don't fit together: some hosts say that more was cached than was sent.
        cached = max(0, usage.cached_input_tokens)
        written = max(0, usage.cache_creation_tokens)
        counts = Counts(
            input_tokens=max(usage.all_input_tokens, cached + written),
            output_tokens=max(0, usage.output_tokens),
            cache_read_tokens=cached or None,
            cache_write_tokens=written or None,
        )
        for provider, url in _list_providers(name):
            try:
                found = self._snapshot.calc(counts, name.model, provider, url, None)
            except LookupError:
                continue
            price: Decimal = found.total_price
            return price
        raise LookupError(name.model)


def _load_snapshot() -> Any:
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError as error:
        raise ImportError(
            "prices need genai-prices; install it with: "
            'python -m pip install ".[cost]" (in a clone)'
        ) from error
    return get_snapshot()


def _list_providers(name: ModelName) -> list[tuple[str | None, str | None]]:
    """Where to look for a model, as the list names providers: by the address, then by the API."""
    found: list[tuple[str | None, str | None]] = []
    if name.host is not None:
        found.append((None, f"https://{name.host}/"))
    if name.api is not None:
        try:
            row = api_row(name.api)
        except LutumpyError:
            return found or [(None, None)]
        found.append((row.family, None))
        if row.provider is not None:
            found.append((row.provider.partition(".")[0], None))
    return found or [(None, None)]


def as_dollars(name: str, value: Any) -> Decimal:
    """An amount as a `Decimal`; a float is refused, since most amounts can't be one."""
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise TypeError(f"{name} takes dollars as text or Decimal, as '0.50', not {value!r:.100}")
    try:
        amount = Decimal(value)
    except ArithmeticError as error:
        raise ValueError(f"{name}={value!r:.100} is not an amount of dollars") from error
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{name}={value!r:.100} is not an amount of dollars")
    return amount
