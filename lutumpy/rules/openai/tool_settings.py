"""What OpenAI's APIs take about one tool beside its declaration. Source: the types of its SDK."""

from __future__ import annotations

from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = ["CHAT_TOOL_SETTINGS", "RESPONSES_TOOL_SETTINGS"]

# Tools that OpenAI has typed and the client runs: their calls have no name, so the declaration has
# the one that the kind of the call says: `shell_call` is a call of `shell` [SDK].
_CLIENT_TOOLS = {
    "shell": "shell",
    "local_shell": "local_shell",
    "apply_patch": "apply_patch",
    "computer": "computer",
    "computer_use_preview": "computer",
}

_NAME = "a tool is called by the name of its declaration, name="
_DESCRIPTION = "it is told by description=, and for one turn by describe="
_PARAMETERS = "they come from the declaration"
_STRICT = "it is asked for by strict="


def _check_type(kind: str, name: str) -> str | None:
    if kind == "function":
        return "the type 'function' is what a declared tool is; leave 'type' out"
    # What the provider runs isn't a call for a tool here.
    return (
        f"calls of a tool of the type {kind!r} are not calls of a function, so {name!r} can't take "
        "them; pass it beside the tools, as extra={'tools': [...]}"
    )


def _check_responses_type(kind: str, name: str) -> str | None:
    wanted = _CLIENT_TOOLS.get(kind)
    if wanted is None:
        return _check_type(kind, name)
    if name != wanted:
        return (
            f"a tool of the type {kind!r} is called without a name; declare it with "
            f"name={wanted!r}, or pass it beside the tools, as extra={{'tools': [...]}}"
        )
    return None


RESPONSES_TOOL_SETTINGS = ToolSettingRules(
    own={
        "name": _NAME,
        "description": _DESCRIPTION,
        "parameters": _PARAMETERS,
        "strict": _STRICT,
    },
    check_type=_check_responses_type,
    nameless=True,
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
