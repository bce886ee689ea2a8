"""The Messages rules about images and documents that are in the request itself.

Sources: `Base64ImageSource`, `Base64PDFSource` and `PlainTextSource` of Anthropic's API
description, and refusals that users report. What is at an address isn't known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.anthropic.limits import MAX_DOCUMENT, MAX_IMAGE
from lutumpy.rules.media import IMAGE_TYPES, PDF, PLAIN
from lutumpy.rules.problem import Problem

__all__ = ["check_source"]


def check_source(
    kind_rule: str, size_rule: str, where: str, block: Mapping[str, Any]
) -> list[Problem]:
    """Problems of the source of an image or a document.

    Args:
        kind_rule: Id of the rule about media types.
        size_rule: Id of the rule about sizes.
        where: The position of the block, its kind included.
        block: The block.
    """
    source, kind = block.get("source"), block.get("type")
    if not isinstance(source, Mapping):
        return []
    form = source.get("type")
    if form not in ("base64", "text") or (kind == "image" and form == "text"):
        return []
    if kind == "image":
        expected: tuple[str, ...] = IMAGE_TYPES
        most = MAX_IMAGE
    else:
        expected = (PLAIN,) if form == "text" else (PDF,)
        most = MAX_DOCUMENT
    where = f"{where}.source.{form}"
    media_type, data = source.get("media_type"), source.get("data")
    type_position = f"{where}.media_type"
    if media_type is None:
        return [Problem(kind_rule, type_position, f"{type_position}: Field required", "refused")]
    if media_type not in expected:
        *others, last = [f"'{name}'" for name in expected]
        listed = f"{', '.join(others)} or {last}" if others else last
        message = f"{type_position}: Input should be {listed}"
        return [Problem(kind_rule, type_position, message, "refused")]
    if isinstance(data, str) and len(data) > most:
        megabytes = most >> 20
        message = (
            f"{where}: {kind} exceeds {megabytes} MB maximum: {len(data)} bytes > {most} bytes"
        )
        return [Problem(size_rule, where, message, "refused")]
    return []
