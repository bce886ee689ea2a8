"""Settings of a declaration, each with its type. Both checkers accept it; nothing is run."""

from __future__ import annotations

from pydantic import BaseModel
from typing_extensions import assert_type

from lutumpy import ToolFn, ToolInput, ToolOptions, Toolset, tool, tool_fn, tool_input
from lutumpy.tools import ProviderSettings


class Hits(BaseModel):
    count: int


def plain(query: str, limit: int = 3) -> Hits:
    """Search."""
    raise NotImplementedError


async def waiting(query: str) -> Hits:
    """Search."""
    raise NotImplementedError


bare = tool_fn(plain)
named = tool_fn(plain, name="find", description="Find.", timeout=2, max_retries=0)
slow = tool_fn(waiting, timeout=60.0, idempotent=True, effect="read", strict=None)
assert_type(bare("cats", limit=1), Hits)
assert_type(named("cats"), Hits)


@tool_fn(effect="idempotent", strict=True)
def decorated(query: str) -> Hits:
    """Search."""
    raise NotImplementedError


assert_type(decorated("cats"), Hits)


def name_of(declared: ToolFn[..., Hits]) -> str:
    return declared.name


name_of(slow)


@tool_input(name="find", output=Hits, timeout=3.5, max_retries=1, strict=False)
class Find(BaseModel):
    """Find."""

    query: str


@tool_input
class Look(ToolInput[None]):
    """Look."""

    at: str


assert_type(Find(query="cats").query, str)
assert_type(Look(at="cats").at, str)
tool_input(Find, output=Hits, description=None, idempotent=False, effect="once")


settings: ProviderSettings = {"anthropic_messages": {"defer_loading": True, "cache_control": None}}


@tool_fn(
    provider={
        "anthropic_messages": {
            "input_examples": [{"query": "cats"}],
            "allowed_callers": ["direct", "code_execution_20260120"],
        },
        "openai_responses": {"output_schema": {"type": "object", "properties": {}}},
    },
    annotations={"title": "Search", "readOnlyHint": True},
)
def told(query: str) -> Hits:
    """Search."""
    raise NotImplementedError


@tool_input(name="memory", output=str, provider={"anthropic_messages": {"type": "memory_20250818"}})
class Memory(ToolInput[str]):
    """Remember."""

    command: str


class Told(Toolset):
    told = tool(told, provider=settings)
    memory = tool(Memory, off=True, provider={"openai_responses": {"defer_loading": True}})
    find = tool(Find, output=Hits, provider=None)


assert_type(told("cats"), Hits)
Told.offer(provider={Told.told: settings, Told.memory: {"openai_chat": {"x": 1.5}}})
ToolOptions(provider=settings, annotations={"readOnlyHint": True})
