"""Signatures of functions, and annotations of classes, that name what only type checkers see.

With `from __future__ import annotations` every annotation is text. Without it, Python evaluates
annotations where a function or class is made; from Python 3.14 on where somebody asks for them
(PEP 649), which fails for a class that is imported under `TYPE_CHECKING`. Here they are text then,
as with the import, so that the same code resolves them and nothing depends on the import.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["annotations_of", "signature_of"]

# Before Python 3.14 there is no such format, and nothing that would need it.
_FORMATS = importlib.import_module("annotationlib") if sys.version_info >= (3, 14) else None
_AS_TEXT: Mapping[str, Any] = {} if _FORMATS is None else {"format": _FORMATS.Format.STRING}


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`, with every annotation as text where one can't be evaluated."""
    try:
        return inspect.signature(function)
    except Exception:
        # Whoever isn't a function, or has no signature, is refused again.
        return inspect.signature(
            function, **{f"annotation_{name}": value for name, value in _AS_TEXT.items()}
        )


def annotations_of(cls: type) -> Mapping[str, Any]:
    """The annotations of a class, as text where one can't be evaluated."""
    try:
        return getattr(cls, "__annotations__", {})
    except Exception:
        return inspect.get_annotations(cls, **_AS_TEXT)
