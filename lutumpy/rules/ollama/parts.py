"""What a program may write for this API alone.

A message has no parts here: its content is one text, and images are beside it. So such a part is
an object of further fields of the message, as `{"images": ["..."]}`; those that the adapter writes
itself can't be among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.ollama.messages import is_base64
from lutumpy.rules.ollama.shapes import refusal, wrong_type
from lutumpy.rules.problem import Problem, is_array
from lutumpy.rules.shape import PartPlace

__all__ = ["check_part"]

_WRITTEN = ("role", "content", "tool_calls", "tool_name", "tool_call_id")


def check_part(value: Mapping[str, Any], place: PartPlace) -> list[Problem]:
    """What stands against such a part.

    Args:
        value: The part.
        place: Where it is going to be; there is no difference.
    """
    where = "messages[0]"
    wrong = [key for key in _WRITTEN if key in value]
    if wrong or not value:
        what = ", ".join(wrong) or "nothing"
        text = f"a part for this API holds further fields of its message, not {what}"
        return [refusal("ollama.content", where, text)]
    if "images" not in value:
        return []
    images = value["images"]
    if not is_array(images) or not images:
        return [wrong_type("ollama.images", f"{where}.images", images, "[]api.ImageData")]
    return [
        refusal("ollama.images", f"{where}.images[{number}]", "illegal base64 data at input byte 0")
        for number, image in enumerate(images)
        if not isinstance(image, str) or not image or not is_base64(image)
    ]
