"""Repairs of APIs of blocks: the order inside a turn of the model, and of the results after it."""

from __future__ import annotations

from lutumpy.doctor.block_turns import Conversation, expect_block
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import Stage
from lutumpy.errors import Problem
from lutumpy.rules.block_wire import BlockWire, Placed, Turn

__all__ = ["mend_calls_last_of", "mend_order_of", "mend_reasoning_first_of"]


# ---------------------------------------------------------- texts behind calls


def mend_calls_last_of(wire: BlockWire) -> Stage:
    """A stage for text behind the calls of a turn: it goes before the first of them, in its order.

    A turn with anything else there stays as it is: signed reasoning and calls of the provider's own
    tools keep their places.
    """

    def mend_calls_last(editor: Editor, problems: list[Problem]) -> None:
        conversation = Conversation(editor, wire)
        for problem in problems:
            turn = conversation.with_problem(problem)
            calls = turn.calls if turn is not None else []
            if turn is None or not calls:
                continue
            first: Path = calls[0][0][:3]
            number = [path for path, _ in turn.blocks].index(first)
            behind = [
                (path, block)
                for path, block in turn.blocks[number:]
                if wire.kind_of(block) != wire.call.kind
            ]
            # Moving signed reasoning would break its signature.
            if not behind or any(wire.kind_of(block) != "text" for _, block in behind):
                continue
            _move_before(editor, wire, first, behind)
            reason = "Text stands behind the calls of its message; it is moved before them."
            editor.done("move_content", problem, reason)

    return mend_calls_last


def _move_before(editor: Editor, wire: BlockWire, first: Path, texts: list[Placed]) -> None:
    """Move texts before a call, and drop the messages that are empty then."""
    emptied: list[int] = []
    expect_block(editor, wire, first)
    for path, block in texts:
        index = int(path[0])
        if len(path) == 2:  # the content of a message is the text itself
            editor.expect(path)
            editor.insert(first, dict(block))
            emptied.append(index)
            continue
        expect_block(editor, wire, path)
        editor.move(path, first)
        if editor.get((index, wire.blocks_key)) == []:
            emptied.append(index)
    for index in emptied:
        editor.remove((index,))


# ------------------------------------------------------- reasoning behind texts


def mend_reasoning_first_of(wire: BlockWire, kinds: tuple[str, ...]) -> Stage:
    """A stage for reasoning behind a text and before the calls: it goes to the start of its turn.

    Args:
        wire: Where calls and results are.
        kinds: The kinds of blocks that are reasoning.
    """

    def mend_reasoning_first(editor: Editor, problems: list[Problem]) -> None:
        conversation = Conversation(editor, wire)
        for problem in problems:
            turn = conversation.with_problem(problem)
            if turn is None or not turn.blocks or len(turn.blocks[0][0]) != 3:
                continue
            start = turn.blocks[0][0]
            found = _find_reasoning_after_text(turn, start, kinds)
            if not found:
                continue
            expect_block(editor, wire, start)
            for path in found:
                expect_block(editor, wire, path)
                editor.move(path, start)
            reason = (
                "With a thinking budget a turn must start with its reasoning, which stands behind "
                "a text; it is moved to the start."
            )
            editor.done("move_content", problem, reason)

    return mend_reasoning_first


def _find_reasoning_after_text(turn: Turn, start: Path, kinds: tuple[str, ...]) -> list[Path]:
    """The first run of reasoning in the turn's first message, if only text comes before it."""
    found: list[Path] = []
    for path, block in turn.blocks:
        kind = turn.wire.kind_of(block)
        if kind in kinds and path[0] == start[0]:
            found.append(path)
        elif found or kind != "text":
            break
    return found


# -------------------------------------------------------------- order of results


def mend_order_of(wire: BlockWire) -> Stage:
    """A stage for results in another order than their calls, which the API takes and models don't
    expect.
    """

    def mend_order(editor: Editor, problems: list[Problem]) -> None:
        conversation = Conversation(editor, wire)
        for problem in problems:
            before = conversation.calling(problem)
            after = conversation.after(before) if before is not None else None
            if after is None or before is None:
                continue
            places = _find_leading_results(before, after)
            in_order = sorted(places, key=lambda place: place[1])
            # Results in several messages are moved into one by pairing, and then come back here.
            is_one_message = len({path[:2] for path, _ in places}) == 1
            if not is_one_message or in_order == places:
                continue
            end = places[-1][0]
            for path, _ in in_order:
                expect_block(editor, wire, path)
                editor.move(path, (*end[:2], int(end[2]) + 1))
            reason = (
                "The results stand in another order than their calls; they get the calls' order."
            )
            editor.done("move_result", problem, reason)

    return mend_order


def _find_leading_results(before: Turn, after: Turn) -> list[tuple[Path, int]]:
    """The results at the start of a turn, each with the number of its call."""
    wire = before.wire
    order = {call.get(wire.call.id_key): number for number, (_, call) in enumerate(before.calls)}
    places: list[tuple[Path, int]] = []
    for path, block in after.blocks:
        result = wire.inside(path, block, wire.result.kind)
        if result is None:
            break
        places.append((path, order.get(result[1].get(wire.result.id_key), len(order))))
    return places
