"""The tool runners of the official SDKs against the test server: what they send by themselves is
what the API takes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from typing import Any

import anthropic
import openai
import pytest

from lutumpy.testing import Call, Failure, Reply, WireServer, serve

Json = Any
CLAUDE = "claude-sonnet-5-5"
ASK: Json = {"role": "user", "content": "Weather?"}
SCRIPT = [
    Reply(
        "I look.",
        calls=[Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rom"})],
        reasoning="Two.",
    ),
    Reply(calls=[Call("weather", {"city": "Bern"})]),
    Reply("It rains."),
]
THREADS = "thread" in inspect.signature(anthropic.resources.beta.Messages.create).parameters
needs_threads = pytest.mark.skipif(
    not THREADS, reason="the installed anthropic SDK knows no threads"
)


def weather(city: str) -> str:
    """How the weather is.

    Args:
        city: Name of the city.
    """
    return f"rain in {city}"


def claude(server: WireServer) -> Any:
    return anthropic.Anthropic(api_key="k", base_url=server.anthropic_base_url, max_retries=0)


def async_claude(server: WireServer) -> Any:
    return anthropic.AsyncAnthropic(api_key="k", base_url=server.anthropic_base_url, max_retries=0)


def params(**more: Any) -> Json:
    return {"model": CLAUDE, "max_tokens": 99, "messages": [ASK], **more}


def results(body: Json) -> list[str]:
    return [
        block["content"]
        for block in body["messages"][-1]["content"]
        if block["type"] == "tool_result"
    ]


def accepted(server: WireServer) -> list[Json]:
    """The bodies of the requests, none of which had a problem."""
    assert [(request.status, request.problems) for request in server.requests] == [(200, ())] * len(
        server.requests
    )
    return [request.body for request in server.requests]


def assert_the_prefix_is_held(bodies: list[Json]) -> None:
    assert [results(body) for body in bodies[1:]] == [
        ["rain in Oslo", "rain in Rom"],
        ["rain in Bern"],
    ]
    if not THREADS:
        return
    assert [body["thread"]["type"] for body in bodies] == ["create", "continue", "continue"]
    assert [len(body["messages"]) for body in bodies] == [1, 1, 1]
    assert ["tools" in body for body in bodies] == [True, False, False]


@pytest.mark.parametrize("stream", [False, True])
def test_the_anthropic_runner_sends_results_alone_and_the_server_holds_the_prefix(
    stream: bool,
) -> None:
    tool = anthropic.beta_tool(weather)
    with serve(SCRIPT) as server, claude(server) as client:
        runner = client.beta.messages.tool_runner(
            **params(tools=[tool], system="Be brief."), stream=stream
        )
        messages = [each.get_final_message() if stream else each for each in runner]
        bodies = accepted(server)
    assert messages[-1].content[0].text == "It rains."
    assert_the_prefix_is_held(bodies)


@pytest.mark.parametrize("stream", [False, True])
def test_the_async_anthropic_runner_does_the_same(stream: bool) -> None:
    async def look(city: str) -> str:
        return weather(city)

    async def run(server: WireServer) -> list[Any]:
        tool = anthropic.beta_async_tool(look, name="weather")
        async with async_claude(server) as client:
            runner = client.beta.messages.tool_runner(**params(tools=[tool]), stream=stream)
            return [(await each.get_final_message()) if stream else each async for each in runner]

    with serve(SCRIPT) as server:
        messages = asyncio.run(run(server))
        bodies = accepted(server)
    assert messages[-1].content[0].text == "It rains."
    assert_the_prefix_is_held(bodies)


@needs_threads
@pytest.mark.parametrize("stream", [False, True])
def test_a_runner_that_compacts_goes_on_from_the_summary(stream: bool) -> None:
    script = [SCRIPT[1], Reply("A summary."), SCRIPT[1], Reply("It rains.")]
    with serve(script) as server, claude(server) as client:
        runner = client.beta.messages.tool_runner(
            **params(tools=[anthropic.beta_tool(weather)]), stream=stream
        )
        said = []
        for each in runner:
            message = each.get_final_message() if stream else each
            said.append((message.stop_reason, message.content[0].type))
            if len(said) == 1:
                runner.compact_before_next_turn()
        bodies = accepted(server)
    assert said == [
        ("tool_use", "tool_use"),
        ("compaction", "compaction"),
        ("tool_use", "tool_use"),
        ("end_turn", "text"),
    ]
    assert [body.get("compaction") for body in bodies] == [None, {"type": "summarize"}, None, None]
    (summary,) = bodies[2]["messages"]
    assert (summary["role"], summary["content"][0]["content"]) == ("assistant", "A summary.")
    assert bodies[3]["thread"]["type"] == "continue"


@needs_threads
def test_a_paused_turn_of_a_runner_goes_on_without_a_message() -> None:
    with (
        serve([Reply("Well", finish="paused"), Reply("It rains.")]) as server,
        claude(server) as client,
    ):
        runner = client.beta.messages.tool_runner(**params(tools=[anthropic.beta_tool(weather)]))
        assert runner.until_done().content[0].text == "It rains."
        assert [body["messages"] for body in accepted(server)] == [[ASK], []]


@needs_threads
def test_tools_that_a_runner_adds_later_come_in_the_conversation() -> None:
    def clock() -> str:
        """What time it is."""
        return "noon"

    with (
        serve([SCRIPT[1], Reply(calls=[Call("clock")]), Reply("Noon.")]) as server,
        claude(server) as client,
    ):
        betas = ["inline-tools-2026-09-15"]  # without it the API takes no such block
        runner = client.beta.messages.tool_runner(
            **params(tools=[anthropic.beta_tool(weather)], betas=betas)
        )
        messages = []
        for message in runner:
            messages.append(message)
            if len(messages) == 1:
                runner.add_tools(anthropic.beta_tool(clock))
        bodies = accepted(server)
    assert messages[-1].content[0].text == "Noon."
    assert [block["type"] for block in bodies[1]["messages"][-1]["content"]] == ["tool_addition"]
    assert results(bodies[2]) == ["noon"]


@needs_threads
def test_a_thread_that_the_server_lost_is_replayed_by_the_sdk() -> None:
    with serve([Reply("One."), Reply("Two."), Reply("Three.")]) as server, claude(server) as client:
        thread = client.beta.messages.thread(model=CLAUDE, max_tokens=99)
        thread.send(ASK)
        first = server.requests[0].body
        held = {"type": "continue", "previous_message_id": "msg_010000000000000000000001"}
        client.beta.messages.create(
            **params(thread=held)
        )  # continued elsewhere, so the thread is no more free
        assert thread.send(ASK).content[0].text == "Three."
        assert [request.status for request in server.requests] == [200, 200, 400, 200]
        assert server.requests[-1].body["thread"] == {"type": "create"}
        assert server.requests[-1].body["messages"][0] == first["messages"][0]
        assert len(server.requests[-1].body["messages"]) == 3


# ----------------------------------------------------------------- threads


CREATE: Json = {"type": "create"}


def keep(previous: str) -> Json:
    return {"type": "continue", "previous_message_id": previous}


def create(client: Any, **more: Any) -> Any:
    """A request with a thread, through an SDK that need not know them."""
    known = {key: more.pop(key) for key in ("system", "tools", "messages") if key in more}
    return client.beta.messages.create(**{**params(), **known}, extra_body=more)


USE = Reply(calls=[Call("weather", {}, id="toolu_1")])
TOOL: Json = {"name": "weather", "input_schema": {"type": "object"}}
RESULT: Json = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}],
}


def code(error: Any) -> Any:
    return (
        error.status_code,
        error.body["error"]["type"],
        error.body["error"]["details"]["error_code"],
    )


def test_an_answer_is_continued_once() -> None:
    with serve([Reply("a"), Reply("b"), Reply("c")]) as server, claude(server) as client:
        first = create(client, thread=CREATE)
        second = create(client, thread=keep(first.id))
        with pytest.raises(anthropic.BadRequestError, match="has already been continued") as caught:
            create(client, thread=keep(first.id))
        assert code(caught.value) == (400, "invalid_request_error", "thread_already_continued")
        create(client, thread=keep(second.id))


def test_a_thread_that_nobody_created_is_not_found() -> None:
    with serve([Reply("a")]) as server, claude(server) as client:
        alone = create(client)
        for previous in ("msg_none", alone.id):
            with pytest.raises(
                anthropic.NotFoundError, match="No usable Thread state was found"
            ) as caught:
                create(client, thread=keep(previous))
            assert code(caught.value) == (404, "not_found_error", "thread_not_found")


def test_a_failed_request_leaves_its_thread_to_be_continued() -> None:
    with (
        serve([Reply("a"), Failure(529, "Overloaded."), Reply("b")]) as server,
        claude(server) as client,
    ):
        first = create(client, thread=CREATE)
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            create(client, thread=keep(first.id))
        assert create(client, thread=keep(first.id)).content[0].text == "b"


def test_two_requests_at_once_do_not_continue_one_answer() -> None:
    asked, may_go_on = threading.Event(), threading.Event()

    def slow(api: str, body: Any) -> Reply:
        asked.set()
        assert may_go_on.wait(10)
        return Reply("b")

    with serve([Reply("a"), slow]) as server, claude(server) as client:
        first = create(client, thread=CREATE)
        other = threading.Thread(target=lambda: create(client, thread=keep(first.id)))
        other.start()
        assert asked.wait(10)
        with pytest.raises(anthropic.BadRequestError) as caught:
            create(client, thread=keep(first.id))
        may_go_on.set()
        other.join()
    assert code(caught.value)[2] == "thread_continue_in_flight"


def test_the_held_conversation_counts_where_results_are_checked() -> None:
    with serve([USE, Reply("b")]) as server, claude(server) as client:
        first = create(client, thread=CREATE, tools=[TOOL])
        with pytest.raises(
            anthropic.BadRequestError,
            match="`tool_use` ids were found without `tool_result` blocks",
        ):
            create(client, thread=keep(first.id))
        stray = {**RESULT, "content": [{**RESULT["content"][0], "tool_use_id": "toolu_2"}]}
        with pytest.raises(anthropic.BadRequestError, match="toolu_1"):
            create(client, thread=keep(first.id), messages=[stray])
        choice = {"model": "claude-haiku-4-5", "tool_choice": {"type": "tool", "name": "clock"}}
        with pytest.raises(anthropic.BadRequestError, match="Tool 'clock' not found"):
            create(client, thread=keep(first.id), messages=[RESULT], **choice)
        assert create(client, thread=keep(first.id), messages=[RESULT]).content[0].text == "b"


def test_a_thread_keeps_its_tools_and_system() -> None:
    with serve([Reply("a")]) as server, claude(server) as client:
        first = create(client, thread=CREATE, tools=[TOOL])
        for more in ({"tools": [TOOL]}, {"system": "Be brief."}):
            with pytest.raises(anthropic.BadRequestError, match="that it was created with"):
                create(client, thread=keep(first.id), **more)


def test_a_thread_that_is_at_an_end_needs_a_new_message() -> None:
    with serve([Reply("a")]) as server, claude(server) as client:
        first = create(client, thread=CREATE)
        with pytest.raises(anthropic.BadRequestError, match="at least one message is required"):
            create(client, thread=keep(first.id), messages=[])


def test_cache_markers_of_earlier_requests_are_not_counted() -> None:
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    message = {"role": "user", "content": [marked] * 4}
    with serve([Reply("a"), Reply("b")]) as server, claude(server) as client:
        first = create(client, thread=CREATE, messages=[message])
        create(client, thread=keep(first.id), messages=[message])
        assert [request.status for request in server.requests] == [200, 200]


def test_a_summary_is_an_answer_that_a_thread_goes_on_from() -> None:
    with serve([USE, Reply("Rain so far."), Reply("b")]) as server, claude(server) as client:
        use = create(client, thread=CREATE, tools=[TOOL])
        said = create(
            client, thread=keep(use.id), messages=[RESULT], compaction={"type": "summarize"}
        )
        assert (said.stop_reason, said.content[0].type, said.content[0].content) == (
            "compaction",
            "compaction",
            "Rain so far.",
        )
        create(client, thread=keep(said.id), messages=[])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"thread": "create"}, "thread: Input should be an object"),
        ({"thread": {}}, "thread.type: Field required"),
        ({"thread": {"type": "fork"}}, "thread.type: Input should be 'create' or 'continue'"),
        ({"thread": {"type": "create", "x": 1}}, "thread.create.x: Extra inputs are not permitted"),
        ({"thread": {"type": "continue"}}, "thread.continue.previous_message_id: Field required"),
        (
            {"thread": keep(7)},
            "thread.continue.previous_message_id: Input should be a valid string",
        ),  # type: ignore[arg-type]
        ({"compaction": {"type": "all"}}, "compaction.type: Input should be 'summarize'"),
        (
            {"compaction": {"type": "summarize", "x": 1}},
            "compaction.x: Extra inputs are not permitted",
        ),
        (
            {"compaction": {"type": "summarize", "instructions": 7}},
            "compaction.instructions: Input should be a valid string",
        ),
        (
            {"compaction": {"type": "summarize"}, "stop_sequences": ["x"]},
            "stop_sequences: cannot be combined",
        ),
        (
            {"compaction": {"type": "summarize"}, "tools": [TOOL], "tool_choice": {"type": "any"}},
            "tool_choice: cannot be combined",
        ),
        (
            {
                "compaction": {"type": "summarize"},
                "output_config": {"format": {"type": "json_schema"}},
            },
            "output_config.format: cannot be combined",
        ),
        (
            {"billing_policy": {"type": "mine"}},
            "billing_policy.type: Input should be 'billing_policy'",
        ),
        (
            {"billing_policy": {"type": "billing_policy", "bill_to": "you"}},
            "billing_policy.bill_to: Input should be 'self' or 'user_profile'",
        ),
    ],
)
def test_a_thread_compaction_or_policy_of_a_wrong_shape_is_refused(
    more: Json, message: str
) -> None:
    body = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [ASK], **more}
    with serve(None) as server, claude(server) as client:
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.post("/v1/messages", body=body, cast_to=object)
        assert caught.value.body["error"]["message"].startswith(message)
        policy = {"type": "billing_policy", "bill_to": "self"}
        client.post(
            "/v1/messages",
            body={**body, **dict.fromkeys(more), "billing_policy": policy},
            cast_to=object,
        )


# ------------------------------------------------------------------ OpenAI


@pytest.mark.parametrize("stream", [False, True])
def test_the_runner_of_responses_is_taken(stream: bool) -> None:
    module = pytest.importorskip("openai.lib.responses_tool_runner")
    function = module.RegisteredFunction(
        RESPONSES_TOOL, lambda arguments: weather(arguments["city"])
    )
    with serve(SCRIPT) as server:
        with openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0) as client:
            runner = module.ResponsesToolRunner(functions=[function])
            answer = runner.run(client, {"model": "gpt-5-mini", "input": "Weather?"}, stream=stream)
        assert answer.output_text == "It rains."
        assert_outputs_were_sent(accepted(server))


@pytest.mark.parametrize("stream", [False, True])
def test_the_async_runner_of_responses_is_taken(stream: bool) -> None:
    module = pytest.importorskip("openai.lib.responses_tool_runner")

    async def look(arguments: Json) -> str:
        return weather(arguments["city"])

    async def run(server: WireServer) -> Any:
        async with openai.AsyncOpenAI(
            api_key="k", base_url=server.openai_base_url, max_retries=0
        ) as client:
            runner = module.AsyncResponsesToolRunner(
                functions=[module.AsyncRegisteredFunction(RESPONSES_TOOL, look)]
            )
            return await runner.run(
                client, {"model": "gpt-5-mini", "input": "Weather?"}, stream=stream
            )

    with serve(SCRIPT) as server:
        assert asyncio.run(run(server)).output_text == "It rains."
        assert_outputs_were_sent(accepted(server))


CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RESPONSES_TOOL: Json = {
    "type": "function",
    "name": "weather",
    "description": "How the weather is.",
    "parameters": {**CITY, "additionalProperties": False},
    "strict": True,
}


def assert_outputs_were_sent(bodies: list[Json]) -> None:
    outputs = [
        item["output"] for item in bodies[-1]["input"] if item.get("type") == "function_call_output"
    ]
    assert [json.loads(each) if each.startswith('"') else each for each in outputs] == [
        "rain in Oslo",
        "rain in Rom",
        "rain in Bern",
    ]
