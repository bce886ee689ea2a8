"""A call through McpTools does little beside what the SDK's client does."""

from __future__ import annotations

import anyio
from counting import functions_entered
from mcp_toolkit import FakeServer, make_tool

from lutumpy import ToolMetadata
from lutumpy.mcp import McpTools

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}


def test_a_call_enters_few_functions_of_this_package() -> None:
    metadata = ToolMetadata("c1", "read", '{"path": "some/file", "limit": 3}')

    async def calls(count: int) -> None:
        async with McpTools(FakeServer(make_tool("read", schema=SCHEMA)).server) as source:
            for _ in range(count):
                call = source.toolset.parse(metadata)
                assert call.complete(await call.call()).status == "ok"

    def total(count: int) -> int:
        return sum(functions_entered(lambda: anyio.run(calls, count)).values())

    total(1)  # what is loaded at first use
    assert (total(11) - total(1)) / 10 <= 55
