"""The table of rules is true: of the code that finds problems, and of the page that users read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lutumpy.doctor.catalogue import KINDS, RULES
from lutumpy.doctor.propose import ALSO

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "doctor.md"
MODULES = (
    "anthropic/blocks",
    "anthropic/messages",
    "anthropic/sequence",
    "anthropic/server_tools",
    "openai/chat/messages",
    "openai/responses/items",
    "openai/responses/sequence",
)
OF_REQUESTS = frozenset(
    "body effort_for_model held_prefix required thinking unknown_parameter".split()
)
"""What these modules say of a request around its transcript."""

CERTAINTY = {"refused": "refused", "some": "some hosts", "discouraged": "works badly"}
APIS = {"chat": "Chat Completions", "responses": "Responses", "anthropic": "Messages"}


def named_in_the_code() -> set[str]:
    found: set[str] = set()
    for module in MODULES:
        tree = ast.parse((ROOT / "lutumpy" / "rules" / f"{module}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = re.fullmatch(r"(?:anthropic|chat|responses)\.(\w+)", node.value)
                if match is not None and match[1] not in OF_REQUESTS:
                    found.add(node.value)
    return found


def test_the_table_has_every_rule_of_the_code_and_no_other() -> None:
    everywhere = {
        f"{api}.{rule}" for api in APIS for rule in ("encoding", "nesting")
    }  # spelled with the API's name
    assert named_in_the_code() | everywhere == set(RULES)


def test_of_each_rule_without_a_repair_the_table_says_why() -> None:
    assert [rule for rule, about in RULES.items() if not about.repairs and not about.left] == []


def test_what_is_mended_without_a_sure_refusal_is_mended_at_all() -> None:
    assert all(RULES[rule].repairs for rule in ALSO)
    assert all(RULES[rule].certainties != ("refused",) for rule in ALSO)


def rows_of(api: str) -> list[str]:
    found = []
    for rule, about in RULES.items():
        if rule.partition(".")[0] == api:
            certainty = ", ".join(CERTAINTY[word] for word in about.certainties)
            repairs = ", ".join(f"`{kind}`" for kind in about.repairs) or "none"
            repairs += f"; left: {about.left}" if about.left else ""
            found.append(f"| `{rule}` | {about.what} | {certainty} | {repairs} |")
    return found


@pytest.mark.parametrize("api", list(APIS))
def test_the_page_shows_the_table(api: str) -> None:
    section = PAGE.read_text().partition(f"### {APIS[api]}\n")[2].partition("\n#")[0]
    assert [line for line in section.splitlines() if line.startswith("| `")] == rows_of(api)


def test_the_page_says_what_each_kind_of_repair_does() -> None:
    section = PAGE.read_text().partition("## What repairs do\n")[2].partition("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    assert lines == [f"| `{kind}` | {does} |" for kind, does in KINDS.items()]
