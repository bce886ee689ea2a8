"""`ServedCall`: what a tool says to the client while it runs, and asks of it."""

from __future__ import annotations

import warnings
from typing import Any, Literal, TypeVar

from mcp.server.context import ServerRequestContext
from pydantic import BaseModel, ValidationError

from lutumpy import ToolError
from lutumpy.mcp.served_clients import takes_level
from lutumpy.plain import json_values

__all__ = ["LogLevel", "ServedCall"]

M = TypeVar("M", bound=BaseModel)

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class ServedCall:
    """The call that a client of `mcp_server` has made. A tool gets it as a `Skip` parameter::

        @tool_fn
        async def index(folder: str, call: Skip[ServedCall]) -> str:
            await call.report(1, 3, "reading")

        server = mcp_server(App, context=lambda request: {"call": ServedCall(request)})

    Args:
        request: The SDK's request context, which `context=` is given.

    Attributes:
        request: As given: the SDK's session, the HTTP request.
    """

    __slots__ = ("request",)

    def __init__(self, request: ServerRequestContext[Any, Any]) -> None:
        self.request: ServerRequestContext[Any, Any] = request

    async def report(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the call is. Nothing is sent where the client didn't ask for it.

        Args:
            progress: How far; each time more than before.
            total: How far it goes.
            message: A word about it.
        """
        word = None if message is None else json_values.clean_text(message)
        await self.request.session.report_progress(progress, total, word)

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Write into the client's log, where it takes one, and as much as it wants of it.

        Args:
            level: How grave it is.
            data: What is said: a JSON value.
            logger: Who says it.
        """
        if not takes_level(self.request, level):
            return
        with warnings.catch_warnings():
            # Newer protocols let a client ask for it call by call; the SDK sends it all the same.
            warnings.simplefilter("ignore")
            await self.request.session.send_log_message(
                level,
                json_values.clean(data),
                logger,
                related_request_id=self.request.request_id,
            )

    async def ask(self, message: str, answer: type[M]) -> M | None:
        """Ask the person at the client to fill in a form, and wait.

        Args:
            message: What is asked.
            answer: The form: a model whose fields are texts, numbers, booleans or choices.

        Returns:
            What was filled in; `None` where it was declined.

        Raises:
            ToolError: The client can't ask anybody, or the answer doesn't fit.
        """
        try:
            result = await self.request.session.elicit_form(
                json_values.clean_text(message),
                json_values.clean(answer.model_json_schema()),
                self.request.request_id,
            )
        except Exception as error:
            raise ToolError("the client can't ask anybody") from error
        if result.action != "accept":
            return None
        try:
            return answer.model_validate(result.content or {})
        except ValidationError as error:
            raise ToolError(
                f"the answer doesn't fit: {error.error_count()} of its fields"
            ) from None
