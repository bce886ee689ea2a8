"""From a transcript to the messages of the Anthropic Messages API, as JSON bytes.

Each item is encoded once, when the transcript hands it over; a request joins what is there.
Consecutive messages of one role aren't merged, the API does that: so the request of one turn is a
prefix of the next one's.
"""

# What is hard here
# -----------------
# Encoded messages are never touched again, but three things are only known when the next item
# comes:
#
#   * A system message in the middle is legal before one of the assistant's or at the end, and
#     only for some models. It is held back (`_held_system`) until the next message shows where it
#     stands; before a user message it becomes a user's text in `<system>` tags.
#   * Calls that the provider runs itself may wait for our results (`_running`). If their results
#     don't arrive in the very next answer, the calls are taken out again: with anything else behind
#     them the API refuses them. This is the one message that changes after it was sent.
#   * An answer at the very end is a prefill, which some models take, shortened, and others refuse.
#
# `_last` says what the messages end with:
#
#   | `_last`     | the last message is            | a request now                                |
#   |-------------|--------------------------------|----------------------------------------------|
#   | "nothing"   | missing                        | refused: nothing to answer                   |
#   | "user"      | a user's, or results           | sent; held system texts at its end           |
#   | "assistant" | the application's words for it | a prefill, or refused                        |
#   | "turn"      | an answer                      | a prefill without thinking, or refused       |
#   | "paused"    | an answer that wants to go on  | sent as it is: the model continues           |

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from lutumpy.adapters.anthropic.cache import count_breakpoints, mark, takes_breakpoint
from lutumpy.adapters.anthropic.decode import (
    API,
    REASONING,
    SERVER_CALLS,
    TOOLSET_KIND,
)
from lutumpy.adapters.anthropic.original import (
    as_blocks,
    content_of,
    entries_without_reasoning,
    kind_of,
    system_blocks,
    takes_system_breakpoint,
)
from lutumpy.adapters.anthropic.part_writer import PartWriter
from lutumpy.adapters.anthropic.parts import text_blocks
from lutumpy.adapters.anthropic.turn_blocks import (
    encode_message,
    find_container,
    find_late_results,
    has_result,
    shorten_to_prefill,
    translate_turn,
)
from lutumpy.core.encoding import Renamer
from lutumpy.core.items import (
    AssistantTurn,
    Item,
    Message,
    ResultBlock,
    TextPart,
    ToolResults,
    Verbatim,
)
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic.limits import CALL_ID, MAX_HISTORY_NAME, MAX_NAME_OF_OLDER_HOSTS, NAME

__all__ = ["MessagesEncoder"]

# The API has no limit for ids of calls: those of some hosts carry state, and go back whole.
_LONGEST_CALL_ID = 1024

_ASSISTANT = b'{"role":"assistant","content":'

Last = Literal["nothing", "user", "assistant", "turn", "paused"]


