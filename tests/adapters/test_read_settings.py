"""What a history says of settings is read: `tools` is the base, each change a record, and the next
request says only what is different (rule PB18).
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from ledger_oracle import JudgedModel

from lutumpy import Session, ToolAvailability, Toolset, Transcript, TranscriptError, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses, facts_of
from lutumpy.core.turn_settings import in_force_after
from lutumpy.testing import Call, Reply

Json = dict[str, Any]
FABLE = "claude-fable-5-2"
OPENAI, ANTHROPIC = facts_of("api.openai.com"), facts_of("api.anthropic.com")
CHANGES = pathlib.Path(__file__).parent.parent / "fixtures" / "changes.jsonl"


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn(strict=True)
def send(key: str) -> str:
    """Send a text."""
    return key


@tool_fn
def delete(key: str) -> str:
    """Delete something."""
    return key


class Tools(Toolset):
    look, send, delete = tool(look), tool(send, off=True), tool(delete)


def only(*names: str) -> ToolAvailability[Any]:
    return ToolAvailability.only(*[getattr(Tools, name) for name in names])


STEPS: list[Json] = [
    {},
    {"available": only("look")},
    {"available": ToolAvailability.all()},  # a new tool
    {"available": only("delete", "send"), "effort": "low"},
    {"describe": {Tools.look: "Look in the new index."}},
]
ADAPTERS: dict[str, Any] = {
    "claude": lambda: AnthropicMessages(FABLE, host=ANTHROPIC),
    "claude by reference": lambda: AnthropicMessages(
        FABLE, host=facts_of("aiplatform.googleapis.com")
    ),
    "converse": lambda: BedrockConverse(f"us.anthropic.{FABLE}-v1:0"),
    "gpt": lambda: OpenAIResponses("gpt-6.2-astra", host=OPENAI, effort="medium"),
    "chat": lambda: OpenAIChat("gpt-5.4", host=OPENAI),
    "gemini": lambda: Gemini("gemini-3-flash-preview"),
    "ollama": lambda: OllamaChat("qwen3"),
}


def converse_on(session: Session, llm: JudgedModel, options: Json) -> Any:
    """One turn with a call, its result, and the next words."""
    llm.play(Reply(calls=[Call("look", {"key": "x"})] if not options else [], text="Yes."))
    outcome: Any = session.text_turn(llm, tools=Tools, **options).collect_sync()
    if hasattr(outcome, "round"):
        outcome.round.commit(session, [call.complete("x") for call in outcome.round.calls])
        return outcome.round.prefix
    session.push_user("go on")
    return outcome.result.prefix


def parts_of(api: str, body: Json) -> tuple[Any, Any, Any]:
    """Messages, system and tools of a request."""
    if api == "openai_responses":
        return body["input"], body.get("instructions"), body.get("tools")
    if api == "gemini_generate_content":
        return body["contents"], body.get("systemInstruction"), body.get("tools")
    if api == "bedrock_converse":
        return body["messages"], body.get("system"), body["toolConfig"]["tools"]
    return body["messages"], body.get("system"), body.get("tools")


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: unmarked(inner) for k, inner in value.items() if k != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_history_goes_on_where_its_program_stopped_PB18(name: str) -> None:
    """What this library has sent is read, and the same offer changes nothing of it."""
    llm, session = JudgedModel(ADAPTERS[name]()), Session()
    session.push_system("Be brief.")
    session.push_user("go")
    for place, options in enumerate(STEPS):
        converse_on(session, llm, options)
        messages, system, tools = parts_of(llm.api, json.loads(json.dumps(llm.bodies[-1])))
        read = Transcript.from_messages(llm.api, messages, system, tools=tools)
        assert read.settings[0].is_base
        again = Session.load(json.dumps(Session(read).dump()))  # a dump has what was read
        assert again.transcript.settings == read.settings
        for twin in (Session(read), again, Session(read).fork()):
            other = JudgedModel(ADAPTERS[name]())
            other.play(Reply(text="Yes."))
            outcome: Any = twin.text_turn(other, tools=Tools, **options).collect_sync()
            found, _, declared = parts_of(llm.api, other.bodies[-1])
            report = outcome.result.prefix
            assert not other.refusals, (place, other.refusals)
            if name == "gemini" and place in (2, 3):
                continue  # a request of Gemini doesn't say that a tool is strict
            assert "tools" not in report.changed, (place, report)
            # Of the effort and the choice of tools, only what the history says is known.
            said = [words for words in report.appended if words.startswith("tool_addition")]
            if "describe" in options and name not in ("claude", "chat", "gemini", "ollama"):
                said.remove("tool_addition look")  # a text says nothing that could be read
            assert not said, (place, said)
            assert unmarked(found[: len(messages)]) == unmarked(messages), place
            assert sorted(map(str, unmarked(declared))) == sorted(map(str, unmarked(tools))), place


def test_recorded_changes_are_read_into_settings_PB18() -> None:
    """All 28 recorded exchanges: what each brings is in force, and is said to no API again."""
    for line in CHANGES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        api, body = row["api"], row["request"]
        messages, system, tools = parts_of(api, body)
        read = Transcript.from_messages(api, messages, system, tools=tools)
        base, *changes = read.settings
        assert base.is_base, row["source"]
        in_force = in_force_after(read.settings)
        brought = [name for change in changes for name in change.added]
        assert brought, row["source"]
        assert set(brought) <= set(in_force.offered), row["source"]
        assert not set(brought) & in_force.deferred, row["source"]
        if api == "anthropic_messages":
            written = AnthropicMessages.messages(read, model=body["model"])
        else:
            written = OpenAIResponses.messages(read)
        assert written == messages, row["source"]


def history(*changes: Json) -> list[Json]:
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "and now?"},
        *changes,
    ]


LOOK = {"name": "look", "description": "Look something up.", "input_schema": {"type": "object"}}
REFERENCE = {"type": "tool_reference", "name": "look"}
REMOVAL = {"type": "tool_removal", "tool": REFERENCE}
ADDITION = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": LOOK}}


def system(*blocks: Json, **fields: Any) -> Json:
    return {"role": "system", "content": list(blocks), **fields}


def test_what_is_read_is_said_to_other_apis_in_their_words_PB18() -> None:
    """A tool that a history has withdrawn isn't offered again by itself, whoever is asked next."""
    read = Transcript.from_messages(
        "anthropic_messages", history(system(REMOVAL)), tools=[LOOK, {**LOOK, "name": "send"}]
    )
    assert [*in_force_after(read.settings).offered] == ["send"]
    body = OpenAIResponses.request(read, None, model="gpt-6.2-astra")
    assert body.get("tool_choice") in (None, "none")
    for adapter in (OpenAIChat("gpt-5.4", host=OPENAI), Gemini("gemini-3-flash-preview")):
        llm, session = JudgedModel(adapter), Session(read.fork())
        llm.play(Reply(text="Yes."))
        outcome: Any = session.text_turn(llm, tools=Tools, available=only("look")).collect_sync()
        assert not llm.refusals
        assert not outcome.result.prefix


