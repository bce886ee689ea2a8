"""The demo on Gemini's API."""

from __future__ import annotations

from typing import Any

from lutumpy.demo.providers.provider import NO_KEY, Provider

__all__ = ["GEMINI"]


def _make_client(url: str | None) -> Any:
    from google.genai import Client

    if url is None:
        return Client()
    return Client(api_key=NO_KEY, vertexai=False, http_options={"base_url": url})


GEMINI = Provider(
    name="gemini",
    title="generateContent",
    client="genai.Client",
    make=_make_client,
    package="google-genai",
    extra="gemini",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    model="gemini-3-flash-preview",
)
