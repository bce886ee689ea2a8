"""What a transcript is made of: messages, assistant turns, tool results; and the parts inside them.

Every item is a frozen value. An `AssistantTurn` holds one answer in two forms:

    native      bytes      sent back to the API that wrote them, never rebuilt
    blocks      values     what users read, and what any other API is sent

An item read from a history also keeps that API's own entries (`verbatim`), sent back unchanged.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from lutumpy.apis import Api
from lutumpy.core.found_tool import FoundTool
from lutumpy.core.raw_part import RawPart
from lutumpy.core.usage import Usage
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from lutumpy.core.prefix import PrefixReport
    from lutumpy.core.promises import LateResult, Promise
    from lutumpy.core.turn_origin import TurnOrigin
    from lutumpy.core.turn_settings import TurnSettings

__all__ = [
    "Api",
    "AssistantTurn",
    "Block",
    "CallBlock",
    "FilePart",
    "FinishReason",
    "FoundTool",
    "ImagePart",
    "Item",
    "Message",
    "OpaqueBlock",
    "Part",
    "RawPart",
    "ReasoningBlock",
    "RefusalBlock",
    "ResultBlock",
    "ResultStatus",
    "Role",
    "TextBlock",
    "TextMetadata",
    "TextPart",
    "ToolMetadata",
    "ToolResults",
    "Usage",
    "Verbatim",
]

Role = Literal["system", "developer", "user", "assistant"]
"""Who says a message."""

FinishReason = Literal[
    "stop", "tool_calls", "length", "content_filter", "refusal", "paused", "unknown"
]
"""Why a model stopped, in this library's words (rule C9a)."""

ResultStatus = Literal["ok", "error", "rejected", "promised"]
"""What became of a call: the tool ran, it failed, it was not run, or its result comes later."""

REJECTION_PREFIX = "Tool call rejected: "

APPROVED = "Approved: the provider makes this call itself."
"""The result that approves a call of the provider's. Any other, of any status, refuses it."""


class ToolMetadata(NamedTuple):
    """Which call this is.

    Attributes:
        id: The provider's call id.
        name: The tool's name.
        arguments: The text of the arguments as the model wrote them: JSON, unless `is_text`.
    """

    id: str
    name: str
    arguments: str

    @property
    def is_text(self) -> bool:
        """Whether `arguments` is not JSON but the very text that a text tool takes."""
        return False

    @staticmethod
    def of_text(id: str, name: str, text: str) -> ToolMetadata:
        """The metadata of a call that a model wrote as free text."""
        return TextMetadata(id, name, text)


