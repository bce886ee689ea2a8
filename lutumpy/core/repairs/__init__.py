"""What can be mended in a broken transcript, as proposals that say why and what exactly changes."""

from __future__ import annotations

from .apply import apply_repairs
from .propose import propose_repairs
from .repair import Repair, RepairKind

__all__ = ["Repair", "RepairKind", "apply_repairs", "propose_repairs"]
