"""OpenAI's Responses: `POST /responses`."""

from __future__ import annotations

from lutumpy.adapters.openai.responses.client import OpenAIResponses

__all__ = ["OpenAIResponses"]
