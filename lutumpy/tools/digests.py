"""Digests of JSON values that are the same for every spelling of one value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.canonical_schema import canonical

__all__ = ["canonical_content", "digest_of"]


def canonical_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same value for every spelling of the same tool."""
    # A default may be a value that JSON has no form for; what is sent, and what counts, is what the
    # encoder makes of it.
    sorted_content: dict[str, Any] = canonical(json_values.decode(json_values.encode(content)))
    return sorted_content


def digest_of(canonical_form: Mapping[str, Any]) -> str:
    """`sha256:` and the digest of a canonical value."""
    data = json.dumps(canonical_form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"
