"""From a transcript to the messages of Converse, as JSON bytes.

Each item is encoded once, when the transcript hands it over; a request joins what is there.
"""

# What is hard here
# -----------------
# The API wants user and assistant in turns, beginning with the user. So what follows in the same
# role is put into the message before, as further blocks: of an encoded message only the last one
# can still grow. What was read from a history of this API stays as it was, message by message.
#
# Beside results some models take nothing (Llama, Mistral); a word of the assistant's is between
# for them. Claude wants its own reasoning signed; that of other models isn't sent to it.
#
# Newer Claudes bind reasoning to what comes before it (`said.bound`). A message that grows is
# hashed again, and an answer that is put behind other words of the assistant's fits nowhere: its
# digest was made for the beginning of a message.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lutumpy.adapters.bedrock.cache import POINT, mark_message
from lutumpy.adapters.bedrock.carriers import ConverseSpelling, without_reasoning
from lutumpy.adapters.bedrock.decode import API, REASONING
from lutumpy.adapters.bedrock.parts import part_blocks, text_blocks
from lutumpy.adapters.destination import ANYWHERE, Destination
from lutumpy.adapters.encoded_settings import EncodedSettings
from lutumpy.adapters.object_arguments import arguments_object
from lutumpy.core.bound_reasoning import SignedTurn
from lutumpy.core.encoding import Renamer
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Item,
    Message,
    Part,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    TextPart,
    ToolResults,
    Verbatim,
)
from lutumpy.core.parts import marked_system
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.bedrock.limits import CALL_ID, MAX_CALL_ID, MAX_NAME, NAME
from lutumpy.rules.bedrock.models import (
    binds_reasoning,
    is_claude,
    keeps_results_alone,
    needs_record,
    takes_tool_changes,
)
from lutumpy.rules.shape import PartPlace

__all__ = ["ConverseEncoder", "Dialect", "dialect_of"]

_OPENING = "(The beginning of this conversation is left out.)"
"""What the user says before an answer with which a conversation begins: the user speaks first."""
_BETWEEN = "(The results are noted.)"
"""What the assistant says between results and a user's message, for models that keep them apart."""
_MOVED = "moved"
"""Stands for the digest of an answer behind other words of the assistant's: none is equal to it."""
_SHOWN = "The document:"
"""The text that a document wants beside it."""


class Dialect(NamedTuple):
    """What a model takes.

    Attributes:
        alone: Results stand alone in their message.
        signs: It takes no reasoning without its signature.
        may_be_claude: It is a Claude, or nobody knows: texts of white space are taken, and large
            images refused.
        changes: System messages may withdraw declared tools, and offer them again.
        binds: Its reasoning is bound to what was sent before.
        needs_record: It takes no reasoning of models that bind none.
    """

    alone: bool
    signs: bool
    may_be_claude: bool
    changes: bool = False
    binds: bool = False
    needs_record: bool = False


def _is_blank(block: dict[str, Any]) -> bool:
    text = block.get("text")
    return isinstance(text, str) and not text.strip()


def dialect_of(model: str | None) -> Dialect:
    """What a model takes; of one that isn't known, what most take."""
    claude = is_claude(model)
    return Dialect(
        keeps_results_alone(model) is True,
        claude is True,
        claude is not False,
        takes_tool_changes(model),
        binds_reasoning(model),
        needs_record(model),
    )


