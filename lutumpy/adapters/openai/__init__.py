"""OpenAI's two wires, Chat Completions and Responses, as OpenAI and compatible hosts speak them."""

from __future__ import annotations

from lutumpy.adapters.openai.chat import OpenAIChat
from lutumpy.adapters.openai.responses import OpenAIResponses
from lutumpy.rules.host_facts import FieldRefusal, HostFacts, facts_of

__all__ = ["FieldRefusal", "HostFacts", "OpenAIChat", "OpenAIResponses", "facts_of"]
