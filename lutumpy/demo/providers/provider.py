"""One choice of `lutumpy demo --provider`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["NO_KEY", "Provider"]

NO_KEY = "no-key-needed"
"""The key of a client for the test server, which asks for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Whom the demo can ask, with what belongs to no adapter: which SDK makes a client, and a cheap
    model.

    Attributes:
        name: Its name on the command line.
        title: How the report calls the API.
        client: What the report calls the client of the SDK.
        make: Makes one for the address of a test server, or for the real API where that is `None`;
            imports the SDK. It may leave the real one to the adapter, and give `None`.
        package: What is to be installed for it.
        extra: The extra of this library that brings it.
        keys: Environment variables of which one must be set for the real API; none where the SDK
            finds credentials in more places than its environment.
        model: Whom to ask.
    """

    name: str
    title: str
    client: str
    make: Callable[[str | None], Any]
    package: str
    extra: str
    keys: tuple[str, ...]
    model: str
