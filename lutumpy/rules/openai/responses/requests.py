"""The rules of Responses about how a request is run: in the background, or only counted.

Sources: OpenAI's documentation and its SDK. The API's own texts for these are not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.problem import Problem

COUNT_PARAMETERS = frozenset(
    "conversation input instructions model parallel_tool_calls personality previous_response_id "
    "reasoning text tool_choice tools truncation".split()
)
"""The keys of a request to `POST /v1/responses/input_tokens`, which counts its tokens [SDK]."""

LATER_WINDOWS = ("2h", "8h")
"""Completion windows in which the answer is not made at once [SDK]."""


def check_background(body: Mapping[str, Any]) -> list[Problem]:
    """The problems of an answer that is made in the background.

    It is stored, or nobody could fetch it [documentation]; one that is made later isn't streamed
    [SDK].
    """
    found: list[Problem] = []
    background = body.get("background") is True
    if background and body.get("store") is False:
        message = "Background mode requires 'store' to be true."
        found.append(Problem("responses.background", "store", message, "refused", param="store"))
    # What is made in a later window can't be streamed now.
    options = body.get("background_options")
    window = options.get("completion_window") if isinstance(options, Mapping) else None
    if window in LATER_WINDOWS and (not background or body.get("stream") is True):
        where = "background_options.completion_window"
        message = (
            f"The completion window '{window}' requires 'background' to be true and 'stream' to be "
            "false."
        )
        found.append(Problem("responses.background", where, message, "refused", param=where))
    return found
