"""Hosts: whose an address is, and which rules other hosts than the vendor are known, or likely, not to keep.

Sources: recordings of eleven hosts that speak OpenAI's APIs; the addresses that the hosts document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from lutumpy.apis import serving
from lutumpy.errors import Problem

__all__ = [
    "COMPATIBLE",
    "HOSTS",
    "for_compatible_host",
    "host_name",
    "is_compatible",
    "is_softened",
]

COMPATIBLE = "compatible"
"""The name of any host that isn't the vendor's own."""

HOSTS: Mapping[str, str] = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "azure": "openai.azure.com",
    "bedrock": "bedrock-runtime.us-east-1.amazonaws.com",
    "cerebras": "api.cerebras.ai",
    "databricks": "azuredatabricks.net",
    "deepinfra": "api.deepinfra.com",
    "deepseek": "api.deepseek.com",
    "fireworks": "api.fireworks.ai",
    "gemini": "generativelanguage.googleapis.com",
    "groq": "api.groq.com",
    "huggingface": "router.huggingface.co",
    "litellm": "localhost:4000",
    "llama.cpp": "localhost:8080",
    "lmstudio": "localhost:1234",
    "mistral": "api.mistral.ai",
    "moonshot": "api.moonshot.ai",
    "nebius": "api.studio.nebius.com",
    "ollama": "localhost:11434",
    "openrouter": "openrouter.ai",
    "perplexity": "api.perplexity.ai",
    "sambanova": "api.sambanova.ai",
    "snowflake": "snowflakecomputing.com",
    "together": "api.together.xyz",
    "vertex": "aiplatform.googleapis.com",
    "vllm": "localhost:8000",
    "xai": "api.x.ai",
}
"""Hosts by the names that people call them."""

OWN_RULES: Mapping[str, frozenset[str]] = {
    "chat": frozenset(
        "audio_for_model audio_format call_id call_name content file_data image_type parallel_tool_calls "
        "parallel_tool_calls_needs_tools parameter_for_model parts ranges role_for_model "
        "tool_choice tool_choice_needs_tools tool_choice_unknown tool_name tools tools_count tools_for_model "
        "unknown_parameter web_search_for_model".split()
    ),
    "responses": frozenset(
        "arguments_length call_name dangling_reasoning duplicate_item file_data file_url held_prefix image_type item_id "
        "item_keys item_type parallel_tool_calls parameter_for_model part_length parts ranges "
        "reasoning_summary required_reasoning status tool_choice tool_choice_needs_tools tool_choice_unknown "
        "tool_name tools tools_count unknown_parameter".split()
    ),
}
"""Rules that other hosts of OpenAI's APIs don't keep: shapes, names, schemas, models and lengths, not pairing."""

EVERYWHERE = frozenset(
    "body content encoding messages results_after_uses results_first role single_result tool_use_id tool_use_input "
    "unique_ids use_for_result".split()
)
"""Rules of Messages that hold wherever it is spoken: a message says whose it is, and a result which call it answers."""

_ADDRESS = re.compile(r"[\w.-]+(?::\d+)?\Z")


def host_name(given: str) -> str:
    """The host that a name or an address means: `groq`, `api.groq.com`, `https://api.groq.com/openai/v1`.

    Raises:
        ValueError: It is neither `compatible`, nor a name that is known, nor an address.
    """
    word = given.strip().lower()
    if word == COMPATIBLE:
        return COMPATIBLE
    if word in HOSTS:
        return HOSTS[word]
    try:
        found = urlsplit(word if "://" in word else f"//{word}").netloc.rpartition("@")[2]
    except ValueError:
        found = ""
    is_address = "." in found or ":" in found or found.startswith("localhost")
    if not is_address or (_ADDRESS.match(found) is None and not found.startswith("[")):
        raise ValueError(
            f"unknown host {given!r}: an address (api.groq.com, https://host/v1), {COMPATIBLE!r}, or one of {', '.join(HOSTS)}"
        )
    return found


def is_compatible(api: str, host: str) -> bool:
    """Whether a host, named as for `host_name`, is another than the vendor of an API.

    Raises:
        ValueError: as for `host_name`.
    """
    vendor = serving(api, "rules").SHAPE.host
    found = host_name(host).partition(":")[0]
    return found != vendor and not found.endswith(f".{vendor}")


def for_compatible_host(prefix: str, found: list[Problem]) -> list[Problem]:
    """The same problems, sure no more where only the vendor is known to refuse.

    Args:
        prefix: `chat`, `responses` or `anthropic`.
        found: The problems.
    """
    return [
        replace(problem, certainty="some")
        if problem.certainty == "refused" and is_softened(prefix, problem)
        else problem
        for problem in found
    ]


def is_softened(prefix: str, problem: Problem) -> bool:
    """Whether other hosts than the vendor may take what breaks this rule."""
    family, _, rule = problem.rule.partition(".")
    if family == "anthropic":
        return rule not in EVERYWHERE or problem.message.endswith("Extra inputs are not permitted")
    too_long = problem.code in ("string_above_max_length", "array_above_max_length")
    no_calls = rule == "tool_calls" and problem.code == "empty_array"
    return (
        rule in OWN_RULES[prefix] or rule.startswith(("strict_", "schema_")) or too_long or no_calls
    )
