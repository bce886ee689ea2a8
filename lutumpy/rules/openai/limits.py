"""Every number and format that Chat Completions and Responses share. No other module repeats one.

What only one of the two has is in `chat/limits.py` and `responses/limits.py`. The formats that
strict mode takes belong to the strict form itself: `rules.strict.OPENAI_STRICT.formats`.
`tests/rules/test_openai_limits.py` fails when another module spells one of these facts again.

Where a fact comes from is in brackets: [API description] is OpenAI's OpenAPI document, [SDK]
its Python package, [guide] its documentation, [recorded], [probed] and [reported] are answers of
OpenAI: those in recordings, to trial requests, and in what users report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# ---------------------------------------------------------------- names and tools

NAME = re.compile(r"[a-zA-Z0-9_-]+")
"""A tool's or a function's name, as a whole [SDK, probed, reported]."""
NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
"""The same pattern as refusals quote it [probed, reported]."""
NOT_IN_SPEAKER = re.compile(r"[\s<|\\/>]+")
"""What the `name` of a message, which says who speaks, must not have [reported: mlflow#20470]; it
took only what a tool's name may have before [reported: autogen#4157]."""
SPEAKER_PATTERN = r"^[^\s<|\\/>]+$"
"""The same pattern as refusals quote it."""
MAX_NAME = 64
"""Characters of a tool's name [SDK]. Responses may accept more: see `MAX_DECLARED_NAME` there."""
MAX_TOOLS = 128
"""Tools in one request [probed, reported]: "Expected an array with maximum length 128"."""
MAX_DESCRIPTION = 1024
"""Characters of a tool's description. The number was documented once; it is not enforced
[recorded: 4 accepted requests have more]."""

# ---------------------------------------------------------------- lengths in a history

MAX_ARGUMENTS = 1_048_576
"""Characters of a call's arguments, or of a custom tool's input [reported]: with longer ones every
later request of the conversation fails."""
MAX_TEXT_PART = 10_485_760
"""Characters of a text part or of an output on Responses [API description]. Nobody documents the
number for Chat Completions; it is taken to accept no more."""
MAX_IMAGE_URL = 20_971_520
"""Characters of an image's URL; a data URL counts with its data [API description]."""
MAX_FILE_ID = 64
"""Characters of the id of a file, on Responses [reported: BerriAI/litellm#24797]."""
MAX_FILE_DATA = 73_400_320
"""Characters of a file's data URL [API description]."""

# ---------------------------------------------------------------- parameters

DECIMAL_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
"""Least and greatest value of each sampling parameter [API description; recorded for
`temperature`]."""
INTEGER_RANGES: Mapping[str, tuple[int, int]] = {"n": (1, 128)}
"""Least and greatest value of each count [API description]."""

# ---------------------------------------------------------------- strict schemas
# All of these are in the guide to structured outputs; levels and properties are probed, too:
# "14 levels of nesting exceeds limit of 10.", "6000 parameters exceeds limit of 5000." In 2024 they
# were smaller (100 properties, 5 levels), and some hosts may still use those numbers.

MAX_STRICT_PROPERTIES = 5000
"""Properties in one schema, those of nested objects included."""
MAX_STRICT_LEVELS = 10
"""Levels of nested objects."""
MAX_STRICT_CHARACTERS = 120_000
"""Characters of all property names, definition names, enum values and constants together."""
MAX_STRICT_ENUM_VALUES = 1000
"""Enum values in one schema."""
LONG_ENUM = 250
"""An enum with more values than this has a limit of characters, too."""
MAX_LONG_ENUM_CHARACTERS = 15_000
"""Characters of the values of such an enum."""
