"""Failures that carry JSON or parts, and what the model gets of them (rules K6 and Y8d)."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from pydantic import BaseModel

from lutumpy import (
    CommitError,
    FilePart,
    ImagePart,
    NeedsTools,
    RawPart,
    Session,
    TextPart,
    ToolError,
    ToolMetadata,
    ToolResult,
    ToolRound,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.loops import run_tools
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.tools import failed_result, failure_text

RAISED: list[BaseException] = []
LIMIT = {"limit": 100, "resets": "tomorrow"}
PIXEL = ImagePart(b"\x89PNG", "image/png")


class Group(Exception):
    """As the backport of exception groups for Python 3.10 makes them."""

    def __init__(self, message: str, exceptions: list[BaseException]) -> None:
        super().__init__(message)
        self.exceptions = tuple(exceptions)

    def subgroup(self, condition: Any) -> Any:
        raise NotImplementedError


@tool_fn(effect="idempotent")
async def look() -> str:
    """Look at it."""
    raise RAISED[-1]


@tool_fn
async def order() -> str:
    """Order it."""
    raise RAISED[-1]


class Tools(Toolset):
    look = tool(look)
    order = tool(order)


def one_round(name: str = "look") -> tuple[Session, ToolRound[Any]]:
    session = Session()
    session.push_user("look")
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reply = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    outcome = Tools.offer().read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def one_call() -> Any:
    return Tools.parse(ToolMetadata("c1", "look", "{}"))


def written(session: Session) -> Any:
    """The result that a session ends with."""
    item = session.transcript[-1]
    assert isinstance(item, ToolResults)
    return item.results[0]


def committed(*fail: Any, **options: Any) -> Session:
    """A session whose one call failed like this."""
    session, round = one_round()
    round.commit(session, [call.fail(*fail, **options) for call in round.calls])
    return session


def anthropic_result(session: Session) -> Any:
    [block] = AnthropicMessages.request(session.transcript)["messages"][2]["content"]
    assert block.pop("type") == "tool_result"
    return block


# --- JSON -----------------------------------------------------------------------------------------


def test_y8d_the_model_gets_the_message_and_the_json_behind_it() -> None:
    session = committed(ToolError("the quota is used up", content=LIMIT))
    said = 'the quota is used up\n{"limit":100,"resets":"tomorrow"}'
    assert anthropic_result(session) == {"tool_use_id": "c1", "content": said, "is_error": True}
    assert OpenAIChat.request(session.transcript)["messages"][2]["content"] == said
    assert OpenAIResponses.request(session.transcript)["input"][2]["output"] == said
    assert written(session).status == "error"


def test_y8d_without_a_message_it_is_the_json_alone() -> None:
    for session in (committed(ToolError(content=LIMIT)), committed("", content=LIMIT)):
        assert json.loads(anthropic_result(session)["content"]) == LIMIT


def test_a_text_may_have_content_as_well_and_content_given_wins() -> None:
    result = one_call().fail("no", content=[1, None])
    assert (result.content, result.output, result.status) == ("no\n[1,null]", [1, None], "error")
    error = ToolError("no", content=1)
    assert one_call().fail(error, content="two").content == "no\ntwo"
    assert one_call().fail(error, reveal=True).content == "ToolError: no\n1"


def test_an_issue_can_be_answered_by_a_failure_with_content() -> None:
    session, round = one_round("nothing")
    [issue] = round.issues
    round.commit(session, [issue.fail("unknown", content={"known": ["look"]})])
    assert anthropic_result(session)["content"] == 'unknown\n{"known":["look"]}'


def test_the_output_of_a_failed_result_is_its_content() -> None:
    call = one_call()
    assert call.fail("no").output is None
    assert call.fail(ToolError("no", content=LIMIT)).output == LIMIT
    assert call.fail(ToolError("no", content=[PIXEL])).output == [PIXEL]


# --- parts ----------------------------------------------------------------------------------------


def test_y8d_parts_go_as_parts_where_an_error_takes_them() -> None:
    session = committed(ToolError("it broke", content=[TextPart("see"), PIXEL]))
    said = "it broke\nsee\n[image left out: image/png, 4 bytes]"
    assert anthropic_result(session) == {"tool_use_id": "c1", "content": said, "is_error": True}
    output = OpenAIResponses.request(session.transcript)["input"][2]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_text", "input_image"]
    messages = OpenAIChat.request(session.transcript)["messages"]
    assert [part["text"] for part in messages[2]["content"]][:2] == ["it broke", "see"]
    assert messages[3]["content"][1]["type"] == "image_url"


def test_a_message_that_a_part_says_is_said_once() -> None:
    session = committed(ToolError("full", content=TextPart("full")))
    assert written(session).text == "full"


@pytest.mark.parametrize("status", ["error", "rejected"])
def test_k6_parts_without_words_get_some_and_stay(status: Any) -> None:
    session, round = one_round()
    round.commit(session, [ToolResult(round.calls[0].metadata, (PIXEL,), status)])
    content = written(session).content
    words = "The tool failed." if status == "error" else "Tool call rejected: not allowed"
    assert content == (TextPart(words), PIXEL)
    assert written(committed(ToolError(content=PIXEL))).content == (
        TextPart("The tool failed."),
        PIXEL,
    )


def test_a_part_for_one_api_alone_is_text_in_an_error_of_it() -> None:
    found = {"type": "tool_reference", "tool_name": "look"}
    session = committed(ToolError("try", content=RawPart("anthropic_messages", found, "look")))
    assert anthropic_result(session)["content"] == "try\nlook"


# --- groups ---------------------------------------------------------------------------------------


def test_k6_contents_of_a_group_follow_its_messages_in_order() -> None:
    group = Group(
        "secret",
        [
            ToolError("first", content={"a": 1}),
            KeyError("secret"),
            Group("secret", [ToolError("second"), ToolError(content=[2])]),
        ],
    )
    result = one_call().fail(group)
    assert result.content == 'first\nsecond\nThe tool failed with KeyError.\n{"a":1}\n[2]'
    assert result.output == [{"a": 1}, [2]]
    assert failure_text(group) == "first\nsecond\nThe tool failed with KeyError."
    assert failure_text(ToolError(content=1)) == "The tool failed."


def test_parts_and_json_of_a_group_are_parts_together() -> None:
    group = Group("", [ToolError("a", content=LIMIT), ToolError("b", content=PIXEL)])
    content = one_call().fail(group).content
    assert content == (TextPart("a\nb"), TextPart('{"limit":100,"resets":"tomorrow"}'), PIXEL)


# --- what can't be sent ---------------------------------------------------------------------------


class Model(BaseModel):
    x: int = 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (math.nan, "the content of the failure is nan, which JSON has not"),
        ({"a": [math.inf]}, r"the content of the failure\.a\[0\] is inf"),
        (object(), "is object, which is not JSON"),
        (Model(), "is Model, which is not JSON"),
        ({1: 2}, "has a key that is int, not text"),
        ([TextPart("x"), 3], r"the content of the failure\[0\] is TextPart"),
        (ImagePart("x", "image/png"), "has str as its data"),  # type: ignore[arg-type]
        (RawPart("anthropic_messages", {"type": "zzz"}), "is refused by anthropic_messages"),
    ],
    ids=range(8),
)
def test_k3b_content_that_cannot_be_sent_is_wrong_output_and_fail_never_raises(
    content: Any, why: str
) -> None:
    session, round = one_round()
    result = round.calls[0].fail(ToolError("no", content=content))
    assert result.content == "no"
    with pytest.raises(CommitError, match=why) as raised:
        round.commit(session, [result])
    assert [problem.kind for problem in raised.value.problems] == ["wrong_output"]
    assert len(session.transcript) == 1
    round.commit(session, [round.calls[0].fail("no")])


def test_a_result_made_by_hand_with_such_parts_is_refused_as_ever() -> None:
    session, round = one_round()
    wrong: Any = ({"type": "image"},)
    with pytest.raises(CommitError, match="dict is not a content part"):
        round.commit(session, [ToolResult(round.calls[0].metadata, wrong, "error")])
    round.discard()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
parts = st.sampled_from(
    [TextPart(""), TextPart("x"), PIXEL, FilePart(b"x", "audio/mpeg"), ImagePart(url="x")]
)


@settings(max_examples=examples(150), deadline=None)
@given(
    message=st.text(max_size=5),
    content=json_values | parts | st.lists(parts, max_size=3),
    reveal=st.booleans(),
)
def test_k6_a_failure_with_any_content_is_refused_or_sent_to_every_api(
    message: str, content: Any, reveal: bool
) -> None:
    session, round = one_round()
    result = round.calls[0].fail(ToolError(message, content=content), reveal=reveal)
    assert result.status == "error"
    if result.output_error is not None:
        round.discard()
        return
    round.commit(session, [result])
    assert anthropic_result(session)["is_error"] is True
    assert anthropic_result(session)["content"].strip()
    assert OpenAIChat.request(session.transcript)["messages"][2]["content"]
    assert OpenAIResponses.request(session.transcript)["input"][2]["output"]


# --- the error itself -----------------------------------------------------------------------------


def test_a_tool_error_is_pickled_with_its_content() -> None:
    error = ToolError("no", content=LIMIT)
    again = pickle.loads(pickle.dumps(error))
    assert (again.args, again.content) == (("no",), LIMIT)
    assert ToolError("no").content is None
    assert str(error) == "no"


def test_subclasses_that_know_nothing_of_content_work_as_before() -> None:
    class Old(ToolError):
        def __init__(self, code: int) -> None:
            Exception.__init__(self, f"code {code}")

    class Hostile(ToolError):
        @property
        def content(self) -> Any:
            raise RuntimeError("secret")

    assert written(committed(Old(3))).content == "code 3"
    assert written(committed(Hostile("no"))).content == "no"


# --- the executor and the loop --------------------------------------------------------------------


async def test_y8d_the_executor_keeps_the_content_of_what_a_tool_raised() -> None:
    RAISED.append(ToolError("full", content=LIMIT))
    session, round = one_round()
    [result] = await ToolExecutor().run(round.calls, Dispatcher(Tools))
    assert result.content == 'full\n{"limit":100,"resets":"tomorrow"}'
    assert (result.status, result.outcome, result.output) == ("error", "failed", LIMIT)
    round.commit(session, [result])


async def test_the_executor_keeps_it_beside_other_exceptions_too() -> None:
    RAISED.append(Group("", [ToolError("full", content=LIMIT), KeyError("secret")]))
    session, round = one_round("order")
    [result] = await ToolExecutor().run(round.calls, Dispatcher(Tools))
    assert result.outcome == "maybe_executed"
    assert isinstance(result.content, str)
    assert result.content.startswith("full\nThe tool failed with KeyError before it gave an answer")
    assert result.content.endswith('{"limit":100,"resets":"tomorrow"}')
    round.commit(session, [result])


async def test_a_loop_goes_on_when_the_content_of_an_error_cannot_be_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    RAISED.append(ToolError("full", content=object()))
    llm = ScriptedModel([Reply(calls=[Call("look")]), Reply("done")])
    session = Session()
    session.push_user("look")
    result = await run_tools(session, llm, tools=Tools, dispatch=Dispatcher(Tools))
    assert result.text == "done"
    said = [item.results[0].content for item in session.transcript if hasattr(item, "results")]
    assert said == ["full\nWhat it said besides can't be shown."]
    assert "object, which is not JSON" in caplog.text


async def test_a_loop_hands_the_parts_of_an_error_to_the_model() -> None:
    RAISED.append(ToolError("broken", content=[PIXEL]))
    llm = ScriptedModel([Reply(calls=[Call("look")]), Reply("done")], api="openai_responses")
    session = Session()
    session.push_user("look")
    await run_tools(session, llm, tools=Tools, dispatch=Dispatcher(Tools))
    output = llm.requests[1]["input"][2]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]


def test_failed_result_is_what_an_executor_of_ones_own_takes() -> None:
    call = one_call()
    made = failed_result(call.metadata, KeyError("secret"), sentence="It stopped ({names}).")
    assert (made.content, made.status) == ("It stopped (KeyError).", "error")
