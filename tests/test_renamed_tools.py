"""A tool whose name one API refuses has another one there, and is found again (rule R2)."""

from __future__ import annotations

import json
import pathlib
import random
import re
from typing import Any

import pytest
from profiles import examples
from pydantic import BaseModel
from typer.testing import CliRunner

from lutumpy import (
    DynamicTool,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolAvailability,
    ToolRequirement,
    Toolset,
    Transcript,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.apis import api_names
from lutumpy.cli.app import app
from lutumpy.core.tool_names import ToolNames
from lutumpy.doctor import check_messages
from lutumpy.rules.gemini.messages import check_request
from lutumpy.streaming import ToolCallDelta, ToolCallReady
from lutumpy.testing import Call, Reply, ScriptedModel, serve

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
ODD = ["3d_render", "-", "0", "9" * 64, "-x-", "1", "3d-render"]
LEGAL = ["look", "_3d_render", "tool_3d_render", "a" * 64]
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
OTHERS = [OpenAIChat, OpenAIResponses, AnthropicMessages, BedrockConverse]


def toolset(*names: str) -> type[Toolset[Any]]:
    return Toolset.of("Tools", [DynamicTool(name, f"Tool {name}.", SCHEMA) for name in names])


Tools = toolset(*ODD, *LEGAL)


def declared(body: dict[str, Any]) -> dict[str, str]:
    """The names of the functions in a request, by their descriptions' last word."""
    [entry] = body["tools"]
    return {
        function["description"].removeprefix("Tool ").rstrip("."): function["name"]
        for function in entry["functionDeclarations"]
    }


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("Go.")
    return transcript


def names_of(tools: type[Toolset[Any]] = Tools) -> dict[str, str]:
    return declared(Gemini.request(asked(), tools.offer()))


def answer(*calls: tuple[str, Any], **more: Any) -> dict[str, Any]:
    parts = [{"functionCall": {"name": name, "args": args, **more}} for name, args in calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro"}


def test_every_tool_of_a_toolset_can_be_offered_R2_Y1() -> None:
    body = Gemini.request(asked(), Tools.offer(), model="gemini-3-pro")
    assert [p for p in check_request(body) if p.certainty == "refused"] == []
    found = declared(body)
    assert len(set(found.values())) == len(ODD) + len(LEGAL)
    assert all(GEMINI_NAME.fullmatch(name) for name in found.values())
    assert {name: found[name] for name in LEGAL} == {name: name for name in LEGAL}
    assert "3d_render" in found["3d_render"]  # the model should know what it is
    assert Gemini.tools(Tools.offer()) == body["tools"]


def test_the_list_of_tools_depends_on_the_offer_alone_A4() -> None:
    long = asked()
    long.push_user("And on.")
    bodies = [Gemini.request(transcript, Tools.offer()) for transcript in (asked(), long)]
    assert json.dumps(bodies[0]["tools"]) == json.dumps(bodies[1]["tools"])
    alone = names_of(toolset("3d_render"))
    assert alone == {"3d_render": names_of()["3d_render"]}


def test_no_two_tools_meet_whatever_they_are_named_R2() -> None:
    first = names_of(toolset("3d_render"))["3d_render"]
    second = names_of(toolset(first))[first]
    third = names_of(toolset(second))[second]
    tools = toolset("3d_render", first, second)
    assert set(names_of(tools).values()) == {first, second, third}
    for own, sent in names_of(tools).items():
        outcome = tools.offer().read(Gemini.response(answer((sent, {"n": 1}))), asked())
        assert isinstance(outcome, NeedsTools)
        assert [call.metadata.name for call in outcome.round.calls] == [own]
        outcome.round.discard()


def test_random_names_are_offered_and_found_again_R2() -> None:
    luck = random.Random(3)
    letters = "aZ09_-"
    names = ToolNames(GEMINI_NAME, 64)
    for _ in range(examples(150)):
        chosen = {
            "".join(luck.choices(letters, k=luck.choice([1, 2, 8, 22, 64]))) for _ in range(12)
        }
        chosen |= {names(name) for name in luck.sample(sorted(chosen), 3)}
        tools = toolset(*sorted(chosen))
        sent = names_of(tools)
        assert len(set(sent.values())) == len(chosen)
        calls = [(name, {"n": k}) for k, name in enumerate(sent.values())]
        outcome = tools.offer().read(Gemini.response(answer(*calls)), asked())
        assert isinstance(outcome, NeedsTools)
        assert [call.metadata.name for call in outcome.round.calls] == list(sent)
        outcome.round.discard()


def test_calls_hooks_issues_and_results_have_the_tools_own_name_R2() -> None:
    sent = names_of()
    session = Session()
    session.push_user("Go.")
    transcript = session.transcript
    good, bad = (sent["3d_render"], {"n": 1}), (sent["-"], {"n": "no"})
    turn = Gemini.response(answer(good, bad, ("3d_rendr", {}), (sent["0"], {"n": 2})))
    others = [selector for selector in Tools.selectors() if selector.name != "1"]
    offer = Tools.offer(available=ToolAvailability.only(*others))
    outcome = offer.read(turn, session)
    assert isinstance(outcome, NeedsTools)
    assert [c.metadata.name for c in outcome.round.calls] == ["3d_render", "0"]
    wrong, unknown = outcome.round.issues
    assert (wrong.metadata.name, wrong.reason) == ("-", "invalid_arguments")
    assert (unknown.metadata.name, unknown.reason) == ("3d_rendr", "unknown_tool")
    assert "Did you mean 3d_render" in unknown.detail
    seen: list[str] = []
    hooks = Tools.hooks()

    @hooks.on(Tools.selector("3d_render"))
    def watch(metadata: Any, input: Any) -> Any:
        seen.append(metadata.name)
        return RunNormally(input)

    @hooks.on(Tools.selector("0"))
    def refuse(metadata: Any, input: Any) -> Any:
        return Reject("No.")

    plan = outcome.round.apply_hooks_sync(hooks)
    assert seen == ["3d_render"]
    plan.commit(session, [plan.pending[0].complete("done")])
    # What goes back is what came, and each result has its call's name there (rule R1).
    contents = Gemini.request(transcript, Tools.offer())["contents"]
    calls = [part["functionCall"]["name"] for part in contents[1]["parts"]]
    results = [part["functionResponse"]["name"] for part in contents[2]["parts"]]
    assert calls == results == [sent["3d_render"], sent["-"], "3d_rendr", sent["0"]]
    found = check_messages("gemini_generate_content", contents)
    assert [problem for problem in found if problem.rule != "gemini.signature"] == []
    # A dump keeps both, and every other API is told the tool's own names.
    loaded = Session.load(session.dump()).transcript
    assert Gemini.request(loaded)["contents"] == contents
    for adapter in OTHERS:
        text = json.dumps(adapter.request(transcript, Tools.offer()))
        assert '"3d_render"' in text
        assert sent["3d_render"] not in text


def test_a_tool_that_is_not_offered_has_its_own_reason_C2() -> None:
    sent = names_of()
    offer = Tools.offer(available=ToolAvailability.only(Tools.selector("look")))
    outcome = offer.read(Gemini.response(answer((sent["3d_render"], {"n": 1}))), asked())
    assert isinstance(outcome, NeedsTools)
    [issue] = outcome.round.issues
    assert (issue.metadata.name, issue.reason) == ("3d_render", "not_available")
    outcome.round.discard()


@pytest.mark.parametrize("api", api_names())
def test_a_history_of_any_api_names_tools_as_the_list_does_R2(api: str) -> None:
    calls = [Call("3d_render", {"n": 1}), Call("look", {"n": 2})]
    session = Session()
    session.push_user("Go.")
    outcome = session.text_turn(
        ScriptedModel([Reply(calls=calls)], api=api), tools=Tools
    ).collect_sync()
    assert isinstance(outcome, NeedsTools)
    results = [call.complete("done") for call in outcome.round.calls]
    outcome.round.commit(session, results)
    body = Gemini.request(session.transcript, Tools.offer(), model="gemini-3-pro")
    own = declared(body)
    # What a model of this API calls by another name than it was told goes back as it came.
    wanted = [own["3d_render"] if api != "gemini_generate_content" else "3d_render", "look"]
    assert [p["functionCall"]["name"] for p in body["contents"][1]["parts"]] == wanted
    assert [p["functionResponse"]["name"] for p in body["contents"][2]["parts"]] == wanted
    assert [p for p in check_request(body) if p.certainty == "refused"] == []


def test_a_choice_names_the_function_that_is_declared() -> None:
    own = names_of()
    for offer, allowed in (
        (Tools.offer(require=ToolRequirement.specific(Tools.selector("-"))), ["-"]),
        (
            Tools.offer(
                available=ToolAvailability.only(Tools.selector("-"), Tools.selector("look")),
                prefix_stable=True,
            ),
            ["-", "look"],
        ),
    ):
        body = Gemini.request(asked(), offer)
        config = body["toolConfig"]["functionCallingConfig"]
        assert config["allowedFunctionNames"] == [own[name] for name in allowed]
        assert [p for p in check_request(body) if p.certainty == "refused"] == []


def test_a_stream_names_calls_as_the_whole_answer_does_S1() -> None:
    sent = names_of()["3d_render"]
    begin = {"functionCall": {"name": sent, "willContinue": True}}
    piece = {"functionCall": {"partialArgs": [{"jsonPath": "$.n", "numberValue": 1}]}}
    chunks = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, **more}]}
        for part, more in ((begin, {}), (piece, {"finishReason": "STOP"}))
    ]
    reader = Tools.offer().reader(Gemini.stream_decoder(), asked())
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    assert [e.name for e in events if isinstance(e, ToolCallDelta)] == ["3d_render"]
    [ready] = [event for event in events if isinstance(event, ToolCallReady)]
    assert ready.call.metadata.name == "3d_render"
    assert reader.partial_input(ready.call.metadata.id) == {"n": 1}
    outcome = reader.finish()
    assert isinstance(outcome, NeedsTools)
    assert list(outcome.round.calls) == [ready.call]
    outcome.round.discard()


