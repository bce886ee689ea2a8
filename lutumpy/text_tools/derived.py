"""The conversation as the inner model is told it: a transcript without calls and results, kept beside the real one.

It grows with the real one, item by item, so that a request costs no more the longer the conversation is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lutumpy.core.items import AssistantTurn, Item, Message, TextPart, ToolResults
from lutumpy.core.transcript import Transcript
from lutumpy.text_tools.results import SpellCalls, projected_turn, results_message
from lutumpy.text_tools.turn import API, inner_turn

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["DerivedItems"]

_KEPT = 4
"""Derived transcripts kept for a conversation: as many different instructions may take turns without rebuilding."""


class _Asked:
    """The instruction of the last request, known to an encoder and its copies."""

    __slots__ = ("instruction",)

    def __init__(self) -> None:
        self.instruction: str | None = None


class DerivedItems:
    """An `ItemEncoder`: fed with the items of the real transcript, it gives the derived one for an instruction.

    Args:
        spell: Writes the calls of turns that another adapter made.

    Attributes:
        guided_before: A guided answer is among the items.
    """

    __slots__ = (
        "_asked",
        "_base",
        "_for_one_request",
        "_items",
        "_leading",
        "_made",
        "_origin",
        "_spell",
        "guided_before",
    )

    def __init__(self, spell: SpellCalls) -> None:
        self.guided_before: bool = False
        self._spell = spell
        # System messages before anything else: with the instruction they become one.
        self._leading: list[Message] = []
        self._items: list[Message | AssistantTurn] = []
        self._made: dict[str, tuple[Transcript, int]] = {}
        self._asked = _Asked()
        # For a copy: what it was made of, and how many items that had. A copy that takes an ephemeral serves for one request.
        self._origin: DerivedItems | None = None
        self._base = 0
        self._for_one_request = False

    def add(self, item: Item) -> None:
        """Take the next item of the real transcript."""
        if isinstance(item, Message) and item.ephemeral:
            self._for_one_request = True
        elif not self._for_one_request:
            self._origin = None
        if isinstance(item, ToolResults):
            self._items.append(results_message(item))
        elif isinstance(item, AssistantTurn):
            self._items.append(self._turn(item))
        elif item.role in ("system", "developer") and not self._items:
            self._leading.append(item)
            self._made.clear()
            self._origin = None
        else:
            self._items.append(item)

    def copy(self) -> Self:
        """An independent copy. What the last request was made of is forked with it, and not made again."""
        self._origin = None
        instruction = self._asked.instruction
        made: dict[str, tuple[Transcript, int]] = {}
        if instruction is not None:
            made[instruction] = (self._derived(instruction).fork(), len(self._items))
        twin = type(self)(self._spell)
        twin.guided_before = self.guided_before
        twin._leading = self._leading.copy()
        twin._items = self._items.copy()
        twin._made = made
        twin._asked = self._asked
        twin._origin, twin._base = self, len(self._items)
        return twin

    def transcript(self, instruction: str) -> Transcript:
        """The derived transcript with this instruction; to be read, not changed.

        Args:
            instruction: What the model is told of the tools; nothing, when it is empty.
        """
        self._asked.instruction = instruction
        origin, self._origin = self._origin, None
        if self._for_one_request and origin is not None and len(origin._items) == self._base:
            # So what is encoded for this request, but for the tail, is there for the next one.
            return origin._derived(instruction).with_tail(self._items[self._base :])
        return self._derived(instruction)

    def _derived(self, instruction: str) -> Transcript:
        transcript, upto = self._made.pop(instruction, (None, 0))
        if transcript is None:
            transcript = Transcript()
            leading = self._leading_message(instruction)
            if leading is not None:
                transcript.append(leading)
        for index in range(upto, len(self._items)):
            item = self._items[index]
            if isinstance(item, Message):
                transcript.append(item)
            else:
                transcript.append_turn(item)
        while len(self._made) >= _KEPT:
            del self._made[next(iter(self._made))]
        self._made[instruction] = (transcript, len(self._items))
        return transcript

    def _leading_message(self, instruction: str) -> Message | None:
        """One message: many templates of models take no second one, and none later."""
        texts = [
            part.text
            for message in self._leading
            for part in message.parts
            if isinstance(part, TextPart)
        ]
        if instruction:
            texts.append(instruction)
        if not texts:
            return None
        roles = {message.role for message in self._leading}
        return Message(
            "developer" if roles == {"developer"} else "system", (TextPart("\n\n".join(texts)),)
        )

    def _turn(self, item: AssistantTurn) -> AssistantTurn:
        if item.api != API:
            return projected_turn(item, self._spell) if item.calls else item
        inner, guided = inner_turn(item)
        self.guided_before = self.guided_before or guided
        # Native calls of the inner model have no native results here. After a turn that takes nothing but results (rule R6),
        # results as text are none.
        if inner is None or inner.calls or (inner.results_only and item.calls):
            return projected_turn(item, self._spell)
        return replace(inner, reasoning_dropped=True) if item.reasoning_dropped else inner
