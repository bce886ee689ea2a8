"""HTTP headers that one request needs beside those of its adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

__all__ = ["NO_HEADERS", "Headers", "join_headers"]

Headers: TypeAlias = Mapping[str, str]

NO_HEADERS: Headers = {}


def join_headers(own: Headers, further: Headers) -> dict[str, str]:
    """Both, those of one name as one list: a user's `anthropic-beta` and that of a request."""
    joined = dict(own)
    names = {name.lower(): name for name in own}
    for name, value in further.items():
        known = names.get(name.lower())
        if known is None:
            joined[name] = value
            continue
        listed = [part.strip() for part in own[known].split(",")]
        listed += [part for part in value.split(",") if part not in listed]
        joined[known] = ",".join(listed)
    return joined
