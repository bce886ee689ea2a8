"""A model that answers from a script, without HTTP: for tests of a program's own loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.sdk import adapter_error
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import TurnOptions
from lutumpy.core.rules import Problem, anthropic, chat, responses
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError
from lutumpy.testing.script import Api, Failure, Reply, render, render_failure

__all__ = ["ScriptEntry", "ScriptedModel"]

ScriptAnswer: TypeAlias = "Reply | Failure | dict[str, Any] | bytes | str"
ScriptEntry: TypeAlias = "ScriptAnswer | Callable[[Api, Mapping[str, Any]], ScriptAnswer]"

_ADAPTERS: Mapping[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], list[Problem]]] = {
    "openai_chat": chat.check_request,
    "openai_responses": responses.check_request,
    "anthropic_messages": anthropic.check_request,
}


class ScriptedModel:
    """A model whose answers are written down beforehand.

    Every turn goes the way that it goes with a provider, but for the network: the request is built by the adapter, checked
    against the rules of its API, and the scripted answer is decoded by the adapter.

    Args:
        script: The answers in order. A `Reply` or `Failure`; a `dict`, `bytes` or `str`, taken as the API's own JSON; or a
            function that is given the API and the request's body and returns one of these.
        api: Which API it stands for: `openai_chat`, `openai_responses` or `anthropic_messages`.
        model: The model's name in requests and answers.

    Attributes:
        api: As given.
        model: As given.
        requests: The body of every request so far, refused ones too.
    """

    def __init__(self, script: Iterable[ScriptEntry], *, api: Api = "openai_chat", model: str = "scripted") -> None:
        if api not in _ADAPTERS:
            raise ValueError(f"api={api!r} is none of {', '.join(_ADAPTERS)}")
        self.api: Api = api
        self.model = model
        self.requests: list[dict[str, Any]] = []
        self._script: deque[ScriptEntry] = deque(script)

    @property
    def remaining(self) -> int:
        """How many answers are still to be given."""
        return len(self._script)

    def play(self, *entries: ScriptEntry) -> None:
        """Add answers to the end of the script."""
        self._script.extend(entries)

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The next answer; the transcript is not changed.

        Raises:
            AdapterError: the API would refuse the request, the script says `Failure`, or it has no answer left.
            InvalidToolConstraints: the API is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        return self.respond_sync(transcript, offering, options)

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop."""
        adapter = _ADAPTERS[self.api]
        given: dict[str, Any] = {
            name: value
            for name, value in (
                ("temperature", options.temperature),
                ("max_output_tokens", options.max_output_tokens),
                ("output", options.output),
            )
            if value is not None
        }
        fields = adapter.request(transcript, offering, model=self.model, extra=options.extra, **given)
        body: dict[str, Any] = {"model": self.model, **fields}
        self.requests.append(body)
        for problem in _CHECKS[self.api](body):
            if problem.certainty == "refused":
                raise self._refused(problem)
        turn: AssistantTurn = adapter.response(self._next(body))
        return turn

    def _next(self, body: Mapping[str, Any]) -> dict[str, Any] | bytes | str:
        if not self._script:
            raise AdapterError(
                f"{self.api}: the script has no answer left for request {len(self.requests)}", provider=self.api
            )
        entry = self._script.popleft()
        answer = entry(self.api, body) if callable(entry) else entry
        if isinstance(answer, Failure):
            raise self._failed(answer.status, answer.message, answer.headers, kind=answer.kind)
        if isinstance(answer, Reply):
            return render(answer, self.api, number=len(self.requests), model=self.model)
        return answer

    def _refused(self, problem: Problem) -> AdapterError:
        return self._failed(
            problem.status, problem.message, {}, kind=problem.kind, param=problem.param, code=problem.code
        )

    def _failed(self, status: int, message: str, headers: Mapping[str, str], **more: Any) -> AdapterError:
        body = render_failure(self.api, status, message, **more)
        cause = ScriptedStatusError(status, {name.lower(): value for name, value in headers.items()}, body)
        error = adapter_error(cause, self.api)
        error.__cause__ = cause
        return error

    def __repr__(self) -> str:
        return f"<ScriptedModel {self.api}: {len(self.requests)} requests, {self.remaining} answers left>"


class ScriptedStatusError(Exception):
    """The cause of an `AdapterError` from a script: what an SDK's status error says, under the same names."""

    def __init__(self, status_code: int, headers: Mapping[str, str], body: dict[str, Any]) -> None:
        self.status_code = status_code
        self.headers = headers
        self.body = body
        super().__init__(str(body["error"]["message"]))

    @property
    def response(self) -> ScriptedStatusError:
        """Itself: errors of the SDKs have their headers there."""
        return self
