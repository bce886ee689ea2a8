"""What a declaration of a function takes beside what the adapter writes.

Sources: `FunctionDeclaration` of the discovery document and of google-genai (3.4): `behavior`,
`response` and `responseJsonSchema` are left to programs. Functions of `computerUse` are declared by
the provider, and a program runs them [google-genai 3.4, `ComputerUse`].
"""

from __future__ import annotations

from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = ["COMPUTER_USE", "TOOL_SETTINGS"]

COMPUTER_USE = "computerUse"
"""The one tool of the provider whose calls are calls of functions, which the program runs."""

_SCHEMA = "it comes from the declaration"


def _check_type(kind: str, name: str) -> str | None:
    if kind == COMPUTER_USE:
        return None
    return (
        f"a function has no type but {COMPUTER_USE!r}; a tool that the provider runs, as {kind!r}, "
        "is passed beside the tools, as extra={'tools': [...]}"
    )


TOOL_SETTINGS = ToolSettingRules(
    own={
        "name": "a tool is called by the name of its declaration, name=",
        "description": "it is told by description=, and for one turn by describe=",
        "parameters": _SCHEMA,
        "parametersJsonSchema": _SCHEMA,
        "parameters_json_schema": _SCHEMA,
        "strict": "the API has no such flag; its mode VALIDATED holds calls to their schemas",
    },
    check_type=_check_type,
)
