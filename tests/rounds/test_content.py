"""The content of a result: text, or parts that the library knows (rule K3b).

So a committed session can always be sent.
"""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy import (
    CommitError,
    Complete,
    FilePart,
    HandledTool,
    HookError,
    ImagePart,
    NeedsTools,
    RejectedToolCall,
    Session,
    TextPart,
    ToolMetadata,
    ToolResult,
    ToolRound,
    Toolset,
    TranscriptError,
    hook_impl,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses

ADAPTERS: tuple[Any, ...] = (OpenAIChat, OpenAIResponses, AnthropicMessages)

IMAGE = ImagePart(b"\x89PNG", "image/png")


@tool_fn
def look(x: int = 0) -> Any:
    """Look at it."""
    return x


@tool_fn
def draw(x: int = 0) -> ImagePart:
    """Draw it."""
    return IMAGE


class Tools(Toolset):
    look = tool(look)
    draw = tool(draw)


def chat_reply(*calls: tuple[str, str, str]) -> dict[str, Any]:
    entries = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": entries}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def opened(*calls: tuple[str, str, str]) -> tuple[Session, ToolRound[Any]]:
    session = Session()
    session.push_user("Look.")
    reply = OpenAIChat.response(chat_reply(*(calls or (("c1", "look", "{}"),))))
    outcome = Tools.offer().read(reply, session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def part(cls: type[Any], **fields: Any) -> Any:
    """A part whose fields no constructor has looked at, as a careless program makes them."""
    made = object.__new__(cls)
    defaults = dict.fromkeys(cls.__slots__)
    for name, value in {**defaults, **fields}.items():
        object.__setattr__(made, name, value)
    return made


NO_CONTENT = [
    {"type": "search_result", "source": "a", "title": "b"},
    [{"type": "text", "text": "a"}],
    b"bytes",
    None,
    3,
    TextPart("not in a tuple"),
    ("a", TextPart("b")),
    ({"type": "search_result"},),
    (TextPart("a"), None),
    (TextPart(3),),  # type: ignore[arg-type]
    (TextPart(None),),  # type: ignore[arg-type]
    (ImagePart("iVBOR", "image/png"),),  # type: ignore[arg-type]
    (ImagePart(b"x", 3),),  # type: ignore[arg-type]
    (ImagePart(url=3),),  # type: ignore[arg-type]
    (ImagePart(b"x", "image/png", detail="huge"),),  # type: ignore[arg-type]
    (FilePart("a,b", "text/csv"),),  # type: ignore[arg-type]
    (FilePart(b"x", "text/csv", filename=3),),  # type: ignore[arg-type]
    (part(ImagePart),),
    (part(ImagePart, data=b"x"),),
    (part(FilePart, data=b"x", media_type="a/b", url="https://a"),),
    {TextPart("a")},
    iter([TextPart("a")]),
]


@pytest.mark.parametrize(
    "content", NO_CONTENT, ids=lambda content: repr(content).partition(" object at ")[0]
)
@pytest.mark.parametrize("status", ["ok", "error", "rejected"])
def test_k3b_content_that_is_no_text_and_no_known_part_is_wrong_output(
    content: Any, status: Any
) -> None:
    session, round = opened()
    before = session.dump()
    with pytest.raises(CommitError) as refused:
        round.commit(session, [ToolResult(round.calls[0].metadata, content, status)])
    assert [(p.kind, p.call_id, p.tool) for p in refused.value.problems] == [
        ("wrong_output", "c1", "look")
    ]
    assert "'c1' of 'look'" in str(refused.value)
    assert session.dump() == before
    round.commit(session, [round.calls[0].complete("seen")])
    for adapter in ADAPTERS:
        assert "seen" in str(adapter.request(session.transcript))


@pytest.mark.parametrize(
    "content", ["", "text", "[1]", (), (TextPart("a"), IMAGE), [TextPart("a")]], ids=repr
)
def test_k3b_text_and_parts_are_committed_and_sent_to_every_api(content: Any) -> None:
    session, round = opened()
    round.commit(session, [ToolResult(round.calls[0].metadata, content)])
    for adapter in ADAPTERS:
        assert adapter.request(session.transcript)
    assert Session.load(session.dump()).dump() == session.dump()


def test_k3b_every_problem_is_reported_together_with_the_others_in_call_order() -> None:
    session, round = opened(("c1", "look", "{}"), ("c2", "look", "{}"), ("c3", "look", "{}"))
    one, _, three = round.calls
    wrong: Any = b"x"
    with pytest.raises(CommitError) as refused:
        round.commit(session, [ToolResult(three.metadata, wrong), ToolResult(one.metadata, wrong)])
    found = [(p.kind, p.call_id) for p in refused.value.problems]
    assert found == [("wrong_output", "c1"), ("missing_result", "c2"), ("wrong_output", "c3")]
    round.discard()


def test_k3b_a_status_that_is_none_is_wrong_output_too() -> None:
    session, round = opened()
    status: Any = "done"
    with pytest.raises(CommitError, match="its status is 'done'"):
        round.commit(session, [ToolResult(round.calls[0].metadata, "x", status)])
    round.discard()


def test_k3b_a_handled_result_with_a_spoilt_part_is_wrong_output() -> None:
    session, round = opened(("c1", "draw", "{}"))
    call = round.calls[0]
    spoilt: Any = ImagePart("iVBOR", "image/png")  # type: ignore[arg-type]
    for given in (
        call.complete(spoilt),
        call.handled(spoilt),
        HandledTool(call.metadata, call.input, spoilt),
    ):
        with pytest.raises(CommitError, match="data, which is bytes") as refused:
            round.commit(session, [given])
        assert [p.kind for p in refused.value.problems] == ["wrong_output"]
    round.commit(session, [call.handled(IMAGE)])


def test_k3b_a_hook_that_completes_with_a_spoilt_part_is_a_hook_error() -> None:
    _, round = opened(("c1", "draw", "{}"))
    with pytest.raises(HookError, match="data, which is bytes"):
        round.apply_hooks_sync(lambda call: Complete(ImagePart("iVBOR", "image/png")))  # type: ignore[arg-type]
    round.discard()


@pytest.mark.parametrize("reason", [None, 3, {"why": "not"}, b"no"], ids=repr)
def test_k3b_a_reason_that_is_no_text_is_wrong_output(reason: Any) -> None:
    session, round = opened()
    call = round.calls[0]
    with pytest.raises(TypeError, match="has no result yet"):
        call.fail(reason)
    with pytest.raises(TypeError, match="reason as text"):
        call.reject(reason)
    with pytest.raises(CommitError, match="where text belongs") as refused:
        round.commit(session, [RejectedToolCall(call.metadata, call, reason)])
    assert [p.kind for p in refused.value.problems] == ["wrong_output"]
    round.discard()


@pytest.mark.parametrize(
    "content", [b"x", ({"type": "text"},), (ImagePart("iVBOR", "image/png"),)], ids=repr
)  # type: ignore[arg-type]
def test_k3b_a_review_hook_gives_text_or_parts_too(content: Any) -> None:
    session, round = opened()

    class Review:
        @hook_impl
        def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult:
            return ToolResult(result.metadata, content)

    hooks = Tools.hooks().with_hooks(Review())
    with pytest.raises(HookError):
        hooks.review_sync([round.calls[0].complete("a")])
    assert len(session.transcript) == 1
    round.discard()


def test_k3b_issues_answered_by_the_user_are_checked_as_calls_are() -> None:
    session, round = opened(("c1", "unknown", "{}"))
    wrong: Any = {"type": "text"}
    with pytest.raises(CommitError) as refused:
        round.commit(session, [ToolResult(round.issues[0].metadata, wrong, "error")])
    assert [p.kind for p in refused.value.problems] == ["wrong_output"]
    round.commit(session, [])


@pytest.mark.parametrize(
    "wrong", [c[0] for c in NO_CONTENT if isinstance(c, tuple) and not isinstance(c[0], str)]
)
def test_k3b_a_message_takes_no_part_that_cant_be_sent(wrong: Any) -> None:
    session = Session()
    if isinstance(wrong, TextPart) and isinstance(wrong.text, str):
        return  # its neighbour is what is wrong there
    with pytest.raises((TranscriptError, TypeError)):
        session.push_user(["x", wrong])
    assert len(session.transcript) == 0


def test_k3b_a_dump_with_a_spoilt_part_is_not_loaded() -> None:
    session = Session()
    session.push_user(["x", ImagePart(b"x", "image/png")])
    data = session.dump()
    spoilt = str(data).replace("'image/png'", "3")
    import ast

    with pytest.raises(TranscriptError, match="media_type"):
        Session.load(ast.literal_eval(spoilt))
