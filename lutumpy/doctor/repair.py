"""One proposed repair: what was wrong, why this mends it, and the exact edit."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from lutumpy.plain.values import dataclass

__all__ = ["Operation", "Repair", "RepairKind"]

RepairKind = Literal[
    "close_call",
    "drop_call",
    "drop_result",
    "move_result",
    "move_call",
    "move_message",
    "convert_message",
    "match_result",
    "rename_id",
    "replace_id",
    "drop_id",
    "rename_tool",
    "wrap_arguments",
    "drop_reasoning",
    "drop_empty",
    "drop_duplicate",
    "drop_reference",
    "drop_key",
    "set_role",
    "set_content",
    "set_field",
    "move_content",
    "replace_characters",
]
"""What a repair does; `KINDS` in the catalogue and `docs/doctor.md` say it in a sentence each."""

Operation: TypeAlias = "dict[str, Any]"
"""One operation of a JSON Patch (RFC 6902)."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A proposed repair. Nothing is changed until `apply_repairs` is called.

    Attributes:
        kind: What it does.
        rule: Id of the rule that was broken.
        reason: What was wrong and what the edit does, in words.
        position: Where the problem is, as the provider writes it, in the messages as they are
            before this repair; empty for the whole.
        call_ids: Ids of the calls that it is about, as they are before it.
        tools: Names of their tools, where known.
        patch: The edit: JSON Patch operations (RFC 6902) against the list of messages **as it is
            after the repairs before this one**. It begins with `test` operations, so that it fits
            no other history; a value that isn't JSON can't be tested. A list of dictionaries of
            JSON values, ready for `json.dumps`.
        drops_reasoning: The positions of signed reasoning that it takes out besides, as they are
            before it: a model that binds its reasoning would refuse or lose it behind what the
            repair changes. Only where the model was named.
    """

    kind: RepairKind
    rule: str
    reason: str
    position: str
    call_ids: tuple[str, ...]
    tools: tuple[str, ...]
    patch: list[Operation]
    drops_reasoning: tuple[str, ...] = ()