def test_a_change_that_was_read_is_taken_out_when_the_conversation_starts_again_PB18() -> None:
    """By reference no schema can change, so the list of tools says all of it from there on; words
    beside a change stay.
    """
    kind = system(REMOVAL, {"type": "text", "text": "Be kind."}, output_config={"effort": "low"})
    read = Transcript.from_messages(
        "anthropic_messages", history(kind), tools=[LOOK, {**LOOK, "name": "send"}]
    )
    assert [change.effort for change in read.settings] == [None, "low"]
    llm = JudgedModel(AnthropicMessages(FABLE, host=facts_of("aiplatform.googleapis.com")))
    llm.play(Reply(text="Yes."))
    outcome: Any = Session(read).text_turn(llm, tools=Tools).collect_sync()
    assert "tools" in outcome.result.prefix.changed
    body = llm.bodies[-1]
    assert [tool["name"] for tool in body["tools"]] == ["look", "delete"]
    (said,) = [message for message in body["messages"] if message["role"] == "system"]
    assert said == system({"type": "text", "text": "Be kind."})


def test_headers_of_changes_that_were_read_are_sent_PB18() -> None:
    """Also where `tools` wasn't given, so that nothing else is known of them."""
    read = Transcript.from_messages("anthropic_messages", history(system(REMOVAL)))
    assert read.settings == ()
    llm = JudgedModel(AnthropicMessages(FABLE, host=ANTHROPIC))
    llm.play(Reply(text="Yes."))
    Session(read).text_turn(llm, tools=Tools).collect_sync()
    assert not llm.refusals


