"""What is known of one run: the envelope for the user, and what of it the model is told."""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lutumpy import ToolError
from lutumpy.toolclad.http_request import HttpRequest, HttpTemplate
from lutumpy.toolclad.http_run import HttpRun, HttpState
from lutumpy.toolclad.process import Output, ProgramRun, State

if TYPE_CHECKING:
    from lutumpy.toolclad.manifest import Manifest

__all__ = ["Evidence", "EvidenceKeeper", "describe_request", "describe_run", "make_failure"]

EvidenceKeeper: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[None] | None]
"""Takes the name of a tool and the envelope of one run, and keeps it; plain or async."""

Status: TypeAlias = Literal["success", "error", "timeout", "interrupted"]

_TOLD = ("status", "exit_code", "http_status", "results", "duration_ms", "output_hash")
_NO_EXIT_CODE = -1  # as toolclad writes it


class Evidence(dict[str, Any]):
    """What the model is told of one run, as the output of its result.

    A mapping with `status` (`success`, `error`, `timeout` or `interrupted`), `exit_code` (of a
    request `http_status`, 0 where no answer came), `results`, `duration_ms` and `output_hash`.

    Attributes:
        envelope: Everything that is known: the same, and `scan_id`, `tool`, `version`,
            `manifest_hash`, `command`, `timestamp`, `output_file` (always empty: no file is
            written), and `program` and `stderr` of a program. The `command` of a request is its
            method and address, with the names of secrets in their places.
    """

    def __init__(self, envelope: dict[str, Any]) -> None:
        super().__init__({key: envelope[key] for key in _TOLD if key in envelope})
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
    return Evidence(
        {
            **_describe(manifest, status, shlex.join(command), run, results),
            "program": manifest.program,
            "exit_code": run.exit_code if ended else _NO_EXIT_CODE,
            "stderr": run.errors.text,
        }
    )


def describe_request(
    manifest: Manifest, request: HttpRequest, run: HttpRun, state: HttpState
) -> Evidence:
    """The evidence of one request.

    Args:
        manifest: The manifest of the request.
        request: What was sent.
        run: The run.
        state: How it came to its end.
    """
    status, results = _read_answer(manifest, run, state)
    described = _describe(manifest, status, " ".join(request.shown), run, results)
    return Evidence({**described, "http_status": run.status or 0})


def _describe(
    manifest: Manifest,
    status: Status,
    command: str,
    run: ProgramRun | HttpRun,
    results: dict[str, Any],
) -> dict[str, Any]:
    """What an envelope says of every run."""
    now = time.time()
    return {
        "status": status,
        "scan_id": f"{int(now)}-{uuid.uuid4().hex[:12]}",
        "tool": manifest.name,
        "version": manifest.version,
        "manifest_hash": manifest.digest,
        "command": command,
        "duration_ms": round(run.seconds * 1000),
        "timestamp": datetime.fromtimestamp(now, timezone.utc).isoformat(),
        "output_file": "",
        "output_hash": run.output.digest,
        "results": results,
    }


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
    return _read_output(manifest, run.output, run.output.text)


def _read_answer(
    manifest: Manifest, run: HttpRun, state: HttpState
) -> tuple[Status, dict[str, Any]]:
    may_have = "it may have taken effect"
    name = type(run.error).__name__
    if state == "not_started":
        return "error", {"error": f"the server could not be reached ({name}); nothing was sent"}
    if state == "broken":
        return "error", _show_answer(run, f"the connection broke ({name}); {may_have}")
    if state == "interrupted":
        return "interrupted", _show_answer(run, f"the caller gave up; {may_have}")
    if state == "timed_out":
        reason = f"no whole answer came in {run.seconds:.1f} seconds; {may_have}"
        return "timeout", _show_answer(run, reason)
    assert run.status is not None
    assert isinstance(manifest.template, HttpTemplate)
    if not manifest.template.is_success(run.status):
        redirected = "; redirects are not followed" if 300 <= run.status <= 399 else ""
        reason = f"the server answered with the status {run.status}{redirected}"
        return "error", _show_answer(run, reason)
    return _read_output(manifest, run.output, run.text)


def _show_answer(run: HttpRun, reason: str) -> dict[str, Any]:
    """Why a request failed, and what came of its answer."""
    shown = {"error": reason, "raw_output": run.text}
    return {name: text for name, text in shown.items() if text}


def _read_output(manifest: Manifest, output: Output, text: str) -> tuple[Status, dict[str, Any]]:
    """What the manifest's reader makes of an output."""
    if output.is_cut:
        left_out = f"the output has {output.size} bytes; only the first of them are kept"
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
