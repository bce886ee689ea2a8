"""Whole rounds of a transcript, and which of them fit into a budget of tokens: plain functions over
items.

A round is one exchange: a message of the user and everything until the user speaks again after an
answer (turns with their results, messages pushed in between). A history cut anywhere else could
begin with a result or end with a call.

    items:  system | user  turn  results  turn | user  turn | ephemeral
             head  |          round            |         round
"""

# What is hard here is what stays when rounds go. Three kinds of messages outlive the round that
# they are in: instructions (system and developer messages), which move to the head; ephemeral
# messages that no request has sent yet; and, only while the very items before it stay, signed
# reasoning. So a window is chosen in two steps: `fitting` counts what each cut would keep,
# `selection` builds the items of one cut.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    FoundTool,
    ImagePart,
    Item,
    Message,
    OpaqueBlock,
    Part,
    RawPart,
    TextPart,
)
from lutumpy.core.raw_part import texts_and_data
from lutumpy.errors import TranscriptError
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from lutumpy.core.promises import PromisedCall

__all__ = [
    "Count",
    "Summary",
    "TranscriptRound",
    "check_limits",
    "chosen_of",
    "dropped_items",
    "estimated_tokens",
    "fitting",
    "head_of",
    "open_without_round",
    "rounds_of",
    "selection",
    "summary_text",
    "tokens_of",
]

Count: TypeAlias = Callable[[str], int]
Summary: TypeAlias = "str | Callable[[Sequence[Item]], str]"

MEDIA_TOKENS = 1600
"""Tokens counted for an image (about the most that a provider charges), and for each 50,000 bytes
of a file.
"""

_FILE_BYTES = 50_000


@dataclass(frozen=True, slots=True)
class TranscriptRound:
    """One whole exchange of a transcript.

    Attributes:
        start: The index of its first item in its transcript.
        items: Messages, turns, and the results of their calls.
    """

    start: int
    items: tuple[Item, ...]

    @property
    def turns(self) -> tuple[AssistantTurn, ...]:
        """The answers of the model in it."""
        return tuple([item for item in self.items if isinstance(item, AssistantTurn)])


