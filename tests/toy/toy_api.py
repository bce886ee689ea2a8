"""A made-up API, and everything that a row of the table needs to serve it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lutumpy import AdapterError, AssistantTurn, Transcript, TranscriptError, Usage
from lutumpy.apis import ApiRow
from lutumpy.doctor import Problem
from lutumpy.doctor.writing import Editor, drop_entry, mend_each
from lutumpy.models import (
    CallBlock,
    Item,
    Message,
    ResultBlock,
    TextBlock,
    ToolOffering,
    ToolResults,
)
from lutumpy.rules.shape import DeclaredTool, HistoryContext, RequestShape, Signs
from lutumpy.streaming import CallDelta, CallDone, Delta, TextDelta
from lutumpy.testing import Reply

ROW = ApiRow(
    name="toy",
    title="Toy",
    family="toymaker",
    adapter="toy_api:Toy",
    reader="toy_api:read_toy",
    rules="toy_api",
    repairs="toy_api",
    rendering="toy_api",
)

# --- The adapter: how the API spells a conversation ----------------------------------------------


class Toy:
    """What goes to the toy API, and what comes back."""

    api = "toy"

    def __init__(self, model: str) -> None:
        self.model = model

    @staticmethod
    def request(
        transcript: Transcript,
        offer: ToolOffering | None = None,
        *,
        stream: bool = False,
        strict: bool | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """The body of a request, without its model; no strict tools."""
        body: dict[str, Any] = {"talk": Toy.messages(transcript), **options}
        if not body["talk"]:
            raise TranscriptError("there is nothing to answer")
        if offer is not None and offer.specs:
            body["tools"] = Toy.tools(offer)
        return {**body, "stream": True} if stream else body

    @staticmethod
    def messages(transcript: Transcript) -> list[dict[str, Any]]:
        """The conversation alone."""
        return [entry for item in transcript for entry in _write_item(item)]

    @staticmethod
    def tools(offer: ToolOffering, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """The tools of a request alone."""
        return [
            write_tool(DeclaredTool(spec.name, spec.description, spec.schema))
            for spec in offer.specs
        ]

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The answer in a reply: a dict, or JSON."""
        body = json.loads(reply) if isinstance(reply, (str, bytes)) else reply
        if not isinstance(body, Mapping) or "bot" not in body:
            raise AdapterError("toy: the reply is not an answer", provider="toy")
        return _read_turn(body["bot"], body)

    @staticmethod
    def stream_decoder() -> ToyDecoder:
        """A decoder for the events of one answer."""
        return ToyDecoder()


def _write_item(item: Item) -> Iterator[dict[str, Any]]:
    if isinstance(item, Message):
        yield {"role": "user" if item.role == "user" else "system", "text": item.text}
    elif isinstance(item, ToolResults):
        for result in item.results:
            yield {"role": "result", "call": result.call_id, "text": result.text}
    elif not item.empty:
        calls = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in item.calls
            if call.answerable
        ]
        # Its own turns go back as they came; those of other APIs are told in its words.
        yield json.loads(item.native) if item.api == "toy" else _bot(item.text, calls)


def _bot(text: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"role": "bot", "text": text, **({"calls": list(calls)} if calls else {})}


def _read_call(call: Mapping[str, Any], position: int) -> CallBlock:
    return CallBlock(call["id"], call["name"], call["arguments"], position=position)


def _read_turn(bot: Mapping[str, Any], answer: Mapping[str, Any]) -> AssistantTurn:
    calls = tuple([_read_call(call, at) for at, call in enumerate(bot.get("calls", ()))])
    text = (TextBlock(bot["text"]),) if bot["text"] else ()
    read, written = answer.get("usage", (0, 0))
    return AssistantTurn(
        api="toy",
        blocks=(*text, *calls),
        native=json.dumps(bot).encode(),
        calls=calls,
        calls_key="calls",
        finish_reason="tool_calls" if calls else "stop",
        usage=Usage(read, written, read + written),
        model=answer.get("model"),
    )


class ToyDecoder:
    """Gathers the answer that the API would have given in one piece, and
    reports what arrives.
    """

    def __init__(self) -> None:
        self._text = ""
        self._calls: list[dict[str, Any]] = []
        self._end: dict[str, Any] | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        if "text" in chunk:
            self._text += chunk["text"]
            return [TextDelta(chunk["text"])]
        if "call" in chunk:
            call = chunk["call"]
            index = len(self._calls)
            self._calls.append(call)
            block = _read_call(call, index)
            return [CallDelta(index, block.id, block.name, block.arguments), CallDone(index, block)]
        if "end" in chunk:
            self._end = chunk["end"]
        return []

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        if self._end is None:
            raise AdapterError("toy: the stream broke off", provider="toy")
        return _read_turn(_bot(self._text, self._calls), self._end)

    def partial(self) -> AssistantTurn | None:
        begun = self._text or self._calls
        return _read_turn(_bot(self._text, self._calls), {}) if begun else None


