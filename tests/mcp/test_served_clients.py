"""What a server of ours remembers of its clients: log levels and subscriptions."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import ResourceUpdatedNotification

from lutumpy import NoTools, Skip, Toolset, tool, tool_fn
from lutumpy.mcp import ServedCall, mcp_server, resource_updated
from lutumpy.mcp.served_clients import _SERVED


@tool_fn
async def work(*, call: Skip[ServedCall]) -> str:
    """Work, and say so."""
    for level in ("debug", "info", "error"):
        await call.log(level, f"as {level}")
    return "done"


# Newer clients listen in another way.
OLDER = pytest.mark.filterwarnings("ignore:resources/")


class Works(Toolset):
    work = tool(work)


def make(name: str = "works") -> Any:
    return mcp_server(
        Works,
        name=name,
        context=lambda request: {"call": ServedCall(request)},
        resources={"notes://one": "milk", "notes://{number}/text": lambda number: number},
    )


async def heard_after(level: Any) -> list[Any]:
    heard: list[Any] = []

    async def log(params: Any) -> None:
        heard.append(params.data)

    async with Client(make(), mode="legacy", logging_callback=log) as client:
        if level is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await client.set_logging_level(level)
        await client.call_tool("work")
        await anyio.wait_all_tasks_blocked()
    return heard


async def test_a_client_is_told_what_is_grave_enough_for_it(backend: str) -> None:
    assert await heard_after(None) == ["as debug", "as info", "as error"]
    assert await heard_after("info") == ["as info", "as error"]
    assert await heard_after("emergency") == []


@OLDER
async def test_who_subscribed_is_told_and_nobody_else(backend: str) -> None:
    server, other = make(), make("other")
    heard: dict[str, list[str]] = {"ann": [], "bob": [], "eve": []}

    def listener(name: str) -> Any:
        async def hear(message: Any) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                heard[name].append(str(message.params.uri))

        return hear

    async with (
        Client(server, mode="legacy", message_handler=listener("ann")) as ann,
        Client(server, mode="legacy", message_handler=listener("bob")) as bob,
        Client(other, mode="legacy", message_handler=listener("eve")) as eve,
    ):
        assert ann.server_capabilities.resources.subscribe  # type: ignore[union-attr]
        for client in (ann, eve):
            await client.subscribe_resource("notes://one")
        await bob.subscribe_resource("notes://7/text")
        with pytest.raises(MCPError, match="There is no resource"):
            await bob.subscribe_resource("notes://none")
        await resource_updated(server, "notes://one")
        await resource_updated(server, "notes://7/text")
        await resource_updated(server, "notes://8/text")
        await ann.unsubscribe_resource("notes://one")
        await resource_updated(server, "notes://one")
        await anyio.wait_all_tasks_blocked()
    assert heard == {"ann": ["notes://one"], "bob": ["notes://7/text"], "eve": []}
    await resource_updated(other, "notes://one")  # its client has gone


@pytest.mark.slow
@OLDER
async def test_a_client_that_has_gone_is_forgotten(backend: str) -> None:
    server = make()
    async with Client(server, mode="legacy") as client:
        await client.subscribe_resource("notes://one")
        assert len(_SERVED[server].present) == 1
    del client
    gc.collect()
    assert len(_SERVED[server].present) == 0


async def test_only_a_server_with_resources_has_somebody_to_tell() -> None:
    servers: list[Any] = [mcp_server(NoTools), object()]
    for server in servers:
        with pytest.raises(ValueError, match="resource_updated takes a server of mcp_server"):
            await resource_updated(server, "notes://one")
