"""A toolset that the model searches: one loop on every API (`ToolFinder`)."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, cast

import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import (
    DeclarationError,
    FindTools,
    FoundTools,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolAvailability,
    ToolCall,
    ToolDecision,
    ToolFinder,
    ToolInput,
    ToolRequirement,
    Toolset,
    nested,
    search_tools,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.budget import Budget
from lutumpy.doctor import check_messages
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import run_tools
from lutumpy.models import Api, Model
from lutumpy.rules.anthropic import messages as anthropic_rules
from lutumpy.rules.openai.chat import messages as chat_rules
from lutumpy.rules.openai.responses import items as responses_rules
from lutumpy.streaming import ToolCallIssueFound, ToolCallReady
from lutumpy.testing import Call, Reply, ScriptedModel, WireServer, render, serve
from lutumpy.tool_doctor import offer_tokens

APIS: list[Api] = ["openai_chat", "openai_responses", "anthropic_messages"]
LOADING: list[Api] = ["openai_responses", "anthropic_messages"]
"""APIs that load tools on demand."""
RULES: dict[str, Any] = {
    "openai_chat": chat_rules,
    "openai_responses": responses_rules,
    "anthropic_messages": anthropic_rules,
}
ORACLE = Path(__file__).resolve().parents[2] / "shared" / "tools" / "check_request.py"
every_api = pytest.mark.parametrize("api", APIS)
loading = pytest.mark.parametrize("api", LOADING)


@tool_fn(effect="read")
async def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"21 degrees in {city}"


@tool_fn(effect="read")
async def listPullRequests(repository: str) -> str:
    """Open changes of a repository."""
    return "none"


@tool_fn
async def send_mail(to: str, text: str = "") -> str:
    """Send a message to somebody."""
    return "sent"


@tool_fn
async def ask_user(question: str) -> str:
    """Ask the user a question."""
    return "yes"


@tool_fn
async def format_disk() -> str:
    """Delete everything, the weather included."""
    return "done"


class Tools(Toolset):
    ask_user = tool(ask_user)
    get_weather = tool(get_weather)
    pulls = tool(listPullRequests)
    send_mail = tool(send_mail)
    format_disk = tool(format_disk, off=True)


FINDER = ToolFinder(Tools, always=[Tools.ask_user])
SEARCH = Reply(calls=[Call("find_tools", {"query": "weather of a city"})])
WEATHER = Reply(calls=[Call("get_weather", {"city": "Oslo"})])
DONE = Reply(text="21 degrees.")


def ask(text: str = "How is the weather in Oslo?") -> Session:
    session = Session()
    session.push_user(text)
    return session


async def talk(
    session: Session, llm: Model, finder: ToolFinder[Any] = FINDER, **options: Any
) -> str:
    tools: Any = finder.toolset
    dispatch = Dispatcher(tools)

    @dispatch.otherwise
    async def run_any(call: BaseToolCall) -> str:
        return "done"

    result = await run_tools(
        session, llm, tools=tools, dispatch=dispatch, available=finder.available, **options
    )
    return result.text


def names(selectors: Any) -> list[str]:
    return [selector.name for selector in selectors]


def vendors() -> Any:
    """The vendors' own schemas, where they are at hand."""
    if not ORACLE.exists() or importlib.util.find_spec("jsonschema") is None:
        return None
    if "check_request" not in sys.modules:
        found = importlib.util.spec_from_file_location("check_request", ORACLE)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules["check_request"] = module
        found.loader.exec_module(module)
    return sys.modules["check_request"]


def problems(api: Api, body: dict[str, Any]) -> list[str]:
    found = [
        f"{p.rule}: {p.message}" for p in RULES[api].check_request(body) if p.certainty == "refused"
    ]
    oracle = vendors()
    return found + (oracle.violations(api, body) if oracle is not None else [])


# --- the ranking ----------------------------------------------------------------------------------


def test_words_of_names_and_descriptions_find_a_tool() -> None:
    assert search_tools(Tools, "pull request")[0] == Tools.pulls
    assert search_tools(Tools, "LISTPULLREQUESTS")[0] == Tools.pulls
    assert search_tools(Tools, "repositories")[0] == Tools.pulls
    assert search_tools(Tools, "send a message", limit=1) == [Tools.send_mail]
    assert search_tools(Tools, "weather") == [Tools.get_weather, Tools.format_disk]
    assert search_tools(Tools, "xylophone") == search_tools(Tools, "") == []


