"""The base of the encoders of both OpenAI APIs: a transcript's items as ready JSON."""

# Each item is encoded once, when it is added, into fragments: the entries of one JSON array. A
# request only joins them, however long the conversation is. Four kinds of item go four ways:
#
#   item                                   | method            | what is sent
#   ---------------------------------------+-------------------+------------------------------------
#   read from a history of this API        | `_put_original`   | its own entries, unchanged
#   answered by this API                   | `_replay`         | the reply, with what OpenAI would
#                                          |                   | refuse in a history repaired
#   the same, by another host              | `_replay_         | what the API's schema knows of it
#                                          |    elsewhere`     | (OR2), without what is sealed (OR3)
#   answered by another API                | `_project`        | its text and its calls (R2)
#   a message, or results                  | `_encode_message` | as this API spells them
#                                          | `_encode_results` |
#
# Ids and names of other providers' calls may not fit here. A `Renamer` replaces them, the same way
# each time, so that a call and its result still agree and a request's prefix stays the same.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic_core import from_json

from lutumpy.adapters.destination import ANYWHERE, Destination, tell_left_out
from lutumpy.core.encoding import Renamer
from lutumpy.core.items import (
    AssistantTurn,
    CallBlock,
    Item,
    Message,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolResults,
    Verbatim,
)
from lutumpy.core.parts import cut_arguments, cut_text
from lutumpy.core.tool_names import UNNAMED
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.core.turn_settings import SettingsInForce, TurnSettings
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.json_values import INVALID_JSON, encode_text
from lutumpy.rules.call_ids import CallIdRule
from lutumpy.rules.openai.limits import MAX_ARGUMENTS, MAX_NAME, NAME

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "HistoryEncoder",
    "arguments_object",
    "cut_call",
    "fits_name",
    "long_calls",
    "text_and_calls",
]


@lru_cache(maxsize=1024)
def fits_name(name: str) -> bool:
    """Whether OpenAI takes a call of this name in a history."""
    return len(name) <= MAX_NAME and NAME.fullmatch(name) is not None


