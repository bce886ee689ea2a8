"""What Claude's models differ in about a conversation whose beginning is checked, by their names.

A Claude binds its reasoning to everything that was sent before it, from a version of its family
on, and the same holds wherever it is served. So these are facts of a model, by family and *from a
version on*, and never by an exact name: a later version of a known family counts like the last one
that is known.

Sources: [DOC] the vendor's pages "Preserved thinking", "Prefix checks", "Change tools or
instructions" and "Mid-conversation system messages"; [SDK] the types of `anthropic` 2.12; [REC]
recorded exchanges; [LIVE] live calls that others report; [?] not established, and then the careful
side.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from lutumpy.rules.bound_blocks import Enforcement

__all__ = [
    "BINDS_FROM",
    "BOUND_ELSEWHERE",
    "EFFORT_UPDATES_FROM",
    "REFUSES_FROM",
    "SYSTEM_IN_MESSAGES_FROM",
    "binds_reasoning",
    "is_from",
    "is_older",
    "needs_record",
    "reads_effort_updates",
    "reads_late_system",
    "refuses_changed_prefix",
    "version",
]

BOUND_ELSEWHERE = (
    "{}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
"""The refusal of reasoning behind another beginning [DOC]; `{}` stands for its place."""

Version: TypeAlias = "tuple[str, tuple[int, int]]"

_NAME = re.compile(
    r"claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?"
)
_OLD_NAME = re.compile(r"claude-(?:[123](?:\D|\Z)|instant|v2|4-(?:opus|sonnet))")

BINDS_FROM: Mapping[str, tuple[int, int]] = {
    "fable": (5, 1),
    "mythos": (5, 1),
    "opus": (5, 5),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
"""Family to the first version whose reasoning is bound to what was sent before it [DOC]."""

REFUSES_FROM: Mapping[str, tuple[int, int]] = {"fable": (5, 2), "mythos": (5, 2)}
"""Family to the first version that refuses a changed beginning for everybody [DOC]. The others of
`BINDS_FROM` do for accounts made since 2026-08-31 [DOC][LIVE]; of Mythos 5.1 the sources differ.
"""

SYSTEM_IN_MESSAGES_FROM: Mapping[str, tuple[int, int]] = {
    "fable": (5, 0),
    "mythos": (5, 0),
    "opus": (4, 8),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
"""Family to the first version that takes `role: system` inside `messages` [DOC; REC for Opus 4.8
and Fable 5]. Of Sonnet 5 the sources say both, so it isn't known to.
"""

EFFORT_UPDATES_FROM: Mapping[str, tuple[int, int]] = {
    "fable": (5, 1),
    "mythos": (5, 1),
    "opus": (5, 0),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}
"""Family to the first version that takes an effort in the middle of a conversation [DOC]."""


def version(model: str | None) -> Version | None:
    """Family and version: `claude-sonnet-4-5-20250929` is `("sonnet", (4, 5))`."""
    match = _NAME.search(model) if model is not None else None
    return (match[1], (int(match[2]), int(match[3] or 0))) if match is not None else None


def is_from(model: str | None, first: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a model's family is in a table, and its version that one or a later one."""
    known = version(model)
    return known is not None and known[0] in first and known[1] >= first[known[0]]


def is_older(model: str | None) -> bool:
    """Whether a name is of Claude 3 or before, or of the first Claude 4 in its other spelling."""
    return model is not None and _OLD_NAME.search(model) is not None


def binds_reasoning(model: str | None) -> bool:
    """Whether reasoning is good only behind the beginning that it was made with.

    A name that isn't known counts as binding, and a later version of a known family does: wrongly
    taken for binding, a model loses some reasoning; wrongly taken for free, it refuses the session.
    """
    if version(model) is not None:
        return is_from(model, BINDS_FROM)
    return not is_older(model)


def refuses_changed_prefix(model: str | None) -> Enforcement | None:
    """Who is refused when what comes before signed reasoning has changed.

    Returns:
        `everybody`, `new_accounts` (those made since 2026-08-31; older ones are answered), or
        `None` where a model isn't known to refuse.
    """
    if is_from(model, REFUSES_FROM):
        return "everybody"
    return "new_accounts" if is_from(model, BINDS_FROM) else None


def needs_record(model: str | None) -> bool:
    """Whether a block that no binding was recorded with fails: one of an earlier model, or of
    another host. It may on each binding model [SDK]; on which it does isn't established [?].
    """
    return is_from(model, BINDS_FROM)


def reads_late_system(model: str | None) -> bool:
    """Whether a model reads `role: system` inside the messages, and a change of tools there [REC:
    Opus 4.8 took `tool_addition`].
    """
    return is_from(model, SYSTEM_IN_MESSAGES_FROM)


def reads_effort_updates(model: str | None) -> bool:
    """Whether a model takes an effort from a system message on."""
    return is_from(model, EFFORT_UPDATES_FROM)
