"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from lutumpy.cli.recognition import Api
from lutumpy.rules.hosts import host_name

__all__ = ["ApiChoice", "ApiOption", "Files", "HostOption", "JsonOption", "OutOption", "api_of"]


class ApiChoice(str, Enum):
    """The APIs, as they are written on the command line."""

    openai_chat = "openai_chat"
    openai_responses = "openai_responses"
    anthropic_messages = "anthropic_messages"


_APIS: dict[ApiChoice, Api] = {
    ApiChoice.openai_chat: "openai_chat",
    ApiChoice.openai_responses: "openai_responses",
    ApiChoice.anthropic_messages: "anthropic_messages",
}


def api_of(choice: ApiChoice | None) -> Api | None:
    """The API that was chosen."""
    return None if choice is None else _APIS[choice]


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="JSON or JSON Lines files; - is standard input.", show_default=False
    ),
]
ApiOption = Annotated[
    ApiChoice | None,
    typer.Option(
        "--api", help="Whose API the files are for; recognised when left out.", show_default=False
    ),
]


def _known_host(value: str | None) -> str | None:
    if value is not None:
        try:
            host_name(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return value


HostOption = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="HOST",
        callback=_known_host,
        help="The host that the requests are for: its address or name, or compatible. What only OpenAI or Anthropic is "
        "known to refuse may pass elsewhere. Seen from the file when left out.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")]
OutOption = Annotated[
    str, typer.Option("--out", "-o", metavar="OUT", help="The file to write; - is standard output.")
]
