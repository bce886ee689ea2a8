"""What can be mended in a broken transcript, as proposals that say why and what exactly changes."""

from __future__ import annotations

from lutumpy.doctor.apply import apply_repairs
from lutumpy.doctor.propose import propose_repairs
from lutumpy.doctor.repair import Repair, RepairKind

__all__ = ["Repair", "RepairKind", "apply_repairs", "propose_repairs"]
