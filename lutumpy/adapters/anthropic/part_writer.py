"""Content parts of messages and results as blocks, fitted to the request that they are in."""

# What is hard here
# -----------------
# A part that was written for this API alone goes out as it is. But four things are checked over a
# whole request, and no part can know what else is there:
#
#   | what             | what the API asks                   | what is done                        |
#   |------------------|-------------------------------------|-------------------------------------|
#   | `cache_control`  | four at most                        | later ones are left out             |
#   | `citations`      | all documents or none, all search   | the first one decides for the       |
#   |                  | results or none; none beside an     | later ones; turned off in a request |
#   |                  | output format [documentation]       | with a format                       |
#   | `tool_reference` | the tool is among the request's     | its text in a request that lacks    |
#   |                  | tools [reported]                    | the tool                            |
#   | `image`          | none over 2,000 pixels a side in a  | a text in its place once the        |
#   |                  | request with more than 20 images    | request has that many               |
#
# The first two are settled when a message is encoded, since the earlier messages are known then.
# What depends on the request is settled in a copy (`fit`): the messages that it may concern are
# noted by their index.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from lutumpy.adapters.anthropic.decode import API
from lutumpy.adapters.anthropic.original import entries_without_reasoning
from lutumpy.adapters.anthropic.parts import part_blocks
from lutumpy.core.items import FoundTool, Part, RawPart
from lutumpy.core.parts import raw_value
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic.limits import MAX_BREAKPOINTS
from lutumpy.rules.anthropic.parts import check_part
from lutumpy.rules.shape import PartPlace

__all__ = ["PartWriter"]

_CITED = ("document", "search_result")


class PartWriter:
    """Writes the parts of a conversation, in its order.

    Attributes:
        noted: The texts for the tool references of a message, by the message's index and the name
            of the tool; for messages with parts that may depend on the request.
        depends_on_request: Whether `fit` has to be asked. Most conversations hold no such part.
    """

    __slots__ = ("_citations", "_has_wide", "_marks", "_texts", "depends_on_request", "noted")

    def __init__(self) -> None:
        # Whether the documents, and the search results, of this conversation are cited.
        self._citations: dict[str, bool] = {}
        # How many breakpoints the message that is being written holds.
        self._marks = 0
        # The texts for the tool references of the message that is being written, by the name of
        # the tool; `None` while nothing in it depends on the request.
        self._texts: dict[str, str] | None = None
        # Whether a message shows an image that a request with many doesn't take.
        self._has_wide = False
        self.noted: dict[int, dict[str, str]] = {}
        self.depends_on_request: bool = False

    def copy(self) -> PartWriter:
        twin = PartWriter()
        twin._citations = self._citations.copy()
        twin._has_wide = self._has_wide
        twin.noted = self.noted.copy()
        twin.depends_on_request = self.depends_on_request
        return twin

    def write(self, parts: Iterable[Part], place: PartPlace, breakpoints: int) -> list[Any]:
        """The blocks of some parts; `note` has to be told where they went.

        Args:
            parts: The parts.
            place: Where they are.
            breakpoints: How many breakpoints of the prompt cache the messages before hold.
        """
        blocks: list[Any] = []
        for part in parts:
            if not isinstance(part, (RawPart, FoundTool)) or (
                (value := _value_of(part, place)) is None
            ):
                blocks += [self._fit_in(block) for block in part_blocks(part)]
                continue
            if value.get("cache_control") is not None:
                if breakpoints + self._marks < MAX_BREAKPOINTS:
                    self._marks += 1
                else:
                    del value["cache_control"]
            self._texts = self._texts or {}
            if value["type"] == "tool_reference":
                self._texts[value["tool_name"]] = part.text
            blocks.append(self._fit_in(value))
        return blocks

    def _fit_in(self, block: dict[str, Any]) -> dict[str, Any]:
        """The block as it fits those before it."""
        if block["type"] == "image" and _is_wide(block):
            self._texts = self._texts or {}
            self._has_wide = True
        return self._cite_alike(block)

    def _cite_alike(self, block: dict[str, Any]) -> dict[str, Any]:
        """The block, cited or not like the others of its kind."""
        kind = block["type"]
        if kind not in _CITED:
            return block
        is_cited = (block.get("citations") or {}).get("enabled") is True
        wanted = self._citations.setdefault(kind, is_cited)
        if wanted:
            self._texts = self._texts or {}
        return block if wanted == is_cited else {**block, "citations": {"enabled": wanted}}

    def note(self, index: int) -> None:
        """The blocks that were written since the last call are in the message of this index."""
        if self._texts is not None:
            self.noted[index] = self._texts
            self.depends_on_request = True
        self._texts = None
        self._marks = 0

    def fit(
        self, messages: list[bytes], tools: Set[str], has_format: bool, binds: bool
    ) -> list[bytes]:
        """The messages as a request takes them.

        Args:
            messages: The messages, as they were written.
            tools: The names of the tools that the request declares.
            has_format: The request asks for an output format.
            binds: The model signs its reasoning over everything before it (rule R5): behind a
                message that had to be changed it is left out. Older models want it back where they
                go on with their calls.
        """
        cited = has_format and any(self._citations.values())
        crowded = self._has_wide and _are_many_images(messages)
        if not (cited or crowded) and all(texts.keys() <= tools for texts in self.noted.values()):
            return messages
        request = _Request(tools, has_format, crowded)
        fitted: list[bytes] = []
        is_changed = False
        for index, message in enumerate(messages):
            if index in self.noted:
                written = _fit_message(message, self.noted[index], request)
                is_changed = is_changed or written != message
                fitted.append(written)
            elif is_changed and binds and b"thinking" in message:
                fitted += entries_without_reasoning([message])
            else:
                fitted.append(message)
        return fitted


