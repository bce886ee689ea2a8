"""What Responses takes of a content part that a program wrote for it alone: the same in a user's
message and in the output of a call.

Every field is one of OpenAI's API description (`InputTextContentParam`, `InputImageContentParam`,
`InputFileContentParam`), since a part that was committed stays in every later request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.parts import (
    IMAGE_DETAILS,
    check_fields,
    holds_breakpoint,
    holds_data_url,
    holds_image,
)
from lutumpy.rules.openai.responses.items import check_input_part
from lutumpy.rules.openai.shapes import missing
from lutumpy.rules.part_fields import Holds, holds_address, holds_text
from lutumpy.rules.problem import Problem
from lutumpy.rules.shape import PartPlace

__all__ = ["FIELDS", "check_part"]

_WHERE = "input[0].content[0]"
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_data", "file_id", "file_url"),
}
FIELDS: Mapping[str, tuple[Mapping[str, Holds], Mapping[str, Holds]]] = {
    "input_text": ({"text": holds_text}, {"prompt_cache_breakpoint": holds_breakpoint}),
    "input_image": (
        {},
        {
            "image_url": holds_image,
            "file_id": holds_text,
            "detail": lambda value: value in IMAGE_DETAILS,
            "prompt_cache_breakpoint": holds_breakpoint,
        },
    ),
    "input_file": (
        {},
        {
            "file_data": holds_data_url,
            "file_id": holds_text,
            "file_url": holds_address,
            "filename": holds_text,
            "detail": lambda value: value in ("auto", "low", "high"),
            "prompt_cache_breakpoint": holds_breakpoint,
        },
    ),
}


def check_part(value: Mapping[str, Any], place: PartPlace) -> list[Problem]:
    """What the API would say of such a part."""
    found = check_input_part(_WHERE, value)
    return found or check_fields("responses.parts", _WHERE, value, FIELDS) or _check_source(value)


def _check_source(part: Mapping[str, Any]) -> list[Problem]:
    """An image or a file has one source."""
    sources = _SOURCES.get(str(part["type"]))
    if sources is None:
        return []
    if len([key for key in sources if key in part]) != 1:
        return [missing("responses.parts", f"{_WHERE}.{sources[0]}")]
    return []
