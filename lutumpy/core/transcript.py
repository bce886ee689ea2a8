"""The transcript: append-only, and valid at every moment.

Every call has exactly one result right after its turn, in order, so whatever a transcript holds can be sent, to any
provider (rule K5). All change goes through `_append`; what an edit must not break is asked in one place, `_refuse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast, get_args

from lutumpy.core import json_values, windows
from lutumpy.core.call_ids import TakenIds
from lutumpy.core.encoding import ItemEncoder
from lutumpy.core.items import (
    Api,
    AssistantTurn,
    FilePart,
    ImagePart,
    Item,
    Message,
    Part,
    Role,
    TextPart,
    ToolResults,
)
from lutumpy.core.windows import Count, Summary, TranscriptRound
from lutumpy.errors import TranscriptError

E = TypeVar("E", bound=ItemEncoder)

FailureKey = tuple[str, str]


class Transcript:
    """A conversation: messages, assistant turns, and the results of their calls.

    `len()` and iteration give its items, ephemeral ones included as long as they are there. There is no call that edits
    or drops a committed item (rule R5); `fork()` gives an independent copy, `window()` one of its last rounds.
    """

    __slots__ = ("_encoders", "_failures", "_held", "_ids", "_items", "_revision", "_tail_sent", "_tail_start")

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._ids: set[str] = set()
        self._failures: dict[FailureKey, int] = {}
        self._encoders: dict[str, tuple[ItemEncoder, int]] = {}
        # Counts every addition, so that a round can tell whether anything was added since it began.
        self._revision = 0
        # Where the first ephemeral stands. What comes before is there to stay, so its encoding is kept.
        self._tail_start: int | None = None
        # How many ephemerals have been part of a successful request; only those may leave.
        self._tail_sent = 0
        # A committed turn was signed over the ephemerals: they stay until its tool loop is finished (rule S4).
        self._held = False

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __getitem__(self, index: int) -> Item:
        return self._items[index]

    def __repr__(self) -> str:
        return f"<Transcript of {len(self._items)} items, {len(self.turns())} turns>"

    def turns(self) -> list[AssistantTurn]:
        """The committed assistant turns, in order."""
        return [item for item in self._items if isinstance(item, AssistantTurn)]

    @property
    def revision(self) -> int:
        """Counts the additions so far: equal numbers mean that nothing was added in between."""
        return self._revision

    @staticmethod
    def from_messages(
        api: Api, messages: Iterable[Any] | str, system: Any = None, *, server_held_prefix: bool | None = None
    ) -> Transcript:
        """The transcript of a history that another program made; it goes on like any other.

        The API that it comes from gets every entry back unchanged, `messages` of its adapter gives them; another API is
        sent what it can be told: texts, images, files, calls and results. Ids of its calls count as used.

        Args:
            api: Whose history it is: `openai_chat`, `openai_responses` or `anthropic_messages`.
            messages: The request's `messages` (`input`): JSON objects, objects of the SDK, or both mixed.
            system: The request's `system` (`instructions`); for Chat Completions a text to begin with.
            server_held_prefix: For Responses: the conversation's start is at the server (`previous_response_id`,
                `conversation`), so that outputs may answer calls which aren't here. When left out, that is taken for
                granted of an input that is nothing but outputs.

        Raises:
            TranscriptError: it is no history of this API, or some call has no result, or some result no call. The message
                names every place, `problems` what the provider says of it; `propose_repairs` finds how to mend it.
        """
        if api == "openai_chat":
            from lutumpy.adapters.openai.chat.read import read_chat

            return read_chat(messages, system)
        if api == "openai_responses":
            from lutumpy.adapters.openai.responses.read import read_responses

            return read_responses(messages, system, server_held_prefix=server_held_prefix)
        if api == "anthropic_messages":
            from lutumpy.adapters.anthropic.read import read_messages

            return read_messages(messages, system)
        raise TranscriptError(f"{api!r} is none of {', '.join(get_args(Api))}; nothing was read")

    # --- additions -------------------------------------------------------------------------------------------------

    def push_system(self, content: str | Sequence[str | Part]) -> None:
        """Add a system message."""
        self._push("system", content)

    def push_developer(self, content: str | Sequence[str | Part]) -> None:
        """Add a developer message; where an API has no such role it is sent as a system message."""
        self._push("developer", content)

    def push_user(self, content: str | Sequence[str | Part]) -> None:
        """Add a user message: a text, or parts (texts, images, files)."""
        self._push("user", content)

    def push_assistant(self, content: str | Sequence[str | Part]) -> None:
        """Add an assistant message that no model wrote here: an example, or the beginning of an answer."""
        self._push("assistant", content)

    def push_ephemeral_system(self, content: str | Sequence[str | Part]) -> None:
        """Add a system message for the next request only (rule S4)."""
        self._push("system", content, ephemeral=True)

    def push_ephemeral_developer(self, content: str | Sequence[str | Part]) -> None:
        """Add a developer message for the next request only (rule S4)."""
        self._push("developer", content, ephemeral=True)

    def push_ephemeral_user(self, content: str | Sequence[str | Part]) -> None:
        """Add a user message for the next request only (rule S4)."""
        self._push("user", content, ephemeral=True)

    def push_ephemeral_assistant(self, content: str | Sequence[str | Part]) -> None:
        """Add an assistant message for the next request only (rule S4)."""
        self._push("assistant", content, ephemeral=True)

    def _push(self, role: Role, content: str | Sequence[str | Part], *, ephemeral: bool = False) -> None:
        self.append(Message(role, _parts(role, content), ephemeral))

    def append(self, message: Message) -> None:
        """Add a message. One that is kept as it stood in a history is taken as it is.

        Raises:
            TranscriptError: the provider of the last turn takes no text before the next one (rule R6), or there is no
                content.
        """
        if not isinstance(message, Message):
            raise TranscriptError(f"{type(message).__name__} is no message; turns and results are added by commit")
        if message.verbatim is None:
            _check_parts(message.role, message.parts)
            self._refuse_text()
        if message.ephemeral and self._tail_start is None:
            self._tail_start = len(self._items)
        self._items.append(message)
        self._revision += 1

    def append_turn(
        self, turn: AssistantTurn, results: ToolResults | None = None, failures: Iterable[FailureKey] = ()
    ) -> None:
        """Add an answer and the results of all its calls: both or nothing.

        Args:
            turn: The answer, with call ids that this transcript has not seen.
            results: One result for each answerable call, in call order; `None` when there is none.
            failures: The failed calls among them, as `failure_key` spells them.

        Raises:
            TranscriptError: the results don't match the calls, or an id was used before; nothing was added.
        """
        ids = [call.id for call in turn.calls if call.position >= 0]
        given = [result.call_id for result in results.results] if results is not None else []
        if ids != given:
            raise TranscriptError(
                f"the turn's calls {ids} and the results {given} don't match; the transcript is unchanged"
            )
        used = self._ids
        fresh = set(ids)
        if len(fresh) != len(ids) or "" in fresh or not fresh.isdisjoint(used):
            raise TranscriptError("a call id is empty, repeated, or was used before; the transcript is unchanged")
        self._items.append(turn)
        if ids:
            self._items.append(cast("ToolResults", results))
            used |= fresh
        for key in failures:
            self._failures[key] = self._failures.get(key, 0) + 1
        self._revision += 1
        if self._tail_sent:
            self._held = self._held or turn.signed
            if not turn.calls and turn.finish_reason != "paused":
                self.release_ephemerals()

    def _refuse_text(self) -> None:
        turn = self._last_turn_or_none()
        if turn is not None and turn.results_only:
            raise TranscriptError(
                "the last turn left a tool of the provider running; it takes no text before the next turn, "
                "so make that turn first; the transcript is unchanged"
            )

    def _last_turn_or_none(self) -> AssistantTurn | None:
        for item in reversed(self._items):
            # An answer without content is sent to nobody, so what holds is what stood before it.
            if isinstance(item, ToolResults) or (isinstance(item, AssistantTurn) and item.empty):
                continue
            return item if isinstance(item, AssistantTurn) else None
        return None

    # --- what rounds need ------------------------------------------------------------------------------------------

    def fresh_ids(self, turn: AssistantTurn) -> AssistantTurn:
        """`turn`, with new ids for calls whose id is missing, repeated, or already used here (rule C6).

        Fresh ids are counted, and nine letters and digits long: every API takes those.
        """
        calls = turn.calls
        taken = TakenIds()
        for call in calls:
            if not call.id or call.id in self._ids or call.id in taken:
                break
            taken.add(call.id)
        else:
            if "".join(taken).isascii():
                return turn
        taken = TakenIds()
        fresh: dict[int, str] = {}
        for index, call in enumerate(calls):
            wanted = self.fresh_id(call.id, taken)
            if wanted != call.id:
                fresh[index] = wanted
            taken.add(wanted)
        return turn.with_ids(fresh) if fresh else turn

    def fresh_id(self, wanted: str, taken: TakenIds) -> str:
        """`wanted`, or a new id when that is empty or was used here or by an earlier call of the answer (`taken`).

        Only earlier calls count, so that a call of a stream has its id before the next one arrives. Lone surrogates, which
        no provider takes, are replaced.
        """
        return taken.fresh(wanted, self._ids)

    def failures(self, name: str, arguments: str) -> int:
        """How often a call of this tool with the same arguments already failed here."""
        return self._failures.get(failure_key(name, arguments), 0) if self._failures else 0

    def request_succeeded(self, turn: AssistantTurn, length: int) -> int:
        """Drop the ephemerals that were sent, or keep them while reasoning is signed over them (rule S4).

        Args:
            turn: The answer.
            length: How many items the request held; ephemerals added since then were not sent.

        Returns:
            How many of those items are still there.
        """
        start = self._tail_start
        if start is None or start >= length:
            return length
        sent = sum([1 for item in self._items[start:length] if isinstance(item, Message) and item.ephemeral])
        self._tail_sent = sent
        if self._held or turn.signed:
            return length
        self.release_ephemerals()
        return length - sent

    def turn_discarded(self) -> None:
        """An answer that would have kept the ephemerals is not going to be committed."""
        if self._tail_sent and not self._held:
            self.release_ephemerals()

    def release_ephemerals(self) -> None:
        """Drop every ephemeral that was sent, and with it the reasoning signed over it."""
        start = self._tail_start
        if start is None:
            return
        kept: list[Item] = []
        left = self._tail_sent
        tail_start: int | None = None
        for item in self._items[start:]:
            if isinstance(item, Message) and item.ephemeral:
                if left:
                    left -= 1
                    continue
                if tail_start is None:
                    tail_start = start + len(kept)
            elif isinstance(item, AssistantTurn) and item.signed:
                item = replace(item, reasoning_dropped=True)
            kept.append(item)
        self._items[start:] = kept
        self._tail_start, self._tail_sent, self._held = tail_start, 0, False

    def encoded(self, key: str, make: Callable[[], E]) -> E:
        """The encoder `key`, fed with every item; to be read, not changed.

        What is there to stay is encoded once and kept; ephemerals and what follows them go into a copy.
        """
        items = self._items
        count = len(items)
        stable = count if self._tail_start is None else self._tail_start
        kept = self._encoders.get(key)
        encoder: Any
        encoder, upto = (make(), 0) if kept is None else kept
        if upto < stable:
            for index in range(upto, stable):
                encoder.add(items[index])
            self._encoders[key] = (encoder, stable)
        if stable == count:
            return cast("E", encoder)
        tail: E = encoder.copy()
        for index in range(stable, len(items)):
            tail.add(items[index])
        return tail

    def committed(self, length: int) -> int:
        """How many of the first `length` items are there to stay, ephemerals not counted."""
        start = self._tail_start
        if start is None or start >= length:
            return length
        return length - sum([1 for item in self._items[start:length] if isinstance(item, Message) and item.ephemeral])

    def same_prefix(self, other: Transcript, length: int) -> bool:
        """Whether `other` begins with the first `length` items of this one."""
        if other is self:
            return True
        if len(other) < length:
            return False
        return all(a is b or a == b for a, b in zip(self._items[:length], other._items[:length], strict=True))

    # --- copies ----------------------------------------------------------------------------------------------------

    def fork(self) -> Transcript:
        """An independent transcript with the same items; rounds read against this one are stale there."""
        twin = Transcript()
        twin._items = self._items.copy()
        twin._ids = self._ids.copy()
        twin._failures = self._failures.copy()
        twin._encoders = {key: (encoder.copy(), upto) for key, (encoder, upto) in self._encoders.items()}
        twin._revision = self._revision
        twin._tail_start, twin._tail_sent, twin._held = self._tail_start, self._tail_sent, self._held
        return twin

    def with_tail(self, items: Sequence[Message | AssistantTurn]) -> Transcript:
        """This transcript, which holds no ephemerals, and `items` behind it, for one request: to be read, not changed.

        What is encoded of this one is kept here; of the others nothing is.
        """
        longer = Transcript()
        longer._items = [*self._items, *items]
        longer._encoders = self._encoders
        longer._tail_start = len(self._items)
        return longer

    # --- rounds ----------------------------------------------------------------------------------------------------

    def rounds(self, last: int | None = None) -> list[TranscriptRound]:
        """The whole rounds, in order: each begins with what the user says after an answer, and ends before the next one.

        Leading system and developer messages belong to none; what is pushed in the middle belongs to the round it stands in.

        Args:
            last: How many of the last ones; all when left out.
        """
        found = windows.rounds_of(self._items)
        return found if last is None else found[max(0, len(found) - last) :]

    def window(
        self,
        max_tokens: int | None = None,
        *,
        max_rounds: int | None = None,
        count: Count = windows.estimated_tokens,
        summary: Summary | None = None,
    ) -> Transcript:
        """A new transcript of the last whole rounds that fit; this one stays as it is.

        System and developer messages are kept, those of dropped rounds with the leading ones; so are ephemeral messages that
        no request has sent. When anything is dropped, reasoning that was signed over it is left out of requests (rule
        R5), and ephemeral messages that were kept for its sake leave. Call ids and failures are those of the rounds in it.

        Args:
            max_tokens: The budget for all that is kept, the summary included. What the provider adds (names of tools, marks
                between messages) and the tools themselves aren't counted.
            max_rounds: How many rounds at most.
            count: Gives the number of tokens of a text: arguments, results, and what only its own API understands are texts
                too. By default one for each four bytes. An image counts 1,600; a file as much for each 50,000 bytes begun.
            summary: A user message in place of what was dropped: its text, or a function of the dropped items that gives the
                text, called again with more of them when its text leaves too little room. Nothing dropped, no summary.

        Raises:
            TranscriptError: the last round alone doesn't fit; the message says what it takes.
            ValueError: neither limit is given, or one is below 1.
            TypeError: a limit is no whole number, `count` gives none, or `summary` is no text and gives none.
        """
        windows.check_limits(max_tokens, max_rounds)
        kept, said = windows.fitting(self._items, self._sent(), max_tokens, max_rounds, count, summary)
        return self._selected(kept, said)

    def select(self, rounds: Iterable[TranscriptRound], *, summary: Summary | None = None) -> Transcript:
        """A new transcript of some whole rounds of this one, which stays as it is; in their order here.

        What holds of system messages, ephemeral ones, reasoning and ids is what `window` says.

        Args:
            rounds: Which; they come from `rounds()` of this transcript.
            summary: A user message in place of the first that was dropped, as in `window`.

        Raises:
            TranscriptError: one is no round of this transcript.
        """
        chosen = windows.chosen_of(self._items, rounds)
        return self._selected(chosen, windows.summary_text(summary, self._items, chosen))

    def _selected(self, kept: Sequence[TranscriptRound], summary: str | None) -> Transcript:
        if sum([len(found.items) for found in kept]) == len(self._items) - windows.head_of(self._items):
            return self.fork()
        made = Transcript()
        made._extend(windows.selection(self._items, self._sent(), kept, summary))
        return made

    def _sent(self) -> frozenset[int]:
        """The indexes of the ephemeral messages that were part of a successful request."""
        start = self._tail_start
        if start is None or not self._tail_sent:
            return frozenset()
        found = [k for k in range(start, len(self._items)) if getattr(self._items[k], "ephemeral", False)]
        return frozenset(found[: self._tail_sent])

    def _extend(self, items: Iterable[Item]) -> None:
        """Add items of another transcript, to one that is being made."""
        turn: AssistantTurn | None = None
        for item in items:
            if isinstance(item, ToolResults):
                assert turn is not None, "results stand after their turn"
                calls = [call for call in turn.calls if call.answerable]
                failed = [c for c, r in zip(calls, item.results, strict=True) if r.status != "ok"]
                self.append_turn(turn, item, [failure_key(call.name, call.arguments) for call in failed])
            elif isinstance(item, Message):
                self.append(item)
            elif not any(call.answerable for call in item.calls):
                self.append_turn(item)
            turn = item if isinstance(item, AssistantTurn) else None

    def _state(self) -> Mapping[str, Any]:
        """What a dump holds beside the items."""
        return {
            "failures": [[name, arguments, count] for (name, arguments), count in self._failures.items()],
            "ephemerals_sent": self._tail_sent,
            "held": self._held,
        }

    def _restore(self, failures: dict[FailureKey, int], sent: int, held: bool) -> None:
        self._failures, self._tail_sent, self._held = failures, sent, held


def failure_key(name: str, arguments: str) -> FailureKey:
    """What makes two failed calls the same: the tool, and its arguments as a JSON value."""
    return name, json_values.canonical_arguments(arguments)


def _parts(role: Role, content: str | Sequence[str | Part]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(json_values.clean_text(content)),)
    if isinstance(content, Mapping) or not isinstance(content, Iterable):
        raise TranscriptError(
            f"a {role} message takes a text or a list of parts, not {type(content).__name__}; the transcript is unchanged"
        )
    parts = tuple([_part(part) for part in content])
    return tuple([p for p in parts if not isinstance(p, TextPart) or p.text])


def _part(part: str | Part) -> Part:
    text = part.text if isinstance(part, TextPart) else part
    return TextPart(json_values.clean_text(text)) if isinstance(text, str) else text


def _check_parts(role: Role, parts: tuple[Part, ...]) -> None:
    for part in parts:
        if not isinstance(part, (TextPart, ImagePart, FilePart)):
            raise TranscriptError(f"{type(part).__name__} is no content part; the transcript is unchanged")
        if role != "user" and not isinstance(part, TextPart):
            raise TranscriptError(f"a {role} message takes text only; the transcript is unchanged")
    if not any(not isinstance(p, TextPart) or p.text.strip() for p in parts):
        raise TranscriptError(
            f"a {role} message needs content: providers refuse empty texts; the transcript is unchanged"
        )
