"""Who said a turn: the API, the host and the model, and what came before its signed reasoning
(rule OR1).
"""

from __future__ import annotations

from lutumpy.plain.values import dataclass

__all__ = ["TurnOrigin"]


@dataclass(frozen=True, slots=True)
class TurnOrigin:
    """Where a turn came from.

    Attributes:
        api: The API, by its name in `lutumpy.apis`.
        host: The authority of the address that the request went to, as `api.openai.com`; `None`
            where it isn't known.
        model: The model that was asked for; where that isn't known, the one that answered.
        prefix: A digest of all that the provider binds the turn's signed reasoning to: what the
            request sent before it, without reasoning and without marks of the prompt cache. `None`
            for a turn without signed reasoning, and where the request isn't known.
    """

    api: str
    host: str | None = None
    model: str | None = None
    prefix: str | None = None
