"""What the readers of histories share: entries as JSON, bytes kept as they are, and the transcript
that is made of them.

A reader of an API tells messages, turns and results apart, and says which entries stand for each.
What can't be paired is collected, so that every problem is reported at once, and nothing is made.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy.core.item_store import FailureKey, failure_key
from lutumpy.core.items import (
    REJECTION_PREFIX,
    AssistantTurn,
    FilePart,
    FoundTool,
    ImagePart,
    Message,
    Part,
    RawPart,
    ResultBlock,
    ResultStatus,
    Role,
    TextPart,
    ToolResults,
    Verbatim,
)
from lutumpy.core.transcript import Transcript
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.rules.problem import Problem

if TYPE_CHECKING:
    from lutumpy.core.promises import PromisedCall

__all__ = [
    "Entry",
    "HistoryReading",
    "decoded",
    "entry_of",
    "file_at",
    "file_part",
    "image_part",
    "left_out",
    "status_of",
    "text_only",
]

_DEPTH = 200
_DATA_URL = re.compile(r"data:([^;,]+)(?:;[^;,]*)*;base64,", re.IGNORECASE)
# What the SDKs put beside the provider's fields when they parse an answer.
_PARSED = ("parsed", "parsed_arguments", "parsed_output")


@dataclass(frozen=True, slots=True)
class Entry:
    """One message, or input item, of a history.

    Attributes:
        position: Where it is, as the provider writes it: `messages[3]`.
        data: Its JSON bytes.
        value: The same, parsed.
    """

    position: str
    data: bytes
    value: dict[str, Any]


class HistoryReading:
    """The transcript that a history becomes, and what stood against it.

    Args:
        api: The API whose history it is.
        takes_bytes: Its SDK takes bytes, which are base64 on the wire.
    """

    __slots__ = ("_api", "_problems", "_takes_bytes", "_transcript")

    def __init__(self, api: str, *, takes_bytes: bool = False) -> None:
        self._api = api
        self._takes_bytes = takes_bytes
        self._problems: list[str] = []
        self._transcript = Transcript()

    def entries(self, messages: Any, position: str) -> list[Entry]:
        """The entries of a history: JSON objects, objects of an SDK, or any mixture of both.

        Args:
            messages: The history.
            position: How the provider writes where an entry is, with `{}` for the index.

        Raises:
            TranscriptError: it is not a list of objects, or holds what is not JSON.
        """
        if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
            raise TranscriptError(
                f"a history is a list of messages or items, not {type(messages).__name__}"
            )
        originals = list(messages)
        takes_bytes = self._takes_bytes
        found = [
            entry_of(entry, position.format(index), takes_bytes=takes_bytes)
            for index, entry in enumerate(originals)
        ]
        if any(b"\xef\xbf\xbd" in entry.data for entry in found):
            # Where lone surrogates were replaced, ids that differed may be the same now: they are
            # told apart as they came.
            ids = _HistoryIds()
            found = [
                entry_of(entry, position.format(index), ids, takes_bytes=takes_bytes)
                for index, entry in enumerate(originals)
            ]
        return found

    def refuse(self, position: str, what: str) -> None:
        """Something can't be part of a transcript; reading goes on, to find the rest."""
        self._problems.append(f"{position}: {what}")

    def verbatim(self, entries: Iterable[Entry]) -> Verbatim:
        """What the API gets back for an item: these entries."""
        return Verbatim(self._api, tuple([entry.data for entry in entries]))

    def message(self, role: Role, parts: Iterable[Part], entries: Iterable[Entry]) -> None:
        """Add a message of the application.

        Args:
            role: Its role.
            parts: Its content.
            entries: The entries of the history that hold it; none when the item before holds them.
        """
        self.add(Message(role, tuple(parts), verbatim=self.verbatim(entries)))

    def add(self, message: Message) -> None:
        """A message that is complete."""
        if not self._problems:
            self._transcript.append(message)

    def turn(
        self,
        turn: AssistantTurn,
        entries: Iterable[Entry],
        results: Sequence[ResultBlock] = (),
        result_entries: Iterable[Entry] = (),
    ) -> None:
        """An answer of the model, and the results of its calls.

        Args:
            turn: The answer, its calls with the ids of the history.
            entries: The entries of the history that hold it.
            results: One for each answerable call, in call order.
            result_entries: The entries that hold those.
        """
        if self._problems:
            return
        verbatim = self.verbatim(entries)
        if verbatim.entries == (turn.native,):
            turn = replace(turn, native=verbatim.entries[0])  # one copy of the bytes
        # An id that comes back in a later turn gets another one here. The entries keep theirs.
        turn = self._transcript.fresh_ids(
            replace(turn, verbatim=verbatim, provider_finish_reason=None)
        )
        calls = [call for call in turn.calls if call.answerable]
        answers = [
            replace(result, call_id=call.id) for call, result in zip(calls, results, strict=True)
        ]
        failures: list[FailureKey] = [
            failure_key(call.name, call.arguments)
            for call, answer in zip(calls, answers, strict=True)
            if answer.status not in ("ok", "promised")
        ]
        answered = ToolResults(tuple(answers), self.verbatim(result_entries)) if answers else None
        self._transcript.append_turn(turn, answered, failures)

    def end(self, checked: Sequence[Problem]) -> Transcript:
        """The transcript.

        Args:
            checked: What the rules of the API say of the history; asked for only if something was
                against it.

        Raises:
            TranscriptError: something can't be part of a transcript.
        """
        if not self._problems:
            return self._transcript
        refused = tuple([problem for problem in checked if problem.certainty == "refused"])
        lines = [f"\n- {problem}" for problem in self._problems]
        raise TranscriptError(
            f"this {self._api} history can't be a transcript, where every call has one result "
            "right after its turn; propose_repairs finds how to mend it, and nothing was "
            f"read:{''.join(lines)}",
            refused,
        )

    @property
    def open_calls(self) -> tuple[PromisedCall, ...]:
        """The calls of the history so far whose results are still to come."""
        return self._transcript.open_calls

    @property
    def refused(self) -> bool:
        """Whether something stands against the history so far."""
        return bool(self._problems)


