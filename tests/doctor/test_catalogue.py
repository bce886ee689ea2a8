"""The tables of rules are true: of the code that finds problems, and of the page for users."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lutumpy.apis import serving
from lutumpy.doctor.catalogue import KINDS, repairs_of
from lutumpy.doctor.writing import Mending, Row, all_at_once, one_by_one, rows_of, stages_of
from lutumpy.rules.writing import Rule, rules_by_id

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "doctor.md"
FOLDERS = {
    "openai_chat": "openai/chat",
    "openai_responses": "openai/responses",
    "anthropic_messages": "anthropic",
    "bedrock_converse": "bedrock",
    "gemini_generate_content": "gemini",
    "ollama_chat": "ollama",
}
TITLES = {
    "openai_chat": "Chat Completions",
    "openai_responses": "Responses",
    "anthropic_messages": "Messages",
    "bedrock_converse": "Converse",
    "gemini_generate_content": "generateContent",
    "ollama_chat": "Ollama",
}
MODULES = (
    "messages",
    "blocks",
    "changes",
    "host_fields",
    "items",
    "media",
    "moves",
    "sequence",
    "server_tools",
)
"""The modules of an API's rules that check histories."""

OF_REQUESTS = frozenset(
    "beta_header body effort_for_model format held_prefix host_parameter inference model "
    "parameters required think thinking unknown_parameter".split()
)
"""What these modules say of a request around its history."""

OF_HISTORIES = frozenset(["ollama.thinking"])
"""What has the name of such a rule, and is one of histories: a field of Ollama's messages."""

CERTAINTY = {"refused": "refused", "some": "some hosts", "discouraged": "works badly"}


def rules_in_the_code(api: str) -> set[str]:
    """The ids of rules that the checks of an API's histories name."""
    prefix = serving(api, "rules").PREFIX
    # Checked alike for every API.
    found = {f"{prefix}.{name}" for name in ("encoding", "nesting", "cached_prefix")}
    if hasattr(serving(api, "rules"), "reasoning_binding"):
        found.add(f"{prefix}.reasoning_bound")
    for module in MODULES:
        path = ROOT / "lutumpy" / "rules" / FOLDERS[api] / f"{module}.py"
        if not path.exists():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = re.fullmatch(rf"{prefix}\.(\w+)", node.value)
                if match is not None and (
                    match[1] not in OF_REQUESTS or node.value in OF_HISTORIES
                ):
                    found.add(node.value)
    return found


def ids_in_the_file(path: Path, marker: str) -> list[str]:
    """The ids of the rows that a table's file writes out, each as often as it stands there."""
    return re.findall(marker, path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("api", FOLDERS)
def test_the_table_has_every_rule_of_the_code_and_no_other(api: str) -> None:
    assert rules_in_the_code(api) == set(repairs_of(api).rows)


@pytest.mark.parametrize("api", FOLDERS)
def test_each_rule_stands_once_in_the_table_of_rules_and_once_in_that_of_repairs(api: str) -> None:
    rules = ROOT / "lutumpy" / "rules" / FOLDERS[api] / "catalogue.py"
    repairs = ROOT / "lutumpy" / "doctor" / FOLDERS[api] / "stages.py"
    wanted = sorted(repairs_of(api).rows)
    assert sorted(ids_in_the_file(rules, r'Rule\(\s*"([\w.]+)"')) == wanted
    row = r'^    "([\w.]+)": (?:Mending\(|[A-Z_]+,|CALLS\.)'  # its own, or a shared one
    assert sorted(ids_in_the_file(repairs, row)) == wanted


@pytest.mark.parametrize("api", FOLDERS)
def test_no_file_of_the_doctor_but_the_table_spells_the_id_of_a_rule_without_need(api: str) -> None:
    """Menders of several rules ask which one a problem breaks; nothing else names a rule."""
    folder = ROOT / "lutumpy" / "doctor" / FOLDERS[api]
    named: list[str] = []
    for path in folder.glob("*.py"):
        if path.name != "stages.py":
            named += re.findall(
                r'"((?:chat|responses|anthropic|converse|gemini|ollama)\.\w+)"', path.read_text()
            )
    assert len(named) <= 4


def all_rows() -> dict[str, Row]:
    return {rule: row for api in FOLDERS for rule, row in repairs_of(api).rows.items()}


def test_of_each_rule_without_a_repair_the_table_says_why() -> None:
    rows = all_rows()
    unsaid = [rule for rule in rows if not rows[rule].mending.repairs]
    assert [rule for rule in unsaid if not rows[rule].mending.left] == []


def test_a_rule_has_repairs_if_and_only_if_a_stage_mends_it() -> None:
    for row in all_rows().values():
        assert bool(row.mending.steps) == bool(row.mending.repairs), row.rule.id


def test_what_is_mended_without_a_sure_refusal_is_mended_at_all() -> None:
    for row in all_rows().values():
        if row.mending.although_unsure:
            assert row.mending.repairs
            assert row.rule.certainties != ("refused",)


@pytest.mark.parametrize("api", FOLDERS)
def test_every_stage_is_of_use(api: str) -> None:
    assert all(stage.rules for stage in repairs_of(api).stages)


def mend_nothing(*_: object) -> None:
    """Stands for a mender."""


def test_tables_that_disagree_are_refused() -> None:
    rule = Rule("toy.role", "Each message has a role", ("refused",))
    with pytest.raises(ValueError, match="twice"):
        rules_by_id(rule, rule)
    with pytest.raises(ValueError, match=r"one of the two tables only: toy\.role"):
        rows_of({"toy.role": rule}, {})
    with pytest.raises(ValueError, match="without a place"):
        stages_of((), {"toy.role": Mending(one_by_one("roles", mend_nothing))})
    mixed = {
        "toy.role": Mending(one_by_one("roles", mend_nothing)),
        "toy.part": Mending(all_at_once("roles", mend_nothing)),
    }
    with pytest.raises(ValueError, match="in one way"):
        stages_of(("roles",), mixed)


def lines_for(api: str) -> list[str]:
    found = []
    for rule, row in repairs_of(api).rows.items():
        certainty = ", ".join(CERTAINTY[word] for word in row.rule.certainties)
        repairs = ", ".join(f"`{kind}`" for kind in row.mending.repairs) or "none"
        repairs += f"; left: {row.mending.left}" if row.mending.left else ""
        found.append(f"| `{rule}` | {row.rule.requires} | {certainty} | {repairs} |")
    return found


@pytest.mark.parametrize("api", FOLDERS)
def test_the_page_shows_the_table(api: str) -> None:
    section = PAGE.read_text().partition(f"### {TITLES[api]}\n")[2].partition("\n#")[0]
    assert [line for line in section.splitlines() if line.startswith("| `")] == lines_for(api)


def test_the_page_says_what_each_kind_of_repair_does() -> None:
    section = PAGE.read_text().partition("## What repairs do\n")[2].partition("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    assert lines == [f"| `{kind}` | {does} |" for kind, does in KINDS.items()]
