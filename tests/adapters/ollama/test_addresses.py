"""Where Ollama is, by its variable; what helps when it isn't there; values that no model takes."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy import AdapterError
from lutumpy.adapters.ollama import OllamaChat


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("", None),
        ("box", "http://box:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("https://box", "https://box:443"),
        ("http://box", "http://box:80"),
        ("'box:99/base'", "http://box:99/base"),
        ("[::1]:5", "http://[::1]:5"),
        ("[::1]", "http://[::1]:11434"),
    ],
)
def test_the_variable_says_where_it_is(
    value: str, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert OllamaChat.environment_url() == address
    monkeypatch.setenv("OLLAMA_API_KEY", "")
    assert OllamaChat.environment_key() is None


def test_an_error_says_what_helps() -> None:
    def told(status: int | None, text: str, *, sent: bool = True) -> str | None:
        return OllamaChat.explain(
            AdapterError(text, provider="ollama_chat", status=status, sent=sent)
        )

    assert "ollama serve" in (told(None, "refused", sent=False) or "")
    assert "ollama pull" in (told(404, "model 'm' not found") or "")
    assert "TextTools" in (told(400, "m does not support tools") or "")
    assert told(500, "oops") is None


def test_what_is_no_answer_raises() -> None:
    for reply in ({}, {"message": None}):
        with pytest.raises(AdapterError):
            OllamaChat.response(reply)


@pytest.mark.parametrize("retries", [True, "2", -1])
def test_a_number_of_retries_is_a_whole_number(retries: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="max_retries"):
        OllamaChat("m", max_retries=retries)
