"""The Anthropic Messages API."""

from __future__ import annotations

from lutumpy.adapters.anthropic.client import AnthropicMessages

__all__ = ["AnthropicMessages"]
