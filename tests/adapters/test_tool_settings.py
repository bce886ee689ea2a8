"""What one API is told of a tool: the bodies that come of it, their bytes, and the calls."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

import anthropic
import jsonschema
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from pydantic import BaseModel, RootModel

from lutumpy import (
    DeclarationError,
    Finished,
    InvalidToolConstraints,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolInput,
    ToolRequirement,
    Toolset,
    Transcript,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.errors import Problem
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.rules.anthropic import messages as anthropic_rules
from lutumpy.rules.openai.chat import messages as chat_rules
from lutumpy.rules.openai.responses import items as responses_rules
from lutumpy.testing import Call, Reply, ScriptedModel, serve

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
VENDOR_SCHEMAS = json.loads((FIXTURES / "tool_schemas.json").read_text(encoding="utf-8"))
CLAUDE, RESPONSES, CHAT = "anthropic_messages", "openai_responses", "openai_chat"
ADAPTERS: dict[str, Any] = {
    CHAT: OpenAIChat,
    RESPONSES: OpenAIResponses,
    CLAUDE: AnthropicMessages,
}
CHECKS: dict[str, Callable[[Mapping[str, Any]], list[Problem]]] = {
    CHAT: chat_rules.check_request,
    RESPONSES: responses_rules.check_request,
    CLAUDE: anthropic_rules.check_request,
}
BESIDE: dict[str, list[dict[str, Any]]] = {
    CHAT: [],
    RESPONSES: [{"type": "tool_search"}, {"type": "programmatic_tool_calling"}],
    CLAUDE: [{"type": "code_execution_20260120", "name": "code_execution"}],
}
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"default": 3, "type": "integer"}},
    "required": ["query"],
    "additionalProperties": False,
}
FOR_CLAUDE: dict[str, Any] = {
    "defer_loading": True,
    "input_examples": [{"query": "cats"}, {"query": "dogs", "limit": 1}],
    "allowed_callers": ["direct", "code_execution_20260120"],
    "eager_input_streaming": True,
}
FOR_RESPONSES: dict[str, Any] = {
    "defer_loading": True,
    "allowed_callers": ["direct", "programmatic"],
    "output_schema": {"type": "object", "properties": {"count": {"type": "integer"}}},
}


class Hits(BaseModel):
    count: int


@tool_fn(provider={CLAUDE: FOR_CLAUDE, RESPONSES: FOR_RESPONSES})
def search(query: str, limit: int = 3) -> Hits:
    """Search."""
    return Hits(count=limit)


@tool_input(name="memory", output=str, provider={CLAUDE: {"type": "memory_20250818"}})
class Memory(ToolInput[str]):
    """Remember."""

    command: Literal["view", "create", "delete"]
    path: str
    file_text: str | None = None


class App(Toolset):
    search = tool(search)
    memory = tool(Memory, provider={CLAUDE: {"cache_control": {"type": "ephemeral"}}})


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("Where do I live?")
    return transcript


def body(api: str, offer: Any, **options: Any) -> dict[str, Any]:
    made: dict[str, Any] = ADAPTERS[api].request(asked(), offer, **options)
    return made


def refused(api: str, request: Mapping[str, Any]) -> list[Problem]:
    full = {"model": "claude-sonnet-5", **request}
    return [problem for problem in CHECKS[api](full) if problem.certainty == "refused"]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


every_api = pytest.mark.parametrize("api", ADAPTERS)


# ---------------------------------------------------------------------- bodies


def test_each_api_gets_what_it_is_told_and_no_other_does() -> None:
    memory_schema = App.memory.definition.input_schema
    assert body(CLAUDE, App.offer(), extra={"tools": BESIDE[CLAUDE]})["tools"] == [
        {"name": "search", "description": "Search.", "input_schema": SCHEMA, **FOR_CLAUDE},
        {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}},
        *BESIDE[CLAUDE],
    ]
    assert body(RESPONSES, App.offer(), extra={"tools": BESIDE[RESPONSES]})["tools"] == [
        {
            "type": "function",
            "name": "search",
            "description": "Search.",
            "parameters": SCHEMA,
            "strict": False,
            **FOR_RESPONSES,
        },
        {
            "type": "function",
            "name": "memory",
            "description": "Remember.",
            "parameters": memory_schema,
            "strict": False,
        },
        *BESIDE[RESPONSES],
    ]
    assert body(CHAT, App.offer())["tools"] == [
        {
            "type": "function",
            "function": {"name": "search", "description": "Search.", "parameters": SCHEMA},
        },
        {
            "type": "function",
            "function": {"name": "memory", "description": "Remember.", "parameters": memory_schema},
        },
    ]


def test_on_chat_settings_stand_beside_the_function() -> None:
    class Tools(Toolset):
        search = tool(search, provider={CHAT: {"cache_control": {"type": "ephemeral"}}})

    (one,) = body(CHAT, Tools.offer())["tools"]
    assert list(one) == ["type", "function", "cache_control"]


@every_api
@pytest.mark.parametrize("strict", [False, True])
def test_the_tools_pass_the_vendors_schema_and_the_rules(api: str, strict: bool) -> None:
    validator = jsonschema.Draft202012Validator(VENDOR_SCHEMAS[api])
    request = body(api, App.offer(), strict=strict, extra={"tools": BESIDE[api]})
    assert refused(api, request) == []
    for one in request["tools"][:2]:
        validator.validate(one)
    assert ADAPTERS[api].tools(App.offer(), strict=strict) == request["tools"][:2]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("memory", {"type": "memory_20250818"}),
        ("bash", {"type": "bash_20250124", "cache_control": {"type": "ephemeral"}}),
        ("bash", {"type": "bash_20241022"}),
        ("str_replace_based_edit_tool", {"type": "text_editor_20250728", "max_characters": 100}),
        ("str_replace_based_edit_tool", {"type": "text_editor_20250429"}),
        ("str_replace_editor", {"type": "text_editor_20250124"}),
        (
            "computer",
            {"type": "computer_20251124", "display_width_px": 9, "display_height_px": 9},
        ),
        (
            "computer",
            {"type": "computer_20250124", "display_width_px": 9, "display_height_px": 9},
        ),
        ("memory", {"type": "memory_20250818", "strict": True, "defer_loading": False}),
    ],
)
def test_client_run_tools_of_the_vendors_types(name: str, settings: Any) -> None:
    spec = ToolSpec(name, "Told to nobody.", SCHEMA, True, {CLAUDE: settings})
    (one,) = AnthropicMessages.tools(ToolOffering((spec,)))
    assert one == {"type": settings["type"], "name": name, **settings}
    jsonschema.Draft202012Validator(VENDOR_SCHEMAS[CLAUDE]).validate(one)
    assert refused(CLAUDE, body(CLAUDE, ToolOffering((spec,)))) == []


def test_a_computer_has_a_display() -> None:
    spec = ToolSpec("computer", "", SCHEMA, None, {CLAUDE: {"type": "computer_20251124"}})
    with pytest.raises(InvalidToolConstraints, match="display_height_px: Field required"):
        AnthropicMessages.tools(ToolOffering((spec,)))


def test_a_type_that_is_newer_than_this_library_is_sent() -> None:
    spec = ToolSpec("gardener", "", SCHEMA, None, {CLAUDE: {"type": "gardener_20270101"}})
    (one,) = AnthropicMessages.tools(ToolOffering((spec,)))
    assert one == {"type": "gardener_20270101", "name": "gardener"}


@every_api
def test_a_spec_made_by_hand_keeps_the_rules_too(api: str) -> None:
    key = "function" if api == CHAT else "name"
    spec = ToolSpec("search", "", SCHEMA, None, {api: {key: "x"}})
    with pytest.raises(InvalidToolConstraints, match=f"'search', {api}: '{key}' can't be set"):
        body(api, ToolOffering((spec,)))


def recorded_specs(request: Mapping[str, Any], api: str) -> tuple[ToolSpec, ...]:
    """The user's own tools of a recorded request, what was said beside them as settings."""
    key = "input_schema" if api == CLAUDE else "parameters"
    specs: list[ToolSpec] = []
    for one in request["tools"]:
        if key in one:
            told = {k: v for k, v in one.items() if k in ("defer_loading", "cache_control")}
            specs.append(
                ToolSpec(one["name"], one["description"], one[key], one.get("strict"), {api: told})
            )
    return tuple(specs)


