"""What the tests of front ends share: logs of real runs, and a client that reads streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio

import lutumpy.durable.events
from lutumpy import Hold, Reject, RunNormally, Session, ToolDecision, Toolset, tool, tool_fn
from lutumpy.durable import DurableLoop, MemoryStore, StoredEvent
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply, ScriptedModel

SCOPE = "chat 1"


@tool_fn(effect="read")
def look(word: str) -> str:
    """Look a word up."""
    if word == "broken":
        raise ValueError("it is broken")
    return f"{word} means {word[::-1]}"


@tool_fn(effect="once")
def pay(amount: int, memo: str = "") -> str:
    """Pay somebody."""
    return f"paid {amount}"


class Desk(Toolset):
    look = tool(look)
    pay = tool(pay)


def policy(call: BaseToolCall) -> ToolDecision:
    """Payments wait for a person, and nobody looks dogs up."""
    if call.metadata.name == "pay":
        return Hold("money")
    if "dog" in call.metadata.arguments:
        return Reject("no dogs")
    return RunNormally()


def call(name: str, id: str, **arguments: Any) -> Call:
    return Call(name, arguments, id=id)


FULL: Sequence[Reply] = (
    Reply(
        text="Let me see.",
        reasoning="A hidden thought.",
        calls=(
            call("look", "l1", word="cat"),
            call("pay", "p1", amount=900900900),
            call("look", "l2", word="dog"),
            call("nothing", "n1", a=1),
            call("look", "l3", word="broken"),
        ),
    ),
    Reply(text="It is done.", reasoning="Good."),
)
PLAIN: Sequence[Reply] = (
    Reply(text="First.", calls=(call("look", "l1", word="cat"),)),
    Reply(text="Second.", calls=(call("look", "l2", word="bird"),)),
    Reply(text="Third."),
)


class RecordingStore(MemoryStore):
    """A store that remembers every event, also pieces of answers that were dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.all: dict[int, StoredEvent] = {}

    async def add_events(self, claim: Any, events: Any, *, drop_deltas: bool = False) -> None:
        await super().add_events(claim, events, drop_deltas=drop_deltas)
        self._keep(claim.scope)

    async def decide(self, *args: Any, **options: Any) -> bool:
        decided = await super().decide(*args, **options)
        self._keep(args[0])
        return decided

    def _keep(self, scope: str) -> None:
        for event in self._find(scope).events:
            self.all.setdefault(event.seq, event)

    @property
    def log(self) -> list[StoredEvent]:
        return [self.all[seq] for seq in sorted(self.all)]


class Answering(ScriptedModel):
    """Answers by where the conversation stands, in whichever run."""

    def __init__(self, script: Sequence[Reply]) -> None:
        super().__init__([], api="anthropic_messages")
        self.script = script

    def _at(self, transcript: Any) -> ScriptedModel:
        number = len(transcript.turns()) % len(self.script)
        return ScriptedModel([self.script[number]], api="anthropic_messages")

    async def respond(self, transcript: Any, *rest: Any) -> Any:
        return await self._at(transcript).respond(transcript, *rest)

    def open_stream(self, transcript: Any, *rest: Any) -> Any:
        return self._at(transcript).open_stream(transcript, *rest)


def make_loop(store: Any, script: Sequence[Reply], **options: Any) -> DurableLoop[Any, Any]:
    chosen: Any = {"tools": Desk, "dispatch": Dispatcher(Desk), "hooks": policy, "events": True}
    return DurableLoop(store, Answering(script), **{**chosen, **options})


def run_log(
    script: Sequence[Reply] = FULL,
    decision: Mapping[str, Any] | None = None,
    messages: Sequence[str] = ("Please do it.",),
) -> list[StoredEvent]:
    """The log of a conversation, with every piece of its answers.

    Args:
        script: What the model says, over and over.
        decision: How the held payment is decided; without one it waits.
        messages: What the user says, one task each.
    """
    store = RecordingStore()

    async def main() -> None:
        await store.create(SCOPE, Session())
        loop = make_loop(store, script)
        for index, text in enumerate(messages):
            await store.push(SCOPE, text, idempotency_key=f"m{index}")
            result = await loop.run(SCOPE)
            if decision is not None and hasattr(result, "digest"):
                await loop.decide(SCOPE, result.digest, {"p1": dict(decision)}, by="ann")
                await loop.run(SCOPE)

    before = lutumpy.durable.events._SECONDS_BETWEEN_WRITES
    lutumpy.durable.events._SECONDS_BETWEEN_WRITES = 0.0
    try:
        anyio.run(main)
    finally:
        lutumpy.durable.events._SECONDS_BETWEEN_WRITES = before
    return store.log


def without(log: Iterable[StoredEvent], leave_out: Callable[[int], bool]) -> list[StoredEvent]:
    """The log without some of its pieces of answers, by their numbers."""
    return [each for each in log if not (each.event.get("delta") and leave_out(each.seq))]


