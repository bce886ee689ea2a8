"""What a server asks in the middle of a call: answered by a handler in this process, or held for a
person (rules LR22 to LR30).
"""

# What is hard here
# -----------------
# A question isn't a result, and who answers it may take long, or be wrong:
#
#   protocol    how a server asks                        how it is answered
#   ----------  ---------------------------------------  ----------------------------------------
#   2026-07-28  it ends the call with its questions and  the call is sent again with the answers
#               a state of its own (`input_required`)    and the state as it came: a leg
#   older       it sends a request while the call runs   the SDK passes the answer back
#
# On each leg the server's handler runs again from its beginning, and has run until it asked. So
# from the first question on nobody may say that the tool was not run.
#
# Where questions are held, a call ends here by `Asked`. A store keeps what was asked, and the state
# as it came; the next leg may be sent days later, by another process. On the older protocol nothing
# outlives the connection, and without a store nobody waits: then the answer is that the person has
# declined.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
from mcp.client.context import ClientRequestContext
from mcp.types import (
    INTERNAL_ERROR,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
)

from lutumpy import ToolError
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.tools import Asked, find_misfit

if TYPE_CHECKING:
    from mcp import Client

    from lutumpy import CallTicket, ToolMetadata

__all__ = ["AskHandler", "McpQuestion", "Questions", "dump_answers", "is_old_question"]

_log = logging.getLogger("lutumpy.mcp")

_MOST_LEGS = 10  # of one call; the SDKs of other languages stop there, too
_MOST_TRIES = 3  # of a handler, for one question
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 0.25  # seconds, before a leg that a server wants without asking


@dataclass(frozen=True, slots=True)
class McpQuestion:
    """What a server wants to know from a person. All of it is a stranger's text.

    Attributes:
        server: The name of the server's toolset.
        message: What is asked.
        form: The JSON Schema of what is to be filled in; `None` where an address is shown.
        url: An address for the person to open, which nothing here opens; `None` for a form.
        tool: The tool that was called, by its name at the server; `None` where an older server
            asks, which doesn't say for which call.
        call: The call; `None` likewise.
        key: The server's name for the question, as it is unique in one call.
        problem: What was wrong with the answer before, to be shown with the question; `None` the
            first time.
    """

    server: str
    message: str
    form: Mapping[str, Any] | None = None
    url: str | None = None
    tool: str | None = None
    call: ToolMetadata | None = None
    key: str = ""
    problem: str | None = None


AskHandler: TypeAlias = Callable[[McpQuestion], Any]
"""Called with a question; sync or async. It gives `{"action": "accept", "content": {...}}` with
what was filled in (nothing for an address), or `{"action": "decline"}` or `{"action": "cancel"}`.
An answer that doesn't fit the form isn't sent: the handler is called again, with `problem`.
"""


