"""The spans of one conversation, on every API, in every form of the loop: they are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from every_api import APIS
from otel_toolkit import Exported, converse

PROVIDERS = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini_generate_content": "gcp.gemini",
    "bedrock_converse": "aws.bedrock",
    "ollama_chat": "ollama",
}
# What an API may say in its own way, and what differs from one request to the next.
OWN = {
    "gen_ai.provider.name",
    "gen_ai.response.id",
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.tool.call.id",
    "gen_ai.response.model",
    "server.address",
    "server.port",
    "gen_ai.request.stream",
    "gen_ai.aggregated_usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    "lutumpy.request.cache",
}

GOLDEN = (Path(__file__).parent / "golden_spans.txt").read_text()


def tree(exported: Exported) -> str:
    """The spans as lines: children below their parent; siblings sorted, since some are parallel."""
    by_parent: dict[str | None, list[Any]] = {}
    for span in exported.spans:
        by_parent.setdefault(exported.parent_of(span), []).append(span)

    def lines(parent: str | None, depth: int) -> list[str]:
        found: list[str] = []
        for span in by_parent.get(parent, ()):
            kind, status = span.kind.name, span.status.status_code.name
            said = [f"{'  ' * depth}{span.name} {kind} {status} {written(span.attributes)}\n"]
            said += [
                f"{'  ' * depth}  ! {event.name} {written(event.attributes)}\n"
                for event in span.events
            ]
            found.append("".join(said + lines(span.name, depth + 1)))
        # Requests follow each other; calls of one round run side by side.
        return found if depth == 0 else sorted(found, key=lambda each: each.split('"')[0])

    return "".join(lines(None, 0))


def written(attributes: Any) -> str:
    shown = {name: value for name, value in attributes.items() if name not in OWN}
    return json.dumps(shown, sort_keys=True)


def test_the_spans_of_one_conversation_are_the_same_on_every_api_and_in_every_form() -> None:
    forms = [{}, {"stream": True}, {"sync": True}, {"sync": True, "stream": True}]
    for api in APIS:
        for form in forms:
            with Exported() as exported:
                result = converse(exported.telemetry(), api, **form)
                assert result.stopped_by == "answer"
                seen = sorted(tree(exported).splitlines())
                assert seen == sorted(GOLDEN.splitlines()), (api, form)
                chats = [span for span in exported.spans if span.name == "chat m-1"]
                for span in chats:
                    found = dict(span.attributes or {})
                    assert found["gen_ai.provider.name"] == PROVIDERS[api]
                    # What a stream alone has.
                    assert ("gen_ai.request.stream" in found) == ("stream" in form)
                    first = found.get("gen_ai.response.time_to_first_chunk")
                    assert (first is not None) == ("stream" in form)
                    ended, began = span.end_time, span.start_time
                    assert first is None or 0 < first <= (ended - began) / 1e9  # type: ignore[operator]


def test_a_trace_has_one_root_and_calls_of_one_round_are_siblings() -> None:
    with Exported() as exported:
        converse(exported.telemetry())
        parents = {span.name: exported.parent_of(span) for span in exported.spans}
        assert parents.pop("invoke_agent Shelf") is None
        assert set(parents.values()) == {"invoke_agent Shelf"}
        assert len({span.context.trace_id for span in exported.spans if span.context}) == 1


def test_the_metrics_of_the_conversation(exported: Exported) -> None:
    converse(exported.telemetry(), "anthropic_messages", stream=True)
    found = exported.metrics()
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1",
    }
    assert found["gen_ai.client.token.usage"] == [
        ({**model, "gen_ai.token.type": "input"}, 300),
        ({**model, "gen_ai.token.type": "output"}, 27),
    ]
    assert [point[0] for point in found["gen_ai.client.operation.duration"]] == [model]
    assert [point[0] for point in found["gen_ai.client.operation.time_to_first_chunk"]] == [model]
    issue = {"lutumpy.issue.reason": "invalid_arguments", "gen_ai.tool.name": "look"}
    assert found["lutumpy.tool.issues"] == [(issue, 1)]
    outcomes = [point[0] for point in found["lutumpy.tool.duration"]]
    assert sorted(each["lutumpy.call.outcome"] for each in outcomes) == ["failed", "ok", "ok"]
