"""A wrong argument of the program is refused where it is given, in words that say what to write."""

import re
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from lutumpy import (
    InvalidToolConstraints,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolCall,
    ToolMetadata,
    ToolRequirement,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools_sync
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn
def add(a: int) -> int:
    """Add one."""
    return a + 1


class Tools(Toolset):
    add = tool(add)


OPENAI = openai.OpenAI(api_key="none")
ASYNC_OPENAI = openai.AsyncOpenAI(api_key="none")
ANTHROPIC = anthropic.Anthropic(api_key="none")
ASYNC_ANTHROPIC = anthropic.AsyncAnthropic(api_key="none")
ANY: Any = None  # what a checker would refuse goes through here
ADAPTERS: list[Any] = [OpenAIChat, OpenAIResponses, AnthropicMessages]


def refused(code: Callable[[], object], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=re.escape(says)):
        code()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("hi", "not str: say something by session.push_user"),
        ([{"role": "user", "content": "hi"}], "not list: say something by session.push_user"),
        ({}, "a provider's messages are read by Transcript.from_messages"),
        (Session(), "not Session: session.fork() is a copy of one"),
    ],
)
def test_a_session_takes_a_transcript_or_nothing(given: Any, says: str) -> None:
    refused(lambda: Session(given), TypeError, says)
    transcript = Transcript()
    assert Session(transcript).transcript is transcript


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_model_has_a_name(adapter: Any) -> None:
    for blank in ("", "  ", "\n"):
        refused(lambda name=blank: adapter(name), ValueError, "needs the model's name")  # type: ignore[misc]
    refused(lambda: adapter(None), TypeError, "takes the model's name as text, not NoneType")
    client = ANTHROPIC if adapter is AnthropicMessages else OPENAI
    refused(
        lambda: adapter(client, "gpt"),
        TypeError,
        f"the name comes first: {adapter.__name__}(model, client)",
    )


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_client_is_one_of_the_adapters_own_sdk(adapter: Any) -> None:
    mine, other = ([ANTHROPIC, ASYNC_ANTHROPIC], [OPENAI, ASYNC_OPENAI])
    if adapter is not AnthropicMessages:
        mine, other = other, mine  # type: ignore[assignment]
    for client in mine:
        adapter("m", client)
    for client in other:
        hint = (
            "AnthropicMessages speaks"
            if adapter is not AnthropicMessages
            else "OpenAIChat or OpenAIResponses speaks"
        )
        refused(lambda c=client: adapter("m", c), TypeError, hint)  # type: ignore[misc]
    refused(lambda: adapter("m", type(mine[0])), TypeError, "not the class")
    refused(lambda: adapter("m", "sk-key"), TypeError, "not str")
    refused(lambda: adapter("m", object()), TypeError, "not object")


class OwnClient:
    """A client of somebody's own: it posts."""

    async def post(self, path: str, **options: Any) -> Any: ...


OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"temperature": "hot"}, TypeError, "temperature takes a number"),
    ({"temperature": float("nan")}, TypeError, "temperature takes a number"),
    ({"temperature": True}, TypeError, "temperature takes a number"),
    ({"max_output_tokens": "10"}, TypeError, "max_output_tokens takes a whole number"),
    ({"max_output_tokens": 1.5}, TypeError, "max_output_tokens takes a whole number"),
    ({"max_output_tokens": 0}, ValueError, "max_output_tokens is 1 or more"),
    ({"extra": "seed"}, TypeError, "extra takes a mapping"),
    ({"extra": [("seed", 1)]}, TypeError, "extra takes a mapping"),
    ({"extra": {1: 2}}, TypeError, "extra takes a mapping"),
]
CONNECTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"strict": "yes"}, TypeError, "strict takes True, False or None"),
    ({"base_url": 3}, TypeError, "base_url takes text"),
    ({"api_key": b"key"}, TypeError, "api_key takes text"),
    ({"headers": "x"}, TypeError, "headers takes a mapping"),
    ({"headers": {"x": 1}}, TypeError, "that of 'x' isn't one"),
    ({"timeout": "1"}, TypeError, "timeout takes seconds"),
    ({"timeout": 0}, ValueError, "timeout is more than 0"),
]


@pytest.mark.parametrize(("options", "kind", "says"), [*OPTIONS, *CONNECTIONS])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_options_of_a_model_are_checked_when_it_is_made(
    adapter: Any, options: dict[str, Any], kind: type[Exception], says: str
) -> None:
    refused(lambda: adapter("m", **options), kind, says)
    adapter(
        "m",
        OwnClient(),
        temperature=0,
        max_output_tokens=1,
        extra={"seed": 1},
        strict=True,
        headers={"a": "b"},
        timeout=1,
    )


