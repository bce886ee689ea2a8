"""Every API of the table, for tests of what holds for all of them.

A provider that gets a row in the table is held by these tests without a line of them changing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lutumpy.apis import api_names, serving
from lutumpy.doctor import Problem

APIS = api_names()
ADAPTERS: dict[str, Any] = {name: serving(name, "adapter") for name in APIS}
CHECKS: Mapping[str, Callable[[Mapping[str, Any]], list[Problem]]] = {
    name: serving(name, "rules").check_request for name in APIS
}
"""What refuses a request, as the API does."""


FORCES: Mapping[str, bool] = {
    name: getattr(adapter("m"), "takes_forced_choice", lambda extra: True)({})
    for name, adapter in ADAPTERS.items()
}
"""Whether a request can require a tool call; where it can't, a requirement is refused."""


def tools_of(api: str, body: Mapping[str, Any]) -> list[Any]:
    """The tools in a request, one by one, as the rules of its API read them."""
    rules = serving(api, "rules")
    listed = getattr(rules, "tools_of", lambda body: body.get("tools"))(body)
    return [] if listed is None else list(listed)


def tool_names(api: str, body: Mapping[str, Any]) -> list[str]:
    """The names of the tools in a request."""
    return [serving(api, "rules").read_tool(tool).name for tool in tools_of(api, body)]


def choice_of(api: str, body: Mapping[str, Any]) -> str | None:
    """The choice of tools in a request: a tool's name, `required`, or `None` where it says nothing
    of it.
    """
    if api == "bedrock_converse":
        found = body.get("toolConfig", {}).get("toolChoice", {})
        if "tool" in found:
            return str(found["tool"]["name"])
        return "required" if "any" in found else None
    if api == "gemini_generate_content":
        config = body.get("toolConfig", {}).get("functionCallingConfig", {})
        (name,) = config.get("allowedFunctionNames", ["required"])
        return name if config.get("mode") == "ANY" else None
    found = body.get("tool_choice")
    if isinstance(found, dict):
        found = found.get("name") or found.get("function", {}).get("name") or found["type"]
    return "required" if found == "any" else found


def messages_of(api: str, body: Mapping[str, Any]) -> Any:
    """The list of messages in a request."""
    return body[serving(api, "rules").SHAPE.messages_key]
