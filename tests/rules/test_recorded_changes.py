"""Recorded exchanges that change tools in the middle of a conversation are judged valid, read, and
written back as they were (PB18, PB19).
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from lutumpy import Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.doctor import check_messages
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.responses import items as responses

FIXTURE = pathlib.Path(__file__).parent.parent / "fixtures" / "changes.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in FIXTURE.read_text(encoding="utf-8").splitlines()
]


def test_recorded_changes_are_judged_valid_PB19() -> None:
    counts = {"anthropic_messages": 0, "openai_responses": 0}
    for row in ROWS:
        api, body = row["api"], row["request"]
        counts[api] += 1
        assert row["status"] == 200
        check = {
            "anthropic_messages": anthropic.check_request,
            "openai_responses": responses.check_request,
        }[api]
        history = body["input" if api == "openai_responses" else "messages"]
        found = [*check(body), *check_messages(api, history)]
        assert [p for p in found if p.certainty != "discouraged"] == [], row["source"]
    assert counts == {"anthropic_messages": 9, "openai_responses": 19}


def test_recorded_changes_are_written_back_as_they_were_PB18() -> None:
    for row in ROWS:
        api, body = row["api"], row["request"]
        if api == "openai_responses":
            transcript = Transcript.from_messages(api, body["input"])
            written = OpenAIResponses.messages(transcript)
            assert written == body["input"], row["source"]
        else:
            transcript = Transcript.from_messages(api, body["messages"], system=body.get("system"))
            written = AnthropicMessages.messages(transcript, model=body["model"])
            assert written == body["messages"], row["source"]
