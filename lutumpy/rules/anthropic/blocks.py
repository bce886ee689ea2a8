"""The shapes of content blocks of Messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.rules.anthropic.limits import (
    CALL_ID,
    CALL_ID_PATTERN,
    MAX_HISTORY_NAME,
    SERVER_CALL_ID,
    SERVER_CALL_ID_PATTERN,
)
from lutumpy.rules.anthropic.media import check_source
from lutumpy.rules.anthropic.wording import check_keys, shape, wrong_tag
from lutumpy.rules.problem import Certainty, Problem, about, is_array, items, text

__all__ = [
    "BLOCK_TYPES",
    "CLOSED_BLOCKS",
    "RESULT_TYPES",
    "check_block",
]

# The kinds of block in the order in which the API lists them when it refuses another [recorded].
BLOCK_TYPES = (
    "advisor_tool_result bash_code_execution_tool_result browser_state code_execution_tool_result "
    "compaction container_upload document fallback image mcp_tool_listing mcp_tool_result "
    "mcp_tool_use mid_conv_system redacted_thinking search_result server_tool_use text "
    "text_editor_code_execution_tool_result thinking tool_addition tool_reference tool_removal "
    "tool_result tool_search_tool_result tool_use web_fetch_tool_result web_search_tool_result"
).split()
RESULT_TYPES = ("browser_state", "document", "image", "search_result", "text", "tool_reference")
# Blocks whose fields are all known: with another one the API answers "Extra inputs are not
# permitted". Blocks of server tools are left out: their fields change with each release.
CLOSED_BLOCKS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "tool_use": frozenset(
        {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}
    ),
    "tool_result": frozenset(
        {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}
    ),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
# Blocks that a program writes, and the texts that they can't do without [API description].
_NAMING: Mapping[str, tuple[str, ...]] = {
    "container_upload": ("file_id",),
    "search_result": ("source", "title"),
    "tool_reference": ("tool_name",),
}
# Calls of tools that the provider runs, and their texts likewise.
_SERVER_USES: Mapping[str, tuple[str, ...]] = {
    "server_tool_use": ("name",),
    "mcp_tool_use": ("name", "server_name"),
}


def check_block(where: str, block: Any, types: Sequence[str], root: str) -> list[Problem]:
    rule = "anthropic.block"
    if not isinstance(block, Mapping):
        return [shape(rule, where, "Input should be an object")]
    kind = block.get("type")
    if kind is None:
        return [shape(rule, f"{where}.type", "Field required")]
    if kind not in types:
        return [shape(rule, where, wrong_tag(kind, types))]
    inner = f"{where}.{kind}"
    found: list[Problem] = []
    if kind == "text":
        found += _check_text(inner, block, root)
    elif kind == "tool_use":
        found += _check_tool_use(inner, block)
    elif kind == "tool_result":
        found += _check_tool_result(where, inner, block)
    elif kind in _SERVER_USES:
        found += _check_id(
            "anthropic.server_id", f"{inner}.id", block.get("id"), server=kind == "server_tool_use"
        )
        found += _check_strings(rule, inner, block, _SERVER_USES[kind])
        found += _check_input(rule, inner, block)
    elif kind == "thinking":
        found += _check_strings("anthropic.thinking_block", inner, block, ("signature", "thinking"))
    elif kind == "image":
        found += check_source("anthropic.image_type", "anthropic.image_size", inner, block)
    elif kind == "document":
        found += check_source("anthropic.document_type", "anthropic.document_size", inner, block)
    elif kind == "redacted_thinking":
        found += _check_strings("anthropic.thinking_block", inner, block, ("data",))
    elif kind in _NAMING:
        if kind == "search_result" and block.get("content") is None:
            found.append(shape(rule, f"{inner}.content", "Field required"))
        found += _check_strings(rule, inner, block, _NAMING[kind])
    known = CLOSED_BLOCKS.get(kind)
    if known is not None:
        found += check_keys("anthropic.block_keys", inner, block, known)
    if found and kind in ("tool_use", "tool_result"):
        found = about(
            found,
            text(block.get("id" if kind == "tool_use" else "tool_use_id")),
            text(block.get("name")),
        )
    return found


def _check_strings(
    rule: str, where: str, block: Mapping[str, Any], keys: tuple[str, ...]
) -> list[Problem]:
    found: list[Problem] = []
    for key in keys:
        if block.get(key) is None:
            found.append(shape(rule, f"{where}.{key}", "Field required"))
        elif not isinstance(block[key], str):
            found.append(shape(rule, f"{where}.{key}", "Input should be a valid string"))
    return found


def _check_text(where: str, block: Mapping[str, Any], root: str) -> list[Problem]:
    found = _check_strings("anthropic.text", where, block, ("text",))
    if block.get("text") == "":
        found.append(
            Problem(
                "anthropic.empty_text",
                where,
                f"{root}: text content blocks must be non-empty",
                "refused",
            )
        )
    return found


def _check_input(rule: str, where: str, block: Mapping[str, Any]) -> list[Problem]:
    if "input" not in block:
        return [shape(rule, f"{where}.input", "Field required")]
    if not isinstance(block["input"], Mapping):
        return [shape(rule, f"{where}.input", "Input should be an object")]
    return []


def _check_tool_use(where: str, block: Mapping[str, Any]) -> list[Problem]:
    found = _check_id("anthropic.tool_use_id", f"{where}.id", block.get("id"))
    name = block.get("name")
    if name is None:
        found.append(shape("anthropic.tool_use_name", f"{where}.name", "Field required"))
    elif not isinstance(name, str):
        found.append(
            shape("anthropic.tool_use_name", f"{where}.name", "Input should be a valid string")
        )
    elif not name:
        found.append(
            shape(
                "anthropic.tool_use_name",
                f"{where}.name",
                "String should have at least 1 character",
            )
        )
    elif len(name) > MAX_HISTORY_NAME:
        message = f"String should have at most {MAX_HISTORY_NAME} characters"
        found.append(shape("anthropic.tool_use_name", f"{where}.name", message))
    found += _check_input("anthropic.tool_use_input", where, block)
    return found


def _check_id(rule: str, where: str, value: Any, *, server: bool = False) -> list[Problem]:
    if value is None:
        return [shape(rule, where, "Field required")]
    if not isinstance(value, str):
        return [shape(rule, where, "Input should be a valid string")]
    if server:
        fits, pattern = SERVER_CALL_ID, SERVER_CALL_ID_PATTERN
    else:
        fits, pattern = CALL_ID, CALL_ID_PATTERN
    if fits.match(value):
        return []
    return [shape(rule, where, f"String should match pattern '{pattern}'", call_ids=(value,))]


def _check_tool_result(where: str, inner: str, block: Mapping[str, Any]) -> list[Problem]:
    found = _check_id("anthropic.tool_use_id", f"{inner}.tool_use_id", block.get("tool_use_id"))
    is_error = block.get("is_error")
    if "is_error" in block and not isinstance(is_error, bool):
        found.append(
            shape("anthropic.is_error", f"{inner}.is_error", "Input should be a valid boolean")
        )
    content = block.get("content")
    if isinstance(content, str) or "content" not in block:
        return found + _check_empty_error(where, inner, block)
    if not is_array(content):
        certainty: Certainty = "some" if content is None else "refused"
        found.append(
            shape(
                "anthropic.result_content",
                f"{inner}.content",
                "Input should be a valid array",
                certainty,
            )
        )
    for index, part in enumerate(items(content)):
        found += check_block(f"{inner}.content.{index}", part, RESULT_TYPES, "messages")
    parts = [part for part in items(content) if isinstance(part, Mapping)]
    found += _check_empty_error(where, inner, block)
    if is_error is True and any(part.get("type") != "text" for part in parts):
        message = "all content must be type `text` if `is_error` is true"
        found.append(shape("anthropic.error_content", where, message))
    return found


def _check_empty_error(where: str, inner: str, block: Mapping[str, Any]) -> list[Problem]:
    """A result with `is_error` must have content [reported]."""
    if block.get("is_error") is not True or block.get("content") not in (None, "", [], ()):
        return []
    message = f"{inner}: content cannot be empty if `is_error` is true"
    return [Problem("anthropic.empty_error", where, message, "refused")]
