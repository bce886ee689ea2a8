"""What Converse binds a Claude's reasoning to: everything that comes before a block, digested.

The binding is Anthropic's [documentation], so `system`, the tools and each earlier block are bound,
and points of the cache aren't. Other models at Bedrock bind nothing that is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.rules.bedrock.models import is_claude
from lutumpy.rules.bedrock.shapes import MODEL_SAYS
from lutumpy.rules.bound_blocks import BoundBlock, ReasoningBinding, write_bound
from lutumpy.rules.claude import BOUND_ELSEWHERE, binds_reasoning, refuses_changed_prefix, version
from lutumpy.rules.problem import is_object, items, mapping, text

__all__ = ["find_bound", "reasoning_binding"]

_CACHE = "cachePoint"


def reasoning_binding() -> ReasoningBinding:
    """How Converse binds reasoning: as the Claude that is asked."""
    words = f"{MODEL_SAYS}{BOUND_ELSEWHERE}"
    unbound = frozenset({_CACHE})
    return ReasoningBinding(find_bound, version, _binds, refuses_changed_prefix, words, unbound)


def _binds(model: str | None) -> bool:
    return bool(is_claude(model)) and binds_reasoning(model)


def find_bound(body: Mapping[str, Any], answer: Any = None) -> list[BoundBlock]:
    """The reasoning of a request in order, each block with the digest of what comes before it.

    Args:
        body: The request.
        answer: The `content` of the message that answered it, if that is wanted as well.
    """
    config = mapping(body.get("toolConfig")) or {}
    head = [_without_cache(body.get("system")), _without_cache(config.get("tools"))]
    running = hashlib.sha256(write_bound(head))
    found: list[BoundBlock] = []
    for path, role, block in _blocks_of(body, answer):
        reasoning = mapping(block.get("reasoningContent")) if is_object(block) else None
        if reasoning is not None:
            reasoning_text = mapping(reasoning.get("reasoningText")) or {}
            seal = (
                text(reasoning_text.get("signature"))
                or text(reasoning.get("redactedContent"))
                or ""
            )
            is_new = path.startswith("content.")
            found.append(BoundBlock(path, seal, running.hexdigest(), is_new))
        elif not _is_cache_point(block):
            running.update(write_bound([role, block]))
    return found


def _is_cache_point(block: Any) -> bool:
    return is_object(block) and _CACHE in block


def _without_cache(blocks: Any) -> list[Any]:
    return [block for block in items(blocks) if not _is_cache_point(block)]


def _blocks_of(body: Mapping[str, Any], answer: Any) -> Iterator[tuple[str, Any, Any]]:
    for index, message in enumerate(items(body.get("messages"))):
        if is_object(message):
            for number, block in enumerate(items(message.get("content"))):
                yield f"messages.{index}.content.{number}", message.get("role"), block
    for number, block in enumerate(items(answer)):
        yield f"content.{number}", "assistant", block
