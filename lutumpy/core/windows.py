"""Whole rounds of a transcript, and which of them fit into a budget of tokens: plain functions over items.

A round is one exchange: what the user says, and everything up to the next time that the user speaks after an answer: turns
with their results, messages pushed in between. Cut anywhere else, a history could begin with a result, or end with a call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    FilePart,
    ImagePart,
    Item,
    Message,
    OpaqueBlock,
    Part,
    TextPart,
)
from lutumpy.core.values import dataclass
from lutumpy.errors import TranscriptError

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
    "rounds_of",
    "selection",
    "summary_text",
    "tokens_of",
]

Count: TypeAlias = Callable[[str], int]
Summary: TypeAlias = "str | Callable[[Sequence[Item]], str]"

MEDIA_TOKENS = 1600
"""What an image counts, about the most that a provider takes for one; and a file, for each 50,000 bytes begun."""

_FILE_BYTES = 50_000


@dataclass(frozen=True, slots=True)
class TranscriptRound:
    """One whole exchange of a transcript.

    Attributes:
        start: The index of its first item in the transcript that it is a part of.
        items: What was said: messages, turns, and the results of their calls.
    """

    start: int
    items: tuple[Item, ...]

    @property
    def turns(self) -> tuple[AssistantTurn, ...]:
        """The answers of the model in it."""
        return tuple([item for item in self.items if isinstance(item, AssistantTurn)])


def estimated_tokens(text: str) -> int:
    """About how many tokens a text takes: one for each four bytes of UTF-8, the last ones rounded up."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def head_of(items: Sequence[Item]) -> int:
    """How many system and developer messages stand before everything else."""
    for index, item in enumerate(items):
        if not _instructs(item):
            return index
    return len(items)


def rounds_of(items: Sequence[Item]) -> list[TranscriptRound]:
    """The rounds, in order: together with the head they are the whole transcript."""
    starts: list[int] = []
    answered = False
    for index in range(head_of(items), len(items)):
        item = items[index]
        if not starts or (answered and _speaks(item)):
            starts.append(index)
            answered = False
        answered = answered or not isinstance(item, Message) or item.role == "assistant"
    ends = [*starts[1:], len(items)]
    return [
        TranscriptRound(start, tuple(items[start:end]))
        for start, end in zip(starts, ends, strict=False)
    ]


def _instructs(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer") and not item.ephemeral


def _speaks(item: Item) -> bool:
    """Whether a round can begin with it: a message of the user's that is there to stay, and has an entry of its own."""
    if not isinstance(item, Message) or item.role != "user" or item.ephemeral:
        return False
    return item.verbatim is None or bool(item.verbatim.entries)


# --- tokens ------------------------------------------------------------------------------------------------------------


def tokens_of(item: Item, count: Count) -> int:
    """About how many tokens an item takes, as `count` sees its texts; see `MEDIA_TOKENS` for what is no text."""
    return sum([_counted(text, count) if isinstance(text, str) else text for text in _texts(item)])


def _counted(text: str, count: Count) -> int:
    found = count(text)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise TypeError(f"count takes a text and gives its number of tokens, not {found!r}")
    return found


def _texts(item: Item) -> Iterator[str | int]:
    """The texts of an item, and what its media count."""
    if isinstance(item, Message):
        yield from _part_texts(item.parts)
        if not item.parts and item.verbatim is not None:
            yield from [entry.decode() for entry in item.verbatim.entries]
    elif isinstance(item, AssistantTurn):
        if any(isinstance(block, OpaqueBlock) for block in item.blocks):
            # What its own API alone understands is sent to it all the same, and may be most of the answer.
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
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, ImagePart) or part.data is None:
            yield MEDIA_TOKENS
        elif (part.media_type or "").startswith("text/"):
            yield part.data.decode("utf-8", "replace")
        else:
            yield MEDIA_TOKENS * _file_units(part)


