"""ToolClad manifests (`.clad.toml`) as tools: programs that a model may run, and nothing else.

Needs the extra `toolclad`. The package of this name parses manifests and validates single values;
it never executes anything.
"""

from __future__ import annotations

from lutumpy.toolclad.approvals import ApprovalPolicy, Approve
from lutumpy.toolclad.evidence import Evidence, EvidenceKeeper
from lutumpy.toolclad.load import CladTools, load_manifests
from lutumpy.toolclad.manifest import Manifest
from lutumpy.toolclad.tables import RiskTier

__all__ = [
    "ApprovalPolicy",
    "Approve",
    "CladTools",
    "Evidence",
    "EvidenceKeeper",
    "Manifest",
    "RiskTier",
    "load_manifests",
]
