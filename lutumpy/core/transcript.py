"""The transcript: append-only, and valid at every moment.

Every call has exactly one result, right after its turn and in order, so a transcript can be sent to
any provider at any time (rule K5). Every change happens in one step, `ItemStore._write` (rule K3a);
`transcript_state` explains how.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from lutumpy.apis import api_names, serving
from lutumpy.core import windows
from lutumpy.core.digests import Digests
from lutumpy.core.head import Head
from lutumpy.core.item_store import FailureKey, ItemStore, failure_key
from lutumpy.core.items import Api, AssistantTurn, Item, Message, Part, Role, ToolResults
from lutumpy.core.parts import check_message_parts, read_message_parts
from lutumpy.core.transcript_state import Draft, Receipt
from lutumpy.core.turn_origin import TurnOrigin
from lutumpy.core.windows import Count, Summary, TranscriptRound
from lutumpy.errors import TranscriptError

if TYPE_CHECKING:
    from lutumpy.core.promises import PromisedCall
    from lutumpy.core.turn_settings import TurnSettings

_CALL_ID = attrgetter("call_id")


class Transcript(ItemStore):
    """A conversation: messages, assistant turns, and the results of their calls.

    `len()` and iteration give its items, including ephemeral ones while they last. No method edits
    or drops a committed item (rule R5). `fork()` makes an independent copy, `window()` one of the
    last rounds.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Transcript of {len(self)} items, {len(self.turns())} turns>"

    def turns(self) -> list[AssistantTurn]:
        """The committed assistant turns, in order."""
        return [item for item in self if isinstance(item, AssistantTurn)]

    @property
    def settings(self) -> tuple[TurnSettings, ...]:
        """What was in force, in order: first all of it, then what changed with later turns.

        Each is of the turn that answered it (rule PB1), or was read from a history (rule PB18).
        """
        from lutumpy.core.settings_records import records_of  # rarely asked for

        return tuple(records_of(self))

    @property
    def revision(self) -> int:
        """The number of additions so far. If it is unchanged, nothing was added in between."""
        return self._state.revision

    @staticmethod
    def from_messages(
        api: Api,
        messages: Iterable[Any] | str,
        system: Any = None,
        *,
        server_held_prefix: bool | None = None,
        host: str | None = None,
        model: str | None = None,
        tools: Sequence[Any] | None = None,
    ) -> Transcript:
        """Read a history that another program made; the transcript can be continued like any other.

        The API that it comes from gets every entry back unchanged (`messages` of its adapter gives
        them). Another API is sent what it understands: texts, images, files, calls and results. Ids
        of its calls count as used.

        Args:
            api: Whose history it is, by its name in `lutumpy.apis`, as `openai_chat`.
            messages: The request's `messages` (`input`): JSON objects, objects of the SDK, or both
                mixed.
            system: The request's `system` (`instructions`); for Chat Completions a text to begin
                with.
            server_held_prefix: For Responses: the server holds the start of the conversation
                (`previous_response_id`, `conversation`), so outputs may answer calls that aren't
                here. If omitted, this is assumed for an input that consists of outputs only.
            host: The host whose model said the answers: its name or address, as
                `lutumpy.doctor.host_name` takes it. What is that host's own, or sealed for it, goes
                back to it alone. If omitted, the host isn't known: then it goes to any with the
                same model.
            model: The model that said the answers.
            tools: The request's `tools`. With them, what the history says of settings is read too:
                the next request keeps these tools, and says only what is different. Those that the
                provider runs are given with each request, as before. If omitted, a history that
                changes tools which it doesn't define says nothing of what is in force.

        Raises:
            ValueError: `host` is neither a known name nor an address.
            TranscriptError: it is not a history of this API, a call has no result, or a result has
                no call. The message names every place, `problems` what the provider would say;
                `propose_repairs` finds how to mend it.
        """
        if api not in (known := api_names()):
            raise TranscriptError(f"{api!r} is none of {', '.join(known)}; nothing was read")
        origin = None
        if host is not None or model is not None:
            from lutumpy.rules.hosts import host_name  # most histories name no host

            origin = TurnOrigin(api, None if host is None else host_name(host), model)
        read = serving(api, "reader")
        options: dict[str, Any] = {"server_held_prefix": server_held_prefix}
        if tools is not None:
            options["tools"] = tools
        transcript: Transcript = read(messages, system, **options)
        if origin is not None:
            for turn in transcript.turns():
                object.__setattr__(turn, "origin", origin)  # nobody has seen these turns yet
        return transcript

    # --- additions --------------------------------------------------------------------------------

    def push_system(self, content: str | Sequence[str | Part]) -> None:
        """Add a system message."""
        self._push("system", content)

    def push_developer(self, content: str | Sequence[str | Part]) -> None:
        """Add a developer message; an API without this role is sent a system message."""
        self._push("developer", content)

    def push_user(self, content: str | Sequence[str | Part]) -> None:
        """Add a user message: a text, or parts (texts, images, files)."""
        self._push("user", content)

    def push_assistant(self, content: str | Sequence[str | Part]) -> None:
        """Add an assistant message that no model wrote, such as an example."""
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
        self.append(Message(role, read_message_parts(role, content), ephemeral))

    def append(self, message: Message) -> None:
        """Add a message. A message that was read from a history is taken as it is.

        Raises:
            TranscriptError: the provider of the last turn accepts no text before the next turn
                (rule R6), or the message has no content. The transcript is unchanged.
        """
        if not isinstance(message, Message):
            raise TranscriptError(
                f"{type(message).__name__} is not a message; turns and results are added by commit"
            )
        if message.late is not None:
            self.append_late((message,))
            return
        self._append(message, asks_rules=True)

    def _append(self, message: Message, *, asks_rules: bool) -> None:
        """Add a message; one of a dump without asking the rules of an API about its parts: what
        this release knows to be refused was taken by the one that wrote it, and is sent as text.
        """
        if message.verbatim is None:
            check_message_parts(message.role, message.parts, asks_rules=asks_rules)
            self._refuse_text()
        if not message.ephemeral and not self._state.tail:
            self._write((message,))
            return
        draft = Draft(self._state)
        draft.add((message,))
        self._write(draft.settled, draft, added=True)

    def append_late(self, messages: Sequence[Message], *, counted: bool = True) -> None:
        """Add late items: all of them or none. Their calls aren't open any more.

        Args:
            messages: Late items, as `late_message` makes them.
            counted: Whether those that failed count as failures of their calls; those of a dump
                were counted before.

        Raises:
            TranscriptError: one answers a call that isn't open, or the provider of the last turn
                accepts no text before the next turn (rule R6). Nothing was added.
        """
        from lutumpy.core.promises import check_late, without_call  # few calls stay open

        open_calls = self._state.open
        answered = check_late(messages, open_calls)
        for message in messages:
            if message.verbatim is None:
                check_message_parts(message.role, message.parts, asks_rules=counted)
        self._refuse_text()
        failures = [
            (failure_key(call.name, call.arguments), 1)
            for call, result in answered
            if counted and result.status not in ("ok", "promised")
        ]
        draft = Draft(self._state)
        draft.add(messages)
        left = without_call(open_calls, [call.call_id for call, _ in answered])
        self._write(draft.settled, draft, failures=failures, open_calls=left)

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
            results: One result for each answerable call, in call order; `None` if there are none.
            failures: The calls among them that failed, as `failure_key` gives them.
            request: How many items the request held, if its success is part of the same change
                (`request_succeeded` otherwise).
            last: The tool loop ends with this turn, although it has calls.
            receipt: Tells its holder whether the turn was added.

        Raises:
            TranscriptError: the results don't match the calls, or an id was used before; nothing
                was added.
        """
        ids = [call.id for call in turn.calls if call.position >= 0]
        answered_ids = list(map(_CALL_ID, results.results)) if results is not None else []
        if ids != answered_ids:
            raise TranscriptError(
                f"the turn's calls {ids} and the results {answered_ids} don't match; "
                "the transcript is unchanged"
            )
        # One look at the index settles nearly every turn: it seldom knows any of the ids.
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
        opened: tuple[PromisedCall, ...] | None = None
        for result in () if results is None else results.results:
            if result.status == "promised" and opened is None:
                from lutumpy.core.promises import promised_calls

                opened = (*self._state.open, *promised_calls(turn, cast("ToolResults", results)))
        failed = [(key, 1) for key in failures] if failures else ()
        usages = () if request is None else (turn.usage,)
        self._write(
            items,
            draft,
            added=True,
            ids=ids,
            failures=failed,
            usages=usages,
            receipt=receipt,
            open_calls=opened,
        )

    def digests(self) -> Digests:
        """The digests of its committed items; read them, don't change them."""
        return self.encoded("digest", Digests)

    @property
    def head(self) -> Head:
        """Its position: equal heads mean equal committed content."""
        return self.digests().head()

    @property
    def answered(self) -> bool:
        """Whether nothing is left to ask: it ends in a finished answer that wasn't paused."""
        last = self[-1] if len(self) else None
        if isinstance(last, ToolResults):
            # The value of a structured turn may come as a call, whose result ends the answer.
            from lutumpy.core.value_calls import received_value

            before = self[-2] if len(self) > 1 else None
            return isinstance(before, AssistantTurn) and received_value(before, last) is not None
        return (
            isinstance(last, AssistantTurn)
            and last.finish_reason != "paused"
            and not last.results_only
        )

    def committed_items(self, start: int) -> list[Item]:
        """The committed items from the one at `start` on; ephemeral messages aren't among them."""
        state = self._state
        tail = [i for i in state.tail if not (isinstance(i, Message) and i.ephemeral)]
        if start >= state.stable:
            return tail[start - state.stable :]
        return [*self._stable[start : state.stable], *tail]

    def has_turn(self, turn: AssistantTurn, start: int) -> bool:
        """Whether this very answer is here already, from index `start` on: a plan that was written
        down may have been taken up twice.
        """
        for item in self._items()[start:]:
            if not isinstance(item, AssistantTurn) or item.api != turn.api:
                continue
            if None not in (turn.response_id, item.response_id):
                if item.response_id == turn.response_id:
                    return True
            elif item.native == turn.native:
                return True
        return False

    def discard_open(self) -> None:
        """Continue without the rounds that were dropped open, so that requests are possible again
        (rule C7a).

        A round that the program still holds stays open. If no round was dropped, nothing happens.
        """
        if self.dropped:
            self.turn_discarded()
            self.dropped.clear()

    def _refuse_text(self) -> None:
        """Raise if the provider of the last turn accepts no text now (rule R6)."""
        turn = self._last_turn_or_none()
        if turn is not None and turn.results_only:
            raise TranscriptError(
                "the last turn left a tool of the provider running; it takes no text before the "
                "next turn, so make that turn first; the transcript is unchanged"
            )

    def _last_turn_or_none(self) -> AssistantTurn | None:
        state = self._state
        # The list may hold more than counts, left by a change that was interrupted: skip that.
        before = islice(reversed(self._stable), len(self._stable) - state.stable, None)
        for item in chain(reversed(state.tail), before):
            # An answer without content is never sent, so the turn before it decides.
            if isinstance(item, ToolResults) or (isinstance(item, AssistantTurn) and item.empty):
                continue
            return item if isinstance(item, AssistantTurn) else None
        return None

    # --- copies -----------------------------------------------------------------------------------

    def fork(self) -> Transcript:
        """Make an independent transcript with the same items. Rounds of this one are stale there.

        Rounds that were dropped here are not marked there.
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
        twin.sent_requests = self.sent_requests.copy()
        # Its answer may be read here, there or in both.
        if (noted := self._open_note()) is not None:
            twin.note_request(noted[0], noted[1].for_fork(twin.sent_requests))
        twin._state = state._replace(answers=0, receipt=None)
        return twin

    # --- rounds -----------------------------------------------------------------------------------

    def rounds(self, last: int | None = None) -> list[TranscriptRound]:
        """The whole rounds, in order. A round begins with what the user says after an answer.

        Leading system and developer messages belong to no round; those in the middle belong to the
        round around them.

        Args:
            last: Only the last so many; all if omitted.
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
        """Make a transcript of the last whole rounds that fit; this one is unchanged.

        System and developer messages are kept (those of dropped rounds move to the leading ones),
        and so are ephemeral messages that have not been sent. If anything is dropped, reasoning
        signed over it is left out of requests (rule R5), and ephemeral messages that were kept for
        that reasoning leave. Call ids and failures are those of the kept rounds.

        Args:
            max_tokens: The budget in tokens for everything kept, the summary included. Not counted:
                the tools, and what the provider adds (names of tools, marks between messages).
            max_rounds: How many rounds at most.
            count: Counts the tokens of a text. Arguments, results and content that only its own API
                understands are counted as texts. Default: one token for four bytes. An image counts
                1,600 tokens; a file 1,600 for each 50,000 bytes or part of them.
            summary: A user message that replaces what was dropped: a text, or a function that makes
                one of the dropped items. It is called again with more of them if its text leaves
                too little room. Not used if nothing is dropped.

        Raises:
            TranscriptError: the last round alone doesn't fit; the message says what it needs.
            ValueError: neither limit is given, or one is below 1.
            TypeError: a limit or the result of `count` isn't a whole number, or `summary` neither
                is nor returns a text.
        """
        windows.check_limits(max_tokens, max_rounds)
        kept, summary_text = windows.fitting(
            self._items(), self._sent_ephemerals(), max_tokens, max_rounds, count, summary
        )
        return self._with_rounds(kept, summary_text)

    def select(
        self, rounds: Iterable[TranscriptRound], *, summary: Summary | None = None
    ) -> Transcript:
        """Make a transcript of some whole rounds of this one, in their order here; this one is
        unchanged.

        System and ephemeral messages, reasoning and ids are treated as in `window`.

        Args:
            rounds: Rounds from `rounds()` of this transcript.
            summary: A user message that replaces the first dropped part, as in `window`.

        Raises:
            TranscriptError: one isn't a round of this transcript.
        """
        chosen = windows.chosen_of(self._items(), rounds)
        return self._with_rounds(chosen, windows.summary_text(summary, self._items(), chosen))

    def _with_rounds(self, kept: Sequence[TranscriptRound], summary: str | None) -> Transcript:
        items = self._items()
        if sum([len(found.items) for found in kept]) == len(items) - windows.head_of(items):
            # Every round is kept: a fork also keeps the encoded bytes.
            return self.fork()
        selected = Transcript()
        chosen = windows.selection(items, self._sent_ephemerals(), kept, summary)
        if self._state.open:
            selected._keep_open(windows.open_without_round(self._state.open, chosen))
        selected._extend(chosen)
        return selected

    def _sent_ephemerals(self) -> frozenset[int]:
        """The indexes of the ephemeral messages that were part of a successful request."""
        state = self._state
        ephemerals = [
            index
            for index, item in enumerate(state.tail, state.stable)
            if getattr(item, "ephemeral", False)
        ]
        return frozenset(ephemerals[: state.sent])

    def _extend(self, items: Iterable[Item]) -> None:
        """Add items of another transcript. Used while a transcript is being built."""
        turn: AssistantTurn | None = None
        for item in items:
            if isinstance(item, ToolResults):
                assert turn is not None, "results stand after their turn"
                calls = [call for call in turn.calls if call.answerable]
                failed = [
                    failure_key(call.name, call.arguments)
                    for call, result in zip(calls, item.results, strict=True)
                    if result.status not in ("ok", "promised")
                ]
                self.append_turn(turn, item, failed)
            elif isinstance(item, Message):
                self.append(item)
            elif not any(call.answerable for call in item.calls):
                self.append_turn(item)
            turn = item if isinstance(item, AssistantTurn) else None
