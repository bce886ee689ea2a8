"""The client of google-genai, for recorded traffic."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lutumpy.testing.cassettes.clients import NO_KEY, http_client, http_stack, parameters_of
from lutumpy.testing.cassettes.tape import Tape

__all__ = ["recorded_client"]


def recorded_client(
    tape: Tape, make: Any, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """A `genai.Client` whose requests go through a cassette; `None` where `make` is another one."""
    if not inspect.isclass(make) or "http_options" not in parameters_of(make):
        return None
    http_options = options.get("http_options") or {}
    if not isinstance(http_options, Mapping):
        http_options = http_options.model_dump(exclude_none=True)
    if any(http_options.get(name) is not None for name in ("httpx_client", "httpx_async_client")):
        raise TypeError(
            "httpx_client and httpx_async_client are the cassette's own: leave them out"
        )
    stack = http_stack(make)
    http = {
        "httpx_client": http_client(tape, stack, "Client"),
        "httpx_async_client": http_client(tape, stack, "AsyncClient"),
    }
    keys: dict[str, Any] = {}
    if tape.mode == "replay" and not any(map(options.get, ("api_key", "vertexai", "credentials"))):
        keys = {"api_key": NO_KEY}
    return make(*args, **{**keys, **options, "http_options": {**http_options, **http}})
