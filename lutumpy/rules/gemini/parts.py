"""What generateContent takes of a part that a program wrote for it alone.

The rules about parts (`blocks.py`) look at requests of any origin, and let pass what nobody has
seen refused. A part that is going to be committed is looked at more closely, since it stays in
every later request: it says or shows something, and is nothing that belongs to a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.gemini.blocks import check_part as check_shape
from lutumpy.rules.gemini.blocks import check_shown, data_of
from lutumpy.rules.gemini.fields import field
from lutumpy.rules.gemini.wording import problem
from lutumpy.rules.part_fields import holds_text
from lutumpy.rules.problem import Problem
from lutumpy.rules.shape import PartPlace

__all__ = ["check_part"]

_MESSAGE_DATA = ("text", "inlineData", "fileData")
_OF_MODEL = ("thought", "thoughtSignature")


def check_part(value: Mapping[str, Any], place: PartPlace) -> list[Problem]:
    """What the API would say of such a part in a user's content or in a result.

    Args:
        value: The part.
        place: Where it is going to be.
    """
    path = (0, "parts", 0)
    if place == "result":
        shown = [name for name in ("inlineData", "fileData") if field(value, name) is not None]
        found = check_shown(path, value)
        if found or len(shown) == 1:
            return found
        message = "{}.data: required oneof field 'data' must have one initialized field"
        return [problem("gemini.result_parts", path, message)]
    found = check_shape(path, value)
    wrong = [name for name in data_of(value) if name not in _MESSAGE_DATA]
    wrong += [name for name in _OF_MODEL if field(value, name) is not None]
    if not found and (wrong or ("text" in value and not holds_text(value["text"]))):
        message = f"{{}}: {', '.join(wrong) or 'text'} can't stand in a part of the user"
        return [problem("gemini.part", path, message)]
    return found
