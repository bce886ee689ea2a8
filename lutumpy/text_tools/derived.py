"""The conversation as the inner model sees it: a transcript without calls and results."""

# It is kept beside the real transcript and grows with it, item by item, so that a request costs no
# more the longer the conversation is. Three things make that hard:
#
# - The tools of a turn are in its first message, together with the user's own system message. So
#   another offer means another transcript. The last few are kept, each with the number of items
#   that it has, and are brought up to date when they are asked for.
# - A fork of the conversation copies this. What the last request was made of is forked along, and
#   not made again.
# - A request with ephemeral messages is made from a copy that serves for that request alone. It
#   takes the transcript of its origin and adds the ephemerals as a tail, so that what is encoded
#   for this request, except the tail, is there for the next one.

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from lutumpy import AssistantTurn, TextPart, Transcript
from lutumpy.models import Item, Message, ToolResults
from lutumpy.text_tools.result_form import OWN_RESULTS, ResultForm
from lutumpy.text_tools.results import SpellCalls, projected_turn, results_message
from lutumpy.text_tools.turn import API, inner_turn

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["DerivedItems"]

_KEPT = 4
"""Derived transcripts kept for a conversation: how many instructions may take turns."""


class _LastRequest:
    """The instruction of the last request, known to an encoder and its copies."""

    __slots__ = ("instruction",)

    def __init__(self) -> None:
        self.instruction: str | None = None


class DerivedItems:
    """An `ItemEncoder`: fed with the real items, it gives the transcript for an instruction.

    Args:
        spell: Writes the calls of turns that another adapter made.
        results: How results are written.

    Attributes:
        guided_before: A guided answer is among the items.
        hinted: Since its last message the user's model was told of a call in another form.
    """

    __slots__ = (
        "_base",
        "_derived_by_instruction",
        "_for_one_request",
        "_items",
        "_last_request",
        "_leading",
        "_origin",
        "_results",
        "_spell",
        "guided_before",
        "hinted",
    )

    def __init__(self, spell: SpellCalls, results: ResultForm = OWN_RESULTS) -> None:
        self.guided_before: bool = False
        self.hinted: bool = False
        self._spell = spell
        self._results = results
        # System messages before anything else: together with the instruction they become one.
        self._leading: list[Message] = []
        self._items: list[Message | AssistantTurn] = []
        self._derived_by_instruction: dict[str, tuple[Transcript, int]] = {}
        self._last_request = _LastRequest()
        # For a copy: what it was made of, how many items that had, and whether it has taken an
        # ephemeral message, so that it serves for one request.
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
            self._items.append(results_message(item, self._results))
        elif isinstance(item, AssistantTurn):
            self._items.append(self._derive_turn(item))
        elif item.role in ("system", "developer") and not self._items:
            self._leading.append(item)
            self._derived_by_instruction.clear()
            self._origin = None
        else:
            self.hinted = self.hinted and item.role != "user"
            message = _derive_message(item)
            if message is not None:
                self._items.append(message)

    def copy(self) -> Self:
        """An independent copy, with a fork of what the last request was made of."""
        self._origin = None
        instruction = self._last_request.instruction
        derived: dict[str, tuple[Transcript, int]] = {}
        if instruction is not None:
            derived[instruction] = (self._bring_up_to_date(instruction).fork(), len(self._items))
        twin = type(self)(self._spell, self._results)
        twin.guided_before = self.guided_before
        twin.hinted = self.hinted
        twin._leading = self._leading.copy()
        twin._items = self._items.copy()
        twin._derived_by_instruction = derived
        twin._last_request = self._last_request
        twin._origin, twin._base = self, len(self._items)
        return twin

    def transcript(self, instruction: str) -> Transcript:
        """The derived transcript with this instruction; to be read, not changed.

        Args:
            instruction: The text about the tools in the first message; may be empty.
        """
        self._last_request.instruction = instruction
        origin, self._origin = self._origin, None
        if self._for_one_request and origin is not None and len(origin._items) == self._base:
            return origin._bring_up_to_date(instruction).with_tail(self._items[self._base :])
        return self._bring_up_to_date(instruction)

    def _bring_up_to_date(self, instruction: str) -> Transcript:
        """The kept transcript with this instruction, or a new one, with all items."""
        transcript, upto = self._derived_by_instruction.pop(instruction, (None, 0))
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
        while len(self._derived_by_instruction) >= _KEPT:
            del self._derived_by_instruction[next(iter(self._derived_by_instruction))]
        self._derived_by_instruction[instruction] = (transcript, len(self._items))
        return transcript

    def _leading_message(self, instruction: str) -> Message | None:
        """One message: templates of many models take no second one, and none later."""
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
        role: Literal["developer", "system"] = "developer" if roles == {"developer"} else "system"
        return Message(role, (TextPart("\n\n".join(texts)),))

    def _derive_turn(self, item: AssistantTurn) -> AssistantTurn:
        if item.api != API:
            return projected_turn(item, self._spell) if item.calls else _without_settings(item)
        inner, guided, hinted = inner_turn(item)
        self.guided_before = self.guided_before or guided
        self.hinted = self.hinted or hinted
        # Native calls of the inner model would need native results, which there are none of here.
        # And behind a turn that takes nothing but results (rule R6), results as text don't count.
        if inner is None or inner.calls or (inner.results_only and item.calls):
            return projected_turn(item, self._spell)
        return replace(inner, reasoning_dropped=True) if item.reasoning_dropped else inner


# The inner model is told of the tools in text. What the conversation says of them otherwise is of
# requests that offered them natively: here nothing defines what it refers to, and a model without
# native calls refuses all of it.


def _without_settings(turn: AssistantTurn) -> AssistantTurn:
    """A turn of another adapter that called nothing, without what its request said of tools."""
    if turn.verbatim is not None and turn.verbatim.settings:
        turn = replace(turn, verbatim=None)
    return turn if turn.settings is None else replace(turn, settings=None)


def _derive_message(message: Message) -> Message | None:
    """A message as the inner model is sent it; `None` for one that only changed the tools."""
    verbatim = message.verbatim
    if message.late is None:
        if verbatim is None or (verbatim.entries and not verbatim.settings):
            return message
        if verbatim.entries and all(place < 0 for place, _ in verbatim.settings):
            return replace(message, verbatim=replace(verbatim, settings=()))
    # A late result is text here, as every result is: no call is open. And an entry that is a
    # result, too, or a change of tools, can't be sent as it came.
    return Message(message.role, message.parts, message.ephemeral) if message.parts else None
