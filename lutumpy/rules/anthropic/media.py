"""The Messages rules about images and documents that are in the request itself.

Sources: the source types of Anthropic's API description (`Base64ImageSource`, `PlainTextSource`,
...), and refusals that users report. What is at an address isn't known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lutumpy.rules.anthropic.limits import MAX_DOCUMENT, MAX_IMAGE
from lutumpy.rules.anthropic.wording import check_keys, shape, wrong_tag
from lutumpy.rules.media import IMAGE_TYPES, PDF, PLAIN, type_of_bytes
from lutumpy.rules.problem import Problem, is_array, items

__all__ = ["SOURCES", "check_many_images", "check_source"]

SOURCES: Mapping[str, tuple[str, ...]] = {
    "base64": ("data", "media_type"),
    "content": ("content",),
    "file": ("file_id",),
    "text": ("data", "media_type"),
    "url": ("url",),
}
"""What a source has besides its type, by that type: first what is shown, which is a text, or blocks
in `content`."""
_OF_IMAGES = ("base64", "file", "url")
# Both alphabets, and white space: which of them the API reads isn't known.
_BASE64 = re.compile(r"[A-Za-z0-9+/_\s-]+(?:=\s*){0,2}\Z")


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
    kind = block.get("type")
    source: Any = block.get("source")
    found = _check_members(f"{where}.source", source, is_image=kind == "image")
    if found or source["type"] not in ("base64", "text"):
        return found
    form = source["type"]
    where = f"{where}.source.{form}"
    media_type, data = source.get("media_type"), source["data"]
    if form == "base64" and _BASE64.match(data) is None:
        return [shape("anthropic.media_source", where, "invalid base64 data")]
    found = _check_type(kind_rule, where, media_type, kind, form)
    if found:
        return found
    most = MAX_IMAGE if kind == "image" else MAX_DOCUMENT
    if len(data) > most:
        size = f"{kind} exceeds {most >> 20} MB maximum: {len(data)} bytes > {most} bytes"
        return [shape(size_rule, where, size)]
    if kind != "image":
        return []
    shown = type_of_bytes(data)
    if shown is not None and shown != media_type:
        message = f"Image does not match the provided media type {media_type}"
        return [shape(kind_rule, f"{where}.data", message)]
    from lutumpy.rules.claude_images import pixels_refusal  # few conversations show anything

    refusal = pixels_refusal(data)
    return [shape("anthropic.image_pixels", f"{where}.data", refusal)] if refusal else []


def check_many_images(messages: Any) -> list[Problem]:
    """Images that a request with many takes only if they are smaller."""
    images = list(_images_in(messages))
    if not images:
        return []
    from lutumpy.rules.claude_images import MANY_IMAGES, pixels_refusal

    if len(images) <= MANY_IMAGES:
        return []
    found: list[Problem] = []
    for where, block in images:
        source = block.get("source")
        data = source.get("data") if isinstance(source, Mapping) else None
        if not isinstance(data, str):
            continue
        refusal = pixels_refusal(data, beside_many=True)
        # One that no request takes was found as its block was looked at.
        if refusal and not pixels_refusal(data):
            at = f"{where}.image.source.base64.data"
            found.append(shape("anthropic.image_pixels", at, refusal))
    return found


def _images_in(messages: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every image in messages and in the results in them, with its position."""
    for index, message in enumerate(items(messages)):
        content = message.get("content") if isinstance(message, Mapping) else None
        for number, block in enumerate(items(content)):
            if not isinstance(block, Mapping):
                continue
            where = f"messages.{index}.content.{number}"
            if block.get("type") == "image":
                yield where, block
            elif block.get("type") == "tool_result":
                for place, part in enumerate(items(block.get("content"))):
                    if isinstance(part, Mapping) and part.get("type") == "image":
                        yield f"{where}.tool_result.content.{place}", part


def _check_members(where: str, source: Any, *, is_image: bool) -> list[Problem]:
    """The source is one of the forms that the API knows, and has what that form consists of."""
    rule = "anthropic.media_source"
    if source is None:
        return [shape(rule, where, "Field required")]
    if not isinstance(source, Mapping):
        return [shape(rule, where, "Input should be an object")]
    form: Any = source.get("type")
    forms = _OF_IMAGES if is_image else tuple(SOURCES)
    if form not in forms:
        return [shape(rule, where, wrong_tag(form, forms))]
    key = SOURCES[form][0]
    value, at = source.get(key), f"{where}.{form}.{key}"
    if value is None:
        return [shape(rule, at, "Field required")]
    if not isinstance(value, str) and not (form == "content" and is_array(value)):
        return [shape(rule, at, "Input should be a valid string")]
    extra = check_keys(rule, f"{where}.{form}", source, frozenset(("type", *SOURCES[form])))
    return [replace(problem, position=where) for problem in extra]


def _check_type(rule: str, where: str, media_type: Any, kind: Any, form: str) -> list[Problem]:
    expected = (PLAIN,) if form == "text" else IMAGE_TYPES if kind == "image" else (PDF,)
    if media_type in expected:
        return []
    where = f"{where}.media_type"
    if media_type is None:
        return [shape(rule, where, "Field required")]
    *others, last = [f"'{name}'" for name in expected]
    listed = f"{', '.join(others)} or {last}" if others else last
    return [shape(rule, where, f"Input should be {listed}")]
