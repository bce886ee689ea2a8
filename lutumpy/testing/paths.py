"""Which API a path belongs to, and what is asked for there."""

# Every API at the server says which paths are its own. Two may share one, as OpenAI and Anthropic
# have their models at the same path. Then the headers decide, and without a sign in them the API
# that comes first in the table.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from lutumpy.testing.api_server import ApiServer

__all__ = ["Target", "locate", "split_host"]

PREFIX = r"(?:/v1|/openai/v1|/openai)?"
"""What base URLs end with."""

_PREFIX = re.compile(PREFIX)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request leads.

    Attributes:
        server: The API whose path it is.
        operation: What is asked for; empty if the path is unknown, or known without this method.
        ids: What the path names.
        methods: The methods that a known path takes.
        streams: Whether a model's answer there is a stream; `None` where the body says it.
        way: By which way in the API is asked.
    """

    server: ApiServer
    operation: str = ""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    methods: tuple[str, ...] = ()
    streams: bool | None = None
    way: str = ""

    @property
    def needs_body(self) -> bool:
        return self.operation in self.server.needs_body


def split_host(path: str, hosts: Iterable[str]) -> tuple[str, str]:
    """The host that a path is for, and the path there; the host is empty for a vendor's own."""
    for host in hosts:
        start = f"/at/{host}"
        if host and path.startswith(f"{start}/"):
            return host, path[len(start) :]
    return "", path


def locate(
    method: str, path: str, headers: Mapping[str, str], servers: Iterable[ApiServer]
) -> Target:
    """Where a request leads; a path that nobody knows belongs to the API that it begins like, or to
    the first.
    """
    # Sorting keeps the order of the table among those that the headers say nothing of.
    ordered = sorted(servers, key=lambda server: not server.claims(headers))
    found = [
        target for server in ordered if (target := _find_route(server, method, path)) is not None
    ]
    bare = _PREFIX.sub("", path, count=1)
    if ordered[0].claims(headers):
        # What another API has beside its own paths isn't asked of it by these headers.
        found = [
            target
            for target in found
            if target.server.claims(headers)
            or _begins_like(target.server, bare)
            or _begins_like(target.server, path)
        ]
    if found:
        # Of two APIs with one path, one may not take the method.
        return next((target for target in found if target.operation), found[0])
    for server in ordered:
        if _begins_like(server, bare):
            return Target(server)
    return Target(ordered[0])


def _begins_like(server: ApiServer, bare: str) -> bool:
    """Whether a path begins like those of an API."""
    return any(bare == start or bare.startswith(f"{start}/") for start in server.path_starts)


def _find_route(server: ApiServer, method: str, path: str) -> Target | None:
    for route in server.routes:
        match = _pattern_of(route.path, route.is_whole).fullmatch(path)
        if match is not None:
            operation = route.methods.get(method, "")
            methods = tuple(route.methods)
            ids = match.groupdict()
            return Target(server, operation, ids, methods, route.streams, route.way)
    return None


@cache
def _pattern_of(path: str, is_whole: bool) -> re.Pattern[str]:
    named = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
    named = re.sub(r"\{(\w+):path\}", r"(?P<\1>.+)", named)
    return re.compile(named if is_whole else PREFIX + named)
