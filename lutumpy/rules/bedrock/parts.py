"""What Converse takes of a content part that a program wrote for it alone.

The rules about blocks (`blocks`) look at requests of any origin, and let pass what only some models
refuse. A part that is going to be committed is looked at more closely, since it stays in every
later request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.rules.bedrock.blocks import RESULT_KEYS, check_block
from lutumpy.rules.bedrock.media import check_media
from lutumpy.rules.bedrock.shapes import refusal
from lutumpy.rules.part_fields import holds_base64
from lutumpy.rules.problem import Problem, is_array
from lutumpy.rules.shape import PartPlace

__all__ = ["check_part"]

_MESSAGE_KEYS = "audio cachePoint document guardContent image searchResult text video".split()
_WHERE = "messages.0.content.0"


def check_part(value: Mapping[str, Any], place: PartPlace) -> list[Problem]:
    """What the API would say of such a block in a user's message or in a result.

    Args:
        value: The block.
        place: Where it is going to be.
    """
    keys = RESULT_KEYS if place == "result" else _MESSAGE_KEYS
    found = check_block(_WHERE, value, in_result=place == "result")
    if not found and next(iter(value)) not in keys:
        words = f"{_WHERE}: user messages cannot contain `{next(iter(value))}` blocks"
        found.append(refusal("converse.block", _WHERE, words))
    if not found:
        message = {"role": "user", "content": [value, {"text": "x"}]}
        found += [p for p in check_media([message], None) if p.rule == "converse.document_name"]
    for data in _blobs_in(value) if not found else ():
        if not holds_base64(data):
            words = f"{_WHERE}: the bytes of a block are base64 text, and not empty"
            found.append(refusal("converse.block", _WHERE, words))
    return found


def _blobs_in(value: Any) -> Iterator[Any]:
    """What is under `bytes`, at any level; what a tool said as JSON is its own."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "bytes":
                yield inner
            elif key != "json":
                yield from _blobs_in(inner)
    elif is_array(value):
        for inner in value:
            yield from _blobs_in(inner)
