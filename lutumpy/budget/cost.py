"""What a conversation has cost, in dollars."""

from __future__ import annotations

from decimal import Decimal

from lutumpy import Session, Transcript
from lutumpy.budget.account import Account
from lutumpy.budget.prices import Prices
from lutumpy.budget.sessions import count_session

__all__ = ["cost_of"]


def cost_of(
    source: Session | Transcript, prices: Prices | None = None, *, model: str | None = None
) -> Decimal:
    """What a conversation has cost, in dollars, as far as it is known.

    Args:
        source: A session, with what its failed requests are known to have cost; or a transcript,
            for its answers alone. Requests whose cost is unknown are not in it.
        prices: What tokens cost; those of `Prices.genai()` by default.
        model: The model that is meant where the conversation doesn't say it.

    Raises:
        UnknownPriceError: nobody knows what a model costs.
    """
    session = source if isinstance(source, Session) else Session(source.fork())
    account = Account(None, None, None, {}, Prices.genai() if prices is None else prices)
    count_session(account, session, model)
    return account.spent().usd or Decimal(0)
