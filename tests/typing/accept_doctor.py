"""The transcript doctor as users type it."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_type

from lutumpy.doctor import Problem, Repair, apply_repairs, check_messages, propose_repairs

history: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]

problems = check_messages("openai_chat", history, tools=[], compatible=True)
assert_type(problems, list[Problem])
assert_type(problems[0].path, tuple[str | int, ...])

repairs = propose_repairs(
    "anthropic_messages", history, system="Be brief.", model="m", thinking="enabled", thorough=True
)
assert_type(repairs, list[Repair])
assert_type(repairs[0].patch, list[dict[str, Any]])
assert_type(apply_repairs(history, repairs), list[Any])
assert_type(apply_repairs(history, (r for r in repairs if r.kind == "close_call")), list[Any])

propose_repairs("openai_responses", "Hi", server_held_prefix=True)