def chunks_of(data: bytes) -> list[Any]:
    """The JSON values of server-sent events; `[DONE]` is a text."""
    found: list[Any] = []
    for line in data.decode().split("\n\n"):
        if line.startswith("data: "):
            text = line[len("data: ") :]
            found.append(text if text == "[DONE]" else json.loads(text))
    return found


class ChatClient:
    """What `useChat` makes of a stream: `processUIMessageStream` of npm `ai` 7, in Python.

    Attributes:
        message: The assistant's message.
        finished: The chunk that ended the response.
    """

    def __init__(self) -> None:
        self.message: dict[str, Any] = {"id": "", "role": "assistant", "parts": []}
        self.finished: Any = None
        self._texts: dict[str, dict[str, Any]] = {}

    def read(self, data: bytes, *, replay: bool = False) -> ChatClient:
        for chunk in chunks_of(data):
            if chunk == "[DONE]":
                continue
            if chunk["type"] == "start" and (replay or chunk["messageId"] != self.message["id"]):
                self.message = {"id": chunk["messageId"], "role": "assistant", "parts": []}
                self._texts, replay = {}, False
            self._apply(chunk["type"], chunk)
        return self

    def _step(self) -> list[dict[str, Any]]:
        parts = self.message["parts"]
        begins = [index for index, part in enumerate(parts) if part["type"] == "step-start"]
        return list(parts[begins[-1] + 1 :] if begins else parts)

    def _tool(self, call_id: str) -> dict[str, Any]:
        for part in reversed(self.message["parts"]):
            if part.get("toolCallId") == call_id:
                return part  # type: ignore[no-any-return]
        raise AssertionError(f"no tool part for {call_id}")

    def _set(self, chunk: Any, state: str, **values: Any) -> None:
        found = [part for part in self._step() if part.get("toolCallId") == chunk["toolCallId"]]
        part = found[0] if found else {"toolCallId": chunk["toolCallId"]}
        if not found:
            self.message["parts"].append(part)
        for name in ("input", "output", "errorText"):
            part.pop(name, None)
        part.update(type=f"tool-{chunk['toolName']}", state=state, **values)

    def _apply(self, kind: str, chunk: Any) -> None:
        parts = self.message["parts"]
        if kind in ("text-start", "reasoning-start"):
            name = kind.partition("-")[0]
            named = {"id": chunk["id"]} if name == "reasoning" else {}
            part = {"type": name, **named, "text": "", "state": "streaming"}
            self._texts[chunk["id"]] = part
            parts.append(part)
        elif kind in ("text-delta", "reasoning-delta"):
            self._texts[chunk["id"]]["text"] += chunk["delta"]
        elif kind in ("text-end", "reasoning-end"):
            self._texts.pop(chunk["id"])["state"] = "done"
        elif kind == "start-step":
            parts.append({"type": "step-start"})
        elif kind == "reset-step":
            del parts[len(parts) - len(self._step()) :]
            self._texts = {}
        elif kind.startswith("data-"):
            for part in parts:
                if (part["type"], part.get("id")) == (kind, chunk["id"]):
                    part["data"] = chunk["data"]
                    break
            else:
                parts.append(dict(chunk))
        elif kind in ("finish", "abort", "error"):
            self.finished = chunk
        elif kind.startswith("tool-"):
            self._apply_tool(kind, chunk)
        else:
            assert kind in ("start", "finish-step"), kind

    def _apply_tool(self, kind: str, chunk: Any) -> None:
        if kind == "tool-input-start":
            self._set(chunk, "input-streaming")
        elif kind == "tool-input-delta":
            assert self._tool(chunk["toolCallId"])["state"] == "input-streaming"
        elif kind == "tool-input-available":
            self._set(chunk, "input-available", input=chunk["input"])
        elif kind == "tool-input-error":
            wrong = {"input": chunk["input"], "errorText": chunk["errorText"]}
            self._set(chunk, "output-error", **wrong)
        elif kind == "tool-approval-request":
            part = self._tool(chunk["toolCallId"])
            part["state"], part["approval"] = "approval-requested", {"id": chunk["approvalId"]}
            if "reason" in chunk:
                part["approval"]["requestReason"] = chunk["reason"]
            if chunk.get("isAutomatic"):
                part["approval"]["isAutomatic"] = True
        elif kind == "tool-approval-response":
            (part,) = [
                part
                for part in self.message["parts"]
                if part.get("approval", {}).get("id") == chunk["approvalId"]
            ]
            part["state"] = "approval-responded"
            part["approval"]["approved"] = chunk["approved"]
            if "reason" in chunk:
                part["approval"]["reason"] = chunk["reason"]
        elif kind == "tool-output-denied":
            self._tool(chunk["toolCallId"])["state"] = "output-denied"
        elif kind == "tool-output-available":
            part = self._tool(chunk["toolCallId"])
            part.update(state="output-available", output=chunk["output"])
        else:
            assert kind == "tool-output-error", kind
            part = self._tool(chunk["toolCallId"])
            part.update(state="output-error", errorText=chunk["errorText"])