class Questions:
    """Answers what one server asks.

    Args:
        server: The name of the server's toolset.
        ask: Whom to ask; `"hold"` for a person, where a store keeps the call; `None` for callbacks
            of the SDK's client alone.
        address: The server's address, where it has one: a call that was held goes on there alone.
    """

    def __init__(
        self, server: str, ask: AskHandler | Literal["hold"] | None, address: str | None
    ) -> None:
        self._server = server
        self._address = address
        self.holds: bool = ask == "hold"
        self._handler: AskHandler | None = None if isinstance(ask, str) else ask

    @property
    def callback(self) -> Callable[[Any, Any], Awaitable[Any]] | None:
        """The SDK's `elicitation_callback`, by which a client declares that it can be asked; `None`
        where nobody is.
        """
        if self.holds:
            return _decline
        return None if self._handler is None else self._answer_older

    def resume(self, ticket: CallTicket | None) -> dict[str, Any] | None:
        """What a further leg of a call is sent with: the answers, and the state as it came (LR25).

        Args:
            ticket: The ticket of the call; `None` where nobody holds questions.

        Raises:
            ToolError: The question was another server's.
        """
        resume: Any = None if ticket is None else ticket.resume
        if resume is None:
            return None
        if resume["address"] != self._address:
            raise ToolError(
                f"The question was asked by a server at another address than {self._server} has "
                "now, so the answer was not sent."
            )
        # Half a character would end the connection.
        answers = json_values.clean({**resume["answered"], **resume["answers"]})
        return {"input_responses": answers or None, "request_state": resume["state"]}

    async def answer(
        self,
        result: InputRequiredResult,
        send: Callable[[Callable[[Client], Any]], Awaitable[Any]],
        tool: str,
        call: ToolMetadata | None,
        leg: int,
        *,
        holds: bool,
    ) -> dict[str, Any] | None:
        """The answers to what a server wants before it goes on; none where it only wants the call
        again, after a moment.

        Args:
            result: What it wants.
            send: Runs a function with the SDK's client.
            tool: The name of the tool there.
            call: The call.
            leg: How many legs the call has had in this process.
            holds: Whether a store waits for a person's answer.

        Returns:
            The answers by the server's names for its questions; `None` where it can't be answered.

        Raises:
            Asked: A person has to answer, or the call has to be sent again later.
        """
        if leg > _MOST_LEGS:
            if holds and not result.input_requests:
                raise self._hold(result, {}, {})
            return None
        requests = result.input_requests or {}
        if not requests:
            await anyio.sleep(min(_FIRST_WAIT * 2 ** (leg - 1), _LONGEST_WAIT))
        collected = await self.collect(requests, send, tool, call, holds=holds)
        if collected is None:
            return None
        answers, held = collected
        if held:
            raise self._hold(result, held, answers)
        return answers

    async def collect(
        self,
        requests: Mapping[str, Any],
        send: Callable[[Callable[[Client], Any]], Awaitable[Any]],
        tool: str | None = None,
        call: ToolMetadata | None = None,
        *,
        holds: bool,
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What is answered in this process, and what a person is waited for with, by key; `None`
        where something can't be answered. Arguments as for `answer`.
        """
        answers: dict[str, Any] = {}
        held: dict[str, Any] = {}
        for key, request in requests.items():
            if holds and isinstance(request, ElicitRequest):
                held[key] = _describe(request.params)
                continue
            if self._handler is not None and isinstance(request, ElicitRequest):
                question = self._read(request.params, key)
                answers[key] = await self._ask(replace(question, tool=tool, call=call))
                continue
            answer = await send(partial(_ask_client, request, key))
            if isinstance(answer, ErrorData):
                return None
            answers[key] = answer
        return answers, held

    def _hold(
        self, result: InputRequiredResult, held: dict[str, Any], answers: dict[str, Any]
    ) -> Asked:
        """What ends a leg whose questions a person has to answer."""
        answered = dump_answers(answers)
        resume = {"state": result.request_state, "address": self._address, "answered": answered}
        return Asked(self._server, held, resume)

    async def _answer_older(self, context: Any, params: Any) -> ElicitResult | ErrorData:
        """What a server of 2025-11-25 asks while a call runs (rule LR30)."""
        try:
            return await self._ask(self._read(params, ""))
        except Exception:
            # The SDK would end the connection, and with it every other call.
            _log.exception("a question of %s wasn't answered", self._server)
            return ErrorData(code=INTERNAL_ERROR, message="the question could not be answered")

    def _read(self, params: Any, key: str) -> McpQuestion:
        if isinstance(params, ElicitRequestURLParams):
            return McpQuestion(self._server, params.message, url=params.url, key=key)
        return McpQuestion(self._server, params.message, form=params.requested_schema, key=key)

    async def _ask(self, question: McpQuestion) -> ElicitResult:
        """The handler's answer; `cancel` after three that don't fit."""
        assert self._handler is not None
        for _ in range(_MOST_TRIES):
            answer = self._handler(question)
            if hasattr(answer, "__await__"):
                answer = await answer
            answer = _with_whole_characters(answer)
            problem = find_misfit(question.form, answer)
            if problem is None:
                content = answer.get("content") if answer["action"] == "accept" else None
                return ElicitResult(action=answer["action"], content=json_values.clean(content))
            question = replace(question, problem=problem)
        _log.warning("%s was given no fitting answer: %s", self._server, question.problem)
        return ElicitResult(action="cancel")


def _with_whole_characters(answer: Any) -> Any:
    """The answer with U+FFFD in the place of half a character, which would end the connection."""
    content = answer.get("content") if isinstance(answer, Mapping) else None
    if not isinstance(content, Mapping):
        return answer
    cleaned = {key: _with_whole_texts(value) for key, value in content.items()}
    return {**answer, "content": cleaned}


def _with_whole_texts(value: Any) -> Any:
    """The same of a field, which holds a text or a list of texts, or something else."""
    if isinstance(value, str):
        return json_values.clean_text(value)
    if isinstance(value, list):
        return [json_values.clean_text(each) if isinstance(each, str) else each for each in value]
    return value


def dump_answers(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Answers as they are sent, as JSON values."""
    return {
        key: answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, answer in answers.items()
    }


async def _decline(context: Any, params: Any) -> ElicitResult:
    """The answer where nobody can be waited for (rule LR30)."""
    return ElicitResult(action="decline")


def _describe(params: Any) -> dict[str, Any]:
    """A question as JSON values, for a store."""
    if isinstance(params, ElicitRequestURLParams):
        return {"message": params.message, "url": params.url}
    return {"message": params.message, "form": params.requested_schema}


def is_old_question(data: Any) -> bool:
    """Whether a server refuses the state of its own question, by the data of its error: the
    question is too old, or the server has been started anew (rule LR28).
    """
    return isinstance(data, Mapping) and data.get("reason") == "invalid_request_state"


async def _ask_client(request: Any, key: str, client: Client) -> Any:
    """What a callback of the SDK's client answers that the user gave; else an `ErrorData`."""
    context = ClientRequestContext(session=client.session, request_id=key)
    return await client.session.dispatch_input_request(context, request)
