"""From a transcript to the messages of the Anthropic Messages API, as JSON bytes.

Each item is encoded once, when the transcript hands it over; a request joins what is there.
Consecutive messages of one role aren't merged, the API does that: so the request of one turn is a
prefix of the next one's.
"""

# What is hard here
# -----------------
# Encoded messages are never touched again, but three things are known only with the next item:
#
#   * A system message in the middle is legal before one of the assistant's or at the end, and
#     only for some models. It is held back (`_held_system`) until the next message shows where it
#     is; before a user message it becomes a user's text in `<system>` tags.
#   * Calls that the provider runs itself may wait for our results (`_running`). If their results
#     don't arrive in the very next answer, the calls are taken out again: with anything else behind
#     them the API refuses them. This is the one message that changes after it was sent.
#   * An answer at the very end is a prefill, which some models take, shortened, and others refuse.
#
# `last` says what the messages end with:
#
#   | `last`      | the last message is            | a request now                                |
#   |-------------|--------------------------------|----------------------------------------------|
#   | "nothing"   | missing                        | refused: nothing to answer                   |
#   | "user"      | a user's, or results           | sent; held system texts at its end           |
#   | "assistant" | the application's words for it | a prefill, or refused                        |
#   | "turn"      | an answer                      | a prefill without thinking, or refused       |
#   | "paused"    | an answer that wants to go on  | sent whole: the model continues              |

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from lutumpy.adapters.anthropic.bound_form import is_reminder, texts_of
from lutumpy.adapters.anthropic.cache import count_breakpoints, mark, takes_breakpoint
from lutumpy.adapters.anthropic.carriers import Carriers, MessagesSpelling, carry_reminder
from lutumpy.adapters.anthropic.decode import API, TOOLSET_KIND
from lutumpy.adapters.anthropic.original import (
    as_blocks,
    content_of,
    entries_for_any_host,
    entries_without_reasoning,
)
from lutumpy.adapters.anthropic.own_turn import encode_own_turn, result_block, text_of_failure
from lutumpy.adapters.anthropic.part_writer import PartWriter
from lutumpy.adapters.anthropic.parts import text_blocks
from lutumpy.adapters.anthropic.system_field import SystemField
from lutumpy.adapters.anthropic.turn_blocks import (
    encode_message,
    find_late_results,
    finished_blocks,
    says_nothing,
    shorten_to_prefill,
    translate_turn,
)
from lutumpy.adapters.destination import ANYWHERE, Destination, tell_left_out
from lutumpy.adapters.encoded_settings import EncodedSettings
from lutumpy.core.bound_reasoning import SignedTurn
from lutumpy.core.encoding import Renamer
from lutumpy.core.items import AssistantTurn, Item, Message, TextPart, ToolResults, Verbatim
from lutumpy.core.parts import marked_system
from lutumpy.core.turn_settings import TurnSettings
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic.limits import CALL_ID, MAX_HISTORY_NAME, MAX_NAME_OF_OLDER_HOSTS, NAME
from lutumpy.rules.anthropic.models import CLEAR_AT

__all__ = ["MessagesEncoder"]

# The API has no limit for ids of calls: those of some hosts carry state, and go back whole.
_LONGEST_CALL_ID = 1024

NO_CARRIERS = Carriers()
_ASSISTANT = b'{"role":"assistant","content":'
Last = Literal["nothing", "user", "assistant", "turn", "paused"]


