"""The Messages rules about what a request asks for beside an answer: threads, compaction, who pays.

Sources: the types and doc strings of Anthropic's SDKs (2.12); the API's own words for these
refusals are not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.anthropic.wording import shape
from lutumpy.rules.problem import Problem, items, mapping

# The words of these refusals are made up after the API's manner: none was recorded yet.
THREAD_KEYS: Mapping[str, frozenset[str]] = {
    "create": frozenset({"type"}),
    "continue": frozenset({"type", "previous_message_id"}),
}
FIXED_BY_THREAD = ("system", "tools")
"""What a thread was created with: a request that continues it doesn't repeat these [SDK]."""

COMPACTION_TYPES = ("summarize",)
COMPACTION_KEYS = frozenset({"type", "instructions"})
NOT_WITH_COMPACTION = ("context_management", "output_format", "stop_sequences")
"""What only shapes an answer, which a compaction has none of [SDK]."""

BILLING_KEYS = frozenset({"type", "bill_to"})
BILL_TO = ("self", "user_profile")


def continues_thread(body: Mapping[str, Any]) -> bool:
    """Whether the server has what comes before the messages, and the tools."""
    thread = mapping(body.get("thread"))
    return thread is not None and thread.get("type") == "continue"


def check_requested(body: Mapping[str, Any]) -> list[Problem]:
    """Problems of `thread`, `compaction` and `billing_policy`."""
    return _check_thread(body) + _check_compaction(body) + _check_billing(body)


def _list_choices(values: tuple[str, ...]) -> str:
    quoted = [f"'{value}'" for value in values]
    return "Input should be " + " or ".join(
        [", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted
    )


def _check_type(rule: str, where: str, value: Any, kinds: tuple[str, ...]) -> list[Problem]:
    """An object whose `type` is one of a few."""
    if not isinstance(value, Mapping):
        return [shape(rule, where, "Input should be an object")]
    kind = value.get("type")
    if kind is None:
        return [shape(rule, f"{where}.type", "Field required")]
    return [] if kind in kinds else [shape(rule, f"{where}.type", _list_choices(kinds))]


def _check_keys(
    rule: str, where: str, value: Mapping[str, Any], known: frozenset[str]
) -> list[Problem]:
    return [
        shape(rule, f"{where}.{key}", "Extra inputs are not permitted")
        for key in value
        if key not in known
    ]


def _check_thread(body: Mapping[str, Any]) -> list[Problem]:
    rule = "anthropic.thread"
    thread = body.get("thread")
    if thread is None:
        return []
    found = _check_type(rule, "thread", thread, tuple(THREAD_KEYS))
    if found:
        return found
    kind = thread["type"]
    where = f"thread.{kind}"
    found = _check_keys(rule, where, thread, THREAD_KEYS[kind])
    if kind == "create":
        return found
    where = f"{where}.previous_message_id"
    previous = thread.get("previous_message_id")
    if previous is None:
        found.append(shape(rule, where, "Field required"))
    elif not isinstance(previous, str):
        found.append(shape(rule, where, "Input should be a valid string"))
    for key in FIXED_BY_THREAD:
        if body.get(key) is not None:
            message = (
                f"{key}: a thread keeps the `{key}` that it was created with; leave it out to "
                "continue the thread"
            )
            found.append(Problem(rule, key, message, "refused"))
    return found


def _check_compaction(body: Mapping[str, Any]) -> list[Problem]:
    rule = "anthropic.compaction"
    compaction = body.get("compaction")
    if compaction is None:
        return []
    found = _check_type(rule, "compaction", compaction, COMPACTION_TYPES)
    if found:
        return found
    found = _check_keys(rule, "compaction", compaction, COMPACTION_KEYS)
    instructions = compaction.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        found.append(shape(rule, "compaction.instructions", "Input should be a valid string"))
    clashing = [key for key in NOT_WITH_COMPACTION if body.get(key) is not None]
    output, choice = mapping(body.get("output_config")), mapping(body.get("tool_choice"))
    if output is not None and output.get("format") is not None:
        clashing.append("output_config.format")
    if choice is not None and choice.get("type") in ("any", "tool"):
        clashing.append("tool_choice")
    for key in clashing:
        message = (
            f"{key}: cannot be combined with `compaction`, which gives no answer but the summary"
        )
        found.append(Problem(rule, key, message, "refused"))
    return found


def _check_billing(body: Mapping[str, Any]) -> list[Problem]:
    rule = "anthropic.billing_policy"
    policy = body.get("billing_policy")
    if policy is None:
        return []
    found = _check_type(rule, "billing_policy", policy, ("billing_policy",))
    if found:
        return found
    found = _check_keys(rule, "billing_policy", policy, BILLING_KEYS)
    bill_to = policy.get("bill_to")
    if bill_to is not None and bill_to not in BILL_TO:
        found.append(shape(rule, "billing_policy.bill_to", _list_choices(BILL_TO)))
    return found


def is_compacted(message: Any) -> bool:
    """Whether a message is a summary alone: the answer to a compaction, which the next request may
    end with.
    """
    blocks = items(message.get("content")) if isinstance(message, Mapping) else ()
    return bool(blocks) and all(
        isinstance(block, Mapping) and block.get("type") == "compaction" for block in blocks
    )