def _value_of(part: RawPart | FoundTool, place: PartPlace) -> dict[str, Any] | None:
    """The block of a part that this API takes as its own; `None` for all others."""
    if isinstance(part, FoundTool):
        reference = {"type": "tool_reference", "tool_name": part.name}
        return None if place != "result" or check_part(reference, place) else reference
    return raw_value(part, API, place)


class _Request(NamedTuple):
    """What a message has to fit: the names of the tools, whether an output format is asked for, and
    whether there are many images.
    """

    tools: Set[str]
    has_format: bool
    crowded: bool


def _fit_message(data: bytes, texts: Mapping[str, str], request: _Request) -> bytes:
    message = json_values.decode(data)
    if isinstance(message["content"], list):
        message["content"] = [_fit_block(block, texts, request) for block in message["content"]]
    return encode(message)


def _fit_block(
    block: dict[str, Any], texts: Mapping[str, str], request: _Request
) -> dict[str, Any]:
    kind = block["type"]
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return {**block, "content": [_fit_block(part, texts, request) for part in block["content"]]}
    if kind == "tool_reference" and (name := block["tool_name"]) in texts.keys() - request.tools:
        return {"type": "text", "text": texts[name]}
    if kind == "image" and request.crowded and _is_wide(block):
        from lutumpy.rules.claude_images import LEFT_OUT

        return {"type": "text", "text": LEFT_OUT}
    if kind in _CITED and request.has_format and block.get("citations"):
        return {name: value for name, value in block.items() if name != "citations"}
    return block


def _is_wide(block: dict[str, Any]) -> bool:
    from lutumpy.rules.claude_images import is_wide  # few conversations show anything

    data = block["source"].get("data")
    return isinstance(data, str) and is_wide(data)


def _are_many_images(messages: Iterable[bytes]) -> bool:
    from lutumpy.rules.claude_images import MANY_IMAGES

    # Inside a text, these quotes would be escaped.
    return sum(message.count(b'"type":"image"') for message in messages) > MANY_IMAGES
