"""Breakpoints of the prompt cache: where they go, how many there are, and that nothing else changes
for them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import AssistantTurn, TextPart, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.models import Message, ResultBlock, ToolOffering, ToolResults, ToolSpec, TurnOptions
from lutumpy.rules.anthropic.messages import check_request

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
OLD, NEW = "claude-sonnet-4-5", "claude-opus-4-8"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"cache_control": {"type": "string"}}}
OFFER = ToolOffering(
    tuple([ToolSpec(name, f"Does {name}.", SCHEMA) for name in ("search", "read_file")])
)
SEARCH: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}


def request(
    transcript: Transcript, offer: ToolOffering | None = OFFER, **options: Any
) -> dict[str, Any]:
    body = AnthropicMessages.request(transcript, offer, cache="auto", **options)
    assert check_request({"model": NEW, **body}) == []
    return body


def started(system: str = "Be brief.") -> Transcript:
    transcript = Transcript()
    if system:
        transcript.push_system(system)
    transcript.push_user("hi")
    return transcript


def reply(*content: Any, stop_reason: str = "end_turn") -> AssistantTurn:
    return AnthropicMessages.response({"content": list(content), "stop_reason": stop_reason})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool_use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "search", "input": {}}


def commit(transcript: Transcript, *content: Any, **fields: Any) -> None:
    turn = reply(*content, **fields)
    results = [ResultBlock(call.id, call.name, "found") for call in turn.calls]
    transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)


def marks(body: dict[str, Any]) -> list[str]:
    """Where breakpoints stand: `tools.1`, `system.0`, `messages.2.0`."""
    found = [
        f"tools.{i}" for i, tool in enumerate(body.get("tools", ())) if "cache_control" in tool
    ]
    system = body.get("system", ())
    found += [
        f"system.{i}"
        for i, block in enumerate(system)
        if "cache_control" in block and isinstance(system, list)
    ]
    for i, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [f"messages.{i}.{j}" for j, block in enumerate(blocks) if "cache_control" in block]
    return found


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: without_marks(v)
            for k, v in value.items()
            if not (k == "cache_control" and v in (MARK, HOUR))
        }
    return [without_marks(v) for v in value] if isinstance(value, list) else value


def test_breakpoints_go_on_the_last_tool_the_last_system_block_and_the_last_message() -> None:
    transcript = started()
    body = request(transcript)
    assert marks(body) == ["tools.1", "system.0", "messages.0.0"]
    assert body["tools"][1]["cache_control"] == MARK
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    commit(transcript, text("Let me see."), tool_use("a"), tool_use("b"), stop_reason="tool_use")
    assert marks(request(transcript)) == ["tools.1", "system.0", "messages.2.1"]
    assert request(transcript)["messages"][2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": "b",
        "content": "found",
        "cache_control": MARK,
    }


def test_none_without_the_option() -> None:
    assert marks(AnthropicMessages.request(started(), OFFER)) == []
    assert marks(AnthropicMessages.request(started(), OFFER, cache=None)) == []


@pytest.mark.parametrize("cache", ["5m", True, {}])
def test_the_option_takes_auto_or_nothing(cache: Any) -> None:
    with pytest.raises(ValueError, match="cache takes"):
        AnthropicMessages.request(started(), cache=cache)
    with pytest.raises(ValueError, match="cache takes"):
        AnthropicMessages(NEW, cache=cache)


def test_requests_without_tools_or_system() -> None:
    assert marks(request(started(""), None)) == ["messages.0.0"]


def test_the_breakpoint_stands_before_the_first_ephemeral_message() -> None:
    transcript = started()
    commit(transcript, text("Hello."))
    transcript.push_ephemeral_user("It is noon.")
    transcript.push_user("Now?")
    body = request(transcript)
    assert marks(body) == ["tools.1", "system.0", "messages.1.0"]
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "Hello.", "cache_control": MARK}
    ]


def test_an_ephemeral_system_message_at_the_beginning_ends_the_stable_prefix() -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_ephemeral_system("It is noon.")
    transcript.push_user("hi")
    assert marks(request(transcript)) == ["tools.1", "system.0"]
    transcript = Transcript()
    transcript.push_ephemeral_system("It is noon.")
    transcript.push_user("hi")
    assert marks(request(transcript)) == ["tools.1"]


def test_ephemerals_that_stay_for_a_tool_loop_keep_the_breakpoint_before_them() -> None:
    transcript = started()
    transcript.push_ephemeral_user("It is noon.")
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    turn = reply(thinking, tool_use("a"), stop_reason="tool_use")
    transcript.request_succeeded(turn, len(transcript))
    transcript.append_turn(turn, ToolResults((ResultBlock("a", "search", "found"),)))
    assert marks(request(transcript)) == ["tools.1", "system.0", "messages.0.0"]


def test_blocks_that_take_no_breakpoint_are_passed_over() -> None:
    transcript = started()
    commit(transcript, text("Yes."), {"type": "mcp_tool_listing"})
    transcript.push_ephemeral_user("It is noon.")
    assert marks(request(transcript))[2:] == ["messages.0.0"]
    transcript = started()
    commit(transcript, text("Yes."), text("\n"))
    transcript.push_ephemeral_user("It is noon.")
    assert marks(request(transcript))[2:] == ["messages.0.0"]
    transcript = started()
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    commit(transcript, server, result)
    transcript.push_ephemeral_user("It is noon.")
    assert marks(request(transcript))[2:] == ["messages.1.1"]


def test_a_breakpoint_that_stands_already_is_left_as_it_is() -> None:
    transcript = started()
    commit(transcript, {**text("x"), "cache_control": HOUR})
    transcript.push_ephemeral_user("It is noon.")
    body = AnthropicMessages.request(transcript, OFFER, cache="auto")
    assert body["messages"][1]["content"][0]["cache_control"] == HOUR


def test_an_answer_sent_as_the_beginning_of_the_next_one_takes_none() -> None:
    transcript = started()
    commit(transcript, text("Yes, "))
    body = AnthropicMessages.request(transcript, OFFER, cache="auto", model=OLD)
    assert marks(body)[2:] == ["messages.0.0"]
    assert body["messages"][1]["content"] == [text("Yes,")]


def test_a_paused_answer_takes_one() -> None:
    transcript = started()
    commit(transcript, text("Yes."), stop_reason="pause_turn")
    assert marks(AnthropicMessages.request(transcript, OFFER, cache="auto"))[2:] == ["messages.1.0"]


def test_the_users_own_tools_stand_last_and_take_it() -> None:
    body = request(started(), extra={"tools": [SEARCH]})
    assert marks(body) == ["tools.2", "system.0", "messages.0.0"]
    assert marks(request(started(), None, extra={"tools": (SEARCH,)})) == [
        "tools.0",
        "system.0",
        "messages.0.0",
    ]
    deferred = {"name": "later", "input_schema": {"type": "object"}, "defer_loading": True}
    assert marks(request(started(), extra={"tools": [SEARCH, deferred]}))[:1] == ["tools.2"]
    assert marks(request(started(), extra={"tools": [deferred]}))[:1] == ["tools.1"]
    own = {**SEARCH, "cache_control": HOUR}
    body = request(started(), extra={"tools": [own]})
    assert marks(body) == ["tools.2", "system.0", "messages.0.0"]
    assert body["tools"][2] == own


@pytest.mark.parametrize("given", [MARK, HOUR, None])
def test_nothing_is_set_beside_the_providers_own_automatic_caching(given: Any) -> None:
    assert marks(request(started(), extra={"cache_control": given})) == []


def own(count: int, mark: dict[str, Any] = MARK) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "x", "cache_control": mark} for _ in range(count)]


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"system": own(1)}, ["tools.1", "system.0", "messages.0.0"]),
        ({"system": own(3)}, ["system.0", "system.1", "system.2", "messages.0.0"]),
        ({"system": own(4)}, [f"system.{n}" for n in range(4)]),
        ({"system": own(1, HOUR)}, ["system.0", "messages.0.0"]),
        ({"system": "Be long."}, ["tools.1", "messages.0.0"]),
        (
            {"system": own(2), "tools": [{**SEARCH, "cache_control": MARK}]},
            ["tools.2", "system.0", "system.1", "messages.0.0"],
        ),
        (
            {"messages": [{"role": "user", "content": own(3)}]},
            ["system.0", "messages.0.0", "messages.0.1", "messages.0.2"],
        ),
        ({"messages": [{"role": "user", "content": own(1, HOUR)}]}, ["messages.0.0"]),
        ({"messages": [{"role": "user", "content": "hi"}]}, ["tools.1", "system.0"]),
    ],
)
def test_breakpoints_of_the_users_own_are_counted_and_left_as_they_are(
    extra: Any, expected: list[str]
) -> None:
    body = request(started(), extra=extra)
    assert marks(body) == expected
    for place in ("system", "messages"):
        assert body[place] == extra.get(place, body[place])


def test_breakpoints_in_replayed_content_are_counted() -> None:
    transcript = started()
    commit(transcript, *[{**text("x"), "cache_control": MARK} for _ in range(3)])
    transcript.push_user("Go on.")
    assert len(marks(request(transcript))) == 4
    assert marks(request(transcript))[-1] == "messages.2.0"


def test_arguments_and_schemas_named_like_a_breakpoint_are_none() -> None:
    transcript = started()
    commit(
        transcript,
        {**tool_use("a"), "input": {"cache_control": {"type": "x"}}},
        stop_reason="tool_use",
    )
    assert marks(request(transcript)) == ["tools.1", "system.0", "messages.2.0"]


@pytest.mark.parametrize("model", [OLD, NEW])
def test_the_kept_conversation_is_not_changed(model: str) -> None:
    transcript = started()
    transcript.push_system("Later.")
    first = request(transcript, model=model)
    assert request(transcript, model=model) == first
    commit(transcript, text("Yes."))
    transcript.push_user("Go on.")
    later = request(transcript, model=model)
    assert later["tools"] == first["tools"]
    assert later["system"] == first["system"]
    stable = len(first["messages"])
    assert without_marks(later["messages"][:stable]) == without_marks(first["messages"])
    assert len([mark for mark in marks(later) if mark.startswith("messages")]) == 1


items = st.lists(
    st.one_of(
        st.builds(
            lambda role, parts, ephemeral: Message(
                role, tuple([TextPart(p) for p in parts]), ephemeral
            ),
            st.sampled_from(["system", "developer", "user", "assistant"]),
            st.lists(st.sampled_from(["x", "y ", "  z"]), min_size=1, max_size=2),
            st.booleans(),
        ),
        st.lists(
            st.sampled_from(
                [
                    text("x"),
                    text(" "),
                    {"type": "thinking", "thinking": "", "signature": "s"},
                    tool_use("a"),
                    {**text("y"), "cache_control": MARK},
                    {"type": "mcp_tool_listing"},
                ]
            ),
            max_size=3,
        ),
    ),
    max_size=6,
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "system": st.integers(0, 4).map(own),
        "tools": st.sampled_from([[], [SEARCH], [{**SEARCH, "cache_control": MARK}]]),
    },
)


@given(items, extras, st.sampled_from([OLD, NEW]))
def test_every_request_is_one_that_the_api_takes_with_its_breakpoints(
    given: list[Any], extra: Any, model: str
) -> None:
    transcript = started()
    for item in given:
        if isinstance(item, Message):
            transcript.append(item)
        else:
            turn = transcript.fresh_ids(reply(*item))
            results = [ResultBlock(call.id, call.name, "found") for call in turn.calls]
            transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)
    transcript.push_user("Go on.")
    plain = AnthropicMessages.request(transcript, OFFER, model=model, extra=extra)
    body = AnthropicMessages.request(transcript, OFFER, model=model, extra=extra, cache="auto")
    refused = [
        problem
        for problem in check_request({"model": model, **body})
        if problem.certainty == "refused"
    ]
    if len(marks(plain)) <= 4:
        assert refused == []
        assert len(marks(body)) >= min(4, len(marks(plain)) + 1) or item_is_unstable(transcript)
    else:
        assert marks(body) == marks(plain)

    def same(value: Any) -> Any:
        value = without_marks(value)
        for message in value["messages"]:
            if isinstance(message["content"], str):
                message["content"] = [text(message["content"])]
        if isinstance(value.get("system"), str):
            value["system"] = [text(value["system"])]
        return value

    assert same(body) == same(plain)


def item_is_unstable(transcript: Transcript) -> bool:
    return any(isinstance(item, Message) and item.ephemeral for item in transcript)


def test_an_adapter_sets_them_unless_it_is_told_not_to() -> None:
    from lutumpy.testing import Reply, wire

    with wire.serve([Reply(text="Yes.")] * 2) as server:
        for settings in ({}, {"cache": None}):
            llm = AnthropicMessages(
                NEW, base_url=server.anthropic_base_url, api_key="test", **settings
            )
            llm.respond_sync(started(), OFFER, TurnOptions())
        first, second = [request.body for request in server.requests]
    assert marks(first) == ["tools.1", "system.0", "messages.0.0"]
    assert marks(second) == []
    assert json.dumps(without_marks(first["tools"])) == json.dumps(second["tools"])