def estimated_tokens(text: str) -> int:
    """An estimate of a text's tokens: one for four bytes of UTF-8, rounded up."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def head_of(items: Sequence[Item]) -> int:
    """How many system and developer messages are at the beginning."""
    for index, item in enumerate(items):
        if not _is_instruction(item):
            return index
    return len(items)


def rounds_of(items: Sequence[Item]) -> list[TranscriptRound]:
    """The rounds, in order. Together with the head they are the whole transcript."""
    starts: list[int] = []
    answered = False
    for index in range(head_of(items), len(items)):
        item = items[index]
        if not starts or (answered and _begins_round(item)):
            starts.append(index)
            answered = False
        answered = answered or not isinstance(item, Message) or item.role == "assistant"
    ends = [*starts[1:], len(items)]
    return [
        TranscriptRound(start, tuple(items[start:end]))
        for start, end in zip(starts, ends, strict=False)
    ]


def _is_instruction(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer") and not item.ephemeral


def _begins_round(item: Item) -> bool:
    """Whether a round can begin with it: a permanent message of the user that has an entry of its
    own.
    """
    if not isinstance(item, Message) or item.role != "user" or item.ephemeral:
        return False
    return item.verbatim is None or bool(item.verbatim.entries)


# --- tokens ---------------------------------------------------------------------------------------


def tokens_of(item: Item, count: Count) -> int:
    """About how many tokens an item takes: its texts by `count`, its media by `MEDIA_TOKENS`."""
    tokens = 0
    for piece in _texts_and_media(item):
        tokens += _count_text(piece, count) if isinstance(piece, str) else piece
    return tokens


def _count_text(text: str, count: Count) -> int:
    tokens = count(text)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise TypeError(f"count takes a text and returns its number of tokens, not {tokens!r}")
    return tokens


def _texts_and_media(item: Item) -> Iterator[str | int]:
    """The texts of an item, and the tokens of its media."""
    if isinstance(item, Message):
        yield from _part_texts(item.parts)
        if not item.parts and item.verbatim is not None:
            yield from [entry.decode() for entry in item.verbatim.entries]
    elif isinstance(item, AssistantTurn):
        if any(isinstance(block, OpaqueBlock) for block in item.blocks):
            # What only its own API understands is sent there, too, and may be most of the answer.
            yield item.native.decode()
            return
        for block in item.blocks:
            if isinstance(block, CallBlock):
                yield block.name
                yield block.arguments
            elif not isinstance(block, OpaqueBlock):
                yield block.text
    else:
        for result in item.results:
            if isinstance(result.content, str):
                yield result.content
            else:
                yield from _part_texts(result.content)


def _part_texts(parts: Iterable[Part]) -> Iterator[str | int]:
    for part in parts:
        if isinstance(part, (TextPart, FoundTool)):
            yield part.text
        elif isinstance(part, RawPart):
            for piece in texts_and_data(part):
                yield piece if isinstance(piece, str) else MEDIA_TOKENS * _file_units(piece)
        elif isinstance(part, ImagePart) or part.data is None:
            yield MEDIA_TOKENS
        elif (part.media_type or "").startswith("text/"):
            yield part.data.decode("utf-8", "replace")
        else:
            yield MEDIA_TOKENS * _file_units(len(part.data))


def _file_units(size: int) -> int:
    return max(1, -(-size // _FILE_BYTES))


# --- choosing -------------------------------------------------------------------------------------


def check_limits(max_tokens: int | None, max_rounds: int | None) -> None:
    """Refuse limits under which nothing can be kept.

    Raises:
        ValueError: neither is given, or one is below 1.
        TypeError: one isn't a whole number.
    """
    if max_tokens is None and max_rounds is None:
        raise ValueError("a window takes max_tokens or max_rounds")
    for name, limit in (("max_tokens", max_tokens), ("max_rounds", max_rounds)):
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
            raise TypeError(f"{name} is a whole number, not {limit!r}")
    if (max_tokens is not None and max_tokens < 1) or (max_rounds is not None and max_rounds < 1):
        raise ValueError(
            f"a window of {max_tokens} tokens and {max_rounds} rounds holds nothing; "
            "limits begin at 1"
        )


def fitting(
    items: Sequence[Item],
    sent: Collection[int],
    max_tokens: int | None,
    max_rounds: int | None,
    count: Count,
    summary: Summary | None,
) -> tuple[list[TranscriptRound], str | None]:
    """The last rounds that fit, and the summary of what goes before them.

    Args:
        items: The transcript.
        sent: The indexes of ephemeral messages that leave when anything is dropped.
        max_tokens: The budget, for everything that is kept.
        max_rounds: How many rounds at most.
        count: Counts the tokens of a text.
        summary: See `Transcript.window`.

    Raises:
        TranscriptError: the last round alone doesn't fit.
    """
    rounds = rounds_of(items)
    first = max(0, len(rounds) - max_rounds) if max_rounds is not None else 0
    if max_tokens is None:
        return rounds[first:], summary_text(summary, items, rounds[first:])
    costs = [tokens_of(item, count) for item in items]
    ephemeral = sum([costs[index] for index in sent])
    need = sum(costs)
    if need <= max_tokens and not first:
        return rounds, None
    # Try every cut, from the one that keeps most: `need` is what is left when the rounds before go.
    for number, round in enumerate(rounds):
        # As soon as anything is dropped, the ephemerals that were sent leave as well.
        within = need - ephemeral if number else need
        if number and number >= first:
            # A summary is made only if there is room for one; its length counts, too.
            text = summary_text(summary, items, rounds[number:]) if within <= max_tokens else None
            if within + (_count_text(text, count) if text else 0) <= max_tokens:
                return rounds[number:], text
        if number < len(rounds) - 1:
            for index, item in enumerate(round.items, round.start):
                if index not in sent and not _outlives_round(item, False):
                    need -= costs[index]
    last = rounds[-1] if rounds else TranscriptRound(0, ())
    alone = sum(costs[last.start : last.start + len(last.items)])
    without = ", without a summary" if summary else ""
    raise TranscriptError(
        f"a window of {max_tokens} tokens is too small: the last round alone takes {alone}, "
        f"and what stays with it, such as system messages, {max(0, need - alone)}{without}; "
        "the transcript is unchanged"
    )


def summary_text(
    summary: Summary | None, items: Sequence[Item], kept: Sequence[TranscriptRound]
) -> str | None:
    """The summary of what is left out when only these rounds stay; `None` if nothing is.

    Raises:
        TypeError: `summary` is neither a text nor a function that returns one.
    """
    if summary is not None and not isinstance(summary, str) and not callable(summary):
        raise TypeError(f"summary is a text or a function of the dropped items, not {summary!r}")
    if summary is None or not (dropped := dropped_items(items, kept)):
        return None
    text = summary if isinstance(summary, str) else summary(dropped)
    if not isinstance(text, str):
        raise TypeError(f"summary takes the dropped items and returns a text, not {text!r}")
    return text


def dropped_items(items: Sequence[Item], kept: Sequence[TranscriptRound]) -> list[Item]:
    """What is left out when only these rounds stay; system messages aren't."""
    found = [items[index] for index in _indexes_outside(items, kept)]
    return [item for item in found if not _outlives_round(item, False)]


