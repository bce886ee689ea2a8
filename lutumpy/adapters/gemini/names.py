"""The names of functions in this API's requests."""

from __future__ import annotations

from lutumpy.core.tool_names import ToolNames
from lutumpy.rules.gemini.limits import DECLARED_NAME, MAX_NAME

__all__ = ["TOOL_NAMES"]

TOOL_NAMES = ToolNames(DECLARED_NAME, MAX_NAME)
