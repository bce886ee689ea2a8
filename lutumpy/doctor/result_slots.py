"""Where a result goes in the turn after its call, for APIs of blocks."""

# The results of a turn are at the start of the next one of the user, in the order of their calls:
#
#     next user turn        a result that is nowhere      a late or loose result
#     starts with results   put in among them             moved in among them
#     starts otherwise      put in at its start           moved to its start
#     content is a text     a new message before it       a new message before it, which holds it
#     is missing            a new message                 a new message, which holds it
#
# Places are those of the start of the pass, so the first result that needs a new message ends the
# work on its turn; the next pass finds the message and goes on.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.errors import Problem
from lutumpy.rules.block_wire import BlockWire

__all__ = ["Names", "ResultForm", "ResultSlots"]

Names: TypeAlias = "tuple[tuple[str, ...], tuple[str, ...] | None]"
"""The ids of calls that a repair is about, and their tools; `None` for those of the problem."""


@dataclass(frozen=True, slots=True)
class ResultForm:
    """What there is to know of an API to put a result in its place.

    Attributes:
        wire: Where calls and results are.
        unit: What an answer and its results each are in the API's words: a message, or a turn.
        write_interrupted: Writes the block of a result for a call without one.
        expect_result: The repair fits only if this block of a result is there.
        names_of: What a repair of a call names.
    """

    wire: BlockWire
    unit: str
    write_interrupted: Callable[[Mapping[str, Any]], dict[str, Any]]
    expect_result: Callable[[Editor, Path], None]
    names_of: Callable[[Mapping[str, Any]], Names]


class ResultSlots:
    """The places for results in the turn after a turn with calls.

    Args:
        editor: The messages.
        form: What there is to know of the API.
        problem: What the repairs mend.
        robbed: The indices of messages that results are taken from; they are added here.
        before: The place of a new message for results.

    Attributes:
        leading: The results at the start of the next turn, each with the number of its call.
        end: The place behind them; `None` when a new message is needed.
        before: The place of that message.
    """

    def __init__(
        self,
        editor: Editor,
        form: ResultForm,
        problem: Problem,
        robbed: set[int],
        before: int,
    ) -> None:
        self.leading: list[tuple[Path, int]] = []
        self.end: Path | None = None
        self.before: int = before
        self._editor = editor
        self._form = form
        self._problem = problem
        self._robbed = robbed

    def put(self, number: int, call: Mapping[str, Any], source: Path | None) -> bool:
        """Give a call its result: the block at `source`, or one that closes it as interrupted.

        Returns:
            Whether there was a place for it. If not, it has made a message for all results, and the
            next pass finds it there.
        """
        slot = self._slot_for(number)
        if slot is None:
            self._put_into_new_message(call, source)
        elif source is None:
            self._editor.insert(slot, self._form.write_interrupted(call))
        else:
            self._form.expect_result(self._editor, source)
            self._editor.move(source, slot)
        self._report(call, source)
        return slot is not None

    def _slot_for(self, number: int) -> Path | None:
        """The place before the first result of a later call."""
        later = [path for path, other in self.leading if other > number]
        return later[0] if later else self.end

    def _put_into_new_message(self, call: Mapping[str, Any], source: Path | None) -> None:
        editor, wire = self._editor, self._form.wire
        if source is None:
            result = self._form.write_interrupted(call)
        else:
            result = copied(editor.get(source))
            self._form.expect_result(editor, source)
            editor.remove(source)
        editor.insert((self.before,), {"role": wire.user, wire.blocks_key: [result]})

    def _report(self, call: Mapping[str, Any], source: Path | None) -> None:
        unit = self._form.unit
        ids, tools = self._form.names_of(call)
        if source is None:
            reason = (
                f"The call has no result in the next {unit}, but the API requires one; it is "
                "closed as interrupted."
            )
            self._editor.done("close_call", self._problem, reason, ids, tools)
            return
        self._robbed.add(int(source[0]))
        reason = (
            f"The result must stand first in the {unit} right after its call; it is moved there."
        )
        self._editor.done("move_result", self._problem, reason, ids, tools)
