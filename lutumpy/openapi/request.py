"""A call as a request: what the model wrote, in its places, and spelled ready to be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from lutumpy import ToolError
from lutumpy.openapi.addresses import check_target, join_address
from lutumpy.openapi.bodies import spell_body
from lutumpy.openapi.operations import Operation, Taken
from lutumpy.openapi.parameters import Parameter, spell_parameter
from lutumpy.openapi.styles import SpellingError
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["OperationRequest", "make_request"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """What one call of an operation asks for. Everything is validated and spelled; sending it, the
    server's address and who one is there are the caller's.

    With httpx this sends it: `client.request(request.method, request.url_at(server),
    headers=request.headers, content=request.content)`.

    A path or a query that could lead anywhere but below a server's address is an `AddressError`
    when the request is built.

    Attributes:
        operation: The operation.
        method: The HTTP method, in capitals.
        path: The path, its parameters filled in and percent-encoded. It begins with one `/` and
            goes behind the server's address.
        query_string: The query, percent-encoded, without `?`; empty where there is none.
        headers: The headers: header parameters, `Cookie` where there are cookie parameters, and
            `Content-Type` where there is a body.
        content: The body's bytes; `None` where there is none.
        media_type: The body's media type; `None` where there is no body.
        body: The body's value as the model wrote it; `None` where there is no body.
        path_values: What the model wrote for path parameters, by their names in the document.
        query_values: The same for query parameters.
        header_values: The same for header parameters.
        cookie_values: The same for cookie parameters.
    """

    operation: Operation
    method: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    content: bytes | None
    media_type: str | None
    body: JsonValue
    path_values: Mapping[str, JsonValue]
    query_values: Mapping[str, JsonValue]
    header_values: Mapping[str, JsonValue]
    cookie_values: Mapping[str, JsonValue]

    def __post_init__(self) -> None:
        check_target(self.path, self.query_string)

    def url_at(self, server: str) -> str:
        """The whole address of the request.

        Args:
            server: The server's address, such as `https://host/v1`.

        Raises:
            AddressError: `server` can't be the address of one, or the request would leave it.
        """
        return join_address(server, self.target)

    @property
    def target(self) -> str:
        """Path and query, as they stand in a URL."""
        return f"{self.path}?{self.query_string}" if self.query_string else self.path

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """The pairs of the query, decoded, for a client that encodes them itself."""
        pairs = [pair.partition("=") for pair in self.query_string.split("&") if pair]
        return tuple([(unquote(name), unquote(text)) for name, _, text in pairs])

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies, as they stand in the header."""
        pairs = [pair.partition("=") for pair in self.headers.get("Cookie", "").split("; ") if pair]
        return {name: text for name, _, text in pairs}


def make_request(
    operation: Operation,
    taken: Taken,
    parameters: Mapping[str, Parameter],
    body_argument: str | None,
    arguments: Mapping[str, Any],
) -> OperationRequest:
    """The request that a call's arguments ask for.

    Args:
        operation: The operation.
        taken: What it takes.
        parameters: Its parameters, by the names of the arguments.
        body_argument: The name of the argument that is the body.
        arguments: The arguments; they fit the tool's schema.

    Raises:
        ToolError: Some can't be in their places; a line for each.
    """
    body = taken.body
    values: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "cookie": {}}
    spelled: dict[str, list[tuple[str, str]]] = {place: [] for place in values}
    problems: list[str] = []
    for argument, parameter in parameters.items():
        if argument not in arguments:
            continue
        value = arguments[argument]
        values[parameter.place][parameter.name] = value
        spelled[parameter.place] += (
            _try(problems, argument, spell_parameter, parameter, value) or []
        )
    headers = dict(spelled["header"])
    if spelled["cookie"]:
        headers["Cookie"] = "; ".join(_assign(spelled["cookie"]))
    content = media_type = written = None
    if body is not None and body_argument is not None and body_argument in arguments:
        written = arguments[body_argument]
        encoded = _try(problems, body_argument, spell_body, body, written)
        if encoded is not None:
            content, headers["Content-Type"] = encoded
            media_type = body.media_type
    filled = None
    if not problems:
        filled = _try(problems, "the path", taken.template.fill, dict(spelled["path"]))
    if filled is None:
        raise ToolError("\n".join(problems))
    path, stated = filled
    return OperationRequest(
        operation,
        operation.method,
        path,
        "&".join([*stated, *_assign(spelled["query"])]),
        headers,
        content,
        media_type,
        written,
        values["path"],
        values["query"],
        values["header"],
        values["cookie"],
    )


def _try(problems: list[str], what: str, spell: Callable[..., T], *values: Any) -> T | None:
    """What `spell` makes of values, or `None` and one more problem."""
    try:
        return spell(*values)
    except SpellingError as error:
        problems.append(f"{what}: {error}")
        return None


def _assign(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{name}={text}" for name, text in pairs]