@pytest.mark.parametrize("api", [CLAUDE, RESPONSES])
def test_recorded_tools_with_deferred_loading_are_written_as_they_were_sent(api: str) -> None:
    seen = 0
    for row in rows(f"{api}.jsonl"):
        request = row.get("request") or {}
        if "defer_loading" not in json.dumps(request.get("tools")):
            continue
        specs = recorded_specs(request, api)
        if len({spec.name for spec in specs}) < len(specs) or not specs:
            continue
        beside = [one for one in request["tools"] if one.get("name") not in {s.name for s in specs}]
        made = body(api, ToolOffering(specs), extra={"tools": beside})["tools"]
        own = [one for one in request["tools"] if one not in beside]
        for one in own:
            if one.get("type") == "custom":
                del one["type"]
        assert made == [*own, *beside]
        seen += 1
    assert seen >= 4


# --------------------------------------------------------------- bytes (rule A4)

TOLD = st.dictionaries(
    st.sampled_from(["x", "y"]), st.sampled_from([0, 1, True, False, 1.5, "1", None, [], [1]])
)


@every_api
@settings(max_examples=examples(80))
@given(first=TOLD, second=TOLD)
def test_equal_settings_give_equal_bytes_and_others_never_share_them_A4(
    api: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    @tool_fn(name="search")
    def plain(query: str) -> str:
        """Search."""
        return query

    class Tools(Toolset):
        search = tool(plain)

    def sent(told: dict[str, Any]) -> str:
        offer = Tools.offer(provider={Tools.search: {api: told}})
        return json.dumps(body(api, offer)["tools"])

    one, other, again = sent(first), sent(second), sent(first)
    assert one == again
    assert (one == other) is (json.dumps(first) == json.dumps(second))
    assert json.loads(sent({})) == body(api, Tools.offer())["tools"]


@every_api
def test_the_same_turn_again_has_the_same_rendering(api: str) -> None:
    def offer() -> Any:
        return App.offer(provider={App.search: {api: {"x": [1]}}})

    assert offer().specs[0] is offer().specs[0]
    assert App.offer() is App.offer()
    assert offer().specs[0] is not App.offer().specs[0]
    told = {api: {"x": [1]}}
    both = App.offer(describe={App.search: "Find."}, provider={App.search: told})
    assert both.specs[0].description == "Find."
    assert dict(both.specs[0].provider[api])["x"] == [1]
    assert App.offer(describe={App.search: "Find."}).specs[0].provider[CLAUDE] == FOR_CLAUDE


def test_changing_what_was_given_changes_nothing() -> None:
    told: dict[str, Any] = {CLAUDE: {"x": [1]}}
    offer = App.offer(provider={App.memory: told})
    told[CLAUDE]["x"].append(2)
    told.clear()
    extra = {"tools": BESIDE[CLAUDE]}
    assert body(CLAUDE, offer, extra=extra)["tools"][1]["x"] == [1]


# ------------------------------------------------------- refused early (rule C9)


def deferred(api: str, name: str = "search", **more: Any) -> ToolSpec:
    return ToolSpec(name, "", SCHEMA, None, {api: {"defer_loading": True, **more}})


def test_every_tool_deferred_is_refused_unless_another_stands_beside_C9() -> None:
    offer = ToolOffering((deferred(CLAUDE, "a"), deferred(CLAUDE, "b")))
    with pytest.raises(InvalidToolConstraints, match=r"deferred \(a, b\)"):
        body(CLAUDE, offer)
    also = {"name": "c", "input_schema": {"type": "object"}, "defer_loading": True}
    with pytest.raises(InvalidToolConstraints, match="every tool"):
        body(CLAUDE, offer, extra={"tools": [also]})
    find = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    assert refused(CLAUDE, body(CLAUDE, offer, extra={"tools": [find]})) == []
    some = ToolOffering((deferred(CLAUDE, "a"), ToolSpec("b", "", SCHEMA)))
    assert refused(CLAUDE, body(CLAUDE, some)) == []


def test_deferred_functions_of_responses_need_a_tool_search_C9() -> None:
    offer = ToolOffering((deferred(RESPONSES), ToolSpec("b", "", SCHEMA)))
    for extra in ({}, {"tools": []}, {"tools": [{"type": "web_search"}]}):
        with pytest.raises(InvalidToolConstraints, match=r"search: .*require tools\.tool_search"):
            body(RESPONSES, offer, extra=extra)
    found = body(RESPONSES, offer, extra={"tools": [{"type": "tool_search"}]})
    assert refused(RESPONSES, found) == []
    # A stored prompt may bring the search.
    body(RESPONSES, offer, extra={"prompt": {"id": "pmpt_1"}})


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"defer_loading": True, "cache_control": {"type": "ephemeral"}}, "cannot have both"),
        ({"defer_loading": "yes"}, "defer_loading: Input should be a valid boolean"),
        ({"allowed_callers": "direct"}, "allowed_callers: Input should be a valid array"),
        ({"allowed_callers": ["programmatic"]}, r"allowed_callers\.0: Input should be 'direct'"),
    ],
)
def test_what_messages_is_known_to_refuse_is_refused_early_C9(told: Any, why: str) -> None:
    spec = ToolSpec("search", "", SCHEMA, None, {CLAUDE: told})
    with pytest.raises(InvalidToolConstraints, match=why):
        body(CLAUDE, ToolOffering((spec, ToolSpec("b", "", SCHEMA))))


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"defer_loading": 1}, "expected a boolean"),
        ({"output_schema": "x"}, "expected an object"),
        ({"allowed_callers": "direct"}, "expected an array"),
        ({"allowed_callers": ["code_execution_20260120"]}, "'direct' and 'programmatic'"),
    ],
)
def test_what_responses_is_known_to_refuse_is_refused_early_C9(told: Any, why: str) -> None:
    spec = ToolSpec("search", "", SCHEMA, None, {RESPONSES: told})
    with pytest.raises(InvalidToolConstraints, match=why):
        body(RESPONSES, ToolOffering((spec,)))


