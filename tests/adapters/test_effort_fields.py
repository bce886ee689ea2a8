"""The field that an effort is sent in, where the API has none of its own."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.models import Transcript


@pytest.mark.parametrize(
    ("model", "requested", "sent"),
    [
        ("openai.gpt-oss-120b-1:0", None, {"reasoning_effort": "high"}),
        (
            "us.amazon.nova-2-lite-v1:0",
            None,
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}},
        ),
        (
            "anthropic.claude-opus-4-6-v1",
            {"output_config": {"x": 1}, "y": 2},
            {"output_config": {"effort": "high", "x": 1}, "y": 2},
        ),
        ("openai.gpt-oss-120b-1:0", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ("openai.gpt-oss-120b-1:0", "odd", "odd"),
    ],
)
def test_converse_takes_it_in_the_field_of_the_models_maker(
    model: str, requested: Any, sent: Any
) -> None:
    transcript = Transcript()
    transcript.push_user("Hi")
    extra = {} if requested is None else {"additionalModelRequestFields": requested}
    body = BedrockConverse.request(transcript, model=model, effort="high", **extra)
    assert body["additionalModelRequestFields"] == sent
