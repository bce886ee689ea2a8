"""What Chat Completions takes of a content part that a program wrote for it alone.

Every field is one of OpenAI's API description (`ChatCompletionRequestUserMessageContentPart`),
since a part that was committed stays in every later request. A tool message holds text only, so the
adapter puts any other part of a result into a user's message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.chat.limits import AUDIO_FORMATS
from lutumpy.rules.openai.chat.messages import check_user_part
from lutumpy.rules.openai.parts import (
    IMAGE_DETAILS,
    check_fields,
    holds_breakpoint,
    holds_data_url,
    holds_image,
)
from lutumpy.rules.part_fields import Holds, find_misfit, holds_base64, holds_text
from lutumpy.rules.problem import Problem
from lutumpy.rules.shape import PartPlace

__all__ = ["FIELDS", "check_part"]

_WHERE = "messages[0].content[0]"


def check_part(value: Mapping[str, Any], place: PartPlace) -> list[Problem]:
    """What the API would say of such a part in a user's message, wherever it came from."""
    return check_user_part(_WHERE, value) or check_fields("chat.parts", _WHERE, value, FIELDS)


def _holds_image(value: Any) -> bool:
    details = {"detail": lambda detail: detail in IMAGE_DETAILS}
    return (
        isinstance(value, Mapping)
        and "type" not in value
        and find_misfit(value, {"url": holds_image}, details) is None
    )


def _holds_sound(value: Any) -> bool:
    fields: dict[str, Holds] = {"data": holds_base64, "format": AUDIO_FORMATS.__contains__}
    return (
        isinstance(value, Mapping)
        and "type" not in value
        and find_misfit(value, fields, {}) is None
    )


def _holds_file(value: Any) -> bool:
    """A file by its id, or its data with a name: OpenAI wants one with the data. That it is an
    object has been looked at.
    """
    if "file_id" in value:
        return find_misfit(value, {"file_id": holds_text}, {}) is None and "type" not in value
    fields: dict[str, Holds] = {"file_data": holds_data_url, "filename": holds_text}
    return find_misfit(value, fields, {}) is None and "type" not in value


FIELDS: Mapping[str, tuple[Mapping[str, Holds], Mapping[str, Holds]]] = {
    "text": ({"text": holds_text}, {"prompt_cache_breakpoint": holds_breakpoint}),
    "image_url": ({"image_url": _holds_image}, {"prompt_cache_breakpoint": holds_breakpoint}),
    "input_audio": ({"input_audio": _holds_sound}, {"prompt_cache_breakpoint": holds_breakpoint}),
    "file": ({"file": _holds_file}, {"prompt_cache_breakpoint": holds_breakpoint}),
}
