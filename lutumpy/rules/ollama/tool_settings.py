"""What a declaration of a tool takes beside what the adapter writes: nothing is known."""

from __future__ import annotations

from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = ["TOOL_SETTINGS"]


def _check_type(kind: str, name: str) -> str | None:
    return "the API has functions only"


TOOL_SETTINGS = ToolSettingRules(
    own={
        "name": "a tool is called by the name of its declaration, name=",
        "description": "it is told by description=, and for one turn by describe=",
        "parameters": "it comes from the declaration",
        "function": "it comes from the declaration",
        "strict": "the API has no strict tools",
    },
    check_type=_check_type,
)
