"""What Claude models differ in, read from their names. Unknown names forbid nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_BEFORE_4 = re.compile(r"claude-(?:[123](?:\D|\Z)|instant)")
_OLD_NAME = re.compile(r"claude-(?:[123](?:\D|\Z)|instant|4-(?:opus|sonnet))")

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

NO_FORCED_CHOICE: Mapping[tuple[str, tuple[int, int]], str] = {
    ("fable", (5, 0)): _NOT_COMPATIBLE,
    ("mythos", (5, 0)): _NOT_COMPATIBLE,
    ("fable", (5, 1)): _NOT_SUPPORTED,
    ("mythos", (5, 1)): _NOT_SUPPORTED,
    ("opus", (5, 5)): _NOT_SUPPORTED,
    ("sonnet", (5, 5)): _NOT_SUPPORTED,
}
"""The models that are known to take no forced choice, and their words for it."""

SYSTEM_IN_MESSAGES = frozenset(
    {
        ("fable", (5, 0)),
        ("fable", (5, 1)),
        ("haiku", (5, 5)),
        ("mythos", (5, 0)),
        ("mythos", (5, 1)),
        ("opus", (4, 8)),
        ("opus", (5, 0)),
        ("opus", (5, 5)),
        ("sonnet", (5, 5)),
    }
)
"""The models that take `role: system` inside `messages` [recorded: opus 4.8, fable 5; the others
reported]. Of Sonnet 5 the sources say both, so it is in neither list."""

EFFORT_LEVELS: Mapping[str, tuple[str, ...]] = {"claude-opus-4-6": ("high", "low", "max", "medium")}


def version(model: str | None) -> tuple[str, tuple[int, int]] | None:
    """Family and version: `claude-sonnet-4-5-20250929` is `("sonnet", (4, 5))`."""
    match = _NAME.search(model) if model is not None else None
    return (match[1], (int(match[2]), int(match[3] or 0))) if match is not None else None


def takes_tool_search(model: str | None) -> bool:
    """Whether a model loads tools on demand, as all do from Claude 4 on [documentation]."""
    return model is None or _BEFORE_4.search(model) is None


def refuses_prefill(model: str | None) -> bool:
    known = version(model)
    return (
        known is not None and known[0] in NO_PREFILL_FROM and known[1] >= NO_PREFILL_FROM[known[0]]
    )


def refuses_system_messages(model: str | None) -> bool:
    """Models before 4.6 know `system` only as a parameter [reported for haiku 4.5]."""
    known = version(model)
    if known is not None:
        return known[1] < (4, 6)
    return model is not None and _OLD_NAME.search(model) is not None


def takes_system_messages(model: str | None) -> bool:
    """Whether `role: system` inside `messages` is known to be taken: by the vendor's own API, under
    its own names only.
    """
    return (
        model is not None and model.startswith("claude-") and version(model) in SYSTEM_IN_MESSAGES
    )


def takes_prefill(model: str | None) -> bool:
    """Whether the last message is known to be allowed to be the assistant's."""
    known = version(model)
    if known is not None:
        return known[1] < NO_PREFILL_FROM[known[0]]
    return model is not None and _OLD_NAME.search(model) is not None


def forced_choice_refusal(model: str | None) -> str | None:
    """The error of a model that is known to take no `any` or `tool`, or None."""
    known = version(model)
    return None if known is None else NO_FORCED_CHOICE.get(known)


def effort_refusal(model: str | None, effort: object) -> str | None:
    """The error of a model that lacks an effort level [recorded], or None."""
    levels = EFFORT_LEVELS.get(model or "")
    if levels is None or not isinstance(effort, str) or effort in levels:
        return None
    return (
        f"This model does not support effort level '{effort}'. Supported levels: "
        f"{', '.join(levels)}."
    )
