"""Tools that OpenAI and Anthropic have typed: declared by their type, called by their own items."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from lutumpy import (
    DeclarationError,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolInput,
    ToolMetadata,
    ToolRequirement,
    Toolset,
    tool,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import ImagePart
from lutumpy.provider_tools import (
    ApplyPatch,
    Bash,
    ClaudeComputer,
    Click,
    Computer,
    LocalShell,
    Memory,
    Screenshot,
    Shell,
    ShellExit,
    ShellOutput,
    ShellResult,
    ShellTimeout,
    TextEditor,
    computer_output,
)
from lutumpy.rules.openai.responses.items import check_request

PICTURE = ImagePart(b"\x89PNG", "image/png")
RESPONSES = "openai_responses"


class OpenTools(Toolset):
    shell = tool(Shell)
    apply_patch = tool(ApplyPatch)
    computer = tool(Computer)
    local_shell = tool(LocalShell)


class ClaudeTools(Toolset):
    bash = tool(Bash)
    editor = tool(TextEditor)
    memory = tool(Memory)
    computer = tool(ClaudeComputer)


def call_item(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "type": f"{kind}_call",
        "id": f"{kind}_1",
        "call_id": "c1",
        "status": "completed",
        **more,
    }


@pytest.mark.parametrize(
    ("chosen", "choice"),
    [
        (OpenTools.shell, {"type": "shell"}),
        (
            OpenTools.local_shell,  # the API has no choice of this type
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "local_shell"}]},
        ),
    ],
)
def test_a_required_tool_is_a_choice_that_the_api_has(chosen: Any, choice: Any) -> None:
    session = Session()
    session.push_user("go")
    offer = OpenTools.offer(require=ToolRequirement.specific(chosen))
    assert OpenAIResponses.request(session.transcript, offer)["tool_choice"] == choice


def asked(item: dict[str, Any], tools: Any = OpenTools) -> tuple[Session, Any]:
    """A session and the open round of a reply with this item."""
    session = Session()
    session.push_user("go")
    reply = {"id": "r", "status": "completed", "model": "gpt-5.4", "output": [item]}
    outcome = tools.offer().read(OpenAIResponses.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def answered(item: dict[str, Any], output: Any) -> dict[str, Any]:
    """The item that answers a call of this item."""
    session, round = asked(item)
    assert round.issues == ()
    (call,) = round.calls
    round.commit(session, [call.complete(output)])
    body = OpenAIResponses.request(session.transcript, OpenTools.offer())
    assert check_request({"model": "gpt-5.4", **body}) == []
    *_, sent, answer = body["input"]
    assert sent == item  # what was called goes back as it came
    found: dict[str, Any] = answer
    return found


def test_their_provider_is_told_the_type_alone_and_others_a_function() -> None:
    assert OpenAIResponses.tools(OpenTools.offer()) == [
        {"type": "shell", "environment": {"type": "local"}},
        {"type": "apply_patch"},
        {"type": "computer"},
        {"type": "local_shell"},
    ]
    assert AnthropicMessages.tools(ClaudeTools.offer()) == [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "memory_20250818", "name": "memory"},
        {
            "type": "computer_20251124",
            "name": "computer",
            "display_width_px": 1024,
            "display_height_px": 768,
        },
    ]
    for entry in OpenAIChat.tools(OpenTools.offer()) + OpenAIChat.tools(ClaudeTools.offer()):
        assert entry["type"] == "function"
        function = entry["function"]
        assert function["description"]
        assert all(one.get("description") for one in function["parameters"]["properties"].values())


def test_a_choice_names_such_a_tool_by_its_type() -> None:
    offer = OpenTools.offer(require=ToolRequirement.specific(OpenTools.shell))
    (session := Session()).push_user("go")
    body = OpenAIResponses.request(session.transcript, offer)
    assert body["tool_choice"] == {"type": "shell"}


def test_a_shell_call_is_typed_and_its_result_says_how_each_command_ended() -> None:
    action = {"commands": ["ls", "sleep 9"], "timeout_ms": 500, "max_output_length": 100, "x": 1}
    item = call_item("shell", action=action)
    _, round = asked(item)
    (call,) = round.calls
    assert isinstance(call.input, Shell)
    assert (call.input.commands, call.input.timeout_ms) == (["ls", "sleep 9"], 500)
    round.discard()
    output = [
        ShellOutput(stdout="a\n"),
        ShellOutput(stderr="no", outcome=ShellExit(exit_code=2)),
        ShellOutput(outcome=ShellTimeout()),
    ]
    answer = answered(item, ShellResult(output=output, max_output_length=100))
    assert answer == {
        "type": "shell_call_output",
        "call_id": "c1",
        "output": [
            {"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}},
            {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
        ],
        "max_output_length": 100,
    }
    assert "max_output_length" not in answered(item, ShellResult(output=output))
    # Nothing ran: the form of the API wants an entry all the same.
    assert len(answered(item, ShellResult(output=[]))["output"]) == 1


def test_a_result_that_only_looks_typed_is_a_text() -> None:
    @tool_input(name="shell", output=str, provider={RESPONSES: {"type": "shell"}})
    class Texts(ToolInput[str]):
        """A shell that gives a text."""

        commands: list[str]

    class App(Toolset):
        shell = tool(Texts)

    entry = {"stdout": "", "stderr": "", "outcome": {}}
    texts = ["plain", "{", "{}", '{"output": 3}', '{"output": [3]}', '{"output": []}', "[]"]
    more: list[Any] = [{"output": [entry], "more": 1}, {"output": [{}]}]
    texts += [json.dumps(one) for one in more]
    for text in texts:
        session, round = asked(call_item("shell", action={"commands": []}), App)
        (call,) = round.calls
        round.commit(session, [call.complete(text)])
        *_, answer = OpenAIResponses.request(session.transcript)["input"]
        (written,) = answer["output"]
        assert written["stdout"] == text


def test_a_patch_is_typed_and_a_failure_says_so() -> None:
    operation = {"type": "update_file", "path": "a.py", "diff": "@@"}
    item = call_item("apply_patch", operation=operation)
    assert answered(item, "done") == {
        "type": "apply_patch_call_output",
        "call_id": "c1",
        "status": "completed",
        "output": "done",
    }
    session, round = asked(item)
    (call,) = round.calls
    assert (call.input.type, call.input.path, call.input.diff) == ("update_file", "a.py", "@@")
    round.commit(session, [call.fail("no such file")])
    *_, answer = OpenAIResponses.request(session.transcript)["input"]
    assert (answer["status"], answer["output"]) == ("failed", "no such file")


def test_a_computer_call_has_its_actions_and_its_checks() -> None:
    click = {"type": "click", "button": "left", "x": 1, "y": 2}
    check = {"id": "sc_1", "code": "malicious", "message": "Really?"}
    for item in (
        call_item("computer", action={"type": "screenshot"}, pending_safety_checks=[]),
        call_item("computer", actions=[{"type": "screenshot"}]),
    ):
        _, round = asked(item)
        (call,) = round.calls
        assert call.input.actions == [Screenshot(type="screenshot")]
        round.discard()
        answer = answered(item, PICTURE)
        assert answer["status"] == "completed"
        assert answer["output"]["image_url"].startswith("data:image/png;base64,")
        assert "acknowledged_safety_checks" not in answer
    item = call_item("computer", actions=[click, {"type": "wait"}], pending_safety_checks=[check])
    _, round = asked(item)
    (call,) = round.calls
    first, _ = call.input.actions
    assert isinstance(first, Click)
    checks = call.input.pending_safety_checks
    assert [one.message for one in checks] == ["Really?"]
    round.discard()
    assert answered(item, computer_output(PICTURE, checks))["acknowledged_safety_checks"] == [check]
    assert computer_output(PICTURE) == [PICTURE]
    single = call_item("computer", action=click, pending_safety_checks=[check])
    _, round = asked(single)
    assert len(round.calls[0].input.actions) == 1
    round.discard()
    with pytest.raises(ValidationError):
        Computer.model_validate({"actions": [{"type": "dance"}]})


def test_what_does_not_fit_is_an_issue_as_for_any_tool() -> None:
    for item in (
        call_item("shell", action={"commands": 3}),
        call_item("shell"),
        call_item("computer", actions=[{"type": "dance"}]),
        call_item("apply_patch", operation={"type": "rename", "path": "a"}),
    ):
        session, round = asked(item)
        (issue,) = round.issues
        assert issue.reason in ("invalid_arguments", "malformed_arguments"), issue
        round.commit(session, [])
        body = OpenAIResponses.request(session.transcript, OpenTools.offer())
        assert body["input"][-1]["type"] == f"{item['type']}_output"


def test_a_tool_that_has_the_name_alone_takes_no_call_of_the_kind_C8() -> None:
    @tool_input(name="shell", output=str)
    class Plain(ToolInput[str]):
        """A function."""

        commands: list[str]

    class App(Toolset):
        shell = tool(Plain)

    _, round = asked(call_item("shell", action={"commands": []}), App)
    assert [issue.reason for issue in round.issues] == ["unknown_tool"]
    round.discard()


def test_the_local_shell_is_answered_by_a_text() -> None:
    item = call_item("local_shell", action={"type": "exec", "command": ["ls"], "env": {}})
    answer = answered(item, "a")
    assert (answer["type"], answer["output"]) == ("local_shell_call_output", "a")


async def test_hooks_see_the_calls_and_nothing_passes_a_rejection() -> None:
    hooks = OpenTools.hooks()

    @hooks.on(OpenTools.shell)
    async def judge(metadata: ToolMetadata, input: Shell) -> Any:
        if "rm" in input.commands[0]:
            return Reject("no")
        return RunNormally(input)

    session, round = asked(call_item("shell", action={"commands": ["rm -r /"]}))
    plan = await round.apply_hooks(hooks)
    assert plan.pending == ()
    plan.commit(session, [])
    *_, answer = OpenAIResponses.request(session.transcript)["input"]
    (written,) = answer["output"]
    assert written["outcome"] == {"type": "exit", "exit_code": 1}
    _, round = asked(call_item("shell", action={"commands": ["ls"]}))
    plan = await round.apply_hooks(hooks)
    assert len(plan.pending) == 1
    plan.discard()


def test_calls_of_claude_are_typed_by_name() -> None:
    for name, input, kind in (
        ("bash", {"command": "ls"}, Bash),
        ("bash", {"restart": True}, Bash),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a", "new": 1}, TextEditor),
        ("memory", {"command": "rename", "old_path": "a", "new_path": "b"}, Memory),
        ("computer", {"action": "left_click", "coordinate": [1, 2]}, ClaudeComputer),
    ):
        call = ClaudeTools.parse(ToolMetadata("c1", name, json.dumps(input)))
        assert type(call.input) is kind


def test_other_types_and_names_are_refused_early_C9() -> None:
    for kind in ("shell", "apply_patch", "computer", "computer_use_preview"):
        with pytest.raises(DeclarationError, match="is called without a name; declare it with"):
            tool(Memory, provider={RESPONSES: {"type": kind}})
    with pytest.raises(DeclarationError, match="not calls of a function"):
        tool(Shell, provider={RESPONSES: {"type": "web_search"}})
    with pytest.raises(DeclarationError, match="not calls of a function"):
        tool(Shell, provider={"openai_chat": {"type": "shell"}})


def test_such_calls_are_streamed_as_they_are_read_whole() -> None:
    item = call_item("shell", action={"commands": ["ls"]})
    reply = {"id": "r", "status": "completed", "model": "gpt-5.4", "output": [item]}
    decoder = OpenAIResponses.stream_decoder()
    begun = {key: item[key] for key in ("type", "id", "call_id")}
    for event in (
        {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": reply},
    ):
        list(decoder.feed(event))
    assert decoder.finish() == OpenAIResponses.response(reply)
