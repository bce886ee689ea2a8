"""A real model on this machine, no key and no network needed: llama.cpp's own server, on the
loopback.

Needs the `local` extra. `import lutumpy.local` works without it; what needs it says so.
"""

from __future__ import annotations

from lutumpy.errors import FetchError, LocalServerError
from lutumpy.local.model_file import SMOLLM2, PackagedModel, fetch
from lutumpy.local.server import LocalServer, serve

__all__ = [
    "SMOLLM2",
    "FetchError",
    "LocalServer",
    "LocalServerError",
    "PackagedModel",
    "fetch",
    "serve",
]
