"""The names under which the tools of a server are offered to a model (rule MCP3).

A server may call a tool `repo/issue.list`, in 128 characters; a provider takes 64 letters, digits,
`_` and `-`. A name that had to be changed ends in a digest of the original one. So it depends on
nothing but the name itself: not on the other tools, nor on their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from lutumpy import DeclarationError
from lutumpy.plain.clean_names import with_digest
from lutumpy.plain.safe_text import safe_repr

__all__ = ["check_prefix", "colliding_names", "wire_name"]

_LONGEST = 64  # what every provider takes
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_PREFIX = 32


def check_prefix(prefix: str) -> str:
    """The prefix; raises `DeclarationError` where it can't begin a tool's name."""
    if not isinstance(prefix, str) or _OTHER.search(prefix) or len(prefix) > _LONGEST_PREFIX:
        raise DeclarationError(
            f"prefix={safe_repr(prefix)} can't begin a tool's name: it takes up to "
            f"{_LONGEST_PREFIX} letters, digits, '_' and '-' of ASCII"
        )
    return prefix


def wire_name(original: str, prefix: str = "") -> str:
    """The name that a model calls: the original one behind the prefix, where providers take it.

    Otherwise it is cleaned and shortened, and 8 digits of the original name's SHA-256 are added.
    """
    wished = prefix + original
    cleaned = _OTHER.sub("_", wished)
    if cleaned == wished and original and len(cleaned) <= _LONGEST:
        return cleaned
    return with_digest(original, cleaned, _LONGEST)


def colliding_names(originals: Iterable[str], prefix: str) -> set[str]:
    """The original names that can't be offered beside the others.

    A server that wants to may call one tool as another one is called after cleaning. Then the one
    whose name was not changed stays, whichever comes first.
    """
    wire = {original: wire_name(original, prefix) for original in originals}
    counts = Counter(wire.values())
    return {
        original
        for original, name in wire.items()
        if counts[name] > 1 and name != prefix + original
    }