@given(st.text(max_size=60), st.integers(1, 5))
@settings(max_examples=examples(100))
def test_any_text_is_a_query_and_gives_the_same_tools_each_time(query: str, limit: int) -> None:
    found = search_tools(Tools, query, limit)
    assert found == search_tools(Tools, query, limit) == search_tools(Tools, query)[:limit]
    assert len(set(found)) == len(found) <= limit


@given(st.text(max_size=40))
@settings(max_examples=examples(60))
def test_whatever_the_model_searches_for_is_answered(query: str) -> None:
    session = ask()
    model = ScriptedModel([Reply(calls=[Call("find_tools", {"query": query})]), DONE])
    assert asyncio.run(talk(session, model)) == "21 degrees."


def test_what_is_no_query_is_said() -> None:
    with pytest.raises(TypeError, match="takes a text"):
        search_tools(Tools, cast("Any", 3))
    with pytest.raises(TypeError, match="takes a Toolset class"):
        search_tools(cast("Any", int), "x")
    with pytest.raises(ValueError, match="limit=0"):
        search_tools(Tools, "x", 0)


def test_five_hundred_tools_are_searched_in_no_time() -> None:
    from counting import calls_made  # the work is counted, not timed

    members = {
        f"tool_{k}": tool(tool_fn(name=f"do_{k}", description=f"Does {k}.")(make_tool(k)))
        for k in range(500)
    }
    large = cast("Any", type("Large", (Toolset,), members))
    search_tools(large, "do 7")
    assert names(search_tools(large, "do 7"))[0] == "do_7"
    assert calls_made(lambda: search_tools(large, "do 7")) < 2_500


def make_tool(number: int) -> Any:
    async def run() -> int:
        return number

    return run


# --- one loop on every API ------------------------------------------------------------------------


@every_api
def test_one_loop_serves_every_api(api: Api) -> None:
    session, model = ask(), ScriptedModel([SEARCH, WEATHER, DONE], api=api)
    assert asyncio.run(talk(session, model)) == "21 degrees."
    assert names(FINDER.found(session)) == ["get_weather"]
    assert [problems(api, body) for body in model.requests] == [[], [], []]
    calls = [call.name for turn in session.turns() for call in turn.calls]
    assert calls == ["find_tools", "get_weather"]


@every_api
def test_streams_give_the_same(api: Api) -> None:
    async def stream() -> tuple[list[Any], Session]:
        session = ask()
        seen: list[Any] = []
        await run_tools(
            session,
            ScriptedModel([SEARCH, WEATHER, DONE], api=api),
            tools=FINDER.toolset,
            dispatch=Dispatcher(FINDER.toolset),
            available=FINDER.available,
            on_event=seen.append,
        )
        return seen, session

    seen, streamed = asyncio.run(stream())
    ready = [event.call.metadata.name for event in seen if isinstance(event, ToolCallReady)]
    assert ready == ["find_tools", "get_weather"]
    assert not any(isinstance(event, ToolCallIssueFound) for event in seen)
    whole = ask()
    asyncio.run(talk(whole, ScriptedModel([SEARCH, WEATHER, DONE], api=api)))
    assert streamed.dump() == whole.dump()


@loading
def test_the_tools_are_the_same_bytes_in_every_request_where_they_are_loaded_on_demand(
    api: Api,
) -> None:
    model = ScriptedModel([SEARCH, WEATHER, DONE], api=api)
    asyncio.run(talk(ask(), model))
    first, *others = [json.dumps(body["tools"]) for body in model.requests]
    assert others == [first, first]  # A4


def test_elsewhere_what_was_found_is_added_at_the_end() -> None:
    model = ScriptedModel([SEARCH, WEATHER, DONE])
    asyncio.run(talk(ask(), model))
    offered = [[t["function"]["name"] for t in body["tools"]] for body in model.requests]
    assert offered == [
        ["ask_user", "find_tools"],
        ["ask_user", "find_tools", "get_weather"],
        ["ask_user", "find_tools", "get_weather"],
    ]
    assert model.requests[1]["messages"][-1]["content"] == "get_weather: The weather of a city."


