"""How an API spells what other APIs say too: what conversion asks a provider's folder."""

# A module that mends the histories of an API may define `SPELLING`, an instance of a subclass of
# `Spelling`. Everything here has a default, so a new API says only how it differs:
#
#     to be read in histories of other APIs        `calls`, `results`, `readers`, `entries`,
#                                                  `result_id_key`, `read_beside_content`
#     to have other APIs' messages written in it   `parts`, `write_group`, `write_media`

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from lutumpy.doctor.editor import copied
from lutumpy.doctor.media import decode_text_file
from lutumpy.doctor.pieces import Call, Media, Opaque, OwnPart, Piece, Reasoning, Result, Text
from lutumpy.doctor.wording import NO_TEXT, as_object, as_text

__all__ = [
    "FAILED",
    "BlockSpelling",
    "Json",
    "PartReader",
    "ReadContent",
    "ResultReader",
    "Spelling",
    "object_arguments",
    "read_as_reasoning",
    "read_refusal_part",
    "read_text_part",
]

Json: TypeAlias = "dict[str, Any]"
"""A JSON object as an API spells it."""

PartReader: TypeAlias = "Callable[[Mapping[str, Any]], Piece | None]"
"""Reads one part, block or item; gives `None` when it lacks what it should hold."""

ReadContent: TypeAlias = "Callable[[Any], str | tuple[Piece, ...]]"
"""Reads the content of a result, which may hold parts of any API."""

ResultReader: TypeAlias = "Callable[[Mapping[str, Any], ReadContent], Piece]"
"""Reads one result."""

FAILED = "The tool failed: "
"""How a result begins that another API marks as an error, where this API has no mark for it."""


class Spelling:
    """How one API writes parts, calls, results and messages.

    Attributes:
        parts: Types of parts that it takes in contents. They are kept as they are.
        other_parts: Types of parts that its programs put into contents although it refuses them.
        part_keys: Keys that tell a part without a `type`, each with what stands for its type in the
            other tables.
        readers: How to read a part, by its type.
        calls: How to read a call that is in a content or in the list of messages, by its type.
        message_calls: How to read a call that is in a message beside its content, by its type.
        results: How to read a result that is in a content or in the list, by its type.
        entries: Types of entries of its list of messages that have no role.
        result_id_key: Where a result names its call.
        result_roles: Roles of messages that are results.
        in_content: Types of calls and results that are in its contents; empty where they have
            places of their own.
        takes_calls_in_messages: Several calls, and texts with them, are one message.
        joins_messages: Neighbouring messages of one role are one message, with all their results.
        marks_errors: A result can be marked as an error.
        tells_custom_results: A result of a call with free text is of a type of its own.
        has_refusals: It has a part for refusals.
        content_key: Where a message has its parts.
        role_names: Its own names of roles, with those that most APIs use.
    """

    parts: ClassVar[frozenset[str]] = frozenset()
    other_parts: ClassVar[frozenset[str]] = frozenset()
    part_keys: ClassVar[Mapping[str, str]] = {}
    readers: ClassVar[Mapping[str, PartReader]] = {}
    calls: ClassVar[Mapping[str, PartReader]] = {}
    message_calls: ClassVar[Mapping[str, PartReader]] = {}
    results: ClassVar[Mapping[str, ResultReader]] = {}
    entries: ClassVar[frozenset[str]] = frozenset()
    result_id_key: ClassVar[str] = "id"
    result_roles: ClassVar[tuple[str, ...]] = ()
    in_content: ClassVar[frozenset[str]] = frozenset()
    takes_calls_in_messages: ClassVar[bool] = True
    joins_messages: ClassVar[bool] = False
    marks_errors: ClassVar[bool] = False
    tells_custom_results: ClassVar[bool] = False
    has_refusals: ClassVar[bool] = False
    content_key: ClassVar[str] = "content"
    role_names: ClassVar[Mapping[str, str]] = {}

    # ------------------------------------------------------------- reading

    def shown_role(self, entry: Mapping[str, Any]) -> str | None:
        """The role that the keys of an entry show when it has neither a role nor a type."""
        return None

    def has_calls(self, message: Mapping[str, Any], role: str) -> bool:
        """Whether a message has calls or results beside its content, in this API's spelling."""
        return False

    def has_foreign_calls(
        self,
        message: Mapping[str, Any],
        role: str,
        call_types: frozenset[str],
        id_keys: Sequence[str],
    ) -> bool:
        """Whether another API's calls or ids are where this API has its own.

        Args:
            message: A message of the list.
            role: Its role, which it may only show.
            call_types: Types of other APIs' calls.
            id_keys: Where any API has the id that a result answers.
        """
        return False

    def read_result_message(
        self, message: Mapping[str, Any], call_id: Any, read_content: ReadContent
    ) -> Piece:
        """The result in a message of one of the `result_roles`.

        Args:
            message: The message.
            call_id: The id of the call, under whichever API's key it stands.
            read_content: Reads its content.
        """
        return Result(call_id, read_content(message.get("content")))

    def read_beside_content(
        self, message: Mapping[str, Any], number: int, read_part: Callable[[Any], Piece]
    ) -> list[Piece]:
        """What a message says and calls beside its content.

        Args:
            message: The message.
            number: Its index in the list.
            read_part: Reads a call of any API.
        """
        return []

    def read_beside_result(self, message: Mapping[str, Any]) -> list[Piece]:
        """What a result shows beside its content, whichever API's it is by its role."""
        return []

    def unnamed_result_ids(self, messages: Sequence[Any]) -> dict[int, str]:
        """Ids for results that name their call in another way than by an id, by message."""
        return {}

    # ------------------------------------------------------------- writing

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        """Messages or items that say what a run of pieces of one speaker says.

        Args:
            role: Who speaks; `results` for results alone.
            pieces: What is said, without reasoning.
        """
        raise NotImplementedError(f"{type(self).__name__} can't write messages")

    def write_media(self, media: Media) -> Json | None:
        """The part that shows an image, a file or a sound; `None` where there is no such part."""
        return None

    def text_part(self, text: str, *, by_model: bool) -> Json:
        """The part of a text, said by the model or by others."""
        return {"type": "text", "text": text}

    def write_part(self, piece: Piece, *, by_model: bool) -> Json | None:
        """A part in this spelling; `None` for a piece that no part can say."""
        if isinstance(piece, OwnPart):
            return copied(dict(piece.value)) if isinstance(piece.value, Mapping) else None
        if isinstance(piece, Text):
            if piece.is_refusal and by_model and self.has_refusals:
                return {"type": "refusal", "refusal": piece.text}
            return self.text_part(piece.text, by_model=by_model) if piece.text else None
        if isinstance(piece, Media):
            part = self.write_media(piece)
            if part is None:
                part = self.text_part(_words_of(piece), by_model=by_model)
            return part
        if isinstance(piece, Opaque):
            text = piece.value if isinstance(piece.value, str) else as_text(piece.value)
            return self.text_part(text, by_model=by_model)
        return None

    def write_parts(self, pieces: Iterable[Piece], *, by_model: bool) -> list[Json]:
        """The parts of those pieces that a part can say."""
        parts = [self.write_part(piece, by_model=by_model) for piece in pieces]
        return [part for part in parts if part is not None]

    def write_content(self, pieces: Sequence[Piece], *, by_model: bool) -> str | list[Json]:
        """One text as a text, anything else as parts."""
        if len(pieces) == 1 and isinstance(pieces[0], Text) and not pieces[0].is_refusal:
            return pieces[0].text
        return self.write_parts(pieces, by_model=by_model)

    def write_result_content(self, result: Result) -> str | list[Json]:
        """The content of a result. Without a mark for errors, a failed one begins by saying so."""
        content: str | list[Json]
        if isinstance(result.content, str):
            content = result.content
        else:
            content = self.write_parts(result.content, by_model=False) or ""
        if not result.failed or self.marks_errors:
            return content
        if isinstance(content, str):
            return FAILED + content if content else NO_TEXT
        return [self.text_part(FAILED.rstrip(), by_model=False), *content]


