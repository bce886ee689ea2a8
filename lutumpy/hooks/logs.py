"""What is logged on `lutumpy.tool_hook` (rule H6)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lutumpy.plain import json_values
from lutumpy.plain.preview import preview
from lutumpy.plain.safe_text import safe_repr

if TYPE_CHECKING:
    from logging import Logger

    from lutumpy.core.items import ToolMetadata

__all__ = ["DEBUG", "INFO", "log_decision", "logger"]

# The most bytes of arguments, inputs and reasons that one line of the log shows.
ARGUMENT_BYTES = 500

# The numbers of `logging`, which is slow to import.
DEBUG, INFO = 10, 20

_NO_INPUT: Any = object()


@cache
def logger() -> Logger:
    """The logger of what hooks decide; fetched when the first hook runs, as its import is slow."""
    from logging import getLogger

    return getLogger("lutumpy.tool_hook")


def log_decision(
    hook: str,
    metadata: ToolMetadata,
    decision: str,
    passed_on: Any = _NO_INPUT,
    *,
    reason: str | None = None,
) -> None:
    """Log what a hook decided: who and what at INFO; arguments, input and reason at DEBUG only.

    Args:
        hook: The hook's name.
        metadata: The call.
        decision: `run_normally`, `complete`, `reject` or `hold`.
        passed_on: The input that the hook passed on. It will run unless a later hook changes it.
        reason: Why the call was rejected or held.
    """
    details = logger().isEnabledFor(DEBUG)
    extra = {"tool": metadata.name, "call_id": metadata.id, "decision": decision, "hook": hook}
    why = ""
    if details and reason is not None:
        extra["reason"] = _shorten(reason)
        why = f": {extra['reason']}"
    named = (metadata.id, metadata.name)
    logger().info("%s of %s: %s by %s%s", *named, decision, hook, why, extra=extra)
    if not details:
        return
    arguments = _shorten(metadata.arguments)
    logger().debug("%s of %s: arguments %s", *named, arguments)
    if passed_on is not _NO_INPUT:
        shown = _shorten(_show_input(passed_on))
        logger().debug("%s of %s: input %s", *named, shown)


def _shorten(text: str) -> str:
    return preview(text, ARGUMENT_BYTES, mark="")


def _show_input(value: Any) -> str:
    try:
        return json_values.encode_text(value.model_dump(mode="json"))
    except Exception:  # a user's serializer that fails must not stop a round
        return safe_repr(value)