def test_messages_defers_all_but_a_few_and_answers_with_references() -> None:
    model = ScriptedModel([SEARCH, WEATHER, DONE], api="anthropic_messages")
    asyncio.run(talk(ask(), model))
    tools = {t["name"]: t.get("defer_loading", False) for t in model.requests[0]["tools"]}
    assert tools == {
        "get_weather": True,
        "listPullRequests": True,
        "send_mail": True,
        "ask_user": False,
        "find_tools": False,
    }
    (result,) = model.requests[1]["messages"][-1]["content"]
    assert result["content"] == [{"type": "tool_reference", "tool_name": "get_weather"}]


def test_a_breakpoint_of_the_cache_stands_on_a_tool_that_is_not_deferred() -> None:
    session = ask()
    offer = FINDER.toolset.offer(available=FINDER.available(session)).deferring()
    body = AnthropicMessages.request(session.transcript, offer, cache="auto")
    marked = [tool["name"] for tool in body["tools"] if "cache_control" in tool]
    deferred = {tool["name"] for tool in body["tools"] if tool.get("defer_loading")}
    assert not deferred & set(marked)


def test_responses_answers_a_search_with_the_definitions() -> None:
    model = ScriptedModel([SEARCH, WEATHER, DONE], api="openai_responses")
    asyncio.run(talk(ask(), model))
    search, asked = model.requests[0]["tools"]
    assert (search["type"], search["execution"]) == ("tool_search", "client")
    assert search["parameters"]["required"] == ["query"]
    assert asked["name"] == "ask_user"
    call, output = model.requests[1]["input"][-2:]
    assert (call["type"], call["arguments"]) == (
        "tool_search_call",
        {"query": "weather of a city"},
    )
    (found,) = output.pop("tools")
    assert output == {
        "type": "tool_search_output",
        "call_id": call["call_id"],
        "execution": "client",
        "status": "completed",
    }
    assert (found["name"], found["defer_loading"]) == ("get_weather", True)
    assert found["parameters"]["required"] == ["city"]


def test_a_search_without_a_find_is_answered_by_a_text() -> None:
    nothing = Reply(calls=[Call("find_tools", {"query": "xylophone"})])
    model = ScriptedModel([nothing, DONE], api="openai_responses")
    session = ask()
    asyncio.run(talk(session, model))
    output = model.requests[1]["input"][-1]
    assert output["type"] == "function_call_output"
    assert output["output"].startswith("No tool was found for 'xylophone'")
    assert FINDER.found(session) == ()


@every_api
def test_arguments_of_a_search_that_do_not_fit_are_an_issue_like_others(api: Api) -> None:
    wrong = Reply(calls=[Call("find_tools", {"queries": ["weather"]})])
    session, model = ask(), ScriptedModel([wrong, DONE], api=api)
    asyncio.run(talk(session, model))
    assert problems(api, model.requests[1]) == []
    item = list(session.transcript)[-2]
    (result,) = cast("Any", item).results
    assert "query: Field required" in result.text


# --- what may be called ---------------------------------------------------------------------------


@pytest.mark.parametrize(("api", "is_known"), [(api, api in LOADING) for api in APIS])
def test_a_tool_that_was_never_found_can_be_called_where_all_are_declared_c2(
    api: Api, is_known: bool
) -> None:
    session = ask()
    turn = session.text_turn(
        ScriptedModel([WEATHER], api=api),
        tools=FINDER.toolset,
        available=FINDER.available(session),
    )
    outcome = asyncio.run(turn.collect())
    assert isinstance(outcome, NeedsTools)
    assert [call.metadata.name for call in outcome.round.calls] == ["get_weather"] * is_known
    assert [issue.reason for issue in outcome.round.issues] == ["not_available"] * (not is_known)
    outcome.round.discard()


def test_a_tool_that_is_off_is_not_found() -> None:
    assert "format_disk" not in names(FINDER.deferred)
    assert "format_disk" not in names(FINDER.search("delete everything"))
    shown = ToolFinder(Tools, always=[Tools.format_disk])
    assert names(shown.always) == ["format_disk"]


