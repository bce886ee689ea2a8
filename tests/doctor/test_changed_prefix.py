"""Signed reasoning behind another beginning is found where the request before is known, and a
repair takes out what it spoils: the test server, which signs, is the judge of both (PB12, PB19).
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mutations import MUTATIONS
from profiles import examples

from lutumpy import Session
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.apis import serving
from lutumpy.doctor import Problem, apply_repairs, check_messages, propose_repairs
from lutumpy.testing import Call, Reply

Json = dict[str, Any]
MESSAGES, RESPONSES, CONVERSE = "anthropic_messages", "openai_responses", "bedrock_converse"
CHAT, GEMINI, OLLAMA = "openai_chat", "gemini_generate_content", "ollama_chat"
NAMES = ("look", "send")


def tool_of(api: str, name: str) -> Json:
    schema: Json = {"type": "object"}
    if api == MESSAGES:
        return {"name": name, "description": "A tool.", "input_schema": schema}
    if api == RESPONSES:
        return {"type": "function", "name": name, "parameters": schema, "strict": False}
    return {"toolSpec": {"name": name, "description": "A tool.", "inputSchema": {"json": schema}}}


class Talk:
    """A conversation with the part of the test server that stands for an API, without HTTP.

    Attributes:
        body: The next request.
        before: The last one.
    """

    def __init__(self, api: str, model: str, turns: int = 3) -> None:
        self.api, self.model = api, model
        self.server: Any = serving(api, "server")(api, {})
        self.server.is_new_account = True
        self.key = "input" if api == RESPONSES else "messages"
        tools = [tool_of(api, name) for name in NAMES]
        go: Any = [{"text": "Go."}] if api == CONVERSE else [{"type": "text", "text": "Go."}]
        go = "Go." if api == RESPONSES else go
        self.body: Json = {"model": model, self.key: [{"role": "user", "content": go}]}
        if api == MESSAGES:
            self.body.update(system="Be brief.", tools=tools, max_tokens=100)
        elif api == RESPONSES:
            self.body.update(tools=tools, store=False, include=["reasoning.encrypted_content"])
        else:
            self.body.update(system=[{"text": "Be brief."}], toolConfig={"tools": tools})
        self.before = self.body
        for number in range(turns):
            self.turn(number)

    def turn(self, number: int) -> None:
        self.before = copy.deepcopy(self.body)
        call = Call(NAMES[number % 2], {"n": number})
        reply = Reply(reasoning=f"Thought {number}.", calls=[call])
        assert self.refusals(self.body) == []
        answer = self.server.render_reply(reply, number=number, model=self.model, body=self.body)
        self.server.remember(self.body, answer)
        entries = self.body[self.key]
        if self.api == MESSAGES:
            content = answer["content"]
            result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "ok"}
        elif self.api == CONVERSE:
            content = answer["output"]["message"]["content"]
            content[-1]["toolUse"].pop("type", None)  # which the vendor's SDK doesn't know
            use_id = content[-1]["toolUse"]["toolUseId"]
            result = {"toolResult": {"toolUseId": use_id, "content": [{"text": "ok"}]}}
        else:
            entries += answer["output"]
            call_id = answer["output"][-1]["call_id"]
            entries.append({"type": "function_call_output", "call_id": call_id, "output": "ok"})
            return
        entries.append({"role": "assistant", "content": content})
        entries.append({"role": "user", "content": [result]})

    def refusals(self, body: Json) -> list[Problem]:
        """What the server refuses of a request, of reasoning alone."""
        found = self.server.check(body, headers={"anthropic-beta": BETAS})
        return [p for p in found if p.certainty == "refused" and p.rule.endswith("reasoning_bound")]

    def mismatched(self, body: Json) -> list[str]:
        """The places of the reasoning that the server knows to be spoiled."""
        return [block.path for block in self.server.reasoning.judge(body).mismatched]

    def found(self, body: Json, **options: Any) -> list[Problem]:
        """What the doctor finds of the beginning of a request."""
        tools = body["toolConfig"]["tools"] if self.api == CONVERSE else body["tools"]
        options = {"model": body["model"], "before": self.before, **options}
        system = body.get("system") if self.api != RESPONSES else None
        problems = check_messages(self.api, body[self.key], tools=tools, system=system, **options)
        return [p for p in problems if p.rule.endswith(("reasoning_bound", "cached_prefix"))]


BETAS = "mid-conversation-tool-changes-2026-07-01"


def tools_in(talk: Talk, body: Json) -> list[Json]:
    tools: list[Json] = body["toolConfig"]["tools"] if talk.api == CONVERSE else body["tools"]
    return tools


def drop_reasoning(talk: Talk, body: Json, draw: random.Random) -> None:
    """Take one block of reasoning out."""
    number = draw.randrange(3)
    entries = body[talk.key]
    if talk.api == RESPONSES:
        places = [i for i, item in enumerate(entries) if item.get("type") == "reasoning"]
        if number < len(places):
            del entries[places[number]]
        return
    turns = [entry for entry in entries if entry["role"] == "assistant"]
    turns[number % len(turns)]["content"].pop(0)


def edit_text(talk: Talk, body: Json, draw: random.Random) -> None:
    """Say something else in an earlier result, or in the first message."""
    index = draw.choice([0, len(body[talk.key]) - 1])
    text = json.dumps(body[talk.key][index])
    changed = text.replace('"ok"', '"better"') if index else text.replace("Go.", "Go on.")
    body[talk.key][index] = json.loads(changed)


def mark_cache(talk: Talk, body: Json, draw: random.Random) -> None:
    """A mark moves on."""
    if talk.api == MESSAGES:
        body["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    elif talk.api == CONVERSE:
        body["messages"][0]["content"].append({"cachePoint": {"type": "default"}})


def say_more(talk: Talk, body: Json, draw: random.Random) -> None:
    """The user says something at the end."""
    text: Any = [{"text": "And now?"}] if talk.api == CONVERSE else "And now?"
    if talk.api == RESPONSES:
        body["input"].append({"role": "user", "content": text})
    else:
        blocks = text if talk.api == CONVERSE else [{"type": "text", "text": text}]
        body["messages"][-1]["content"] += blocks


EDITS: dict[str, Callable[[Talk, Json, random.Random], Any]] = {
    "nothing": lambda talk, body, draw: None,
    "a tool less": lambda talk, body, draw: tools_in(talk, body).pop(),
    "a tool more": lambda talk, body, draw: tools_in(talk, body).append(tool_of(talk.api, "new")),
    "reasoning": drop_reasoning,
    "text": edit_text,
    "a mark": mark_cache,
    "more": say_more,
}
WORDS = "The block is bound to a different conversation. Remove the block, or set "


@pytest.mark.parametrize(
    ("api", "model", "certainty"),
    [
        (MESSAGES, "claude-fable-5-2", "refused"),
        (MESSAGES, "claude-mythos-5-3", "refused"),
        (MESSAGES, "claude-fable-5-1", "some"),
        (MESSAGES, "claude-opus-5-5-20260901", "some"),
        (RESPONSES, "gpt-6.2-astra", "discouraged"),
        (CONVERSE, "us.anthropic.claude-fable-5-2-v1:0", "refused"),
        (CONVERSE, "us.anthropic.claude-sonnet-5-5-v1:0", "some"),
    ],
)
def test_the_doctor_finds_what_the_server_knows_to_be_spoiled_PB19(
    api: str, model: str, certainty: str
) -> None:
    told = 0
    for seed in range(examples(40)):
        draw = random.Random(seed)
        talk = Talk(api, model, turns=1 + seed % 4)
        body = copy.deepcopy(talk.body)
        chosen = [draw.choice([*EDITS]) for _ in range(1 + seed % 2)]
        for name in chosen:
            EDITS[name](talk, body, draw)
        found = talk.found(body)
        spoiled = [p for p in found if p.rule.endswith("reasoning_bound")]
        assert [p.position for p in spoiled] == talk.mismatched(body), (seed, chosen)
        assert {p.certainty for p in spoiled} <= {certainty}
        refused = talk.refusals(body)
        if refused:
            assert [p.message for p in spoiled[:1]] == [p.message for p in refused]
            assert WORDS in refused[0].message
        told += len(refused)
        # Without the request before nothing is claimed.
        assert talk.found(body, before=None) == []
    assert bool(told) is (api != RESPONSES)


@pytest.mark.parametrize(
    ("api", "model"),
    [(MESSAGES, "claude-opus-5"), (RESPONSES, "gpt-6.1"), (CONVERSE, "amazon.nova-pro-v1:0")],
)
def test_elsewhere_only_the_cache_suffers_PB19(api: str, model: str) -> None:
    talk = Talk(api, model)
    quiet = ("nothing", "a mark", "more")
    for name, edit in EDITS.items():
        body = copy.deepcopy(talk.body)
        edit(talk, body, random.Random(1))
        found = talk.found(body)
        assert {(p.rule.partition(".")[2], p.certainty) for p in found} == (
            set() if name in quiet else {("cached_prefix", "discouraged")}
        ), name
    body = {**talk.body, talk.key: [{"role": "user", "content": "No."}, *talk.body[talk.key][1:]]}
    (problem,) = talk.found(body)
    assert problem.path == (0,)
    assert problem.position in ("messages.0", "input[0]")


def test_the_cache_of_every_other_api_is_judged_as_well_PB19() -> None:
    chat = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Yes."}]
    contents = [{"role": "user", "parts": [{"text": "Go."}]}]
    for api, key, said in (
        (CHAT, "messages", chat),
        (OLLAMA, "messages", chat),
        (GEMINI, "contents", contents),
    ):
        before: Json = {"model": "m", key: said}
        on = [*said, {"role": "user", key.replace("messages", "content")[:7]: "On."}]
        rule = f"{serving(api, 'rules').PREFIX}.cached_prefix"
        assert rule not in [p.rule for p in check_messages(api, on, before=before)]
        changed = [{**said[0], "role": "model" if api == GEMINI else "assistant"}, *said[1:]]
        found = [p for p in check_messages(api, changed, before=before) if p.rule == rule]
        assert [(p.certainty, p.path) for p in found] == [("discouraged", (0,))]
        (tool,) = check_messages(
            api, said, before={**before, "tools": [{"name": "look"}]}, tools=[]
        )[-1:]
        assert (tool.rule, tool.position, tool.path) == (rule, "tools", ("tools",))
        # Names of tools alone say nothing of what they were.
        assert rule not in [
            p.rule for p in check_messages(api, said, before=before, tools=["look"])
        ]
    system = check_messages(
        MESSAGES, chat[:1], before={"system": "A", "messages": chat[:1]}, system="B"
    )
    assert [(p.rule, p.path) for p in system] == [("anthropic.cached_prefix", ("system",))]
    assert check_messages(CHAT, chat, before="no request") == []  # type: ignore[arg-type]


def test_of_later_reasoning_nothing_is_claimed_PB19() -> None:
    """Between the request before and this one there may have been others."""
    talk = Talk(MESSAGES, "claude-fable-5-2", turns=1)
    first = talk.before
    for number in range(1, 4):
        talk.turn(number)
    assert talk.found(talk.body, before=first) == []
    body = copy.deepcopy(talk.body)
    body["messages"][4]["content"][0]["content"] = "another"
    assert talk.mismatched(body) == ["messages.5.content.0", "messages.7.content.0"]
    assert [p.rule for p in talk.found(body, before=first)] == []
    body["messages"][0]["content"][0]["text"] = "Another."
    assert [p.position for p in talk.found(body, before=first)] == talk.mismatched(body)
    # What another model has signed is hidden from this one, and not refused.
    assert [p.rule for p in talk.found(body, before={**first, "model": "claude-opus-5-5"})] == [
        "anthropic.cached_prefix"
    ]


# ------------------------------------------------------------------ repairs


def moved_reasoning(talk: Talk, body: Json, after: Json) -> list[str]:
    """The reasoning of a repaired request that stands behind something else than it did."""
    find = talk.server.reasoning.binding.find
    was = [block for block in find(body, None) if block.seal]
    places = {block.seal: number for number, block in enumerate(was)}
    moved: list[str] = []
    last: int | None = None
    for block in find(after, None):
        number = places.get(block.seal)
        if number is None:  # its message couldn't be read
            return moved
        if was[number].prefix != block.prefix or (last is not None and number != last + 1):
            moved.append(block.path)
        last = number
    return moved


def mended(talk: Talk, body: Json, **options: Any) -> tuple[Json, list[str]]:
    """The repaired request, and the reasoning that its repairs have dropped."""
    repairs = propose_repairs(talk.api, body[talk.key], **options)
    after = {**body, talk.key: apply_repairs(body[talk.key], repairs)}
    return after, [place for repair in repairs for place in repair.drops_reasoning]


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "model"),
    [
        (MESSAGES, "claude-fable-5-2"),
        (RESPONSES, "gpt-6.2-astra"),
        (CONVERSE, "us.anthropic.claude-fable-5-2-v1:0"),
    ],
)
def test_a_repair_takes_out_the_reasoning_that_it_spoils_PB19(api: str, model: str) -> None:
    """Whatever was broken: what a repaired history keeps stands where it stood, and behind the
    block that it stood behind; where the model wasn't named, some doesn't.
    """
    talk = Talk(api, model, turns=4)
    spoils = dropped = 0
    for number, (name, mutate) in enumerate(MUTATIONS[api].items()):
        for seed in range(2):
            body = copy.deepcopy(talk.body)
            if mutate(random.Random(f"{seed}{number}"), body[talk.key]) is None:
                continue
            after, places = mended(talk, body, model=model)
            assert moved_reasoning(talk, body, after) == [], name
            assert propose_repairs(api, after[talk.key], model=model) == [], name
            dropped += bool(places)
            blind, _ = mended(talk, body)
            spoils += bool(moved_reasoning(talk, body, blind))
    assert spoils > 10
    assert dropped > 10


def test_a_repair_says_what_it_drops_and_no_more_PB19() -> None:
    talk = Talk(MESSAGES, "claude-fable-5-2", turns=3)
    body = copy.deepcopy(talk.body)
    del body["messages"][4]["content"][0]  # the second result is lost
    (repair,) = [
        r
        for r in propose_repairs(MESSAGES, body["messages"], model="claude-fable-5-2")
        if r.drops_reasoning
    ]
    assert repair.drops_reasoning == ("messages.5.content.0",)
    assert "is left out too" in repair.reason
    # Behind the reasoning nothing is spoiled, and an older model binds nothing.
    body = copy.deepcopy(talk.body)
    body["messages"].pop()
    assert mended(talk, body, model="claude-fable-5-2")[1] == []
    del body["messages"][4]["content"][0]
    for older in ("claude-opus-5", None):
        assert mended(talk, body, model=older)[1] == []
    # The request before names the model as well.
    assert mended(talk, body, before=talk.before)[1] == ["messages.5.content.0"]


def test_reasoning_of_responses_goes_with_the_ids_that_ask_for_it_PB19() -> None:
    talk = Talk(RESPONSES, "gpt-6.2-astra", turns=3)
    body = copy.deepcopy(talk.body)
    body["input"][5]["arguments"] = {"n": 1}  # of the second call, which makes it a text
    after, places = mended(talk, body, model="gpt-6.2-astra")
    assert places == ["input.7"]
    kinds = [item.get("type") for item in after["input"]]
    assert kinds.count("reasoning") == 2
    assert moved_reasoning(talk, body, after) == []
    calls = [item for item in after["input"] if item.get("type") == "function_call"]
    assert ["id" in call for call in calls] == [True, True, False]


def test_marks_and_the_oldest_reasoning_go_without_any_other_PB19() -> None:
    talk = Talk(MESSAGES, "claude-fable-5-2", turns=3)
    body = copy.deepcopy(talk.body)
    for message in body["messages"]:
        message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    after, places = mended(talk, body, model="claude-fable-5-2")
    assert (after != body, places) == (True, [])
    body = copy.deepcopy(talk.body)
    body["messages"][1]["content"][0]["thinking"] = None  # the oldest can't be read
    after, places = mended(talk, body, model="claude-fable-5-2")
    assert (places, talk.mismatched(after)) == ([], [])
    assert len(after["messages"][1]["content"]) == 1
    body = copy.deepcopy(talk.body)
    body["messages"][3]["content"][0]["thinking"] = None
    after, places = mended(talk, body, model="claude-fable-5-2")
    assert (places, talk.mismatched(after)) == (["messages.5.content.0"], [])


def test_reasoning_that_a_repair_moves_is_taken_out_as_well_PB19() -> None:
    """With a budget it stands first in a turn, but what was before it is bound to it."""
    talk = Talk(MESSAGES, "claude-fable-5-2", turns=2)
    body = copy.deepcopy(talk.body)
    content = body["messages"][3]["content"]
    content.insert(0, {"type": "text", "text": "One moment."})
    options: Json = {"model": "claude-fable-5-2", "thinking": "enabled", "thorough": True}
    repairs = propose_repairs(MESSAGES, body["messages"], **options)
    assert [(r.kind, r.drops_reasoning) for r in repairs] == [
        ("move_content", ("messages.3.content.1",)),
        ("drop_reasoning", ()),
    ]
    after = apply_repairs(body["messages"], repairs)
    assert [block["type"] for block in after[3]["content"]] == ["text", "tool_use"]
    assert [block["type"] for block in after[1]["content"]] == ["thinking", "tool_use"]
    assert propose_repairs(MESSAGES, after, **options) == []


def test_what_is_refused_behind_a_changed_beginning_is_mended_PB19() -> None:
    for api, model in ((MESSAGES, "claude-fable-5-2"), (CONVERSE, "claude-mythos-5-2")):
        talk = Talk(api, model, turns=3)
        body = copy.deepcopy(talk.body)
        edit_text(talk, body, random.Random(3))
        options: Json = {"model": model, "before": talk.before}
        after, _ = mended(talk, body, **options)
        assert talk.mismatched(after) == []
        assert [p.rule for p in talk.found(after) if p.certainty == "refused"] == []
    # Where the account decides it is mended when asked to be thorough.
    talk = Talk(MESSAGES, "claude-opus-5-5", turns=3)
    body = copy.deepcopy(talk.body)
    body["messages"][0]["content"][0]["text"] = "Another."
    options = {"model": "claude-opus-5-5", "before": talk.before}
    assert mended(talk, body, **options)[0] == body
    assert talk.mismatched(mended(talk, body, **options, thorough=True)[0]) == []


# ------------------------------------------------------------------ carriers are judged


def test_changes_in_the_middle_are_legal_and_wrong_ones_are_found_PB12() -> None:
    """Issue 27, point 4: system messages with `clear_at`, `output_config` and changes of tools."""
    talk = Talk(MESSAGES, "claude-fable-5-2", turns=2)
    tools = talk.body["tools"]
    model = {"model": "claude-fable-5-2", "tools": tools}

    def said(*messages: Json) -> list[str]:
        problems = check_messages(MESSAGES, [*talk.body["messages"], *messages], **model)
        return sorted({p.rule for p in problems})

    def system(*blocks: Json, **more: Any) -> Json:
        return {"role": "system", "content": [*blocks], **more}

    def change(kind: str, name: str) -> Json:
        return {"type": kind, "tool": {"type": "tool_reference", "name": name}}

    text = {"type": "text", "text": "Be kind."}
    legal = [
        system(text, clear_at="next_user_message"),
        system(text, output_config={"effort": "low"}),
        system(change("tool_removal", "send")),
        system(change("tool_removal", "send"), change("tool_addition", "send")),
    ]
    for message in legal:
        assert said(message) == [], message
    wrong = {
        "anthropic.clear_at": system(text, clear_at="tomorrow"),
        "anthropic.message_effort": system(text, output_config={"verbosity": "low"}),
        "anthropic.tool_change": system({**change("tool_removal", "send"), "why": "x"}),
        "anthropic.tool_reference_unresolved": system(change("tool_addition", "nobody")),
    }
    for rule, message in wrong.items():
        assert rule in said(message), rule
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
    placed = said(answer, system(change("tool_removal", "send")))
    assert "anthropic.tool_change_position" in placed
    called = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_9", "name": "send", "input": {}}],
    }
    result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "ok"}
    withdrawn = system(change("tool_removal", "send"))
    assert "anthropic.withdrawn_tool" in said(
        withdrawn, called, {"role": "user", "content": [result]}
    )


def test_models_are_known_by_family_and_from_a_version_on_PB12() -> None:
    session = Session()
    session.push_user("Go.")
    session.push_system("Be kind.")
    for model, role in (
        ("claude-fable-5-2", "system"),
        ("claude-mythos-5-2", "system"),
        ("claude-mythos-7-20290101", "system"),
        ("claude-haiku-5-5", "system"),
        ("claude-sonnet-4-5", "user"),
        ("my-claude", "user"),
    ):
        sent: Mapping[str, Any] = AnthropicMessages.request(session.transcript, model=model)
        roles = {message["role"] for message in sent["messages"]}
        assert roles == ({"user", "system"} if role == "system" else {"user"}), model