class Found(BaseModel):
    """What was found."""

    city: str


async def test_through_the_sdk_and_the_server_with_a_value_at_the_end() -> None:
    from google import genai

    def call(api: str, body: Any) -> Any:
        """The model calls the first function by the name that it was told."""
        name = body["tools"][0]["functionDeclarations"][0]["name"]
        assert name != "3d_render"
        return Reply(calls=[Call(name, {"n": 1})])

    with serve() as server:
        options: Any = {"base_url": server.url}
        client = genai.Client(api_key="k", http_options=options)
        for streamed in (False, True):
            server.play(call, Reply(text='{"city": "Oslo"}'))
            session = Session()
            session.push_user("Go.")
            llm = Gemini("gemini-3-pro-preview", client)
            turn = session.structured_turn(llm, Found, tools=Tools)
            if streamed:
                async with turn.stream() as events:
                    outcome = await events.collect()
            else:
                outcome = await turn.collect()
            assert isinstance(outcome, NeedsTools)
            [made] = outcome.round.calls
            assert made.metadata.name == "3d_render"
            outcome.round.commit(session, [made.complete("done")])
            finished = await session.structured_turn(llm, Found, tools=Tools).collect()
            assert not isinstance(finished, NeedsTools)
            assert finished.result.value == Found(city="Oslo")
        assert all(request.status == 200 for request in server.requests)


