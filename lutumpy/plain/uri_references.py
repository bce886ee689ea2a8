"""References of JSON Schemas and documents, read against the address around them."""

from __future__ import annotations

from urllib.parse import urldefrag, urljoin

__all__ = ["read_address"]


def read_address(base: str, reference: str) -> str:
    """The address of a reference that is read against a base, without its fragment."""
    if reference.startswith("#"):
        return base
    try:
        return urldefrag(urljoin(base, reference))[0]
    except ValueError:  # such as an address with half of a bracket
        return reference.partition("#")[0]
