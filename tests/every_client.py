"""The real SDK client of every API at a test server, closed when its test is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import boto3
import httpx2
from anthropic import Anthropic, AsyncAnthropic
from botocore.config import Config
from every_api import ADAPTERS
from google import genai
from google.genai import types
from openai import AsyncOpenAI, OpenAI

from lutumpy.models import Api

__all__ = [
    "MODELS",
    "bedrock_client",
    "gemini_client",
    "model_at",
    "sync_client",
    "sync_model_at",
]

MODELS: dict[Api, str] = {
    "gemini_generate_content": "gemini-3-flash-preview",  # the strictest about signatures
    "bedrock_converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}
"""For whom requests are written, where that makes a difference."""

TIMEOUT = 10
"""Seconds that a request may take; a test that hangs should fail by itself."""


@asynccontextmanager
async def model_at(api: Api, url: str, **options: Any) -> AsyncIterator[Any]:
    """The adapter, with its options and an async client of the SDK, which tries nothing twice."""
    if api == "gemini_generate_content":
        client: Any = gemini_client(url)
        try:
            yield _adapter(api, client, options)
        finally:
            await client.aio.aclose()
            client.close()
    elif api == "bedrock_converse":
        with sync_model_at(
            api, url, **options
        ) as model:  # boto3 has one client for both; it runs in threads
            yield model
    elif api == "ollama_chat":
        async with httpx2.AsyncClient(base_url=url, timeout=TIMEOUT) as client:
            yield _adapter(api, client, {"max_retries": 0, **options})
    else:
        made: Any = AsyncAnthropic if api == "anthropic_messages" else AsyncOpenAI
        async with made(**_options(api, url)) as client:
            yield _adapter(api, client, options)


@contextmanager
def sync_model_at(api: Api, url: str, **options: Any) -> Iterator[Any]:
    """The adapter, with its options and a sync client of the SDK, which tries nothing twice."""
    if api == "ollama_chat":
        options = {"max_retries": 0, **options}
    client = sync_client(api, url)
    try:
        yield _adapter(api, client, options)
    finally:
        client.close()


def sync_client(api: Api, url: str) -> Any:
    """A sync client of the SDK, which tries nothing twice; it is yours to close."""
    if api == "gemini_generate_content":
        return gemini_client(url)
    if api == "bedrock_converse":
        return bedrock_client(url)
    if api == "ollama_chat":
        return httpx2.Client(base_url=url, timeout=TIMEOUT)
    make: Any = Anthropic if api == "anthropic_messages" else OpenAI
    return make(**_options(api, url))


def _adapter(api: Api, client: Any, options: dict[str, Any]) -> Any:
    return ADAPTERS[api](MODELS.get(api, "any-model"), client=client, **options)


def _options(api: Api, url: str) -> dict[str, Any]:
    base = url if api == "anthropic_messages" else f"{url}/v1"
    return {"base_url": base, "api_key": "any", "max_retries": 0, "timeout": TIMEOUT}


def gemini_client(url: str) -> genai.Client:
    options = types.HttpOptions(base_url=url, timeout=TIMEOUT * 1000)
    return genai.Client(api_key="any", http_options=options)


def bedrock_client(url: str) -> Any:
    once = Config(retries={"max_attempts": 0}, connect_timeout=TIMEOUT, read_timeout=TIMEOUT)
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=once,
    )