def test_a_history_that_brings_its_tools_needs_no_others_PB18() -> None:
    read = Transcript.from_messages("anthropic_messages", history(system(ADDITION)))
    assert [change.is_base for change in read.settings] == [True, False]
    assert [*in_force_after(read.settings).offered] == ["look"]


def test_a_text_for_one_turn_is_read_as_one_PB14_PB18() -> None:
    """Another API isn't told it once the user has spoken again."""
    reminder = system({"type": "text", "text": "It is Monday."}, clear_at="next_user_message")
    messages = [*history(reminder), {"role": "assistant", "content": "Yes."}]
    messages += [{"role": "user", "content": "thanks"}]
    read = Transcript.from_messages("anthropic_messages", messages, tools=[])
    assert read.settings[1].reminders == ("It is Monday.",)
    assert "Monday" not in str(OpenAIChat.messages(read))
    trailing = Transcript.from_messages("anthropic_messages", history(reminder), tools=[])
    assert "Monday" in str(OpenAIChat.messages(trailing))


def test_windows_and_rebases_of_a_read_history_keep_what_is_in_force_PB15_PB18() -> None:
    """A window begins with what is in force, and says the later changes as they came."""
    turn = {"role": "assistant", "content": "Yes."}
    messages = [*history(system(REMOVAL)), turn, {"role": "user", "content": "more"}]
    messages += [system({"type": "tool_addition", "tool": REFERENCE}), turn]
    messages += [{"role": "user", "content": "and more"}]
    tools = [LOOK, {**LOOK, "name": "send"}]
    read = Transcript.from_messages("anthropic_messages", messages, tools=tools)
    for rounds in (2, 3):
        window = read.window(max_rounds=rounds)
        found = in_force_after(window.settings)
        assert window.settings[0].is_base
        assert sorted(found.offered) == ["look", "send"], rounds
        llm = JudgedModel(AnthropicMessages(FABLE, host=ANTHROPIC))
        llm.play(Reply(text="Yes."))
        Session(window).text_turn(llm, tools=Tools).collect_sync()
        assert not llm.refusals, rounds


def test_tools_of_every_kind_are_read_PB18() -> None:
    """Text tools, late ones and settings of one API; what a provider runs is left out."""
    grammar = {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}
    tools: list[Json] = [
        {"type": "custom", "name": "count", "description": "A number.", "format": grammar},
        {"type": "custom", "name": "note", "format": {"type": "text"}},
        {"type": "function", "name": "wait", "parameters": {"type": "object"}, "async": True},
        {"type": "function", "name": "find", "parameters": {}, "defer_loading": True},
        {"type": "function"},
        {"type": "custom"},
        {"type": "web_search"},
    ]
    items = [{"role": "user", "content": "go"}]
    (base,) = Transcript.from_messages("openai_responses", items, tools=tools).settings
    assert base.added == ("count", "note", "wait", "find")
    assert base.deferred == ("find",)
    assert [spec.late for spec in base.defined] == [False, False, True, False]
    chat = [{"type": "custom", "custom": {"name": "count", "format": {"grammar": grammar}}}]
    chat += [{"type": "function", "function": {"name": "find"}}, {"type": "function"}]
    (base,) = Transcript.from_messages("openai_chat", items, tools=chat).settings
    assert base.added == ("count", "find")
    claude = [{"type": "bash_20250124", "name": "bash"}, {"type": "web_search_20250305"}]
    claude += [{"type": "web_search_20250305", "name": "web_search"}, {"type": "custom", **LOOK}]
    (base,) = Transcript.from_messages("anthropic_messages", items, tools=claude).settings
    assert base.added == ("bash", "look")
    assert base.defined[0].provider == {"anthropic_messages": {"type": "bash_20250124"}}
    contents = [{"role": "user", "parts": [{"text": "go"}]}]
    declared = [{"name": "look", "parametersJsonSchema": {"type": "object"}}, {"name": "old"}]
    gemini: list[Json] = [{"functionDeclarations": declared}, {"googleSearch": {}}]
    (base,) = Transcript.from_messages("gemini_generate_content", contents, tools=gemini).settings
    assert base.added == ("look",)
    said = [{"role": "user", "content": [{"text": "go"}]}]
    spec = {"name": "look", "inputSchema": {"json": {"type": "object"}}}
    converse: list[Json] = [{"toolSpec": spec}, {"cachePoint": {"type": "default"}}]
    (base,) = Transcript.from_messages("bedrock_converse", said, tools=converse).settings
    assert base.added == ("look",)


