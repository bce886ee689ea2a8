"""A ticket of a call, for whoever runs it elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.core.call_place import CallPlace
from lutumpy.core.items import ToolMetadata
from lutumpy.tools.call_identity import written_text
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.portable_input import dump_input
from lutumpy.tools.tickets import CallTicket

__all__ = ["make_ticket", "restored_origin", "ticket_in_plan"]


def make_ticket(call: BaseToolCall, *, scope: str, key: str, equal_to: str) -> CallTicket:
    """The ticket of one call.

    Args:
        call: The call.
        scope: The conversation's id.
        key: Its idempotency key.
        equal_to: The text that is the same for equal calls (`call_arguments`).

    Raises:
        NotPortable: its input doesn't survive JSON.
    """
    definition = call.selector.definition
    options, origin, metadata = definition.options, call.origin, call.metadata
    leg, resume = (0, None) if call.leg is None else call.leg
    return CallTicket(
        scope,
        metadata.id,
        metadata.name,
        metadata.arguments,
        dump_input(call),
        str(key),
        options.effect,
        float(options.timeout),
        options.max_retries,
        call.tool.digest,
        "" if origin is None else origin.digest().hex(),
        0 if origin is None else origin.occurrence(metadata),
        equal_to,
        metadata.is_text,
        options.late,
        leg,
        resume,
    )


def restored_origin(at: str, calls: Sequence[ToolMetadata]) -> CallPlace | None:
    """The place that a ticket names: `CallTicket.at`, and the calls of its answer.

    Raises:
        ValueError: `at` isn't hexadecimal.
    """
    return CallPlace.at(bytes.fromhex(at), calls) if at else None


def ticket_in_plan(plan: Mapping[str, Any], call: Mapping[str, Any]) -> CallTicket:
    """The ticket of a call that a dumped plan says of itself, whatever its tool is now.

    It names the call for a journal: what came of it before, and what is unresolved. It has no
    limits to run it with.

    Args:
        plan: The dump of a plan, which was checked.
        call: One of its `calls`, which was pending or held.
    """
    is_text = call.get("is_text") is True
    make = ToolMetadata.of_text if is_text else ToolMetadata
    metadata = make(call["call_id"], call["tool"], call["arguments"])
    return CallTicket(
        scope=plan["scope"],
        call_id=metadata.id,
        tool=metadata.name,
        arguments=metadata.arguments,
        input=call["input"],
        key=call["key"],
        effect=call["effect"],
        timeout=math.inf,
        max_retries=0,
        tool_digest=plan["toolset"]["tools"][metadata.name],
        at=plan["at"]["digest"],
        occurrence=0,
        equal_to=call.get("equal_to") or written_text(metadata),
        is_text=is_text,
    )
