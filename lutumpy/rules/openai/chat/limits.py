"""The numbers and formats of Chat Completions alone; those of both APIs are one folder up."""

from __future__ import annotations

from lutumpy.rules.media import PDF

MAX_CALL_ID = 40
"""Characters of a call's id [probed, reported]: "Expected a string with maximum length 40". Real
ones have 29."""
MAX_CALLS = 128
"""Calls in one assistant message [probed, reported]."""

FILE_TYPES = frozenset({PDF})
"""Media types of a `file` part. The text of other files belongs in a text part [guide]."""
AUDIO_FORMATS = ("wav", "mp3")
"""Formats of an `input_audio` part [API description]."""
