"""The tables of Converse's rules have all that the service model of the installed botocore has, and
each of its numbers stands in one module.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import botocore.session
import pytest

import lutumpy
from lutumpy.rules.bedrock import limits
from lutumpy.rules.bedrock.blocks import BLOCK_KEYS, KEYS_OF, RESULT_KEYS
from lutumpy.rules.bedrock.messages import PARAMETERS, check_request

PACKAGE = Path(lutumpy.__file__).parent
HOME = PACKAGE / "rules" / "bedrock" / "limits.py"
READERS = [
    path
    for part in ("adapters", "doctor", "rules")
    for path in sorted((PACKAGE / part / "bedrock").rglob("*.py"))
    if path != HOME
]
MODEL: Any = botocore.session.get_session().get_service_model("bedrock-runtime")


def members(shape: str) -> set[str]:
    return set(MODEL.shape_for(shape).members)


@pytest.mark.parametrize(
    ("shape", "table"),
    [
        ("ConverseRequest", set(PARAMETERS)),
        ("ContentBlock", set(BLOCK_KEYS)),
        ("ToolResultContentBlock", set(RESULT_KEYS)),
        ("ToolUseBlock", KEYS_OF["toolUse"]),
        ("ToolResultBlock", KEYS_OF["toolResult"]),
        ("ImageBlock", KEYS_OF["image"]),
        ("DocumentBlock", KEYS_OF["document"]),
        ("VideoBlock", KEYS_OF["video"]),
        ("ReasoningTextBlock", KEYS_OF["reasoningText"]),
    ],
)
def test_members_of_the_service_model_are_known(shape: str, table: set[str]) -> None:
    # A table may have more than an older model.
    assert members(shape) - table == set()


@pytest.mark.parametrize(
    ("shape", "table"),
    [
        ("ConversationRole", limits.ROLES),
        ("ToolResultStatus", limits.STATUSES),
        ("ImageFormat", limits.IMAGE_FORMATS),
        ("DocumentFormat", limits.DOCUMENT_FORMATS),
        ("AudioFormat", limits.AUDIO_FORMATS),
        ("CacheTTL", limits.CACHE_TTLS),
        ("ToolUseType", (limits.SERVER_TOOL,)),
    ],
)
def test_words_of_the_service_model_are_known(shape: str, table: tuple[str, ...]) -> None:
    if shape not in MODEL.shape_names:
        pytest.skip("the installed model is older than this shape")
    assert set(MODEL.shape_for(shape).enum) - set(table) == set()


def test_numbers_are_those_of_the_service_model() -> None:
    tool, call = MODEL.shape_for("ToolName").metadata, MODEL.shape_for("ToolUseId").metadata
    assert (tool["max"], tool["pattern"]) == (limits.MAX_NAME, limits.NAME_PATTERN)
    assert call["max"] == limits.MAX_CALL_ID
    # An older model, which has no `ttl` either, knows fewer characters.
    is_old = "CacheTTL" not in MODEL.shape_names
    assert call["pattern"] == (limits.NAME_PATTERN if is_old else limits.CALL_ID_PATTERN)
    name = MODEL.shape_for("DocumentBlock").members["name"].metadata
    assert name["max"] == limits.MAX_DOCUMENT_NAME
    assert MODEL.shape_for("S3Uri").metadata["pattern"] == limits.S3_URI_PATTERN


def second_spellings(path: Path) -> list[object]:
    """Texts that spell a pattern again, and large numbers that spell a limit."""
    numbers = {
        limits.MAX_NAME,
        limits.MAX_DOCUMENT_NAME,
        limits.MAX_S3_URI,
        limits.MAX_STOP_SEQUENCES,
    }
    found: list[object] = []
    for node in ast.walk(ast.parse(path.read_text())):
        value = node.value if isinstance(node, ast.Constant) else None
        if (type(value) is int and value in numbers) or (
            isinstance(value, str) and "a-zA-Z0-9_" in value
        ):
            found.append(value)
    return found


@pytest.mark.parametrize("path", READERS, ids=lambda path: f"{path.parent.parent.name}/{path.name}")
def test_no_other_module_spells_a_limit_again(path: Path) -> None:
    assert second_spellings(path) == []


def test_every_key_of_a_request_is_taken() -> None:
    said = [{"role": "user", "content": [{"text": "x"}]}]
    body: dict[str, Any] = {
        "messages": said,
        **dict.fromkeys(members("ConverseRequest") - {"messages"}),
    }
    assert check_request(body) == []
