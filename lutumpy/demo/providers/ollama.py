"""The demo on Ollama's API."""

from __future__ import annotations

from typing import Any

from lutumpy.demo.providers.provider import Provider

__all__ = ["OLLAMA"]


def _make_client(url: str | None) -> Any:
    if url is None:
        return None  # the adapter makes one, and finds Ollama where the environment says it is
    import httpx2

    return httpx2.AsyncClient(base_url=url, timeout=60)


OLLAMA = Provider(
    name="ollama",
    title="Ollama",
    client="httpx2.AsyncClient",
    make=_make_client,
    package="httpx2",
    extra="openai",
    keys=(),
    model="qwen3:4b",
)
