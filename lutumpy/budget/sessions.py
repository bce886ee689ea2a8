"""What a session has cost before, counted to a budget."""

from __future__ import annotations

from decimal import Decimal

from lutumpy import Session, Usage
from lutumpy.budget.account import Account, tokens_of
from lutumpy.budget.prices import ModelName
from lutumpy.models import ToolResults

__all__ = ["count_session"]


def count_session(account: Account, session: Session, model: str | None) -> None:
    """Count what a session has cost, and which tools it has called.

    Args:
        account: Where it is counted.
        session: The session.
        model: The model that is meant where the session doesn't say it.

    Raises:
        UnknownPriceError: dollars are counted, and nobody knows what a model costs.
    """
    known, api = Usage(), None
    for turn in session.turns():
        known, api = known + turn.usage, turn.api
        model = turn.model or model
        account.count_requests(1)
        account.close(None, turn.usage, account.price(turn.usage, ModelName(api, model)))
    # What failed, and turns that a window has dropped. A session that was made of a transcript
    # hasn't counted the turns that it began with, so that there is less than nothing.
    rest = session.usage - known
    if tokens_of(rest) > 0:
        account.close(None, rest, account.price(rest, ModelName(api, model)))
    for request in session.unsettled:
        name = ModelName(request.api, request.model or model)
        estimate = account.price(request.estimate or Usage(), name)
        account.close(None, Usage(), Decimal(0), [(request, estimate)])
    for item in session.transcript:
        for result in item.results if isinstance(item, ToolResults) else ():
            if result.status != "rejected":
                account.count_call(result.name)
