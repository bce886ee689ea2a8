"""The Messages rules about images and documents that are in the request itself.

Sources: the source types of Anthropic's API description (`Base64ImageSource`, `PlainTextSource`,
...), and refusals that users report. What is at an address isn't known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lutumpy.rules.anthropic.limits import MAX_DOCUMENT, MAX_IMAGE
from lutumpy.rules.anthropic.wording import check_keys, shape, wrong_tag
from lutumpy.rules.media import IMAGE_TYPES, PDF, PLAIN, type_of_bytes
from lutumpy.rules.problem import Problem, is_array

__all__ = ["SOURCES", "check_source"]

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
    shown = type_of_bytes(data) if kind == "image" else None
    if shown is not None and shown != media_type:
        message = f"Image does not match the provided media type {media_type}"
        return [shape(kind_rule, f"{where}.data", message)]
    return []


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
