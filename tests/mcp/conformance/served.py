"""What the MCP project's conformance suite wants of a server, as a toolset of ours.

Run as a program it serves streamable HTTP on a free port of the loopback, and prints the address.
"""

from __future__ import annotations

import base64
import json
import socket
import warnings
from typing import Annotated, Any, Literal

import anyio
import uvicorn
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel, Field

from lutumpy import (
    DynamicTool,
    FilePart,
    ImagePart,
    Skip,
    TextPart,
    ToolError,
    Toolset,
    dynamic,
    tool,
    tool_fn,
)
from lutumpy.mcp import ServedCall, mcp_server

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")
PAUSE = 0.05


@tool_fn
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@tool_fn
def test_image_content() -> list[ImagePart]:
    """Give an image."""
    return [ImagePart(data=PNG, media_type="image/png")]


@tool_fn
def test_audio_content() -> list[FilePart]:
    """Give a sound."""
    return [FilePart(data=WAV, media_type="audio/wav")]


@tool_fn
def test_embedded_resource() -> list[FilePart]:
    """Give a file."""
    text = b"This is an embedded resource content."
    return [FilePart(data=text, media_type="text/plain", filename="test://embedded-resource")]


@tool_fn
def test_multiple_content_types() -> list[TextPart | ImagePart | FilePart]:
    """Give a text, an image and a file."""
    data = json.dumps({"test": "data", "value": 123}).encode()
    return [
        TextPart("Multiple content types test:"),
        ImagePart(data=PNG, media_type="image/png"),
        FilePart(
            data=data, media_type="application/json", filename="test://mixed-content-resource"
        ),
    ]


@tool_fn
async def test_tool_with_logging(*, call: Skip[ServedCall]) -> str:
    """Write into the client's log."""
    await call.log("info", "Tool execution started")
    await anyio.sleep(PAUSE)
    await call.log("info", "Tool processing data")
    await anyio.sleep(PAUSE)
    await call.log("info", "Tool execution completed")
    return "It was run."


@tool_fn
async def test_tool_with_progress(*, call: Skip[ServedCall]) -> str:
    """Say how far it is."""
    for progress in (0, 50, 100):
        await call.report(progress, 100)
        await anyio.sleep(PAUSE)
    return "It was run."


@tool_fn
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool_fn
async def test_sampling(prompt: str, *, call: Skip[ServedCall]) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer protocols do without
        answer = await call.request.session.create_message(
            [message], max_tokens=100, related_request_id=call.request.request_id
        )
    return f"LLM response: {getattr(answer.content, 'text', answer.content)}"


class Account(BaseModel):
    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


@tool_fn
async def test_elicitation(message: str, *, call: Skip[ServedCall]) -> str:
    """Ask the person at the client."""
    answer = await call.ask(message, Account)
    return f"User response: {answer!r}"


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@tool_fn
async def test_elicitation_sep1034_defaults(*, call: Skip[ServedCall]) -> str:
    """Ask for a form that is filled in already."""
    answer = await call.ask("Please look through it.", Defaults)
    return f"Elicitation completed: {answer!r}"


def _titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": _titled(
                ("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")
            ),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": _titled(
                    ("value1", "First Choice"),
                    ("value2", "Second Choice"),
                    ("value3", "Third Choice"),
                )
            },
        },
    },
}


@tool_fn
async def test_elicitation_sep1330_enums(*, call: Skip[ServedCall]) -> str:
    """Ask for choices, by a form of JSON Schema."""
    answer = await call.request.session.elicit_form("Choose.", CHOICES, call.request.request_id)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@tool_fn
async def test_reconnection(*, call: Skip[ServedCall]) -> str:
    """Close the stream of the answer meanwhile, where the client can come again."""
    if call.request.close_sse_stream is not None:
        await call.request.close_sse_stream()
    await anyio.sleep(PAUSE)
    return "Reconnection test completed successfully"


JSON_SCHEMA = DynamicTool(
    "json_schema_2020_12_tool",
    "Tool with JSON Schema 2020-12 features",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    },
    run=lambda values: "taken",
)


class Conformance(Toolset):
    test_simple_text = tool(test_simple_text)
    test_image_content = tool(test_image_content)
    test_audio_content = tool(test_audio_content)
    test_embedded_resource = tool(test_embedded_resource)
    test_multiple_content_types = tool(test_multiple_content_types)
    test_tool_with_logging = tool(test_tool_with_logging)
    test_tool_with_progress = tool(test_tool_with_progress)
    test_error_handling = tool(test_error_handling)
    test_sampling = tool(test_sampling)
    test_elicitation = tool(test_elicitation)
    test_elicitation_sep1034_defaults = tool(test_elicitation_sep1034_defaults)
    test_elicitation_sep1330_enums = tool(test_elicitation_sep1330_enums)
    test_reconnection = tool(test_reconnection)
    more = dynamic()


def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
    """A prompt with a file."""
    text = b"Embedded resource content for testing."
    return [
        FilePart(data=text, media_type="text/plain", filename=resourceUri),
        TextPart("Please process the embedded resource above."),
    ]


def test_prompt_with_image() -> list[Any]:
    """A prompt with an image."""
    return [
        ImagePart(data=PNG, media_type="image/png"),
        TextPart("Please analyze the image above."),
    ]


def data(id: str) -> str:
    """The data of an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def complete(of: str, name: str, typed: str) -> list[str]:
    return [word for word in ("paris", "park", "party") if word.startswith(typed)]


def make() -> Any:
    toolset = Conformance.with_dynamic_tools({Conformance.more: [JSON_SCHEMA]})
    return mcp_server(
        toolset,
        version="1.0.0",
        context=lambda request: {"call": ServedCall(request)},
        prompts=[
            test_simple_prompt,
            test_prompt_with_arguments,
            test_prompt_with_embedded_resource,
            test_prompt_with_image,
        ],
        resources={
            "test://static-text": "This is the content of the static text resource.",
            "test://static-binary": ImagePart(data=PNG, media_type="image/png"),
            "test://template/{id}/data": data,
            "test://watched-resource": "It never changes.",
        },
        complete=complete,
    )


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        print(f"http://127.0.0.1:{door.getsockname()[1]}/mcp", flush=True)
        app = make().streamable_http_app()
        config = uvicorn.Config(app, log_level="error", ws="none")
        anyio.run(lambda: uvicorn.Server(config).serve(sockets=[door]))


if __name__ == "__main__":
    main()
