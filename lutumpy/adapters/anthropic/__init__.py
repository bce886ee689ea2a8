"""The Anthropic Messages API."""

from __future__ import annotations

from lutumpy.adapters.anthropic.client import AnthropicMessages
from lutumpy.adapters.anthropic.containers import Container

__all__ = ["AnthropicMessages", "Container"]
