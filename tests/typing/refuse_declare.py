"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from __future__ import annotations

from pydantic import BaseModel

from lutumpy import tool, tool_fn, tool_input


def plain(query: str) -> str:
    """Search."""
    raise NotImplementedError


class Find(BaseModel):
    query: str


tool_fn(plain, timeot=3.0)  # refused
tool_fn(plain, timeout="3")  # refused
tool_fn(plain, max_retries=1.5)  # refused
tool_fn(plain, effect="twice")  # refused
tool_fn(plain, idempotent=None)  # refused
tool_fn(plain, strict="yes")  # refused
tool_fn(plain, description=b"Search.")  # refused
tool_fn(plain, output=str)  # refused
tool_fn(effect="twice")  # refused
tool_fn(nam="find")  # refused
tool_input(Find, output=None, timeot=3.0)  # refused
tool_input(Find, output=None, timeout="3")  # refused
tool_input(Find, output=None, effect="twice")  # refused
tool_input(name=3, output=None)  # refused
tool_fn(3)  # refused
tool_input(plain)  # refused
tool_fn(plain, provider={"openai_chat": 3})  # refused
tool_fn(plain, provider="openai_chat")  # refused
tool_fn(plain, provider={"openai_chat": {"x": object()}})  # refused
tool_fn(plain, annotations={"x": object()})  # refused
tool_input(Find, output=None, provider={"openai_chat": {"x": b""}})  # refused
tool(tool_fn(plain), provider={"openai_chat": {"x": b""}})  # refused
tool(tool_fn(plain), annotations={"x": 1})  # refused
