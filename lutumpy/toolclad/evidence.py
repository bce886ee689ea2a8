"""What is known of one run: the envelope for the user, and what of it the model is told."""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lutumpy import ToolError
from lutumpy.toolclad.process import ProgramRun, State

if TYPE_CHECKING:
    from lutumpy.toolclad.manifest import Manifest

__all__ = ["Evidence", "EvidenceKeeper", "describe_run", "make_failure"]

EvidenceKeeper: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[None] | None]
"""Takes the name of a tool and the envelope of one run, and keeps it; plain or async."""

Status: TypeAlias = Literal["success", "error", "timeout", "interrupted"]

_TOLD = ("status", "exit_code", "results", "duration_ms", "output_hash")
_NO_EXIT_CODE = -1  # as toolclad writes it


class Evidence(dict[str, Any]):
    """What the model is told of one run, as the output of its result.

    A mapping with `status` (`success`, `error`, `timeout` or `interrupted`), `exit_code`,
    `results`, `duration_ms` and `output_hash`.

    Attributes:
        envelope: Everything that is known: the same, and `scan_id`, `tool`, `version`,
            `manifest_hash`, `command`, `program`, `timestamp`, `stderr` and `output_file` (always
            empty: no file is written).
    """

    def __init__(self, envelope: dict[str, Any]) -> None:
        super().__init__({key: envelope[key] for key in _TOLD})
        self.envelope: dict[str, Any] = envelope

    @property
    def succeeded(self) -> bool:
        """Whether the program ended well, and printed what its manifest declares."""
        return bool(self["status"] == "success")


def describe_run(
    manifest: Manifest, command: tuple[str, ...], run: ProgramRun, state: State
) -> Evidence:
    """The evidence of one run.

    Args:
        manifest: The manifest of the program.
        command: What was run.
        run: The run.
        state: How it came to its end.
    """
    status, results = _read_results(manifest, run, state)
    ended = status != "timeout" and run.exit_code is not None
    now = time.time()
    return Evidence(
        {
            "status": status,
            "scan_id": f"{int(now)}-{uuid.uuid4().hex[:12]}",
            "tool": manifest.name,
            "version": manifest.version,
            "manifest_hash": manifest.digest,
            "command": shlex.join(command),
            "program": manifest.program,
            "duration_ms": round(run.seconds * 1000),
            "timestamp": datetime.fromtimestamp(now, timezone.utc).isoformat(),
            "exit_code": run.exit_code if ended else _NO_EXIT_CODE,
            "stderr": run.errors.text,
            "output_file": "",
            "output_hash": run.output.digest,
            "results": results,
        }
    )


def _read_results(
    manifest: Manifest, run: ProgramRun, state: State
) -> tuple[Status, dict[str, Any]]:
    if state == "not_started":
        reason = f"the program could not be started ({type(run.error).__name__}); it did not run"
        return "error", {"error": reason}
    if state == "interrupted":
        return "interrupted", _show_failure(run, "the program was stopped: the caller gave up")
    if state == "timed_out":
        reason = f"the program was stopped after {run.seconds:.1f} seconds"
        return "timeout", _show_failure(run, f"{reason}; it may have taken effect in part")
    if run.exit_code != 0:
        return "error", _show_failure(run, f"the program ended with the code {run.exit_code}")
    text = run.output.text
    if run.output.is_cut:
        left_out = f"the output has {run.output.size} bytes; only the first of them are kept"
        if not manifest.reader.takes_beginnings:
            return "error", {"error": f"{left_out}, which can't be read alone"}
        text += f"\n[{left_out}]"
    try:
        return "success", manifest.reader.read(text)
    except ValueError as error:
        return "error", {"error": str(error)}


def _show_failure(run: ProgramRun, reason: str) -> dict[str, Any]:
    """Why a run failed, and what the program said."""
    shown = {"error": reason, "stderr": run.errors.text, "raw_output": run.output.text}
    return {name: text for name, text in shown.items() if text}


def make_failure(evidence: Evidence) -> ToolError:
    """The error that shows the model the evidence of a run that failed (rule Y8d)."""
    return ToolError(content=evidence)