class BlockSpelling(Spelling):
    """How an API writes whose calls and results are blocks of a message's content."""

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        blocks: list[Json] = []
        for piece in pieces:
            if isinstance(piece, Result):
                blocks.append(self.write_result(piece))
            elif isinstance(piece, Call):
                blocks.append(self.write_use(piece))
            else:
                blocks += self.write_parts([piece], by_model=role == "assistant")
        if not blocks:
            return []
        return [{"role": "user" if role == "results" else role, "content": blocks}]

    def write_result(self, result: Result) -> Json:
        """The block of a result."""
        raise NotImplementedError(f"{type(self).__name__} can't write results")

    def write_use(self, call: Call) -> Json:
        """The block of a call."""
        raise NotImplementedError(f"{type(self).__name__} can't write calls")


def object_arguments(call: Call) -> dict[str, Any]:
    """The arguments of a call where they are an object: a free text is its `input`."""
    return {"input": call.arguments} if call.is_custom else as_object(call.arguments)


def read_text_part(part: Mapping[str, Any]) -> Piece | None:
    """The reader of a part with a `text`."""
    text = part.get("text")
    return Text(text) if isinstance(text, str) else None


def read_refusal_part(part: Mapping[str, Any]) -> Piece | None:
    """The reader of a part with a `refusal`."""
    refusal = part.get("refusal")
    return Text(refusal, is_refusal=True) if isinstance(refusal, str) else None


def read_as_reasoning(part: Mapping[str, Any]) -> Piece | None:
    """The reader of what only the API that wrote it can read."""
    return Reasoning()


def _words_of(media: Media) -> str:
    """What stands for something that the API can't show: its text, or a note that it was there."""
    words = media.text
    if words is None and media.data is not None:
        words = decode_text_file(*media.data)
    if not words:
        return _left_out(media)
    return f"{media.name}:\n{words}" if media.name else words


def _left_out(media: Media) -> str:
    """A note in the place of something that the API can't show."""
    if media.data is not None:
        media_type, data = media.data
        details = [media.name, media_type, f"{len(data) * 3 // 4} bytes"]
    else:
        details = [media.name, media.url or media.file_id]
    named = ", ".join([detail for detail in details if detail])
    return f"[{media.kind} left out: {named}]" if named else f"[{media.kind} left out]"
