"""What a transcript is made of: messages, assistant turns, tool results; and the parts inside them.

Every item is a frozen value. An `AssistantTurn` carries two forms of one answer: `native`, the bytes that the same API
gets back (never rebuilt), and `blocks`, what any other API is told of it. An item that was read from a history of an API
carries that API's own entries besides, as `verbatim`.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from lutumpy.core import json_values
from lutumpy.core.values import dataclass

__all__ = [
    "Api",
    "AssistantTurn",
    "Block",
    "CallBlock",
    "FilePart",
    "FinishReason",
    "ImagePart",
    "Item",
    "Message",
    "OpaqueBlock",
    "Part",
    "ReasoningBlock",
    "RefusalBlock",
    "ResultBlock",
    "ResultStatus",
    "Role",
    "TextBlock",
    "TextPart",
    "ToolMetadata",
    "ToolResults",
    "Usage",
    "Verbatim",
]

Api = Literal["openai_chat", "openai_responses", "anthropic_messages"]
"""A wire: OpenAI's Chat Completions, OpenAI's Responses, Anthropic's Messages."""

Role = Literal["system", "developer", "user", "assistant"]
FinishReason = Literal[
    "stop", "tool_calls", "length", "content_filter", "refusal", "paused", "unknown"
]
"""Why a model stopped, in this library's words (rule C9a)."""

ResultStatus = Literal["ok", "error", "rejected"]
"""What became of a call: the tool ran, it failed, or it was not run."""

REJECTION_PREFIX = "Tool call rejected: "


class ToolMetadata(NamedTuple):
    """Which call this is.

    Attributes:
        id: The provider's call id.
        name: The tool's name.
        arguments: The text of the arguments as the model wrote them.
    """

    id: str
    name: str
    arguments: str


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
    """A document: its bytes with their media type (`application/pdf`, `text/plain`), or an http(s) URL.

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


Part: TypeAlias = "TextPart | ImagePart | FilePart"
"""What a message, or the content of a result, consists of."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a request cost, as the provider counted them; numbers it does not give are 0.

    Values of several requests can be added, also of different providers: `all_input_tokens` stays right.

    Attributes:
        input_tokens: The provider's own figure. OpenAI counts cached tokens in it, Anthropic beside it, so compare and add
            up `all_input_tokens`.
        output_tokens: Tokens of the answer, reasoning included.
        total_tokens: Everything, cached input included.
        cached_input_tokens: Input that was read from the provider's cache.
        cache_creation_tokens: Input that was written to it.
        reasoning_tokens: The part of the output that was reasoning.
        cached_beside_tokens: The cached tokens, read and written, that `input_tokens` does not include. Left out, they
            are taken from what `total_tokens` has beyond input and output. Not compared.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_input_tokens: int = 0
    cache_creation_tokens: int = 0
    reasoning_tokens: int = 0
    cached_beside_tokens: int | None = field(default=None, compare=False, repr=False)

    @property
    def all_input_tokens(self) -> int:
        """Everything that the model was given, cached tokens included: the same for every provider."""
        return self.input_tokens + self._cached_beside()

    def _cached_beside(self) -> int:
        if self.cached_beside_tokens is not None:
            return self.cached_beside_tokens
        # Hosts whose total has reasoning that the output leaves out are why the cached tokens are a limit.
        beyond = max(0, self.total_tokens - self.input_tokens - self.output_tokens)
        return min(beyond, self.cached_input_tokens + self.cache_creation_tokens)

    def __sub__(self, other: Usage) -> Usage:
        """What was added since `other`."""
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.total_tokens - other.total_tokens,
            self.cached_input_tokens - other.cached_input_tokens,
            self.cache_creation_tokens - other.cache_creation_tokens,
            self.reasoning_tokens - other.reasoning_tokens,
            self._cached_beside() - other._cached_beside(),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self._cached_beside() + other._cached_beside(),
        )


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text that the model wrote for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """Reasoning, as far as it may be read. `signed`: it verifies only after the very history it was made from."""

    text: str
    signed: bool = False


