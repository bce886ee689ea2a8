"""What Converse takes about one tool beside its declaration.

Source: the service model of `bedrock-runtime`, in which a tool has a name, a description, a schema
and `strict`, and nothing else.
"""

from __future__ import annotations

from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = ["TOOL_SETTINGS"]


def _check_type(kind: str, name: str) -> str | None:
    return (
        f"tools have no type here ({kind!r}); pass a tool of the provider's own beside the tools, "
        "as extra={'toolConfig': {'tools': [...]}}"
    )


TOOL_SETTINGS = ToolSettingRules(
    own={
        "name": "a tool is called by the name of its declaration, name=",
        "description": "it is told by description=, and for one turn by describe=",
        "inputSchema": "it comes from the declaration",
        "strict": "it is asked for by strict=",
    },
    check_type=_check_type,
)
