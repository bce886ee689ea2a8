"""`load_manifests`: the manifests of a directory as tools, checked as a whole, once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lutumpy import DeclarationError, DynamicInput, DynamicOutput, DynamicTool, ToolCall, Toolset
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.toolclad import library
from lutumpy.toolclad.approvals import ApprovalPolicy, Approvals, Approve
from lutumpy.toolclad.evidence import EvidenceKeeper
from lutumpy.toolclad.manifest import Manifest
from lutumpy.toolclad.program import ManifestProgram, Workplace, manifest_of
from lutumpy.toolclad.read import Surroundings, read_manifest

__all__ = ["CladTools", "load_manifests"]

_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_SECRETS = "TOOLCLAD_SECRET_"
_STANDARD_PATH = "/usr/local/bin:/usr/bin:/bin"


class CladTools:
    """The manifests of a directory as tools; made by `load_manifests`. Nothing of it changes.

    Attributes:
        manifests: Every manifest by the name of its tool, in the order of the files.
        tools: A tool for each of them, to be put into a toolset of your own.
        toolset: A toolset of these tools alone.
        dispatch: What runs them.
    """

    __slots__ = ("_approvals", "dispatch", "manifests", "tools", "toolset")

    def __init__(
        self,
        manifests: Mapping[str, Manifest],
        tools: tuple[DynamicTool, ...],
        approvals: Approvals,
    ) -> None:
        self.manifests: Mapping[str, Manifest] = MappingProxyType(dict(manifests))
        self.tools: tuple[DynamicTool, ...] = tools
        self.toolset: type[Toolset[ToolCall[DynamicInput, DynamicOutput]]] = Toolset.of(
            "CladTools", tools
        )
        self.dispatch: Dispatcher[Toolset[ToolCall[DynamicInput, DynamicOutput]]] = Dispatcher(
            self.toolset
        )
        self.dispatch.close()
        self._approvals = approvals

    def policy(
        self, approve: Approve, *, risks: Collection[str] = ("high", "critical")
    ) -> ApprovalPolicy:
        """A policy for `apply_hooks` that lets run only what was approved.

        It asks about the calls of manifests with `human_approval`, and of those that have one of
        the risks. Calls of other tools go on. Apply it last: a tool with `human_approval` runs with
        the very arguments that were approved, or not at all.

        Args:
            approve: Takes a call and says `True`, or anything else to reject it; `Reject(reason)`
                says why. Plain or async. If it raises, nothing of the round is run (rule H4).
            risks: The risk tiers of which every call is asked about.

        Raises:
            TypeError: `approve` is not a function.
            ValueError: There is no such risk tier.
        """
        return ApprovalPolicy(approve, risks, self.manifest_of, self._approvals)

    def manifest_of(self, call: BaseToolCall) -> Manifest | None:
        """The manifest of a call's tool, also where it was renamed; `None` for other tools."""
        return manifest_of(call, self._approvals)

    def __repr__(self) -> str:
        return f"<CladTools: {', '.join(self.manifests)}>"


