"""Settings of a declaration, each with its type. Both checkers accept it; nothing is run."""

from __future__ import annotations

from pydantic import BaseModel
from typing_extensions import assert_type

from lutumpy import ToolFn, ToolInput, tool_fn, tool_input


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
