"""A made-up API that lays its conversations out as Chat Completions does: `tool_calls` without ids
and with arguments as objects, and results that name their tool.

Its spelling is as greedy as one may be: it claims every message that it could read, gives calls
ids of its own, and lists types, roles and keys that built-in APIs have too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from lutumpy import AssistantTurn, Transcript, TranscriptError
from lutumpy.apis import ApiRow
from lutumpy.doctor.spelling import PartReader, ResultReader
from lutumpy.doctor.writing import (
    Call,
    Json,
    Piece,
    ReadContent,
    Result,
    Spelling,
    Text,
    conversion_to,
)
from lutumpy.errors import Problem
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs

ROW = ApiRow(
    name="like_chat",
    title="Like Chat",
    family="like_chat",
    adapter="like_chat_api:LikeChat",
    reader="like_chat_api:read_like_chat",
    rules="like_chat_api",
    repairs="like_chat_api",
    page="like_chat_api",
)

PREFIX = "like_chat"
SHAPE = RequestShape(
    messages_key="messages",
    system_key=None,
    paths=("/api/chat", "/chat/completions", "/messages"),
    host="like-chat.example",
    position="messages[{}]",
    turn_form="object",
    calls_key="tool_calls",
)
SIGNS = Signs(
    body_keys=frozenset({"options", "likes", "tools", "stream", "temperature"}),
    resuming_keys=frozenset({"prompt"}),
    message_keys=frozenset({"role", "content", "tool_calls", "tool_name", "liked", "images"}),
    roles=frozenset({"user", "assistant", "tool"}),
    nests_tools=True,
    tool_keys=frozenset({"function"}),
    answers=({"message": Mapping, "done": bool}, {"choices": list}),
    stream_marks=('"object":"chat.completion.chunk"', '"done":false'),
)


def check_request(body: Any, *, compatible: bool = False) -> list[Problem]:
    """Every rule that a request breaks."""
    return check_history(body.get("messages"), HistoryContext())


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every call has its arguments as an object."""
    found: list[Problem] = []
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        for call in _calls_in(message):
            if not isinstance(call["function"].get("arguments"), Mapping):
                where, path = SHAPE.position.format(index), (index,)
                found.append(Problem("like_chat.arguments", where, "No.", "refused", path=path))
    return found


def read_tool(tool: Any) -> DeclaredTool | None:
    """The tool that a request declares."""
    return DeclaredTool.read(tool.get("function"), "parameters")


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """The tool as a request declares it."""
    return {"type": "function", "function": tool.fields("parameters")}


def read_like_chat(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None
) -> Transcript:
    """The transcript of the texts of a request."""
    transcript = Transcript()
    for message in messages:
        transcript.push_user(str(message.get("content")))
    return transcript


def read_message(timeline: Any, index: int, message: Mapping[str, Any]) -> None:
    """Shows the role alone."""
    timeline.add_step(message.get("role"), (), (index,))


def read_usage(usage: Mapping[str, Any]) -> None:
    """Claims what most APIs have, and can't read it."""
    assert not usage.keys() & {"prompt_tokens", "input_tokens"}


class LikeChat:
    """The adapter, which can write nothing of others."""

    api = "like_chat"

    @staticmethod
    def messages(transcript: Transcript) -> list[dict[str, Any]]:
        """The conversation of its own alone."""
        raise TranscriptError("this API takes nothing of others")

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """Nothing is answered."""
        raise NotImplementedError


def _calls_in(message: Any) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    return [
        call
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)
    ]


def _read_invented(part: Mapping[str, Any]) -> Piece | None:
    return Text("read by the added API")


def _read_call(part: Mapping[str, Any]) -> Piece | None:
    return Call("invented", "invented", {})


def _read_result(part: Mapping[str, Any], read_content: ReadContent) -> Piece:
    return Result("invented", "invented")


class LikeChatSpelling(Spelling):
    """The spelling of the API."""

    parts = frozenset({"text", "image", "toolUse"})
    part_keys: ClassVar[Mapping[str, str]] = {"text": "told", "function": "told", "toolUse": "told"}
    readers: ClassVar[Mapping[str, PartReader]] = dict.fromkeys(
        ("text", "image", "reasoning", "told"), _read_invented
    )
    calls: ClassVar[Mapping[str, PartReader]] = {
        "tool_use": _read_call,
        "function_call": _read_call,
    }
    message_calls: ClassVar[Mapping[str, PartReader]] = {"function": _read_call}
    results: ClassVar[Mapping[str, ResultReader]] = {"tool_result": _read_result}
    entries = frozenset({"message", "function_call"})
    result_id_key = "tool_name"
    result_roles = ("tool", "user")
    role_names: ClassVar[Mapping[str, str]] = {"tool": "assistant", "user": "assistant"}

    def shown_role(self, entry: Mapping[str, Any]) -> str | None:
        return "assistant" if entry.get("tool_calls") else None

    def has_calls(self, message: Mapping[str, Any], role: str) -> bool:
        return True

    def read_beside_content(
        self, message: Mapping[str, Any], number: int, read_part: Callable[[Any], Piece]
    ) -> list[Piece]:
        return [
            Call(f"like_{number}_{at}", call["function"].get("name"), call["function"])
            for at, call in enumerate(_calls_in(message))
        ]

    def unnamed_result_ids(self, messages: Sequence[Any]) -> dict[int, str]:
        return {at: f"like_{at - 1}_0" for at in range(len(messages))}

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        found: list[Json] = []
        for piece in pieces:
            if isinstance(piece, Call):
                function = {"name": piece.name, "arguments": piece.arguments}
                found.append({"role": "assistant", "tool_calls": [{"function": function}]})
            elif isinstance(piece, Result):
                found.append({"role": "tool", "tool_name": "x", "content": piece.content})
            elif isinstance(piece, Text):
                found.append({"role": role, "content": piece.text})
        return found


SPELLING = LikeChatSpelling()
STAGES = ((frozenset({"like_chat.arguments"}), conversion_to(SPELLING), True),)
