"""What OpenAI's APIs take about one tool beside its declaration. Source: the types of its SDK."""

from __future__ import annotations

from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = ["CHAT_TOOL_SETTINGS", "RESPONSES_TOOL_SETTINGS"]

_NAME = "a tool is called by the name of its declaration, name="
_DESCRIPTION = "it is told by description=, and for one turn by describe="
_PARAMETERS = "they come from the declaration"
_STRICT = "it is asked for by strict="


def _check_type(kind: str, name: str) -> str | None:
    if kind == "function":
        return "the type 'function' is what a declared tool is; leave 'type' out"
    # Shell, patches and the computer are called by items of their own, with another input and
    # another output than a function has.
    return (
        f"calls of a tool of the type {kind!r} are not calls of a function, so {name!r} can't take "
        "them; pass it beside the tools, as extra={'tools': [...]}"
    )


RESPONSES_TOOL_SETTINGS = ToolSettingRules(
    own={
        "name": _NAME,
        "description": _DESCRIPTION,
        "parameters": _PARAMETERS,
        "strict": _STRICT,
    },
    check_type=_check_type,
)

# OpenAI documents no further keys here. Other hosts have some, beside `function`.
CHAT_TOOL_SETTINGS = ToolSettingRules(
    own={
        "function": "the adapter writes it from the declaration",
        "name": _NAME,
        "description": _DESCRIPTION,
        "parameters": _PARAMETERS,
        "strict": _STRICT,
    },
    check_type=_check_type,
)
