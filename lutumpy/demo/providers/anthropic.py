"""The demo on Anthropic's API."""

from __future__ import annotations

from typing import Any

from lutumpy.demo.providers.provider import NO_KEY, Provider

__all__ = ["MESSAGES"]


def _make_client(url: str | None) -> Any:
    from anthropic import AsyncAnthropic

    return AsyncAnthropic() if url is None else AsyncAnthropic(base_url=url, api_key=NO_KEY)


MESSAGES = Provider(
    name="anthropic",
    title="Messages",
    client="AsyncAnthropic",
    make=_make_client,
    package="anthropic",
    extra="anthropic",
    keys=("ANTHROPIC_API_KEY",),
    model="claude-haiku-4-5",
)
