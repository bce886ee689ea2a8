"""What is logged on `lutumpy.execution` (rule E7).

Never arguments; outputs only as a preview, and only at DEBUG.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lutumpy import TextPart
from lutumpy.execution.report import CallReport
from lutumpy.plain.preview import preview
from lutumpy.tools import is_for_the_model

__all__ = ["log_result", "log_retry", "log_return", "logger"]

logger: logging.Logger = logging.getLogger("lutumpy.execution")

PREVIEW_BYTES = 500
_EXPECTED = ("ok", "rejected", "not_started", "promised", "asked")


def log_result(
    report: CallReport, output_error: str | None = None, about: Mapping[str, Any] | None = None
) -> None:
    """A call has its result.

    Args:
        report: The call.
        output_error: Why its output can't be used, where it can't.
        about: Further fields of the record, as model and round.
    """
    result = report.result
    if result is None:
        return
    level = logging.INFO if result.outcome in _EXPECTED else logging.WARNING
    if not logger.isEnabledFor(level):
        return
    error = result.error
    logger.log(
        level,
        "%s of %s: %s, attempt %d, %.3f s%s",
        report.call_id,
        report.tool,
        result.outcome,
        report.attempts,
        result.latency,
        f": {output_error}" if output_error else "",
        extra=_log_fields(report, result.outcome, result.latency, about),
        # What a tool raises for the model needs no traceback: it is not a defect of the program.
        exc_info=None if error is None or is_for_the_model(error) else error,
    )
    if result.outcome == "ok" and logger.isEnabledFor(logging.DEBUG):
        content = result.content
        if isinstance(content, str):
            text = content
        else:
            text = "".join([part.text for part in content if isinstance(part, TextPart)])
        logger.debug(
            "%s of %s: output %s", report.call_id, report.tool, preview(text, PREVIEW_BYTES)
        )


def log_retry(
    report: CallReport,
    error: BaseException | None,
    latency: float,
    delay: float,
    about: Mapping[str, Any] | None = None,
) -> None:
    """An attempt timed out, and another one follows."""
    logger.warning(
        "%s of %s: attempt %d timed out, the next one in %.3f s",
        report.call_id,
        report.tool,
        report.attempts,
        delay,
        extra=_log_fields(report, "timed_out", latency, about),
        exc_info=error,
    )


def log_return(report: CallReport, about: Mapping[str, Any] | None = None) -> None:
    """The thread of a call that nobody waited for any more has returned."""
    logger.info(
        "%s of %s: the function has returned after it was given up; its output is dropped",
        report.call_id,
        report.tool,
        extra={**(about or {}), "tool": report.tool, "call_id": report.call_id},
    )


def _log_fields(
    report: CallReport, status: str, latency: float, about: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        **(about or {}),
        "tool": report.tool,
        "call_id": report.call_id,
        "attempt": report.attempts,
        "latency": latency,
        "status": status,
    }