class TextMetadata(ToolMetadata):
    """Which call this is, for one that was written as free text (see `ToolMetadata.of_text`)."""

    __slots__ = ()

    @property
    def is_text(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: either its bytes with their media type (`image/png`, ...), or an http(s) URL.

    Attributes:
        data: The bytes of the image file.
        media_type: Its media type; needed with `data`.
        url: Where the provider can fetch it.
        detail: How closely to look, for the APIs that take it: `low`, `high` or `auto`.
    """

    data: bytes | None = None
    media_type: str | None = None
    url: str | None = None
    detail: Literal["low", "high", "auto"] | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError("ImagePart takes either data or url")
        if self.data is not None and not self.media_type:
            raise ValueError("ImagePart with data needs its media_type, as 'image/png'")


@dataclass(frozen=True, slots=True)
class FilePart:
    """A document: its bytes with their media type (`application/pdf`, `text/plain`), or an http(s)
    URL.

    Attributes:
        data: The bytes of the file.
        media_type: Its media type; needed with `data`.
        url: Where the provider can fetch it.
        filename: A name to show; `file` when left out.
    """

    data: bytes | None = None
    media_type: str | None = None
    url: str | None = None
    filename: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError("FilePart takes either data or url")
        if self.data is not None and not self.media_type:
            raise ValueError("FilePart with data needs its media_type, as 'application/pdf'")


Part: TypeAlias = "TextPart | ImagePart | FilePart | RawPart | FoundTool"
"""What a message, or the content of a result, consists of."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text that the model wrote for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """Reasoning, as far as the provider shows it.

    Attributes:
        text: What may be read; empty when the provider encrypts it.
        signed: It is valid only when sent back after exactly the same history.
    """

    text: str
    signed: bool = False


@dataclass(frozen=True, slots=True)
class RefusalBlock:
    """The model's refusal, in its words."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A tool call that the client must answer.

    Attributes:
        id: The call id; empty when the provider gave none.
        name: The tool's name as the model wrote it; empty when it gave none.
        arguments: JSON text as the model wrote it (free text for a kind that isn't `function`).
        kind: `function`, or the provider's word for another call that the client should run (rule
            C8).
        as_object: The API delivered the arguments as an object, so text that was cut off can still
            look complete.
        incomplete: The provider marked this call as cut off.
        position: Its index in the native form's list of calls or items; -1 if it isn't there, and
            then `answerable` is false.
        id_field: The key of its id there, if it differs from the other calls of the turn; empty
            where its id isn't there.
        problem: Why the call can't be read, in words for the model; such a call is never run.
            `None` if it can.
        server_label: For a call that the provider itself makes, if it is approved: the label of the
            server whose tool it calls. `None` for a call that the client makes.
        by_schema: Paths of arguments that the model wrote without a type, as in XML, and that were
            read by the tool's schema: `days`, `tags[0]`.
    """

    id: str
    name: str
    arguments: str
    kind: str = "function"
    as_object: bool = False
    incomplete: bool = False
    position: int = -1
    id_field: str | None = None
    problem: str | None = None
    server_label: str | None = None
    by_schema: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether the call can be answered by text, and so is committed."""
        return self.position >= 0


@dataclass(frozen=True, slots=True)
class OpaqueBlock:
    """Content that only its own API understands (tools that the provider runs, unknown kinds).

    It is sent back to that API and left out for every other.
    """

    kind: str


Block: TypeAlias = "TextBlock | ReasoningBlock | RefusalBlock | CallBlock | OpaqueBlock"
"""A part of what a model wrote."""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """The original entries of an item of a history, which its API gets back unchanged.

    Attributes:
        api: The API.
        entries: JSON bytes of the entries: messages, or input items. Empty when the entry of the
            previous item holds this one too, or the provider holds it.
        system: The single entry is the request's system field (`system`, `instructions`), not part
            of the history.
        settings: What was in force (rule PB18), each with the index of its entry; -1 for none.
    """

    api: str
    entries: tuple[bytes, ...]
    system: bool = False
    settings: tuple[tuple[int, TurnSettings], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A message that the application added. Ephemeral ones leave after the next successful request.

    A message that was read from a history may have no parts: then only its own API understands it,
    by `verbatim`.

    Attributes:
        role: Who speaks.
        parts: Texts, images, files and parts for one API, in order.
        ephemeral: Whether it is for the next request only.
        verbatim: The entries of the history that it was read from, else `None`.
        late: The result of an earlier call that it brings, else `None`.
    """

    role: Role
    parts: tuple[Part, ...]
    ephemeral: bool = False
    verbatim: Verbatim | None = None
    late: LateResult | None = None

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief, brief_line

        return brief_line("Message", self.role, brief(self.text), "ephemeral" * self.ephemeral)

    @property
    def text(self) -> str:
        """The parts as text; images and files are described."""
        return _join_parts(self.parts)


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """One answer of a model.

    Attributes:
        api: The API that it came from, by its name in `lutumpy.apis`, or a name of the user's own
            model.
        blocks: Its content in order, for reading and for other APIs.
        native: JSON bytes for the same API: the message (Chat), or the list of items or content
            blocks. Empty if there is no content.
        calls: The call blocks among `blocks`.
        calls_key: Where in `native` the calls are: a key of the message, or `None` when `native` is
            the list itself.
        id_field: The name of a call's id in `native`, a dot for each level; empty where the API
            tells calls by their places, and their ids are this library's alone.
        finish_reason: Why the model stopped, in this library's words (rule C9a).
        provider_finish_reason: The provider's own word for it.
        usage: Tokens.
        model: The model's name as answered.
        request_id: The provider's id of the request, where known.
        response_id: The provider's id of the answer.
        residue: JSON bytes of fields that only answers have: kept, never sent.
        cut: The answer was cut off (output limit, filter, refusal, incomplete).
        results_only: Directly after this turn the provider accepts only tool results or the next
            turn (rule R6).
        reasoning_dropped: Its reasoning is no longer valid and is left out of every request.
        verbatim: For a turn that was read from a history: what its own API gets, instead of
            `native`.
        input_transformations: What the provider says it changed of the request before the model saw
            it, mostly reasoning that was left out: its entries as they came, JSON objects, in the
            order of the request. They are kept and never sent. Messages names a block by its
            `path`, `messages.{i}.content.{j}` of the request's body, Responses a reasoning item by
            its `id`; both say the `reason`, and an unknown `type` is to be ignored.
        origin: Where it came from: API, host and model. `None` where it was built by hand.
        settings: What its request changed of tools, output format and effort; `None` for nothing.
        prefix: What its request changed of what was sent before, and what that cost; `None` where
            the request isn't known. It isn't dumped.

    Turns are equal if their content is: the last three don't count.
    """

    api: str
    blocks: tuple[Block, ...]
    native: bytes
    calls: tuple[CallBlock, ...] = ()
    calls_key: str | None = None
    id_field: str = "id"
    finish_reason: FinishReason = "stop"
    provider_finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    request_id: str | None = None
    response_id: str | None = None
    residue: bytes = b""
    cut: bool = False
    results_only: bool = False
    reasoning_dropped: bool = False
    verbatim: Verbatim | None = None
    # JSON objects have no hash.
    input_transformations: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    origin: TurnOrigin | None = field(default=None, compare=False)
    settings: TurnSettings | None = field(default=None, compare=False)
    prefix: PrefixReport | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The text of the answer, its blocks joined."""
        # `type(b) is`, not `isinstance`: blocks have no subclasses, and this runs for every answer.
        return "".join([b.text for b in self.blocks if type(b) is TextBlock])

    @property
    def reasoning(self) -> str | None:
        """The readable reasoning, or `None`."""
        return "".join([b.text for b in self.blocks if type(b) is ReasoningBlock]) or None

    @property
    def refusal(self) -> str | None:
        """The refusal in the model's words, or `None`."""
        found = [b.text for b in self.blocks if type(b) is RefusalBlock]
        return "".join(found) if found else None

    @property
    def signed(self) -> bool:
        """Whether it holds reasoning that is valid only after exactly the same history."""
        for block in self.blocks:  # noqa: SIM110  a generator is a function, which is entered
            if type(block) is ReasoningBlock and block.signed:
                return True
        return False

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief, brief_line, brief_list

        names = brief_list([call.name for call in self.calls], 40)
        text = brief(self.text, 40) if self.text else ""
        tokens = f"{self.usage.total_tokens} tokens" if self.usage.total_tokens else ""
        calls = f"calls [{names}]" if names else ""
        return brief_line(
            "AssistantTurn on", self.api[:40], self.finish_reason, text, calls, tokens
        )

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send. Such a turn is kept, and left out of requests."""
        return not self.native and self.verbatim is None

    def with_ids(self, ids: dict[int, str]) -> AssistantTurn:
        """The same turn with other call ids, in the calls and in the native form alike.

        Args:
            ids: New id by index into `calls`.
        """
        # The same call object is in `calls` and in `blocks`: by identity both get the renamed
        # one, even when two calls of an answer are equal.
        renamed = {
            id(self.calls[index]): replace(self.calls[index], id=new) for index, new in ids.items()
        }
        native: Any = json_values.decode(self.native) if self.native else None
        for index, new in ids.items():
            call = self.calls[index]
            key = self.id_field if call.id_field is None else call.id_field
            if call.position >= 0 and key:
                entries = native if self.calls_key is None else native[self.calls_key]
                *outer, last = key.split(".")
                entry = entries[call.position]
                for name in outer:
                    entry = entry[name]
                entry[last] = new
        return replace(
            self,
            blocks=tuple([renamed.get(id(block), block) for block in self.blocks]),
            calls=tuple([renamed.get(id(call), call) for call in self.calls]),
            native=json_values.encode(native) if self.native else b"",
        )


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """The result of one call, as it is sent.

    Attributes:
        call_id: The id of the call.
        name: The tool's name.
        content: Text (JSON, or plain), or content parts; never empty unless the status is `ok`.
        status: `ok`, `error`, `rejected` or `promised`; `error` and `rejected` are marked as errors
            if the API has a flag for that.
        kind: The kind of the call that it answers.
        promise: What is known of a result that comes later, for `promised`.
    """

    call_id: str
    name: str
    content: str | tuple[Part, ...]
    status: ResultStatus = "ok"
    kind: str = "function"
    promise: Promise | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The content as text; images and files are described."""
        return self.content if isinstance(self.content, str) else _join_parts(self.content)


@dataclass(frozen=True, slots=True)
class ToolResults:
    """The results of all calls of the turn before, in call order.

    Attributes:
        results: One for each call.
        verbatim: The entries of the history that they were read from, else `None`.
    """

    results: tuple[ResultBlock, ...]
    verbatim: Verbatim | None = None

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief_line, brief_list

        names = [f"{result.name} {result.status}" for result in self.results]
        return brief_line("ToolResults", f"[{brief_list(names, 100)}]")


Item: TypeAlias = "Message | AssistantTurn | ToolResults"
"""What a transcript is made of."""


def _join_parts(parts: tuple[Part, ...]) -> str:
    return "\n".join([p.text if isinstance(p, TextPart) else describe(p) for p in parts])


def describe(part: ImagePart | FilePart | RawPart | FoundTool) -> str:
    """The text in place of a part that an API doesn't accept: what was left out, in a few words."""
    from lutumpy.plain.preview import shorten  # most parts are taken

    if isinstance(part, (RawPart, FoundTool)):
        return part.text
    what = "image" if isinstance(part, ImagePart) else "file"
    name = part.filename if isinstance(part, FilePart) and part.filename else part.url
    size = f"{len(part.data)} bytes" if part.data is not None else ""
    details = ", ".join([shorten(d, 200) for d in (name, part.media_type, size) if d])
    return f"[{what} left out: {details}]" if details else f"[{what} left out]"
