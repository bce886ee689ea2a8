"""Clients of SDKs whose requests go through a tape.

How a client is told is seen from its options. What only one provider's SDK has is known by that
provider's rendering, which may name it `recorded_client`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lutumpy.apis import by_name
from lutumpy.testing.cassettes.http import AsyncCassetteTransport, CassetteTransport
from lutumpy.testing.cassettes.secrets import SECRET_NAME
from lutumpy.testing.cassettes.tape import Tape

__all__ = ["NO_KEY", "http_client", "http_stack", "make_client", "parameters_of"]

C = TypeVar("C")

NO_KEY = "replayed-without-a-key"
"""The key of a client that only replays."""


def make_client(
    tape: Tape, make: Callable[..., C], args: tuple[Any, ...], options: Mapping[str, Any]
) -> C:
    """A client whose requests go through `tape`; see `Cassette.client`."""
    known = parameters_of(make)
    if "http_client" in known:
        _refuse(options, "http_client")
        kind = "AsyncClient" if _is_async(make) else "Client"
        keys = {"api_key": NO_KEY} if _needs_key(tape, known, options) else {}
        http = http_client(tape, http_stack(make), kind)
        return make(*args, **keys, **options, http_client=http)
    if "transport" in known and "mounts" in known:
        _refuse(options, "transport")
        stack = http_stack(make)
        kind_of = AsyncCassetteTransport if _is_async(make) else CassetteTransport
        return make(*args, **options, transport=kind_of(tape, stack))
    for rendering in by_name("rendering").values():
        maker = getattr(rendering, "recorded_client", None)
        wrapped = None if maker is None else maker(tape, make, args, options)
        if wrapped is not None:
            found: C = wrapped
            return found
    raise TypeError(
        f"{getattr(make, '__name__', make)!r} makes no client that can be recorded: it takes "
        "neither http_client= nor transport="
    )


def http_client(tape: Tape, stack: Any, kind: str) -> Any:
    """An HTTP client for an SDK, which follows redirects as the SDKs' own do.

    Args:
        tape: Where its requests go.
        stack: The module `httpx`, or `httpx2`.
        kind: `Client` or `AsyncClient`.
    """
    is_async = kind == "AsyncClient"
    transport = (AsyncCassetteTransport if is_async else CassetteTransport)(tape, stack)
    return getattr(stack, kind)(transport=transport, follow_redirects=True)


def http_stack(make: Any) -> Any:
    """The module of the HTTP library that a class's package uses: `httpx2`, or `httpx`."""
    for base in inspect.getmro(make):
        package = base.__module__.partition(".")[0]
        if package in ("httpx", "httpx2"):
            return sys.modules[package]
        around = base.__module__.rpartition(".")[0] or base.__module__
        inside = [
            module
            for name, module in sys.modules.items()
            if name == around or name.startswith(f"{around}.")
        ]
        for name in ("httpx2", "httpx"):
            for module in inside:
                stack = getattr(module, name, None)
                if inspect.ismodule(stack) and stack.__name__ == name:
                    return stack
    return importlib.import_module("httpx2")


def parameters_of(make: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of what makes a client; none where they can't be seen."""
    try:
        return inspect.signature(make).parameters
    except (TypeError, ValueError):
        return {}


def _is_async(make: Any) -> bool:
    bases = inspect.getmro(make) if inspect.isclass(make) else ()
    return any(base.__name__ in ("AsyncAPIClient", "AsyncClient") for base in bases)


def _needs_key(tape: Tape, known: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    has_key = any(SECRET_NAME.search(name) for name in options)
    return tape.mode == "replay" and "api_key" in known and not has_key


def _refuse(options: Mapping[str, Any], name: str) -> None:
    if options.get(name) is not None:
        raise TypeError(f"{name}= is the cassette's own: leave it out")
