"""What the content parts of both OpenAI APIs have in common, where a program wrote them for one API
alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.media import data_type
from lutumpy.rules.openai.shapes import missing, unknown, wrong_type
from lutumpy.rules.part_fields import Holds, find_misfit, holds_address, holds_base64
from lutumpy.rules.problem import Problem

__all__ = ["IMAGE_DETAILS", "check_fields", "holds_breakpoint", "holds_data_url", "holds_image"]

IMAGE_DETAILS = ("auto", "low", "high", "original")
"""How closely a model may look at an image [both APIs' types in the SDK]."""


def check_fields(
    rule: str,
    where: str,
    part: Mapping[str, Any],
    fields: Mapping[str, tuple[Mapping[str, Holds], Mapping[str, Holds]]],
) -> list[Problem]:
    """The first field of a part that doesn't fit, as a problem.

    Args:
        rule: Id of the rule about parts.
        where: The position of the part.
        part: The part.
        fields: By type: the required fields, and the optional ones.
    """
    misfit = find_misfit(part, *fields[str(part["type"])])
    if misfit is None:
        return []
    key, problem = misfit
    where = f"{where}.{key}"
    if problem == "missing":
        return [missing(rule, where)]
    if problem == "unknown":
        return [unknown(rule, where)]
    return [wrong_type(rule, where, "what the API describes", part[key])]


def holds_breakpoint(value: Any) -> bool:
    """A breakpoint of the prompt cache [the SDK's `PromptCacheBreakpoint`].

    A request may hold more of them than the API uses.
    """
    return (
        isinstance(value, Mapping)
        and value.get("mode") == "explicit"
        and value.keys() <= {"mode", "ttl"}
        and value.get("ttl", "30m") in ("30m", "12h")
    )


def holds_data_url(value: Any) -> bool:
    """Bytes with their media type, as a data URL."""
    if data_type(value) is None:
        return False
    _, _, data = value.partition(",")
    return holds_base64(data)


def holds_image(value: Any) -> bool:
    """The address of an image, or its bytes as a data URL."""
    return holds_address(value) or holds_data_url(value)
