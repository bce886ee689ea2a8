"""The shapes of content blocks of Converse, and the words in which others are refused.

Sources: the service model of `bedrock-runtime` in botocore 1.44, recorded exchanges, and errors
that users report.
"""

# A block has no type: its single key tells what it is.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.bedrock.kinds import (
    Kind,
    anything,
    array,
    blob,
    document,
    flag,
    structure,
    text,
    union,
    word,
)
from lutumpy.rules.bedrock.limits import (
    AUDIO_FORMATS,
    CACHE_TTLS,
    CALL_ID,
    CALL_ID_PATTERN,
    DOCUMENT_FORMATS,
    IMAGE_FORMATS,
    MAX_CALL_ID,
    MAX_DOCUMENT_NAME,
    MAX_NAME,
    MAX_S3_URI,
    NAME,
    NAME_PATTERN,
    S3_URI,
    S3_URI_PATTERN,
    SERVER_TOOL,
    STATUSES,
)
from lutumpy.rules.bedrock.shapes import refusal
from lutumpy.rules.problem import Certainty, Problem, about, is_array, items
from lutumpy.rules.problem import text as text_of

__all__ = [
    "BLOB_KEYS",
    "BLOCK_KEYS",
    "CACHE_POINT",
    "KEYS_OF",
    "RESULT_KEYS",
    "check_block",
    "check_system",
]

_KEYS = "converse.block_keys"


def name_of_tool(rule: str) -> Kind:
    """A tool's name."""
    return text(rule, least=1, most=MAX_NAME, pattern=NAME, shown=NAME_PATTERN)


def _id(rule: str) -> Kind:
    return text(rule, least=1, most=MAX_CALL_ID, pattern=CALL_ID, shown=CALL_ID_PATTERN)


def _source(rule: str, **more: Kind) -> Kind:
    place = structure(
        rule,
        {"uri": text(rule, least=1, most=MAX_S3_URI, pattern=S3_URI, shown=S3_URI_PATTERN)},
        {"bucketOwner": text(rule)},
        keys_rule=_KEYS,
    )
    return union(rule, {"bytes": blob(rule), "s3Location": place, **more})


CACHE_POINT = structure(
    "converse.cache_point",
    {"type": word("converse.cache_point", ("default",))},
    {"ttl": word("converse.cache_point", CACHE_TTLS)},
)
_CITATIONS = structure("converse.block", {"enabled": flag("converse.block")}, keys_rule=_KEYS)
_TEXT_ALONE = union("converse.block", {"text": text("converse.block")})
_IMAGE = structure(
    "converse.image_type",
    {
        "format": word("converse.image_type", IMAGE_FORMATS),
        "source": _source("converse.media_source"),
    },
    {"error": anything("converse.block")},
    keys_rule=_KEYS,
)
_DOCUMENT = structure(
    "converse.document_type",
    {
        "name": text("converse.document_name", least=1, most=MAX_DOCUMENT_NAME),
        "source": _source(
            "converse.media_source",
            text=text("converse.media_source"),
            content=array("converse.media_source", _TEXT_ALONE),
        ),
    },
    {
        "format": word("converse.document_type", DOCUMENT_FORMATS),
        "context": text("converse.block"),
        "citations": _CITATIONS,
    },
    keys_rule=_KEYS,
)
# `video/mp4` was accepted, which the service model doesn't list [recorded].
_VIDEO = structure(
    "converse.media_source",
    {"format": text("converse.media_source", least=1), "source": _source("converse.media_source")},
    keys_rule=_KEYS,
)
_AUDIO = structure(
    "converse.media_source",
    {
        "format": word("converse.media_source", AUDIO_FORMATS),
        "source": _source("converse.media_source"),
    },
    {"error": anything("converse.block")},
    keys_rule=_KEYS,
)
_SEARCH_RESULT = structure(
    "converse.block",
    {
        "source": text("converse.block"),
        "title": text("converse.block"),
        "content": array(
            "converse.block",
            structure("converse.block", {"text": text("converse.block")}, keys_rule=_KEYS),
        ),
    },
    {"citations": _CITATIONS},
    keys_rule=_KEYS,
)
_GUARD = union(
    "converse.block",
    {
        "text": structure(
            "converse.block",
            {"text": text("converse.block")},
            {"qualifiers": anything("converse.block")},
            keys_rule=_KEYS,
        ),
        "image": structure(
            "converse.block",
            {
                "format": word("converse.image_type", ("png", "jpeg")),
                "source": union("converse.media_source", {"bytes": blob("converse.media_source")}),
            },
            keys_rule=_KEYS,
        ),
    },
)
_TOOL_NAMED = structure("converse.block", {"tool": document("converse.block")}, keys_rule=_KEYS)
_REASONING = union(
    "converse.reasoning_block",
    {
        "reasoningText": structure(
            "converse.reasoning_block",
            {"text": text("converse.reasoning_block")},
            {"signature": text("converse.reasoning_block")},
            keys_rule=_KEYS,
        ),
        "redactedContent": blob("converse.reasoning_block"),
    },
)
_TOOL_USE = structure(
    "converse.block",
    {
        "toolUseId": _id("converse.tool_use_id"),
        "name": name_of_tool("converse.tool_use_name"),
        "input": document("converse.tool_use_input"),
    },
    {"type": word("converse.tool_use_type", (SERVER_TOOL,))},
    keys_rule=_KEYS,
)
_RESULT_MEMBERS: Mapping[str, Kind] = {
    "json": document("converse.result_json"),
    "text": text("converse.text"),
    "image": _IMAGE,
    "document": _DOCUMENT,
    "video": _VIDEO,
    "searchResult": _SEARCH_RESULT,
}
_TOOL_RESULT = structure(
    "converse.block",
    {
        "toolUseId": _id("converse.tool_use_id"),
        "content": array("converse.result_content", union("converse.block", _RESULT_MEMBERS)),
    },
    {"status": word("converse.result_status", STATUSES), "type": text("converse.block")},
    keys_rule=_KEYS,
)
_MEMBERS: Mapping[str, Kind] = {
    "text": text("converse.text"),
    "image": _IMAGE,
    "document": _DOCUMENT,
    "video": _VIDEO,
    "audio": _AUDIO,
    "toolUse": _TOOL_USE,
    "toolResult": _TOOL_RESULT,
    "guardContent": _GUARD,
    "cachePoint": CACHE_POINT,
    "reasoningContent": _REASONING,
    "citationsContent": structure(
        "converse.block",
        {},
        {
            "content": array("converse.block", _TEXT_ALONE),
            "citations": array("converse.block", document("converse.block")),
        },
        keys_rule=_KEYS,
    ),
    "searchResult": _SEARCH_RESULT,
    "toolAddition": _TOOL_NAMED,
    "toolRemoval": _TOOL_NAMED,
}
_BLOCK = union("converse.block", _MEMBERS)
_RESULT_BLOCK = union("converse.block", _RESULT_MEMBERS)
_SYSTEM = array(
    "converse.system",
    union(
        "converse.system",
        {
            "text": text("converse.system", least=1),
            "guardContent": _GUARD,
            "cachePoint": CACHE_POINT,
        },
    ),
)

