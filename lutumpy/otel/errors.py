"""What a span says of an error: its kind, and never its words, which may quote what was said. And
what becomes of errors of telemetry itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from opentelemetry.trace import Span, StatusCode

from lutumpy import AdapterError
from lutumpy.otel import names

__all__ = ["error_type", "guard", "mark_failed"]

T = TypeVar("T")

_LONGEST_CODE = 100

logger: logging.Logger = logging.getLogger("lutumpy.otel")


def guard(note: Callable[..., T], *arguments: Any) -> T | None:
    """Note something. What goes wrong is logged: telemetry must not end a conversation."""
    try:
        return note(*arguments)
    except Exception as error:
        logger.warning("telemetry failed: %s", type(error).__name__, exc_info=error)
        return None


def error_type(error: BaseException) -> str:
    """The provider's code of an error, else its status, else the name of its class."""
    if isinstance(error, AdapterError):
        if error.code and _is_code(str(error.code)):
            return str(error.code)
        if error.status is not None:
            return str(error.status)
        if error.__cause__ is not None:
            return type(error.__cause__).__name__
    return type(error).__name__


def _is_code(text: str) -> bool:
    """Whether it is one word. Some hosts have a sentence there, which may quote what was said."""
    return len(text) <= _LONGEST_CODE and len(text.split()) == 1


def mark_failed(span: Span, kind: str) -> None:
    """Mark a span as failed, with an `error.type`."""
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(StatusCode.ERROR)
