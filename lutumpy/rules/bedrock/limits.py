"""Every number, name and format of Converse. No other module repeats one.

Where a fact comes from is in brackets: [service model] is botocore's description of
`bedrock-runtime`, [documentation] the Amazon Bedrock User Guide, [error text] what a recorded or
reported refusal says, [recorded] what was accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# ------------------------------------------------------------- names and ids

NAME_PATTERN = "[a-zA-Z0-9_-]+"
"""A tool's name, as refusals quote the pattern [error text]. It holds in histories too."""
NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
MAX_NAME = 64
"""Characters of a tool's name, on Claude as well, which takes more elsewhere [service model]."""
CALL_ID_PATTERN = "[a-zA-Z0-9_.:-]+"
"""The id of a call, as refusals quote the pattern [service model]."""
CALL_ID = re.compile(r"[a-zA-Z0-9_.:-]+\Z")
MAX_CALL_ID = 64
"""Characters of a call's id [service model]."""

# ------------------------------------------------------------------ messages

ROLES = ("user", "assistant", "system")
"""Roles [service model]; which models take `system` is unknown."""
CHANGES = ("toolAddition", "toolRemoval")
"""Blocks that change the tools inside a conversation [service model]."""
STATUSES = ("success", "error")
"""What the `status` of a result may be [service model]."""
SERVER_TOOL = "server_tool_use"
"""The one `type` that a request may give a call: answers name others, which no request may repeat
[service model]."""

# ------------------------------------------------------------------ requests

MAX_CACHE_POINTS = 4
"""Cache points in tools, system and messages together: Claude's limit on its own API."""
CACHE_TTLS = ("5m", "1h")
"""How long what comes before a cache point may be kept [service model]."""
RANGES: Mapping[str, tuple[float, float]] = {"temperature": (0, 1), "topP": (0, 1)}
"""Least and greatest value of each sampling parameter [service model]."""
MIN_TOKENS = 1
"""The least `maxTokens` [service model]."""
MAX_STOP_SEQUENCES = 2500
"""Stop sequences [service model]."""

# --------------------------------------------------------------------- media

IMAGE_FORMATS = ("png", "jpeg", "gif", "webp")
"""The `format` of an image [service model]."""
DOCUMENT_FORMATS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
"""The `format` of a document [service model]."""
AUDIO_FORMATS = tuple("mp3 opus wav aac flac mp4 ogg mkv mka x-aac m4a mpeg mpga pcm webm".split())
"""The `format` of a sound [service model]. That of a film may be any text [recorded]."""
MAX_IMAGE = 3_932_160
"""Bytes of an image, for Claude: in base64 these are the 5 MB that its refusals name [documentation
of `Message`: 3.75 MB; reported: kirodotdev/Kiro#10783]. Other models have limits of their own."""
MAX_DOCUMENT = 4_718_592
"""Bytes of a document [documentation: "API restrictions", 4.5 MB]."""
LARGE_DOCUMENTS = ("pdf", "docx")
"""Formats of which newer models take larger documents [documentation: "API restrictions"]."""
MAX_DOCUMENT_NAME = 200
"""Characters of a document's name [service model]."""
DOCUMENT_NAME = re.compile(r"[a-zA-Z0-9()\[\]-]+(?: [a-zA-Z0-9()\[\]-]+)* ?\Z")
"""The name of a document: letters, digits, single spaces, hyphens, parentheses and brackets
[documentation]."""
REFUSED_IN_DOCUMENT_NAME = re.compile(r"[^a-zA-Z0-9()\[\] _-]|  ")
"""What a name is refused for: another character, or two spaces in a row [error text]. Underscores,
and a space at the beginning, were accepted [reported]."""
S3_URI_PATTERN = r"s3://[a-z0-9][\.\-a-z0-9]{1,61}[a-z0-9](/.*)?"
"""Where a file lies that isn't in the request, as refusals quote the pattern [service model]."""
S3_URI = re.compile(r"s3://[a-z0-9][.\-a-z0-9]{1,61}[a-z0-9](?:/.*)?\Z", re.DOTALL)
MAX_S3_URI = 1024
"""Characters of such an address [service model]."""

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9()\[\]-]+")


def allowed_document_name(name: str) -> str:
    """`name` without what a document's name must not have; `document` where nothing is left."""
    return _NOT_IN_A_NAME.sub(" ", name).strip()[:MAX_DOCUMENT_NAME].strip() or "document"