# --- JSON -----------------------------------------------------------------------------------------


class _HistoryIds:
    """Ids of a history that can't be sent as they are: each gets one that can, and no two the same
    one (rule C6).
    """

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def cleaned(self, value: Any) -> Any:
        """A JSON value with every id in it cleaned: whatever is under `id`, `call_id`,
        `tool_use_id` and the like.
        """
        if isinstance(value, dict):
            return {
                name: self._id(inner)
                if isinstance(inner, str) and (name == "id" or name.endswith("_id"))
                else self.cleaned(inner)
                for name, inner in value.items()
            }
        return [self.cleaned(inner) for inner in value] if isinstance(value, list) else value

    def _id(self, original: str) -> str:
        cleaned = json_values.clean_text(original)
        if self._owners.setdefault(cleaned, original) == original:
            return cleaned
        import hashlib  # rare, and slow to import

        data = original.encode("utf-8", "surrogatepass")
        return f"{cleaned}_{hashlib.sha256(data).hexdigest()[:12]}"


def entry_of(
    value: Any, position: str, ids: _HistoryIds | None = None, *, takes_bytes: bool = False
) -> Entry:
    """One object of a history.

    Args:
        value: What is there.
        position: Where it is, as the provider writes it.
        ids: The ids of the whole history.
        takes_bytes: Bytes in it become base64.

    Raises:
        TranscriptError: it is not a JSON object.
    """
    data, parsed = decoded(value, position, ids, takes_bytes=takes_bytes)
    if not isinstance(parsed, dict):
        raise TranscriptError(
            f"{position} is not a JSON object but {type(parsed).__name__}; nothing was read"
        )
    return Entry(position, data, parsed)


def decoded(
    value: Any, position: str, ids: _HistoryIds | None = None, *, takes_bytes: bool = False
) -> tuple[bytes, Any]:
    """A value as JSON bytes, and parsed; objects of the SDKs become what they were made from.

    Lone surrogates, which no provider takes, become U+FFFD; with `takes_bytes` bytes become base64.

    Raises:
        TranscriptError: it holds what is not JSON, or is nested deeper than 200 levels.
    """
    try:
        text = _encode_with_bytes(value) if takes_bytes else _encode(value)
        if ids is not None:
            text = _encode(ids.cleaned(json_values.decode(text)))
        data = json_values.clean_text(text).encode()
        if data.count(b"[") + data.count(b"{") > _DEPTH and _measure_depth(data) > _DEPTH:
            raise ValueError(f"nested deeper than {_DEPTH} levels")
        return data, json_values.decode(data)
    except (ValueError, TypeError, RecursionError) as error:
        raise TranscriptError(f"{position} is not JSON: {error}; nothing was read") from error


