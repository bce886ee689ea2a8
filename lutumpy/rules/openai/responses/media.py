"""What a content part of Responses shows: images and files, named in the part itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.media import (
    check_address,
    check_file_data,
    check_file_url,
    check_image,
    check_texts,
)
from lutumpy.rules.openai.shapes import missing, wrong_type
from lutumpy.rules.problem import Problem

__all__ = ["check_shown_file", "check_shown_image"]


def check_shown_image(where: str, part: Mapping[str, Any]) -> list[Problem]:
    """Problems of a part `input_image` of Responses."""
    rule = "responses.media_source"
    url, url_at = part.get("image_url"), f"{where}.image_url"
    if url is None and part.get("file_id") is None:
        return [missing(rule, url_at, "some")]
    if url is not None and not isinstance(url, str):
        return [wrong_type(rule, url_at, "an image URL", url)]
    found = check_texts(rule, where, part, ("file_id",))
    if found or url is None:
        return found
    found = check_address(rule, url_at, url)
    return found or check_image("responses.image_type", "responses.part_length", url_at, url)


def check_shown_file(where: str, part: Mapping[str, Any]) -> list[Problem]:
    """Problems of a part `input_file` of Responses."""
    rule = "responses.media_source"
    found = check_texts(rule, where, part, ("file_data", "file_id", "file_url", "filename"))
    if found:
        return found
    data, data_at = part.get("file_data"), f"{where}.file_data"
    found = check_file_data("responses.file_data", "responses.part_length", rule, data_at, data)
    if not found and data is not None and not part.get("filename"):
        return [missing(rule, where)]  # [reported: laravel/ai#321]
    # One problem for one file, even if it has both data and an address.
    url_at = f"{where}.file_url"
    return found or check_file_url("responses.file_url", url_at, part.get("file_url"))
