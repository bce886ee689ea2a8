"""What Chat Completions doesn't read of a message, although another API says something there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.problem import Problem, items

__all__ = ["check_overlooked"]


def check_overlooked(where: str, message: Mapping[str, Any]) -> list[Problem]:
    """Contents of Gemini and of front ends under `parts`, and images of Ollama.

    Images that are objects are left alone: some hosts of this API say them, and take them back.
    """
    key = ""
    if message.get("content") == "" and message.get("parts"):
        key = "parts"
    elif any(isinstance(image, str) for image in items(message.get("images"))):
        key = "images"
    if not key:
        return []
    text = f"a message of another API: what is under `{key}` isn't read by this one"
    return [Problem("chat.content", f"{where}.{key}", text, "discouraged")]
