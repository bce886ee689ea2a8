"""The Responses rules about how a request is run: in the background, or only counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.problem import Problem

COUNT_PARAMETERS = frozenset(
    "conversation input instructions model parallel_tool_calls personality previous_response_id reasoning text "
    "tool_choice tools truncation".split()
)
"""What `POST /v1/responses/input_tokens` takes."""

LATER_WINDOWS = ("2h", "8h")


def check_background(body: Mapping[str, Any]) -> list[Problem]:
    """An answer in the background is stored, or nobody could fetch it [documentation]; a later one isn't streamed [SDK].

    The API's own words for these are not recorded.
    """
    found: list[Problem] = []
    background = body.get("background") is True
    if background and body.get("store") is False:
        message = "Background mode requires 'store' to be true."
        found.append(Problem("responses.background", "store", message, "refused", param="store"))
    options = body.get("background_options")
    window = options.get("completion_window") if isinstance(options, Mapping) else None
    if window in LATER_WINDOWS and (not background or body.get("stream") is True):
        where = "background_options.completion_window"
        message = f"The completion window '{window}' requires 'background' to be true and 'stream' to be false."
        found.append(Problem("responses.background", where, message, "refused", param=where))
    return found