@tool_fn
def plain(query: str) -> str:
    """Do something else."""
    return query


class Plain(Toolset):
    plain = tool(plain)


def begun_with_one_tool() -> Session:
    """A session in which another tool was offered, so that a message can bring further ones."""
    session = Session()
    session.push_user("Hi.")
    session.text_turn(ScriptedModel([Reply(text="Hi.")]), tools=Plain).collect_sync()
    session.push_user("Search.")
    return session


@pytest.mark.parametrize(
    ("api", "model", "told", "why"),
    [
        (
            CLAUDE,
            "claude-sonnet-5-5",
            {"defer_loading": True, "cache_control": {"type": "ephemeral"}},
            "search: .*cannot have both",
        ),
        (RESPONSES, "gpt-5.4", {"defer_loading": True}, r"search: .*require tools\.tool_search"),
        (RESPONSES, "gpt-5.4", {"defer_loading": 1}, "expected a boolean"),
    ],
)
def test_what_is_refused_of_a_tool_that_a_message_brings_is_refused_early_C9_PB2(
    api: str, model: str, told: Any, why: str
) -> None:
    session = begun_with_one_tool()
    first = Plain.offer().specs[0]
    request = ADAPTERS[api].request

    def offering(settings: Any) -> ToolOffering:
        return ToolOffering((first, ToolSpec("search", "", SCHEMA, None, {api: settings})))

    brought = request(session.transcript, offering({"defer_loading": False}), model=model)
    assert "search" not in json.dumps(brought["tools"])
    assert refused(api, brought) == []
    with pytest.raises(InvalidToolConstraints, match=why):
        request(session.transcript, offering(told), model=model)
    search = {"tools": [{"type": "tool_search"}]}
    if told["defer_loading"] is True and api == RESPONSES:
        found = request(session.transcript, offering(told), model=model, extra=search)
        assert refused(api, found) == []