def _to_plain(value: Any) -> Any:
    """The JSON value of an object that isn't one by itself."""
    if isinstance(value, Mapping):
        return dict(value)
    fields = getattr(type(value), "model_fields", None)
    if isinstance(fields, dict):
        if type(value).__pydantic_decorators__.model_serializers:
            return value.model_dump(mode="json")  # on the wire it is not its fields
        # What was set, by its name on the wire; a dump of the whole would also hold what the SDK
        # parsed, further down.
        names_set = value.model_fields_set
        plain = {
            field.serialization_alias or field.alias or name: getattr(value, name)
            for name, field in fields.items()
            if name in names_set and name not in _PARSED
        }
        return {**plain, **(value.model_extra or {})}
    if isinstance(value, (Sequence, Iterator)) and not isinstance(
        value, (bytes, bytearray, memoryview)
    ):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _to_plain_or_base64(value: Any) -> Any:
    """The same, with base64 for bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    return _to_plain(value)


def _encoder(default: Callable[[Any], Any]) -> Callable[[Any], str]:
    return json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default
    ).encode


_encode = _encoder(_to_plain)
_encode_with_bytes = _encoder(_to_plain_or_base64)


def _measure_depth(data: bytes) -> int:
    """How deep JSON text is nested."""
    deepest = depth = 0
    for found in re.finditer(rb"[\[{]|[\]}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", data)):
        depth += 1 if found[0] in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


# --- content --------------------------------------------------------------------------------------


def left_out(kind: Any, detail: Any = None) -> TextPart:
    """A text in place of content that only its own API understands; it names what was left out."""
    what = kind if isinstance(kind, str) and kind else "content"
    return TextPart(
        f"[{what} left out: {detail}]"
        if isinstance(detail, str) and detail
        else f"[{what} left out]"
    )


def image_part(url: Any, detail: Any = None) -> Part:
    """The image at an URL, which may hold its bytes."""
    looked = detail if detail in ("low", "high", "auto") else None
    if not isinstance(url, str):
        return left_out("image")
    found = _decode_data_url(url)
    if found is not None:
        return ImagePart(found[1], found[0], detail=looked)
    return ImagePart(url=url, detail=looked) if _is_http(url) else left_out("image", url[:100])


def file_at(url: Any, filename: Any = None) -> Part:
    """The file at an URL, which may hold its bytes."""
    named = filename if isinstance(filename, str) and filename else None
    if not isinstance(url, str):
        return left_out("file", named)
    found = _decode_data_url(url)
    if found is not None:
        return FilePart(found[1], found[0], filename=named)
    return (
        FilePart(url=url, filename=named) if _is_http(url) else left_out("file", named or url[:100])
    )


def file_part(data: Any, media_type: Any, filename: Any = None) -> FilePart | None:
    """The file whose bytes are given as base64; `None` when they aren't."""
    content = (
        _decode_base64(data)
        if isinstance(data, str) and isinstance(media_type, str) and media_type
        else None
    )
    named = filename if isinstance(filename, str) and filename else None
    return FilePart(content, media_type, filename=named) if content else None


def text_only(parts: Iterable[Part]) -> list[Part]:
    """The parts as a message takes them that isn't the user's: texts, and texts in place of the
    rest.
    """
    return [part if isinstance(part, TextPart) else left_out(_NAMES[type(part)]) for part in parts]


_NAMES: dict[type[Any], str] = {
    ImagePart: "image",
    FilePart: "file",
    RawPart: "content",
    FoundTool: "tool",
}


def result_content(parts: Sequence[Part]) -> str | tuple[Part, ...]:
    """The content of a result: a text if that is all, else parts."""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return tuple(parts) or ""


def status_of(content: str | tuple[Part, ...], failed: bool = False) -> ResultStatus:
    """The status of a result; without a flag only a rejection is recognised, by how its text
    begins.
    """
    first = content if isinstance(content, str) else content[0] if content else ""
    text = first.text if isinstance(first, TextPart) else first
    if isinstance(text, str) and text.startswith(REJECTION_PREFIX):
        return "rejected"
    return "error" if failed else "ok"


def _decode_data_url(url: str) -> tuple[str, bytes] | None:
    """Media type and bytes of a data URL."""
    head = _DATA_URL.match(url)
    data = _decode_base64(url[head.end() :]) if head is not None else None
    return (head[1], data) if head is not None and data else None


def _decode_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _is_http(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))