def test_conversion_names_tools_in_list_and_history_alike(tmp_path: pathlib.Path) -> None:
    function = {"name": "3d_render", "parameters": {"type": "object", "properties": {}}}
    made = {"id": "c1", "type": "function", "function": {"name": "3d_render", "arguments": "{}"}}
    file = tmp_path / "chat.json"
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    tools = [{"type": "function", "function": function}]
    file.write_text(json.dumps({"model": "gpt-4o", "messages": messages, "tools": tools}))
    result = CliRunner().invoke(app, ["convert", str(file), "--to", "gemini_generate_content"])
    body = json.loads(result.stdout)
    [declaration] = body["tools"][0]["functionDeclarations"]
    assert declaration["name"] == names_of()["3d_render"]
    assert body["contents"][1]["parts"][0]["functionCall"]["name"] == declaration["name"]
    assert check_request(body) == []


def test_names_that_no_toolset_has_are_replaced_in_histories_alone() -> None:
    names = ToolNames(GEMINI_NAME, 64)
    assert names("mcp.search files") == names("mcp.search files")
    assert names("mcp.search files").startswith("tool_mcp_search_files_")
    assert GEMINI_NAME.fullmatch(names("\ud800" * 200))
    assert names("") != names(" ")
    assert names.of_offered("mcp.search") == "mcp.search"
    assert len(ToolNames(re.compile("[a-z_0-9]+"), 32)("X" * 90)) == 32
