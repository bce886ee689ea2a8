"""What Messages takes about one tool beside its declaration, and the types that a tool may have.

Sources: the types of Anthropic's SDK (2.12), its API description and documentation.
"""

from __future__ import annotations

import re

from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = ["TOOL_SETTINGS", "client_tool_name"]

# Tools that the vendor has typed and the client runs: their calls are ordinary `tool_use` blocks.
# Each family has one name, but for the text editor, whose newer versions have another one [SDK].
_CLIENT_TYPE = re.compile(r"(bash|computer|memory|text_editor)_(20\d{6})\Z")
_NEW_EDITOR_NAME = "20250429"

_SERVER_TYPE = re.compile(
    r"(advisor|code_execution|tool_search_tool_\w+?|web_fetch|web_search)(_20\d{6})?\Z"
)
_TOOLSET_TYPE = re.compile(r"\w+_toolset(_20\d{6})?\Z")
_BESIDE = "pass it beside the tools, as extra={'tools': [...]}"


def client_tool_name(kind: str) -> str | None:
    """The name that a client-run tool of this type must have; `None` for other types."""
    found = _CLIENT_TYPE.match(kind)
    if found is None:
        return None
    family, date = found.groups()
    if family != "text_editor":
        return family
    return "str_replace_based_edit_tool" if date >= _NEW_EDITOR_NAME else "str_replace_editor"


def _check_type(kind: str, name: str) -> str | None:
    if kind == "custom":
        return "the type 'custom' is what a declared tool is; leave 'type' out"
    if _SERVER_TYPE.match(kind):
        return f"a tool of the type {kind!r} is run by the provider; {_BESIDE}"
    if _TOOLSET_TYPE.match(kind):
        return f"{kind!r} is a set of tools and not one tool; {_BESIDE}"
    wanted = client_tool_name(kind)
    if wanted is not None and wanted != name:
        return f"a tool of the type {kind!r} is named {wanted!r}; declare it with name={wanted!r}"
    return None


TOOL_SETTINGS = ToolSettingRules(
    own={
        "name": "a tool is called by the name of its declaration, name=",
        "description": "it is told by description=, and for one turn by describe=",
        "input_schema": "it comes from the declaration",
        "strict": "it is asked for by strict=",
    },
    check_type=_check_type,
    examples="input_examples",
)