def _file_units(part: FilePart) -> int:
    return max(1, -(-len(part.data or b"") // _FILE_BYTES))


# --- choosing ----------------------------------------------------------------------------------------------------------


def check_limits(max_tokens: int | None, max_rounds: int | None) -> None:
    """Refuse limits under which nothing can be kept.

    Raises:
        ValueError: neither is given, or one is below 1; `TypeError` for what is no whole number.
    """
    if max_tokens is None and max_rounds is None:
        raise ValueError("a window takes max_tokens or max_rounds")
    for name, limit in (("max_tokens", max_tokens), ("max_rounds", max_rounds)):
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool)):
            raise TypeError(f"{name} is a whole number, not {limit!r}")
    if (max_tokens is not None and max_tokens < 1) or (max_rounds is not None and max_rounds < 1):
        raise ValueError(
            f"a window of {max_tokens} tokens and {max_rounds} rounds holds nothing; limits begin at 1"
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
    left = sum([costs[k] for k in sent])
    need = sum(costs)
    if need <= max_tokens and not first:
        return rounds, None
    for number, found in enumerate(rounds):
        within = need - left if number else need
        if number >= first and number:
            # A summary is made only where there is room for one; the longer it is, the less it leaves.
            said = summary_text(summary, items, rounds[number:]) if within <= max_tokens else None
            if within + (_counted(said, count) if said else 0) <= max_tokens:
                return rounds[number:], said
        if number < len(rounds) - 1:
            ours = enumerate(found.items, found.start)
            need -= sum([costs[k] for k, item in ours if k not in sent and not _stays(item, False)])
    last = rounds[-1] if rounds else TranscriptRound(0, ())
    takes = sum([costs[k] for k in range(last.start, last.start + len(last.items))])
    raise TranscriptError(
        f"a window of {max_tokens} tokens is too small: the last round alone takes {takes}, and what stays with it, such as "
        f"system messages, {max(0, need - takes)}{', without a summary' if summary else ''}; the transcript is unchanged"
    )


def summary_text(
    summary: Summary | None, items: Sequence[Item], kept: Sequence[TranscriptRound]
) -> str | None:
    """The summary of what is left out when only these rounds stay; `None` where nothing is.

    Raises:
        TypeError: `summary` is neither a text nor a function that gives one.
    """
    if summary is not None and not isinstance(summary, str) and not callable(summary):
        raise TypeError(f"summary is a text or a function of the dropped items, not {summary!r}")
    if summary is None or not (dropped := dropped_items(items, kept)):
        return None
    said = summary if isinstance(summary, str) else summary(dropped)
    if not isinstance(said, str):
        raise TypeError(f"summary takes the dropped items and gives a text, not {said!r}")
    return said


def dropped_items(items: Sequence[Item], kept: Sequence[TranscriptRound]) -> list[Item]:
    """What is left out when only these rounds stay; system messages aren't."""
    return [items[k] for k in _dropped(items, kept) if not _stays(items[k], False)]


def _dropped(items: Sequence[Item], kept: Sequence[TranscriptRound]) -> list[int]:
    stay = {k for found in kept for k in range(found.start, found.start + len(found.items))}
    return [k for k in range(head_of(items), len(items)) if k not in stay]


def _stays(item: Item, sent: bool) -> bool:
    """Whether an item of a dropped round is kept: what instructs the model, and what is pending for the next request."""
    if not isinstance(item, Message):
        return False
    # An instruction without a word can be sent only as it was read.
    return (item.ephemeral and not sent) or (_instructs(item) and bool(item.text.strip()))


def chosen_of(items: Sequence[Item], rounds: Iterable[TranscriptRound]) -> list[TranscriptRound]:
    """These rounds, each once and in their order.

    Raises:
        TranscriptError: one is no round of these items.
    """
    own = {found.start: found for found in rounds_of(items)}
    chosen: dict[int, TranscriptRound] = {}
    for found in rounds:
        if own.get(found.start) != found:
            raise TranscriptError(
                f"the round at {found.start} is none of this transcript; the transcript is unchanged"
            )
        chosen[found.start] = found
    return [chosen[start] for start in sorted(chosen)]


def selection(
    items: Sequence[Item],
    sent: Collection[int],
    kept: Sequence[TranscriptRound],
    summary: str | None,
) -> list[Item]:
    """The items of a transcript that has only these rounds, with a summary where the first ones were dropped.

    Signed reasoning is marked as dropped from there on, since it verifies only after the history it was made from.
    """
    stay = {k for found in kept for k in range(found.start, found.start + len(found.items))}
    head = head_of(items)
    chosen: list[Item] = list(items[:head])
    # What is kept of dropped rounds instructs the model from the start, so it stands with the other instructions.
    moved = [k for k in _dropped(items, kept) if _stays(items[k], k in sent)]
    chosen += [_said_anew(items[k]) for k in moved if _instructs(items[k])]
    # What stands before a turn is no longer what it was, as soon as anything is moved or left out.
    changed = len(chosen) > head
    for k in range(head, len(items)):
        item = items[k]
        if k in stay and k not in sent:
            if changed and isinstance(item, AssistantTurn) and item.signed:
                item = replace(item, reasoning_dropped=True)
            chosen.append(item)
            continue
        changed = True
        if k not in stay and summary:
            chosen.append(Message("user", (TextPart(summary),)))
            summary = None
        if k in moved and not _instructs(item):
            chosen.append(_said_anew(item))
    return chosen


def _said_anew(item: Item) -> Item:
    return (
        replace(item, verbatim=None)
        if isinstance(item, Message) and item.verbatim is not None
        else item
    )
