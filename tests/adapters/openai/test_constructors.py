"""The constructors of adapters name each keyword, and `system` is there on every adapter."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from lutumpy import Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.sdk_model import SdkModel
from lutumpy.adapters.writing import RequestDefaults

ADAPTERS = [OpenAIChat, OpenAIResponses, AnthropicMessages]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_signature_names_every_default_of_requests(adapter: Any) -> None:
    shown = inspect.signature(adapter).parameters
    known = inspect.signature(SdkModel.__init__).parameters
    for name in RequestDefaults.__annotations__:
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[name].default == known[name].default
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in shown.values())


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
def test_a_keyword_that_is_none_is_refused(adapter: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'temprature'"):
        adapter("m", temprature=1)


def test_chat_has_no_system_text_beside_its_messages() -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    assert OpenAIChat.system(transcript) is None
    assert OpenAIChat.messages(transcript) == [{"role": "system", "content": "Be brief."}]
    with pytest.raises(TypeError, match="a Transcript is needed"):
        OpenAIChat.system("no transcript")  # type: ignore[arg-type]
