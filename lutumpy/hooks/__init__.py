"""Who decides about a call: decisions, hooks and the registries that keep them.

The names that most programs need are at the root as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.doors import find_name, homes_of

if TYPE_CHECKING:
    from lutumpy.hooks.decisions import Complete, Hold, Reject, RunNormally, ToolDecision
    from lutumpy.hooks.hook_set import HookSet, hook_slot
    from lutumpy.hooks.registry import hook_impl
    from lutumpy.hooks.tool_hooks import ToolHooks
    from lutumpy.tools.calls import BaseToolCall

__all__ = [
    "BaseToolCall",
    "Complete",
    "Hold",
    "HookSet",
    "Reject",
    "RunNormally",
    "ToolDecision",
    "ToolHooks",
    "hook_impl",
    "hook_slot",
]

_HOMES = homes_of(
    {
        "lutumpy.hooks.decisions": ["Complete", "Hold", "Reject", "RunNormally", "ToolDecision"],
        "lutumpy.hooks.hook_set": ["HookSet", "hook_slot"],
        "lutumpy.hooks.registry": ["hook_impl"],
        "lutumpy.hooks.tool_hooks": ["ToolHooks"],
        "lutumpy.tools.calls": ["BaseToolCall"],
    }
)

if not TYPE_CHECKING:  # a checker would take every name for one of this module's

    def __getattr__(name: str) -> Any:
        return find_name(__name__, _HOMES, name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
