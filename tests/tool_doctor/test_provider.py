"""What the tool doctor says of `provider=`."""

from __future__ import annotations

from typing import Any

from lutumpy import ToolInput, Toolset, tool, tool_input
from lutumpy.apis import api_names
from lutumpy.tool_doctor import Finding, ToolReport, check_tools

CLAUDE, RESPONSES, CHAT = "anthropic_messages", "openai_responses", "openai_chat"
CONVERSE = "bedrock_converse"


def toolset(provider: Any, name: str = "look", strict: bool | None = None) -> type[Toolset[Any]]:
    @tool_input(name=name, strict=strict, provider=provider)
    class Look(ToolInput[str]):
        """Look."""

        where: str

    return type("Tools", (Toolset,), {"look": tool(Look)})


def found(report: ToolReport, rule: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == rule]


def test_a_toolset_without_settings_has_no_finding_about_them() -> None:
    report = check_tools(toolset(None))
    assert not [finding for finding in report.findings if finding.rule.startswith("provider.")]


def test_what_one_api_is_told_is_lost_on_the_others() -> None:
    told = {CLAUDE: {"input_examples": [{"where": "x"}], "defer_loading": True}}
    (lost,) = found(check_tools(toolset(told)), "provider.elsewhere")
    assert (lost.severity, lost.tool) == ("info", "look")
    assert set(lost.apis) == set(api_names()) - {CLAUDE}
    assert lost.message.endswith("defer_loading, input_examples")
    both = {**told, RESPONSES: {"defer_loading": True}}
    lost_of = {f.apis: f.message for f in found(check_tools(toolset(both)), "provider.elsewhere")}
    assert lost_of[(RESPONSES,)].endswith(": input_examples")


def test_deferring_every_tool_is_no_fault_of_the_tools() -> None:
    report = check_tools(
        toolset({CLAUDE: {"defer_loading": True}, RESPONSES: {"defer_loading": True}})
    )
    assert report.errors == ()


def test_a_tool_of_the_vendors_type_says_so_and_has_no_strict_form() -> None:
    told = {CLAUDE: {"type": "memory_20250818"}}
    report = check_tools(toolset(told, "memory"), apis=[CLAUDE])
    (typed,) = found(report, "provider.type")
    assert "memory_20250818" in typed.message
    assert not [finding for finding in report.findings if finding.rule.startswith("strict.")]
    assert {size.strict_tools for size in report.sizes} == {0}
    assert found(report, "provider.strict") == []
    (size,) = {size.bytes for size in report.sizes}
    assert size == len('[{"type":"memory_20250818","name":"memory"}]')
    strict = check_tools(toolset(told, "memory", strict=True))
    (lost,) = found(strict, "provider.strict")
    assert (lost.severity, lost.apis) == ("warning", (CLAUDE,))
    # On the others it is an ordinary, strict function.
    strict_tools = {size.api: size.strict_tools for size in strict.sizes}
    ordinary = dict.fromkeys(strict_tools, 0) | {CHAT: 1, RESPONSES: 1, CONVERSE: 1}
    assert strict_tools == ordinary


def test_keys_that_an_api_does_not_have_are_found_by_its_rules() -> None:
    report = check_tools(
        toolset({api: {"defer_loadin": True} for api in (CHAT, RESPONSES, CLAUDE)})
    )
    severities = {
        finding.rule: finding.severity
        for finding in report.findings
        if finding.rule.endswith(".tool_keys")
    }
    assert severities == {
        "chat.tool_keys": "warning",
        "responses.tool_keys": "warning",
        "anthropic.tool_keys": "error",
    }


def test_a_fault_of_a_tool_of_the_vendors_type_names_it() -> None:
    told = {CLAUDE: {"type": "computer_20251124", "display_width_px": 9}}
    report = check_tools(toolset(told, "computer"), apis=[CLAUDE])
    (refused,) = found(report, "tool.refused")
    assert (refused.tool, refused.severity) == ("computer", "error")
    assert "display_height_px" in refused.message


def test_a_name_that_no_api_has_is_an_error() -> None:
    report = check_tools(toolset({"antropic_messages": {"defer_loading": True}}))
    (wrong,) = found(report, "provider.api")
    assert (wrong.severity, wrong.tool, wrong.apis) == ("error", "look", ())
    assert "antropic_messages" in wrong.message
