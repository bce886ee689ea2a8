"""What Claude models differ in, read from their names. Unknown names forbid nothing.

What the models bind, and from which version on, is in `rules/claude.py`, since it holds
wherever a Claude is served; here is how Messages takes a change in the middle of a conversation.
Each carrier has a function that says whether a model takes it at a host, and the beta names that a
request with it needs are beside it:

| change                             | function                   | header           |
|------------------------------------|----------------------------|------------------|
| a tool withdrawn, or offered again | `takes_tool_changes`       | `TOOL_CHANGES`   |
| a tool that is new, or redefined   | `takes_inline_tools`       | `INLINE_TOOLS`   |
| an instruction                     | `takes_system_messages`    | none             |
| an instruction for one turn        | `takes_turn_scoped_system` | `CLEAR_AT`       |
| effort                             | `takes_effort_updates`     | `EFFORT_UPDATES` |
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lutumpy.rules.claude import (
    binds_reasoning,
    is_from,
    is_older,
    needs_record,
    reads_effort_updates,
    reads_late_system,
    refuses_changed_prefix,
    version,
)

__all__ = [
    "BINDING_CONTROLS",
    "CLEAR_AT",
    "EFFORT_LEVELS",
    "EFFORT_UPDATES",
    "HOST",
    "INLINE_TOOLS",
    "NO_FORCED_CHOICE",
    "NO_PREFILL_FROM",
    "TOOL_CHANGES",
    "binds_reasoning",
    "effort_refusal",
    "forced_choice_refusal",
    "needs_record",
    "refuses_changed_prefix",
    "refuses_prefill",
    "refuses_system_messages",
    "takes_effort_updates",
    "takes_inline_tools",
    "takes_prefill",
    "takes_system_messages",
    "takes_tool_changes",
    "takes_tool_search",
    "takes_turn_scoped_system",
    "version",
]

_BEFORE_4 = re.compile(r"claude-(?:[123](?:\D|\Z)|instant)")

HOST = "api.anthropic.com"
"""The vendor's own host, which takes every carrier that a model takes [DOC]."""

# Tools change by reference at the clouds as well, and what is documented for the models without a
# host (a text for one turn, an effort) holds there; definitions are for the Claude API alone [DOC].
_CLOUDS = re.compile(
    r"(?:[\w-]+\.)*(?:amazonaws\.com|api\.aws)"
    r"|(?:[\w.-]+-)?aiplatform(?:\.[\w-]+\.rep)?\.googleapis\.com"
)

TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"
"""Header of tool changes by reference [DOC]; `INLINE_TOOLS` does as well."""
INLINE_TOOLS = "inline-tools-2026-09-15"
"""Header of tools that a message defines [SDK]."""
CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"
"""Header of system messages for one turn [DOC]."""
EFFORT_UPDATES = "mid-conversation-output-config-2026-07-01"
"""Header of an effort in a system message [DOC]."""
BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
"""Header of `thinking.block_binding`, and of `input_transformations` in answers [DOC]."""

# Only what a name is known to mean is enforced. Gateways give models names of their own, so an
# unknown name forbids nothing, and takes nothing for granted either (`takes_...`).
NO_PREFILL_FROM: Mapping[str, tuple[int, int]] = {
    "opus": (4, 6),
    "sonnet": (4, 6),
    "haiku": (5, 0),
    "fable": (5, 0),
    "mythos": (5, 0),
}
"""Family to the first version that refuses a last message of the assistant's."""

_NOT_COMPATIBLE = "tool_choice forces tool use is not compatible with this model"
_NOT_SUPPORTED = 'tool_choice: type "tool" and "any" are not supported for this model.'

NO_FORCED_CHOICE: Mapping[str, tuple[tuple[tuple[int, int], str], ...]] = {
    "fable": (((5, 1), _NOT_SUPPORTED), ((5, 0), _NOT_COMPATIBLE)),
    "mythos": (((5, 1), _NOT_SUPPORTED), ((5, 0), _NOT_COMPATIBLE)),
    "opus": (((5, 5), _NOT_SUPPORTED),),
    "sonnet": (((5, 5), _NOT_SUPPORTED),),
}
"""Family to the versions from which on it takes no forced choice, the latest first, and their
words for it.
"""

EFFORT_LEVELS: Mapping[str, tuple[str, ...]] = {"claude-opus-4-6": ("high", "low", "max", "medium")}


def takes_tool_search(model: str | None) -> bool:
    """Whether a model loads tools on demand, as all do from Claude 4 on [documentation]."""
    return model is None or _BEFORE_4.search(model) is None


def refuses_prefill(model: str | None) -> bool:
    return is_from(model, NO_PREFILL_FROM)


def refuses_system_messages(model: str | None) -> bool:
    """Models before 4.6 know `system` only as a parameter [reported for haiku 4.5]."""
    known = version(model)
    if known is not None:
        return known[1] < (4, 6)
    return is_older(model)


def takes_system_messages(model: str | None) -> bool:
    """Whether `role: system` inside `messages` is known to be taken: by the vendor's own API, under
    its own names only.
    """
    # Asked for every request, so it enters no function for names of others.
    return model is not None and model.startswith("claude-") and reads_late_system(model)


def takes_tool_changes(model: str | None, host: str | None = HOST) -> bool:
    """Whether declared tools can be withdrawn and offered again by a system message.

    Args:
        model: The name of the model.
        host: The authority that the request goes to; with `None`, or one that isn't known, nothing
            is taken for granted.
    """
    return reads_late_system(model) and _takes_changes(host)


def _takes_changes(host: str | None) -> bool:
    """Whether a host is known to take changes in system messages: the vendor's, and the clouds'."""
    if host is None:
        return False
    bare = host.partition(":")[0]
    return bare == HOST or _CLOUDS.fullmatch(bare) is not None


def takes_inline_tools(model: str | None, host: str | None = HOST) -> bool:
    """Whether a system message can define a tool, also one that replaces another: at the Claude API
    alone [DOC]. Arguments as for `takes_tool_changes`.
    """
    return host == HOST and takes_system_messages(model)


def takes_turn_scoped_system(model: str | None, host: str | None = HOST) -> bool:
    """Whether a system message may be for one turn (`clear_at`) [DOC]. Arguments as for
    `takes_tool_changes`.
    """
    return reads_late_system(model) and _takes_changes(host)


def takes_effort_updates(model: str | None, host: str | None = HOST) -> bool:
    """Whether a system message may set the effort from there on [DOC]. Arguments as for
    `takes_tool_changes`.
    """
    return reads_effort_updates(model) and _takes_changes(host)


def takes_prefill(model: str | None) -> bool:
    """Whether the last message is known to be allowed to be the assistant's."""
    known = version(model)
    if known is not None:
        return known[1] < NO_PREFILL_FROM[known[0]]
    return is_older(model)


def forced_choice_refusal(model: str | None) -> str | None:
    """The error of a model that is known to take no `any` or `tool`, or None."""
    known = version(model)
    if known is None:
        return None
    for first, words in NO_FORCED_CHOICE.get(known[0], ()):
        if known[1] >= first:
            return words
    return None


def effort_refusal(model: str | None, effort: object) -> str | None:
    """The error of a model that lacks an effort level [recorded], or None."""
    levels = EFFORT_LEVELS.get(model or "")
    if levels is None or not isinstance(effort, str) or effort in levels:
        return None
    return (
        f"This model does not support effort level '{effort}'. Supported levels: "
        f"{', '.join(levels)}."
    )
