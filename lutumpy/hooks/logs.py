"""What is logged on `lutumpy.tool_hook` (rule H6)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lutumpy.core import json_values
from lutumpy.core.preview import preview
from lutumpy.core.safe_text import safe_repr

if TYPE_CHECKING:
    from logging import Logger

    from lutumpy.core.items import ToolMetadata
    from lutumpy.hooks.pipeline import Step

__all__ = ["DEBUG", "INFO", "log_decision", "logger"]

ARGUMENT_BYTES = 500
DEBUG, INFO = 10, 20  # the numbers of `logging`, which is slow to import

_NOTHING: Any = object()


@cache
def logger() -> Logger:
    """The logger of what hooks decide; fetched when the first hook runs, since `logging` is slow to import."""
    from logging import getLogger

    return getLogger("lutumpy.tool_hook")


def log_decision(
    step: Step,
    metadata: ToolMetadata,
    word: str,
    effective: Any = _NOTHING,
    *,
    reason: str | None = None,
) -> None:
    """Log what a hook decided: who and what at INFO; arguments, effective input and reason at DEBUG only.

    Args:
        step: The hook.
        metadata: The call.
        word: The decision: `run_normally`, `complete` or `reject`.
        effective: The input that the hook passed on: what will run, unless a later hook changes it.
        reason: Why the call was rejected.
    """
    deep = logger().isEnabledFor(DEBUG)
    extra = {"tool": metadata.name, "call_id": metadata.id, "decision": word, "hook": step.label}
    why = ""
    if deep and reason is not None:
        extra["reason"] = _cut(reason)
        why = f": {extra['reason']}"
    logger().info(
        "%s of %s: %s by %s%s", metadata.id, metadata.name, word, step.label, why, extra=extra
    )
    if not deep:
        return
    logger().debug("%s of %s: arguments %s", metadata.id, metadata.name, _cut(metadata.arguments))
    if effective is not _NOTHING:
        logger().debug("%s of %s: input %s", metadata.id, metadata.name, _cut(_json(effective)))


def _cut(text: str) -> str:
    return preview(text, ARGUMENT_BYTES, mark="")


def _json(value: Any) -> str:
    try:
        return json_values.encode_text(value.model_dump(mode="json"))
    except Exception:  # a user's serializer that fails must not stop a round
        return safe_repr(value)