@pytest.mark.parametrize(("options", "kind", "says"), OPTIONS)
def test_options_of_a_turn_are_checked_when_it_is_made(
    options: dict[str, Any], kind: type[Exception], says: str
) -> None:
    session, llm = Session(), ScriptedModel([])
    session.push_user("Hello.")
    refused(lambda: session.text_turn(llm, **options), kind, says)
    refused(lambda: session.text_turn(llm, tools=Tools, **options), kind, says)
    refused(lambda: session.structured_turn(llm, int, **options), kind, says)
    for adapter in ADAPTERS:
        refused(lambda a=adapter: a.request(session.transcript, **options), kind, says)  # type: ignore[misc]


def test_a_turn_wants_a_model_not_its_class() -> None:
    llm: Any = OpenAIChat
    refused(
        lambda: Session().text_turn(llm), TypeError, "not the class: make one, as OpenAIChat('gpt')"
    )


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_request_takes_an_offer_not_the_toolset(adapter: Any) -> None:
    session = Session()
    session.push_user("Hello.")
    refused(lambda: adapter.request(session.transcript, Tools), TypeError, "write Tools.offer()")
    refused(lambda: adapter.request(session.transcript, "add"), TypeError, "an offer is needed")
    refused(lambda: adapter.tools(Tools), TypeError, "write Tools.offer()")
    assert adapter.tools(Tools.offer())


def test_an_offer_is_made_of_selectors() -> None:
    any_: Any = ToolAvailability
    refused(lambda: any_.only([Tools.add]), InvalidToolConstraints, "give them one by one")
    refused(lambda: any_.default_plus("add"), InvalidToolConstraints, "'add' is not a selector")
    refused(lambda: any_("some"), InvalidToolConstraints, "'some' is not an availability")
    require: Any = ToolRequirement
    refused(lambda: require.specific("add"), InvalidToolConstraints, "'add' is not a selector")
    refused(lambda: require("specific"), InvalidToolConstraints, "None is not a selector")
    refused(lambda: require("some"), InvalidToolConstraints, "'some' is not a requirement")
    offer: Any = Tools.offer
    refused(
        lambda: offer(describe=["x"]),
        InvalidToolConstraints,
        "describe= takes texts by selector, not list",
    )
    refused(
        lambda: offer(parallel="no"),
        InvalidToolConstraints,
        "parallel= takes True or False, not 'no'",
    )
    refused(lambda: Tools.offer().reader(ANY, Session()), TypeError, "adapter.stream_decoder()")
    refused(lambda: Tools.parse(ANY), TypeError, "parse takes a ToolMetadata, not NoneType")


@pytest.mark.parametrize("wrong", [None, 3, {"error": "x"}, ["x"]])
def test_fail_and_reject_take_words(wrong: Any) -> None:
    call: Any = Tools.parse(ToolMetadata("c1", "add", '{"a": 1}'))
    refused(lambda: call.fail(wrong), TypeError, "fail takes a text or an exception")
    refused(lambda: call.fail(ValueError), TypeError, "of an exception it takes the instance")
    refused(lambda: call.reject(wrong), TypeError, "reject takes the reason as text")
    refused(lambda: call.reject(ValueError("x")), TypeError, "reject takes the reason as text")
    refused(lambda: call.with_input(wrong), TypeError, "with_input takes AddInput")
    assert isinstance(call, ToolCall)
    session = Session()
    session.push_user("Add.")
    outcome = session.text_turn(
        ScriptedModel([Reply(calls=[Call("nope")])]), tools=Tools
    ).collect_sync()
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.issues
    outcome.round.discard()
    refused(lambda: issue.fail(wrong), TypeError, "fail takes a text or an exception")
    refused(lambda: issue.reject(wrong), TypeError, "reject takes the reason as text")


def test_a_loop_takes_a_session_and_a_toolset() -> None:
    llm, dispatch, run = ScriptedModel([]), Dispatcher(Tools), run_tools_sync
    any_run: Any = run
    refused(
        lambda: any_run("hi", llm, tools=Tools, dispatch=dispatch),
        TypeError,
        "session takes a Session, not str",
    )
    refused(
        lambda: any_run(Session(), llm, tools=[Tools], dispatch=dispatch),
        TypeError,
        "takes a Toolset class",
    )


def test_a_script_is_made_of_texts_and_calls() -> None:
    any_call: Any = Call
    any_reply: Any = Reply
    refused(lambda: any_call(3), TypeError, "a tool's name as text")
    refused(lambda: any_call("add", 3), TypeError, "arguments= takes a mapping or the text")
    refused(lambda: any_reply(text=3), TypeError, "text= takes text")