def _indexes_of(rounds: Sequence[TranscriptRound]) -> set[int]:
    return {
        index for round in rounds for index in range(round.start, round.start + len(round.items))
    }


def _indexes_outside(items: Sequence[Item], kept: Sequence[TranscriptRound]) -> list[int]:
    """The indexes of items that are neither in the head nor in these rounds."""
    inside = _indexes_of(kept)
    return [index for index in range(head_of(items), len(items)) if index not in inside]


def _outlives_round(item: Item, sent: bool) -> bool:
    """Whether an item of a dropped round is kept: an instruction, or a message for the next
    request.
    """
    if not isinstance(item, Message):
        return False
    # An instruction without text can be sent only as the entry that it was read from.
    return (item.ephemeral and not sent) or (_is_instruction(item) and bool(item.text.strip()))


def chosen_of(items: Sequence[Item], rounds: Iterable[TranscriptRound]) -> list[TranscriptRound]:
    """These rounds, each once and in the order of the transcript.

    Raises:
        TranscriptError: one isn't a round of these items.
    """
    own = {round.start: round for round in rounds_of(items)}
    chosen: dict[int, TranscriptRound] = {}
    for round in rounds:
        if own.get(round.start) != round:
            raise TranscriptError(
                f"the round at {round.start} is none of this transcript; "
                "the transcript is unchanged"
            )
        chosen[round.start] = round
    return [chosen[start] for start in sorted(chosen)]


def selection(
    items: Sequence[Item],
    sent: Collection[int],
    kept: Sequence[TranscriptRound],
    summary: str | None,
) -> list[Item]:
    """The items of a transcript that has only these rounds, with a summary where the first ones
    were dropped.

    Signed reasoning is marked as dropped from there on: it is valid only after exactly the same
    history.
    """
    inside = _indexes_of(kept)
    head = head_of(items)
    chosen: list[Item] = list(items[:head])
    # Instructions of dropped rounds hold from the start, so they join the other instructions.
    outliving = [
        index
        for index in _indexes_outside(items, kept)
        if _outlives_round(items[index], index in sent)
    ]
    chosen += [_without_entries(items[i]) for i in outliving if _is_instruction(items[i])]
    # The history before a turn is another one as soon as anything was moved or left out.
    changed = len(chosen) > head
    kept_turns: list[int] = []
    for index in range(head, len(items)):
        item = items[index]
        if index in inside and index not in sent:
            if changed and isinstance(item, AssistantTurn) and item.signed:
                item = replace(item, reasoning_dropped=True)
            if isinstance(item, AssistantTurn):
                kept_turns.append(index)
            chosen.append(item)
            continue
        changed = True
        if index not in inside and summary:
            chosen.append(Message("user", (TextPart(summary),)))
            summary = None
        if index in outliving and not _is_instruction(item):
            chosen.append(_without_entries(item))
    from lutumpy.core.window_settings import with_settings  # not every program cuts windows

    return with_settings(items, _detach_late(items, chosen), kept_turns)


def _detach_late(items: Sequence[Item], chosen: list[Item]) -> list[Item]:
    """The chosen items, late ones whose call isn't among them in the form that names its arguments
    (rule LR17).
    """
    if not any(isinstance(item, Message) and item.late is not None for item in chosen):
        return chosen
    from lutumpy.core.promises import detached

    kept = _calls_in(chosen)
    calls = _calls_in(items)
    found: list[Item] = []
    for item in chosen:
        if isinstance(item, Message) and item.late is not None:
            call_id = item.late.result.call_id
            if call_id not in kept:
                call = calls.get(call_id)
                item = detached(item, None if call is None else call.arguments)
        found.append(item)
    return found


def open_without_round(
    open_calls: Sequence[PromisedCall], chosen: Sequence[Item]
) -> list[PromisedCall]:
    """The open calls that aren't among the chosen items: they stay open in a window."""
    kept = _calls_in(chosen)
    return [replace(call, is_detached=True) for call in open_calls if call.call_id not in kept]


def _calls_in(items: Sequence[Item]) -> dict[str, CallBlock]:
    return {
        call.id: call for item in items if isinstance(item, AssistantTurn) for call in item.calls
    }


def _without_entries(item: Item) -> Item:
    """The message as its parts say it: its original entries belong to the round that is dropped."""
    if isinstance(item, Message) and item.verbatim is not None:
        return replace(item, verbatim=None)
    return item
