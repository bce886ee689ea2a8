"""What Messages takes of a content part that a program wrote for it alone.

The rules about blocks (`blocks.py`) look at requests of any origin, and let pass what nobody has
seen refused. A part that is going to be committed is looked at more closely, since it stays in
every later request: all its fields are those of Anthropic's API description
(`RequestSearchResultBlock`, `RequestDocumentBlock`, ...), and hold what that says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.anthropic.blocks import RESULT_TYPES, check_block
from lutumpy.rules.anthropic.limits import MAX_TITLE, REFERENCE
from lutumpy.rules.anthropic.wording import shape
from lutumpy.rules.part_fields import (
    Holds,
    find_misfit,
    holds_address,
    holds_base64,
    holds_text,
)
from lutumpy.rules.problem import Problem
from lutumpy.rules.shape import PartPlace

__all__ = ["FIELDS", "check_part"]

_MESSAGE_TYPES = ("container_upload", "document", "image", "search_result", "text")
_WORDS = {
    "missing": "Field required",
    "unknown": "Extra inputs are not permitted",
    "wrong": "Input should be what the API describes",
}


def check_part(value: Mapping[str, Any], place: PartPlace) -> list[Problem]:
    """What the API would say of such a block in a user's message or in a result.

    Args:
        value: The block.
        place: Where it is going to be.
    """
    types = RESULT_TYPES if place == "result" else _MESSAGE_TYPES
    found = check_block("content.0", value, types, "messages")
    return found or _check_fields(value)


def _check_fields(block: Mapping[str, Any]) -> list[Problem]:
    kind = str(block["type"])
    if kind not in FIELDS:
        return []
    required, optional = FIELDS[kind]
    misfit = find_misfit(block, required, {**optional, "cache_control": _holds_mark})
    if misfit is None:
        return []
    key, problem = misfit
    return [shape("anthropic.block", f"content.0.{kind}.{key}", _WORDS[problem])]


# --- what a field holds ---------------------------------------------------------------------------


def _holds_mark(value: Any) -> bool:
    # A mark that lasts an hour must not come after one of five minutes. A part can't know what
    # will come before it.
    return value is None or (
        isinstance(value, Mapping)
        and value.get("type") == "ephemeral"
        and find_misfit(value, {}, {"ttl": lambda ttl: ttl == "5m"}) is None
    )


def _holds_citations(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and "type" not in value
        and find_misfit(value, {}, {"enabled": lambda enabled: isinstance(enabled, bool)}) is None
    )


def _holds_blocks(value: Any, *kinds: str) -> bool:
    return isinstance(value, list) and all(
        isinstance(block, Mapping)
        and block.get("type") in kinds
        and not check_block("content.0", block, kinds, "messages")
        and "cache_control" not in block
        and not _check_fields(block)
        for block in value
    )


def _holds_results(value: Any) -> bool:
    # "The content array must contain at least one text block" [documentation].
    return bool(value) and _holds_blocks(value, "text")


def _holds_content(value: Any) -> bool:
    return holds_text(value) or (bool(value) and _holds_blocks(value, "text", "image"))


def _holds_title(value: Any) -> bool:
    return value is None or (holds_text(value) and len(value) <= MAX_TITLE)


def _holds_transformations(value: Any) -> bool:
    # What the server does with an image that is too large for the model [the SDK's
    # `ImageTransformationsParam`].
    choices: Holds = ("downsize", "error").__contains__
    return value is None or (
        isinstance(value, Mapping)
        and "type" not in value
        and find_misfit(value, {}, {"oversized_image": choices}) is None
    )


def _holds_null(value: Any) -> bool:
    return value is None


def _holds_source(value: Any, forms: Mapping[str, Mapping[str, Holds]]) -> bool:
    form = forms.get(str(value.get("type"))) if isinstance(value, Mapping) else None
    return form is not None and find_misfit(value, form, {}) is None


# The media types are the business of `media.py`, which `check_block` asks.
_FILES: Mapping[str, Mapping[str, Holds]] = {
    "base64": {"media_type": holds_text, "data": holds_base64},
    "url": {"url": holds_address},
    "file": {"file_id": holds_text},
}
_DOCUMENTS: Mapping[str, Mapping[str, Holds]] = {
    **_FILES,
    "text": {"media_type": holds_text, "data": holds_text},
    "content": {"content": _holds_content},
}
FIELDS: Mapping[str, tuple[Mapping[str, Holds], Mapping[str, Holds]]] = {
    # Required fields, and optional ones beside `cache_control`. Citations of a text are Claude's.
    "text": ({"text": holds_text}, {"citations": _holds_null}),
    "image": (
        {"source": lambda value: _holds_source(value, _FILES)},
        {"transformations": _holds_transformations},
    ),
    "document": (
        {"source": lambda value: _holds_source(value, _DOCUMENTS)},
        {
            "title": _holds_title,
            "context": lambda value: value is None or holds_text(value),
            "citations": lambda value: value is None or _holds_citations(value),
        },
    ),
    "search_result": (
        {"content": _holds_results, "source": holds_text, "title": holds_text},
        {"citations": _holds_citations},
    ),
    "tool_reference": (
        {"tool_name": lambda value: isinstance(value, str) and bool(REFERENCE.match(value))},
        {},
    ),
    "container_upload": ({"file_id": holds_text}, {}),
}
