"""What a file holds: request bodies, bare conversations, exchanges with a provider, dumps of sessions; as one model.

A `Document` is the same whatever it was read from: an API, a request body with its messages, and where it stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from lutumpy import Session, TranscriptError
from lutumpy.cli.reading import Form
from lutumpy.cli.recognition import (
    ADDRESS_KEYS,
    APIS,
    Api,
    address_of,
    api_of_answer,
    apis_of_body,
    apis_of_messages,
    is_message,
)
from lutumpy.rules.anthropic.requests import continues_thread
from lutumpy.rules.hosts import is_compatible

__all__ = ["Document", "DocumentError", "DocumentKind", "Place", "open_document"]

DocumentKind = Literal["request", "messages", "exchange", "session"]
"""A request body; messages or items without a request around them; a request with its answer; a `Session.dump()`."""


class DocumentError(Exception):
    """A value is no document, or it can't be said whose API it is for; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document stands.

    Attributes:
        file: The file's name as it was given; `-` for standard input.
        line: The line on which it begins, from 1.
        number: Which document of its file it is, from 1.
        form: What it is in its file: all of it, one of its lines, or an element of its array.
        text: How it was written there.
    """

    file: str
    line: int = 1
    number: int = 1
    form: Form = "alone"
    text: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        return self.file if self.form == "alone" else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Document:
    """One conversation of a file.

    Attributes:
        kind: What it was.
        api: Whose API its messages are written for.
        body: The request body; of a bare list only its messages, of a session what its adapter would send.
        raw: The value as it was read.
        place: Where it stood.
        answer: The provider's answer to the request (its JSON, or the text of the event stream), where it is known.
        status: The answer's HTTP status, where it is known.
        compatible: The request went to another host than the vendor's, which may take what the vendor refuses.
        session: The session of a dump, else `None`.
        decisions: What hooks decided, as `ToolRoundPlan.decisions()` gives it, where the file has it under `decisions`.
    """

    kind: DocumentKind
    api: Api
    body: Mapping[str, Any]
    raw: Any
    place: Place
    answer: Any = None
    status: int | None = None
    compatible: bool = False
    session: Session | None = None
    decisions: tuple[Mapping[str, Any], ...] = ()

    @property
    def messages_key(self) -> str:
        """Where the messages stand in the body: `messages` or `input`."""
        return "input" if self.api == "openai_responses" else "messages"

    @property
    def messages(self) -> list[Any]:
        """The messages or items; a Responses input that is a plain text counts as one user message."""
        value = self.body.get(self.messages_key)
        if isinstance(value, str):
            return [{"role": "user", "content": value}]
        return value if isinstance(value, list) else []

    @property
    def system(self) -> Any:
        """The system text that stands beside the messages: Anthropic's `system`, the `instructions` of Responses."""
        key = {"anthropic_messages": "system", "openai_responses": "instructions"}.get(self.api)
        return None if key is None else self.body.get(key)

    @property
    def tools(self) -> list[Any] | None:
        """The tools of the request; `None` where it says nothing of them."""
        value = self.body.get("tools")
        return value if isinstance(value, list) else None

    @property
    def model(self) -> str | None:
        """The model's name, where it is known."""
        value = self.body.get("model")
        return value if isinstance(value, str) else None

    @property
    def is_request(self) -> bool:
        """Whether the body is a whole request, so that what it lacks is missing."""
        return self.kind in ("request", "exchange") and "model" in self.body

    @property
    def server_held_prefix(self) -> bool:
        """Whether the conversation's beginning is kept by the provider, and not in this document."""
        held = any(
            self.body.get(key) is not None for key in ("previous_response_id", "conversation")
        )
        return held or continues_thread(self.body)

    def with_messages(self, messages: Sequence[Any]) -> Document:
        """The same document with other messages, `raw` included.

        Raises:
            DocumentError: The document is a dump, whose history is valid as it stands and can't be edited.
        """
        if self.kind == "session":
            raise DocumentError("a dump of a session can't be edited: convert it first")
        entries = list(messages)
        body = {**self.body, self.messages_key: entries}
        raw: Any = entries
        if self.kind == "exchange":
            sent = self.raw["request"]
            inner = {"body": body} if _has_body(sent) else {self.messages_key: entries}
            raw = {**self.raw, "request": {**sent, **inner}}
        elif isinstance(self.raw, Mapping):
            raw = {
                **self.raw,
                **({"body": body} if _has_body(self.raw) else {self.messages_key: entries}),
            }
        return replace(self, body=body, raw=raw)


