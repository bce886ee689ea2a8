"""Each rule about what is bound, carried and placed in the middle of a conversation has a history
that breaks it, and the doctor or the rules of the request name it (issue 27; PB12, PB19, PB21).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from lutumpy.apis import serving
from lutumpy.doctor import check_messages
from lutumpy.rules.anthropic.messages import check_request as check_with_headers

Json = dict[str, Any]
FABLE, GPT = "claude-fable-5-2", "gpt-6.2-astra"
SCHEMA: Json = {"type": "object", "properties": {}}
LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": SCHEMA}
SEND: Json = {**LOOK, "name": "send"}
USER: Json = {"role": "user", "content": "Go."}
THINKING: Json = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
TEXT: Json = {"type": "text", "text": "Yes."}
ANSWER: Json = {"role": "assistant", "content": [THINKING, TEXT]}


def system(*blocks: Json, **more: Any) -> Json:
    return {"role": "system", "content": list(blocks), **more}


def change(kind: str, name: str) -> Json:
    return {"type": f"tool_{kind}", "tool": {"type": "tool_reference", "name": name}}


def define(**tool: Any) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}


def said(*messages: Json, model: str = FABLE, tools: Any = (LOOK, SEND), **more: Any) -> set[str]:
    """What the doctor finds in a history of Messages."""
    found = check_messages(
        "anthropic_messages", [*messages], model=model, tools=list(tools), **more
    )
    return {problem.rule.partition(".")[2] for problem in found}


def asked(api: str, body: Json) -> set[str]:
    """What the rules of an API find in a request."""
    return {p.rule.partition(".")[2] for p in serving(api, "rules").check_request(body)}


# --- Anthropic ------------------------------------------------------------------------------------

BEFORE: Json = {
    "model": FABLE,
    "max_tokens": 10,
    "system": "Be brief.",
    "tools": [LOOK, SEND],
    "messages": [USER],
}
HISTORY = [USER, ANSWER, USER]
SERVER_CALL: Json = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {},
}
PAUSED: Json = {"role": "assistant", "content": [SERVER_CALL]}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "send", "input": {}}
RESULT: Json = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]}
REMINDER: Json = {"clear_at": "next_user_message"}

HISTORIES: dict[str, tuple[str, Callable[[], set[str]]]] = {
    "the tools are bound": (
        "reasoning_bound",
        lambda: said(*HISTORY, system="Be brief.", tools=[LOOK], before=BEFORE),
    ),
    "the system's text is bound": (
        "reasoning_bound",
        lambda: said(*HISTORY, system="Be kind.", before=BEFORE),
    ),
    "every message before is bound": (
        "reasoning_bound",
        lambda: said({**USER, "content": "Stop."}, *HISTORY[1:], system="Be brief.", before=BEFORE),
    ),
    "older models read no system message later": (
        "system_for_model",
        lambda: said(USER, system(TEXT), model="claude-opus-4-1"),
    ),
    "a tool that is defined again is of the same kind": (
        "tool_name_conflict",
        lambda: said(
            USER,
            system(define(type="bash_20250124", name="bash")),
            tools=[{**LOOK, "name": "bash"}],
        ),
    ),
    "a definition is a tool": (
        "tool_change",
        lambda: said(USER, system({"type": "tool_addition"})),
    ),
    "only an addition defines": (
        "tool_change",
        lambda: said(USER, system({**define(**LOOK), "type": "tool_removal"})),
    ),
    "a reference names a tool": (
        "tool_reference_unresolved",
        lambda: said(USER, system(change("addition", "nobody"))),
    ),
    "a tool that was withdrawn isn't called": (
        "withdrawn_tool",
        lambda: said(
            USER, system(change("removal", "send")), {**PAUSED, "content": [CALL]}, RESULT
        ),
    ),
    "a text for one turn is text alone": (
        "clear_at",
        lambda: said(USER, system(change("removal", "send"), **REMINDER)),
    ),
    "a text for one turn has no mark of the cache": (
        "clear_at",
        lambda: said(USER, system({**TEXT, "cache_control": {"type": "ephemeral"}}, **REMINDER)),
    ),
    "it leaves when the user speaks, or never": (
        "clear_at",
        lambda: said(USER, system(TEXT, clear_at="tomorrow")),
    ),
    "an effort is one that the API knows": (
        "message_effort",
        lambda: said(USER, system(TEXT, output_config={"effort": "tremendous"})),
    ),
    "and nothing else of the output": (
        "message_effort",
        lambda: said(USER, system(TEXT, output_config={"format": {}})),
    ),
    "a message without content sets an effort": (
        "message_effort",
        lambda: said(USER, system(output_config={})),
    ),
    "a change follows the user, or a result of the provider's": (
        "tool_change_position",
        lambda: said(USER, ANSWER, system(change("removal", "send"))),
    ),
    "no change stands behind a paused turn": (
        "tool_change_paused",
        lambda: said(USER, PAUSED, system(change("removal", "send"))),
    ),
    "with content, it is last or before an answer": (
        "system_position",
        lambda: said(USER, system(TEXT), USER),
    ),
}
REQUESTS: dict[str, tuple[str, Callable[[], set[str]]]] = {
    "one tool stays undeferred": (
        "all_deferred",
        lambda: asked("anthropic_messages", {**BEFORE, "tools": [{**LOOK, "defer_loading": True}]}),
    ),
    "every carrier has its header": (
        "beta_header",
        lambda: {
            p.rule.partition(".")[2]
            for message in (
                system(change("removal", "send")),
                system(define(**SEND)),
                system(TEXT, **REMINDER),
                system(output_config={"effort": "low"}),
            )
            for p in check_with_headers({**BEFORE, "messages": [USER, message]}, betas=()) or [None]
        },
    ),
    # --- OpenAI
    "tools are brought by the developer": (
        "additional_tools",
        lambda: asked("openai_responses", brought(role="user")),
    ),
    "no update stands beside truncation": (
        "configuration_update",
        lambda: asked("openai_responses", {**updated(), "truncation": "auto"}),
    ),
    "nor beside compaction": (
        "configuration_update",
        lambda: asked(
            "openai_responses", {**updated(), "context_management": [{"type": "compaction"}]}
        ),
    ),
    "older models take no update": (
        "configuration_update",
        lambda: asked("openai_responses", {**updated(), "model": "gpt-5.4"}),
    ),
    "an update sets an effort and a format alone": (
        "configuration_update",
        lambda: asked("openai_responses", updated(reasoning={"summary": "auto"})),
    ),
    "before GPT-5.6 the choice names no tool that an item has brought": (
        "tool_choice_unknown",
        lambda: asked(
            "openai_responses",
            {
                **brought(),
                "model": "gpt-5.4",
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "look"}],
                },
            },
        ),
    ),
    "GPT-6 Astra takes tools on Responses alone": (
        "tools_for_model",
        lambda: asked(
            "openai_chat",
            {
                "model": "gpt-6-astra",
                "messages": [USER],
                "tools": [{"type": "function", "function": {"name": "look"}}],
            },
        ),
    ),
    "reasoning of Responses is bound as well": (
        "reasoning_bound",
        lambda: {
            p.rule.partition(".")[2]
            for p in check_messages(
                "openai_responses",
                [{**USER, "content": "Stop."}, SEALED, USER],
                model=GPT,
                before={"model": GPT, "input": [USER]},
            )
        },
    ),
    # --- Converse
    "Converse: a change names a declared tool": (
        "tool_reference",
        lambda: converse(named("toolAddition", "nobody")),
    ),
    "Converse: a change follows the user": (
        "tool_change_position",
        lambda: converse(
            {"role": "assistant", "content": [{"text": "Yes."}]}, named("toolRemoval", "look")
        ),
    ),
    "Converse: a tool that was withdrawn isn't called": (
        "withdrawn_tool",
        lambda: converse(
            named("toolRemoval", "look"),
            {"role": "assistant", "content": [{"toolUse": USE}]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "tooluse_1", "content": []}}],
            },
        ),
    ),
    "Converse: other models read no system message": (
        "system_role",
        lambda: converse(named("toolRemoval", "look"), model="amazon.nova-pro-v1:0"),
    ),
}
SEALED: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}
USE: Json = {"toolUseId": "tooluse_1", "name": "look", "input": {}}


def brought(role: str = "developer") -> Json:
    tool = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}
    item = {"type": "additional_tools", "role": role, "tools": [tool]}
    return {"model": GPT, "input": [USER, item]}


def updated(**fields: Any) -> Json:
    said = fields or {"reasoning": {"effort": "low"}}
    return {"model": GPT, "input": [USER, {"type": "configuration_update", **said}]}


def named(kind: str, name: str) -> Json:
    return {"role": "system", "content": [{kind: {"tool": {"name": name}}}]}


def converse(*messages: Json, model: str = f"us.anthropic.{FABLE}-v1:0") -> set[str]:
    tools = [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}]
    history = [{"role": "user", "content": [{"text": "Go."}]}, *messages]
    found = check_messages("bedrock_converse", history, tools=tools, model=model)
    return {problem.rule.partition(".")[2] for problem in found}


def test_each_rule_of_the_vendors_pages_has_a_history_that_breaks_it_PB19() -> None:
    for what, (rule, find) in {**HISTORIES, **REQUESTS}.items():
        assert rule in find(), (what, find())


def test_what_keeps_the_rules_has_no_such_problem_PB19() -> None:
    """The same histories without the fault: none of the rules above is found."""
    rules = {rule for rule, _ in {**HISTORIES, **REQUESTS}.values()}
    legal = [
        said(*HISTORY, system="Be brief.", before=BEFORE),
        said(
            USER,
            system(change("removal", "send")),
            ANSWER,
            USER,
            system(change("addition", "send")),
        ),
        said(USER, system(define(**{**SEND, "description": "Anew."})), system(TEXT, **REMINDER)),
        said(USER, system(output_config={"effort": "low"}), ANSWER, USER),
        asked("openai_responses", brought()),
        asked("openai_responses", updated()),
        converse(named("toolRemoval", "look"), named("toolAddition", "look")),
    ]
    for found in legal:
        assert not found & rules, found


def test_the_oldest_reasoning_may_go_and_one_in_the_middle_spoils_the_rest_PB19() -> None:
    """Each block records the one before it; and what isn't bound may change freely."""
    first = copy.deepcopy(ANSWER)
    later = {"role": "assistant", "content": [{**THINKING, "signature": "c2lnMg=="}, TEXT]}
    third = {"role": "assistant", "content": [{**THINKING, "signature": "c2lnMw=="}, TEXT]}
    bare = {"role": "assistant", "content": [TEXT]}
    body = {**BEFORE, "messages": [USER, first, USER, later, USER]}
    options = {"system": "Be brief.", "before": body}
    whole = [USER, first, USER, later, USER, third, USER]
    assert "reasoning_bound" not in said(*whole, **options)
    oldest = [USER, bare, USER, later, USER, third, USER]
    assert "reasoning_bound" not in said(*oldest, **options)
    middle = [USER, first, USER, bare, USER, third, USER]
    assert "reasoning_bound" in said(*middle, **options)
    marked = [{**USER, "content": [{**TEXT, "cache_control": {"type": "ephemeral"}}]}]
    plain = {**BEFORE, "messages": [{**USER, "content": [TEXT]}]}
    free = {"system": "Be brief.", "before": plain}
    assert "reasoning_bound" not in said(*marked, ANSWER, USER, **free)
