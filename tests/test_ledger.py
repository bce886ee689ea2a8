"""Whatever changes between turns, the next request is accepted, keeps what the API allows, and
tells what is lost: random sessions on five APIs, judged by the test server (rules PB2 to PB9, PB20,
PB21).
"""

# `LUTUMPY_PROFILE=thorough python -m pytest tests/test_ledger.py` runs 3,000 sessions of 25
# requests, other ones in each run; the suite runs 100.

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from ledger_oracle import JudgedModel
from profiles import PROFILE, examples
from pydantic import BaseModel

from lutumpy import (
    AdapterError,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolRequirement,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.anthropic import request as anthropic_request
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses, facts_of
from lutumpy.adapters.writing import body_dict
from lutumpy.models import TurnOptions
from lutumpy.testing import Call, Failure, Reply

Json = dict[str, Any]
REQUESTS = 25
SEED = random.randrange(10**9) if PROFILE == "thorough" else 0

pytestmark = pytest.mark.scaled


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn(name="look")
def look_longer(key: str, pages: int = 1) -> str:
    """Look something up."""
    return key * pages


@tool_fn
def send(key: str) -> str:
    """Send a text."""
    return key


@tool_fn
def delete(key: str) -> str:
    """Delete something."""
    return key


class Tools(Toolset):
    look, send, delete = tool(look), tool(send, off=True), tool(delete)


class LaterTools(Toolset):
    """The same, but for the schema of one."""

    look, send, delete = tool(look_longer), tool(send, off=True), tool(delete)


DONE = {"type": "text", "text": "Found."}


class Note(BaseModel):
    text: str


OPENAI, ANTHROPIC = facts_of("api.openai.com"), facts_of("api.anthropic.com")
FABLE = "claude-fable-5-2"
APIS: Mapping[str, Callable[[], Any]] = {
    "claude": lambda: AnthropicMessages(FABLE, host=ANTHROPIC),
    "claude by reference": lambda: AnthropicMessages(
        FABLE, host=facts_of("aiplatform.googleapis.com")
    ),
    "claude at Bedrock": lambda: AnthropicMessages(
        f"us.anthropic.{FABLE}-v1:0", host=facts_of("bedrock-runtime.us-east-1.amazonaws.com")
    ),
    "claude elsewhere": lambda: AnthropicMessages(FABLE, host=facts_of("localhost:4000")),
    "converse": lambda: BedrockConverse(f"us.anthropic.{FABLE}-v1:0", cache="auto"),
    # There is no word for the default effort, so going back to it would be a new beginning.
    "gpt": lambda: OpenAIResponses("gpt-6.2-astra", host=OPENAI, effort="medium"),
    "gpt elsewhere": lambda: OpenAIResponses("gpt-6.2-astra", host=facts_of("api.groq.com")),
    "gemini": lambda: Gemini("gemini-3-flash-preview"),
    "chat": lambda: OpenAIChat("gpt-5.4", host=OPENAI),
    "chat elsewhere": lambda: OpenAIChat("m", host=facts_of("api.groq.com")),
}
SIGNING = (
    *("claude", "claude by reference", "claude at Bedrock", "claude elsewhere"),
    *("converse", "gpt", "gpt elsewhere"),
)


class Operation(NamedTuple):
    """What is different in one turn.

    Attributes:
        options: What the turn is given.
        toolset: Its tools.
        before: What is done to the session before.
    """

    options: Json = {}
    toolset: Any = Tools
    before: Callable[[Session], object] = lambda session: None


def narrow(*names: str) -> Operation:
    chosen = [getattr(Tools, name) for name in names]
    return Operation({"available": ToolAvailability.only(*chosen)})


NOTHING = Operation()
NEW_TOOL = Operation({"available": ToolAvailability.all()})
APPENDED: tuple[Operation, ...] = (
    NOTHING,
    NOTHING,
    narrow("look"),
    narrow(),
    narrow("delete", "look"),
    NEW_TOOL,
    Operation({"describe": {Tools.look: "Look in the new index."}}),
    Operation({"available": ToolAvailability.only(Tools.look), "prefix_stable": True}),
    Operation({"effort": "low"}),
    Operation(before=lambda session: session.push_system("From here on, be kind.")),
    Operation(before=lambda session: session.push_ephemeral_system("It is Monday.")),
)
"""What is kept or appended at Anthropic, and at OpenAI from GPT-6.2 on."""
GPTS_OWN: tuple[Operation, ...] = (Operation({"output": Note}),)
SCHEMA = Operation(toolset=LaterTools)
OTHERS: tuple[Operation, ...] = (
    SCHEMA,
    Operation({"output": Note}),
    Operation(before=lambda session: session.push_ephemeral_user("By the way.")),
    Operation({"describe": {Tools.look: "Look."}, "on_prefix_change": "drop"}),
    Operation({"require": ToolRequirement.optional(), "parallel": False}),
)


class Ledger:
    """One random session, and what is known of it."""

    def __init__(self, adapter: Any, seed: int) -> None:
        self.llm = JudgedModel(adapter)
        self.chance = random.Random(seed)
        self.session = Session()
        self.session.push_system("Be brief.")
        self.session.push_user("go")
        self.number = 0
        self.signed = 0
        self.dropped = 0
        self.is_paused = self.is_running = False
        self.last = NOTHING

    def run(
        self, operations: tuple[Operation, ...], *, may_fail: bool = True, may_rebase: bool = False
    ) -> Any:
        """Make one turn, perhaps after a failed one, on a fork or a loaded copy; its report."""
        operation = self.last = self.chance.choice(operations)
        if self.chance.random() < 0.15:
            self.session = Session.load(json.dumps(self.session.dump()))
        if self.chance.random() < 0.1:
            self.session = self.session.fork()
        if not self.is_running:
            operation.before(self.session)
        if may_fail and self.chance.random() < 0.1:
            self.llm.play(Failure(503, "busy"))
            with pytest.raises(AdapterError):
                self.ask(operation)
            if not self.is_running and self.chance.random() < 0.5:
                self.session.push_user("are you there?")
        self.number += 1
        self.llm.play(self.reply(operation))
        outcome = self.ask(operation)
        self.signed += 1
        if isinstance(outcome, NeedsTools):
            found = outcome.round
            results = [call.complete("done") for call in found.calls]
            if may_rebase and self.chance.random() < 0.1:
                self.session.push_user("quick!")  # while the tools ran
                found.commit(self.session, results, rebase=True)
            else:
                found.commit(self.session, results)
            self.is_paused = self.is_running = False
            self.dropped += len(found.prefix.dropped)
            return found.prefix
        result = getattr(outcome, "result", outcome)
        self.dropped += len(result.prefix.dropped)
        self.is_paused = self.session.turns()[-1].finish_reason == "paused"
        self.is_running = self.session.turns()[-1].results_only
        if not self.is_paused:
            self.go_on(only_for_now=may_rebase and self.chance.random() < 0.1)
        return result.prefix

    def go_on(self, *, only_for_now: bool) -> None:
        """Say something behind an answer; what is said for one request leaves, and the next answer
        stands right behind this one.
        """
        if only_for_now:
            self.session.push_ephemeral_user("go on")
        else:
            self.session.push_user("go on")

    def ask(self, operation: Operation) -> Any:
        options = dict(operation.options)
        value = options.pop("output", None)
        if value is not None:
            turn = self.session.structured_turn(self.llm, value, tools=operation.toolset, **options)
        else:
            turn = self.session.text_turn(self.llm, tools=operation.toolset, **options)
        return turn.collect_sync()

    def offered(self, operation: Operation) -> list[str]:
        options = {k: v for k, v in operation.options.items() if k in ("available", "describe")}
        return [selector.name for selector in operation.toolset.offer(**options).selectors]

    def reply(self, operation: Operation) -> Reply | Json:
        thought = f"thought {self.number}"
        names = self.offered(operation)
        if self.is_running:
            return resumed(self.number)
        if "output" in operation.options:
            return Reply(text='{"text": "x"}', reasoning=thought)
        if self.llm.api == "anthropic_messages" and self.chance.random() < 0.1:
            return self.chance.choice((paused, stopped))(self.number)
        if names and self.chance.random() < 0.6:
            name = self.chance.choice(names)
            return Reply(calls=[Call(name, {"key": "x"})], reasoning=thought)
        return Reply(text=f"answer {self.number}", reasoning=thought)


def paused(number: int) -> Json:
    """An answer that wants to go on: the vendor's own tool still runs."""
    search = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search"}
    return said(number, {**search, "input": {"query": "x"}}, "pause_turn")


def stopped(number: int) -> Json:
    """An answer that wants to go on, with nothing left to run: other words may come before."""
    answer = paused(number)
    used = {"tool_use_id": f"srvtoolu_{number}", "content": []}
    answer["content"].append({"type": "web_search_tool_result", **used})
    return answer


def resumed(number: int) -> Json:
    """The answer that goes on with it: the result of that tool."""
    used = {"tool_use_id": f"srvtoolu_{number - 1}", "content": []}
    return said(number, {"type": "web_search_tool_result", **used}, "end_turn")


def said(number: int, block: Json, stop: str) -> Json:
    thinking = {"type": "thinking", "thinking": "", "signature": f"signed {number}"}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": FABLE,
        "content": [thinking, block] if stop == "pause_turn" else [block, thinking, DONE],
        "stop_reason": stop,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def callable_names(api: str, body: Json) -> set[str]:
    """What a request lets the model call, read from what it says."""
    if api == "gemini_generate_content":
        entries = [each for tool in body.get("tools", ()) for each in tool["functionDeclarations"]]
        config = body.get("toolConfig", {}).get("functionCallingConfig", {})
        if config.get("mode") == "NONE":
            return set()
        return set(config.get("allowedFunctionNames") or [entry["name"] for entry in entries])
    if api == "bedrock_converse":
        listed = body.get("toolConfig", {}).get("tools", ())
        found = {each["toolSpec"]["name"] for each in listed if "toolSpec" in each} - {"no_tools"}
        for message in body["messages"]:
            for block in message["content"] if message["role"] == "system" else ():
                for kind, change in (("toolAddition", found.add), ("toolRemoval", found.discard)):
                    if kind in block:
                        change(block[kind]["tool"]["name"])
        return found
    if api == "anthropic_messages":
        found = {t["name"] for t in body.get("tools", ()) if not t.get("defer_loading")}
        for message in body["messages"]:
            is_system = message["role"] == "system" and not isinstance(message["content"], str)
            for block in message["content"] if is_system else ():
                if block["type"] in ("tool_addition", "tool_removal"):
                    name = block["tool"].get("name") or block["tool"]["definition"]["name"]
                    change = found.add if block["type"] == "tool_addition" else found.discard
                    change(name)
        return found
    listed = [*body.get("tools", ())]
    for item in body.get("input", ()):
        if item.get("type") == "additional_tools":
            listed += item["tools"]
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        listed = choice.get("allowed_tools", choice)["tools"]
    if choice == "none":
        return set()
    return {entry.get("name") or entry["function"]["name"] for entry in listed}


def sessions(names: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(names[k % len(names)], SEED + k) for k in range(examples(100))]


@pytest.mark.pure
@pytest.mark.slow
def test_random_sessions_are_taken_and_every_loss_is_told_PB8_PB9_PB21() -> None:
    """Section 5.1: nothing refused, nothing dropped without a receipt, no receipt for what wasn't
    dropped, and the model can call exactly the offer.
    """
    for name, seed in sessions(tuple(APIS)):
        ledger = Ledger(APIS[name](), seed)
        llm = ledger.llm
        for _ in range(REQUESTS):
            report = ledger.run((*APPENDED, *OTHERS), may_rebase=True)
            where = f"{name} {seed} request {ledger.number}"
            assert not llm.refusals, f"{where}: {llm.refusals}"
            assert llm.transformed == 0, where
            if name in SIGNING:
                sent = llm.shown()
                assert sent == ledger.signed - 1 - ledger.dropped, where
            wanted = set(ledger.offered(ledger.last))
            if not report.waiting:  # then the calls are held against the offer alone (PB3, PB5)
                assert callable_names(llm.api, llm.bodies[-1]) == wanted, where


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude", "claude by reference", "claude at Bedrock", "gpt"])
def test_what_can_be_said_loses_nothing_and_only_appends_PB2_PB6(name: str) -> None:
    """Section 5.2: where everything has words all reasoning stays, and every request begins with
    the one before. By reference a tool can't be new to the base, which may be empty.
    """
    operations = (*APPENDED, *GPTS_OWN) if name == "gpt" else APPENDED
    by_reference = name in ("claude by reference", "claude at Bedrock")
    for _, seed in sessions((name,))[::5]:
        ledger = Ledger(APIS[name](), seed)
        for number in range(REQUESTS):
            report = ledger.run((NEW_TOOL,) if by_reference and not number else operations)
            where = f"{name} {seed} request {number}: {report}"
            assert not report.dropped, where
            assert ledger.llm.shown() == number, where
            assert report.cache != "restarts", where
            if number:
                before, after = ledger.llm.bodies[-2:]
                assert beginning(after, before) == everything(before), where
        assert not ledger.llm.refusals


def everything(body: Json) -> Json:
    return beginning(body, body)


def beginning(body: Json, length_of: Json) -> Json:
    """What a request begins with, as far as another one is long, without marks of the cache."""
    key = "input" if "input" in body else "messages"
    fields = {"tools": body.get("tools"), "system": body.get("system")}
    return unmarked({**fields, key: body[key][: len(length_of[key])]})


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.pure
@pytest.mark.slow
def test_the_careful_way_drops_exactly_what_the_vendor_would_PB8(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Section 5.3: where nothing can be said, what is left out is what `drop_block` takes away."""
    made = anthropic_request.dialect_of
    binds = True

    def dialect_of(model: str | None, host: str | None) -> Any:
        dialect, plain, blocks = made(model, host)
        return dialect._replace(binds=binds), plain, blocks

    monkeypatch.setattr(anthropic_request, "dialect_of", dialect_of)
    compared = 0
    for _, seed in sessions(("claude elsewhere",))[::8]:
        ledger = Ledger(APIS["claude elsewhere"](), seed)
        llm = ledger.llm
        respond = llm.respond_sync
        dropped_by_vendor: list[int] = []

        def both_ways(
            transcript: Any,
            offering: Any,
            options: TurnOptions,
            llm: JudgedModel = llm,
            respond: Any = respond,
            found: list[int] = dropped_by_vendor,
        ) -> Any:
            nonlocal binds
            binds = False
            whole = body_dict(llm.adapter._request(transcript, offering, options))
            binds = True
            assert llm.judge.reasoning is not None
            found.append(len(llm.judge.reasoning.judge(whole).mismatched))
            return respond(transcript, offering, options)

        llm.respond_sync = both_ways  # type: ignore[method-assign]
        for _ in range(REQUESTS):
            gone = {turn for turn in ledger.session.turns() if turn.reasoning_dropped}
            report = ledger.run((*APPENDED[:-1], SCHEMA), may_fail=False)
            assert not gone  # no ephemerals here
            assert len(report.dropped) == dropped_by_vendor[-1]
            compared += bool(report.dropped)
        assert not llm.refusals
    assert compared


def test_a_required_call_has_tools_beside_its_choice_C9() -> None:
    """Tools that messages bring stand in no list, and no choice is taken without one."""
    for adapter in (
        AnthropicMessages("claude-opus-4-8", host=ANTHROPIC),
        OpenAIResponses("gpt-6.2-astra", host=OPENAI),
        OpenAIChat("gpt-5.4", host=OPENAI),
    ):
        llm, session = JudgedModel(adapter), Session()
        session.push_user("go")
        must = {"tools": Tools, "require": ToolRequirement.at_least_one()}
        for options in ({}, {"tools": Tools, "parallel": False}, must, must):
            calls = [Call("look", {"key": "x"})] if "require" in options else []
            llm.play(Reply(text="" if calls else "Yes.", calls=calls, reasoning="hm"))
            outcome: Any = session.text_turn(llm, **options).collect_sync()
            if isinstance(outcome, NeedsTools):
                outcome.round.commit(session, [c.complete("x") for c in outcome.round.calls])
            else:
                session.push_user("go on")
        assert llm.bodies[-1]["tools"]
        assert not llm.refusals


NEW_TOOL_CALLED: Json = {
    "tools": Tools,
    "available": ToolAvailability.all(),
    "require": ToolRequirement.specific(Tools.send),
}
"""A turn that requires a call of a tool which no request before has declared."""


def ask_in_turn(llm: JudgedModel, session: Session, *asked: tuple[Json, Reply | Json]) -> list[Any]:
    """Make these turns, each with its options and its answer; their reports."""
    reports = []
    for options, answer in asked:
        llm.play(answer)
        outcome: Any = session.text_turn(llm, **options).collect_sync()
        if isinstance(outcome, NeedsTools):
            reports.append(outcome.round.prefix)
            outcome.round.commit(session, [c.complete("x") for c in outcome.round.calls])
        else:
            result = getattr(outcome, "result", outcome)
            reports.append(result.prefix)
            if result.finish_reason != "paused":
                session.push_user("go on")
    return reports


@pytest.mark.parametrize(
    "adapter",
    [
        AnthropicMessages("claude-opus-4-8", host=ANTHROPIC),
        AnthropicMessages("claude-opus-4-8", host=facts_of("aiplatform.googleapis.com")),
        AnthropicMessages("claude-sonnet-4-6", host=ANTHROPIC),
        BedrockConverse("us.anthropic.claude-opus-4-8-v1:0"),
        OpenAIResponses("gpt-6.2-astra", host=OPENAI),
        OpenAIChat("gpt-5.4", host=OPENAI),
    ],
    ids=["messages", "by reference", "in place", "converse", "responses", "chat"],
)
def test_a_required_tool_is_where_the_choice_looks_for_it_C9_PB2(adapter: Any) -> None:
    """On Messages that are the tools of the field: those that messages bring, and deferred ones,
    can't be chosen by name. The conversation starts again at most once.
    """
    llm, session = JudgedModel(adapter), Session()
    session.push_user("go")
    called, answered = Reply(calls=[Call("send", {"key": "x"})], reasoning="hm"), Reply(text="Yes.")
    plain: Json = {"tools": Tools}
    reports = ask_in_turn(
        *(llm, session),
        (plain, answered),
        (NEW_TOOL_CALLED, called),
        (plain, answered),
        (NEW_TOOL_CALLED, called),
        ({**plain, "available": ToolAvailability.all()}, answered),
    )
    assert not llm.refusals
    if llm.api == "anthropic_messages":
        declared = {t["name"]: t.get("defer_loading", False) for t in llm.bodies[1]["tools"]}
        assert declared["send"] is False
        assert reports[1].changed == ("tools",)
    if adapter.model != "claude-sonnet-4-6":  # it has no words for what is offered then
        for before, after in zip(llm.bodies[1:], llm.bodies[2:], strict=False):
            assert beginning(after, before) == everything(before)
    assert Session.load(session.dump()).dump() == session.dump()


@pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-sonnet-4-6"])
def test_a_required_call_does_not_wait_for_its_tool_behind_a_paused_answer_PB5_C9(
    model: str,
) -> None:
    search: Json = {"extra": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}}
    plain: Json = {"tools": Tools, **search}
    everything_offered = {**plain, "available": ToolAvailability.all()}
    a_call: Json = {"require": ToolRequirement.at_least_one()}
    only_send = {**plain, **a_call, "available": ToolAvailability.only(Tools.send)}
    called, answered = Reply(calls=[Call("send", {"key": "x"})], reasoning="hm"), Reply(text="Yes.")

    def ask(*asked: tuple[Json, Reply | Json]) -> Any:
        llm, session = JudgedModel(AnthropicMessages(model, host=ANTHROPIC)), Session()
        session.push_user("go")
        reports = ask_in_turn(llm, session, *asked, (plain, answered))
        assert not llm.refusals
        return reports[-2]

    # No tool was declared before, or others, or the tool itself, which was withdrawn then.
    for before, beside in ((search, search), (plain, plain), (everything_offered, plain)):
        for required in ({**NEW_TOOL_CALLED, **search}, only_send):
            report = ask((before, answered), (beside, paused(1)), (required, called))
            assert not report.waiting
            assert "tools" in report.changed
    # One that can be met by what was said before waits, where its change is an entry.
    report = ask((plain, paused(1)), ({**everything_offered, **a_call}, answered))
    has_words = model == "claude-opus-4-8"
    assert report.waiting == (("tool_addition send",) if has_words else ())
