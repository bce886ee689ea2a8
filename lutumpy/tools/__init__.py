"""What can be called: signatures to models, models to definitions, definitions to toolsets.

The names here are for functions that take a toolset, and for code that runs tools. What declares
tools is public at the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.doors import find_name, homes_of

if TYPE_CHECKING:
    from lutumpy.tools.call_identity import (
        IdempotencyKey,
        call_arguments,
        final_arguments,
        idempotency_key,
        written_arguments,
        written_text,
    )
    from lutumpy.tools.definition import ProviderSettings, content_of
    from lutumpy.tools.digests import canonical_content, digest_of
    from lutumpy.tools.dynamic_group import tool_key
    from lutumpy.tools.failures import failure_text, is_for_the_model
    from lutumpy.tools.polled import Polled, Poller, poll_once, polled_by, poller_of
    from lutumpy.tools.portable_input import NotPortable, load_input
    from lutumpy.tools.promised import fit_late_result, still_running_reason
    from lutumpy.tools.questions import Asked, CallLeg, Question, asking, find_misfit, may_ask
    from lutumpy.tools.result_dumps import RESULT_READERS
    from lutumpy.tools.results import HasMetadata, failed_result
    from lutumpy.tools.selectors import ByTool, extended_selector, extends
    from lutumpy.tools.ticket_making import make_ticket, restored_origin, ticket_in_plan
    from lutumpy.tools.views import HasView, View

__all__ = [
    "RESULT_READERS",
    "Asked",
    "ByTool",
    "CallLeg",
    "HasMetadata",
    "HasView",
    "IdempotencyKey",
    "NotPortable",
    "Polled",
    "Poller",
    "ProviderSettings",
    "Question",
    "View",
    "asking",
    "call_arguments",
    "canonical_content",
    "content_of",
    "digest_of",
    "extended_selector",
    "extends",
    "failed_result",
    "failure_text",
    "final_arguments",
    "find_misfit",
    "fit_late_result",
    "idempotency_key",
    "is_for_the_model",
    "load_input",
    "make_ticket",
    "may_ask",
    "poll_once",
    "polled_by",
    "poller_of",
    "restored_origin",
    "still_running_reason",
    "ticket_in_plan",
    "tool_key",
    "written_arguments",
    "written_text",
]

_HOMES = homes_of(
    {
        "lutumpy.tools.call_identity": [
            "IdempotencyKey",
            "call_arguments",
            "final_arguments",
            "idempotency_key",
            "written_arguments",
            "written_text",
        ],
        "lutumpy.tools.definition": ["ProviderSettings", "content_of"],
        "lutumpy.tools.digests": ["canonical_content", "digest_of"],
        "lutumpy.tools.dynamic_group": ["tool_key"],
        "lutumpy.tools.failures": ["failure_text", "is_for_the_model"],
        "lutumpy.tools.polled": ["Polled", "Poller", "poll_once", "polled_by", "poller_of"],
        "lutumpy.tools.portable_input": ["NotPortable", "load_input"],
        "lutumpy.tools.promised": ["fit_late_result", "still_running_reason"],
        "lutumpy.tools.questions": [
            "Asked",
            "CallLeg",
            "Question",
            "asking",
            "find_misfit",
            "may_ask",
        ],
        "lutumpy.tools.result_dumps": ["RESULT_READERS"],
        "lutumpy.tools.results": ["HasMetadata", "failed_result"],
        "lutumpy.tools.selectors": ["ByTool", "extended_selector", "extends"],
        "lutumpy.tools.ticket_making": [
            "make_ticket",
            "restored_origin",
            "ticket_in_plan",
        ],
        "lutumpy.tools.views": ["HasView", "View"],
    }
)

if not TYPE_CHECKING:  # a checker would take every name for one of this module's

    def __getattr__(name: str) -> Any:
        return find_name(__name__, _HOMES, name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
