"""The demo on OpenAI's APIs."""

from __future__ import annotations

from typing import Any

from lutumpy.demo.providers.provider import NO_KEY, Provider

__all__ = ["CHAT", "RESPONSES"]


def _make_client(url: str | None) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI() if url is None else AsyncOpenAI(base_url=f"{url}/v1", api_key=NO_KEY)


CHAT = Provider(
    name="openai-chat",
    title="Chat Completions",
    client="AsyncOpenAI",
    make=_make_client,
    package="openai",
    extra="openai",
    keys=("OPENAI_API_KEY",),
    model="gpt-4.1-mini",
)


RESPONSES = Provider(
    name="openai-responses",
    title="Responses",
    client="AsyncOpenAI",
    make=_make_client,
    package="openai",
    extra="openai",
    keys=("OPENAI_API_KEY",),
    model="gpt-4.1-mini",
)
