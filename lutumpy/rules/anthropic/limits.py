"""Every number and format of the Messages API. No other module repeats one.

The rules refuse by them, the repairs mend by them, and the adapter stays within them. The formats
that strict mode takes belong to the strict form itself: `rules.strict.ANTHROPIC_STRICT`.
`tests/rules/test_anthropic_limits.py` fails when another module spells one of these facts again.

Where a fact comes from is in brackets: [API description] is Anthropic's OpenAPI document,
[documentation] the pages around it, [error text] what a recorded or reported refusal says.
"""

from __future__ import annotations

import re

from lutumpy.rules.media import PDF, PLAIN

# ------------------------------------------------------------- names and ids

NAME_CHARACTERS = "[a-zA-Z0-9_-]"
"""What names of tools and ids of calls consist of [API description]."""
MAX_NAME = 128
"""Characters of a tool's name [API description]."""
MAX_NAME_OF_OLDER_HOSTS = 64
"""Characters of a tool's name before that, and on some hosts still [reported]. Names that the
adapter makes up keep to it.
"""
NAME_PATTERN = f"^{NAME_CHARACTERS}{{1,{MAX_NAME}}}$"
"""A tool's name, as refusals quote the pattern [error text]."""
NAME = re.compile(rf"{NAME_CHARACTERS}{{1,{MAX_NAME}}}\Z")
MAX_HISTORY_NAME = 200
"""Characters of `tool_use.name` in a history, where any character is taken [API description]."""
REFERENCE = re.compile(rf"{NAME_CHARACTERS}{{1,256}}\Z")
"""The name of a tool that a result refers to [API description]."""

CALL_ID_PATTERN = f"^{NAME_CHARACTERS}+$"
"""The id of a call, as refusals quote the pattern [error text]. It has no limit of length."""
CALL_ID = re.compile(rf"{NAME_CHARACTERS}+\Z")
SERVER_CALL_ID_PATTERN = "^srvtoolu_[a-zA-Z0-9_]+$"
"""The id of a call that the provider runs itself, as refusals quote the pattern [error text]."""
SERVER_CALL_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+\Z")

# ------------------------------------------------------------------ requests

MAX_BREAKPOINTS = 4
"""Breakpoints of the prompt cache in tools, system and messages together; a null is none. "A
maximum of 4 blocks with cache_control may be provided. Found 5." [error text]"""
MIN_BUDGET = 1024
"""The least `thinking.budget_tokens` [API description]."""
INTERLEAVED_THINKING = "interleaved-thinking-2025-05-14"
"""The beta feature with which the budget may reach `max_tokens` and more [documentation]."""
RANGES: dict[str, tuple[float, float]] = {"temperature": (0, 1), "top_p": (0, 1)}
"""Least and greatest value of each sampling parameter [error text: "range: 0..1"]."""

# ----------------------------------------------------- strict tools (of a request)
# Within the limits of a request one schema alone still fails: 24 optional parameters or 16 unions
# in one tool are "too complex for compilation", while the same numbers spread over several tools
# pass [recorded: 5 refused, 3 accepted].

MAX_STRICT_TOOLS = 20
"""Strict tools [error text]."""
MAX_OPTIONAL = 24
"""Optional parameters of all strict tools [error text]."""
MAX_UNIONS = 16
"""Parameters with a list of types or with `anyOf`, of all strict tools [error text]."""
TOO_MANY_OPTIONAL_IN_ONE = 24
"""So many optional parameters are refused in one schema [recorded]."""
TOO_MANY_UNIONS_IN_ONE = 16
"""So many unions are refused in one schema [recorded]."""

# --------------------------------------------------------------------- media

DOCUMENT_TYPES = frozenset({PDF, PLAIN})
"""Media types of a document [API description]."""
MAX_IMAGE = 10_485_760
"""Characters of an image in base64 [reported; 5 MB on some hosts]."""
MAX_DOCUMENT = 33_554_432
"""Characters of a document: with more, the whole request is over the 32 MB that it may have
[documentation].
"""
MAX_TITLE = 500
"""Characters of a document's title [API description]."""
