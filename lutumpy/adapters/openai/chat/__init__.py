"""OpenAI's Chat Completions: `POST /chat/completions`."""

from __future__ import annotations

from lutumpy.adapters.openai.chat.client import OpenAIChat

__all__ = ["OpenAIChat"]
