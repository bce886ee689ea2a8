"""The numbers and words of Ollama's API, each once.

Sources: `api/types.go` and `server/routes.go` of Ollama, its documentation, and the errors that
users report.
"""

from __future__ import annotations

import sys

__all__ = ["MAX_ID", "MAX_NAME", "MAX_TOP_LOGPROBS", "THINK_WORDS"]

MAX_TOP_LOGPROBS = 20
"""`top_logprobs must be between 0 and 20` [routes.go]."""

THINK_WORDS = ("high", "medium", "low", "max", "none")
"""The words that `think` takes. Which of them a release knows differs; its refusal lists them."""

MAX_NAME = sys.maxsize
"""Names of tools: a text of any length."""

MAX_ID = sys.maxsize
"""Ids of calls: a text of any length."""