@every_api
def test_a_search_may_be_required(api: Api) -> None:
    session, model = ask(), ScriptedModel([SEARCH, DONE], api=api)
    require: ToolRequirement[Tools] = ToolRequirement.specific(FINDER.selector)
    result = run_tools(
        session,
        model,
        tools=FINDER.toolset,
        dispatch=Dispatcher(FINDER.toolset),
        available=FINDER.available,
        require=require,
    )
    assert asyncio.run(result).text == "21 degrees."
    assert [problems(api, body) for body in model.requests] == [[], []]


@every_api
def test_a_structured_turn_searches_too(api: Api) -> None:
    async def run() -> Any:
        session = ask()
        model = ScriptedModel([SEARCH, Reply(text='{"value": 21}')], api=api)
        for _ in range(2):
            outcome = await session.structured_turn(
                model, int, tools=FINDER.toolset, available=FINDER.available(session)
            ).collect()
            if not isinstance(outcome, NeedsTools):
                return outcome.result.value
            (call,) = outcome.round.calls
            outcome.round.commit(session, [call.complete(FINDER.find(call.arguments["query"]))])
        return None

    assert asyncio.run(run()) == 21


@every_api
def test_hooks_decide_a_search_like_any_call(api: Api) -> None:
    async def policy(call: BaseToolCall) -> ToolDecision[Any, Any]:
        return Reject("not now") if call.metadata.name == "find_tools" else RunNormally()

    session, model = ask(), ScriptedModel([SEARCH, DONE], api=api)
    asyncio.run(
        run_tools(
            session,
            model,
            tools=FINDER.toolset,
            dispatch=Dispatcher(FINDER.toolset),
            hooks=policy,
            available=FINDER.available,
        )
    )
    assert "not now" in json.dumps(model.requests[1])
    assert FINDER.found(session) == ()
    assert problems(api, model.requests[1]) == []


# --- one conversation, several APIs ---------------------------------------------------------------


@every_api
@pytest.mark.parametrize("next_api", APIS)
def test_what_one_api_found_another_may_call(api: Api, next_api: Api) -> None:
    async def run() -> tuple[Session, ScriptedModel]:
        session = ask()
        await talk(session, ScriptedModel([SEARCH, DONE], api=api))
        session.push_user("And now?")
        model = ScriptedModel([WEATHER, DONE], api=next_api)
        await talk(session, model)
        return session, model

    session, model = asyncio.run(run())
    assert [problems(next_api, body) for body in model.requests] == [[], []]
    assert not any(issue for turn in session.turns() for issue in turn.calls if issue.problem)
    body = json.dumps(model.requests[0])
    assert "get_weather" in body  # K3b: it is declared, referred to, or brought
    result = cast("Any", list(session.transcript)[-2]).results[0]
    assert result.text == "21 degrees in Oslo"


@every_api
def test_what_was_found_is_in_forks_and_dumps(api: Api) -> None:
    session = ask()
    asyncio.run(talk(session, ScriptedModel([SEARCH, DONE], api=api)))
    loaded = Session.load(json.loads(json.dumps(session.dump())))
    assert names(FINDER.found(loaded)) == names(FINDER.found(session.fork())) == ["get_weather"]
    assert loaded.dump() == session.dump()
    adapter: Any = {
        "openai_chat": OpenAIChat,
        "openai_responses": OpenAIResponses,
        "anthropic_messages": AnthropicMessages,
    }[api]
    for each in (session, loaded):
        each.push_user("?")
    assert adapter.messages(loaded.transcript) == adapter.messages(session.transcript)  # R1


def test_a_request_without_the_tools_says_what_was_found_in_words_k3b() -> None:
    session = ask()
    asyncio.run(talk(session, ScriptedModel([SEARCH, DONE], api="anthropic_messages")))
    session.push_user("Thanks.")
    body = AnthropicMessages.request(session.transcript)
    assert "tool_reference" not in json.dumps(body)
    assert "get_weather: The weather of a city." in json.dumps(body)


# --- the toolset ----------------------------------------------------------------------------------


@tool_input(name="read_file")
class ReadFile(ToolInput[str]):
    """Read a file."""

    path: str


class ClosedTools(Toolset[ToolCall[ReadFile, str] | ToolCall[FindTools, FoundTools]]):
    read_file = tool(ReadFile)
    find_tools = tool(FindTools)