class MessagesEncoder:
    """The encoded form of a transcript for this API.

    Args:
        system_in_messages: The model takes `role: system` inside `messages`. It may stand after a
            user message, and before one of the assistant or at the end, so such a message is held
            back until it's known what follows.
        as_blocks: A single text is a block too, not a string, so that a message can take a
            breakpoint of the prompt cache in one request, and be the same without it in the next.

    Attributes:
        breakpoints: How many breakpoints the conversation holds of its own.
    """

    __slots__ = (
        "_as_blocks",
        "_container",
        "_held_system",
        "_ids",
        "_last",
        "_messages",
        "_names",
        "_original",
        "_running",
        "_stable",
        "_system",
        "_system_read",
        "_system_role",
        "_toolsets",
        "breakpoints",
        "parts",
    )

    def __init__(self, system_in_messages: bool, as_blocks: bool = False) -> None:
        self._system_role = system_in_messages
        self._as_blocks = as_blocks
        self.breakpoints: int = 0
        # How many blocks of the system's, and messages, stand before the first ephemeral item.
        self._stable: tuple[int, int] | None = None
        # The request's `system` as it was read from a history, and what was pushed besides.
        self._system_read: bytes = b""
        self._system: list[str] = []
        self._messages: list[bytes] = []
        # Which messages stand as they were read.
        self._original: set[int] = set()
        self.parts: PartWriter = PartWriter()
        self._held_system: list[str] = []
        self._last: Last = "nothing"
        self._container: bytes = b""
        self._toolsets: dict[str, str] = {}
        # Which message holds calls that the provider still runs: they need their results in the
        # very next answer.
        self._running: int | None = None
        self._ids = Renamer(CALL_ID, _LONGEST_CALL_ID, "toolu_")
        self._names = Renamer(NAME, MAX_NAME_OF_OLDER_HOSTS, "tool_")

    def copy(self) -> MessagesEncoder:
        twin = MessagesEncoder(self._system_role, self._as_blocks)
        twin.breakpoints = self.breakpoints
        twin._stable = self._stable
        twin._system_read = self._system_read
        twin._system = self._system.copy()
        twin._messages = self._messages.copy()
        twin._original = self._original.copy()
        twin.parts = self.parts.copy()
        twin._held_system = self._held_system.copy()
        twin._last = self._last
        twin._container = self._container
        twin._toolsets = self._toolsets.copy()
        twin._running = self._running
        twin._ids = self._ids.copy()
        twin._names = self._names.copy()
        return twin

    def add(self, item: Item) -> None:
        if isinstance(item, Message):
            if item.ephemeral and self._stable is None:
                self._stable = len(self._system), len(self._messages)
            self._add_message(item)
        elif isinstance(item, AssistantTurn):
            self._add_turn(item)
        else:
            self._add_results(item)

    # --- reading ----------------------------------------------------------------------------------

    def system(self, at: int | None = None) -> bytes:
        """The leading system and developer messages: a string when it's one, a list of text blocks
        when more, or `b""`.

        Args:
            at: Which block gets a breakpoint of the prompt cache.
        """
        if not self._system and not self._as_blocks:
            return self._system_read
        if at is None and not self._system_read:
            return encode(self._make_content(self._system)) if self._system else b""
        blocks = [
            encode(block) for block in system_blocks(self._system_read) + text_blocks(self._system)
        ]
        if at is not None:
            blocks[at] = mark(blocks[at], b"}")
        return b"[" + b",".join(blocks) + b"]" if blocks else self._system_read

    def end_of_system(self) -> int | None:
        """The last block of the system's that stays as it is in later requests, or `None`; also
        when it has a breakpoint.
        """
        stable = len(self._system) if self._stable is None else self._stable[0]
        if stable or not self._system_read:
            return stable - 1 + len(system_blocks(self._system_read)) if stable else None
        blocks = system_blocks(self._system_read)
        return len(blocks) - 1 if blocks and takes_system_breakpoint(blocks[-1]) else None

    def end_of_messages(self) -> int | None:
        """The last message that stays as it is in later requests, and takes a breakpoint; or
        `None`.
        """
        # An answer at the very end is sent as the beginning of the next one, perhaps shortened.
        stable = len(self._messages) - (self._last == "turn")
        if self._stable is not None:
            stable = min(stable, self._stable[1])
        for index in range(stable - 1, -1, -1):
            as_read = index in self._original or index in self.parts.noted
            if takes_breakpoint(self._messages[index], as_read=as_read):
                return index
        return None

    def container(self) -> bytes:
        """The id of the container that calls of the last turn came from, or `b""`.

        Calls that the provider's code execution made can be answered only together with it.
        """
        return self._container

    def messages(self, prefill: bool, at: int | None) -> list[bytes]:
        """The `messages` of a request, one by one.

        Args:
            prefill: The model takes the assistant's as the last message.
            at: Which message gets a breakpoint of the prompt cache.

        Raises:
            TranscriptError: there is nothing to answer (rule K5).
        """
        messages = self._messages.copy()
        if self._last in ("turn", "assistant"):
            if not prefill:
                raise TranscriptError(
                    "there is nothing to answer: the transcript ends with the assistant, "
                    "and the model isn't known to take the beginning of an answer; push a user "
                    "message first"
                )
            if self._last == "turn":
                messages[-1:] = shorten_to_prefill(messages[-1])
        elif self._held_system:
            messages.append(encode_message("system", self._make_content(self._held_system)))
        if not messages:
            raise TranscriptError(
                "there is nothing to answer: a request of the Messages API needs a user message "
                "beside the system's"
            )
        if at is not None:
            messages[at] = mark(messages[at], b"}]}")
        return messages

    def history(self) -> bytes:
        """The JSON array of everything encoded so far, whatever it ends with."""
        messages = self._messages.copy()
        if self._held_system:
            messages.append(encode_message("system", self._make_content(self._held_system)))
        return b"[" + b",".join(messages) + b"]"

    # --- what was read from a history of this API -------------------------------------------------

    def _add_original_message(self, message: Message, verbatim: Verbatim) -> None:
        self._running = None
        if verbatim.system:
            self._system_read = verbatim.entries[0]
            self.breakpoints += count_breakpoints(json_values.decode(self._system_read))
        else:
            self._add_original_entries(verbatim.entries, "user" if message.role == "user" else None)

    def _add_original_turn(self, turn: AssistantTurn, verbatim: Verbatim) -> None:
        entries = (
            entries_without_reasoning(verbatim.entries)
            if turn.reasoning_dropped
            else verbatim.entries
        )
        self._container, self._running = b"", None
        self._add_original_entries(entries, "paused" if turn.finish_reason == "paused" else "turn")
        if turn.results_only and entries:
            self._running = len(self._messages) - 1

    def _add_original_entries(self, entries: Iterable[bytes], last: Last | None) -> None:
        """Messages go back as they came.

        Args:
            entries: The messages.
            last: What they are; `None` for the system's, which stand where they stood.
        """
        for entry in entries:
            if b'"cache_control":' in entry:
                self.breakpoints += count_breakpoints(content_of(entry))
            message = as_blocks(entry) if self._as_blocks else entry
            if last is None:
                self._messages.append(message)
            else:
                self._append_message(last, message)
            self._original.add(len(self._messages) - 1)

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
        elif self._last == "nothing":
            self._system += texts
        elif self._system_role and self._last == "user":
            self._held_system += texts
        else:
            self._append_message("user", self._wrap_system_texts(texts))

    def _append_written(self, content: str | list[dict[str, Any]]) -> None:
        """Append a user's message of parts."""
        message = encode_message("user", content)
        if b'"cache_control":' in message:
            self.breakpoints += count_breakpoints(content)
        self._append_message("user", message)
        self.parts.note(len(self._messages) - 1)

    def _append_message(self, last: Last, message: bytes) -> None:
        if self._held_system:
            held, self._held_system = self._held_system, []
            if last == "user":
                self._messages.append(self._wrap_system_texts(held))
            else:
                self._messages.append(encode_message("system", self._make_content(held)))
        self._messages.append(message)
        self._last = last

    def _make_content(self, texts: list[str]) -> str | list[dict[str, Any]]:
        return texts[0] if len(texts) == 1 and not self._as_blocks else text_blocks(texts)

    def _wrap_system_texts(self, texts: list[str]) -> bytes:
        """A system message as a user's, where the API takes none of the system's."""
        return encode_message(
            "user", self._make_content([f"<system>\n{text}\n</system>" for text in texts])
        )

    # --- answers ----------------------------------------------------------------------------------

    def _add_turn(self, turn: AssistantTurn) -> None:
        if turn.verbatim is not None and turn.verbatim.api == API:
            self._add_original_turn(turn, turn.verbatim)
            return
        container, self._container = self._container, b""
        if turn.api == API:
            content = self._encode_own_turn(turn)
        else:
            blocks = translate_turn(turn, self._ids, self._names)
            content = encode(blocks) if blocks else b""
        if not content:
            self._container = container
            return
        if b'"cache_control":' in content:
            self.breakpoints += count_breakpoints(json_values.decode(content))
        if self._running is not None:
            self._drop_unfinished_calls(find_late_results(turn))
        paused = turn.finish_reason == "paused" and turn.api == API
        self._append_message("paused" if paused else "turn", _ASSISTANT + content + b"}")
        if turn.results_only and turn.api == API:
            self._running = len(self._messages) - 1

    def _drop_unfinished_calls(self, arrived: set[str]) -> None:
        """Leave calls of the provider out whose results didn't come, since another provider took
        the next turn.

        With anything after them the API refuses such calls: the one case in which a message changes
        after it was sent.
        """
        index, self._running = self._running, None
        if index is None:
            return
        given = json_values.decode(self._messages[index])["content"]
        blocks = [
            b
            for b in given
            if kind_of(b) not in SERVER_CALLS or b.get("id") in arrived or has_result(given, b)
        ]
        if len(blocks) == len(given):
            return
        while blocks and kind_of(blocks[-1]) in REASONING:
            blocks.pop()
        self._messages[index : index + 1] = [encode_message("assistant", blocks)] if blocks else []
        if self._stable is not None and not blocks:
            self._stable = self._stable[0], min(self._stable[1], len(self._messages))

    def _encode_own_turn(self, turn: AssistantTurn) -> bytes:
        """The content as it was received; rewritten only where the API would refuse it, or
        reasoning left it.
        """
        if not turn.native:
            return b""
        changes: dict[int, dict[str, str]] = {}
        blocks: Any = None
        for call in turn.calls:
            if not call.answerable:
                continue
            given = self._ids(call.id)
            if (
                given == call.id
                and 0 < len(call.name) <= MAX_HISTORY_NAME
                and call.kind == "function"
            ):
                continue
            changed: dict[str, str] = {}
            if given != call.id:
                changed["id"] = given
            if not 0 < len(call.name) <= MAX_HISTORY_NAME:
                changed["name"] = self._names(call.name)
            if changed:
                changes[call.position] = changed
            if call.kind == TOOLSET_KIND:
                blocks = blocks if blocks is not None else json_values.decode(turn.native)
                self._toolsets[call.id] = str(blocks[call.position].get("toolset_name"))
        if turn.calls and b'"container"' in turn.residue:
            blocks = blocks if blocks is not None else json_values.decode(turn.native)
            self._container = find_container(turn, blocks)
        if not changes and not turn.reasoning_dropped:
            return turn.native
        blocks = blocks if blocks is not None else json_values.decode(turn.native)
        for position, changed in changes.items():
            blocks[position].update(changed)
        if turn.reasoning_dropped:
            blocks = [block for block in blocks if block.get("type") not in REASONING]
        return encode(blocks) if blocks else b""

    # --- results ----------------------------------------------------------------------------------

    def _add_results(self, results: ToolResults) -> None:
        if results.verbatim is not None and results.verbatim.api == API:
            self._add_original_entries(results.verbatim.entries, "user")
            return
        # All of them in one message: in separate ones the API takes them too, but models unlearn
        # parallel calls.
        self._append_written([self._encode_result(result) for result in results.results])

    def _encode_result(self, result: ResultBlock) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": self._ids(result.call_id)}
        if result.kind == TOOLSET_KIND and result.call_id in self._toolsets:
            block["toolset_name"] = self._toolsets[result.call_id]
        content: str | list[dict[str, Any]]
        if result.status != "ok":
            # "all content must be type `text` if `is_error` is true"
            content = (
                result.text if result.text.strip() else f"{result.name or 'tool'}: {result.status}"
            )
            block["is_error"] = True
        elif isinstance(result.content, str):
            content = result.content if result.content.strip() else ""
        else:
            content = self.parts.write(result.content, "result", self.breakpoints)
        if content:
            block["content"] = content
        return block
