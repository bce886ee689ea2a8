"""Signatures of functions, and annotations of classes, that name what only type checkers see.

With `from __future__ import annotations` every annotation is text. Without it, Python evaluates
annotations where a function or class is made; from Python 3.14 on where somebody asks for them
(PEP 649), which fails for a class that is imported under `TYPE_CHECKING`. Here they are text then,
as with the import, so that the same code resolves them and nothing depends on the import.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["annotations_of", "signature_of"]

if sys.version_info >= (3, 14):

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """`inspect.signature`, with every annotation as text where one can't be evaluated."""
        try:
            return inspect.signature(function)
        except Exception:
            from annotationlib import Format

            # Whoever isn't a function, or has no signature, is refused again.
            return inspect.signature(function, annotation_format=Format.STRING)

    def annotations_of(cls: type) -> Mapping[str, Any]:
        """The annotations of a class, as text where one can't be evaluated."""
        try:
            return cls.__annotations__
        except Exception:
            from annotationlib import Format, get_annotations

            return get_annotations(cls, format=Format.STRING)

else:
    signature_of: Callable[..., inspect.Signature] = inspect.signature

    def annotations_of(cls: type) -> Mapping[str, Any]:
        """The annotations of a class."""
        return getattr(cls, "__annotations__", {})
