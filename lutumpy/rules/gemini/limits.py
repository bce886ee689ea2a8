"""Every number and format of generateContent. No other module repeats one.

Where a fact comes from is in brackets: [description] is the discovery document of Vertex AI,
[documentation] the pages around it, [error text] what a recorded or reported refusal says,
[recorded] what was accepted.
"""

from __future__ import annotations

import base64
import re

__all__ = [
    "DECLARED_NAME",
    "FOREIGN_SIGNATURE",
    "MAX_DECLARATIONS",
    "MAX_NAME",
    "MEDIA_KINDS",
    "MEDIA_TYPES",
    "RESULT_MEDIA_TYPES",
    "TEMPERATURES",
    "TOP_P",
]

MAX_NAME = 64
"""Characters of a function's name [error text]. The newest description says twice as many; the
errors that users report don't."""
DECLARED_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_.:-]{{0,{MAX_NAME - 1}}}\Z")
"""The name of a declared function [error text]."""
MAX_DECLARATIONS = 512
"""Functions that one request may declare [description]."""

TEMPERATURES = (0.0, 2.0001)
"""The least temperature, and the first that is too much [error text]."""
TOP_P = (0.0, 1.0)
"""The least and the greatest `topP` [description]."""

FOREIGN_SIGNATURE = base64.b64encode(b"skip_thought_signature_validator").decode()
"""What is in the place of a signature on calls that Gemini did not make, in base64 because the
field is bytes [recorded: 10 accepted] [documentation]."""

MEDIA_KINDS = ("image", "audio", "video", "text")
"""What the media types of data begin with that a content may show [documentation]."""
MEDIA_TYPES = frozenset({"application/pdf", "application/json", "application/rtf"})
"""Further media types of data in a content [documentation]."""
RESULT_MEDIA_TYPES = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
)
"""Media types that the result of a function may show [documentation; recorded but for the last]."""
