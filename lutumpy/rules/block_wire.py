"""Where calls and results are in the messages of an API of blocks, and the turns they make."""

# An API of blocks has a list of blocks in each message; calls are blocks of the model's messages,
# and results are blocks of the user's. The APIs differ in what one value of `BlockWire` says:
#
#                 blocks under   a call is                        neighbours of one role
#     Messages    content        {"type": "tool_use", "id": ...}  are one turn
#     Converse    content        {"toolUse": {"toolUseId": ...}}  are two turns
#     Gemini      parts          {"functionCall": {"id": ...}}    are one turn
#
# Rules and repairs walk the same turns. A path is that of what a block holds: the block's own in
# Messages, one key deeper in the others. Its first three steps are the block's path in all of them.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lutumpy.plain.pointer import Path
from lutumpy.rules.problem import items

__all__ = ["BlockWire", "Lens", "Path", "Placed", "Turn", "join_turns", "place_of"]

Placed: TypeAlias = "tuple[Path, Mapping[str, Any]]"
"""A block, or what it holds, with its path."""


@dataclass(frozen=True, slots=True)
class Lens:
    """One kind of block that names a call.

    Attributes:
        kind: The kind: the block's `type`, or the key that holds its fields.
        id_key: The key of the call's id.
    """

    kind: str
    id_key: str


def _role_of(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    return role if isinstance(role, str) else ""


def _is_any(_call: Mapping[str, Any]) -> bool:
    return True


def _same_key(_block: Mapping[str, Any], kind: str) -> str:
    return kind


@dataclass(frozen=True, slots=True)
class BlockWire:
    """Where calls and results are in an API's messages.

    Attributes:
        call: How a call is recognised.
        result: How a result is recognised.
        model: The model's role. Only its turns hold calls.
        user: The role of who answers calls. Only its turns hold results.
        blocks_key: The key of a message under which its blocks are.
        is_tagged: Whether a block says its kind under `type`; otherwise a key of that name holds
            its fields.
        joins: Whether neighbouring messages of one role are one turn.
        is_answered: Whether a program answers a call; calls of the provider's own tools aren't.
        role_of: The role of a message; empty, or a word that isn't a role, where it has none.
        key_of: The spelling of a key in a block, where the API takes several.
    """

    call: Lens
    result: Lens
    model: str = "assistant"
    user: str = "user"
    blocks_key: str = "content"
    is_tagged: bool = False
    joins: bool = True
    is_answered: Callable[[Mapping[str, Any]], bool] = _is_any
    role_of: Callable[[Mapping[str, Any]], str] = _role_of
    key_of: Callable[[Mapping[str, Any], str], str] = _same_key

    def kind_of(self, block: Mapping[str, Any]) -> Any:
        """The kind of a block: its `type`, or its first key."""
        return block.get("type") if self.is_tagged else next(iter(block), "")

    def inside(self, block_path: Path, block: Mapping[str, Any], kind: str) -> Placed | None:
        """What a block of a kind holds, with its path; `None` for one of another kind."""
        if self.is_tagged:
            return (block_path, block) if block.get("type") == kind else None
        key = self.key_of(block, kind)
        value = block.get(key)
        return ((*block_path, key), value) if isinstance(value, Mapping) else None

    def path_inside(self, block_path: Path, kind: str) -> Path:
        """The path of what a block of a kind holds, as the API documents its key."""
        return block_path if self.is_tagged else (*block_path, kind)


@dataclass(slots=True)
class Turn:
    """One message, or the neighbouring ones of a role where the API joins them.

    Attributes:
        wire: Where calls and results are in it.
        role: The role; empty for one that isn't a text.
        first: The index of its first message.
        last: The index of its last one.
        blocks: The blocks that are objects, each with its path. A content that is a text is one
            block in an API that tags them, and its path ends with `content`.
    """

    wire: BlockWire
    role: str
    first: int
    last: int
    blocks: list[Placed] = field(default_factory=list[Placed])

    @property
    def where(self) -> str:
        """The position of its first message."""
        return place_of((self.first,))

    def of(self, *kinds: str) -> list[Placed]:
        """What the blocks of some kinds hold, in their order."""
        if self.wire.is_tagged:
            return [placed for placed in self.blocks if placed[1].get("type") in kinds]
        found: list[Placed] = []
        for path, block in self.blocks:
            for kind in kinds:
                held = self.wire.inside(path, block, kind)
                if held is not None:
                    found.append(held)
        return found

    @property
    def calls(self) -> list[Placed]:
        """The calls that a program answers; none in a turn that isn't the model's."""
        if self.role != self.wire.model:
            return []
        is_answered = self.wire.is_answered
        return [found for found in self.of(self.wire.call.kind) if is_answered(found[1])]

    @property
    def results(self) -> list[Placed]:
        """The results; none in a turn that isn't the user's."""
        return self.of(self.wire.result.kind) if self.role == self.wire.user else []


def join_turns(wire: BlockWire, messages: Any) -> list[Turn]:
    """The turns of a list of messages. What isn't an object makes none and parts none."""
    turns: list[Turn] = []
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping):
            continue
        role = wire.role_of(message)
        if not turns or not wire.joins or turns[-1].role != role:
            turns.append(Turn(wire, role, index, index))
        turn = turns[-1]
        turn.last = index
        content = message.get(wire.blocks_key)
        if wire.is_tagged and isinstance(content, str) and content:
            block = {"type": "text", "text": content}
            turn.blocks.append(((index, wire.blocks_key), block))
        for number, block in enumerate(items(content)):
            if isinstance(block, Mapping):
                turn.blocks.append(((index, wire.blocks_key, number), block))
    return turns


def place_of(path: Path) -> str:
    """A position as Anthropic and Amazon write it: `messages.0.content.1`."""
    return ".".join(["messages", *[str(step) for step in path]])
