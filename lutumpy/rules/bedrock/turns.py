"""What a message of Converse holds, for the rules about what follows what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.rules.bedrock.limits import SERVER_TOOL
from lutumpy.rules.problem import items, text

__all__ = ["Said", "read_said"]


@dataclass(slots=True)
class Said:
    """One message. The API joins no neighbours, so that each stands for itself.

    Attributes:
        role: Its role; empty where it isn't a text.
        index: Its index.
        blocks: Its blocks that are objects, each with its index.
    """

    role: str
    index: int
    blocks: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The position of the message."""
        return f"messages.{self.index}"

    def place(self, number: int) -> str:
        """The position of one of its blocks."""
        return f"{self.where}.content.{number}"

    def of(self, key: str) -> list[tuple[int, Mapping[str, Any]]]:
        """What stands under a key of its blocks, each with the block's index."""
        found: list[tuple[int, Mapping[str, Any]]] = []
        for number, block in self.blocks:
            inner = block.get(key)
            if isinstance(inner, Mapping):
                found.append((number, inner))
        return found

    @property
    def server_calls(self) -> frozenset[str]:
        """The ids of the calls that the provider runs itself."""
        return frozenset(
            [
                str(call.get("toolUseId"))
                for _, call in self.of("toolUse")
                if call.get("type") == SERVER_TOOL
            ]
        )

    @property
    def calls(self) -> list[tuple[int, Mapping[str, Any]]]:
        """The calls that a program answers."""
        return [(n, call) for n, call in self.of("toolUse") if call.get("type") != SERVER_TOOL]

    @property
    def results(self) -> list[tuple[int, Mapping[str, Any]]]:
        """The results of such calls: of the provider's own the results stand beside the calls."""
        own = self.server_calls
        return [
            (n, result)
            for n, result in self.of("toolResult")
            if str(result.get("toolUseId")) not in own
        ]


def read_said(messages: Any) -> list[Said]:
    """The messages that are objects."""
    found: list[Said] = []
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping):
            continue
        said = Said(text(message.get("role")) or "", index)
        for number, block in enumerate(items(message.get("content"))):
            if isinstance(block, Mapping):
                said.blocks.append((number, block))
        found.append(said)
    return found
