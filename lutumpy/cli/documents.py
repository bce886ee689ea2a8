"""What a file holds: request bodies, bare conversations, exchanges with a provider, dumps of
sessions; as one model.

A `Document` is the same whatever it was read from: an API, a request body with its messages, and
where it was.
"""

#     what the value is                                kind
#     a list of messages or items                      messages
#     an object with messages, but no model            messages
#     an object with messages and a model              request
#     {"body": a request, "url": ...}                  request, as a recorder writes it
#     {"request": a request, "response": an answer}    exchange
#     a request with its answer on the lines behind    exchange, put together by `exchanges`
#     {"format": "lutumpy.session", ...}               session

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast
from urllib.parse import unquote

from lutumpy import Session, Transcript, TranscriptError
from lutumpy.apis import Api, api_names, serving
from lutumpy.cli.answers import api_of_answer
from lutumpy.cli.reading import Form
from lutumpy.cli.recognition import (
    ADDRESS_KEYS,
    address_of,
    apis_of_address,
    apis_of_body,
    apis_of_messages,
    has_conversation,
    is_message,
)
from lutumpy.doctor import host_name, is_compatible
from lutumpy.models import TurnOrigin
from lutumpy.rules.shape import RequestShape

__all__ = [
    "Document",
    "DocumentError",
    "DocumentKind",
    "Place",
    "body_of",
    "open_document",
    "shape_of",
]

DocumentKind = Literal["request", "messages", "exchange", "session"]
"""A request body; messages or items without a request around them; a request with its answer; a
`Session.dump()`.
"""


