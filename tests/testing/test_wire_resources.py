"""What the test server answers beside a model's answers, through the real SDK clients: models,
counts, stored responses, conversations, choices, and paths that there aren't.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from lutumpy.testing import Call, Failure, Reply, WireServer, render, render_stream, serve

Json = Any
MODEL = "gpt-5-mini"
CLAUDE = "claude-sonnet-5"
USER: Json = {"role": "user", "content": "Weather in Oslo?"}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serve() as running:
        yield running


@pytest.fixture
def client(server: WireServer) -> Iterator[Any]:
    with openai.OpenAI(api_key="k", base_url=server.openai_base_url, max_retries=0) as made:
        yield made


@pytest.fixture
def claude(server: WireServer) -> Iterator[Any]:
    with anthropic.Anthropic(
        api_key="k", base_url=server.anthropic_base_url, max_retries=0
    ) as made:
        yield made


def error(caught: Any) -> tuple[int, str]:
    """Status and words of an error of either SDK."""
    body = caught.value.body
    return caught.value.status_code, body["error"]["message"] if "error" in body else body[
        "message"
    ]


# ------------------------------------------------------------------ models


def test_each_vendor_has_its_models_at_the_same_path(
    server: WireServer, client: Any, claude: Any
) -> None:
    server.play(Reply("hi"), Reply("hi"))
    client.responses.create(model="my-model", input="x")
    claude.messages.create(model="claude-opus-5", max_tokens=9, messages=[USER])
    assert [model.id for model in client.models.list()] == ["gpt-5-mini", "my-model"]
    assert [model.id for model in claude.models.list()] == ["claude-sonnet-5", "claude-opus-5"]
    any_model = client.models.retrieve("org/any-model")
    assert (any_model.id, any_model.object, any_model.owned_by) == (
        "org/any-model",
        "model",
        "openai",
    )
    other = claude.models.retrieve("claude-x")
    assert (other.id, other.type, other.display_name) == ("claude-x", "model", "Claude X")
    assert [model.id for model in claude.beta.models.list(limit=1)] == [
        "claude-sonnet-5",
        "claude-opus-5",
    ]
    assert [model.id for model in claude.models.list(after_id="claude-sonnet-5")] == [
        "claude-opus-5"
    ]
    assert [model.id for model in claude.models.list(before_id="claude-opus-5", limit=9).data] == [
        "claude-sonnet-5"
    ]
    with pytest.raises(anthropic.NotFoundError):
        claude.models.list(after_id="nobody")
    asked = [(request.api, request.method, request.status) for request in server.requests[2:]]
    assert asked[:2] == [("openai_chat", "GET", 200), ("anthropic_messages", "GET", 200)]
    assert asked[-1] == ("anthropic_messages", "GET", 404)


def test_the_async_clients_read_the_lists(server: WireServer) -> None:
    async def run() -> tuple[list[str], list[str]]:
        async with openai.AsyncOpenAI(
            api_key="k", base_url=server.openai_base_url, max_retries=0
        ) as client:
            ours = [model.id async for model in client.models.list()]
        async with anthropic.AsyncAnthropic(
            api_key="k", base_url=server.anthropic_base_url, max_retries=0
        ) as claude:
            return ours, [model.id async for model in claude.models.list()]

    assert asyncio.run(run()) == (["gpt-5-mini"], ["claude-sonnet-5"])


# ------------------------------------------------------------------ counts


def test_tokens_of_messages_are_counted_without_an_answer_of_the_script(
    server: WireServer, claude: Any
) -> None:
    tool: Json = {"name": "f", "input_schema": {"type": "object"}}
    short = claude.messages.count_tokens(model=CLAUDE, messages=[USER]).input_tokens
    long = claude.messages.count_tokens(
        model=CLAUDE, messages=[USER] * 3, tools=[tool], system="x"
    ).input_tokens
    again = claude.messages.count_tokens(model=CLAUDE, messages=[USER]).input_tokens
    assert 0 < short == again < long
    edit = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    beta = claude.beta.messages.count_tokens(model=CLAUDE, messages=[USER], context_management=edit)
    assert (beta.input_tokens, beta.context_management.original_input_tokens) == (short, short)
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.count_tokens(model=CLAUDE, messages=[USER], extra_body={"max_tokens": 9})
    assert error(caught) == (400, "max_tokens: Extra inputs are not permitted")
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.count_tokens(model=CLAUDE, messages=[])
    assert error(caught) == (400, "messages: at least one message is required")
    assert server.requests[-1].problems[0].rule == "anthropic.messages"


def test_tokens_of_a_response_are_counted_with_what_the_server_holds(
    server: WireServer, client: Any
) -> None:
    server.play(Reply("A long answer, which counts when it is continued."))
    first = client.responses.create(model=MODEL, input="x")
    alone = client.responses.input_tokens.count(model=MODEL, input="and now?")
    held = client.responses.input_tokens.count(
        model=MODEL, input="and now?", previous_response_id=first.id
    )
    assert alone.object == "response.input_tokens"
    assert 0 < alone.input_tokens < held.input_tokens
    assert client.responses.input_tokens.count(model=MODEL).input_tokens > 0
    with pytest.raises(
        openai.BadRequestError, match="Previous response with id 'resp_x' not found"
    ):
        client.responses.input_tokens.count(model=MODEL, input="x", previous_response_id="resp_x")
    with pytest.raises(openai.BadRequestError, match="Unknown parameter: 'temperature'"):
        client.responses.input_tokens.count(model=MODEL, input="x", extra_body={"temperature": 1})


def test_a_count_doubts_what_a_request_would_have_doubted(server: WireServer, client: Any) -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    with pytest.raises(openai.BadRequestError):
        client.responses.input_tokens.count(
            model=MODEL, input="x", tools=[tool], extra_body={"zzz": 1}
        )
    certainties = [problem.certainty for problem in server.requests[-1].problems]
    assert (certainties[0], "discouraged" in certainties) == ("refused", True)


# --------------------------------------------------------------- responses


def test_a_stored_response_is_retrieved_until_it_is_deleted(
    server: WireServer, client: Any
) -> None:
    server.play(Reply("hi", usage=(3, 2)))
    made = client.responses.create(model=MODEL, input="x")
    assert client.responses.retrieve(made.id) == made
    client.responses.delete(made.id)
    gone = f"Response with id '{made.id}' not found."
    for ask in (
        client.responses.retrieve,
        client.responses.delete,
        client.responses.cancel,
        client.responses.input_items.list,
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            ask(made.id)
        assert error(caught) == (404, gone)
    with pytest.raises(openai.BadRequestError, match="Previous response with id"):
        client.responses.create(model=MODEL, input="x", previous_response_id=made.id)


def test_what_is_not_stored_is_not_found(server: WireServer, client: Any) -> None:
    server.play(Reply("hi"))
    made = client.responses.create(model=MODEL, input="x", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_the_input_of_a_response_is_listed_with_what_came_before(
    server: WireServer, client: Any
) -> None:
    server.play(Reply(calls=[Call("f", id="call_1")]), Reply("done"))
    first = client.responses.create(model=MODEL, input="go")
    output = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
    second = client.responses.create(model=MODEL, input=[output], previous_response_id=first.id)
    items = list(client.responses.input_items.list(second.id, order="asc"))
    assert [item.type for item in items] == ["message", "function_call", "function_call_output"]
    assert (items[0].role, items[0].content[0].type, items[0].content[0].text) == (
        "user",
        "input_text",
        "go",
    )
    assert len({item.id for item in items}) == 3
    latest_first = client.responses.input_items.list(second.id, limit=2)
    assert [item.id for item in latest_first.data] == [items[2].id, items[1].id]
    assert latest_first.has_more
    assert [item.id for item in latest_first] == [
        item.id for item in items[::-1]
    ]  # the SDK turns the pages
    for wrong, message in (
        (
            {"limit": 0},
            "Invalid 'limit': integer below minimum value. "
            "Expected a value >= 1, but got 0 instead.",
        ),
        (
            {"limit": 101},
            "Invalid 'limit': integer above maximum value. "
            "Expected a value <= 100, but got 101 instead.",
        ),
        (
            {"limit": "many"},
            "Invalid type for 'limit': expected an integer, but got a string instead.",
        ),
        ({"order": "up"}, "Invalid value: 'up'. Supported values are: 'asc' and 'desc'."),
        ({"after": "msg_x"}, "Item with id 'msg_x' not found."),
    ):
        with pytest.raises(openai.APIStatusError) as caught:
            client.responses.input_items.list(second.id, **wrong)
        assert error(caught)[1] == message


# -------------------------------------------------------------- background


def test_a_response_in_the_background_is_queued_and_completed_when_retrieved(
    server: WireServer, client: Any
) -> None:
    server.play(Reply("Here it is."), Reply("And more."))
    queued = client.responses.create(model=MODEL, input="x", background=True)
    assert (queued.status, queued.output, queued.usage, queued.background) == (
        "queued",
        [],
        None,
        True,
    )
    done = client.responses.retrieve(queued.id)
    assert (done.id, done.status, done.output_text) == (queued.id, "completed", "Here it is.")
    assert client.responses.cancel(queued.id).status == "completed"  # too late
    following = client.responses.create(model=MODEL, input="and?", previous_response_id=queued.id)
    assert following.output_text == "And more."


def test_a_response_in_the_background_can_be_cancelled(server: WireServer, client: Any) -> None:
    server.play(Reply(calls=[Call("f")]), Reply("hi"), Reply("hi"))
    queued = client.responses.create(model=MODEL, input="x", background=True)
    for _ in range(2):
        assert client.responses.cancel(queued.id).status == "cancelled"
    assert client.responses.retrieve(queued.id).output == []
    # What it would have called was never said.
    client.responses.create(model=MODEL, input="and?", previous_response_id=queued.id)
    foreground = client.responses.create(model=MODEL, input="x")
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.cancel(foreground.id)
    assert error(caught) == (400, "Cannot cancel a synchronous response.")


def test_a_stream_in_the_background_can_be_taken_up_again(server: WireServer, client: Any) -> None:
    server.play(Reply("Here it is."), Reply("hi"))
    events = list(client.responses.create(model=MODEL, input="x", background=True, stream=True))
    assert [event.type for event in events[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    assert [event.response.status for event in events[:3]] == ["queued", "queued", "in_progress"]
    made = events[0].response.id
    assert list(client.responses.retrieve(made, stream=True)) == events
    assert list(client.responses.retrieve(made, stream=True, starting_after=4)) == events[5:]
    assert client.responses.retrieve(made).output_text == "Here it is."
    unstreamed = client.responses.create(model=MODEL, input="x", background=True)
    with pytest.raises(openai.BadRequestError, match="'background' and 'stream' true"):
        client.responses.retrieve(unstreamed.id, stream=True)


def test_the_async_client_polls_a_response_in_the_background(server: WireServer) -> None:
    async def run() -> list[str]:
        async with openai.AsyncOpenAI(
            api_key="k", base_url=server.openai_base_url, max_retries=0
        ) as client:
            made = await client.responses.create(model=MODEL, input="x", background=True)
            statuses = [made.status]
            while made.status in ("queued", "in_progress"):
                made = await client.responses.retrieve(made.id)
                statuses.append(made.status)
            return [*map(str, statuses), made.output_text]

    server.play(Reply("Here it is."))
    assert asyncio.run(run()) == ["queued", "completed", "Here it is."]


def test_a_failure_and_recorded_json_are_answers_in_the_background_too(
    server: WireServer, client: Any
) -> None:
    recorded = {
        **render(Reply("hi"), "openai_responses", number=7, model=MODEL),
        "background": True,
    }
    server.play(Failure(503, "later"), {**recorded, "status": "queued", "output": []})
    with pytest.raises(openai.InternalServerError, match="later"):
        client.responses.create(model=MODEL, input="x", background=True)
    made = client.responses.create(model=MODEL, input="x", background=True)
    assert (made.id, made.status) == (recorded["id"], "queued")
    assert client.responses.retrieve(made.id).status == "queued"


def test_background_is_refused_where_nobody_could_fetch_it(client: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="Background mode requires 'store' to be true"):
        client.responses.create(model=MODEL, input="x", background=True, store=False)
    for more in ({}, {"background": True, "stream": True}):
        options = {"background_options": {"completion_window": "8h"}, **more}
        with pytest.raises(
            openai.BadRequestError, match="The completion window '8h' requires 'background'"
        ):
            client.responses.create(model=MODEL, input="x", extra_body=options)


def test_what_the_newest_sdk_can_send_is_taken(server: WireServer, client: Any) -> None:
    server.play(Reply("hi"))
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    more = {
        "background": True,
        "background_options": {"completion_window": "8h", "continuation_id": "x"},
        "access_programs": {"cyber": "standard"},
        "image": {"context_compression": "auto"},
    }
    # Models before GPT-6 take no update of the configuration.
    made = client.responses.create(model="gpt-6", input=[USER, update], extra_body=more)
    assert server.requests[-1].problems == ()
    assert made.to_dict()["image"] == {"context_compression": "auto"}
    assert [item.type for item in client.responses.input_items.list(made.id)] == [
        "configuration_update",
        "message",
    ]


# ----------------------------------------------------------- conversations


def test_a_conversation_is_made_changed_and_deleted(server: WireServer, client: Any) -> None:
    made = client.conversations.create(metadata={"a": "1"})
    assert (made.object, made.metadata, made.id[:5]) == ("conversation", {"a": "1"}, "conv_")
    assert client.conversations.retrieve(made.id) == made
    assert client.conversations.update(made.id, metadata={"b": "2"}).metadata == {"b": "2"}
    deleted = client.conversations.delete(made.id)
    assert (deleted.id, deleted.deleted, deleted.object) == (made.id, True, "conversation.deleted")
    gone = f"Conversation with id '{made.id}' not found."
    for ask in (
        lambda: client.conversations.retrieve(made.id),
        lambda: client.conversations.update(made.id, metadata={}),
        lambda: client.conversations.delete(made.id),
        lambda: client.conversations.items.list(made.id),
        lambda: client.conversations.items.create(made.id, items=[USER]),
        lambda: client.conversations.items.retrieve("msg_x", conversation_id=made.id),
        lambda: client.responses.create(model=MODEL, input="x", conversation=made.id),
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            ask()
        assert error(caught) == (404, gone)
    assert {request.api for request in server.requests} == {"openai_responses"}


def test_the_items_of_a_conversation_are_added_listed_and_deleted(client: Any) -> None:
    made = client.conversations.create(items=[USER])
    added = client.conversations.items.create(
        made.id, items=[{"role": "assistant", "content": "Rain."}]
    )
    assert [(item.type, item.role, item.content[0].type) for item in added.data] == [
        ("message", "assistant", "output_text")
    ]
    items = list(client.conversations.items.list(made.id, order="asc"))
    assert [item.content[0].text for item in items] == ["Weather in Oslo?", "Rain."]
    assert client.conversations.items.retrieve(items[0].id, conversation_id=made.id) == items[0]
    assert client.conversations.items.delete(items[0].id, conversation_id=made.id).id == made.id
    assert [item.id for item in client.conversations.items.list(made.id)] == [items[1].id]
    with pytest.raises(openai.NotFoundError, match=f"Item with id '{items[0].id}' not found."):
        client.conversations.items.retrieve(items[0].id, conversation_id=made.id)
    assert client.conversations.items.list(client.conversations.create().id).data == []


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("x", "Invalid type for 'items': expected an array of objects, but got a string instead."),
        ([USER] * 21, "Invalid 'items': array too long."),
        ([{"type": "nothing"}], "Invalid value: 'nothing'."),
        ([{"role": "tool", "content": "x"}], "Invalid value: 'tool'."),
        ([{"role": "user"}], "Missing required parameter: 'items[0].content'."),
    ],
)
def test_items_of_a_wrong_shape_are_refused(client: Any, items: Any, message: str) -> None:
    made = client.conversations.create()
    for ask in (
        client.conversations.create,
        lambda items: client.conversations.items.create(made.id, items=items),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            ask(items=items)
        assert error(caught)[1].startswith(message)
    assert client.conversations.items.list(made.id).data == []


def test_a_call_may_be_added_to_a_conversation_before_its_output(client: Any) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
    made = client.conversations.create(items=[call])
    client.conversations.items.create(made.id, items=[output])
    assert [item.type for item in client.conversations.items.list(made.id, order="asc")] == [
        "function_call",
        "function_call_output",
    ]


def test_fields_that_conversations_lack_are_refused(server: WireServer, client: Any) -> None:
    for ask, message in (
        (lambda: client.conversations.create(extra_body={"zzz": 1}), "Unknown parameter: 'zzz'."),
        (
            lambda: client.conversations.create(metadata="x"),
            "Invalid type for 'metadata': expected an object",
        ),
        (
            lambda: client.post("/conversations", body=[1], cast_to=object),
            "Invalid type for 'body'",
        ),
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            ask()
        assert error(caught)[1].startswith(message)
    made = client.conversations.create()
    for path, missing in (("items", "items"), ("", "metadata")):
        with pytest.raises(
            openai.BadRequestError, match=f"Missing required parameter: '{missing}'."
        ):
            client.post(f"/conversations/{made.id}/{path}".rstrip("/"), body={}, cast_to=object)


def test_responses_of_a_conversation_go_on_from_each_other(server: WireServer, client: Any) -> None:
    server.play(Reply(calls=[Call("f", id="call_1")]), Reply("done"))
    made = client.conversations.create(items=[{"role": "developer", "content": "Be brief."}])
    first = client.responses.create(model=MODEL, input="go", conversation=made.id)
    assert first.conversation.id == made.id
    with pytest.raises(
        openai.BadRequestError, match="No tool output found for function call call_1"
    ):
        client.responses.create(model=MODEL, input="go on", conversation={"id": made.id})
    output = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
    second = client.responses.create(model=MODEL, input=[output], conversation={"id": made.id})
    assert second.output_text == "done"
    listed = client.conversations.items.list(made.id, order="asc")
    assert [item.type for item in listed] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    before = client.responses.input_items.list(second.id, order="asc")
    assert [item.id for item in before] == [item.id for item in listed][:-1]


def test_the_async_client_holds_a_conversation(server: WireServer) -> None:
    async def run() -> list[str]:
        async with openai.AsyncOpenAI(
            api_key="k", base_url=server.openai_base_url, max_retries=0
        ) as client:
            made = await client.conversations.create()
            for _ in range(2):
                async with client.responses.stream(
                    model=MODEL, input="x", conversation=made.id
                ) as stream:
                    await stream.get_final_response()
            return [
                item.role
                async for item in client.conversations.items.list(made.id, order="asc", limit=1)
            ]

    server.play(Reply("a"), Reply("b"))
    assert asyncio.run(run()) == ["user", "assistant"] * 2


@pytest.mark.parametrize(
    "held", [{"conversation": "nothing"}, {"conversation": {}}, {"conversation": 7}]
)
def test_an_unknown_conversation_is_refused(server: WireServer, client: Any, held: Json) -> None:
    with pytest.raises(openai.NotFoundError, match=r"Conversation with id '.*' not found\."):
        client.responses.create(model=MODEL, input="x", extra_body=held)
    assert server.requests[-1].problems[0].rule == "responses.conversation"


# ----------------------------------------------------------------- choices


TWICE = Reply("I look.", calls=[Call("f"), Call("g", {"a": 1})])


def test_as_many_choices_as_were_asked_for(server: WireServer, client: Any) -> None:
    server.play(TWICE)
    answer = client.chat.completions.create(model=MODEL, messages=[USER], n=2)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert [choice.message.content for choice in answer.choices] == ["I look.", "I look."]
    assert len({call.id for choice in answer.choices for call in choice.message.tool_calls}) == 4


def test_as_many_choices_are_streamed(server: WireServer, client: Any) -> None:
    server.play(TWICE, TWICE)
    with client.chat.completions.stream(model=MODEL, messages=[USER], n=2) as stream:
        streamed = stream.get_final_completion()
    whole = client.chat.completions.create(model=MODEL, messages=[USER], n=2)
    assert [choice.index for choice in streamed.choices] == [0, 1]
    for one, other in zip(streamed.choices, whole.choices, strict=True):
        assert (one.message.content, one.finish_reason) == (
            other.message.content,
            other.finish_reason,
        )
        arguments = [call.function.arguments for call in one.message.tool_calls]
        assert arguments == [call.function.arguments for call in other.message.tool_calls]


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (0, "Invalid 'n': integer below minimum value. Expected a value >= 1, but got 0 instead."),
        (
            129,
            "Invalid 'n': integer above maximum value. "
            "Expected a value <= 128, but got 129 instead.",
        ),
        ("two", "Invalid type for 'n': expected an integer, but got a string instead."),
        (True, "Invalid type for 'n': expected an integer, but got a boolean instead."),
    ],
)
def test_a_wrong_number_of_choices_is_refused(client: Any, n: Any, message: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=[USER], extra_body={"n": n})
    assert error(caught) == (400, message)


def test_a_rendering_of_several_choices_has_the_shape_that_the_sdk_declares() -> None:
    chunk = TypeAdapter(ChatCompletionChunk)
    made = render(TWICE, "openai_chat", number=1, model="m", body={"n": 3})
    assert len(ChatCompletion.model_validate(made).choices) == 3
    for event in render_stream(TWICE, "openai_chat", number=1, model="m", body={"n": 3}):
        chunk.validate_python(event)


# ------------------------------------------------------ paths and methods


def ask(
    server: WireServer, method: str, path: str, data: bytes | None = None, **headers: str
) -> tuple[int, Json]:
    request = urllib.request.Request(server.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as caught:
        with caught:
            return caught.code, json.loads(caught.read())


VERSION = {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("path", "headers", "api"),
    [
        ("/v1/chat/nothing", {}, "openai_chat"),
        ("/v1/chat/completions/chatcmpl-1/parts", {}, "openai_chat"),
        ("/v1/responses/resp_1/nothing", {}, "openai_responses"),
        ("/openai/v1/conversations/conv_1/nothing", {}, "openai_responses"),
        ("/v1/messages/nothing", {}, "anthropic_messages"),
        ("/messages/", {}, "anthropic_messages"),
        ("/v1/nothing", {}, "openai_chat"),
        ("/v1/messagesnothing", {}, "openai_chat"),
        ("/openai/deployments/x/nothing", {}, "openai_chat"),
        ("/v1/files", VERSION, "anthropic_messages"),
        ("/", {}, "openai_chat"),
    ],
)
def test_an_unknown_path_is_answered_by_its_api_and_recorded(
    server: WireServer, path: str, headers: dict[str, str], api: str
) -> None:
    for method in ("GET", "POST", "DELETE"):
        data = b'{"a": 1}' if method == "POST" else None
        status, body = ask(server, method, path, data, **headers)
        assert status == 404
        if api == "anthropic_messages":
            assert (body["type"], body["error"]) == (
                "error",
                {"type": "not_found_error", "message": "Not Found"},
            )
            assert body["request_id"].startswith("req_")
        else:
            message = f"Invalid URL ({method} {path})"
            assert body["error"] == {
                "message": message,
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
        request = server.requests[-1]
        assert (request.api, request.method, request.path, request.status) == (
            api,
            method,
            path,
            404,
        )
        assert request.body == ({"a": 1} if data else None)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/chat/completions", "POST, GET"),
        ("PUT", "/v1/responses/resp_1", "GET, DELETE"),
        ("DELETE", "/v1/conversations", "POST"),
        ("POST", "/v1/models", "GET"),
        ("GET", "/v1/messages", "POST"),
    ],
)
def test_a_wrong_method_is_answered_by_its_api_and_recorded(
    server: WireServer, method: str, path: str, allowed: str
) -> None:
    status, body = ask(server, method, path, b"{}" if method != "GET" else None)
    assert (status, server.requests[-1].status, server.requests[-1].method) == (405, 405, method)
    message = body["error"]["message"]
    if path == "/v1/messages":
        assert (body["type"], message) == ("error", "Method Not Allowed")
    else:
        assert message.startswith(f"Not allowed to {method} on {path}.")
    assert server.requests[-1].api == (
        "anthropic_messages" if path == "/v1/messages" else server.requests[-1].api
    )


def test_the_sdks_read_both_errors(client: Any, claude: Any) -> None:
    with pytest.raises(openai.NotFoundError, match=r"Invalid URL \(POST /v1/embeddings\)"):
        client.embeddings.create(model="m", input="x")
    with pytest.raises(anthropic.NotFoundError) as caught:
        claude.beta.files.list()
    assert caught.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(openai.APIStatusError) as refused:
        client.put("/chat/completions", cast_to=object)
    assert refused.value.status_code == 405


def test_what_is_no_json_is_refused_where_a_body_is_needed(server: WireServer) -> None:
    key = {"authorization": "Bearer k"}
    made = ask(server, "POST", "/v1/conversations", b"", **key)[1]
    assert ask(server, "POST", "/v1/conversations", b"{oops", **key)[0] == 400
    assert ask(server, "POST", f"/v1/conversations/{made['id']}/items", b"", **key)[0] == 400
    assert ask(server, "POST", "/v1/responses/input_tokens", b"", **key)[0] == 400
    assert ask(server, "GET", f"/v1/conversations/{made['id']}")[0] == 401