PROGRAM = {CLAUDE: {"allowed_callers": ["code_execution_20260120"]}}


def test_a_tool_that_code_calls_is_never_strict_on_messages() -> None:
    left_open = ToolSpec("search", "", SCHEMA, None, PROGRAM)
    (one,) = body(CLAUDE, ToolOffering((left_open,)), strict=True)["tools"]
    assert "strict" not in one
    asks = ToolSpec("search", "", SCHEMA, True, PROGRAM)
    with pytest.raises(InvalidToolConstraints, match=r"search: .*strict is not supported"):
        body(CLAUDE, ToolOffering((asks,)))


def test_tools_that_code_calls_go_with_no_forced_choice_and_no_single_call_C9() -> None:
    spec = ToolSpec("search", "", SCHEMA, None, PROGRAM)
    both = {CLAUDE: {"allowed_callers": ["direct", "code_execution_20260120"]}}
    direct = ToolSpec("search", "", SCHEMA, None, both)
    with pytest.raises(InvalidToolConstraints, match="'search'"):
        body(CLAUDE, ToolOffering((spec,), "specific", "search"))
    body(CLAUDE, ToolOffering((direct,), "specific", "search"))
    body(CLAUDE, ToolOffering((spec,), "required"))
    for mode in ("auto", "required"):
        with pytest.raises(InvalidToolConstraints, match="disable_parallel_tool_use"):
            body(CLAUDE, ToolOffering((direct,), mode, None, False))  # type: ignore[arg-type]