def load_manifests(
    directory: str | os.PathLike[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    max_output: int = 65_536,
    evidence: EvidenceKeeper | None = None,
    inherit: Collection[str] = (),
    environment: Mapping[str, str] | None = None,
    approved_elsewhere: bool = False,
) -> CladTools:
    """Read every `*.clad.toml` of a directory, once; programs and secrets are looked up now, too.

    Custom types are read from the file `toolclad.toml` in the directory, or one folder above it.
    A manifest that leaves something to be looked at, such as a shell as its program, gives a
    `UserWarning`.

    Args:
        directory: Where the manifests are.
        cwd: Where the programs run; by default where this process runs now.
        timeout: Seconds for one run of a program, or one request; a manifest may say less.
        max_output: How many bytes of an output or an answer are kept, and shown to the model.
        evidence: Is given the tool's name and the whole envelope of each run, also of one that
            failed or was interrupted. What it raises fails the call.
        inherit: Names of variables that programs get from this process, beside `PATH`, `LANG`,
            `LC_ALL`, `LC_CTYPE` and `TZ`.
        environment: Variables that programs get. Requests go through a proxy that one of these
            or `inherit` names (`HTTPS_PROXY`, `HTTP_PROXY`).
        approved_elsewhere: Let tools with `human_approval` run without an approval by `policy`.

    Raises:
        DeclarationError: Names every problem of every file. Nothing was loaded.
        ValueError: An option is wrong, or would give programs a `TOOLCLAD_SECRET_` variable.
        ImportError: The extra `toolclad` isn't installed.
    """
    if os.name != "posix":
        raise DeclarationError("manifests need process groups, which this system doesn't have")
    library.check_installed()
    seconds = float("inf") if timeout is None else timeout
    if not seconds > 0 or max_output < 1:
        raise ValueError("timeout and max_output must be more than 0")
    folder, place = Path(directory), Path.cwd() if cwd is None else Path(cwd).absolute()
    variables = _make_environment(inherit, environment or {})
    files = sorted(folder.glob("*.clad.toml")) if folder.is_dir() else []
    problems = [] if files else [f"{folder}: there are no *.clad.toml files"]
    if not place.is_dir():
        problems.append(f"cwd: {place} is not a directory")
    types = _read_types(folder, problems)
    around = Surroundings(types, place, variables["PATH"], os.environ, seconds)
    approvals = Approvals()
    workplace = Workplace(place, variables, max_output, evidence, approved_elsewhere)
    manifests: dict[str, Manifest] = {}
    tools: list[DynamicTool] = []
    for path in files:
        manifest = read_manifest(path, around)
        if isinstance(manifest, list):
            problems += [f"{path.name}: {problem}" for problem in manifest]
            continue
        other = manifests.setdefault(manifest.name, manifest)
        if other is not manifest:
            problems.append(f"{path.name}: {other.path.name} has a tool {manifest.name!r}, too")
            continue
        try:
            tools.append(ManifestProgram(manifest, workplace, approvals).make_tool())
        except DeclarationError as error:
            problems.append(f"{path.name}: {error}")
    if problems:
        lines = "".join([f"\n- {problem}" for problem in problems])
        raise DeclarationError(f"the manifests can't be used, and none was loaded:{lines}")
    for manifest in manifests.values():
        for warning in manifest.warnings:
            warnings.warn(f"{manifest.path.name}: {warning}", UserWarning, stacklevel=2)
    return CladTools(manifests, tuple(tools), approvals)


def _make_environment(inherit: Collection[str], more: Mapping[str, str]) -> dict[str, str]:
    """All variables that programs get."""
    if isinstance(inherit, str):
        raise ValueError(f"inherit takes names of variables, not {inherit!r}")
    secret = [name for name in (*inherit, *more) if name.upper().startswith(_SECRETS)]
    if secret:
        raise ValueError(f"{secret[0]} is a secret of toolclad, which no program is given")
    names = (*_INHERITED, *inherit)
    found = {name: os.environ[name] for name in names if name in os.environ}
    found.update(more)
    # A relative folder would be one of `cwd`, where the model may have written files.
    folders = found.get("PATH", "").split(os.pathsep)
    found["PATH"] = os.pathsep.join([one for one in folders if os.path.isabs(one)])
    found["PATH"] = found["PATH"] or _STANDARD_PATH
    return found


def _read_types(folder: Path, problems: list[str]) -> Mapping[str, Any]:
    for path in (folder / "toolclad.toml", folder.absolute().parent / "toolclad.toml"):
        if path.is_file():
            try:
                return library.read_custom_types(path)
            except Exception as error:  # whatever toolclad stumbles on
                problems.append(f"{path.name}: it can't be read: {error}")
                return {}
    return {}
