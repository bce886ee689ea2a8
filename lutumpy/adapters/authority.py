"""Which host an address is of."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

__all__ = ["host_of"]


def host_of(url: Any) -> str | None:
    """The authority of an address, without the standard port; `None` where it has none.

    Args:
        url: A text, or a URL object of the HTTP library.
    """
    try:
        parts = urlsplit(str(url)) if url else None
        if parts is None or not parts.hostname:
            return None
        usual = {"http": 80, "https": 443}.get(parts.scheme)
        return parts.hostname if parts.port in (None, usual) else f"{parts.hostname}:{parts.port}"
    except ValueError:
        return None
