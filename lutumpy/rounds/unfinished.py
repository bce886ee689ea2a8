"""The cost of a request that didn't come to an answer (rule U1)."""

#   the request                                what is done
#   -----------------------------------------  --------------------------------------------------
#   was never sent                             nothing: it cost nothing
#   failed, and the error says it was free     nothing (`costs.costs_nothing`)
#   failed or was left, after the provider's   its usage is counted
#   last word on the usage
#   failed or was left before that             the usage so far is counted, and it is listed as
#                                              `Unsettled`, with an estimate of the rest

from __future__ import annotations

from typing import Any, Protocol

from lutumpy.core.items import AssistantTurn, Usage
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.costs import Unsettled, costs_nothing, estimate_of, is_settled
from lutumpy.errors import AdapterError, LutumpyError

__all__ = ["HasCosts", "UnfinishedRequest"]

# What is raised before anything is sent: this library's own errors, and what Python raises for a
# program that is wrong (a sync client in an async turn, a model that lacks a method, an SDK that
# isn't installed).
_NEVER_SENT = (LutumpyError, TypeError, AttributeError, NotImplementedError, ImportError)

# Wrappers hold the model that they wrap as `model`. At most so many are unwrapped, in case one of
# them holds itself.
_DEEPEST_WRAPPING = 10


class HasCosts(Protocol):
    """A session."""

    @property
    def transcript(self) -> Transcript: ...

    def add_usage(self, usage: Usage) -> None: ...

    def add_unsettled(self, request: Unsettled, usage: Usage = ...) -> None: ...


class UnfinishedRequest:
    """Counts what a request cost, if it comes to no answer.

    Args:
        session: The session that made it.
        llm: The model that was asked.
        offering: The tools that went with it.
    """

    __slots__ = ("_llm", "_offering", "_session")

    def __init__(self, session: HasCosts, llm: Any, offering: ToolOffering | None) -> None:
        self._session = session
        self._llm = llm
        self._offering = offering

    def count_failed(self, error: BaseException) -> None:
        """Count a request that ended in `error`, which also is a cancellation or an interrupt."""
        if isinstance(error, AdapterError):
            if not costs_nothing(error):
                partial = error.partial if isinstance(error.partial, AssistantTurn) else None
                self._count(partial, error.provider, error.response_id, error.request_id)
        elif not isinstance(error, _NEVER_SENT):
            self._count(None, None, None, None)

    def count_left(self, partial: AssistantTurn | None, request_id: str | None) -> None:
        """Count a request whose answer was left when `partial` had arrived."""
        self._count(partial, None, None, request_id)

    def _count(
        self,
        partial: AssistantTurn | None,
        api: str | None,
        response_id: str | None,
        request_id: str | None,
    ) -> None:
        session = self._session
        known = Usage()
        if partial is not None:
            known = partial.usage
            if is_settled(partial):
                session.add_usage(known)
                return
            response_id = response_id or partial.response_id
            request_id = request_id or partial.request_id
        model_api, model = _find_api_and_model(self._llm)
        if partial is not None:
            model = partial.model or model
        estimate = estimate_of(session.transcript, self._offering, partial)
        request = Unsettled(api or model_api, model, response_id, request_id, estimate)
        session.add_unsettled(request, known)


def _find_api_and_model(llm: Any) -> tuple[str | None, str | None]:
    """The API and the name of a model; for a wrapper, those of the model that it wraps."""
    api: str | None = None
    for _ in range(_DEEPEST_WRAPPING):
        found, model = getattr(llm, "api", None), getattr(llm, "model", None)
        api = found if isinstance(found, str) else api
        if model is None or isinstance(model, str):
            return api, model
        llm = model
    return api, None
