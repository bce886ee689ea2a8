"""How the requests of an API are laid out: the names that differ where the meaning is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from lutumpy.errors import Problem

__all__ = ["ApiRules", "HistoryContext", "RequestShape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShape:
    """Where things stand in a request of an API, and in what its model wrote.

    Attributes:
        messages_key: The key of the list of messages.
        system_key: The key of a system text beside the messages; `None` where it is a message itself.
        paths: How the path of its requests ends.
        host: Whose host it is; a region may stand before it (`eu.api.openai.com`).
        position: How the API names a message by its index, as `messages[{}]`.
        turn_form: What one turn of the model is: one object, or a list of blocks or items.
        calls_key: Where in a turn that is one object its calls are.
        call_id_key: The key of a call's id in a turn.
    """

    messages_key: str
    system_key: str | None
    paths: tuple[str, ...]
    host: str
    position: str
    turn_form: Literal["object", "list"]
    calls_key: str | None = None
    call_id_key: str = "id"


@dataclass(frozen=True, slots=True)
class HistoryContext:
    """What a check of a history knows of the request around it. See `check_messages` for each."""

    tools: Sequence[Any] | None = None
    server_held_prefix: bool = False
    system: Any = None
    model: str | None = None
    thinking: str | None = None
    compatible: bool = False


class ApiRules(Protocol):
    """What the `rules` module of an API defines.

    Attributes:
        PREFIX: How the ids of its rules begin: `chat` in `chat.role`.
        SHAPE: How its requests are laid out.
    """

    PREFIX: str
    SHAPE: RequestShape

    def check_request(self, body: Any, *, compatible: bool = False) -> list[Problem]:
        """Every rule that a request body breaks."""
        ...

    def check_history(self, messages: Any, context: HistoryContext) -> list[Problem]:
        """Every rule that a list of messages breaks."""
        ...
