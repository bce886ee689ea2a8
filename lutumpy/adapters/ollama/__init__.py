"""Ollama's own API: models on one's own machine, and those of Ollama's cloud."""

from __future__ import annotations

from lutumpy.adapters.ollama.client import OllamaChat

__all__ = ["OllamaChat"]
