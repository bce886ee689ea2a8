"""What runs a manifest: from the arguments of a call to evidence, kept and told."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from lutumpy import DynamicTool, ToolError, ToolMetadata
from lutumpy.hooks import BaseToolCall
from lutumpy.toolclad.approvals import Approvals
from lutumpy.toolclad.evidence import (
    Evidence,
    EvidenceKeeper,
    describe_request,
    describe_run,
    make_failure,
)
from lutumpy.toolclad.http_request import HttpRequest, HttpTemplate
from lutumpy.toolclad.http_run import HttpRun
from lutumpy.toolclad.manifest import Manifest
from lutumpy.toolclad.process import ProgramRun

__all__ = ["ManifestProgram", "Workplace", "manifest_of"]

_AFTER_THE_PROGRAM = 5.0
"""Seconds that a tool has beside its program, for the start and for reading what it printed."""

_NOT_APPROVED = (
    "this tool runs only what a person has approved, and this call with these arguments was not; "
    "it did not run"
)


class Workplace(NamedTuple):
    """Where and how programs run.

    Attributes:
        directory: Where they run.
        environment: All of their environment.
        most_output: How many bytes of their output are kept.
        evidence: What keeps the envelopes.
        approved_elsewhere: Whether `human_approval` is somebody else's business.
    """

    directory: Path
    environment: Mapping[str, str]
    most_output: int
    evidence: EvidenceKeeper | None
    approved_elsewhere: bool


class ManifestProgram:
    """Runs the program of one manifest, or sends its request.

    Attributes:
        manifest: The manifest.
    """

    __slots__ = ("_approvals", "_workplace", "manifest")

    def __init__(self, manifest: Manifest, workplace: Workplace, approvals: Approvals) -> None:
        self.manifest: Manifest = manifest
        self._workplace = workplace
        self._approvals = approvals

    def make_tool(self) -> DynamicTool:
        """The manifest as a tool; raises `DeclarationError`."""
        manifest = self.manifest
        return DynamicTool(
            manifest.name,
            manifest.description,
            manifest.schema,
            run=self.run,
            validate=manifest.clean,
            # The program is stopped by its own time, which says so in the evidence.
            timeout=manifest.timeout + _AFTER_THE_PROGRAM,
            max_retries=0,
            effect="read" if manifest.risk_tier == "info" else "once",
        )

    async def run(self, arguments: dict[str, Any], *, metadata: ToolMetadata) -> Evidence:
        """Run the program, or send the request.

        Args:
            arguments: Those of the call.
            metadata: The call.

        Raises:
            ToolError: It failed, or didn't run.
            BaseException: A cancellation of the caller. Nothing of a program is left.
        """
        # The fence again: a hook may have edited what it let through.
        manifest, place = self.manifest, self._workplace
        values = manifest.clean(arguments)
        built = manifest.build(values)
        needs_approval = manifest.human_approval and not place.approved_elsewhere
        if needs_approval and not self._approvals.take(metadata, values):
            raise ToolError(_NOT_APPROVED)
        run, describe = self._prepare(built)
        try:
            state = await run.run(manifest.timeout)
        except BaseException:
            # It has run, so there is evidence; who keeps it has a moment in spite of the
            # cancellation.
            with anyio.CancelScope(shield=True), anyio.move_on_after(_AFTER_THE_PROGRAM):
                await self._keep(describe("interrupted"))
            raise
        evidence = describe(state)
        await self._keep(evidence)
        if not evidence.succeeded:
            raise make_failure(evidence)
        return evidence

    def _prepare(
        self, built: tuple[str, ...] | HttpRequest
    ) -> tuple[ProgramRun | HttpRun, Callable[[Any], Evidence]]:
        """What runs the command or sends the request, and what says how that came to its end."""
        manifest, place = self.manifest, self._workplace
        if isinstance(built, HttpRequest):
            assert isinstance(manifest.template, HttpTemplate)
            secrets = manifest.template.secrets
            request = HttpRun(built, secrets, place.environment, place.most_output)
            return request, partial(describe_request, manifest, built, request)
        program = ProgramRun(
            manifest.program, built, place.directory, place.environment, place.most_output
        )
        return program, partial(describe_run, manifest, built, program)

    async def _keep(self, evidence: Evidence) -> None:
        keep = self._workplace.evidence
        if keep is None:
            return
        kept = keep(self.manifest.name, evidence.envelope)
        if inspect.isawaitable(kept):
            await kept


def manifest_of(call: BaseToolCall, approvals: Approvals) -> Manifest | None:
    """The manifest of a call's tool, under whichever name that is offered; `None` for other tools.

    Args:
        call: The call.
        approvals: Those of the manifests that are meant: others were loaded by somebody else.
    """
    program = getattr(getattr(call.tool, "run", None), "__self__", None)
    if not isinstance(program, ManifestProgram) or program._approvals is not approvals:
        return None
    return program.manifest
