"""Hosts: whose an address is, and which rules hold only at the vendor of an API.

Sources: recordings of eleven hosts that speak OpenAI's APIs; the addresses that hosts document.
"""

# Compatible hosts speak a vendor's API and check less of it. So a problem that only the vendor is
# known to refuse is less certain elsewhere: `for_compatible_host` turns "refused" into "some".

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
"""Hosts by the names that people use for them."""

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
"""Rules that other hosts of OpenAI's APIs don't have: about shapes, names, schemas, models and
lengths. The rules about pairing hold everywhere."""

EVERYWHERE = frozenset(
    "body content encoding messages results_after_uses results_first role single_result tool_use_id tool_use_input "
    "unique_ids use_for_result".split()
)
"""Rules of Messages that hold at every host: a message has a role, and a result names the call that
it answers."""

_ADDRESS = re.compile(r"[\w.-]+(?::\d+)?\Z")


def host_name(given: str) -> str:
    """The host that a name or an address means.

    Args:
        given: `groq`, `api.groq.com`, `https://api.groq.com/openai/v1`, or `compatible` for any
            host that isn't the vendor's own.

    Raises:
        ValueError: It is neither `compatible`, nor a known name, nor an address.
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
            f"unknown host {given!r}: an address (api.groq.com, https://host/v1), "
            f"{COMPATIBLE!r}, or one of {', '.join(HOSTS)}"
        )
    return found


def is_compatible(api: str, host: str) -> bool:
    """Whether a host, named as for `host_name`, is not the vendor of an API.

    Raises:
        ValueError: as for `host_name`.
    """
    vendor = serving(api, "rules").SHAPE.host
    found = host_name(host).partition(":")[0]
    return found != vendor and not found.endswith(f".{vendor}")


def for_compatible_host(prefix: str, found: list[Problem]) -> list[Problem]:
    """The same problems, but with certainty "some" where only the vendor is known to refuse.

    Args:
        prefix: `chat`, `responses` or `anthropic`.
        found: The problems.
    """
    softened: list[Problem] = []
    for problem in found:
        if problem.certainty == "refused" and is_softened(prefix, problem):
            problem = replace(problem, certainty="some")
        softened.append(problem)
    return softened


def is_softened(prefix: str, problem: Problem) -> bool:
    """Whether a host that isn't the vendor may accept what breaks this rule."""
    family, _, rule = problem.rule.partition(".")
    if family == "anthropic":
        return rule not in EVERYWHERE or problem.message.endswith("Extra inputs are not permitted")
    if rule in OWN_RULES[prefix] or rule.startswith(("strict_", "schema_")):
        return True
    # Of the other rules, hosts skip the lengths, and accept a message with an empty `tool_calls`.
    if problem.code in ("string_above_max_length", "array_above_max_length"):
        return True
    return rule == "tool_calls" and problem.code == "empty_array"
