"""Names that servers use and providers don't take (rule MCP3)."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_toolkit import FakeServer, make_tool, run_call

from lutumpy import DeclarationError
from lutumpy.mcp import McpTools

TAKEN = re.compile(r"[a-zA-Z0-9_-]{1,64}")


async def names_of(*originals: str, prefix: str = "") -> dict[str, str]:
    """The wire names by original name, as a list of tools with these names gives them."""
    server = FakeServer(*[make_tool(name) for name in originals])
    async with McpTools(server.server, prefix=prefix) as source:
        return {tool.original_name: tool.name for tool in source.tools}


async def test_a_name_that_providers_take_is_the_name_of_the_tool_MCP3() -> None:
    assert await names_of("read_file", "get-sum") == {
        "read_file": "read_file",
        "get-sum": "get-sum",
    }


async def test_a_prefix_alone_changes_nothing_else_MCP3() -> None:
    assert await names_of("read", prefix="fs_") == {"read": "fs_read"}


async def test_dots_and_128_characters_get_8_digits_of_the_original_name_MCP3() -> None:
    long = "n" * 128
    names = await names_of("tool.0", long, prefix="x_")
    assert re.fullmatch(r"x_tool_0_[0-9a-f]{8}", names["tool.0"])
    assert re.fullmatch(r"x_n+_[0-9a-f]{8}", names[long])
    assert len(names[long]) == 64


@pytest.mark.parametrize("order", list(itertools.permutations(["tool.0", "tool_0", "tool/0"])))
async def test_colliding_names_are_the_same_in_every_order_MCP3(order: tuple[str, ...]) -> None:
    names = await names_of(*order)
    assert names == await names_of("tool_0", "tool.0", "tool/0")
    assert names["tool_0"] == "tool_0"
    assert len(set(names.values())) == 3


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_name_made_to_collide_takes_nobodys_place_MCP3(reverse: bool) -> None:
    cleaned = (await names_of("tool.0"))["tool.0"]
    listed = [make_tool("tool.0"), make_tool(cleaned)]
    server = FakeServer(*(reversed(listed) if reverse else listed))
    async with McpTools(server.server) as source:
        assert [(tool.name, tool.original_name) for tool in source.tools] == [(cleaned, cleaned)]
        assert source.skipped == {"tool.0": f"another tool has the name {cleaned!r}"}


@given(st.lists(st.text(min_size=0, max_size=130), unique=True, max_size=5), st.randoms())
def test_any_names_are_taken_by_providers_whatever_their_order_MCP3(
    names: list[str], random: object
) -> None:
    from lutumpy.mcp.names import wire_name  # the rule itself, without a server for each example

    for name in names:
        assert TAKEN.fullmatch(wire_name(name, "p_"))
    assert len({wire_name(name) for name in names}) == len(names)


async def test_a_renamed_tool_is_called_by_its_own_name() -> None:
    server = FakeServer(make_tool("tool.0"))
    async with McpTools(server.server, prefix="x_") as source:
        await run_call(source, source.tools[0].name)
    assert server.calls == [("tool.0", {})]


async def test_a_tool_that_is_listed_twice_is_not_offered() -> None:
    server = FakeServer(make_tool("one"), make_tool("two"), make_tool("one", "again"))
    async with McpTools(server.server) as source:
        assert [tool.name for tool in source.tools] == ["two"]
        assert source.skipped == {"one": "the server lists it twice"}


@pytest.mark.parametrize("prefix", ["a.b", "ä", "x" * 33])
def test_a_prefix_that_no_name_can_have_is_refused(prefix: str) -> None:
    with pytest.raises(DeclarationError, match="can't begin a tool's name"):
        McpTools("https://example.com/mcp", prefix=prefix)