BLOCK_KEYS = tuple(_MEMBERS)
"""The keys of which a block has one."""
BLOB_KEYS = frozenset({"bytes", "redactedContent"})
"""Keys of bytes: base64 on the wire, themselves in what boto3 takes and gives."""
RESULT_KEYS = tuple(_RESULT_MEMBERS)
"""The keys of which a part of a result has one."""
KEYS_OF: Mapping[str, frozenset[str]] = {
    "toolUse": frozenset({"toolUseId", "name", "input", "type"}),
    "toolResult": frozenset({"toolUseId", "content", "status", "type"}),
    "image": frozenset({"format", "source", "error"}),
    "document": frozenset({"format", "name", "source", "context", "citations"}),
    "video": frozenset({"format", "source"}),
    "reasoningText": frozenset({"text", "signature"}),
}
"""All keys of what is in a block, where a repair may drop others."""


def check_block(
    where: str, block: Any, *, in_result: bool = False, is_claude: bool = False
) -> list[Problem]:
    """Problems of one block: its shape, and texts that say nothing.

    Args:
        where: Its position.
        block: The block.
        in_result: It is in the content of a result.
        is_claude: The request is for a Claude.
    """
    found = (_RESULT_BLOCK if in_result else _BLOCK).look(where, block)
    if not isinstance(block, Mapping):
        return found
    found += _check_blank(where, block, in_result=in_result, is_claude=is_claude)
    for key in ("toolUse", "toolResult"):
        inner = block.get(key)
        if isinstance(inner, Mapping):
            if key == "toolResult":
                found += _check_result(where, inner, is_claude=is_claude)
            return about(found, text_of(inner.get("toolUseId")), text_of(inner.get("name")))
    return found


def _check_blank(
    where: str, block: Mapping[str, Any], *, in_result: bool, is_claude: bool
) -> list[Problem]:
    value = block.get("text")
    if not isinstance(value, str) or value.strip():
        return []
    # White space alone was accepted twice [recorded]; in a result Claude alone is known to refuse.
    is_sure = not value and (is_claude or not in_result)
    certainty: Certainty = "refused" if is_sure else "some"
    rule = "converse.blank_result" if in_result else "converse.blank_text"
    message = (
        f"The text field in the ContentBlock object at {where} is blank. Add text to the text "
        "field, and try again."
    )
    if in_result:
        message = "messages: text content blocks must be non-empty"
    return [refusal(rule, f"{where}.text", message, certainty)]


def _check_result(where: str, result: Mapping[str, Any], *, is_claude: bool) -> list[Problem]:
    content = result.get("content")
    if not is_array(content):
        return []
    if not content and result.get("status") == "error":
        message = (
            f"The content field at {where}.toolResult cannot be empty when status value is error."
        )
        return [refusal("converse.empty_error", f"{where}.toolResult.content", message)]
    found: list[Problem] = []
    for index, part in enumerate(items(content)):
        if isinstance(part, Mapping):
            place = f"{where}.toolResult.content.{index}"
            found += _check_blank(place, part, in_result=True, is_claude=is_claude)
    return found


def check_system(system: Any) -> list[Problem]:
    """Problems of the system text."""
    return [] if system is None else _SYSTEM.look("system", system)
