"""Changes in the middle of a conversation with Messages: what is legal is taken, what isn't is
refused (PB19).
"""

from __future__ import annotations

from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.anthropic.messages import check_messages, check_request
from lutumpy.rules.anthropic.models import CLEAR_AT, EFFORT_UPDATES, INLINE_TOOLS, TOOL_CHANGES

Json = dict[str, Any]
SCHEMA: Json = {"type": "object"}
LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": SCHEMA}
SEND: Json = {"name": "send", "description": "Sends.", "input_schema": SCHEMA}
ASKED: Json = {"role": "user", "content": "Go."}
ANSWERED: Json = {"role": "assistant", "content": "Yes."}
TEXT: Json = {"type": "text", "text": "Be brief."}
SEND_OFF: Json = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "send"}}
SEND_ON: Json = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "send"}}


def define(**tool: Any) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}


def system(*blocks: Json, **more: Any) -> Json:
    return {"role": "system", "content": list(blocks), **more}


def request(*messages: Json) -> Json:
    model, tools = "claude-fable-5-2", [LOOK, SEND]
    return {"model": model, "max_tokens": 100, "tools": tools, "messages": list(messages)}


def refused(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.certainty == "refused"]


def called(name: str) -> list[Json]:
    use: Json = {"type": "tool_use", "id": "toolu_x", "name": name, "input": {}}
    result: Json = {"type": "tool_result", "tool_use_id": "toolu_x", "content": "ok"}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


LEGAL: list[list[Json]] = [
    [ASKED, system(TEXT, clear_at="next_user_message"), ANSWERED, ASKED],
    [ASKED, {"role": "system", "content": "For now.", "clear_at": "never"}],
    [ASKED, {"role": "system", "output_config": {"effort": "low"}}],
    [
        ASKED,
        {"role": "system", "content": [], "output_config": {"effort": "xhigh"}},
        ANSWERED,
        ASKED,
    ],
    [ASKED, system(TEXT, output_config={})],
    [ASKED, system(SEND_OFF), ANSWERED, ASKED, system(SEND_ON, TEXT)],
    [ASKED, system(SEND_OFF), system(SEND_ON), *called("send")],
    [ASKED, system(define(**{**SEND, "description": "Sends a message."})), *called("send")],
    [ASKED, system(define(name="new", input_schema=SCHEMA)), *called("new"), system(SEND_OFF)],
]


def test_legal_changes_have_no_problem_PB19() -> None:
    betas = [CLEAR_AT, EFFORT_UPDATES, INLINE_TOOLS]
    for messages in LEGAL:
        assert check_request(request(*messages)) == [], messages
        assert check_request(request(*messages), betas=betas) == [], messages
        assert check_messages(messages, tools=[LOOK, SEND]) == [], messages
        assert check_messages(messages) == [], messages


def test_a_change_needs_its_header_where_the_headers_are_known_PB21() -> None:
    needed = {
        CLEAR_AT: system(TEXT, clear_at="next_user_message"),
        EFFORT_UPDATES: {"role": "system", "output_config": {"effort": "low"}},
        TOOL_CHANGES: system(SEND_OFF),
        INLINE_TOOLS: system(define(name="new", input_schema=SCHEMA)),
    }
    for beta, change in needed.items():
        body = request(ASKED, change)
        others = [name for name in (*needed, "other") if name not in (beta, INLINE_TOOLS)]
        (problem,) = refused(check_request(body, betas=others))
        assert problem.rule == "anthropic.beta_header"
        assert beta in problem.message
        assert check_request(body, betas=[beta]) == []
        in_body = check_request({**body, "anthropic_beta": [beta]}, betas=[])
        assert "anthropic.beta_header" not in [problem.rule for problem in in_body]
    assert check_request(request(ASKED, system(SEND_OFF)), betas=[INLINE_TOOLS]) == []


def test_the_call_of_a_withdrawn_tool_is_found_PB19() -> None:
    (problem,) = check_request(request(ASKED, system(SEND_OFF), *called("send")))
    assert (problem.rule, problem.position) == (
        "anthropic.withdrawn_tool",
        "messages.2.content.0",
    )
    assert (problem.call_ids, problem.tools) == (("toolu_x",), ("send",))
    assert problem.certainty == "some"


def test_a_name_is_unknown_only_where_the_tools_are_known_PB19() -> None:
    change = system({**SEND_OFF, "tool": {"type": "tool_reference", "name": "gone"}})
    messages = [ASKED, change]
    (problem,) = check_request(request(*messages))
    assert (problem.rule, problem.code) == (
        "anthropic.tool_reference_unresolved",
        "tool_reference_unresolved",
    )
    assert check_messages(messages) == []
    assert check_messages(messages, tools=["gone"]) == []
    assert [problem.rule for problem in check_messages(messages, tools=["look"])] == [
        "anthropic.tool_reference_unresolved"
    ]
    # A tool is known from its definition on, and not before.
    early = [ASKED, change, system(define(name="gone", input_schema=SCHEMA))]
    late = [ASKED, system(define(name="gone", input_schema=SCHEMA)), change]
    assert len(refused(check_request(request(*early)))) == 1
    assert check_request(request(*late)) == []
