"""What can go wrong with a server of MCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.errors import LutumpyError

__all__ = ["McpConnectionError", "McpConnectionLost", "McpUnknownResult", "SchemaChanged"]


class McpConnectionError(LutumpyError):
    """An MCP server can't be reached, or doesn't list its tools; the cause is the `__cause__`.

    What was listed before is still offered.
    """


class McpConnectionLost(McpConnectionError):
    """The connection to an MCP server ended while a call was running: what the call did is unknown.

    The next call is told that the connection is closed, until `refresh()` makes a new one.
    """


class McpUnknownResult(LutumpyError):
    """A server answered a call in a form that nobody here knows: what the call did is unknown.

    Attributes:
        server: The name of the server's toolset.
        tool: The tool, by its name there.
        result: The answer as JSON values. A task that was begun has its id in it.
    """

    def __init__(self, server: str, tool: str, result: Mapping[str, Any]) -> None:
        self.server = server
        self.tool = tool
        self.result: Mapping[str, Any] = result
        super().__init__(
            f"{server} answered a call of {tool} in a form that isn't known, with "
            f"{', '.join(sorted(map(str, result))) or 'nothing'}; what the call did is unknown"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.server, self.tool, dict(self.result))


class SchemaChanged(LutumpyError):
    """A server offers other tools than were locked. None of them was offered, the old ones stay.

    Attributes:
        server: The name of the server's toolset.
        tools: The names of the tools that are new, gone or changed.
        changes: What changed, a text for each place, with the words that differ.
    """

    def __init__(self, server: str, tools: Sequence[str], changes: Sequence[str]) -> None:
        self.server = server
        self.tools: tuple[str, ...] = tuple(tools)
        self.changes: tuple[str, ...] = tuple(changes)
        lines = "".join([f"\n- {change}" for change in self.changes])
        super().__init__(
            f"the tools of {server} are not as they were locked; nothing of it is offered, what "
            f"was offered before stays:{lines}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.server, self.tools, self.changes)