class DocumentError(Exception):
    """A value isn't a document, or nothing says whose API it is for; the message says which, and
    what to do.
    """


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
        body: The request body; of a bare list only its messages, of a session what its adapter
            would send.
        raw: The value as it was read.
        place: Where it stood.
        answer: The provider's answer to the request, where it is known, in the form in which it was
            kept (`lutumpy.cli.answers`).
        status: The answer's HTTP status, where it is known.
        compatible: The request went to another host than the vendor's, which may take what the
            vendor refuses.
        host: The host that it went to, by its name or address; `None` where it isn't known.
        before: The body of the request before it, where that was given.
        origin: Who said the turns of the model, where that was given.
        session: The session of a dump, else `None`.
        decisions: What hooks decided, as `ToolRoundPlan.decisions()` gives it, where the file has
            it under `decisions`.
    """

    kind: DocumentKind
    api: Api
    body: Mapping[str, Any]
    raw: Any
    place: Place
    answer: Any = None
    status: int | None = None
    compatible: bool = False
    host: str | None = None
    before: Mapping[str, Any] | None = None
    origin: TurnOrigin | None = None
    session: Session | None = None
    decisions: tuple[Mapping[str, Any], ...] = ()

    @property
    def messages_key(self) -> str:
        """The key of the messages in the body, as `messages` or `input`."""
        return shape_of(self.api).messages_key

    @property
    def messages(self) -> list[Any]:
        """The messages or items; a plain text in their place counts as one user message."""
        value = self.body.get(self.messages_key)
        if isinstance(value, str):
            return [{"role": "user", "content": value}]
        return value if isinstance(value, list) else []

    @property
    def system(self) -> Any:
        """The system text that is beside the messages, as `system` or `instructions`."""
        shape = shape_of(self.api)
        if shape.system_key is None:
            return None
        keys = (shape.system_key, *shape.other_system_keys)
        return next((self.body[key] for key in keys if key in self.body), None)

    @property
    def tools(self) -> list[Any] | None:
        """The tools of the request, one by one; `None` where it says nothing of them."""
        read = getattr(serving(self.api, "rules"), "tools_of", None)
        value = self.body.get("tools") if read is None else read(self.body)
        return value if isinstance(value, list) else None

    @property
    def model(self) -> str | None:
        """The model's name, where it is known."""
        value = self.body.get("model")
        if isinstance(value, str):
            return value
        return _model_beside(self.raw, shape_of(self.api).model_path)

    @property
    def is_request(self) -> bool:
        """Whether the body is a whole request, so that what it lacks is missing."""
        if self.kind not in ("request", "exchange"):
            return False
        return "model" in self.body or shape_of(self.api).model_path is not None

    @property
    def server_held_prefix(self) -> bool:
        """Whether the provider has the conversation's beginning, and this document doesn't."""
        return shape_of(self.api).is_continued(self.body)

    def with_messages(self, messages: Sequence[Any]) -> Document:
        """The same document with other messages, `raw` included.

        Raises:
            DocumentError: The document is a dump, whose history is valid as it stands and can't be
                edited.
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


def shape_of(api: Api) -> RequestShape:
    """How the requests of an API are laid out."""
    shape: RequestShape = serving(api, "rules").SHAPE
    return shape


def body_of(api: Api, transcript: Transcript) -> dict[str, Any]:
    """The conversation's part of a request: the messages, with the system text where that is
    beside them.
    """
    shape = shape_of(api)
    adapter = serving(api, "adapter")
    messages = {shape.messages_key: adapter.messages(transcript)}
    if shape.system_key is None:
        return messages
    system = adapter.system(transcript)
    return messages if system is None else {shape.system_key: system, **messages}


def open_document(
    value: Any, place: Place, api: Api | None = None, host: str | None = None
) -> Document:
    """The document that a JSON value is.

    Args:
        value: The JSON value.
        place: Where it stood.
        api: Whose API it is for; recognised from the shape when left out. Of a dump: as whose
            request to show it.
        host: The host that it is for, as for `host_name`; when left out, the one whose `host`,
            `base_url` or `url` is beside the request, else the vendor's.

    Raises:
        DocumentError: It is none of the shapes, or more than one API fits its shape.
    """
    if isinstance(value, list):
        return _open_list(value, place, api, host)
    if not isinstance(value, Mapping):
        raise DocumentError(f"{_kind_of_scalar(value)} is not a document")
    data = cast("Mapping[str, Any]", value)
    # What says what it is comes first; the shape decides for the rest.
    if data.get("format") == "lutumpy.session":
        return _open_session(data, place, api)
    if isinstance(data.get("request"), Mapping):
        return _open_exchange(data, place, api, host)
    return _open_request(data, place, api, host)


_EXPECTED = (
    "a request body, a list of messages, an exchange ({request, response}) or a Session.dump()"
)


def _open_list(entries: list[Any], place: Place, api: Api | None, host: str | None) -> Document:
    if not entries:
        raise DocumentError("an empty list holds no conversation")
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise DocumentError("a list of messages holds objects only")
    if not any(map(is_message, entries)):
        if api_of_answer(entries) is not None:
            raise DocumentError("the list is an answer without its request")
        raise DocumentError("the list holds no messages: none has a role, or the type of an item")
    chosen = _choose_api(apis_of_messages(entries), api)
    return Document(
        "messages",
        chosen,
        {shape_of(chosen).messages_key: entries},
        entries,
        place,
        compatible=_is_elsewhere(chosen, host),
        host=_known_host(host),
    )


def _open_request(
    data: Mapping[str, Any], place: Place, api: Api | None, host: str | None
) -> Document:
    host = host or address_of(data)
    # An address beside the request isn't part of it, and an address inside isn't either: the
    # rules would report it as an unknown parameter.
    body = _without_address(data["body"] if _has_body(data) else data)
    apis = apis_of_address(data) or apis_of_body(body)
    if not apis:
        if api_of_answer(body) is not None:
            raise DocumentError("the object is an answer without its request")
        raise DocumentError(f"the object is not a document: expected {_EXPECTED}")
    chosen = _choose_api(apis, api)
    shape = shape_of(chosen)
    key = shape.messages_key
    if key not in body and "model" not in body:
        raise DocumentError(
            f"a request of {chosen} has its conversation under {key!r}, and this one has none"
        )
    is_whole = "model" in body or shape.model_path is not None
    kind: DocumentKind = "request" if is_whole else "messages"
    return Document(
        kind,
        chosen,
        body,
        data,
        place,
        compatible=_is_elsewhere(chosen, host),
        host=_known_host(host),
    )


def _open_exchange(
    data: Mapping[str, Any], place: Place, api: Api | None, host: str | None
) -> Document:
    sent = cast("Mapping[str, Any]", data["request"])
    body = _without_address(sent["body"] if _has_body(sent) else sent)
    host = host or address_of(data) or address_of(sent)
    chosen = _choose_api(_apis_of_exchange(data, sent, body), api)
    status = data.get("status")
    return Document(
        "exchange",
        chosen,
        body,
        data,
        place,
        answer=data.get("response"),
        status=status if isinstance(status, int) and not isinstance(status, bool) else None,
        compatible=_is_elsewhere(chosen, host),
        host=_known_host(host),
        decisions=_decisions_in(data),
    )


def _apis_of_exchange(
    data: Mapping[str, Any], sent: Mapping[str, Any], body: Mapping[str, Any]
) -> tuple[Api, ...]:
    """Whose API an exchange may be for: what it says itself, then its answer, its address, and its
    request.

    Raises:
        DocumentError: nothing in it is of any API.
    """
    named = data.get("api")
    if isinstance(named, str) and named in api_names():
        return (named,)
    answered = api_of_answer(data.get("response"))
    if answered is not None:
        return (answered,)
    # A path may end like those of two APIs; the request is checked for the first then.
    apis = (apis_of_address(data) or apis_of_address(sent))[:1] or apis_of_body(body)
    if not apis:
        keys = dict.fromkeys([shape_of(known).messages_key for known in api_names()])
        raise DocumentError(
            f"the exchange's request fits no API that is known: it has none of {', '.join(keys)}"
        )
    return apis


def _open_session(data: Mapping[str, Any], place: Place, api: Api | None) -> Document:
    try:
        session = Session.load(data)
        known = api_names()
        wrote = [turn.api for turn in session.turns() if turn.api in known]
        # A session belongs to no API. It is shown as the request that it last made, or would make.
        chosen = api or (wrote[-1] if wrote else known[0])
        body = body_of(chosen, session.transcript)
    except TranscriptError as error:
        raise DocumentError(f"the dump of a session can't be read: {error}") from error
    return Document(
        "session", chosen, body, data, place, session=session, decisions=_decisions_in(data)
    )


def _choose_api(apis: Sequence[Api], wanted: Api | None) -> Api:
    if wanted is not None:
        return wanted
    if len(apis) > 1:
        raise DocumentError(f"its shape fits {' and '.join(apis)}: say which one with --api")
    return apis[0]


def _kind_of_scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "a string" if isinstance(value, str) else "a number"


def _model_beside(raw: Any, path: re.Pattern[str] | None) -> str | None:
    """The model of a request whose path names it: what a recorder wrote beside it, or its URL."""
    if path is None or not isinstance(raw, Mapping):
        return None
    sent = raw.get("request")
    for holder in (raw, sent if isinstance(sent, Mapping) else {}):
        named, url = holder.get("model"), holder.get("url")
        if isinstance(named, str):
            return named
        found = path.search(url) if isinstance(url, str) else None
        if found is not None:
            return unquote(found[1])
    return None


def _has_body(sent: Mapping[str, Any]) -> bool:
    """Whether a recorder wrote the HTTP request, with what was sent under `body`."""
    return isinstance(sent.get("body"), Mapping) and not has_conversation(sent)


def _without_address(body: Mapping[str, Any]) -> Mapping[str, Any]:
    if address_of(body) is None:
        return body
    return {key: value for key, value in body.items() if key not in ADDRESS_KEYS}


def _is_elsewhere(api: Api, host: str | None) -> bool:
    """Whether a document is for another host than the vendor's own."""
    known = _known_host(host)
    return known is not None and is_compatible(api, known)


def _known_host(host: str | None) -> str | None:
    """A host as the doctor takes it."""
    try:
        return None if host is None else host_name(host)
    except ValueError:
        return None  # recorders write all kinds of things there: what isn't an address says nothing


def _decisions_in(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    entries = data.get("decisions")
    if not isinstance(entries, list):
        return ()
    return tuple(
        [cast("Mapping[str, Any]", entry) for entry in entries if isinstance(entry, Mapping)]
    )
