"""What browsers send (W14 to W18): one message or answers are read, and nothing else."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy.web import ApprovalAnswer, NewFile, WebError, read_ag_ui, read_ai_sdk
from lutumpy.web.inbound import MOST_BYTES


def said(text: Any = "Hi!", **more: Any) -> dict[str, Any]:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": "chat 1", "messages": [message], "trigger": "submit-message", **more}


def answered(*approvals: Any, **more: Any) -> dict[str, Any]:
    parts = [
        {"type": "tool-pay", "toolCallId": "p1", "state": "approval-responded", "approval": each}
        for each in approvals
    ]
    message = {"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, *parts]}
    return {"id": "chat 1", "messages": [message], **more}


def refused(read: Any, body: Any, status: int, **options: Any) -> WebError:
    with pytest.raises(WebError) as caught:
        read(body, **options)
    assert caught.value.status == status
    assert caught.value.public in str(caught.value)
    return caught.value


def test_the_last_message_is_read_W14() -> None:
    inbound = read_ai_sdk(json.dumps(said()).encode())
    assert inbound.message is not None
    assert inbound.answers == ()
    assert (inbound.scope, inbound.message.id, inbound.message.text) == ("chat 1", "m1", "Hi!")
    two = said()
    two["messages"][0]["parts"] += [{"type": "text", "text": "And more."}]
    two["messages"].insert(0, {"role": "system", "parts": "whatever"})
    assert read_ai_sdk(two).message.text == "Hi!\nAnd more."  # type: ignore[union-attr]


def test_answers_are_read_and_those_that_nobody_asked_for_are_not_W16() -> None:
    body = answered(
        {"id": "sha256:ab:p1", "approved": True},
        {"id": "sha256:ab:p2", "approved": False, "reason": "no"},
        {"id": "auto:l1", "approved": True, "isAutomatic": True},
    )
    assert read_ai_sdk(body).answers == (
        ApprovalAnswer("sha256:ab:p1", True),
        ApprovalAnswer("sha256:ab:p2", False, "no"),
    )
    run, reject = [answer.decision() for answer in read_ai_sdk(body).answers]
    assert run == {"decision": "run"}
    assert reject == {"decision": "reject", "reason": "no"}
    refused(read_ai_sdk, answered({"id": "auto:l1", "approved": True}), 422)
    for wrong in ("true", 1, None, {}):
        refused(read_ai_sdk, answered({"id": "x:p1", "approved": wrong}), 422)
    refused(read_ai_sdk, answered({"id": "x:p1", "approved": True, "reason": 5}), 422)
    refused(read_ai_sdk, answered({"approved": True}), 422)


def test_an_approval_id_is_as_long_as_the_id_of_its_call_W16() -> None:
    """LiteLLM writes Gemini's signature into the ids of calls: thousands of characters."""
    long = f"sha256:{'a' * 64}:call_1__thought__{'E' * 5000}"
    assert read_ai_sdk(answered({"id": long, "approved": True})).answers[0].approval_id == long
    entry = {"interruptId": long, "status": "resolved", "payload": {"approved": False}}
    (answer,) = read_ag_ui({"threadId": "chat 1", "runId": "r", "resume": [entry]}).answers
    assert answer.approval_id == long


def test_tool_results_and_approvals_of_other_states_are_never_taken_W17() -> None:
    body = answered({"id": "x:p1", "approved": True})
    for state in ("output-available", "approval-requested", "input-available"):
        body["messages"][0]["parts"][1]["state"] = state
        refused(read_ai_sdk, body, 422)


def test_history_only_grows_W15() -> None:
    refused(read_ai_sdk, said(trigger="regenerate-message"), 409)
    refused(read_ai_sdk, said(messageId="m0"), 409)
    inbound = read_ai_sdk(answered({"id": "x:p1", "approved": True}, messageId="a1"))
    assert inbound.answers  # of an approval, the client names the message that it is in
    refused(read_ai_sdk, answered({"id": "x", "approved": True}, trigger="regenerate-message"), 409)


@pytest.mark.parametrize("read", [read_ai_sdk, read_ag_ui])
def test_a_body_that_is_too_large_is_not_parsed_W18(read: Any) -> None:
    assert "bytes" in refused(read, b"[" * (MOST_BYTES + 1), 413).public
    assert "bytes" in refused(read, "[" * (MOST_BYTES + 1), 413).public
    for wrong in (b"", b"[", b"[]", b"\xff", b"[" * 100_000, b"{}", b'{"id": 5}'):
        refused(read, wrong, 422)


@pytest.mark.parametrize(
    "part",
    [
        {
            "type": "document",
            "source": {"type": "data", "mimeType": "text/plain", "value": "aGk="},
            "metadata": {"filename": "a.txt"},
        },
        {"type": "binary", "mimeType": "text/plain", "data": "aGk=", "filename": "a.txt"},
    ],
)
def test_files_of_ag_ui_keep_their_names_W14(part: dict[str, Any]) -> None:
    message = {"id": "m1", "role": "user", "content": [part]}
    body: dict[str, Any] = {"threadId": "c1", "runId": "r1", "messages": [message]}
    inbound = read_ag_ui(body, media_types=["text/plain"])
    assert inbound.message is not None
    assert inbound.message.files == (NewFile("a.txt", "text/plain", b"hi"),)
    refused(read_ag_ui, body, 422)
    for wrong in ({**part, "metadata": 7, "filename": 7}, {**part, "metadata": {"filename": 7}}):
        message["content"] = [{**wrong, "filename": 7}]
        (file,) = read_ag_ui(body, media_types=["text/plain"]).message.files  # type: ignore[union-attr]
        assert file.name == "file"
    for data in ({"data": None, "url": "https://x"}, {"data": 7}):
        binary = {"type": "binary", "mimeType": "text/plain", **data}
        message["content"] = [binary]
        refused(read_ag_ui, body, 422, media_types=["text/plain"])