class ConverseEncoder:
    """The encoded form of a transcript for this API.

    Args:
        dialect: What the model takes.
        destination: Who gets the requests.

    Attributes:
        entries: The messages.
        state: What they say of settings, and which reasoning is bound to them.
        holds_calls: Whether there are calls or results, beside which a request needs tools.
        shows_images: Whether a message that was written shows one.
    """

    __slots__ = (
        "_dialect",
        "_ids",
        "_last",
        "_names",
        "_original",
        "_role",
        "_stable",
        "_system",
        "_system_read",
        "entries",
        "holds_calls",
        "shows_images",
        "state",
    )

    def __init__(self, dialect: Dialect, destination: Destination = ANYWHERE) -> None:
        self._dialect = dialect
        self.state: EncodedSettings = EncodedSettings(
            ConverseSpelling(dialect.changes), destination
        )
        self._system_read: bytes = b""
        self._system: list[str] = []
        self.entries: list[bytes] = []
        # What the last message is: whose, whether it is a result's, and whether it was read.
        self._role = ""
        self._last = "nothing"
        self._original = False
        # How many of the system's texts, how many messages, and which last message came before the
        # first ephemeral item.
        self._stable: tuple[int, int, bytes] | None = None
        self.holds_calls: bool = False
        self.shows_images: bool = False
        self._ids = Renamer(CALL_ID, MAX_CALL_ID, "tooluse_")
        self._names = Renamer(NAME, MAX_NAME, "tool_")

    def copy(self) -> ConverseEncoder:
        twin = ConverseEncoder(self._dialect)
        twin.state = self.state.copy()
        twin._system_read = self._system_read
        twin._system = self._system.copy()
        twin.entries = self.entries.copy()
        twin._role = self._role
        twin._last = self._last
        twin._original = self._original
        twin._stable = self._stable
        twin.holds_calls = self.holds_calls
        twin.shows_images = self.shows_images
        twin._ids = self._ids.copy()
        twin._names = self._names.copy()
        return twin

    def add(self, item: Item) -> None:
        read = item.verbatim
        if read is not None and read.settings:
            from lutumpy.adapters.bedrock.read_changes import remainder  # few were read

            self.state.take_read(read, self.entries, remainder if read.api == API else None)
        if isinstance(item, Message):
            if item.ephemeral and self._stable is None:
                self._stable = self._position()
            self._add_message(item)
            if not item.ephemeral:
                self.state.ends_with_answer = item.role == "assistant"
        elif isinstance(item, AssistantTurn):
            if item.settings is not None:
                if item.settings.left_out and item.api == API:
                    self.leave_out(self.state.left_out_by(item, item.settings.left_out))
                self.state.take(item.settings, self.entries)
            self._add_turn(item)
            self.state.turns += 1
            self.state.ends_with_answer = True
        else:
            self._add_results(item)
            self.state.ends_with_answer = False

    # --- reading ----------------------------------------------------------------------------------

    def _position(self) -> tuple[int, int, bytes]:
        last = self.entries[-1] if self.entries else b""
        return len(self._system), len(self.entries), last

    @property
    def is_paused(self) -> bool:
        """Whether the last answer wants to go on: none does on this API."""
        return False

    @property
    def permanent(self) -> int | None:
        """How many messages stay as they are in later requests; `None` for all."""
        if self._stable is None:
            return None
        _, count, last = self._stable
        has_grown = count > 0 and self.entries[count - 1] != last
        return count - has_grown

    @property
    def system_place(self) -> tuple[bytes, int]:
        """What tells one `system` of this conversation from a longer one."""
        return self._system_read, len(self._system)

    def system(self, *, cached: bool = False) -> bytes:
        """The `system` of a request, or `b""`.

        Args:
            cached: With a cache point behind what stays in later requests, if anything does.
        """
        if not self._system and not cached:
            return self._system_read
        read = json_values.decode(self._system_read) if self._system_read else []
        count = len(self._system) if self._stable is None else self._stable[0]
        stays = [*read, *text_blocks(self._system[:count])]
        if cached and stays and "cachePoint" not in stays[-1]:
            stays.append(POINT)
        blocks = [*stays, *text_blocks(self._system[count:])]
        return encode(blocks) if blocks else b""

    def mark(self, messages: list[bytes], *, only_behind_text: bool) -> bool:
        """Put a cache point behind what stays in later requests; whether there is a place for one.

        Args:
            messages: What `messages` gave; one of them is replaced.
            only_behind_text: The model isn't known to take a point behind other blocks.
        """
        _, count, last = self._position() if self._stable is None else self._stable
        for index in range(count - 1, -1, -1):
            stable = last if index == count - 1 else messages[index]
            if stable and json_values.decode(stable).get("role") == "user":
                marked = mark_message(messages[index], stable, only_behind_text=only_behind_text)
                if marked is not None:
                    messages[index] = marked
                return marked is not None
        return False

    def messages(self) -> list[bytes]:
        """The `messages` of a request, one by one.

        Raises:
            TranscriptError: there is nothing to answer (rule K5).
        """
        if self._role == "assistant":
            raise TranscriptError(
                "there is nothing to answer: the transcript ends with the assistant, and Converse "
                "isn't known to take the beginning of an answer; push a user message first"
            )
        if not self.entries:
            raise TranscriptError(
                "there is nothing to answer: a request of Converse needs a user message beside the "
                "system's"
            )
        messages = self.entries.copy()
        if self.state.pending:
            messages += [message for message, _ in self.state.pending]
        return messages

    def history(self) -> bytes:
        """The JSON array of everything encoded so far, whatever it ends with."""
        return b"[" + b",".join([entry for entry in self.entries if entry]) + b"]"

    # --- messages, one after another --------------------------------------------------------------

    def _append(self, role: str, blocks: list[dict[str, Any]], last: str) -> None:
        if not blocks:
            return
        if role == "assistant" and not self.entries:
            self._write("user", encode(text_blocks([_OPENING])))
        if self._dialect.alone and last == "user" and self._last == "results":
            self._write("assistant", encode(text_blocks([_BETWEEN])))
        content = encode(blocks)
        self.shows_images = self.shows_images or b'"image":{' in content
        if role == self._role:
            self._extend(content)
        else:
            self._write(role, content)
        self._last = last

    def _write(self, role: str, content: bytes) -> None:
        if role == "assistant" and self.state.pending:
            self.state.say_pending(self.entries)
        self.entries.append(b'{"role":"%b","content":%b}' % (role.encode(), content))
        self._role, self._original = role, False

    def _extend(self, content: bytes) -> None:
        """More blocks for the last message."""
        last = self.entries[-1]
        self.state.bound.forget_from(len(self.entries) - 1)
        if self._original:
            message = json_values.decode(last)
            content_before = message.get("content")
            held = content_before if isinstance(content_before, list) else []
            self.entries[-1] = encode({**message, "content": [*held, *json_values.decode(content)]})
        else:
            self.entries[-1] = last[:-2] + b"," + content[1:] + b"}"

    def _append_original(self, entries: Iterable[bytes], role: str, last: str) -> None:
        if role == "assistant" and self.state.pending:
            self.state.say_pending(self.entries)
        for entry in entries:
            self.holds_calls = self.holds_calls or b'"toolUse' in entry or b'"toolRes' in entry
            if role == self._role and not self._original:
                # The summary of a window comes before it, which is the user's as well.
                content = json_values.decode(entry).get("content")
                if isinstance(content, list) and content:
                    self._extend(encode(content))
                    self._last = last
                    continue
            self.entries.append(entry)
            self._role, self._last, self._original = role, last, True

    def _add_message(self, message: Message) -> None:
        verbatim = message.verbatim
        if verbatim is not None and verbatim.api == API:
            self._add_original(message, verbatim)
            return
        if message.role == "user":
            blocks = self._write_parts(message.parts, "message")
            has_text = any("text" in block for block in blocks)
            if not has_text and any("document" in block for block in blocks):
                # "A text block must be included when using documents."
                blocks = [*text_blocks([_SHOWN]), *blocks]
            self._append("user", blocks, "user")
            return
        texts = [p.text for p in message.parts if isinstance(p, TextPart) and p.text.strip()]
        if message.role == "assistant":
            self._append("assistant", text_blocks(texts), "turn")
        elif self._last == "nothing":
            self._system += texts
        else:
            marked = [marked_system(text) for text in texts]
            self._append("user", text_blocks(marked), "user")

    def _write_parts(self, parts: Iterable[Part], place: PartPlace) -> list[dict[str, Any]]:
        may_be_claude = self._dialect.may_be_claude
        return [block for part in parts for block in part_blocks(part, place, may_be_claude)]

    def _add_original(self, message: Message, verbatim: Verbatim) -> None:
        if verbatim.system:
            self._system_read = verbatim.entries[0]
        else:
            # What follows a message of the system's is a message of its own.
            role = message.role if message.role in ("assistant", "system") else "user"
            self._append_original(verbatim.entries, role, "user")

    # --- answers ----------------------------------------------------------------------------------

    def _add_turn(self, turn: AssistantTurn) -> None:
        state, origin = self.state, turn.origin
        # Most turns are of the very host that gets the request.
        is_at_home = origin is not None and origin.host == state.host is not None
        needs_record = self._dialect.needs_record
        if turn.reasoning_dropped and turn.signed and turn.api == API:
            state.bound.add(len(self.entries), state.turns, None, turn, is_left_out=True)
        elif turn.api == API and (needs_record or not is_at_home):
            turn = state.without_unreadable(turn, needs_record)
        follows_assistant = self._role == "assistant"
        if turn.verbatim is not None and turn.verbatim.api == API:
            entries = [
                kept
                for entry in turn.verbatim.entries
                if (kept := self._without_reasoning(entry, turn))
            ]
            self._append_original(entries, "assistant", "turn")
            if entries:
                self._note_reasoning(turn, len(self.entries) - len(entries))
            return
        is_own = turn.api == API
        blocks = self._own_blocks(turn) if is_own else self._translate(turn)
        self.holds_calls = self.holds_calls or any("toolUse" in block for block in blocks)
        self._append("assistant", blocks, "turn")
        if is_own and blocks:
            self._note_reasoning(turn, len(self.entries) - 1, is_moved=follows_assistant)

    def _note_reasoning(self, turn: AssistantTurn, place: int, *, is_moved: bool = False) -> None:
        """Note the message at a place as a turn, if that has signed reasoning which is sent.

        Args:
            turn: The turn.
            place: Its first message.
            is_moved: Other words of the assistant's come before it in that message.
        """
        if turn.signed and not turn.reasoning_dropped:
            prefix = turn.origin.prefix if turn.origin is not None else None
            known = _MOVED if prefix is not None and is_moved else prefix
            self.state.bound.add(place, self.state.turns, known, turn)

    def leave_out(self, turns: Iterable[SignedTurn]) -> None:
        """Take the reasoning of these turns out of their messages (rule PB9)."""
        for turn in turns:
            self.entries[turn.entry] = without_reasoning(self.entries[turn.entry])

    def _without_reasoning(self, entry: bytes, turn: AssistantTurn) -> bytes:
        if not turn.reasoning_dropped:
            return entry
        message = json_values.decode(entry)
        content = message.get("content")
        kept = [b for b in content if REASONING not in b] if isinstance(content, list) else []
        return encode({**message, "content": kept}) if kept else b""

    def _own_blocks(self, turn: AssistantTurn) -> list[dict[str, Any]]:
        """The blocks as they were received; changed only where the API would refuse them, or
        reasoning left them.
        """
        blocks: list[dict[str, Any]] = json_values.decode(turn.native) if turn.native else []
        for call in turn.calls:
            if call.answerable:
                block = blocks[call.position]
                if "toolUse" in block:
                    use = block["toolUse"]
                    use["toolUseId"] = self._ids(call.id)
                    use["name"] = self._names(call.name)
                else:  # a call of no known kind
                    (use,) = block.values()
                    use["toolUseId"] = self._ids(call.id)
        kept = [block for block in blocks if self._goes_back(block, turn)]
        # White space is taken beside other blocks, and by no model alone.
        return [] if all(map(_is_blank, kept)) else kept

    def _goes_back(self, block: dict[str, Any], turn: AssistantTurn) -> bool:
        text = block.get("text")
        if isinstance(text, str):
            return self._dialect.may_be_claude or not _is_blank(block)
        if REASONING not in block:
            return True
        reasoning_text = block[REASONING].get("reasoningText")
        unsigned = isinstance(reasoning_text, dict) and "signature" not in reasoning_text
        return not turn.reasoning_dropped and not (unsigned and self._dialect.signs)

    def _translate(self, turn: AssistantTurn) -> list[dict[str, Any]]:
        """What another API's answer says, as blocks of this one (rule R2)."""
        blocks: list[dict[str, Any]] = []
        for block in turn.blocks:
            if isinstance(block, (TextBlock, RefusalBlock)):
                blocks += text_blocks([block.text])
            elif isinstance(block, CallBlock) and block.answerable:
                use = {
                    "toolUseId": self._ids(block.id),
                    "name": self._names(block.name),
                    "input": arguments_object(block),
                }
                blocks.append({"toolUse": use})
        return blocks

    # --- results ----------------------------------------------------------------------------------

    def _add_results(self, results: ToolResults) -> None:
        self.holds_calls = True
        if results.verbatim is not None and results.verbatim.api == API:
            self._append_original(results.verbatim.entries, "user", "results")
            return
        self._append("user", [self._write_result(r) for r in results.results], "results")

    def _write_result(self, result: ResultBlock) -> dict[str, Any]:
        content: list[dict[str, Any]]
        if isinstance(result.content, str):
            content = text_blocks([result.content])
        else:
            content = self._write_parts(result.content, "result")
        written: dict[str, Any] = {"toolUseId": self._ids(result.call_id), "content": content}
        if result.status not in ("ok", "promised"):
            # "cannot be empty when status value is error"
            written["content"] = content or text_blocks(
                [f"{result.name or 'tool'}: {result.status}"]
            )
            written["status"] = "error"
        return {"toolResult": written}
