"""What is wrong with a history, and what would mend it.

Repairs are proposals: each says why it is made and what exactly it changes. Nothing here is
imported until it is asked for: a program that only goes on with its own sessions needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.doors import find_name, homes_of

if TYPE_CHECKING:
    from lutumpy.doctor.apply import apply_repairs
    from lutumpy.doctor.check import check_messages
    from lutumpy.doctor.propose import open_calls, propose_repairs
    from lutumpy.doctor.repair import Operation, Repair, RepairKind
    from lutumpy.errors import Certainty, Problem
    from lutumpy.rules.hosts import host_name, is_compatible

__all__ = [
    "Certainty",
    "Operation",
    "Problem",
    "Repair",
    "RepairKind",
    "apply_repairs",
    "check_messages",
    "host_name",
    "is_compatible",
    "open_calls",
    "propose_repairs",
]

_HOMES = homes_of(
    {
        "lutumpy.rules.hosts": ["host_name", "is_compatible"],
        "lutumpy.doctor.apply": ["apply_repairs"],
        "lutumpy.doctor.check": ["check_messages"],
        "lutumpy.doctor.propose": ["open_calls", "propose_repairs"],
        "lutumpy.doctor.repair": ["Operation", "Repair", "RepairKind"],
        "lutumpy.errors": ["Certainty", "Problem"],
    }
)

if not TYPE_CHECKING:  # a checker would take every name for one of this module's

    def __getattr__(name: str) -> Any:
        return find_name(__name__, _HOMES, name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