def test_a_tool_without_a_schema_has_no_strict_form_to_count() -> None:
    open_schema = {"type": "object", "properties": {"x": {"type": "object"}}}
    spec = ToolSpec("memory", "", open_schema, True, {CLAUDE: {"type": "memory_20250818"}})
    assert AnthropicMessages.tools(ToolOffering((spec,)))[0] == {
        "type": "memory_20250818",
        "name": "memory",
    }
    with pytest.raises(DeclarationError):
        OpenAIResponses.tools(ToolOffering((spec,)))
    many = [ToolSpec(f"t{n}", "", SCHEMA, True) for n in range(20)]
    assert refused(CLAUDE, body(CLAUDE, ToolOffering((*many, spec)))) == []


# -------------------------------------------------------------- breakpoints


def test_the_breakpoint_goes_to_the_last_tool_that_is_not_deferred() -> None:
    def marked(*specs: ToolSpec) -> list[bool]:
        tools = body(CLAUDE, ToolOffering(specs), cache="auto")["tools"]
        return ["cache_control" in one for one in tools]

    plain = ToolSpec("plain", "", SCHEMA)
    own = ToolSpec(
        "own", "", SCHEMA, None, {CLAUDE: {"cache_control": {"type": "ephemeral", "ttl": "1h"}}}
    )
    assert marked(plain, deferred(CLAUDE)) == [True, False]
    assert marked(deferred(CLAUDE), plain) == [False, True]
    assert marked(plain, own) == [False, True]
    assert marked(own, plain) == [True, True]
    request = body(CLAUDE, ToolOffering((plain, own)), cache="auto")
    assert request["tools"][1]["cache_control"]["ttl"] == "1h"
    assert refused(CLAUDE, request) == []