def test_settings_of_an_update_are_read_PB18() -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    form = {"type": "json_schema", "name": "note", "schema": schema, "strict": True}
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    items = [
        {"role": "user", "content": "go"},
        {**update, "text": {"format": form}},
        {"type": "message", "role": "assistant", "content": "{}"},
        {"role": "user", "content": "go on"},
        {"type": "configuration_update", "text": {"format": {"type": "text"}}},
    ]
    read = Transcript.from_messages("openai_responses", items, tools=[])
    _, first, second = read.settings
    assert first.effort == "low"
    assert getattr(first.output, "name", "") == "note"
    assert second.output is None
    assert OpenAIResponses.messages(read) == items


def test_what_is_no_list_of_tools_is_refused_PB18() -> None:
    for tools, words in (("look", "tools is str"), (["look"], "tools[0] is no object")):
        with pytest.raises(TranscriptError, match=words.replace("[", r"\[")):
            Transcript.from_messages("openai_chat", history(), tools=tools)
    dump = Session(Transcript.from_messages("openai_chat", history(), tools=[])).dump()
    text = json.dumps(dump)
    known = '"settings": [[-1, {"is_base": true'
    assert known in text
    for wrong in ("[[5, {}]]", "[[0]]", '[["x", {}]]'):
        broken = text.replace(known, f'"settings": {wrong}, "other": [[-1, {{"is_base": true')
        with pytest.raises(TranscriptError):
            Session.load(broken)


def test_words_of_changes_elsewhere_change_nothing_PB18() -> None:
    """Arguments that look like a change, a reference to nothing, what is said twice; and a text
    with an effort, of which the text is left.
    """
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"clear_at": 1}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    lone = {"type": "tool_removal", "tool": {"type": "tool_reference"}}
    reminder = {"role": "system", "content": "Monday.", "clear_at": "next_user_message"}
    effort = {"role": "system", "content": "Be kind.", "output_config": {"effort": "low"}}
    messages: list[Json] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        *[system(REMOVAL), system(REMOVAL), system(lone), reminder, effort],
    ]
    read = Transcript.from_messages("anthropic_messages", messages, tools=[LOOK])
    assert [change.removed for change in read.settings] == [(), ("look",), (), ()]
    assert AnthropicMessages.messages(read) == messages
    llm = JudgedModel(AnthropicMessages(FABLE, host=facts_of("aiplatform.googleapis.com")))
    llm.play(Reply(text="Yes."))
    sent = Transcript.from_messages(
        "anthropic_messages", [m for m in messages if m != system(lone)], tools=[LOOK]
    )
    Session(sent).text_turn(llm, tools=Tools).collect_sync()
    assert "Be kind." in str(llm.bodies[-1]["messages"])
    call = {"toolUseId": "tooluse_1", "name": "look", "input": {"toolAddition": 1}}
    answered = {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "x"}]}}
    said = [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"toolUse": call}]},
        {"role": "user", "content": [answered]},
    ]
    assert len(Transcript.from_messages("bedrock_converse", said, tools=[]).settings) == 1
    empty = Transcript.from_messages("openai_chat", [], tools=[])
    assert empty.settings == ()
    other = Session(Transcript.from_messages("openai_chat", history(), tools=[]))
    gpt = JudgedModel(OpenAIChat("gpt-5.4", host=OPENAI))
    gpt.play(Reply(text="Yes."))
    other.text_turn(gpt, tools=Tools).collect_sync()
    assert len(other.transcript.settings) == 2
