"""Which API a path belongs to, and what is asked for there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lutumpy.testing.script import Api

PREFIX = r"(?:/v1|/openai/v1|/openai)?"
"""What base URLs end with."""

OPERATIONS: tuple[tuple[Api | None, str, Mapping[str, str]], ...] = (
    ("openai_chat", "/chat/completions", {"POST": "create"}),
    ("openai_chat", "/openai/deployments/{deployment}/chat/completions", {"POST": "create"}),
    ("openai_responses", "/responses", {"POST": "create"}),
    ("openai_responses", "/responses/input_tokens", {"POST": "count"}),
    ("openai_responses", "/responses/{response}", {"GET": "response", "DELETE": "delete_response"}),
    ("openai_responses", "/responses/{response}/cancel", {"POST": "cancel_response"}),
    ("openai_responses", "/responses/{response}/input_items", {"GET": "input_items"}),
    ("openai_responses", "/conversations", {"POST": "create_conversation"}),
    (
        "openai_responses",
        "/conversations/{conversation}",
        {"GET": "conversation", "POST": "update_conversation", "DELETE": "delete_conversation"},
    ),
    (
        "openai_responses",
        "/conversations/{conversation}/items",
        {"GET": "items", "POST": "create_items"},
    ),
    (
        "openai_responses",
        "/conversations/{conversation}/items/{item}",
        {"GET": "item", "DELETE": "delete_item"},
    ),
    ("anthropic_messages", "/messages", {"POST": "create"}),
    ("anthropic_messages", "/messages/count_tokens", {"POST": "count"}),
    (None, "/models", {"GET": "models"}),
    (None, "/models/{model:path}", {"GET": "model"}),
)
"""API, path, and what each method means there. OpenAI and Anthropic have their models at the same path."""

FAMILIES: tuple[tuple[str, Api], ...] = (
    ("/messages", "anthropic_messages"),
    ("/responses", "openai_responses"),
    ("/conversations", "openai_responses"),
    ("/chat", "openai_chat"),
)
"""How the paths of each API begin, for those that the server doesn't know."""

BODIES = frozenset({"create", "count", "update_conversation", "create_items"})
"""Operations that can't come without a body."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request leads.

    Attributes:
        api: The API whose path it is.
        operation: What is asked for; empty if the path is unknown, or known without this method.
        ids: What the path names.
        methods: The methods that a known path takes.
    """

    api: Api
    operation: str = ""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    methods: tuple[str, ...] = ()

    @property
    def needs_body(self) -> bool:
        return self.operation in BODIES


def _pattern(template: str) -> re.Pattern[str]:
    named = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
    named = re.sub(r"\{(\w+):path\}", r"(?P<\1>.+)", named)
    return re.compile(("" if template.startswith("/openai") else PREFIX) + named)


_COMPILED: list[tuple[Api | None, re.Pattern[str], Mapping[str, str]]] = [
    (api, _pattern(template), methods) for api, template, methods in OPERATIONS
]
_PREFIX = re.compile(PREFIX)


def locate(method: str, path: str, headers: Mapping[str, str]) -> Target:
    """Where a request leads. Paths of both vendors are told apart by the header that Anthropic's API requires."""
    shared: Api = "anthropic_messages" if "anthropic-version" in headers else "openai_chat"
    for api, pattern, methods in _COMPILED:
        match = pattern.fullmatch(path)
        if match is not None:
            return Target(api or shared, methods.get(method, ""), match.groupdict(), tuple(methods))
    bare = _PREFIX.sub("", path, count=1)
    for start, family in FAMILIES:
        if bare == start or bare.startswith(f"{start}/"):
            return Target(family)
    return Target(shared)
