"""Whom the demo can ask: a provider for each API whose row in the table names one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from lutumpy.apis import Api, by_name, serving
from lutumpy.demo.providers.provider import Provider
from lutumpy.testing import Reply

__all__ = ["DemoError", "Provider", "connect", "providers"]


class DemoError(Exception):
    """The demo can't run as it was asked to; nothing was sent."""


def providers() -> Mapping[str, Api]:
    """The names on the command line, with the API of each."""
    found: dict[str, Api] = {}
    for api, provider in by_name("demo").items():
        found.setdefault(provider.name, api)  # an added API takes no name of a built-in one's
    return found


async def connect(
    stack: AsyncExitStack, api: Api, live: bool, model: str | None, script: Sequence[Reply]
) -> tuple[Provider, Any, str]:
    """Whom the demo asks, the adapter with a client of its SDK, and where that sends its requests.

    Args:
        stack: Closes the client and the server at its end.
        api: Which API of the table.
        live: Ask the real one.
        model: Whom to ask; the provider's usual one when left out.
        script: What a test server answers.

    Raises:
        DemoError: a key, the SDK, or the `testing` extra is missing.
    """
    provider: Provider = serving(api, "demo")
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
    llm = serving(api, "adapter")(model or provider.model, client=client)
    if client is None:
        return provider, await stack.enter_async_context(llm), where
    await _close_with(stack, client)
    return provider, llm, where


async def _close_with(stack: AsyncExitStack, client: Any) -> None:
    """Close a client at the end, in each of the ways that SDKs have."""
    if hasattr(client, "__aenter__"):
        await stack.enter_async_context(client)
        return
    stack.callback(client.close)
    if hasattr(client, "aio"):  # a client in two halves
        stack.push_async_callback(client.aio.aclose)
