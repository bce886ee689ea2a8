"""The Converse API of Amazon Bedrock."""

from __future__ import annotations

from lutumpy.adapters.bedrock.client import BedrockConverse

__all__ = ["BedrockConverse"]
