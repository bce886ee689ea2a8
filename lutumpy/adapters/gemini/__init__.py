"""The Gemini API, and Gemini on Vertex AI."""

from __future__ import annotations

from lutumpy.adapters.gemini.client import Gemini

__all__ = ["Gemini"]
