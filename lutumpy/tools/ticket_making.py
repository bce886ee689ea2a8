"""A ticket of a call, for whoever runs it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from lutumpy.core.items import ToolMetadata
from lutumpy.core.origin import Origin
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.portable_input import dump_input
from lutumpy.tools.tickets import CallTicket

__all__ = ["make_ticket", "restored_origin"]


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
    )


def restored_origin(at: str, calls: Sequence[ToolMetadata]) -> Origin | None:
    """The place that a ticket names: `CallTicket.at`, and the calls of its answer.

    Raises:
        ValueError: `at` isn't hexadecimal.
    """
    return Origin.at(bytes.fromhex(at), calls) if at else None
