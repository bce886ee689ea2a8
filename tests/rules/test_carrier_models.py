"""What a model binds, and which carriers of a change it takes, goes by its version (PB12)."""

from __future__ import annotations

import pytest

from lutumpy import Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.rules.anthropic import models as anthropic
from lutumpy.rules.bedrock import models as bedrock
from lutumpy.rules.openai import models as openai

BINDING = {
    "claude-fable-5-0": (False, None),
    "claude-fable-5-1": (True, "new_accounts"),
    "claude-mythos-5-1": (True, "new_accounts"),
    "claude-fable-5-2": (True, "everybody"),
    "claude-mythos-5-2-20261001": (True, "everybody"),
    "claude-mythos-5-3": (True, "everybody"),
    "claude-fable-6": (True, "everybody"),
    "claude-opus-5": (False, None),
    "claude-opus-5-5": (True, "new_accounts"),
    "claude-opus-6": (True, "new_accounts"),
    "claude-sonnet-5-5": (True, "new_accounts"),
    "claude-haiku-5-5": (True, "new_accounts"),
    "claude-sonnet-4-5-20250929": (False, None),
    "claude-3-7-sonnet-latest": (False, None),
    "claude-4-opus": (False, None),
    # The careful side: nothing is known of these, so their reasoning counts as bound.
    "claude-saga-1": (True, None),
    "my-gateway": (True, None),
}
LATE_SYSTEM = {
    "claude-opus-4-7": False,
    "claude-opus-4-8": True,
    "claude-opus-5-1": True,
    "claude-sonnet-5": False,
    "claude-sonnet-5-5": True,
    "claude-haiku-4-5": False,
    "claude-haiku-5-5": True,
    "claude-fable-5-2": True,
    "claude-mythos-5-2": True,
    "claude-fable-7-1": True,
    "claude-saga-1": False,
    "my-gateway": False,
}


@pytest.mark.parametrize("model", BINDING)
def test_a_claude_binds_its_reasoning_from_a_version_on_wherever_it_is_served_PB12(
    model: str,
) -> None:
    binds, enforced = BINDING[model]
    assert anthropic.binds_reasoning(model) == binds
    assert anthropic.refuses_changed_prefix(model) == enforced
    assert anthropic.needs_record(model) == (enforced is not None)
    if model.startswith("claude-"):
        for name in (f"us.anthropic.{model}-v1:0", f"anthropic.{model}"):
            assert bedrock.binds_reasoning(name) == binds
            assert bedrock.refuses_changed_prefix(name) == enforced
            assert bedrock.needs_record(name) == (enforced is not None)


def test_only_claudes_are_bound_at_converse_PB12() -> None:
    assert not bedrock.binds_reasoning("amazon.nova-pro-v1:0")
    assert not bedrock.takes_tool_changes("amazon.nova-pro-v1:0")
    profile = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2"
    assert bedrock.binds_reasoning(profile)
    assert not bedrock.takes_tool_changes(profile)


@pytest.mark.parametrize("model", LATE_SYSTEM)
def test_carriers_of_a_claude_go_by_family_and_version_PB12(model: str) -> None:
    takes = LATE_SYSTEM[model]
    assert anthropic.takes_system_messages(model) == takes
    assert anthropic.takes_tool_changes(model) == takes
    assert anthropic.takes_inline_tools(model) == takes
    assert anthropic.takes_turn_scoped_system(model) == takes
    assert bedrock.takes_tool_changes(f"us.anthropic.{model}-v1:0") == takes


def test_a_host_that_is_not_known_takes_no_carrier_PB12() -> None:
    model = "claude-fable-5-2"
    by_reference = [
        "api.anthropic.com",
        "bedrock-runtime.us-east-1.amazonaws.com",
        "us-east5-aiplatform.googleapis.com",
        "aiplatform.eu.rep.googleapis.com:443",
    ]
    for host in by_reference:
        for name in (model, f"us.anthropic.{model}-v1:0"):
            assert anthropic.takes_tool_changes(name, host)
            assert anthropic.takes_turn_scoped_system(name, host)
            assert anthropic.takes_effort_updates(name, host)
        assert anthropic.takes_inline_tools(model, host) == (host == "api.anthropic.com")
    for host in ("gateway.example", "evilamazonaws.com", None):
        assert not anthropic.takes_tool_changes(model, host)
        assert not anthropic.takes_inline_tools(model, host)
        assert not anthropic.takes_turn_scoped_system(model, host)
        assert not anthropic.takes_effort_updates(model, host)
        assert not openai.takes_additional_tools("gpt-6.2-astra", host)
        assert not openai.takes_configuration_update("gpt-6.2-astra", host)


def test_effort_in_a_system_message_goes_by_a_table_of_its_own_PB12() -> None:
    taken = ["claude-opus-5", "claude-fable-5-1", "claude-mythos-5-2", "claude-haiku-5-5"]
    refused = ["claude-opus-4-8", "claude-fable-5-0", "claude-sonnet-5", "my-gateway"]
    assert all(anthropic.takes_effort_updates(model) for model in taken)
    assert not any(anthropic.takes_effort_updates(model) for model in refused)


def test_a_later_version_takes_no_forced_choice_either_PB12() -> None:
    for model in ("claude-fable-5-2", "claude-opus-5-6", "claude-sonnet-6"):
        assert anthropic.forced_choice_refusal(model) is not None
    assert anthropic.forced_choice_refusal("claude-opus-5") is None


def test_what_a_gpt_binds_and_takes_goes_by_its_version_PB12() -> None:
    rows = {
        # binds, configuration_update, instructions of one turn, allowed_tools of what was added
        "gpt-4o": (False, False, False, False),
        "gpt-5": (False, False, False, False),
        "gpt-5.6": (False, False, False, True),
        "gpt-6": (False, True, False, True),
        "gpt-6.1-mini": (False, True, False, True),
        "gpt-6.2-astra": (True, True, True, True),
        "gpt-6.10": (True, True, True, True),
        "ft:gpt-7:acme::id": (True, True, True, True),
        "o3": (False, False, False, False),
        # Nothing is known of it: its reasoning counts as bound, and no carrier is used.
        "grok-5": (True, False, False, False),
    }
    for model, row in rows.items():
        assert row == (
            openai.binds_reasoning(model),
            openai.takes_configuration_update(model),
            openai.takes_instructions_per_turn(model),
            openai.allowed_tools_may_name_appended(model),
        ), model
        assert openai.takes_additional_tools(model) == (model != "grok-5")


@pytest.mark.parametrize("model", ["claude-fable-5-2", "claude-mythos-5-2"])
def test_a_late_instruction_is_a_system_message_of_the_newest_models_PB12(model: str) -> None:
    transcript = Transcript()
    transcript.push_user("Hello.")
    transcript.push_system("Be brief.")
    body = AnthropicMessages.request(transcript, model=model)
    assert [message["role"] for message in body["messages"]] == ["user", "system"]
