"""MCP, in and out: the tools of a server for a model, and a toolset for any MCP client.

Opt-in: nothing else in lutumpy needs it. It stands on the reference SDK (`mcp`), and runs on
asyncio and trio.
"""

from __future__ import annotations

try:
    import mcp as _mcp  # noqa: F401  # so that the error names it
except ImportError as _error:
    raise ImportError(
        "lutumpy.mcp needs the SDK of the Model Context Protocol; "
        'install it with: python -m pip install ".[mcp]" (in a clone)'
    ) from _error

from lutumpy.mcp.client import AnswerHandler, McpTools, ProgressHandler
from lutumpy.mcp.errors import (
    McpConnectionError,
    McpConnectionLost,
    McpUnknownResult,
    SchemaChanged,
)
from lutumpy.mcp.materials import PromptText
from lutumpy.mcp.opening import ServerAddress, read_address
from lutumpy.mcp.questions import AskHandler, McpQuestion
from lutumpy.mcp.served_call import ServedCall
from lutumpy.mcp.served_clients import resource_updated
from lutumpy.mcp.server import mcp_server

__all__ = [
    "AnswerHandler",
    "AskHandler",
    "McpConnectionError",
    "McpConnectionLost",
    "McpQuestion",
    "McpTools",
    "McpUnknownResult",
    "ProgressHandler",
    "PromptText",
    "SchemaChanged",
    "ServedCall",
    "ServerAddress",
    "mcp_server",
    "read_address",
    "resource_updated",
]
