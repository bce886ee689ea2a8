"""The shape of an update of the configuration, and what may not stand beside one."""

from __future__ import annotations

from typing import Any

from lutumpy.apis import serving

USER = {"role": "user", "content": "Hello."}


def rules_of(update: Any, **body: Any) -> list[str]:
    check = serving("openai_responses", "rules").check_request
    request = {
        "model": "gpt-6",
        "input": [USER, {"type": "configuration_update", **update}],
        **body,
    }
    return [problem.rule for problem in check(request)]


def test_each_breach_of_an_update_is_told() -> None:
    rule = "responses.configuration_update"
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
    assert rule not in rules_of({"text": {"format": {"type": "text"}}})
    for update in (
        {},
        {"odd": 1},
        {"reasoning": 1},
        {"reasoning": {"odd": 1}},
        {"text": 1},
        {"text": {}},
        {"text": {"odd": 1}},
        {"text": {"format": 1}},
        {"text": {"format": {"type": "odd"}}},
    ):
        assert rules_of(update), update
    legal = {"reasoning": {"effort": "low"}, "text": {"format": form}}
    assert rule in rules_of(legal, truncation="auto")
    assert rule in rules_of(legal, context_management=[1, {"type": "compaction"}])
