"""OpenAI's two wires, Chat Completions and Responses, as OpenAI and compatible hosts speak them."""

from __future__ import annotations

from lutumpy.adapters.openai.chat import OpenAIChat
from lutumpy.adapters.openai.responses import OpenAIResponses
from lutumpy.rules.host_facts import HostFacts, facts_of

__all__ = ["HostFacts", "OpenAIChat", "OpenAIResponses", "facts_of"]
