"""OpenAI's two wires, Chat Completions and Responses, as OpenAI and compatible hosts speak them."""

from __future__ import annotations

from lutumpy.adapters.openai.chat import OpenAIChat
from lutumpy.adapters.openai.responses import OpenAIResponses

__all__ = ["OpenAIChat", "OpenAIResponses"]
