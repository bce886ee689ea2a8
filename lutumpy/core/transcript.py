"""The transcript: append-only, and valid at every moment.

Every call has exactly one result right after its turn, in order, so whatever a transcript holds can be sent, to any
provider (rule K5). Every change is made in one step, by `_write` (rule K3a); `transcript_state` says how.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, cast, get_args

from lutumpy.core import json_values, windows
from lutumpy.core.item_store import FailureKey, ItemStore, failure_key
from lutumpy.core.items import (
    Api,
    AssistantTurn,
    Item,
    Message,
    Part,
    Role,
    TextPart,
    ToolResults,
)
from lutumpy.core.parts import part_problem
from lutumpy.core.transcript_state import Draft, Receipt
from lutumpy.core.windows import Count, Summary, TranscriptRound
from lutumpy.errors import TranscriptError

_CALL_ID = attrgetter("call_id")


class Transcript(ItemStore):
    """A conversation: messages, assistant turns, and the results of their calls.

    `len()` and iteration give its items, ephemeral ones included as long as they are there. There is no call that edits
    or drops a committed item (rule R5); `fork()` gives an independent copy, `window()` one of its last rounds.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Transcript of {len(self)} items, {len(self.turns())} turns>"

    def turns(self) -> list[AssistantTurn]:
        """The committed assistant turns, in order."""
        return [item for item in self if isinstance(item, AssistantTurn)]

    @property
    def revision(self) -> int:
        """Counts the additions so far: equal numbers mean that nothing was added in between."""
        return self._state.revision

    @staticmethod
    def from_messages(
        api: Api,
        messages: Iterable[Any] | str,
        system: Any = None,
        *,
        server_held_prefix: bool | None = None,
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

    def _push(
        self, role: Role, content: str | Sequence[str | Part], *, ephemeral: bool = False
    ) -> None:
        self.append(Message(role, _parts(role, content), ephemeral))

    def append(self, message: Message) -> None:
        """Add a message. One that is kept as it stood in a history is taken as it is.

        Raises:
            TranscriptError: the provider of the last turn takes no text before the next one (rule R6), or there is no
                content.
        """
        if not isinstance(message, Message):
            raise TranscriptError(
                f"{type(message).__name__} is no message; turns and results are added by commit"
            )
        if message.verbatim is None:
            _check_parts(message.role, message.parts)
            self._refuse_text()
        if not message.ephemeral and not self._state.tail:
            self._write((message,))
            return
        draft = Draft(self._state)
        draft.add((message,))
        self._write(draft.settled, draft, added=True)

    def append_turn(
        self,
        turn: AssistantTurn,
        results: ToolResults | None = None,
        failures: Collection[FailureKey] = (),
        *,
        request: int | None = None,
        last: bool = False,
        receipt: Receipt | None = None,
    ) -> None:
        """Add an answer and the results of all its calls: both or nothing.

        Args:
            turn: The answer, with call ids that this transcript has not seen.
            results: One result for each answerable call, in call order; `None` when there is none.
            failures: The failed calls among them, as `failure_key` spells them.
            request: How many items the request held, when its success is part of the same change
                (`request_succeeded` otherwise).
            last: The tool loop is finished with this turn, though it has calls.
            receipt: Tells its holder whether the turn was added.

        Raises:
            TranscriptError: the results don't match the calls, or an id was used before; nothing was added.
        """
        ids = [call.id for call in turn.calls if call.position >= 0]
        given = list(map(_CALL_ID, results.results)) if results is not None else []
        if ids != given:
            raise TranscriptError(
                f"the turn's calls {ids} and the results {given} don't match; the transcript is unchanged"
            )
        # The index nearly always has none of them.
        known = self._id_index.keys() & ids
        if ids and ("" in ids or len(set(ids)) != len(ids) or (known and self._uses_any(known))):
            raise TranscriptError(
                "a call id is empty, repeated, or was used before; the transcript is unchanged"
            )
        items: Sequence[Item] = (turn, cast("ToolResults", results)) if ids else (turn,)
        draft: Draft | None = None
        if self._state.tail:
            draft = Draft(self._state)
            if request is not None:
                draft.answered(turn, self._state.tail[: max(0, request - self._state.stable)])
            draft.add(items)
            draft.turn_added(turn, last=last)
            items = draft.settled
        failed = [(key, 1) for key in failures] if failures else ()
        usages = () if request is None else (turn.usage,)
        self._write(
            items, draft, added=True, ids=ids, failures=failed, usages=usages, receipt=receipt
        )

    def discard_open(self) -> None:
        """Go on without the rounds that were dropped open, so that requests are made again (rule C7a).

        A round that something still holds stays open. Nothing happens where no round was dropped.
        """
        if self.dropped:
            self.turn_discarded()
            self.dropped.clear()

    def _refuse_text(self) -> None:
        turn = self._last_turn_or_none()
        if turn is not None and turn.results_only:
            raise TranscriptError(
                "the last turn left a tool of the provider running; it takes no text before the next turn, "
                "so make that turn first; the transcript is unchanged"
            )

    def _last_turn_or_none(self) -> AssistantTurn | None:
        state = self._state
        before = islice(reversed(self._stable), len(self._stable) - state.stable, None)
        for item in chain(reversed(state.tail), before):
            # An answer without content is sent to nobody, so what holds is what stood before it.
            if isinstance(item, ToolResults) or (isinstance(item, AssistantTurn) and item.empty):
                continue
            return item if isinstance(item, AssistantTurn) else None
        return None

    # --- copies ----------------------------------------------------------------------------------------------------

    def fork(self) -> Transcript:
        """An independent transcript with the same items; rounds read against this one are stale there.

        It has no mark of rounds that were dropped here.
        """
        state = self._state
        twin = Transcript()
        twin._stable = self._stable[: state.stable]
        twin._ids = self._ids[: state.ids]
        twin._id_index = self._id_index.copy()
        twin._failed = self._failed[: state.failures]
        twin._encoders = {
            key: (encoder.copy(), upto) for key, (encoder, upto) in self._encoders.items()
        }
        twin._state = state._replace(answers=0, receipt=None)
        return twin

    # --- rounds ----------------------------------------------------------------------------------------------------

    def rounds(self, last: int | None = None) -> list[TranscriptRound]:
        """The whole rounds, in order: each begins with what the user says after an answer, and ends before the next one.

        Leading system and developer messages belong to none; what is pushed in the middle belongs to the round it stands in.

        Args:
            last: How many of the last ones; all when left out.
        """
        found = windows.rounds_of(self._items())
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
        kept, said = windows.fitting(
            self._items(), self._sent(), max_tokens, max_rounds, count, summary
        )
        return self._selected(kept, said)

    def select(
        self, rounds: Iterable[TranscriptRound], *, summary: Summary | None = None
    ) -> Transcript:
        """A new transcript of some whole rounds of this one, which stays as it is; in their order here.

        What holds of system messages, ephemeral ones, reasoning and ids is what `window` says.

        Args:
            rounds: Which; they come from `rounds()` of this transcript.
            summary: A user message in place of the first that was dropped, as in `window`.

        Raises:
            TranscriptError: one is no round of this transcript.
        """
        chosen = windows.chosen_of(self._items(), rounds)
        return self._selected(chosen, windows.summary_text(summary, self._items(), chosen))

    def _selected(self, kept: Sequence[TranscriptRound], summary: str | None) -> Transcript:
        items = self._items()
        if sum([len(found.items) for found in kept]) == len(items) - windows.head_of(items):
            return self.fork()
        made = Transcript()
        made._extend(windows.selection(items, self._sent(), kept, summary))
        return made

    def _sent(self) -> frozenset[int]:
        """The indexes of the ephemeral messages that were part of a successful request."""
        state = self._state
        found = [
            k
            for k, item in enumerate(state.tail, state.stable)
            if getattr(item, "ephemeral", False)
        ]
        return frozenset(found[: state.sent])

    def _extend(self, items: Iterable[Item]) -> None:
        """Add items of another transcript, to one that is being made."""
        turn: AssistantTurn | None = None
        for item in items:
            if isinstance(item, ToolResults):
                assert turn is not None, "results stand after their turn"
                calls = [call for call in turn.calls if call.answerable]
                failed = [c for c, r in zip(calls, item.results, strict=True) if r.status != "ok"]
                self.append_turn(
                    turn, item, [failure_key(call.name, call.arguments) for call in failed]
                )
            elif isinstance(item, Message):
                self.append(item)
            elif not any(call.answerable for call in item.calls):
                self.append_turn(item)
            turn = item if isinstance(item, AssistantTurn) else None


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
        if (problem := part_problem(part)) is not None:
            raise TranscriptError(f"{problem}; the transcript is unchanged")
        if role != "user" and not isinstance(part, TextPart):
            raise TranscriptError(f"a {role} message takes text only; the transcript is unchanged")
    if not any(not isinstance(p, TextPart) or p.text.strip() for p in parts):
        raise TranscriptError(
            f"a {role} message needs content: providers refuse empty texts; the transcript is unchanged"
        )
