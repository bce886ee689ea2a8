"""What a content part of Chat Completions shows: images and files, each in an object of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.media import check_address, check_file_data, check_image, check_texts
from lutumpy.rules.openai.shapes import missing, wrong_type
from lutumpy.rules.problem import Problem

__all__ = ["check_shown_file", "check_shown_image"]


def check_shown_image(where: str, image: Any) -> list[Problem]:
    """Problems of the image that a part of Chat Completions shows.

    Args:
        where: The position of `image_url`.
        image: What stands there.
    """
    rule = "chat.media_source"
    if not isinstance(image, Mapping):
        return [wrong_type(rule, where, "an object", image)]
    where, url = f"{where}.url", image.get("url")
    if url is None:
        return [missing(rule, where)]
    if not isinstance(url, str):
        return [wrong_type(rule, where, "a string", url)]
    found = check_address(rule, where, url)
    return found or check_image("chat.image_type", "chat.part_length", where, url)


def check_shown_file(where: str, file: Any) -> list[Problem]:
    """Problems of the file that a part of Chat Completions shows.

    Args:
        where: The position of `file`.
        file: What stands there.
    """
    rule = "chat.media_source"
    if not isinstance(file, Mapping):
        return [wrong_type(rule, where, "an object", file)]
    found = check_texts(rule, where, file, ("file_data", "file_id", "filename"))
    data, data_at = file.get("file_data"), f"{where}.file_data"
    found = found or check_file_data("chat.file_data", "chat.part_length", rule, data_at, data)
    if not found and file.get("file_id") is None and (data is None or not file.get("filename")):
        # Data without a name counts for nothing [reported: openai/openai-agents-python#1513].
        return [missing(rule, f"{where}.file_id")]
    return found