def test_breakpoints_of_tools_count_C9() -> None:
    told = {CLAUDE: {"cache_control": {"type": "ephemeral"}}}
    own = [ToolSpec(f"t{n}", "", SCHEMA, None, told) for n in range(4)]
    request = body(CLAUDE, ToolOffering((*own, ToolSpec("last", "", SCHEMA))), cache="auto")
    assert refused(CLAUDE, request) == []
    assert json.dumps(request).count('"cache_control"') == 4


# ----------------------------------------------------------------------- calls


def recorded_memory() -> dict[str, Any]:
    (row,) = [row for row in rows("anthropic_messages.jsonl") if "memory_20250818" in str(row)]
    return row


class View(BaseModel):
    """View."""

    command: Literal["view"]
    path: str


class Delete(BaseModel):
    """Delete."""

    command: Literal["delete"]
    path: str


@tool_input(name="memory", output=str, provider={CLAUDE: {"type": "memory_20250818"}})
class AnyCommand(RootModel[View | Delete]):
    """Remember."""


@pytest.mark.parametrize("declared", [Memory, AnyCommand])
def test_a_recorded_memory_call_is_a_typed_call_and_its_result_goes_back(declared: Any) -> None:
    class Remember(Toolset):
        memory = tool(declared)

    row = recorded_memory()
    session = Session()
    session.push_user("Where do I live?")
    offer = Remember.offer()
    request = AnthropicMessages.request(session.transcript, offer)
    assert request["tools"] == row["request"]["tools"]
    outcome = offer.read(AnthropicMessages.response(row["response"]), session)
    assert isinstance(outcome, NeedsTools)
    (call,) = outcome.round.calls
    assert Remember.memory.matches(call)
    held: Any = call.input
    held = getattr(held, "root", held)
    assert (held.command, held.path) == ("view", "/memories")
    assert call.repairs == ()
    outcome.round.commit(session, [call.complete("The user lives in Mexico City.")])
    messages = AnthropicMessages.messages(session.transcript)
    assert messages[1] == {"role": "assistant", "content": row["response"]["content"]}
    assert messages[2]["content"][0]["tool_use_id"] == row["response"]["content"][1]["id"]
    for api, adapter in ADAPTERS.items():
        again = adapter.request(session.transcript, offer)
        assert refused(api, again) == []


def test_what_does_not_fit_the_input_of_a_typed_tool_is_an_issue() -> None:
    row = recorded_memory()
    row["response"]["content"][1]["input"] = {"command": "view", "path": 3}
    session = Session()
    session.push_user("?")
    outcome = App.offer().read(AnthropicMessages.response(row["response"]), session)
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.issues
    assert (issue.reason, issue.metadata.name) == ("invalid_arguments", "memory")
    assert "path" in issue.detail
    outcome.round.discard()


def test_a_streamed_call_of_a_typed_tool_is_the_same_call() -> None:
    class Remember(Toolset):
        memory = tool(Memory)

    reply = Reply("Let me see.", calls=[Call("memory", {"command": "view", "path": "/memories"})])
    with serve() as server:
        server.play(reply, reply)
        sync = anthropic.Anthropic(api_key="k", base_url=server.anthropic_base_url, max_retries=0)
        llm = AnthropicMessages("claude-sonnet-5", client=sync)
        inputs = []
        for streamed in (False, True):
            session = Session()
            session.push_user("Where do I live?")
            turn = session.text_turn(llm, tools=Remember)
            if streamed:
                with turn.stream_sync() as stream:
                    for _ in stream:
                        pass
                    outcome = stream.outcome
            else:
                outcome = turn.collect_sync()
            assert isinstance(outcome, NeedsTools)
            (call,) = outcome.round.calls
            inputs.append(call.input)
            outcome.round.discard()
    assert inputs == [Memory(command="view", path="/memories")] * 2


