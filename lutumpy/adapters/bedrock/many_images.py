"""Images of a request with many, of which Claude takes none over 2,000 pixels a side: a text says
what was left out (rule K7).

It depends on the whole request, so it is settled in a copy: the messages themselves stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lutumpy.adapters.bedrock.carriers import without_reasoning
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.claude_images import LEFT_OUT, MANY_IMAGES, is_wide

__all__ = ["fit_images"]

_IMAGE = b'"image":{'


def fit_images(messages: list[bytes], binds: bool) -> list[bytes]:
    """The messages as a request takes them.

    Args:
        messages: The messages, as they were written.
        binds: The model signs its reasoning over everything before it (rule R5): behind a message
            that had to be changed it is left out.
    """
    # Arguments of a call may have such a key as well, so this is the most that there can be.
    if sum(message.count(_IMAGE) for message in messages) <= MANY_IMAGES:
        return messages
    shown = {n: json_values.decode(m) for n, m in enumerate(messages) if _IMAGE in m}
    if sum(1 for message in shown.values() for _ in _images_in(message)) <= MANY_IMAGES:
        return messages
    fitted: list[bytes] = []
    is_changed = False
    for index, message in enumerate(messages):
        if index in shown and _leave_out_wide(shown[index]):
            is_changed = True
            message = encode(shown[index])
        elif is_changed and binds and b'"reasoningContent":' in message:
            message = without_reasoning(message)
        fitted.append(message)
    return fitted


def _leave_out_wide(message: dict[str, Any]) -> bool:
    """Whether a message had an image that is too wide, in whose place there is a text now."""
    places = [(blocks, at) for blocks, at in _images_in(message) if _is_wide(blocks[at]["image"])]
    for blocks, at in places:
        blocks[at] = {"text": LEFT_OUT}
    return bool(places)


def _images_in(message: dict[str, Any]) -> Iterator[tuple[list[Any], int]]:
    """The lists of blocks with an image, and where in them: those of results as well."""
    lists: list[Any] = [message.get("content")]
    while lists:
        blocks = lists.pop()
        for at, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if not isinstance(block, dict):
                continue
            if isinstance(block.get("image"), dict):
                yield blocks, at
            elif isinstance(block.get("toolResult"), dict):
                lists.append(block["toolResult"].get("content"))


def _is_wide(image: dict[str, Any]) -> bool:
    source = image.get("source")
    data = source.get("bytes") if isinstance(source, dict) else None
    return isinstance(data, str) and is_wide(data)