def test_files_are_taken_where_their_kind_is_allowed_and_never_fetched_W14() -> None:
    data = base64.b64encode(b"png").decode()
    part = {"type": "file", "mediaType": "image/png", "filename": "a.png",
            "url": f"data:image/png;base64,{data}"}  # fmt: skip
    body = said()
    body["messages"][0]["parts"].append(part)
    refused(read_ai_sdk, body, 422)
    allowed = {"media_types": ["image/png"]}
    inbound = read_ai_sdk(body, **allowed)  # type: ignore[arg-type]
    assert inbound.message is not None
    assert inbound.message.files == (NewFile("a.png", "image/png", b"png"),)
    for wrong in (
        {**part, "url": "https://example.com/a.png"},
        {**part, "url": "data:image/png;base64,"},
        {**part, "url": "data:image/png;base64,%%%"},
        {**part, "url": "data:text/html;base64,aaaa"},
        {**part, "mediaType": "text/html"},
        {"type": "tool-pay", "output": "x"},
        "text",
    ):
        body["messages"][0]["parts"][1] = wrong
        refused(read_ai_sdk, body, 422, **allowed)
    content = [
        {"type": "image", "source": {"type": "data", "mimeType": "image/png", "value": data}}
    ]
    run = {
        "threadId": "t",
        "runId": "r",
        "messages": [{"id": "m", "role": "user", "content": content}],
    }
    message = read_ag_ui(run, **allowed).message  # type: ignore[arg-type]
    assert message is not None
    assert message.files == (NewFile("file", "image/png", b"png"),)
    content[0]["source"] = {"type": "url", "mimeType": "image/png", "value": "https://x"}  # type: ignore[dict-item]
    refused(read_ag_ui, run, 422, **allowed)


def test_what_is_neither_text_nor_file_is_not_read_or_said_to_be_none_W14() -> None:
    body = said()
    body["messages"][0]["parts"] += [{"type": "data-place", "data": {"page": 7}}]
    inbound = read_ai_sdk(body)
    assert inbound.message is not None
    assert inbound.message.files == ()
    for part in ({"type": "tool-pay", "output": "x"}, {"type": "source-url"}, {"type": 7}, {}):
        body["messages"][0]["parts"][1] = part
        with pytest.raises(WebError, match="neither a text nor a file"):
            read_ai_sdk(body)
    body["messages"][0]["parts"] = [{"type": "data-place", "data": {"page": 7}}]
    with pytest.raises(WebError, match="empty"):
        read_ai_sdk(body)
    content = [{"type": "text", "text": "Hi."}, {"type": "thing"}]
    run = {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user"}]}
    run["messages"][0]["content"] = content  # type: ignore[index]
    with pytest.raises(WebError, match="neither a text nor a file"):
        read_ag_ui(run)


def test_an_ag_ui_run_brings_a_message_answers_or_nothing_W9_W11() -> None:
    run: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": [], "tools": [{"name": "x"}],
           "state": {"a": 1}, "context": [], "forwardedProps": {}}  # fmt: skip
    inbound = read_ag_ui(run)
    assert (inbound.scope, inbound.run_id, inbound.message, inbound.answers) == ("t", "r", None, ())
    run["messages"] = [{"id": "m1", "role": "user", "content": "Hi!"}]
    assert read_ag_ui(run).message.text == "Hi!"  # type: ignore[union-attr]
    run["messages"].append({"id": "m2", "role": "assistant", "content": "Hello."})
    assert read_ag_ui(run).message is None
    run["resume"] = [
        {"interruptId": "d:p1", "status": "resolved",
         "payload": {"approved": True, "input": {"amount": 9}}},
        {"interruptId": "d:p2", "status": "cancelled"},
    ]  # fmt: skip
    first, second = read_ag_ui(run).answers
    assert first.decision() == {"decision": "run", "input": {"amount": 9}}
    assert second.decision()["decision"] == "reject"
    for payload in (
        None,
        {},
        {"approved": "yes"},
        {"approved": True, "more": 1},
        {"approved": True, "input": [1]},
    ):
        run["resume"] = [{"interruptId": "d:p1", "status": "resolved", "payload": payload}]
        refused(read_ag_ui, run, 422)
    for wrong in ([5], [{"interruptId": "d", "status": "odd", "payload": {"approved": True}}], "x"):
        run["resume"] = wrong
        refused(read_ag_ui, run, 422)
    del run["resume"]
    for content in ("  ", [5], 5, [{"type": "text", "text": 5}]):
        run["messages"] = [{"id": "m1", "role": "user", "content": content}]
        refused(read_ag_ui, run, 422)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "role",
                    "parts",
                    "type",
                    "text",
                    "state",
                    "approval",
                    "approved",
                    "messages",
                    "trigger",
                    "messageId",
                    "threadId",
                    "runId",
                    "resume",
                    "payload",
                    "interruptId",
                    "status",
                    "content",
                    "output",
                    "toolCallId",
                ]
            )
            | st.text(max_size=4),
            inner
            | st.sampled_from(["user", "assistant", "approval-responded", "resolved", "text"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(values)
def test_any_body_is_read_or_refused_W14(value: Any) -> None:
    for read in (read_ai_sdk, read_ag_ui):
        try:
            inbound = read(json.dumps(value))
        except WebError as error:
            if error.status not in (409, 413, 422):
                raise
        else:
            assert all(type(answer.approved) is bool for answer in inbound.answers)
