"""The limits of the Messages API stand in one module; rules, repairs and adapter agree with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lutumpy
from lutumpy import ImagePart, InvalidToolConstraints, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.anthropic.cache import count_breakpoints
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.rules.anthropic import limits
from lutumpy.rules.anthropic.messages import check_request
from lutumpy.rules.strict import ANTHROPIC_STRICT

PACKAGE = Path(lutumpy.__file__).parent
HOME = PACKAGE / "rules" / "anthropic" / "limits.py"
FOLDERS = [PACKAGE / part / "anthropic" for part in ("adapters", "doctor", "rules")]
READERS = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py")) if path != HOME]

NUMBERS = {
    value
    for value in vars(limits).values()
    if isinstance(value, int) and not isinstance(value, bool)
}
PATTERNS = [limits.NAME_PATTERN, limits.CALL_ID_PATTERN, limits.SERVER_CALL_ID_PATTERN]
# Numbers that mean something else than the limit that they happen to equal.
OTHER_MEANINGS = {
    ("encode.py", 1024),  # how long an id may be before the adapter makes up another one
    ("stages.py", 4),  # the steps of a path
    ("paths.py", 4),  # the same
}


def second_spellings(path: Path) -> Iterator[tuple[str, object]]:
    """Numbers that are compared with or given a name, and texts, that spell a limit again."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            values: list[ast.expr] = [node.left, *node.comparators]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            values = [node.value] if node.value is not None else []
        else:
            values = []
        for value in values:
            number = value.value if isinstance(value, ast.Constant) else None
            if type(number) is not int or number not in NUMBERS:
                continue
            if (path.name, number) not in OTHER_MEANINGS:
                yield path.name, number
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and (limits.NAME_CHARACTERS in text or "srvtoolu_[" in text):
            yield path.name, text
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            texts = {each.value for each in node.elts if isinstance(each, ast.Constant)}
            if texts and (texts == limits.DOCUMENT_TYPES or texts >= ANTHROPIC_STRICT.formats):
                yield path.name, sorted(map(str, texts))


@pytest.mark.parametrize("path", READERS, ids=lambda path: f"{path.parent.parent.name}/{path.name}")
def test_no_other_module_spells_a_limit_again(path: Path) -> None:
    assert list(second_spellings(path)) == []


def test_a_second_spelling_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        "MOST = 128\n"
        "def check(names):\n"
        "    return len(names) > 20\n"
        "PATTERN = '^[a-zA-Z0-9_-]+$'\n"
        "KINDS = {'application/pdf', 'text/plain'}\n"
    )
    assert {str(value) for _, value in second_spellings(path)} == {
        "128",
        "20",
        "^[a-zA-Z0-9_-]+$",
        "['application/pdf', 'text/plain']",
    }


def test_the_patterns_mean_what_the_refusals_quote() -> None:
    for quoted, compiled in (
        (limits.NAME_PATTERN, limits.NAME),
        (limits.CALL_ID_PATTERN, limits.CALL_ID),
        (limits.SERVER_CALL_ID_PATTERN, limits.SERVER_CALL_ID),
    ):
        assert quoted == f"^{compiled.pattern.removesuffix(chr(92) + 'Z')}$"
        assert quoted in PATTERNS


def request_of(**body: Any) -> set[str]:
    """The rules that a request with these fields breaks."""
    message = {"role": "user", "content": "hi"}
    return {
        problem.rule
        for problem in check_request(
            {"model": "claude-opus-4-5", "max_tokens": 9, "messages": [message], **body}
        )
    }


def spec(name: str, *, optional: int = 0, unions: int = 0) -> ToolSpec:
    """A strict tool with so many optional and so many union parameters."""
    properties: dict[str, Any] = {f"o{k}": {"type": "string"} for k in range(optional)}
    united = {f"u{k}": {"type": ["string", "null"]} for k in range(unions)}
    schema = {
        "type": "object",
        "properties": {**properties, **united},
        "required": list(united),
        "additionalProperties": False,
    }
    return ToolSpec(name, "d", schema, True)


@pytest.mark.parametrize(
    ("specs", "rule"),
    [
        ([spec("n" * limits.MAX_NAME)], None),
        ([spec("n" * (limits.MAX_NAME + 1))], "anthropic.tool_name"),
        ([spec(f"t{k}") for k in range(limits.MAX_STRICT_TOOLS)], None),
        ([spec(f"t{k}") for k in range(limits.MAX_STRICT_TOOLS + 1)], "anthropic.strict_tools"),
        ([spec(f"t{k}", optional=limits.MAX_OPTIONAL // 2) for k in range(2)], None),
        (
            [spec("a", optional=limits.MAX_OPTIONAL // 2), spec("b", optional=13)],
            "anthropic.strict_optional",
        ),
        ([spec(f"t{k}", unions=limits.MAX_UNIONS // 2) for k in range(2)], None),
        (
            [spec("a", unions=limits.MAX_UNIONS // 2), spec("b", unions=9)],
            "anthropic.strict_unions",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rules_and_adapter_draw_the_line_for_tools_at_the_same_place(
    specs: list[ToolSpec], rule: str | None
) -> None:
    tools = [
        {"name": each.name, "description": "d", "input_schema": each.schema, "strict": True}
        for each in specs
    ]
    assert request_of(tools=tools) == ({rule} if rule else set())
    if rule is None:
        assert len(AnthropicMessages.tools(ToolOffering(tuple(specs)))) == len(specs)
    else:
        with pytest.raises(InvalidToolConstraints):
            AnthropicMessages.tools(ToolOffering(tuple(specs)))


@pytest.mark.parametrize("own", range(limits.MAX_BREAKPOINTS + 2))
def test_the_adapter_sets_no_more_breakpoints_than_the_rules_allow(own: int) -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_user("hi")
    tools = [
        {"type": "custom", "name": f"t{k}", "input_schema": {"type": "object"}} for k in range(own)
    ]
    for tool in tools:
        tool["cache_control"] = {"type": "ephemeral"}
    request = AnthropicMessages.request(
        transcript, ToolOffering((spec("t"),)), cache="auto", tools=tools
    )
    found = {problem.rule for problem in check_request({"model": "claude-opus-4-5", **request})}
    assert ("anthropic.cache_control" in found) == (own > limits.MAX_BREAKPOINTS)
    assert count_breakpoints(request["tools"]) >= own


@pytest.mark.parametrize("size", [limits.MAX_IMAGE, limits.MAX_IMAGE + 4])
def test_rules_and_adapter_draw_the_line_for_images_at_the_same_place(size: int) -> None:
    data = b"\x89PNG".ljust(size // 4 * 3, b"x")
    transcript = Transcript()
    transcript.push_user([ImagePart(data, "image/png")])
    content = AnthropicMessages.messages(transcript)[0]["content"]
    is_sent = not isinstance(content, str) and content[0]["type"] == "image"
    assert is_sent == (size <= limits.MAX_IMAGE)
    source = {"type": "base64", "media_type": "image/png", "data": "x" * size}
    message = {"role": "user", "content": [{"type": "image", "source": source}]}
    broken = request_of(messages=[message])
    assert broken == (set() if size <= limits.MAX_IMAGE else {"anthropic.image_size"})