class HistoryEncoder(ABC):
    """Encodes items, once each, into ready JSON fragments; a subclass knows its API.

    Args:
        ids: What the host asks of call ids.
        own_limit: Up to this many characters, the ids of this API's own replies go back as they
            came; longer ones are replaced like those of other providers.
        destination: Who gets the requests.
    """

    __slots__ = (
        "_ends",
        "_host",
        "_ids",
        "_keeps_ids",
        "_names",
        "_own",
        "_own_limit",
        "_spans",
        "binds",
        "destination",
        "entries",
        "in_force",
        "instructions",
        "left_out",
        "permanent",
        "turns",
    )

    api = ""
    seal = b""
    """What shows that an entry holds reasoning that is bound to what comes before it."""

    def __init__(
        self, ids: CallIdRule, own_limit: int, destination: Destination = ANYWHERE
    ) -> None:
        self.entries: list[bytes] = []
        # The text of a system message that has a field of its own in a request, as JSON. Only a
        # history that was read has one.
        self.instructions: bytes = b""
        self._own_limit = own_limit
        self._ids = Renamer(ids.pattern, ids.limit, ids.prefix)
        self._names = Renamer(NAME, MAX_NAME, "tool_")
        # Whether the last turn came from this API: then its results name the ids that it gave.
        self._own = False
        # Whether its ids go back as they came: they are of the host that gets the request.
        self._keeps_ids = False
        # What the fragments end with: "nothing" that the model could answer, something "open" to
        # answer, or a "turn" of the model.
        self._ends = "nothing"
        # What turns have recorded of tools, output format and effort.
        self.in_force: SettingsInForce = SettingsInForce()
        self.destination: Destination = destination
        # Its host, where being of that host is enough for a turn to go as it came.
        self._host = None if destination.facts.many_makers else destination.host
        # Whether the model binds its reasoning to what was sent before.
        self.binds: bool = False
        # Where it binds none, and entries may hold some: the turns of this API by their first
        # entry, with the end of their entries and their index.
        self._spans: dict[int, tuple[int, int, AssistantTurn]] = {}
        # How many turns were encoded.
        self.turns: int = 0
        # What doesn't go to this destination: turn, what, and why (rule OR5).
        self.left_out: list[tuple[int, str, str]] = []
        # How many fragments come before the first item that is for one request; `None` for all.
        self.permanent: int | None = None

    def add(self, item: Item) -> None:
        """Encode the next item."""
        original = item.verbatim
        if original is not None:
            if original.settings:
                self._take_read(original)
            if original.api != self.api:
                original = None  # another API's entries
        if type(item) is ToolResults:
            if original is None:
                self._encode_results(item.results)
            else:
                self._put_original(original.entries)
                self._note_open(item.results)
            self._ends = "open"
            return
        before = len(self.entries)
        if isinstance(item, Message):
            if item.ephemeral:
                if self._takes_reminder(item):
                    return
                if self.permanent is None:
                    self.permanent = before
            if original is None:
                self._encode_message(item)
            elif original.system:
                self.instructions = original.entries[0]
            else:
                self._put_original(original.entries)
            # A system message alone is nothing to answer, but after a turn it is.
            is_open = self._ends == "turn" or item.role in ("user", "assistant")
            if is_open and len(self.entries) > before:
                self._ends = "open"
        elif isinstance(item, AssistantTurn):
            self._own = item.api == self.api
            if item.settings is not None:
                self._take_settings(item.settings, item)
                before = len(self.entries)
            if item.reasoning_dropped and self.binds and self._own and self.seal in item.native:
                self._note_dropped(item, before)
            origin = item.origin
            # Most turns are of the very host that gets the request.
            is_at_home = origin is not None and origin.host == self._host is not None
            self._keeps_ids = self._own
            if original is not None:
                entries = original.entries
                if item.reasoning_dropped:
                    entries = self._without_reasoning(entries)
                if not is_at_home:
                    entries = self._fit_entries(item, entries)
                self._put_original(entries)
            elif self._own:
                if item.native and (is_at_home or self.destination.can_open(item)):
                    self._replay(item)
                elif item.native:
                    self._keeps_ids = self.destination.is_own(item)
                    self._replay_elsewhere(item)
            else:
                self._project(item)
            if len(self.entries) > before:
                # The model goes on with a turn that its own API paused.
                is_paused = self._own and item.finish_reason == "paused"
                self._ends = "open" if is_paused else "turn"
                if not self.binds:
                    if self.seal and self._own:
                        self._spans[before] = len(self.entries), self.turns, item
                elif self._own and not item.reasoning_dropped:
                    added = b",".join(self.entries[before:])
                    if self.seal in added:
                        self.entries[before:] = [added]  # so that it can be rewritten as a whole
                        self._note_reasoning(item, before)
            self.turns += 1

    def copy(self) -> Self:
        """An independent copy, to encode items that don't stay in the transcript."""
        twin = type(self).__new__(type(self))
        twin.entries = self.entries.copy()
        twin.instructions = self.instructions
        twin._own_limit = self._own_limit
        twin._ids = self._ids.copy()
        twin._names = self._names.copy()
        twin._own = self._own
        twin._keeps_ids = self._keeps_ids
        twin._ends = self._ends
        twin.in_force = self.in_force.copy()
        twin.permanent = self.permanent
        twin.destination, twin._host = self.destination, self._host
        twin.binds, twin.turns = self.binds, self.turns
        twin._spans = self._spans.copy()
        twin.left_out = self.left_out.copy()
        return twin

    def answerable(self) -> list[bytes]:
        """The entries of the JSON array that goes into a request.

        Raises:
            TranscriptError: there is nothing that the model could answer.
        """
        if self._ends == "turn":
            raise TranscriptError(
                "the transcript ends with an answer of the model, so there is nothing to answer; "
                "push a message first"
            )
        if self._ends == "nothing":
            what = "holds instructions only" if self.entries or self.instructions else "is empty"
            raise TranscriptError(
                f"the transcript {what}, so there is nothing to answer; push a user message first"
            )
        return self.entries.copy()

    def history(self) -> bytes:
        """The JSON array of all entries, whatever it ends with."""
        return b"[%b]" % b",".join(self.entries)

    def _put_original(self, entries: tuple[bytes, ...]) -> None:
        """Send entries of a history of this API back as they were read."""
        self.entries.extend(entries)

    def _note_open(self, results: Sequence[ResultBlock]) -> None:  # noqa: B027  most need none
        """Note which calls have no result among entries that were read."""

    def _takes_reminder(self, message: Message) -> bool:
        """Whether a message for one request is said elsewhere than among the entries."""
        return False

    def _take_settings(
        self, settings: TurnSettings, answered_by: AssistantTurn | None = None
    ) -> None:
        """Take what the next turn has recorded, which is of this API or another one (`_own`), or
        what a history says without a turn; nothing is said of it.
        """
        self.in_force.apply(settings)

    def _take_read(self, original: Verbatim) -> None:
        """Take what entries of a history say of settings (rule PB18)."""
        for _, settings in original.settings:
            self._take_settings(settings)

    @abstractmethod
    def _note_reasoning(self, turn: AssistantTurn, place: int) -> None:
        """Note the entry at this place as a turn with signed reasoning."""

    @abstractmethod
    def _note_dropped(self, turn: AssistantTurn, place: int) -> None:
        """Note that the turn before this place has signed reasoning which was dropped."""

    @abstractmethod
    def _without_reasoning(self, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Entries of a history of this API, without the reasoning in them."""

    @abstractmethod
    def _fit_entries(self, turn: AssistantTurn, entries: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Entries of a history of this API, as the destination takes them."""

    def _leave_out(self, what: str, why: str) -> None:
        """Note what of the turn at hand doesn't go to this destination."""
        self.left_out.append(tell_left_out(self.destination, self.turns, what, why))

    @abstractmethod
    def _encode_message(self, message: Message) -> None:
        """Encode a message."""

    @abstractmethod
    def _replay(self, turn: AssistantTurn) -> None:
        """Encode a turn of this API, as it came."""

    @abstractmethod
    def _replay_elsewhere(self, turn: AssistantTurn) -> None:
        """Encode a turn of this API that goes to somebody else than who said it."""

    @abstractmethod
    def _project(self, turn: AssistantTurn) -> None:
        """Encode a turn of another API, as far as this one can express it."""

    @abstractmethod
    def _encode_results(self, results: Sequence[ResultBlock]) -> None:
        """Encode the results of a turn."""

    def _sent_id(self, call_id: str) -> str:
        """The id of a call of the last turn, as its result names it."""
        if self._keeps_ids and len(call_id) <= self._own_limit:
            return call_id
        return self._ids(call_id)

    def _project_elsewhere(self, turn: AssistantTurn) -> None:
        """Encode a turn of this API like another API's: it holds calls of kinds that only its own
        host knows.
        """
        self._own = self._keeps_ids = False
        self._project(turn)
        kinds = sorted({call.kind for call in turn.calls})
        self._leave_out(", ".join(kinds), "kinds of call that only its own host knows")

    def _sent_name(self, name: str) -> str:
        return self._names(name) if name else UNNAMED

    def _misnamed_calls(self, turn: AssistantTurn) -> list[CallBlock]:
        """The calls of a turn of this API whose names it refuses in a history.

        It lets a model write any name, and checks it only when the call comes back.
        """
        misnamed: list[CallBlock] = []
        for call in turn.calls:
            if not fits_name(call.name) and call.name and call.position >= 0:
                misnamed.append(call)  # noqa: PERF401  a comprehension is a function on Python 3.10
        return misnamed


def long_calls(turn: AssistantTurn) -> list[CallBlock]:
    """The calls of a turn of this API with more arguments than OpenAI takes back."""
    return [
        c
        for c in turn.calls
        if len(c.arguments) > MAX_ARGUMENTS and c.position >= 0 and c.kind in ("function", "custom")
    ]


def cut_call(call: CallBlock) -> str:
    """The arguments of such a call, cut to what can be sent back: a function's stay an object."""
    if call.kind == "custom":
        return cut_text(call.arguments, MAX_ARGUMENTS)
    return cut_arguments(call.arguments, MAX_ARGUMENTS)


def text_and_calls(turn: AssistantTurn) -> list[str | CallBlock]:
    """What another API gets of a turn (rule R2): its texts and its calls, in order.

    Blocks of text that follow each other are one text, and texts of white space are left out.
    """
    found: list[str | CallBlock] = []
    follows_text = False
    for block in turn.blocks:
        if isinstance(block, (TextBlock, RefusalBlock)):
            if follows_text:
                found[-1] = f"{found[-1]}{block.text}"
            else:
                found.append(block.text)
            follows_text = True
            continue
        follows_text = False
        if isinstance(block, CallBlock) and block.answerable:
            found.append(block)
    return [part for part in found if not isinstance(part, str) or part.strip()]


def arguments_object(call: CallBlock) -> str:
    """The arguments of another API's call as the text of a JSON object, whatever the model wrote.

    What isn't an object is put into one (rule R3), since most APIs accept nothing else.
    """
    text = call.arguments
    is_object = call.kind in ("function", "function_call", SEARCH_CALL)
    if not is_object and call.server_label is None:
        wrapped = encode_text({"input": text})
        return wrapped if len(wrapped) <= MAX_ARGUMENTS else cut_arguments(text, MAX_ARGUMENTS)
    if not text or text.isspace():
        return "{}"
    try:
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):
        value = text  # not JSON; a TypeError is for a text with a lone surrogate
    if isinstance(value, dict):
        text = json_values.clean_text(text)
    elif value is None:
        text = "{}"
    else:
        text = encode_text({INVALID_JSON: text})
    return text if len(text) <= MAX_ARGUMENTS else cut_arguments(call.arguments, MAX_ARGUMENTS)
