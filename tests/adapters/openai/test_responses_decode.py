"""Responses answers: recorded ones, odd ones of compatible hosts, and hostile ones."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import AssistantTurn, Transcript, Usage
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.adapters.openai.responses.decode import decode_response
from lutumpy.errors import AdapterError
from lutumpy.models import (
    CallBlock,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolResults,
)
from lutumpy.rules.openai.responses import items as rules

FIXTURES = Path(__file__).parents[2] / "fixtures"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for name in ("openai_responses", "compat_openai_responses")
    for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]


def answer(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "status": "completed", "model": "m", "output": list(output), **fields}


def decode(*output: Any, **fields: Any) -> AssistantTurn:
    return OpenAIResponses.response(answer(*output, **fields))


def native(turn: AssistantTurn) -> Any:
    return json.loads(turn.native) if turn.native else []


def call(
    call_id: Any = "call_1", name: Any = "f", arguments: Any = "{}", **fields: Any
) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
        **fields,
    }


def message(*texts: str, item_id: str = "msg_1") -> dict[str, Any]:
    content = [{"type": "output_text", "text": t, "annotations": []} for t in texts]
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def reasoning(item_id: Any = "rs_1", **fields: Any) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [],
        "encrypted_content": "gAAA",
        **fields,
    }


def commit(*turns: AssistantTurn) -> list[dict[str, Any]]:
    """The input of the next request after `turns`, their calls answered."""
    transcript = Transcript()
    transcript.push_user("hi")
    for turn in turns:
        turn = transcript.fresh_ids(turn)
        results = tuple(
            ResultBlock(c.id, c.name, "ok", kind=c.kind) for c in turn.calls if c.answerable
        )
        transcript.append_turn(turn, ToolResults(results))
    transcript.push_user("and now?")
    found: list[dict[str, Any]] = OpenAIResponses.request(transcript)["input"]
    return found


def refused(entries: list[dict[str, Any]]) -> list[str]:
    body = {"model": "m", "input": entries}
    return [p.message for p in rules.check_request(body) if p.certainty == "refused"]


def without_answer_only(item: dict[str, Any]) -> dict[str, Any]:
    """What goes back of an item, said independently of the decoder."""
    sent = dict(item)
    if sent["type"] == "reasoning" and not sent.get("content"):
        sent.pop("content", None)
    if sent["type"] == "message":
        sent["content"] = [
            {k: v for k, v in part.items() if k != "logprobs"} for part in sent["content"]
        ]
    return sent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"].split(":", 1)[1][-60:])
def test_a_recorded_answer_gives_its_calls_and_goes_back_as_it_came(row: dict[str, Any]) -> None:
    output = row["response"]["output"]
    turn = OpenAIResponses.response(row["response"])
    functions = [i for i in output if i["type"] == "function_call"]
    assert [(c.id, c.name, c.arguments) for c in turn.calls if c.kind == "function"] == [
        (i["call_id"], i["name"], i["arguments"]) for i in functions
    ]
    assert native(turn) == [without_answer_only(item) for item in output]
    sent = commit(turn)
    assert sent[1 : 1 + len(output)] == native(turn)
    outputs = [i["call_id"] for i in sent if i.get("type") == "function_call_output"]
    assert outputs == [c.id for c in turn.calls]
    if row["host"] == "api.openai.com":
        assert refused(sent) == []


def test_usage_and_ids_are_read() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 4,
        "total_tokens": 13,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    turn = decode(message("hi"), usage=usage)
    assert turn.usage == Usage(9, 4, 13, 3, 0, 2)
    assert (turn.model, turn.response_id, turn.text, turn.id_field) == (
        "m",
        "resp_1",
        "hi",
        "call_id",
    )
    assert decode(message("hi"), usage={"input_tokens": None}).usage == Usage()


@pytest.mark.parametrize(
    ("fields", "finish", "word", "cut"),
    [
        ({}, "stop", "completed", False),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "max_output_tokens",
            True,
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "content_filter",
            "content_filter",
            True,
        ),
        ({"status": "incomplete", "incomplete_details": None}, "unknown", "incomplete", True),
        ({"status": "failed", "error": {"message": "x"}}, "unknown", "failed", True),
        ({"status": None}, "unknown", None, False),
    ],
)
def test_finish_reasons(fields: dict[str, Any], finish: str, word: str | None, cut: bool) -> None:
    turn = decode(message("x"), **fields)
    assert (turn.finish_reason, turn.provider_finish_reason, turn.cut) == (finish, word, cut)


@pytest.mark.parametrize("status", ["queued", "in_progress"])
@pytest.mark.parametrize("output", [(), (message("so far"),)])
def test_a_reply_that_is_made_in_the_background_is_no_answer(
    status: str, output: tuple[Any, ...]
) -> None:
    with pytest.raises(AdapterError, match=f"response resp_1 is {status}") as caught:
        decode(*output, status=status, background=True)
    assert (caught.value.response_id, caught.value.code, caught.value.retryable) == (
        "resp_1",
        status,
        False,
    )
    assert caught.value.partial is not None
    assert caught.value.partial.cut


def test_a_background_reply_without_an_id_and_a_failed_one_say_what_they_are() -> None:
    with pytest.raises(AdapterError, match="response without an id is queued"):
        OpenAIResponses.response({"status": "queued", "output": []})
    with pytest.raises(AdapterError, match="it broke"):
        OpenAIResponses.response({"status": "queued", "error": {"message": "it broke"}})


def test_the_recorded_background_reply_is_no_answer() -> None:
    path = FIXTURES / "openai_responses_background.json"
    row = json.loads(path.read_text(encoding="utf-8"))
    with pytest.raises(AdapterError) as caught:
        OpenAIResponses.response(row["response"])
    assert caught.value.response_id == row["response"]["id"]


def test_calls_make_it_a_tool_call_turn_and_a_cut_item_is_marked() -> None:
    assert decode(call()).finish_reason == "tool_calls"
    turn = decode(
        call("a"),
        call("b", arguments='{"x":48', status="incomplete"),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
    assert [c.incomplete for c in turn.calls] == [False, True]
    assert (turn.finish_reason, turn.cut) == ("length", True)


def test_a_refusal_ends_a_turn_as_refused_and_goes_back() -> None:
    item = {**message(), "content": [{"type": "refusal", "refusal": "No."}]}
    turn = decode(item)
    assert (turn.finish_reason, turn.cut, turn.blocks) == ("refusal", True, (RefusalBlock("No."),))
    assert native(turn) == [item]


def test_blocks_stand_in_the_order_of_the_items() -> None:
    turn = decode(
        reasoning(summary=[{"type": "summary_text", "text": "hm"}]),
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "q"},
        },
        message("a", "b"),
        call(),
    )
    assert turn.blocks == (
        ReasoningBlock("hm"),
        OpaqueBlock("web_search_call"),
        TextBlock("a"),
        TextBlock("b"),
        CallBlock("call_1", "f", "{}", position=3),
    )
    assert not turn.signed


def test_answer_only_fields_are_left_out() -> None:
    item = message("x")
    item["content"][0] |= {"logprobs": [], "parsed": None}
    turn = decode(item, {**call(), "parsed_arguments": {}, "namespace": None, "caller": None})
    assert native(turn) == [message("x"), call()]
    kept = {**call(), "namespace": "crm", "caller": {"type": "direct"}, "unknown": 1}
    assert native(decode(kept)) == [kept]


@pytest.mark.parametrize(
    ("item", "block", "sent"),
    [
        (
            {"type": "function_call", "name": "f"},
            CallBlock("", "f", "", position=0),
            {"type": "function_call", "name": "f", "call_id": "", "arguments": "{}"},
        ),
        (
            {"type": "function_call", "call_id": "a", "name": None, "arguments": {"x": 1}},
            CallBlock("a", "", '{"x":1}', position=0),
            {
                "type": "function_call",
                "call_id": "a",
                "name": "unknown_tool",
                "arguments": '{"x":1}',
            },
        ),
        (
            {
                "type": "custom_tool_call",
                "call_id": "a",
                "name": "sql",
                "input": "SELECT 1",
                "id": "ctc_1",
            },
            CallBlock("a", "sql", "SELECT 1", kind="custom", position=0),
            {
                "type": "custom_tool_call",
                "call_id": "a",
                "name": "sql",
                "input": "SELECT 1",
                "id": "ctc_1",
            },
        ),
    ],
)
def test_odd_calls_are_read_and_only_what_openai_refuses_is_repaired(
    item: Any, block: CallBlock, sent: Any
) -> None:
    turn = decode(item)
    assert turn.calls == (block,)
    assert native(turn) == [sent]
    assert refused(commit(turn)) == []


@pytest.mark.parametrize(
    ("item", "output"),
    [
        (
            {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "SELECT 1"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "ok"},
        ),
        (
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "a", "action": {"type": "exec"}},
            {"type": "local_shell_call_output", "id": "a", "call_id": "a", "output": "ok"},
        ),
        (
            {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
            {
                "type": "shell_call_output",
                "call_id": "a",
                "output": [
                    {"stdout": "ok", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
                ],
            },
        ),
        (
            {
                "type": "apply_patch_call",
                "call_id": "a",
                "operation": {"type": "delete_file", "path": "x"},
            },
            {
                "type": "apply_patch_call_output",
                "call_id": "a",
                "status": "completed",
                "output": "ok",
            },
        ),
        (
            {
                "type": "tool_search_call",
                "call_id": "a",
                "execution": "client",
                "arguments": {"q": 1},
            },
            {"type": "function_call_output", "call_id": "a", "output": "ok"},
        ),
        (
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "name": "f",
                "server_label": "s",
                "arguments": "{}",
            },
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_1",
                "approve": False,
                "reason": "ok",
            },
        ),
    ],
)
def test_a_call_that_is_no_function_is_answered_by_its_own_kind(item: Any, output: Any) -> None:
    turn = decode(item)
    assert [(c.kind == "function", c.answerable) for c in turn.calls] == [(False, True)]
    sent = commit(turn)
    assert sent[1:3] == [item, output]
    assert refused(sent) == []


def test_a_computer_call_stays_and_is_answered_by_the_form_of_a_failed_one_C8() -> None:
    computer = {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "a",
        "action": {"type": "screenshot"},
        "pending_safety_checks": [],
        "status": "completed",
    }
    turn = decode(reasoning(), computer)
    assert [(c.kind, c.answerable) for c in turn.calls] == [("computer_call", True)]
    assert turn.calls[0].arguments == '{"type":"screenshot"}'
    sent = commit(turn)
    assert sent[1:3] == [reasoning(), computer]
    assert refused(sent) == []
    answer = sent[3]
    assert (answer["type"], answer["call_id"]) == ("computer_call_output", "a")
    # It takes a picture and no text: an empty one, and the status says that the call has failed.
    assert answer["status"] == "incomplete"
    assert answer["output"]["type"] == "computer_screenshot"
    data = answer["output"]["image_url"].removeprefix("data:image/png;base64,")
    assert base64.b64decode(data, validate=True).startswith(b"\x89PNG")


def test_what_the_provider_ran_itself_is_no_call() -> None:
    turn = decode(
        {"type": "shell_call", "id": "sh_1", "call_id": "a", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "id": "sho_1", "call_id": "a", "output": []},
        {
            "type": "tool_search_call",
            "id": "tsc_1",
            "call_id": None,
            "execution": "server",
            "arguments": {},
        },
        message("done"),
    )
    assert turn.calls == ()
    assert len(native(turn)) == 4


def test_reasoning_that_nothing_follows_is_left_out() -> None:
    assert native(decode(message("a"), reasoning())) == [message("a")]
    turn = decode(
        reasoning(), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    )
    assert turn.empty
    assert turn.reasoning is None
    assert turn.residue
    assert native(decode(reasoning("rs_1"), reasoning("rs_2"), call())) == [
        reasoning("rs_1"),
        reasoning("rs_2"),
        call(),
    ]


def test_reasoning_without_content_or_summary_is_made_sendable() -> None:
    item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "content": None}
    assert native(decode(item, call()))[0] == {
        "type": "reasoning",
        "id": "rs_1",
        "encrypted_content": "gAAA",
        "summary": [],
    }


@pytest.mark.parametrize("odd", [5, [5], {"a": 1}, True])
def test_fields_of_another_type_do_not_go_back_K5(odd: Any) -> None:
    """OpenAI refuses them, and so every later request. What nobody knows goes back as it came."""
    said = message("Hi")
    url = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    said["content"][0]["annotations"] = [url, odd, {}]
    later = message("So", item_id="msg_2")
    later["content"][0]["annotations"] = odd
    thought = {**reasoning(), "encrypted_content": odd, "status": odd, "content": odd}
    thought["summary"] = [{"type": "summary_text", "text": "Hm"}, {"type": "summary_text"}, odd]
    sent = native(
        decode(
            thought,
            {**said, "status": odd, "phase": odd},
            {**later, "more": odd},
            {**call(), "namespace": odd, "status": odd},
        )
    )
    assert sent[0]["summary"] == [{"type": "summary_text", "text": "Hm"}]
    assert [name for name in ("encrypted_content", "status") if name in sent[0]] == []
    assert sent[0].get("content", []) == []
    assert sent[1]["content"][0]["annotations"] == [url]
    assert sent[2]["content"][0]["annotations"] == []
    assert sent[2]["more"] == odd
    assert [
        name for item in sent for name in ("status", "phase", "namespace") if item.get(name) == odd
    ] == []


def test_ids_that_openai_refuses_are_dropped() -> None:
    def ids(*items: Any) -> list[Any]:
        return [item.get("id") for item in native(decode(*items))]

    assert ids(call("a", id="call_a"), call("b")) == [None, "fc_b"]
    assert ids(call("a", id="fc_" + "x" * 62)) == [None]
    assert ids(call("a", id="fc_1"), call("b", id="fc_1")) == ["fc_1", None]
    # A message that loses its id loses the reasoning tied to it, and so do the items after it.
    assert ids(reasoning(), {**message("x"), "id": "x1"}, call("a")) == [None, None]
    # Encrypted reasoning may go without an id; what followed it then must not ask for it.
    assert ids(reasoning("x1"), call("a")) == [None, None]


def test_another_hosts_own_ids_go_back_to_it() -> None:
    items = [
        {
            "type": "reasoning",
            "id": "0af1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "hm"}],
        },
        call("a", id="0af2"),
    ]
    turn = decode(*items)
    assert native(turn) == items
    assert turn.reasoning == "hm"
    assert commit(turn)[1:3] == items


def test_positions_hold_when_an_item_left() -> None:
    turn = decode(
        reasoning(), {**message("x"), "id": "bad", "phase": "final"}, call(""), call("", id="fc_2")
    )
    fresh = Transcript().fresh_ids(turn)
    assert [i["call_id"] for i in native(fresh) if i["type"] == "function_call"] == [
        c.id for c in fresh.calls
    ]


def test_an_item_id_is_sent_once_in_a_conversation() -> None:
    sent = commit(
        decode(call("a", id="fc_0")),
        decode(reasoning(), call("b", id="fc_0")),
        decode(message("x")),
    )
    assert [i.get("id") for i in sent if i.get("type") == "function_call"] == ["fc_0", None]
    repeated = commit(
        decode(message("x")), decode(reasoning(), message("y")), decode(reasoning(), call("c"))
    )
    assert refused(sent) == refused(repeated) == []


def test_unknown_items_are_kept_and_what_is_no_item_is_put_aside() -> None:
    turn = decode({"type": "hologram", "x": 1}, None, "noise", {"no": "type"}, message("hi"))
    assert native(turn) == [{"type": "hologram", "x": 1}, message("hi")]
    assert turn.blocks == (OpaqueBlock("hologram"), TextBlock("hi"))
    assert json.loads(turn.residue) == ["noise", {"no": "type"}]


@pytest.mark.parametrize(
    "output", [[], [{"type": "message", "content": []}], [{"type": "message", "content": None}]]
)
def test_an_answer_without_content_is_an_empty_turn(output: Any) -> None:
    turn = decode(*output)
    assert (turn.empty, turn.blocks) == (True, ())
    assert len(commit(turn)) == 2


@pytest.mark.parametrize(
    "reply", ["", "<html>", "[1]", "{}", {"output": None}, 5, {"error": {"message": "m"}}]
)
def test_what_is_no_answer_is_an_adapter_error(reply: Any) -> None:
    with pytest.raises(AdapterError) as caught:
        OpenAIResponses.response(reply)
    assert caught.value.provider == "openai_responses"


def test_objects_of_the_sdk_and_text_are_read_alike() -> None:
    from openai.types.responses import Response

    reply = next(row["response"] for row in ROWS if "api.openai.com" in row["host"])
    expected = OpenAIResponses.response(reply)
    turn = OpenAIResponses.response(Response.construct(**reply))
    assert (turn.blocks, turn.usage, native(turn)) == (
        expected.blocks,
        expected.usage,
        native(expected),
    )
    assert OpenAIResponses.response(json.dumps(reply)) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
CALL_IDS = st.sampled_from(["", "a", "b", "call_1", None])
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["output_text", "refusal", None])},
    optional={"text": JSON, "refusal": JSON},
)
ITEM = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["function_call", "custom_tool_call"])},
        optional={
            "id": st.sampled_from(["fc_1", "ctc_1", "x", "", None]),
            "call_id": CALL_IDS,
            "name": st.sampled_from(["f", "", "functions.f"]) | JSON,
            "arguments": JSON,
            "input": JSON,
            "status": st.sampled_from(["completed", "incomplete", None]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("message"), "id": st.sampled_from(["msg_1", "msg_2", None])},
        optional={"role": JSON, "content": st.lists(PART, max_size=3) | JSON},
    ),
    st.fixed_dictionaries(
        {"type": st.just("reasoning"), "id": st.sampled_from(["rs_1", "rs_2", None])},
        optional={
            "encrypted_content": st.sampled_from(["gAAA", None]),
            "content": st.none() | st.just([]),
        },
    ),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["shell_call", "apply_patch_call", "local_shell_call", "computer_call"]
            )
        },
        optional={"call_id": CALL_IDS, "action": JSON, "operation": JSON},
    ),
    st.fixed_dictionaries(
        {"type": st.just("tool_search_call"), "execution": st.sampled_from(["client", "server"])},
        optional={"call_id": CALL_IDS, "arguments": JSON},
    ),
)


@given(
    st.dictionaries(
        st.sampled_from(["output", "usage", "status", "incomplete_details", "id"]), JSON
    )
)
def test_no_json_object_makes_the_decoder_raise(reply: dict[str, Any]) -> None:
    assert isinstance(decode_response(reply), AssistantTurn)


@given(
    st.lists(
        JSON | ITEM | st.fixed_dictionaries({"type": JSON}, optional={"content": JSON, "id": JSON}),
        max_size=4,
    )
)
def test_no_output_makes_the_decoder_raise(output: list[Any]) -> None:
    decode_response(answer(*output))


@given(st.lists(st.lists(ITEM, max_size=4), min_size=1, max_size=3))
def test_whatever_was_decoded_can_be_sent_again(outputs: list[list[Any]]) -> None:
    assert refused(commit(*[decode_response(answer(*output)) for output in outputs])) == []
