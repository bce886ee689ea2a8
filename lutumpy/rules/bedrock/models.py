"""What models at Bedrock differ in, read from their names. Unknown names forbid nothing.

A name is a model id (`amazon.nova-lite-v1:0`), one of an inference profile (a region before it,
`us.`), or an ARN that ends with either. An ARN of an application's own profile says nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lutumpy.rules import claude

if TYPE_CHECKING:
    from lutumpy.rules.bound_blocks import Enforcement

__all__ = [
    "binds_reasoning",
    "family",
    "is_claude",
    "keeps_results_alone",
    "model_refusal",
    "needs_record",
    "refuses_changed_prefix",
    "takes_cache_points",
    "takes_cached_tools",
    "takes_films",
    "takes_neighbours",
    "takes_system_messages",
    "takes_tool_changes",
]

_ID = re.compile(
    r"(?:(?:us|us-gov|eu|apac|ap|jp|au|ca|sa|global)\.)?"
    r"(ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|moonshotai|"
    r"nvidia|openai|qwen|stability|twelvelabs|writer|zai)\.[a-z0-9]"
)
# A model's version is written with digits: `us.amazon.nova-micro-v1:O` was refused [recorded].
_WRONG_VERSION = re.compile(r":(?![0-9])")
_OF_A_MODEL = re.compile(r"arn:[^/]*:(?:foundation-model|inference-profile)/(.*)")

INVALID = "The provided model identifier is invalid."
"""What the API says of a model that it doesn't know [recorded]."""

# Of all models without on-demand throughput only this one's refusal is recorded.
NEEDS_PROFILE = frozenset({"deepseek.r1-v1:0"})


def family(model: str | None) -> str | None:
    """Who made a model, as `amazon`; `None` where its name doesn't say."""
    found = _ID.match(_bare(model))
    return found[1] if found is not None else None


def _bare(model: str | None) -> str:
    named = _OF_A_MODEL.match(model or "")
    return named[1] if named is not None else model or ""


def is_claude(model: str | None) -> bool | None:
    """Whether it is a Claude; `None` where the name doesn't say."""
    maker = family(model)
    return None if maker is None else maker == "anthropic"


def takes_films(model: str | None) -> bool | None:
    """Whether a model is shown films: Nova is, Claude isn't [recorded]; `None` for others."""
    return {"amazon": True, "twelvelabs": True, "anthropic": False}.get(family(model) or "")


def takes_neighbours(model: str | None) -> bool | None:
    """Whether two user messages may be in a row: Titan and Nova took them [recorded]."""
    maker = family(model)
    return None if maker is None else maker == "amazon"


def keeps_results_alone(model: str | None) -> bool | None:
    """Whether results may have nothing beside them: so Llama and Mistral [reported]; Claude and
    Nova take text there [recorded].
    """
    return {"meta": True, "mistral": True, "anthropic": False, "amazon": False}.get(
        family(model) or ""
    )


# Claude before 3.5 Haiku and 3.7 [documentation]; of 3.5 Sonnet only the second, in a preview.
_UNCACHED_CLAUDE = re.compile(
    r"anthropic\.claude-(?:instant|v2|3-haiku|3-opus|3-sonnet|3-5-sonnet)"
)


def takes_cache_points(model: str | None) -> bool | None:
    """Whether requests may hold cache points: Claude since 3.5 Haiku, and Nova [documentation,
    recorded]; `None` where the name doesn't say whose model it is.
    """
    maker = family(model)
    if maker is None:
        return None
    if maker == "anthropic":
        return _UNCACHED_CLAUDE.search(_bare(model)) is None
    return maker == "amazon" and "amazon.nova" in _bare(model)


def takes_cached_tools(model: str | None) -> bool | None:
    """Whether a cache point may come after the tools: Claude takes it [recorded], Nova refuses
    it [error text].
    """
    return is_claude(model)


def model_refusal(model: str) -> str | None:
    """What the API says of a model's name as it is, or `None`."""
    if model in NEEDS_PROFILE:
        return (
            f"Invocation of model ID {model} with on-demand throughput "
            "isn’t supported. Retry your request "  # noqa: RUF001
            "with the ID or ARN of an inference profile that contains this model."
        )
    if model.startswith("arn:") or model in ("", None):
        return None
    known = _ID.match(model) is not None and _WRONG_VERSION.search(model) is None
    return None if known else INVALID


# Reasoning at Converse is bound by the model that made it, so it is Claude's that is [DOC].


def binds_reasoning(model: str | None) -> bool:
    """Whether reasoning is good only behind the beginning that it was made with: that of a Claude,
    from a version of its family on. A name that says nothing counts as binding.
    """
    is_claudes = is_claude(model)
    return is_claudes is not False and claude.binds_reasoning(_bare(model))


def refuses_changed_prefix(model: str | None) -> Enforcement | None:
    """Who is refused when what comes before signed reasoning has changed, or `None`."""
    return claude.refuses_changed_prefix(_bare(model))


def needs_record(model: str | None) -> bool:
    """Whether reasoning that no binding was recorded with fails."""
    return claude.needs_record(_bare(model))


def takes_system_messages(model: str | None) -> bool:
    """Whether a message may have the role `system` [SDK: botocore 1.44.5 has it]; which models read
    one isn't established [?], so those do that read it at their maker's.
    """
    return is_claude(model) is True and claude.reads_late_system(_bare(model))


def takes_tool_changes(model: str | None) -> bool:
    """Whether a system message may withdraw a declared tool and offer it again, by reference
    (`toolRemoval`, `toolAddition`). A new tool has no carrier: `toolSpec` knows no deferring [SDK].
    Which models take it isn't established [?], so those do that take it at their maker's.
    """
    return takes_system_messages(model)