class MessagesEncoder:
    """The encoded form of a transcript for this API.

    Args:
        carriers: What the model takes at its host in the middle of a conversation. A system message
            may come after a user message, and before one of the assistant or at the end, so it is
            held back until it's known what follows.
        needs_record: The model takes no reasoning of models that bind none.
        destination: Who gets the requests.
        as_blocks: A single text is a block too, not a string, so that a message can take a
            breakpoint of the prompt cache in one request, and be the same without it in the next.

    Attributes:
        breakpoints: How many breakpoints the conversation holds of its own.
        stable: How many blocks of the system's, and messages, come before the first item that is
            for one request; `None` without one.
        container: The id of the container that the last turn's calls came from or its code still
            runs in, as JSON, or `b""`: without it the API takes no request behind such a turn.
        system: What is in the request's `system`.
        last: What the conversation ends with.
        reminds: Texts for one turn are system messages of their own.
    """

    __slots__ = (
        "_as_blocks",
        "_held_system",
        "_ids",
        "_names",
        "_needs_record",
        "_original",
        "_running",
        "_system_role",
        "_toolsets",
        "breakpoints",
        "container",
        "entries",
        "last",
        "parts",
        "reminds",
        "stable",
        "state",
        "system",
    )

    def __init__(
        self,
        carriers: Carriers = NO_CARRIERS,
        as_blocks: bool = False,
        needs_record: bool = False,
        destination: Destination = ANYWHERE,
    ) -> None:
        self._system_role = carriers.system
        # What the messages say of settings, and which reasoning is bound to them.
        self.state: EncodedSettings = EncodedSettings(MessagesSpelling(carriers), destination)
        self._needs_record = needs_record
        self.reminds: bool = carriers.reminders
        self._as_blocks = as_blocks
        self.breakpoints: int = 0
        self.stable: tuple[int, int] | None = None
        self.system: SystemField = SystemField(as_blocks)
        # Messages that are encoded for good; places of those that were taken out are empty.
        self.entries: list[bytes] = []
        # Which messages are as they were read.
        self._original: set[int] = set()
        self.parts: PartWriter = PartWriter()
        self._held_system: list[str] = []
        self.last: Last = "nothing"
        self.container: bytes = b""
        self._toolsets: dict[str, str] = {}
        # Which message holds calls that the provider still runs: they need their results in the
        # very next answer.
        self._running: int | None = None
        self._ids = Renamer(CALL_ID, _LONGEST_CALL_ID, "toolu_")
        self._names = Renamer(NAME, MAX_NAME_OF_OLDER_HOSTS, "tool_")

    def copy(self) -> MessagesEncoder:
        twin = MessagesEncoder(NO_CARRIERS, self._as_blocks)
        twin._system_role, twin.state = self._system_role, self.state.copy()
        twin._needs_record, twin.reminds = self._needs_record, self.reminds
        twin.breakpoints = self.breakpoints
        twin.stable = self.stable
        twin.system = self.system.copy()
        twin.entries = self.entries.copy()
        twin._original = self._original.copy()
        twin.parts = self.parts.copy()
        twin._held_system = self._held_system.copy()
        twin.last = self.last
        twin.container = self.container
        twin._toolsets = self._toolsets.copy()
        twin._running = self._running
        twin._ids = self._ids.copy()
        twin._names = self._names.copy()
        return twin

    def add(self, item: Item) -> None:
        if item.verbatim is not None and item.verbatim.settings:
            from lutumpy.adapters.anthropic.read_changes import take_read  # few were read

            take_read(self.state, item.verbatim, self.entries, self._as_blocks)
        if isinstance(item, Message):
            if item.ephemeral and self.reminds and is_reminder(item):
                # It is at the end of the request, and stays where it was said.
                self.state.reminders += texts_of(item)
                return
            if item.ephemeral and self.stable is None:
                self.stable = len(self.system.texts), len(self.entries)
            self._add_message(item)
            if not item.ephemeral:
                self.state.ends_with_answer = item.role == "assistant"
        elif isinstance(item, AssistantTurn):
            if item.settings is not None:
                self._add_settings(item.settings, item)
            self._add_turn(item)
            self.state.turns += 1
            self.state.ends_with_answer = True
        else:
            self._add_results(item)
            self.state.ends_with_answer = False

    # --- reading ----------------------------------------------------------------------------------

    def end_of_system(self) -> int | None:
        """The last block of the system's that stays as it is in later requests, or `None`; also
        when it has a breakpoint.
        """
        return self.system.last_block(None if self.stable is None else self.stable[0])

    def end_of_messages(self) -> int | None:
        """The last message that stays as it is in later requests, and takes a breakpoint; or
        `None`.
        """
        # An answer at the very end is sent as the beginning of the next one, perhaps shortened.
        stable = len(self.entries) - (self.last == "turn")
        if self.stable is not None:
            stable = min(stable, self.stable[1])
        for index in range(stable - 1, -1, -1):
            if not self.entries[index]:
                continue
            as_read = index in self._original or index in self.parts.noted
            if takes_breakpoint(self.entries[index], as_read=as_read):
                return index
        return None

    @property
    def is_paused(self) -> bool:
        """Whether the last answer wants to go on, so that no change may be said now."""
        return self.last == "paused"

    def messages(self, prefill: bool, at: int | None) -> list[bytes]:
        """The `messages` of a request, one by one; places of messages that were taken out are
        empty.

        Args:
            prefill: The model takes the assistant's as the last message.
            at: Which message gets a breakpoint of the prompt cache.

        Raises:
            TranscriptError: there is nothing to answer (rule K5).
        """
        messages = self.entries.copy()
        if at is not None:
            messages[at] = mark(messages[at], b"}]}")
        if self.last in ("turn", "assistant") and not prefill:
            raise TranscriptError(
                "there is nothing to answer: the transcript ends with the assistant, "
                "and the model isn't known to take the beginning of an answer; push a user "
                "message first"
            )
        if self.last in ("turn", "paused") and prefill:
            messages[-1:] = shorten_to_prefill(messages[-1], is_paused=self.is_paused)
        if self.last in ("user", "paused"):
            if self._held_system:
                messages.append(encode_message("system", self._make_content(self._held_system)))
            if self.state.pending:
                messages += [message for message, _ in self.state.pending]
            if self.state.reminders:
                messages += [carry_reminder(text) for text in self.state.reminders]
        if not messages:
            raise TranscriptError(
                "there is nothing to answer: a request of the Messages API needs a user message "
                "beside the system's"
            )
        return messages

    def history(self) -> bytes:
        """The JSON array of everything encoded so far, whatever it ends with."""
        messages = self.entries.copy()
        if self._held_system:
            messages.append(encode_message("system", self._make_content(self._held_system)))
        return b"[" + b",".join([message for message in messages if message]) + b"]"

    # --- what was read from a history of this API -------------------------------------------------

    def _add_original_message(self, message: Message, verbatim: Verbatim) -> None:
        self._running = None
        if verbatim.system:
            self.system.read = verbatim.entries[0]
            self.breakpoints += count_breakpoints(json_values.decode(self.system.read))
        else:
            self._add_original_entries(verbatim.entries, "user" if message.role == "user" else None)
            if message.role == "system":
                from lutumpy.adapters.anthropic.read_changes import note_headers  # few were read

                note_headers(self.state, verbatim.entries)

    def _add_original_turn(self, turn: AssistantTurn, verbatim: Verbatim) -> None:
        entries: Sequence[bytes] = verbatim.entries
        if turn.api != API:  # what its host has run and sealed stays there
            entries = entries_for_any_host(entries)
        elif turn.reasoning_dropped:
            entries = entries_without_reasoning(entries)
        self.container, self._running = b"", None
        self._add_original_entries(entries, "paused" if turn.finish_reason == "paused" else "turn")
        if turn.results_only and entries:
            self._running = len(self.entries) - 1

    def _add_original_entries(self, entries: Iterable[bytes], last: Last | None) -> None:
        """Messages go back as they came.

        Args:
            entries: The messages.
            last: What they are; `None` for the system's, which stay where they were.
        """
        for entry in entries:
            if b'"cache_control":' in entry:
                self.breakpoints += count_breakpoints(content_of(entry))
            message = as_blocks(entry) if self._as_blocks else entry
            if last is None:
                self.entries.append(message)
            else:
                self._append_message(last, message)
            self._original.add(len(self.entries) - 1)

    # --- messages of the application --------------------------------------------------------------

    def _add_message(self, message: Message) -> None:
        if message.verbatim is not None and message.verbatim.api == API:
            self._add_original_message(message, message.verbatim)
            return
        if self._running is not None:
            self._drop_unfinished_calls(set())
        if message.role == "user":
            blocks = self.parts.write(message.parts, "message", self.breakpoints)
            if blocks:
                only_text = not self._as_blocks and len(blocks) == 1 and len(blocks[0]) == 2
                text = blocks[0]["text"] if only_text and "text" in blocks[0] else None
                self._append_written(blocks if text is None else text)
            return
        texts = [
            part.text for part in message.parts if isinstance(part, TextPart) and part.text.strip()
        ]
        if not texts:
            return
        if message.role == "assistant":
            # "final assistant content cannot end with trailing whitespace"
            texts[-1] = texts[-1].rstrip()
            self._append_message(
                "assistant", encode_message("assistant", self._make_content(texts))
            )
        elif self.last == "nothing":
            self.system.texts += texts
        elif self._system_role and self.last == "user":
            self._held_system += texts
        else:
            self._append_message("user", self._wrap_system_texts(texts))

    def _append_written(self, content: str | list[dict[str, Any]]) -> None:
        """Append a user's message of parts."""
        message = encode_message("user", content)
        if b'"cache_control":' in message:
            self.breakpoints += count_breakpoints(content)
        self._append_message("user", message)
        self.parts.note(len(self.entries) - 1)

    def _append_message(self, last: Last, message: bytes) -> None:
        if self._held_system:
            held, self._held_system = self._held_system, []
            if last == "user":
                self.entries.append(self._wrap_system_texts(held))
            else:
                self.entries.append(encode_message("system", self._make_content(held)))
        if self.state.pending and last != "user":
            # A change comes before an answer, or at the end.
            self.state.say_pending(self.entries)
        self.entries.append(message)
        self.last = last

    def _make_content(self, texts: list[str]) -> str | list[dict[str, Any]]:
        return texts[0] if len(texts) == 1 and not self._as_blocks else text_blocks(texts)

    def _wrap_system_texts(self, texts: list[str]) -> bytes:
        """A system message as a user's, where the API takes none of the system's."""
        return encode_message("user", self._make_content([marked_system(text) for text in texts]))

    # --- settings ---------------------------------------------------------------------------------

    def _add_settings(self, settings: TurnSettings, turn: AssistantTurn) -> None:
        """Say what a turn has recorded, before that turn."""
        state = self.state
        if self.reminds:
            state.pending += [(carry_reminder(text), False) for text in settings.reminders]
            if settings.reminders:
                state.headers[CLEAR_AT] = None
        if settings.left_out and turn.api == API:
            self.leave_out(state.left_out_by(turn, settings.left_out))
        state.take(settings, self.entries)

    def leave_out(self, turns: Iterable[SignedTurn]) -> None:
        """Take the reasoning of these turns out of their messages (rule PB9)."""
        for turn in turns:
            without = entries_without_reasoning([self.entries[turn.entry]])
            self.entries[turn.entry] = without[0] if without else b""

    def _note_reasoning(self, turn: AssistantTurn, entries: int) -> None:
        """Note the last entries as a turn, if it has signed reasoning that is sent."""
        if turn.signed and not turn.reasoning_dropped and entries:
            prefix = turn.origin.prefix if turn.origin is not None else None
            self.state.bound.add(len(self.entries) - entries, self.state.turns, prefix, turn)

    # --- answers ----------------------------------------------------------------------------------

    def _add_turn(self, turn: AssistantTurn) -> None:
        state, origin = self.state, turn.origin
        for call in turn.calls:
            state.called.add(call.name)
        # Most turns are of the very host that gets the request.
        is_at_home = origin is not None and origin.host == state.host is not None
        if turn.reasoning_dropped and turn.signed and turn.api == API:
            state.bound.add(len(self.entries), state.turns, None, turn, is_left_out=True)
        elif turn.api == API and (self._needs_record or not is_at_home):
            turn = state.without_unreadable(turn, self._needs_record)
        if turn.verbatim is not None and turn.verbatim.api == API:
            before = len(self.entries)
            self._add_original_turn(turn, turn.verbatim)
            self._note_reasoning(turn, min(1, len(self.entries) - before))
            return
        container, self.container = self.container, b""
        if turn.api == API:
            content = self._encode_own_turn(turn)
        else:
            blocks = translate_turn(turn, self._ids, self._names)
            content = encode(blocks) if blocks else b""
        if not content:
            self.container = container
            return
        if b'"cache_control":' in content:
            self.breakpoints += count_breakpoints(json_values.decode(content))
        if self._running is not None:
            self._drop_unfinished_calls(find_late_results(turn))
        paused = turn.finish_reason == "paused" and turn.api == API
        self._append_message("paused" if paused else "turn", _ASSISTANT + content + b"}")
        if b"thinking" in content and turn.api == API:
            self._note_reasoning(turn, 1)
        if turn.results_only and turn.api == API:
            self._running = len(self.entries) - 1

    def _drop_unfinished_calls(self, arrived: set[str]) -> None:
        """Leave calls of the provider out whose results didn't come, since another took the turn.

        With anything behind them the API refuses them: only so a message changes after it was sent.
        """
        index, self._running = self._running, None
        if index is None:
            return
        blocks = finished_blocks(json_values.decode(self.entries[index])["content"], arrived)
        if blocks is None:
            return
        state = self.state
        what, why = "a server's call", "its result never came: another provider took the next turn"
        state.unread.append(tell_left_out(state.destination, state.turns - 1, what, why))
        self.entries[index : index + 1] = [encode_message("assistant", blocks)] if blocks else []
        state.bound.forget_from(index)
        state.rewrites |= {("unfinished", index)}
        if self.stable is not None and not blocks:
            self.stable = self.stable[0], min(self.stable[1], len(self.entries))

    def _encode_own_turn(self, turn: AssistantTurn) -> bytes:
        """The content as it was received, or as far as the API takes it back."""
        if not turn.native or (not turn.calls and says_nothing(turn)):
            return b""
        for call in turn.calls:
            fits = call.kind == "function" and 0 < len(call.name) <= MAX_HISTORY_NAME
            if call.answerable and not (fits and self._ids(call.id) == call.id):
                break
        else:
            waits = turn.calls or turn.results_only
            named = waits and b'"container"' in turn.residue
            if not named and not turn.reasoning_dropped:
                return turn.native
        own = encode_own_turn(turn, self._ids, self._names)
        self._toolsets |= own.toolsets
        if own.container is not None:
            self.container = own.container
        return own.content

    # --- results ----------------------------------------------------------------------------------

    def _add_results(self, results: ToolResults) -> None:
        if results.verbatim is not None and results.verbatim.api == API:
            self._add_original_entries(results.verbatim.entries, "user")
            return
        # All of them in one message: in separate ones the API takes them too, but models unlearn
        # parallel calls.
        written: list[dict[str, Any]] = []
        for result in results.results:
            toolset = self._toolsets.get(result.call_id) if result.kind == TOOLSET_KIND else None
            content: str | list[dict[str, Any]]
            if result.status not in ("ok", "promised"):
                content = text_of_failure(result)
            elif isinstance(result.content, str):
                content = result.content if result.content.strip() else ""
            else:
                content = self.parts.write(result.content, "result", self.breakpoints)
            written.append(result_block(result, self._ids(result.call_id), content, toolset))
        self._append_written(written)
