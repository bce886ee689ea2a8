"""How the requests of an API are laid out, and by what its documents are recognised.

The names differ where the meaning is the same, so they are here as data: whoever handles
documents of every API reads them and names no API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from lutumpy.errors import Problem

if TYPE_CHECKING:
    from lutumpy.rules.moves import Move

__all__ = [
    "NOTHING",
    "AnswerForm",
    "ApiRules",
    "DeclaredTool",
    "HistoryContext",
    "PartPlace",
    "RequestShape",
    "Signs",
    "holds_nothing",
    "one_of",
]

PartPlace = Literal["message", "result"]
"""Where a content part is: in a user's message, or in the result of a call."""

NOTHING: re.Pattern[str] = re.compile(r"(?!)")
"""A pattern that no text matches."""

AnswerForm: TypeAlias = Mapping[
    str, "str | bool | re.Pattern[str] | type | AnswerForm | list[AnswerForm]"
]
"""What an object has: keys, each with the text or the truth value that it holds, a pattern of a
text, or the type of its value; of an object its form, of a list forms that one of its elements has.
"""


def one_of(words: str, *patterns: str) -> re.Pattern[str]:
    """A pattern for one of some words, or for a text that matches one of the patterns as a whole.

    Args:
        words: The words, separated by spaces.
        patterns: Regular expressions.
    """
    alternatives = [*map(re.escape, words.split()), *patterns]
    return re.compile(f"(?:{'|'.join(alternatives)})\\Z")