@dataclass(frozen=True, slots=True)
class RefusalBlock:
    """The model's refusal, in its words."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A tool call that the client has to answer.

    Attributes:
        id: The call id; empty when the provider gave none.
        name: The tool's name as the model wrote it; empty when it gave none.
        arguments: JSON text as the model wrote it (free text for a kind that isn't `function`).
        kind: `function`, or the provider's word for another call that the client should run (rule C8).
        as_object: The API delivered the arguments as an object, so that a cut text can look whole.
        incomplete: The provider marked this very call as cut.
        position: Where it stands in the native form's list of calls or items; -1 when it isn't there (`answerable` is
            then false).
        id_field: The name of its id there, where that differs from the other calls of the turn.
        problem: Why it can't be read, in words for the model, where that is known: it is never run then.
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

    @property
    def answerable(self) -> bool:
        """Whether the call can be answered by text, and so is committed."""
        return self.position >= 0


@dataclass(frozen=True, slots=True)
class OpaqueBlock:
    """Content that only its own API understands (provider-executed tools, unknown kinds); replayed, never projected."""

    kind: str


Block: TypeAlias = "TextBlock | ReasoningBlock | RefusalBlock | CallBlock | OpaqueBlock"


@dataclass(frozen=True, slots=True)
class Verbatim:
    """What stands for an item in the history of one API, as it was read there: that API gets it back unchanged.

    Attributes:
        api: The API.
        entries: JSON bytes of the entries of its history: messages, or input items. None at all when the item is said
            by an entry of the item before (results and a text in one message), or is held by the provider.
        system: The one entry is the request's field for the system (`system`, `instructions`), and no part of the
            history.
    """

    api: str
    entries: tuple[bytes, ...]
    system: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """Something pushed by the application. Ephemeral ones leave the transcript after the next successful request.

    One that was read from a history may have no parts: then only its own API understands it, by `verbatim`.

    Attributes:
        role: Who speaks.
        parts: Texts, images, files, in order.
        ephemeral: Whether it is for the next request only.
        verbatim: The entries of the history that it was read from, else `None`.
    """

    role: Role
    parts: tuple[Part, ...]
    ephemeral: bool = False
    verbatim: Verbatim | None = None

    @property
    def text(self) -> str:
        """The parts as text; what isn't text is named."""
        return _as_text(self.parts)


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """One answer of a model.

    Attributes:
        api: The wire that it came from: `openai_chat`, `openai_responses`, `anthropic_messages`, or a user's own.
        blocks: Its content in order, for reading and for other APIs.
        native: JSON bytes for the same API: the message (Chat), or the list of items or content blocks; `b""` when there
            is no content.
        calls: The call blocks among `blocks`.
        calls_key: Where in `native` the calls are: a key of the message, or `None` when `native` is the list itself.
        id_field: The name of a call's id in `native`.
        finish_reason: Why the model stopped, in this library's words (rule C9a).
        provider_finish_reason: The same in the provider's word.
        usage: Tokens.
        model: The model's name as answered.
        request_id: The provider's id of the request, where known.
        response_id: The provider's id of the answer.
        residue: JSON bytes of fields known to stand in answers only: kept, never sent.
        cut: The answer was cut off (output limit, filter, refusal, incomplete).
        results_only: The provider takes nothing but tool results, or the next turn, directly after this one (rule R6).
        reasoning_dropped: Its reasoning no longer verifies and stays out of every request.
        verbatim: For a turn that was read from a history: what its own API gets, in place of `native`.
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

    @property
    def text(self) -> str:
        """The text of the answer, its pieces joined."""
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
        """Whether it carries reasoning that verifies only after the history it was made from."""
        return any(type(b) is ReasoningBlock and b.signed for b in self.blocks)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send: such a turn is kept, and left out of requests."""
        return not self.native and self.verbatim is None

    def with_ids(self, ids: dict[int, str]) -> AssistantTurn:
        """The same turn with other call ids, in the calls and in the native form alike.

        Args:
            ids: New id by index into `calls`.
        """
        renamed = {id(self.calls[k]): replace(self.calls[k], id=new) for k, new in ids.items()}
        native: Any = json_values.decode(self.native) if self.native else None
        for k, new in ids.items():
            position = self.calls[k].position
            if position >= 0:
                entries = native if self.calls_key is None else native[self.calls_key]
                entries[position][self.calls[k].id_field or self.id_field] = new
        return replace(
            self,
            blocks=tuple([renamed.get(id(b), b) for b in self.blocks]),
            calls=tuple([renamed.get(id(b), b) for b in self.calls]),
            native=json_values.encode(native) if self.native else b"",
        )


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """The answer to one call, as it is sent.

    Attributes:
        call_id: The id of the call.
        name: The tool's name.
        content: Text (JSON, or plain), or content parts; never empty when the status is not `ok`.
        status: `ok`, `error` or `rejected`; the last two are marked as errors where the wire has a flag.
        kind: The kind of the call that it answers.
    """

    call_id: str
    name: str
    content: str | tuple[Part, ...]
    status: ResultStatus = "ok"
    kind: str = "function"

    @property
    def text(self) -> str:
        """The content as text; what isn't text is named."""
        return self.content if isinstance(self.content, str) else _as_text(self.content)


@dataclass(frozen=True, slots=True)
class ToolResults:
    """The answers to all calls of the turn before, in call order.

    Attributes:
        results: One for each call.
        verbatim: The entries of the history that they were read from, else `None`.
    """

    results: tuple[ResultBlock, ...]
    verbatim: Verbatim | None = None


Item: TypeAlias = "Message | AssistantTurn | ToolResults"


def _as_text(parts: tuple[Part, ...]) -> str:
    return "\n".join([p.text if isinstance(p, TextPart) else describe(p) for p in parts])


def describe(part: ImagePart | FilePart) -> str:
    """What stands in place of a part where the wire takes none: says what was left out."""
    what = "image" if isinstance(part, ImagePart) else "file"
    name = part.filename if isinstance(part, FilePart) and part.filename else part.url
    size = f"{len(part.data)} bytes" if part.data is not None else ""
    details = ", ".join([d for d in (name, part.media_type, size) if d])
    return f"[{what} left out: {details}]" if details else f"[{what} left out]"
