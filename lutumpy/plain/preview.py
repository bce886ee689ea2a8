"""Texts cut short for messages, logs and reports: the only place that shortens, with one mark."""

from __future__ import annotations

from lutumpy.plain import json_values

__all__ = ["MARK", "preview", "shorten"]

MARK = "…"
"""What a text that was cut ends in."""


def shorten(text: str, most: int) -> str:
    """The beginning of `text` in at most `most` characters, the mark included; a text that fits
    comes back whole.
    """
    return text if len(text) <= most else text[: most - len(MARK)] + MARK


def preview(text: str, max_bytes: int, *, mark: str = MARK) -> str:
    """The beginning of `text` in at most `max_bytes` bytes of UTF-8, cut between characters.

    A text that fits comes back whole. One that doesn't ends in `mark`, so that it is seen to be
    cut; where the mark itself doesn't fit, in as many dots as do. Lone surrogates are shown as
    U+FFFD.

    Args:
        text: Any text.
        max_bytes: The most bytes that the result has in UTF-8.
        mark: What a cut text ends in; empty for nothing.

    Raises:
        ValueError: `max_bytes` is negative.
    """
    if max_bytes < 0:
        raise ValueError(f"max_bytes must be 0 or more, not {max_bytes}")
    # A character has at least one byte, so what lies behind these can't be part of the result.
    data = json_values.clean_text(text[: max_bytes + 1]).encode()
    if len(data) <= max_bytes:
        return data.decode()
    end = mark.encode()
    if len(end) > max_bytes:
        end = b"." * max_bytes
    return (data[: max_bytes - len(end)]).decode("utf-8", "ignore") + end.decode()
