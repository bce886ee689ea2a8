"""Uses of the transcript doctor that a checker refuses."""

from __future__ import annotations

from lutumpy.doctor import Repair, apply_repairs, check_messages, propose_repairs

check_messages(5, [])  # refused
propose_repairs("openai_chat", [], tools=5)  # refused
apply_repairs([], ["close_call"])  # refused
Repair("close_calls", "chat.role", "why", "messages[0]", (), (), [])  # refused


def reword(repair: Repair) -> None:
    repair.reason = "because"  # refused