def holds_nothing(body: Mapping[str, Any]) -> bool:
    """Whether the server holds the beginning of a conversation, for APIs whose servers hold
    nothing: never.
    """
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShape:
    """Where things are in a request of an API, and in what its model wrote.

    Attributes:
        messages_key: The key of the list of messages.
        system_key: The key of a system text beside the messages; `None` where it is a message
            itself.
        paths: How the path of its requests ends.
        host: Whose host it is; a region may come before it (`eu.api.openai.com`).
        other_hosts: Further hosts of the vendor.
        position: How the API names a message by its index, as `messages[{}]`.
        turn_form: What one turn of the model is: one object, or a list of blocks or items.
        calls_key: Where in a turn that is one object its calls are.
        call_id_key: The key of a call's id in a turn; empty where it isn't the key of the call
            itself, and the adapter finds it by the call's place.
        model_path: Where the path of a request names the model, as the first group; `None` where
            the body does. With one, a body is a whole request without a model.
        other_system_keys: Further spellings of `system_key` that the API takes.
        text_is_message: Whether a text in place of the list of messages is one message of the user.
        blob_keys: Keys in a message under which the vendor's SDK takes and gives bytes, and nothing
            else; they are base64 texts on the wire.
        is_continued: Whether a request body goes on from messages that the server holds.
    """

    messages_key: str
    system_key: str | None
    paths: tuple[str, ...]
    host: str
    position: str
    turn_form: Literal["object", "list"]
    calls_key: str | None = None
    call_id_key: str = "id"
    other_hosts: re.Pattern[str] = NOTHING
    model_path: re.Pattern[str] | None = None
    other_system_keys: tuple[str, ...] = ()
    text_is_message: bool = False
    blob_keys: frozenset[str] = frozenset()
    is_continued: Callable[[Mapping[str, Any]], bool] = holds_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """By what a document of an API is recognised, where its shape alone doesn't say it.

    Each sign is evidence for this API: what it has and the others that lay their requests out alike
    don't. An API whose list of messages is under a key of its own needs few of them.

    Attributes:
        body_keys: Parameters of a request.
        required_keys: Parameters without which the API takes no request.
        resuming_keys: Parameters with which a request needs no messages, since it goes on from what
            the server holds.
        message_keys: Keys of a message.
        message_forms: What a message has, where its keys alone don't say it.
        shares_layout: Whether all of its documents are laid out as those of a commoner API. Then
            what it has in common with that one is listed too, and a document is taken for this one
            only if it has a sign that no other API has.
        roles: Roles of a message.
        refused_roles: Roles that the API refuses anywhere.
        refused_first_roles: Roles that the API refuses in the first message.
        item_types: The `type` of an entry of the list of messages that needs no role.
        part_types: The `type` of a part of a message's content.
        part_keys: Keys of a part that has no `type`.
        types_parts: Whether a content is a text, or a list of parts that have a `type`.
        outweighs: Whether its signs among messages count for more than those of others, because its
            list may hold messages as others spell them.
        tool_keys: Keys of a declared tool.
        tool_types: The `type` of a declared tool.
        nests_tools: Whether what a declared tool says is under a key that is named like its
            `type`.
        choice_types: The `type` of a tool choice.
        choice_is_word: Whether a tool choice may be one word.
        models: How names of models begin that only its maker gives.
        answers: What an answer's JSON has; one of these forms.
        events: What an event of a streamed answer has, where it isn't what an answer has.
        stream_marks: What is near the beginning of an event stream, for streams of which no
            event can be read.
    """

    body_keys: frozenset[str] = frozenset()
    required_keys: frozenset[str] = frozenset()
    resuming_keys: frozenset[str] = frozenset()
    message_keys: frozenset[str] = frozenset()
    message_forms: tuple[AnswerForm, ...] = ()
    shares_layout: bool = False
    roles: frozenset[str] = frozenset()
    refused_roles: frozenset[str] = frozenset()
    refused_first_roles: frozenset[str] = frozenset()
    item_types: re.Pattern[str] = NOTHING
    part_types: re.Pattern[str] = NOTHING
    part_keys: frozenset[str] = frozenset()
    types_parts: bool = True
    outweighs: bool = False
    tool_keys: frozenset[str] = frozenset()
    tool_types: re.Pattern[str] = NOTHING
    nests_tools: bool = False
    choice_types: frozenset[str] = frozenset()
    choice_is_word: bool = False
    models: re.Pattern[str] = NOTHING
    answers: tuple[AnswerForm, ...] = ()
    events: tuple[AnswerForm, ...] = ()
    stream_marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool with a schema, as a request declares it, without the spelling of an API.

    Attributes:
        name: Its name.
        description: What it says to the model, or `None`.
        schema: The JSON Schema of its input; one for an empty object where the declaration has
            none.
        strict: Whether it is declared as strict; `None` where it doesn't say.
    """

    name: str
    description: str | None
    schema: Mapping[str, Any]
    strict: bool | None = None

    @classmethod
    def read(cls, body: Any, schema_key: str) -> DeclaredTool | None:
        """The tool that an object with `name`, `description` and a schema describes; `None` when it
        has no name.
        """
        if not isinstance(body, Mapping) or not isinstance(body.get("name"), str):
            return None
        description, schema, strict = (
            body.get(key) for key in ("description", schema_key, "strict")
        )
        return cls(
            body["name"],
            description if isinstance(description, str) else None,
            schema if isinstance(schema, Mapping) else {"type": "object", "properties": {}},
            strict if isinstance(strict, bool) else None,
        )

    def fields(self, schema_key: str) -> dict[str, Any]:
        """Name, description where there is one, and schema, as most APIs spell them."""
        described = {} if self.description is None else {"description": self.description}
        return {"name": self.name, **described, schema_key: self.schema}


@dataclass(frozen=True, slots=True)
class HistoryContext:
    """What a check of a history knows of the request around it. See `check_messages` for each;
    `move` is made of its `host`, `model` and `origin`, and `None` where they say nothing.
    """

    tools: Sequence[Any] | None = None
    server_held_prefix: bool = False
    system: Any = None
    model: str | None = None
    thinking: str | None = None
    compatible: bool = False
    move: Move | None = None


class ApiRules(Protocol):
    """What the `rules` module of an API defines.

    Attributes:
        PREFIX: How the ids of its rules begin: `chat` in `chat.role`.
        SHAPE: How its requests are laid out.
        SIGNS: By what its documents are recognised.

    What the tool doctor asks besides may be missing; then it looks less closely:
        STRICT: The subset of JSON Schema that strict tools keep to, a `Dialect` of
            `lutumpy.rules.strict`.
        TOKENS_OF_TOOLS: About what a list of tools costs: input tokens for each byte of its JSON,
            and once.
        check_tools: A function of the list of tools, which gives the problems of the tools alone.

    Where a request doesn't have its tools one by one under `tools`, both of these:
        tools_of: A function of a request's body, which gives its tools as `read_tool` takes them;
            `None` where it says nothing of them.
        write_tools: A function of such tools, which gives the fields of a request with them.

    Where schemas are written in a dialect:
        read_tool_for_others: As `read_tool`, with the schema in JSON Schema.

    Where a call may stay open for any number of turns:
        find_open_calls: A function of the messages, which gives the calls without a result that
            need none yet, each as the problem that it would be otherwise, with its `path`.

    What tells a document of the API from one of an API that is laid out alike may be missing:
        PARAMETERS: The keys that a request may have.

    What is asked of a `RawPart` for the API; if it is missing, every JSON object is accepted:
        check_part: A function of the part's value and its `PartPlace`, which gives the problems
            that the API would have with it there.

    What a declaration of a tool asks about `provider=` may be missing; then all is left to the API:
        TOOL_SETTINGS: What may be said of one tool beside its declaration, a `ToolSettingRules` of
            `lutumpy.rules.tool_settings`.
    """

    PREFIX: str
    SHAPE: RequestShape
    SIGNS: Signs

    def check_request(self, body: Any, *, compatible: bool = False) -> list[Problem]:
        """Every rule that a request body breaks."""
        ...

    def check_history(self, messages: Any, context: HistoryContext) -> list[Problem]:
        """Every rule that a list of messages breaks."""
        ...

    def read_tool(self, tool: Any) -> DeclaredTool | None:
        """The tool that a request declares; `None` for the API's own tools, and for what isn't a
        tool.
        """
        ...

    def write_tool(self, tool: DeclaredTool) -> dict[str, Any]:
        """The tool as a request of this API declares it, not strict."""
        ...