def open_document(
    value: Any, place: Place, api: Api | None = None, host: str | None = None
) -> Document:
    """The document that a JSON value is.

    Args:
        value: The JSON value.
        place: Where it stood.
        api: Whose API it is for; recognised from the shape when left out. Of a dump: as whose request to show it.
        host: The host that it is for, as for `host_name`; when left out, the one whose `host`, `base_url` or `url` stands
            beside the request, else the vendor's.

    Raises:
        DocumentError: It is none of the shapes, or more than one API fits its shape.
    """
    if isinstance(value, list):
        entries: list[Any] = value
        if not entries:
            raise DocumentError("an empty list holds no conversation")
        if not all(isinstance(entry, Mapping) for entry in entries):
            raise DocumentError("a list of messages holds objects only")
        if not any(map(is_message, entries)):
            raise DocumentError(
                "the list holds no messages: none has a role, or the type of an item"
            )
        chosen = _one(apis_of_messages(entries), api)
        return Document(
            "messages",
            chosen,
            {_key(chosen): entries},
            value,
            place,
            compatible=_is_elsewhere(chosen, host),
        )
    if not isinstance(value, Mapping):
        raise DocumentError(f"{_kind(value)} is no document")
    data = cast("Mapping[str, Any]", value)
    if data.get("format") == "lutumpy.session":
        return _session(data, place, api)
    if isinstance(data.get("request"), Mapping):
        return _exchange(data, place, api, host)
    host = host or address_of(data)
    beside = data
    data = _without_address(cast("Mapping[str, Any]", data["body"]) if _has_body(data) else data)
    apis = _of_address(beside) or apis_of_body(data)
    if not apis:
        if api_of_answer(data) is not None:
            raise DocumentError("the object is an answer without its request")
        raise DocumentError(f"the object is no document: {_EXPECTED}")
    chosen = _one(apis, api)
    if _key(chosen) not in data and "model" not in data:
        raise DocumentError(
            f"a request of {chosen} has its conversation under {_key(chosen)!r}, and this one has none"
        )
    kind: DocumentKind = "request" if "model" in data else "messages"
    return Document(kind, chosen, data, value, place, compatible=_is_elsewhere(chosen, host))


_PATHS: Mapping[str, Api] = {
    "/chat/completions": "openai_chat",
    "/responses": "openai_responses",
    "/messages": "anthropic_messages",
}

_EXPECTED = (
    "no request body, no list of messages, no exchange ({request, response}) and no Session.dump()"
)


def _key(api: Api) -> str:
    return "input" if api == "openai_responses" else "messages"


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "a string" if isinstance(value, str) else "a number"


def _one(apis: Sequence[Api], wanted: Api | None) -> Api:
    if wanted is not None:
        return wanted
    if len(apis) > 1:
        raise DocumentError(f"its shape fits {' and '.join(apis)}: say which one with --api")
    return apis[0]


def _exchange(data: Mapping[str, Any], place: Place, api: Api | None, host: str | None) -> Document:
    sent = cast("Mapping[str, Any]", data["request"])
    body = cast("Mapping[str, Any]", sent["body"]) if _has_body(sent) else sent
    host = host or address_of(data) or address_of(sent)
    answer, named, status = data.get("response"), data.get("api"), data.get("status")
    known = _known(named) or api_of_answer(answer)
    if known is None and (of_address := _of_address(data) or _of_address(sent)):
        known = of_address[0]
    body = _without_address(body)
    apis: tuple[Api, ...] = apis_of_body(body) if known is None else (known,)
    if not apis:
        raise DocumentError(
            "the exchange's request is none of the three APIs': it has neither messages nor input"
        )
    chosen = _one(apis, api)
    return Document(
        "exchange",
        chosen,
        body,
        data,
        place,
        answer=answer,
        status=status if isinstance(status, int) and not isinstance(status, bool) else None,
        compatible=_is_elsewhere(chosen, host),
        decisions=_decisions(data),
    )


def _has_body(sent: Mapping[str, Any]) -> bool:
    """Whether a recorder wrote the HTTP request, with what was sent under `body`."""
    return isinstance(sent.get("body"), Mapping) and "messages" not in sent and "input" not in sent


def _without_address(body: Mapping[str, Any]) -> Mapping[str, Any]:
    if address_of(body) is None:
        return body
    return {key: value for key, value in body.items() if key not in ADDRESS_KEYS}


def _is_elsewhere(api: Api, host: str | None) -> bool:
    """Whether a document is for another host than the vendor; what can't be read as an address says nothing."""
    try:
        return host is not None and is_compatible(api, host)
    except ValueError:
        return False


def _of_address(data: Mapping[str, Any]) -> tuple[Api, ...]:
    """The API whose path an address ends with."""
    url = data.get("url")
    path = url.partition("?")[0].rstrip("/") if isinstance(url, str) else ""
    found: list[Api] = [api for end, api in _PATHS.items() if path.endswith(end)]
    return tuple(found)


def _known(name: Any) -> Api | None:
    known: Api
    for known in APIS:
        if known == name:
            return known
    return None


def _session(data: Mapping[str, Any], place: Place, api: Api | None) -> Document:
    try:
        session = Session.load(data)
        wrote: list[Api] = [
            known for turn in session.turns() if (known := _known(turn.api)) is not None
        ]
        chosen = api if api is not None else wrote[-1] if wrote else APIS[0]
        body = _request_of(session, chosen)
    except TranscriptError as error:
        raise DocumentError(f"the dump of a session can't be read: {error}") from error
    return Document(
        "session", chosen, body, data, place, session=session, decisions=_decisions(data)
    )


def _request_of(session: Session, api: Api) -> dict[str, Any]:
    # The adapters are asked for when a dump is met; other documents don't need them.
    from lutumpy.cli.conversion import body_of

    return body_of(api, session.transcript)


def _decisions(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    entries = data.get("decisions")
    if not isinstance(entries, list):
        return ()
    return tuple(
        [cast("Mapping[str, Any]", entry) for entry in entries if isinstance(entry, Mapping)]
    )
