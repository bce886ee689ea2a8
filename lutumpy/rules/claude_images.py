"""How large images may be for Claude, wherever it is served: its own API and Bedrock refuse others
in the same words, and every later request that still has them.

Sources: the vendor's page on vision ("Request limits"), and refusals that users report of both
(anthropics/claude-code#4778 and #49537; a fix to
aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws, #998).
"""

from __future__ import annotations

from lutumpy.rules.image_size import longest_side

__all__ = [
    "LEFT_OUT",
    "MANY_IMAGES",
    "MAX_PIXELS",
    "MAX_PIXELS_OF_MANY",
    "is_wide",
    "pixels_refusal",
]

MAX_PIXELS = 8_000
"""Pixels of each side of an image."""
MANY_IMAGES = 20
"""Images in a request, those of results included: with more of them, none may have a side with more
than `MAX_PIXELS_OF_MANY`."""
MAX_PIXELS_OF_MANY = 2_000
"""Pixels of each side of an image in a request with many."""
LEFT_OUT = f"[image left out: {MAX_PIXELS_OF_MANY} pixels a side is the most beside many images]"
"""The text in place of an image that a request with many doesn't take (rule K7)."""


def is_wide(data: bytes | str) -> bool:
    """Whether a request with many images doesn't take this one, in bytes or in base64."""
    return longest_side(data) > MAX_PIXELS_OF_MANY


def pixels_refusal(data: bytes | str, *, beside_many: bool = False) -> str:
    """Why an image is refused for its pixels, in the vendor's words; empty where it isn't.

    Args:
        data: Its bytes, or their base64.
        beside_many: Whether the request has more than `MANY_IMAGES`.
    """
    most, what = MAX_PIXELS, "max allowed size"
    if beside_many:
        most, what = MAX_PIXELS_OF_MANY, "max allowed size for many-image requests"
    if longest_side(data) <= most:
        return ""
    return f"At least one of the image dimensions exceed {what}: {most} pixels"
