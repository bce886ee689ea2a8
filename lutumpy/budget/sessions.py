"""What a session has cost before, counted to a budget."""

from __future__ import annotations

from decimal import Decimal

from lutumpy import Session, Usage
from lutumpy.budget.account import Account, tokens_of
from lutumpy.budget.prices import ModelName, names_of_turn
from lutumpy.models import AssistantTurn, ToolResults

__all__ = ["count_session", "count_turn"]


def count_turn(account: Account, turn: AssistantTurn, model: str | None) -> list[ModelName]:
    """Count what an answer has cost; gives the names of its model.

    Args:
        account: Where it is counted.
        turn: The answer.
        model: The model that is meant where the answer doesn't say it.

    Raises:
        UnknownPriceError: dollars are counted, and nobody knows what the model costs.
    """
    names = names_of_turn(turn, ModelName(turn.api, model))
    price = account.price(turn.usage, *names)
    account.count_requests(1)
    account.close(None, turn.usage, price)
    return names


def count_session(account: Account, session: Session, model: str | None) -> None:
    """Count what a session has cost, and which tools it has called.

    Args:
        account: Where it is counted.
        session: The session.
        model: The model that is meant where the session doesn't say it.

    Raises:
        UnknownPriceError: dollars are counted, and nobody knows what a model costs.
    """
    # Without an answer, the model is the one that was asked in vain.
    failed = [ModelName(request.api, request.model) for request in session.unsettled]
    known, names = Usage(), [ModelName(None, model), *failed]
    asked: dict[tuple[str | None, str | None], list[ModelName]] = {}
    for turn in session.turns():
        known += turn.usage
        names = count_turn(account, turn, model)
        asked.update(dict.fromkeys([(name.api, name.model) for name in names], names))
    # What failed, and turns that a window has dropped. A session that was made of a transcript
    # hasn't counted the turns that it began with, so that there is less than nothing.
    rest = session.usage - known
    if tokens_of(rest) > 0:
        account.close(None, rest, account.price(rest, *names))
    account.count_requests(len(session.unsettled))
    for request in session.unsettled:
        # It doesn't say where it was sent: to the host that has answered by this name, if any has.
        name = ModelName(request.api, request.model or model)
        unknown = account.unknown(request, *asked.get((name.api, name.model), [name]))
        account.close(None, Usage(), Decimal(0), [unknown])
    for item in session.transcript:
        for result in item.results if isinstance(item, ToolResults) else ():
            if result.status != "rejected":
                account.count_call(result.name)
