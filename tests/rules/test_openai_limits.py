"""A number or format of OpenAI's APIs stands in `rules/openai/` once, and everybody imports it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lutumpy import Transcript
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.errors import InvalidToolConstraints
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.rules import media
from lutumpy.rules.call_ids import CALL_ID_RULES
from lutumpy.rules.openai import limits
from lutumpy.rules.openai.chat import limits as chat_limits
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.openai.responses import limits as responses_limits
from lutumpy.rules.strict import OPENAI_STRICT

PACKAGE = Path(__file__).parents[2] / "lutumpy"
LIMITS: tuple[ModuleType, ...] = (limits, chat_limits, responses_limits)
OTHERS = {"anthropic", "bedrock", "gemini"}
HOMES = {Path(str(module.__file__)) for module in LIMITS}

# Numbers that small say nothing by themselves.
SMALLEST = 40
# What happens to be one of the numbers and is another thing.
COINCIDENCES = {
    ("adapters/openai/history_encoder.py", 1024): "how many names a cache holds",
    ("text_tools/json_scanner.py", 40): "characters of a text in an error",
}


def used_by() -> Iterator[Path]:
    """The modules that work with OpenAI's requests, without what is of another provider."""
    for folder in ("adapters", "doctor", "rules", "text_tools", "tool_doctor"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            if path not in HOMES and OTHERS.isdisjoint(path.parts):
                yield path


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}


def value_of(node: ast.AST) -> int | None:
    """What a number is that is written down, or worked out from numbers that are."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = value_of(node.left), value_of(node.right)
        if left is not None and right is not None and 0 <= right < 10_000:
            return OPERATORS[type(node.op)](left, right)
    return None


def spelled_again(tree: ast.AST, numbers: frozenset[int]) -> list[int]:
    """The numbers in a module that are among `numbers`; parts of a sum or product don't count."""
    value = value_of(tree)
    if value is not None:
        return [value] if value in numbers else []
    return [
        number for node in ast.iter_child_nodes(tree) for number in spelled_again(node, numbers)
    ]


NUMBERS = frozenset(
    value
    for module in LIMITS
    for value in vars(module).values()
    if type(value) is int and value >= SMALLEST
)


def test_the_scan_sees_a_number_however_it_is_written() -> None:
    tree = ast.parse("A = 128\nB = 1 << 20\nC = 10 * 1024 * 1024\nif len(x) > 0x28: pass\nD = 7")
    assert sorted(spelled_again(tree, NUMBERS)) == [40, 128, 1_048_576, 10_485_760]


@pytest.mark.pure
@pytest.mark.slow
def test_no_other_module_spells_a_limit_of_openai() -> None:
    again = [
        (name_of(path), number)
        for path in used_by()
        for number in spelled_again(parsed(path), NUMBERS)
        if (name_of(path), number) not in COINCIDENCES
    ]
    assert again == []


def texts(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.pure
@pytest.mark.slow
def test_no_other_module_of_openai_spells_the_pattern_of_names() -> None:
    characters = limits.NAME.pattern.removesuffix("+")
    again = [
        name_of(path)
        for path in used_by()
        if "openai" in path.parts or path.parts[-2] == "tool_doctor"
        for text in texts(path)
        if characters in text
    ]
    assert again == []


@pytest.mark.pure
@pytest.mark.slow
def test_no_other_module_lists_the_kinds_of_files() -> None:
    # These four are common enough to be meant by themselves.
    common = {media.PDF, "application/json", "application/xml", "application/yaml"}
    kinds = responses_limits.FILE_TYPES - common
    assert [name_of(path) for path in used_by() for text in texts(path) if text in kinds] == []


@pytest.mark.pure
@pytest.mark.slow
def test_no_other_module_lists_the_formats_of_strict_schemas() -> None:
    lists = [
        name_of(path)
        for path in used_by()
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.Set, ast.List, ast.Tuple))
        and len(OPENAI_STRICT.formats & {getattr(each, "value", None) for each in node.elts}) > 3
    ]
    assert set(lists) <= {"rules/strict.py"}
    assert len(lists) <= 1


def test_the_numbers_are_those_of_the_documentation_and_of_recorded_refusals() -> None:
    assert (limits.MAX_NAME, limits.MAX_TOOLS, limits.MAX_ARGUMENTS) == (64, 128, 1_048_576)
    assert (chat_limits.MAX_CALL_ID, chat_limits.MAX_CALLS) == (40, 128)
    assert (responses_limits.MAX_CALL_ID, responses_limits.MAX_ITEM_ID) == (64, 64)
    assert responses_limits.MAX_OUTPUT == limits.MAX_TEXT_PART == 10_485_760
    assert CALL_ID_RULES["openai"].limit == chat_limits.MAX_CALL_ID


# ------------------------------------------------- what the adapters let through, the rules do, too

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def offered(count: int, length: int) -> ToolOffering:
    return ToolOffering(
        tuple([ToolSpec(f"{number:03}".ljust(length, "t"), "d", SCHEMA) for number in range(count)])
    )


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
def test_an_adapter_offers_as_many_tools_and_as_long_names_as_the_limits_say(adapter: Any) -> None:
    assert len(adapter.tools(offered(limits.MAX_TOOLS, limits.MAX_NAME))) == limits.MAX_TOOLS
    with pytest.raises(InvalidToolConstraints, match=f"at most {limits.MAX_TOOLS}"):
        adapter.tools(offered(limits.MAX_TOOLS + 1, 3))
    with pytest.raises(InvalidToolConstraints, match=f"at most {limits.MAX_NAME}"):
        adapter.tools(offered(1, limits.MAX_NAME + 1))


ADAPTERS: dict[str, tuple[Any, Any, int]] = {
    "openai_chat": (OpenAIChat, chat, chat_limits.MAX_CALL_ID),
    "openai_responses": (OpenAIResponses, responses, responses_limits.MAX_CALL_ID),
}


def anthropic_history(call_id: str, name: str) -> Transcript:
    use = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "x"}
    return Transcript.from_messages(
        "anthropic_messages",
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ],
    )


@pytest.mark.parametrize("api", ADAPTERS)
def test_an_adapter_shortens_foreign_ids_and_names_to_what_the_rules_accept(api: str) -> None:
    adapter, rules, longest = ADAPTERS[api]
    for length in (longest, longest + 1):
        fits = length <= longest
        name = "n" * (limits.MAX_NAME + (not fits))
        call_id = "i" * length
        messages = adapter.messages(anthropic_history(call_id, name))
        assert rules.check_messages(messages) == []
        sent = repr(messages)
        assert (call_id in sent) is fits
        assert (name in sent) is fits