# --- The rules: what the API refuses --------------------------------------------------------------

PREFIX = "toy"
SHAPE = RequestShape(
    messages_key="talk",
    system_key=None,
    paths=("/talk",),
    host="api.toy.example",
    position="talk[{}]",
    turn_form="object",
    calls_key="calls",
)
SIGNS = Signs(
    message_keys=frozenset({"text", "call", "calls"}),
    roles=frozenset({"bot", "result"}),
    tool_keys=frozenset({"takes"}),
    answers=({"bot": Mapping},),
    stream_marks=('"bot"',),
)


def check_request(body: Any, *, compatible: bool = False) -> list[Problem]:
    """Every rule that a request breaks."""
    talk = body.get("talk") if isinstance(body, Mapping) else None
    if not isinstance(talk, list) or not talk:
        return [Problem("toy.talk", "talk", "There is no talk.", "refused")]
    return check_history(talk, HistoryContext())


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of messages breaks."""
    found: list[Problem] = []
    waiting: list[Any] = []  # ids of the calls whose results come next
    for index, entry in enumerate(messages if isinstance(messages, list) else []):
        where, path = SHAPE.position.format(index), (index,)
        role = entry.get("role") if isinstance(entry, Mapping) else None
        if role not in ("system", "user", "bot", "result"):
            found.append(Problem("toy.role", where, "Who is talking?", "refused", path=path))
            continue
        if waiting and (role != "result" or entry.get("call") != waiting[0]):
            found.append(Problem("toy.result", where, "A call waits.", "refused", path=path))
        if role == "user" and not entry.get("text"):
            found.append(Problem("toy.text", where, "Nothing is said.", "refused", path=path))
        waiting = waiting[1:] if role == "result" else []
        if role == "bot" and isinstance(entry.get("calls"), list):
            waiting = [call.get("id") for call in entry["calls"] if isinstance(call, Mapping)]
    return found


def read_tool(tool: Any) -> DeclaredTool | None:
    """The tool that a request declares."""
    if not isinstance(tool, Mapping) or not isinstance(tool.get("tool"), str):
        return None
    return DeclaredTool(tool["tool"], tool.get("about"), tool.get("takes", {"type": "object"}))


def write_tool(tool: DeclaredTool) -> dict[str, Any]:
    """The tool as a request declares it."""
    return {"tool": tool.name, "about": tool.description, "takes": tool.schema}


# --- The reader: a history as a transcript --------------------------------------------------------


def read_toy(
    messages: Any, system: Any = None, *, server_held_prefix: bool | None = None
) -> Transcript:
    """The transcript of a request's `talk`."""
    refused = check_history(messages, HistoryContext())
    if refused:
        raise TranscriptError("this history can't be a transcript", refused)
    transcript = Transcript()
    entries = iter(messages)
    for entry in entries:
        if entry["role"] == "system":
            transcript.push_system(entry["text"])
        elif entry["role"] == "user":
            transcript.push_user(entry["text"])
        elif entry["role"] == "bot":
            turn = _read_turn(entry, {})
            texts = [next(entries)["text"] for _ in turn.calls]
            results = [
                ResultBlock(call.id, call.name, text)
                for call, text in zip(turn.calls, texts, strict=True)
            ]
            transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)
    return transcript


# --- The repairs: what would mend a history -------------------------------------------------------


def _drop_empty(editor: Editor, problem: Problem) -> None:
    drop_entry(editor, problem.path, problem, "drop_empty", "A message without text is left out.")


STAGES = ((frozenset({"toy.text"}), mend_each({"toy.text": _drop_empty})),)

# --- The rendering: a model's answers, for tests --------------------------------------------------


def render(reply: Reply, *, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of an answer."""
    calls = [
        {"id": call.id or f"call-{number}-{at}", "name": call.name, "arguments": call.text}
        for at, call in enumerate(reply.calls)
    ]
    return {"model": model, "bot": _bot(reply.text, calls), "usage": reply.tokens}


def render_stream(
    reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The same answer as events."""
    answer = render(reply, number=number, model=model, body=body)
    bot = answer.pop("bot")
    words = [{"text": word} for word in bot["text"].partition(" ") if word]
    return [*words, *({"call": call} for call in bot.get("calls", ())), {"end": answer}]
