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


def messages_of(api: str, body: Mapping[str, Any]) -> Any:
    """The list of messages in a request."""
    return body[serving(api, "rules").SHAPE.messages_key]
