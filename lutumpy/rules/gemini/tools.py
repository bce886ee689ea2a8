"""The rules about declared functions and the tools of the provider beside them."""

# Functions are in an entry of `tools`, all in one, and the provider's own tools each in an entry
# under its name: {"functionDeclarations": [...]}, {"googleSearch": {}}. A lone entry may be in
# place of the list [recorded].

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.rules.gemini.fields import field, key_of, listed_in, snake, spellings, word
from lutumpy.rules.gemini.limits import DECLARED_NAME, MAX_DECLARATIONS, MAX_NAME
from lutumpy.rules.gemini.schema import check_schema
from lutumpy.rules.gemini.wording import KIND
from lutumpy.rules.problem import Certainty, Problem, is_array, items, text

__all__ = [
    "DECLARATION_KEYS",
    "OWN_TOOLS",
    "check_tools",
    "declarations",
    "own_tools",
    "tool_entries",
]

OWN_TOOLS = (
    "codeExecution computerUse enterpriseWebSearch exaAiSearch googleMaps googleSearch "
    "googleSearchRetrieval parallelAiSearch retrieval urlContext fileSearch mcpServers "
    "urlContextMetadata"
).split()
"""The provider's own tools [description; google-genai 3.4]."""

_TOOL_KEYS = spellings(["functionDeclarations", *OWN_TOOLS])
DECLARATION_KEYS = spellings(
    "name description parameters parametersJsonSchema response responseJsonSchema behavior".split()
)
"""Every key of a declaration."""


def tool_entries(tools: Any) -> Sequence[Any]:
    """The entries of `tools`."""
    return [tools] if isinstance(tools, Mapping) else items(tools)


def declarations(tools: Any) -> list[Any]:
    """The declared functions of a request's `tools`."""
    return [
        declared
        for entry in tool_entries(tools)
        for declared in listed_in(entry, "functionDeclarations")
    ]


def own_tools(tools: Any) -> list[str]:
    """The names of the provider's own tools among them."""
    return [
        name
        for entry in tool_entries(tools)
        for name in OWN_TOOLS
        if field(entry, name) is not None
    ]


def check_tools(tools: Any) -> list[Problem]:
    """Problems of the request's `tools`."""
    if tools is None:
        return []
    if not is_array(tools) and not isinstance(tools, Mapping):
        return [_wrong("gemini.tools", "tools", "Tool", tools)]
    found: list[Problem] = []
    names: dict[str, int] = {}
    for index, entry in enumerate(tool_entries(tools)):
        found += _check_entry(f"tools[{index}]", entry, names)
    if sum(names.values()) > MAX_DECLARATIONS:
        message = (
            f"GenerateContentRequest.tools: at most {MAX_DECLARATIONS} function declarations can "
            "be provided"
        )
        found.append(Problem("gemini.too_many_tools", "tools", message, "some", kind=KIND))
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        message = f"Duplicate function declaration found: {repeated[0]}"
        found.append(
            Problem(
                "gemini.tool_names", "tools", message, "refused", kind=KIND, tools=tuple(repeated)
            )
        )
    return found


def _wrong(rule: str, where: str, kind: str, value: Any, **more: Any) -> Problem:
    message = (
        f"Invalid value at '{where}' "
        f"(type.googleapis.com/google.ai.generativelanguage.v1beta.{kind}), {value!r:.100}"
    )
    return Problem(rule, where, message, "refused", kind=KIND, **more)


def _unknown(rule: str, where: str, key: Any, **more: Any) -> Problem:
    message = (
        f"Invalid JSON payload received. Unknown name \"{key}\" at '{where}': Cannot find field."
    )
    return Problem(rule, where, message, "refused", kind=KIND, **more)


def _check_entry(where: str, entry: Any, names: dict[str, int]) -> list[Problem]:
    if not isinstance(entry, Mapping):
        return [_wrong("gemini.tools", where, "Tool", entry)]
    found = [_unknown("gemini.tools", where, key) for key in entry if key not in _TOOL_KEYS]
    declared = field(entry, "functionDeclarations")
    place = f"{where}.function_declarations"
    if declared is not None and not is_array(declared) and not isinstance(declared, Mapping):
        return [*found, _wrong("gemini.tools", place, "FunctionDeclaration", declared)]
    for index, declaration in enumerate(listed_in(entry, "functionDeclarations")):
        found += _check_declaration(f"{place}[{index}]", declaration, names)
    return found


def _check_declaration(where: str, declared: Any, names: dict[str, int]) -> list[Problem]:
    if not isinstance(declared, Mapping):
        return [_wrong("gemini.tools", where, "FunctionDeclaration", declared)]
    name = text(declared.get("name"))
    about = (name,) if name else ()
    found = [
        _unknown("gemini.tool_keys", where, key, tools=about)
        for key in declared
        if key not in DECLARATION_KEYS
    ]
    found += _check_name(where, declared.get("name"))
    if name is not None:
        names[name] = names.get(name, 0) + 1
    description = declared.get("description")
    if description is not None and not isinstance(description, str):
        message = f"Invalid value at '{where}.description' (TYPE_STRING), {description!r:.100}"
        found.append(
            Problem(
                "gemini.tools", f"{where}.description", message, "refused", kind=KIND, tools=about
            )
        )
    return found + _check_schemas(where, declared, name or "")


def _check_name(where: str, name: Any) -> list[Problem]:
    place = f"{where}.name"
    certainty: Certainty = "refused"
    if isinstance(name, str) and DECLARED_NAME.match(name):
        return []
    if name is not None and not isinstance(name, str):
        message = f"Invalid value at '{place}' (TYPE_STRING), {name!r:.100}"
    else:
        message = (
            f"GenerateContentRequest.{place}: Invalid function name. Must start with a letter or "
            "an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons "
            f"(:), or dashes (-), with a maximum length of {MAX_NAME}."
        )
    tools = (name,) if isinstance(name, str) and name else ()
    return [Problem("gemini.tool_name", place, message, certainty, kind=KIND, tools=tools)]


def _check_schemas(where: str, declared: Mapping[str, Any], name: str) -> list[Problem]:
    """One schema, in one of two dialects; none for a function without arguments."""
    about = (name,) if name else ()
    typed, untyped = declared.get("parameters"), field(declared, "parametersJsonSchema")
    if typed is not None and untyped is not None:
        message = (
            f"GenerateContentRequest.{where}: only one of parameters and parameters_json_schema "
            "can be set."
        )
        rule = "gemini.tool_schemas"
        return [Problem(rule, where, message, "refused", kind=KIND, tools=about)]
    key = "parameters" if typed is not None else key_of(declared, "parametersJsonSchema")
    schema = typed if typed is not None else untyped
    place = f"{where}.{snake(key)}"
    if schema is None:
        return []
    if not isinstance(schema, Mapping):
        return [_wrong("gemini.tool_schema", place, "Schema", schema, tools=about)]
    found = check_schema(place, schema, about) if typed is not None else []
    kind = schema.get("type")
    is_named = isinstance(kind, str) and word(kind) not in ("OBJECT", "TYPE_UNSPECIFIED")
    if is_named and not found:
        message = (
            f"Unable to submit request because `{name}` functionDeclaration parameters schema "
            "should be of type OBJECT."
        )
        found.append(
            Problem("gemini.tool_schema", place, message, "refused", kind=KIND, tools=about)
        )
    return found