CALLED_BY_CODE = {
    CLAUDE: {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "container": {"id": "container_1", "expires_at": "2026-11-23T00:00:00Z"},
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "code_execution",
                "input": {"code": "await search(query='cats')"},
            },
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "search",
                "input": {"query": "cats"},
                "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"},
            },
        ],
    },
    RESPONSES: {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "gpt-5.6",
        "output": [
            {
                "type": "program",
                "id": "prog_1",
                "call_id": "call_p",
                "code": "await search()",
                "fingerprint": "f",
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "search",
                "arguments": '{"query":"cats"}',
                "status": "completed",
                "caller": {"type": "program", "caller_id": "call_p"},
            },
        ],
    },
}


@pytest.mark.parametrize("api", [CLAUDE, RESPONSES])
def test_a_call_that_code_makes_is_decoded_answered_and_replayed(api: str) -> None:
    class Tools(Toolset):
        search = tool(search)

    session = Session()
    session.push_user("How many cats?")
    offer = Tools.offer()
    extra = {"tools": BESIDE[api]}
    answer = CALLED_BY_CODE[api]
    outcome = offer.read(ADAPTERS[api].response(answer), session)
    assert isinstance(outcome, NeedsTools)
    (call,) = outcome.round.calls
    assert Tools.search.matches(call)
    assert call.arguments == {"query": "cats", "limit": 3}
    outcome.round.commit(session, [call.complete(Hits(count=2))])
    again = ADAPTERS[api].request(session.transcript, offer, extra=extra)
    assert refused(api, again) == []
    if api == CLAUDE:
        assert again["messages"][1]["content"] == answer["content"]
        assert [block["type"] for block in again["messages"][2]["content"]] == ["tool_result"]
        assert again["container"] == "container_1"
    else:
        assert again["input"][1:3] == answer["output"]
        assert again["input"][3]["caller"] == {"type": "program", "caller_id": "call_p"}


# ------------------------------------------------------------------ over the wire


def test_the_sdks_send_what_was_told() -> None:
    reply = Reply("Yes.")
    with serve() as server:
        server.play(reply, reply, reply)
        models: dict[str, Any] = {
            CLAUDE: AnthropicMessages(
                "claude-sonnet-5",
                client=anthropic.Anthropic(
                    api_key="k", base_url=server.anthropic_base_url, max_retries=0
                ),
            )
        }
        client = openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0)
        models[RESPONSES] = OpenAIResponses("gpt-5-mini", client=client)
        models[CHAT] = OpenAIChat("gpt-5-mini", client=client)
        for api, llm in models.items():
            session = Session()
            session.push_user("?")
            turn = session.text_turn(llm, tools=App, extra={"tools": BESIDE[api]})
            assert isinstance(turn.collect_sync(), Finished)
            sent = server.requests[-1].body["tools"]
            assert sent[:2] == body(api, App.offer(), extra={"tools": BESIDE[api]})["tools"][:2]


def test_a_turn_says_which_tools_are_deferred_and_which_must_be_called() -> None:
    class Tools(Toolset):
        search = tool(search, provider={CLAUDE: {"defer_loading": False}})
        memory = tool(Memory)

    later = {Tools.search: {CLAUDE: {"defer_loading": True}}}
    offer = Tools.offer(provider=later, require=ToolRequirement.specific(Tools.memory))
    request = body(CLAUDE, offer)
    assert [one.get("defer_loading") for one in request["tools"]] == [True, None]
    assert request["tool_choice"] == {"type": "tool", "name": "memory"}
    only = Tools.offer(provider=later, available=ToolAvailability.only(Tools.search))
    with pytest.raises(InvalidToolConstraints, match="search"):
        body(CLAUDE, only)