def test_a_toolset_that_names_its_calls_has_the_search_as_a_member() -> None:
    finder = ToolFinder(ClosedTools)
    assert finder.toolset is ClosedTools
    dispatch = Dispatcher(ClosedTools)
    dispatch.on(ClosedTools.find_tools)(finder.run)

    @dispatch.on(ClosedTools.read_file)
    async def read(input: ReadFile) -> str:
        return input.path

    session = ask()
    model = ScriptedModel(
        [
            Reply(calls=[Call("find_tools", {"query": "file"})]),
            Reply(calls=[Call("read_file", {"path": "a.txt"})]),
            Reply(text="Read."),
        ]
    )
    ended = run_tools(
        session, model, tools=ClosedTools, dispatch=dispatch, available=finder.available
    )
    assert asyncio.run(ended).text == "Read."


def test_another_tool_of_the_name_is_refused() -> None:
    @tool_fn(name="find_tools")
    async def something_else() -> str:
        """Something else."""
        return ""

    class Taken(Toolset):
        other = tool(something_else)

    with pytest.raises(DeclarationError, match="a tool 'find_tools' of its own"):
        ToolFinder(Taken)


def test_what_a_finder_does_not_take_is_said() -> None:
    with pytest.raises(TypeError, match="takes a Toolset class"):
        ToolFinder(cast("Any", 3))
    with pytest.raises(ValueError, match="limit=0"):
        ToolFinder(Tools, limit=0)

    class Others(Toolset):
        ask_user = tool(ask_user)

    with pytest.raises(Exception, match="Others"):
        ToolFinder(Tools, always=cast("Any", [Others.ask_user]))


def test_nested_tools_are_found_and_limits_hold() -> None:
    class Outer(Toolset):
        inner = nested(Tools)

    finder = ToolFinder(Outer, limit=1)
    assert names(finder.search("the weather of a city, or a message")) == ["get_weather"]


@pytest.mark.parametrize("api", LOADING)
def test_a_request_of_ones_own_defers_by_the_model_and_its_answer_has_its_record_PB17(
    api: Api,
) -> None:
    adapter: Any = OpenAIResponses if api == "openai_responses" else AnthropicMessages
    older = "gpt-4.1" if api == "openai_responses" else "claude-3-5-haiku-latest"
    cached = {} if api == "openai_responses" else {"cache": "auto"}
    model = ScriptedModel([DONE], api=api)
    asyncio.run(talk(ask(), model))
    plain = FINDER.toolset.offer(available=FINDER.available(ask()))
    for asked in (plain, plain.deferring()):
        for offer in (plain, plain.deferring()):
            session = ask()
            body = adapter.request(session.transcript, asked, model=model.model, **cached)
            assert body["tools"] == model.requests[0]["tools"]
            reply = render(DONE, api, number=1, model=model.model)
            outcome = offer.read(adapter.response(reply), session)
            assert not isinstance(outcome, NeedsTools)
            (settings,) = session.transcript.settings
            assert settings.deferred
    # What can't load tools, or isn't known, is sent those of the offer.
    for options in ({}, {"model": older}):
        body = adapter.request(ask().transcript, plain, **options)
        assert len(body["tools"]) == len(plain.specs)
        assert "defer_loading" not in json.dumps(body)


def test_always_alone_defers_nothing() -> None:
    finder = ToolFinder(Tools, always=Tools.default_selectors())
    session = ask()
    offer = finder.toolset.offer(available=finder.available(session))
    assert offer.deferring() is offer
    body = OpenAIResponses.request(session.transcript, offer.deferring())
    assert [t["type"] for t in body["tools"]] == ["function"] * 5


def test_other_availabilities_of_a_loop_may_be_functions_too() -> None:
    asked: list[Session] = []

    def available(session: Session) -> ToolAvailability[Tools]:
        asked.append(session)
        return ToolAvailability.only(Tools.get_weather)

    session = ask()
    dispatch = Dispatcher(Tools)
    model = ScriptedModel([WEATHER, DONE])
    asyncio.run(run_tools(session, model, tools=Tools, dispatch=dispatch, available=available))
    assert asked == [session, session]


