"""Whom the demo can ask: for each name on the command line an API, and a client of its SDK."""

# The adapters come from the table of APIs. Beside its row, an API that the demo speaks has an entry
# here for what belongs to no adapter: which SDK makes a client, and a cheap model.

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from lutumpy.apis import Api, serving
from lutumpy.testing import Reply

__all__ = ["PROVIDERS", "DemoError", "Provider", "connect"]


class DemoError(Exception):
    """The demo can't run as it was asked to; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One choice of `--provider`.

    Attributes:
        title: How the report calls the API.
        api: Its name in the table.
        client: What the report calls the client of the SDK.
        make: Makes one for the address of a test server, or for the real API where that is `None`;
            imports the SDK.
        package: What is to be installed for it.
        extra: The extra of this library that brings it.
        keys: Environment variables of which one must be set for the real API; none where the SDK
            finds credentials in more places than its environment.
        model: Whom to ask.
    """

    title: str
    api: Api
    client: str
    make: Callable[[str | None], Any]
    package: str
    extra: str
    keys: tuple[str, ...]
    model: str


def _openai(url: str | None) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI() if url is None else AsyncOpenAI(base_url=f"{url}/v1", api_key=_NO_KEY)


def _anthropic(url: str | None) -> Any:
    from anthropic import AsyncAnthropic

    return AsyncAnthropic() if url is None else AsyncAnthropic(base_url=url, api_key=_NO_KEY)


def _gemini(url: str | None) -> Any:
    from google.genai import Client

    if url is None:
        return Client()
    return Client(api_key=_NO_KEY, vertexai=False, http_options={"base_url": url})


def _bedrock(url: str | None) -> Any:
    import boto3  # type: ignore[import-untyped]

    if url is None:
        return None  # the adapter makes one, and says in one line what is missing
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=_NO_KEY,
        aws_secret_access_key=_NO_KEY,
    )


_NO_KEY = "no-key-needed"

PROVIDERS: Mapping[str, Provider] = {
    "openai-chat": Provider(
        title="Chat Completions",
        api="openai_chat",
        client="AsyncOpenAI",
        make=_openai,
        package="openai",
        extra="openai",
        keys=("OPENAI_API_KEY",),
        model="gpt-4.1-mini",
    ),
    "openai-responses": Provider(
        title="Responses",
        api="openai_responses",
        client="AsyncOpenAI",
        make=_openai,
        package="openai",
        extra="openai",
        keys=("OPENAI_API_KEY",),
        model="gpt-4.1-mini",
    ),
    "anthropic": Provider(
        title="Messages",
        api="anthropic_messages",
        client="AsyncAnthropic",
        make=_anthropic,
        package="anthropic",
        extra="anthropic",
        keys=("ANTHROPIC_API_KEY",),
        model="claude-haiku-4-5",
    ),
    "gemini": Provider(
        title="generateContent",
        api="gemini_generate_content",
        client="genai.Client",
        make=_gemini,
        package="google-genai",
        extra="gemini",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        model="gemini-3-flash-preview",
    ),
    "bedrock": Provider(
        title="Converse",
        api="bedrock_converse",
        client="boto3",
        make=_bedrock,
        package="boto3",
        extra="bedrock",
        keys=(),
        model="us.amazon.nova-lite-v1:0",
    ),
}


async def connect(
    stack: AsyncExitStack, provider: Provider, live: bool, model: str, script: Sequence[Reply]
) -> tuple[Any, str]:
    """The adapter with a client of the provider's SDK, and where that sends its requests.

    Raises:
        DemoError: a key, the SDK, or the `testing` extra is missing.
    """
    if live and provider.keys and not any(map(os.environ.get, provider.keys)):
        wanted = " or ".join(provider.keys)
        raise DemoError(f"--live needs a key: set {wanted}, or leave --live out")
    url, where = None, "live"
    if not live:
        try:
            from lutumpy.testing.wire import serve
        except ImportError as error:
            raise DemoError(str(error)) from error
        url = (await stack.enter_async_context(serve(script))).url
        where = "answered by a test server on this machine"
    try:
        client = provider.make(url)
    except ImportError as error:
        raise DemoError(
            f"{provider.title} needs {provider.package}; install it with: "
            f'python -m pip install ".[{provider.extra}]" (in a clone)'
        ) from error
    llm = serving(provider.api, "adapter")(model, client=client)
    if client is None:
        return await stack.enter_async_context(llm), where
    await _close_with(stack, client)
    return llm, where


async def _close_with(stack: AsyncExitStack, client: Any) -> None:
    """Close a client at the end, in each of the ways that SDKs have."""
    if hasattr(client, "__aenter__"):
        await stack.enter_async_context(client)
        return
    stack.callback(client.close)
    if hasattr(client, "aio"):  # a client in two halves
        stack.push_async_callback(client.aio.aclose)