@loading
def test_tools_whose_limit_is_used_up_go_from_the_list_and_the_others_stay_deferred(
    api: Api,
) -> None:
    asks = Reply(calls=[Call("ask_user", {"question": "Where?"})])
    again = Reply(calls=[Call("find_tools", {"query": "pull requests"})])
    pulls = Reply(calls=[Call("listPullRequests", {"repository": "x"})])
    offered: dict[str, list[str]] = {}
    for name in ("", "ask_user", "get_weather", "find_tools"):
        model = ScriptedModel([SEARCH, asks, WEATHER, again, pulls, DONE], api=api)
        limits = {FINDER.toolset.selector(name): 1} if name else None
        asyncio.run(talk(ask(), model, budget=Budget(calls=limits)))
        lists = offered[name] = [json.dumps(body["tools"]) for body in model.requests]
        assert len(set(lists)) <= (2 if name else 1), name  # it is changed once, and no more
    every = offered[""][0]
    mark = "defer_loading" if api == "anthropic_messages" else "tool_search"
    for name in ("ask_user", "get_weather"):
        assert offered[name][0] == every
        assert f'"{name}"' not in offered[name][-1]
        assert mark in offered[name][-1]
    assert '"listPullRequests"' not in offered["find_tools"][-1]


# --- what it saves, and what is refused -----------------------------------------------------------


@every_api
def test_two_hundred_real_tools_cost_the_prompt_of_a_few(api: Api) -> None:
    from lutumpy import DynamicTool

    path = Path(__file__).parent.parent / "examples" / "two_hundred_tools.json"
    declared = json.loads(path.read_text(encoding="utf-8"))["tools"]
    real = Toolset.of(
        "Real", [DynamicTool(t["name"], t["description"], t["schema"]) for t in declared]
    )
    finder = ToolFinder(cast("Any", real))
    offer = finder.toolset.offer(available=finder.available(ask()))
    every = offer_tokens(real.offer(), api)
    assert offer_tokens(offer, api) < every / 20
    model = ScriptedModel([Reply(calls=[Call("find_tools", {"query": "weather"})]), DONE], api=api)
    session = ask()
    assert asyncio.run(talk(session, model, finder)) == "21 degrees."
    assert names(finder.found(session))[0].find("weather") >= 0
    if api in LOADING:
        assert offer_tokens(offer.deferring(), api) < every / 20
        body = {"model": "m", **adapter_of(api).request(ask().transcript, offer.deferring())}
        assert problems(api, body) == []


def adapter_of(api: Api) -> Any:
    return {"openai_responses": OpenAIResponses, "anthropic_messages": AnthropicMessages}[api]


def test_older_models_get_tools_as_they_always_did() -> None:
    client = openai.AsyncOpenAI(api_key="k")
    assert not OpenAIResponses("gpt-4.1-mini", client=client).defers_tools
    assert not OpenAIResponses("gpt-5-mini", client=client).defers_tools
    assert OpenAIResponses("gpt-5.4", client=client).defers_tools
    messages = anthropic.AsyncAnthropic(api_key="k")
    assert not AnthropicMessages("claude-3-5-haiku-latest", client=messages).defers_tools
    assert AnthropicMessages("claude-sonnet-4-5", client=messages).defers_tools


@every_api
def test_an_unanswered_search_is_refused_as_its_api_does(api: Api) -> None:
    session, model = ask(), ScriptedModel([SEARCH, DONE], api=api)
    asyncio.run(talk(session, model))
    key = "input" if api == "openai_responses" else "messages"
    body = {**model.requests[1], key: model.requests[1][key][:-1]}
    assert [p for p in RULES[api].check_request(body) if p.certainty == "refused"]
    assert check_messages(api, body[key])


# --- the SDKs' own clients ------------------------------------------------------------------------


async def talk_by_sdk(api: Api, server: WireServer, session: Session) -> str:
    if api == "anthropic_messages":
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.url) as claude:
            return await talk(session, AnthropicMessages("claude-sonnet-4-5", client=claude))
    adapter = OpenAIChat if api == "openai_chat" else OpenAIResponses
    async with openai.AsyncOpenAI(api_key="k", base_url=f"{server.url}/v1") as client:
        return await talk(session, adapter("gpt-5.4", client=client))


@every_api
def test_the_sdk_clients_send_and_read_it(api: Api) -> None:
    with serve([SEARCH, WEATHER, DONE]) as server:
        session = ask()
        assert asyncio.run(talk_by_sdk(api, server, session)) == "21 degrees."
    assert names(FINDER.found(session)) == ["get_weather"]
